"""Redaction: secrets out of everything a session carries, before it is stored."""
