"""The folder for Debrief's own files: ``DEBRIEF_HOME``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return ``DEBRIEF_HOME``, else ``~/.debrief``; it may not be there yet."""
    return Path(environ.get("DEBRIEF_HOME") or Path.home() / ".debrief").expanduser()
