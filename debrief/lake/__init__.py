"""The lake: partitioned tables of typed rows, and files, below one fsspec URL."""

from debrief.lake.columns import schema_of
from debrief.lake.tables import Creation, Lake, Row, Stamp, Written

__all__ = ["Creation", "Lake", "Row", "Stamp", "Written", "schema_of"]
