"""Langfuse: scores out and read back, sessions in."""
