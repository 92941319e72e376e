"""The lake: partitioned tables of typed rows, and files, below one fsspec URL."""

import os

from debrief.lake.tables import Creation, Lake, Row, Stamp, Written, schema_of

__all__ = ["Creation", "Lake", "Row", "Stamp", "Written", "schema_of"]

# Arrow's own allocator keeps what the largest week took; the system's gives it back.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
