"""Tasks, sessions, tokens and benchmarks in Postgres."""
