"""Access control for the pages and Dagster's UI: who may do what, and a log of changes."""
