"""The sandbox of this machine, for tests; where there is none they are skipped, with the reason."""

from __future__ import annotations

import pytest

from debrief.execution.sandbox import Sandbox, find_sandbox, why_unavailable


def sandbox_or_skip() -> Sandbox:
    """Return the sandbox, or skip the test that asks for it."""
    if reason := why_unavailable():
        pytest.skip(f"no sandbox on this machine: {reason}")
    return find_sandbox()
