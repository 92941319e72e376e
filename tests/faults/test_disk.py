"""A disk without room: the file is named, nothing half-written is seen, the next run goes on."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from debrief.errors import LakeError
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from tests.faults.judging import ROOT, TABLE, WEEK, session_of
from tests.machine import keep_patterns
from tests.pipelines.conftest import Home
from tests.pipelines.test_model_run import conversation
from tests.pipelines.test_run import write
from tests.training.scenario import judgement
from tests.waiting import LONG

LIMIT = 120_000


def test_a_week_that_does_not_fit_names_its_file_and_leaves_the_old_one(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    old = [row_of(0, "")]
    lake.write(TABLE, WEEK, old, JudgeEvaluation)
    code = "import sys; from tests.faults.test_disk import write_much; write_much(sys.argv[1])"
    said = subprocess.run(
        [sys.executable, "-c", code, lake.url],
        capture_output=True,
        text=True,
        cwd=ROOT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT)),
        timeout=LONG,
    )
    assert said.returncode == 0, said.stderr
    assert TABLE in said.stdout
    assert "cannot be written: the file would be larger than is allowed." in said.stdout
    assert "Make room" in said.stdout
    assert list(lake.read(TABLE, WEEK, JudgeEvaluation)) == old
    assert [path.name for path in (tmp_path / TABLE).iterdir()] == [f"{WEEK}.jsonl.zst"]


def write_much(url: str) -> None:
    lake = Lake(url)
    try:
        rows = (row_of(number, os.urandom(500).hex()) for number in range(2_000))
        lake.write(TABLE, WEEK, rows, JudgeEvaluation)
    except LakeError as error:
        print(error)


def row_of(number: int, feedback: str) -> JudgeEvaluation:
    return judgement(session_of(number), feedback=feedback)


def test_a_run_that_finds_no_room_ends_in_one_line_with_what_to_do(tmp_path: Path) -> None:
    write(tmp_path, "one.jsonl", conversation("one"))
    home = Home(tmp_path)
    keep_patterns(tmp_path / ".debrief")
    said = subprocess.run(
        [
            *(sys.executable, "-m", "pipelines.command", "run", "--no-model", "--yes"),
            *("--sessions", str(tmp_path), "--lake", str(tmp_path / "lake")),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=home.environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT)),
        timeout=LONG,
    )
    assert said.returncode == 1, said.stdout + said.stderr
    assert "Traceback" not in said.stderr
    last = said.stderr.splitlines()[-1]
    assert last.startswith("debrief: ")
    assert "Make room" in last


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_every_way_to_be_full_is_told_with_the_file(tmp_path: Path, number: int) -> None:
    lake = Lake(str(tmp_path))
    told = pytest.raises(LakeError, match=r"/some/file: cannot be written: .*\. Make room")
    with told, lake.create("file"):
        raise OSError(number, os.strerror(number), "/some/file")


def test_another_failure_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), Lake(str(tmp_path)).create("file"):
        raise PermissionError(errno.EACCES, "not allowed", "/some/file")
