"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from debrief.files import atomic

KILLED = """
import os, pathlib, signal, sys
from debrief.files import atomic
with atomic(pathlib.Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"old")
    with atomic(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_where_writing_fails_the_old_file_stays_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), atomic(path) as file:
        file.writelines([b"new", None])  # type: ignore[list-item]
    with pytest.raises(FileExistsError), atomic(path, replace=False) as file:
        file.write(b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(path.name, b"old")]


def test_what_a_killed_writer_left_goes_when_nobody_can_be_writing_it(tmp_path: Path) -> None:
    path = tmp_path / "[state].json"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert killed.returncode == -signal.SIGKILL
    (leftover,) = tmp_path.iterdir()
    with atomic(path) as file:
        file.write(b"1")
    assert {*tmp_path.iterdir()} == {path, leftover}
    os.utime(leftover, (0, 0))
    with atomic(path) as file:
        file.write(b"2")
    assert [*tmp_path.iterdir()] == [path]
