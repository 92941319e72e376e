"""The cache of answers: whole after a kill, shared by processes, no pickles."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from debrief.models.answers import Answer
from debrief.models.language_model import LanguageModel
from debrief.models.usage import ModelUsage
from debrief.sessions.readers.documents import plain_text
from debrief.state import State

PROJECT = Path(__file__).parents[2]
WRITER = """
import sys
from pathlib import Path
from debrief.state import State
state = State(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), 10**9):
    state.put(f"{sys.argv[3]}{number}", b"x" * 2000)
    print(number, flush=True)
"""


@given(text=st.text(st.characters(codec="utf-8")), cost=st.none() | st.floats(0, 100))
def test_what_is_remembered_is_recalled(text: str, cost: float | None) -> None:
    model = LanguageModel("openai/tiny", api_key="k", cache=State(None))
    usage = ModelUsage(output_tokens=1, cost_usd=cost)
    model.remember("k", Answer(text=text, usage=usage, model="m"))
    recalled = model.recall("k")
    assert recalled is not None
    assert (recalled.text, recalled.usage, recalled.model) == (plain_text(text), usage, "m")
    assert model.recall("other") is None


def test_an_answer_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    state = State(tmp_path / "cache" / "answers.sqlite")
    state.put("k", b'{"text": 1}')
    assert LanguageModel("openai/tiny", api_key="k", cache=state).recall("k") is None
    assert stat.S_IMODE((tmp_path / "cache" / "answers.sqlite").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700


def test_a_killed_writer_leaves_every_answer_it_reported_and_no_half_one(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    reported = dict.fromkeys("ab", -1)
    command = [sys.executable, "-c", WRITER, str(path)]
    for _ in range(2):
        writers = {
            name: subprocess.Popen(
                [*command, str(last + 1), name], stdout=subprocess.PIPE, text=True, cwd=PROJECT
            )
            for name, last in reported.items()
        }
        first = {
            name: [str(writer.stdout and writer.stdout.readline()) for _ in range(8)]
            for name, writer in writers.items()
        }
        for name, writer in writers.items():
            writer.kill()
            lines = [*first[name], *writer.communicate()[0].splitlines()]
            whole = [int(line) for line in lines if line.strip().isdigit()]
            reported[name] = max(reported[name], *whole[:-1])
    state = State(path)
    assert min(reported.values()) > 10
    for name, last in reported.items():
        assert all(len(state.get(f"{name}{n}") or b"") == 2000 for n in range(last + 1))
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_child_process_has_a_connection_of_its_own(tmp_path: Path) -> None:
    state = State(tmp_path / "answers.sqlite")
    state.put("before", b"b")
    child = os.fork()
    if child == 0:
        state.put("from the child", b"c")
        os._exit(0 if state.get("before") == b"b" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert state.get("from the child") == b"c"
