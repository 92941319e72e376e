"""Several programs kept running as one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from pipelines.supervising import GaveUpError, Program, Restarts, Supervisor
from tests.waiting import LONG, is_over, wait_until

QUICK = Restarts(first_wait=0.05, most=2, within=60)
STAYS = "import time; print('here', flush=True); time.sleep(600)"


def program(name: str, source: str, **options: object) -> Program:
    return Program(name=name, command=(sys.executable, "-c", source), **options)  # type: ignore[arg-type]


def run_until(
    supervisor: Supervisor, done: Callable[[], bool], act: Callable[[], None] = lambda: None
) -> None:
    """Run, act once all is ready, and stop when ``done`` holds."""

    def watch() -> None:
        try:
            wait_until(done)
        finally:
            supervisor.stop()

    def started() -> None:
        act()
        threading.Thread(target=watch).start()

    supervisor.run(started)


def lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except FileNotFoundError:
        return []


def test_parts_start_in_order_and_all_of_them_end(tmp_path: Path) -> None:
    order = tmp_path / "order"
    note = f"open({str(order)!r}, 'a').write('{{}}\\n'); import time; time.sleep(600)"
    first = program("first", note.format("first"), ready=lambda: bool(lines(order)))
    second = program("second", note.format("second"), after=("first",))
    supervisor = Supervisor([second, first], tmp_path / "logs")
    pids: list[int | None] = []
    run_until(
        supervisor,
        lambda: len(lines(order)) == 2,
        lambda: pids.extend([supervisor.pid("first"), supervisor.pid("second")]),
    )
    assert lines(order) == ["first", "second"]
    assert len(pids) == 2
    assert not any(psutil.pid_exists(pid) for pid in pids if pid)


def test_a_part_is_started_once_those_before_it_are_ready_and_again_after_its_wait(
    tmp_path: Path,
) -> None:
    told, before, after = list[str](), list[bool](), list[int | None]()

    def asked() -> bool:
        before.append(supervisor.pid("second") is not None or bool(told))
        return len(before) == 3

    def watched() -> bool:
        if told:
            after.append(supervisor.pid("second"))
        if len(after) == 3:
            supervisor.stop()
        return False

    parts = [
        program("second", "raise SystemExit", after=("first",)),
        program("first", STAYS, ready=asked),
        program("watch", STAYS, ready=watched),
    ]
    waits = Restarts(first_wait=LONG)
    supervisor = Supervisor(parts, tmp_path / "logs", restarts=waits, report=told.append)
    supervisor.run()
    assert before == [False] * 3
    assert told == [f"second ended with exit code 0; starting it again in {LONG:.0f} s"]
    assert after == [None] * 3


def test_a_part_that_dies_is_started_again(tmp_path: Path) -> None:
    starts, told = tmp_path / "starts", list[str]()
    part = program("part", f"open({str(starts)!r}, 'a').write('x\\n'); {STAYS}")
    supervisor = Supervisor([part], tmp_path / "logs", restarts=QUICK, report=told.append)

    def kill() -> None:
        wait_until(lambda: lines(starts))
        os.kill(supervisor.pid("part") or 0, signal.SIGKILL)

    run_until(supervisor, lambda: len(lines(starts)) == 2, kill)
    assert len(lines(starts)) == 2
    assert told == ["part ended by signal 9; starting it again in 0 s"]


def test_a_part_that_keeps_dying_stops_all_with_its_last_words(tmp_path: Path) -> None:
    broken = program("broken", "import sys; sys.exit('the port is taken')")
    beside = program("beside", STAYS)
    supervisor = Supervisor(
        [beside, broken], tmp_path / "logs", restarts=QUICK, report=lambda _: None
    )
    with pytest.raises(GaveUpError, match=r"(?s)3 times.*the port is taken"):
        supervisor.run()
    assert supervisor.pid("beside") is None
    assert lines(tmp_path / "logs" / "broken.log").count("the port is taken") == 3


def test_what_a_part_started_ends_with_it(tmp_path: Path) -> None:
    child = tmp_path / "child"
    source = (
        "import subprocess, sys, time\n"
        "c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(child)!r}, 'w').write(str(c.pid))\ntime.sleep(600)"
    )
    run_until(Supervisor([program("part", source)], tmp_path / "logs"), lambda: bool(lines(child)))
    wait_until(lambda: is_over(int(child.read_text())))


def test_a_part_that_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    deaf = tmp_path / "deaf"
    source = f"import signal; signal.signal(15, signal.SIG_IGN); open({str(deaf)!r}, 'w'); {STAYS}"
    supervisor = Supervisor([program("part", source, stop_timeout=0.3)], tmp_path / "logs")
    began = time.monotonic()
    run_until(supervisor, deaf.exists)
    assert supervisor.pid("part") is None
    assert time.monotonic() - began < 2 * LONG


def test_a_part_that_is_never_ready_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    part = program("part", STAYS, ready=lambda: False, start_timeout=0.2)
    told: list[str] = []
    supervisor = Supervisor([part], tmp_path / "logs", restarts=QUICK, report=told.append)
    with pytest.raises(GaveUpError, match="part"):
        supervisor.run()
    assert "part is not ready after 0 s" in told


def test_a_long_log_is_rotated_while_its_program_writes(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    source = (
        "import time\nprint('first')\nfor _ in range(700): print('x' * 10_000, flush=True)\n"
        "while True: print('here', flush=True); time.sleep(0.05)"
    )
    run_until(
        Supervisor([program("part", source)], logs),
        lambda: (logs / "part.log.1").exists() and "here" in lines(logs / "part.log"),
    )
    assert lines(logs / "part.log.1")[1] == "first"
    assert (logs / "part.log").stat().st_size < 5_000_000


def test_the_programs_end_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    source = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    supervise = (
        "import sys\nfrom pathlib import Path\n"
        "from pipelines.supervising import Program, Supervisor\n"
        f"command = (sys.executable, '-c', {source!r})\n"
        f"Supervisor([Program(name='part', command=command)], Path({str(tmp_path)!r})).run()"
    )
    parent = subprocess.Popen([sys.executable, "-c", supervise], cwd=Path(__file__).parents[2])
    wait_until(lambda: lines(pid))
    parent.kill()
    parent.wait()
    wait_until(lambda: is_over(int(pid.read_text())))
