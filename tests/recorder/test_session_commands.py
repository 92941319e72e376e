"""Commands as real programs: their ends, their time limits, what they leave behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from debrief.errors import ConfigurationError
from debrief.recorder.execution import Ended, execute


def ran(tmp_path: Path, script: str, **given: object) -> tuple[Ended, bytes, bytes]:
    """Run a shell script; return its end, what was kept and what was shown."""
    shown: list[bytes] = []
    told = {"time_limit": 20.0, "keep": 1_000, "grace": 0.3, "show": shown.append, **given}
    file = tmp_path / "output"
    ended = execute(["/bin/sh", "-c", script], tmp_path, file=file, **told)  # type: ignore[arg-type]
    return ended, file.read_bytes(), b"".join(shown)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_soon_gone(pid: int) -> bool:
    until = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_alive(pid)


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
    began = time.monotonic()
    ended, kept, _ = ran(tmp_path, "sleep 60 & echo $!; wait", time_limit=0.3)
    assert ended.exit_code is None
    assert time.monotonic() - began < 30
    assert is_soon_gone(int(kept))


def test_what_does_not_heed_the_request_is_ended_by_force(tmp_path: Path) -> None:
    script = "trap '' TERM; (trap '' TERM; sleep 60) & echo $!; sleep 60"
    ended, kept, _ = ran(tmp_path, script, time_limit=0.2, grace=0.2)
    assert ended.exit_code is None
    assert ended.seconds < 30
    assert is_soon_gone(int(kept))


def test_what_ends_in_time_on_request_may_say_its_last_words(tmp_path: Path) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo hi; while :; do sleep 0.05; done"
    ended, kept, _ = ran(tmp_path, script, time_limit=0.3, grace=5.0)
    assert ended.exit_code is None
    assert kept.startswith(b"hi\n")
    assert kept.endswith(b"bye\n")


def test_a_command_with_nothing_to_say_ends_in_time_too(tmp_path: Path) -> None:
    script = f"exec {sys.executable} -c 'import os, time; os.close(1); os.close(2); time.sleep(60)'"
    ended, _, _ = ran(tmp_path, script, time_limit=0.4)
    assert ended.exit_code is None
    assert ended.seconds < 30


def test_a_process_left_behind_does_not_hold_the_command_up(tmp_path: Path) -> None:
    ended, kept, _ = ran(tmp_path, "sleep 60 & echo $!")
    try:
        assert ended.exit_code == 0
        assert ended.seconds < 30
        assert is_alive(int(kept))
    finally:
        os.kill(int(kept), signal.SIGKILL)


def test_there_is_nothing_to_read(tmp_path: Path) -> None:
    assert ran(tmp_path, "cat; echo end")[1] == b"end\n"


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
        execute(
            [str(tmp_path / "x")],
            tmp_path,
            time_limit=1,
            file=tmp_path / "output",
            keep=10,
            show=lambda piece: None,
        )


def test_a_disk_that_is_full_ends_the_command_and_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No space left on device"):
        execute(
            ["/bin/sh", "-c", "sleep 60 & echo $! > pid; echo much; wait"],
            tmp_path,
            time_limit=20,
            file=Path("/dev/full"),
            keep=1_000,
            show=lambda piece: None,
        )
    assert is_soon_gone(int((tmp_path / "pid").read_text()))
