from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    """Take back what a test's resources have named in the settings."""
    kept = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(kept)
