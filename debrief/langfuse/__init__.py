"""Langfuse: scores out, and read back."""
