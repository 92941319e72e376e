"""Debrief: coding-agent sessions into judged, scored, secrets-free training data."""

__version__ = "0.1.0"
