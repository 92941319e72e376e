"""Commands as real programs: their ends, their time limits, what they leave behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from debrief.errors import ConfigurationError
from debrief.recorder.commands import execute
from debrief.recorder.local_session import CommandEnd
from tests.waiting import LONG, is_over, wait_until

SHELL = ("/bin/sh", "-c")


def ran(tmp_path: Path, script: str, **given: object) -> tuple[CommandEnd, bytes, bytes]:
    """Run a shell script; return its end, what was kept and what was shown."""
    shown: list[bytes] = []
    told: dict[str, Any] = {"time_limit": LONG, "keep": 1_000, "grace": 0.3, "show": shown.append}
    kept: list[bytes] = []
    told |= {"store": kept.append, **given}
    ended = execute([*told.pop("shell", SHELL), script], tmp_path, **told)
    return ended, b"".join(kept), b"".join(shown)


def at_its_limit(tmp_path: Path, script: str, **given: object) -> tuple[CommandEnd, bytes]:
    """Run a script that ends by itself after ten minutes, with time enough to say something."""
    for limit in (0.3, 3.0, 30.0):
        began = time.monotonic()
        ended, kept, _ = ran(tmp_path, script, time_limit=limit, **given)
        assert ended.exit_code is None
        assert ended.duration_ms / 1000 <= time.monotonic() - began < LONG
        if kept:
            return ended, kept
    raise AssertionError("nothing was said")


def test_output_is_shown_as_it_comes(tmp_path: Path) -> None:
    came: list[bytes] = []

    def show(piece: bytes) -> None:
        came.append(piece)
        (tmp_path / "go").touch()

    script = "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two >&2"
    assert ran(tmp_path, script, show=show)[0].exit_code == 0
    assert came == [b"one\n", b"two\n"]


ENDS = {"well": ("exit 0", 0), "badly": ("exit 7", 7), "by a signal": ("kill -KILL $$", 137)}


@pytest.mark.parametrize(("script", "code"), ENDS.values(), ids=ENDS)
def test_the_exit_code_is_the_one_a_shell_would_tell(
    tmp_path: Path, script: str, code: int
) -> None:
    assert ran(tmp_path, script)[0].exit_code == code


def test_more_than_is_kept_is_shown_all_the_same(tmp_path: Path) -> None:
    ended, kept, shown = ran(tmp_path, "head -c 300000 /dev/zero | tr '\\0' x")
    assert (len(kept), len(shown), ended.cut) == (1_000, 300_000, True)
    ended, kept, _ = ran(tmp_path, "head -c 1000 /dev/zero | tr '\\0' x")
    assert (len(kept), ended.cut) == (1_000, False)


def test_a_command_is_ended_at_its_time_limit_with_all_that_it_started(tmp_path: Path) -> None:
    _, kept = at_its_limit(tmp_path, "sleep 600 & echo $!; wait")
    wait_until(lambda: is_over(int(kept)))


def test_what_does_not_heed_the_request_is_ended_by_force(tmp_path: Path) -> None:
    script = "trap '' TERM; (trap '' TERM; sleep 600) & echo $!; sleep 600"
    _, kept = at_its_limit(tmp_path, script, grace=0.2)
    wait_until(lambda: is_over(int(kept)))


def test_what_ends_in_time_on_request_may_say_its_last_words(tmp_path: Path) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo hi; while :; do sleep 0.05; done"
    _, kept = at_its_limit(tmp_path, script, grace=LONG)
    assert kept.startswith(b"hi\n")
    assert kept.endswith(b"bye\n")


def test_a_command_that_closed_its_output_ends_in_time_too(tmp_path: Path) -> None:
    _, kept = at_its_limit(tmp_path, "echo all; exec 1>&- 2>&-; exec sleep 600")
    assert kept == b"all\n"


def test_a_process_left_behind_does_not_hold_the_command_up(tmp_path: Path) -> None:
    ended, kept, _ = ran(tmp_path, "sleep 600 & echo $!")
    try:
        assert ended.exit_code == 0
        assert ended.duration_ms / 1000 < LONG
        assert not is_over(int(kept))
    finally:
        os.kill(int(kept), signal.SIGKILL)


def test_there_is_nothing_to_read(tmp_path: Path) -> None:
    assert ran(tmp_path, "cat; echo end")[1] == b"end\n"


@pytest.fixture
def heeded() -> Iterator[None]:
    """Nothing that asks for an end is ignored, as it is by all that nohup starts."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    yield
    for number, how in before.items():
        signal.signal(number, how)


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_reaches_the_command_and_its_end_is_known(
    tmp_path: Path, number: signal.Signals
) -> None:
    asked = requests(number)
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo asked; exit 9' {name}; echo ready; while :; do sleep 0.02; done"
    ended, kept, _ = ran(tmp_path, script, show=lambda piece: next(asked, None))
    assert ended.exit_code == 9
    assert kept.endswith(b"asked\n")


@pytest.mark.usefixtures("heeded")
def test_being_asked_twice_ends_it_by_force(tmp_path: Path) -> None:
    asked = requests(signal.SIGINT, signal.SIGINT)
    script = "trap '' INT; while :; do echo still here; sleep 0.02; done"
    ended, _, _ = ran(tmp_path, script, show=lambda piece: next(asked, None))
    assert ended.exit_code == 137
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def requests(*numbers: signal.Signals) -> Iterator[None]:
    """Send one signal to this process each time that the next is asked for."""
    for number in numbers:
        os.kill(os.getpid(), number)
        yield


def test_a_program_that_cannot_be_started_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no program")
    with pytest.raises(ConfigurationError, match="cannot be started: Permission denied"):
        ran(tmp_path, str(tmp_path / "x"), shell=())


def test_a_disk_that_is_full_ends_the_command_and_is_said_so(tmp_path: Path) -> None:
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(OSError, match="No space left"),
    ):
        ran(tmp_path, "sleep 600 & echo $! > pid; echo much; wait", store=full.write)
    wait_until(lambda: is_over(int((tmp_path / "pid").read_text())))
