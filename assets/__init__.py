"""What is made: one module a stage. An asset takes its partition, calls the library, files rows."""
