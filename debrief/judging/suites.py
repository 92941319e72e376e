"""The project's own tests, run before and after a change: a failing test is data, no error."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from debrief.git import scratch_of

TIMEOUT = 1800.0
"""Seconds for one run of the tests."""
_KEPT = 20_000


class SuiteRun(Struct, frozen=True, kw_only=True):
    """How one run of the tests ended."""

    command: str
    commit: str
    """The commit that was tested, or ``worktree``."""
    exit_code: int | None
    """None when the time was over."""
    passed: bool
    seconds: float
    output: str
    """Of both streams; of a long one the beginning and the end."""


def run_tests(
    command: str,
    folder: Path,
    commit: str,
    redact: Callable[[str], str],
    timeout: float = TIMEOUT,
) -> SuiteRun:
    """Run a shell command in a folder.

    Args:
        command: as one would type it.
        folder: where.
        commit: what it is that is tested.
        redact: takes the secrets out of the output.
        timeout: seconds after which all its processes are ended.
    """
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            shell=True,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code: int | None
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        seconds = time.monotonic() - start
        output.seek(0)
        text = _shortened(output.read().decode("utf-8", "replace"))
    return SuiteRun(
        command=redact(command),
        commit=commit,
        exit_code=code,
        passed=code == 0,
        seconds=round(seconds, 1),
        output=redact(text),
    )


def run_tests_at(
    command: str, repository: Path, commit: str, redact: Callable[[str], str]
) -> SuiteRun:
    """Run a shell command on a commit, in a worktree that is removed afterwards.

    Nothing is written to the repository, and git knows nothing of its configuration there. Files
    that a filter makes, such as those of Git LFS, are as they are stored.

    Raises:
        InputError: the commit cannot be checked out.
    """
    with (
        scratch_of(repository) as scratch,
        tempfile.TemporaryDirectory(prefix="debrief-tests-") as folder,
    ):
        scratch.check_out(commit, Path(folder))
        return run_tests(command, Path(folder), commit, redact)


def _shortened(text: str) -> str:
    if len(text) <= _KEPT:
        return text
    half = _KEPT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
