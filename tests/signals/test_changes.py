"""What a session changed, held against what git says of the same repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from debrief.signals.extract import session_signals
from tests.signals.repository import Repository

SESSIONS = 40
STEPS = 12


@pytest.mark.parametrize("seed", range(SESSIONS))
def test_signals_say_what_git_says(tmp_path: Path, seed: int) -> None:
    repository = Repository(tmp_path, seed)
    for _ in range(STEPS):
        repository.step()
    row = session_signals(repository.story.say("Done.").session())
    changed, gone = repository.truth()
    assert (set(row.change.files), set(row.change.deleted)) == (changed, gone)
    assert len(row.change.commits) == len(repository.counted)
    assert (row.change.counted or 0) == sum(repository.counted)
    assert bool(row.change) == bool(changed or gone or repository.counted)
