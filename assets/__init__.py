"""Dagster's assets, one module a stage: each takes a partition, calls the library, stores rows."""
