"""Readers: one module a source."""
