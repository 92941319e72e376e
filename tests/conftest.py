"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# A test is to fail for what it finds, not for what else the machine is doing.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
