"""The lake: partitioned tables of typed rows, and files, below one fsspec URL."""

from debrief.lake.tables import Creation, Lake, Row, Stamp, Written, schema_of

__all__ = ["Creation", "Lake", "Row", "Stamp", "Written", "schema_of"]
