"""The lake: partitioned tables of typed rows, and files, below one fsspec URL."""

from debrief.lake.rows import Row, Stamp
from debrief.lake.tables import DAMAGED_SUFFIX, SUFFIXES, Creation, Lake, Written

__all__ = ["DAMAGED_SUFFIX", "SUFFIXES", "Creation", "Lake", "Row", "Stamp", "Written"]
