"""Redaction: secrets out of everything a session carries, before it is stored."""

from debrief.redaction.redactor import (
    Finding,
    Redacted,
    Redactor,
    contains_secret,
    load_key,
    refuse_secrets,
)

__all__ = ["Finding", "Redacted", "Redactor", "contains_secret", "load_key", "refuse_secrets"]
