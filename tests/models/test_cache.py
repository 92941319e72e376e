"""The cache of answers: whole after a kill, shared by processes, no pickles."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from hypothesis import given
from hypothesis import strategies as st

from debrief.models.cache import Cache, Kept
from debrief.models.usage import ModelUsage

ROOT = Path(__file__).parents[2]
WRITER = """
import sys
from pathlib import Path
from debrief.models.cache import Cache, Kept
from debrief.models.usage import ModelUsage
cache = Cache(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), 10**9):
    cache.put(f"{sys.argv[3]}{number}", Kept(text="x" * 2000, usage=ModelUsage(), model="m"))
    print(number, flush=True)
"""


def kept(text: str) -> Kept:
    return Kept(text=text, usage=ModelUsage(input_tokens=3, cost_usd=None), model="openai/tiny")


@given(text=st.text(st.characters(codec="utf-8")), cost=st.none() | st.floats(0, 100))
def test_what_was_put_comes_back(text: str, cost: float | None) -> None:
    cache = Cache(None)
    answer = Kept(text=text, usage=ModelUsage(output_tokens=1, cost_usd=cost), model="m")
    cache.put("k", answer)
    assert cache.get("k") == answer
    assert cache.get("other") is None


def test_it_is_there_for_the_next_process_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "answers.sqlite"
    Cache(path).put("k", kept("Fine."))
    assert Cache(path).get("k") == kept("Fine.")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def out_of(writer: subprocess.Popen[str]) -> IO[str]:
    assert writer.stdout is not None
    return writer.stdout


def test_a_killed_writer_leaves_every_answer_it_told_of_and_no_half_one(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    told: dict[str, int] = {}
    for round_ in range(3):
        writers = {
            name: subprocess.Popen(
                [sys.executable, "-c", WRITER, str(path), str(told.get(name, -1) + 1), name],
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            for name in ("a", "b")
        }
        first = {
            name: [out_of(writer).readline() for _ in range(8)] for name, writer in writers.items()
        }
        time.sleep(0.05 * round_)
        for name, writer in writers.items():
            writer.send_signal(signal.SIGKILL)
            lines = [*first[name], *writer.communicate()[0].splitlines()]
            whole = [int(line) for line in lines if line.strip().isdigit()]
            told[name] = max([told.get(name, -1), *whole[:-1]])
    cache = Cache(path)
    assert told["a"] > 10
    assert told["b"] > 10
    for name, last in told.items():
        for number in range(last + 1):
            found = cache.get(f"{name}{number}")
            assert found is not None
            assert len(found.text) == 2000
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_file_that_is_no_database_is_set_aside_and_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    path.write_bytes(b"This is no database. " * 100)
    cache = Cache(path)
    cache.put("k", kept("Fine."))
    assert cache.get("k") == kept("Fine.")
    assert path.with_suffix(".broken").read_bytes().startswith(b"This is no database.")


def test_an_entry_that_cannot_be_read_is_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    cache = Cache(path)
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO answers VALUES ('k', '{\"text\": 1}', 0)")
    assert cache.get("k") is None


def test_a_child_process_has_a_connection_of_its_own(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "answers.sqlite")
    cache.put("before", kept("b"))
    child = os.fork()
    if child == 0:
        cache.put("from the child", kept("c"))
        os._exit(0 if cache.get("before") == kept("b") else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert cache.get("from the child") == kept("c")
