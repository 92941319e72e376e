"""A process killed between any two of its steps, and at moments that nobody chose."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from debrief.errors import InputError
from debrief.recorder.checks import validations_of
from debrief.recorder.encoding import decode_record
from debrief.recorder.messages import changes_of
from debrief.recorder.session import discard, session_of
from debrief.recorder.state import RecorderHome
from debrief.recorder.stopping import WaitingError, send_waiting
from tests.recorder.session_scenario import Clock, Records, Shop, a_shop, add_pnpm
from tests.snapshots.scenario import write

MOST_STEPS = 200
STATEMENTS = ("BEGIN", "INSERT", "UPDATE", "DELETE", "PRAGMA user_version =", "COMMIT")
"""That change the recorder's state; each is one transaction, or in one that ends with COMMIT."""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    script = '#!/bin/sh\necho "$1" >> "$SEEN"\necho one\nsleep 0.05\necho two\n'
    monkeypatch.setenv("PATH", add_pnpm(tmp_path, script))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    made = a_shop(tmp_path)
    (tmp_path / "tmp").mkdir()  # for what the killed leave behind
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return made


def in_another_process(work: Callable[[], object], prepare: Callable[[], object]) -> int:
    """Fork, and return the pid of the process that does the work and nothing else."""
    pid = os.fork()
    if pid:
        return pid
    try:
        prepare()
        work()
    finally:
        os._exit(0)


def is_killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do the work in a process that is killed before its step so numbered; False: it had fewer."""
    left = [step]

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        if _is_step(event, arguments):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    class Counted(sqlite3.Connection):
        """A connection whose statements are steps, like calls of the system."""

        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            count("sqlite3.execute", (statement,))
            return super().execute(statement, *values)

    def prepare() -> None:
        sys.addaudithook(count)
        sqlite3.connect = partial(sqlite3.connect, factory=Counted)  # type: ignore[assignment]

    pid = in_another_process(work, prepare)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def _is_step(event: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether something changes next that is there after this process: a file gets its name,
    a program starts, something is stored or sent."""
    first = str(arguments[0]) if arguments else ""
    if event == "sqlite3.execute":
        return first.startswith(STATEMENTS)
    if event == "subprocess.Popen":
        return not first.endswith("git")
    return event in ("os.rename", "socket.connect")


def each_kill(shop: Shop, work: Callable[[], object]) -> Iterator[int]:
    """Kill the work at its first step, its second, …, each time from the same beginning."""
    home, worktree = shop.home.path.parent, shop.folder
    saved = home.with_name("saved")
    home.mkdir(exist_ok=True)
    shutil.copytree(home, saved)
    for step in range(1, MOST_STEPS):
        killed = is_killed_at(step, work)
        yield step
        if not killed:
            assert step > 2, "hardly a step was counted"
            return
        shutil.rmtree(home)
        shutil.copytree(saved, home)
    raise AssertionError(f"over {MOST_STEPS} steps in {worktree}")


def test_a_start_that_is_killed_leaves_a_session_or_none(shop: Shop) -> None:
    outcomes = set()
    for _ in each_kill(shop, shop.start):
        outcomes.add(shop.home.session(shop.folder) is not None)
        with suppress(InputError):
            shop.start()
        assert session_of(shop.home, shop.folder).started.prompt == "Add a discount."
        discard(shop.home, shop.folder)
        assert shop.home.opened() == []
    assert outcomes == {True, False}


def test_a_command_whose_recorder_is_killed_is_in_the_record(shop: Shop) -> None:
    shop.start()
    shop.run("pnpm", "lint")
    seen = Path(os.environ["SEEN"])
    for _ in each_kill(shop, lambda: shop.run("pnpm", "test")):
        time.sleep(0.02)
        ran = "test" in seen.read_text() if seen.exists() else False
        seen.unlink(missing_ok=True)
        commands = session_of(shop.home, shop.folder).commands()
        assert [command.args for command in commands[:1]] == [("lint",)]
        assert len(commands) == 2 or not ran
        if len(commands) == 2 and commands[1].exit_code is not None:
            assert commands[1].output == "one\ntwo\n"
        shop.run("pnpm", "build")
        after = session_of(shop.home, shop.folder).commands()
        assert after[:-1] == commands
        assert after[-1].args == ("build",)


def test_a_stop_that_is_killed_can_be_repeated_and_the_server_has_one_record(
    shop: Shop, server: Records
) -> None:
    started = shop.start()
    shop.run("pnpm", "test")
    shop.change()
    clock = Clock()

    def stopping() -> None:
        with server.client() as client:
            shop.stop(client, clock=clock)

    for _ in each_kill(shop, stopping):
        before = dict(server.records)
        if shop.home.opened():
            clock()
            stopping()
        assert list(server.records) == [started.id]
        assert before in ({}, server.records)
        record = decode_record(server.records[started.id])
        assert changes_of(record)[0].path == "src/cart.ts"
        assert validations_of(record) == [(False, 0)]
        assert shop.home.opened() == shop.home.waiting() == []
        server.records.clear()


def test_what_a_killed_stop_was_sending_is_sent_by_an_upload_too(
    shop: Shop, server: Records
) -> None:
    started = shop.start()
    shop.change()

    def stopping() -> None:
        with server.client() as client:
            shop.stop(client)

    for _ in each_kill(shop, stopping):
        with server.client() as client:
            sent = list(send_waiting(shop.home, client))
            assert [(result.session_id, result.error) for result in sent] in (
                [],
                [(started.id, None)],
            )
            if shop.home.opened():
                shop.stop(client)
        assert list(server.records) == [started.id]
        server.records.clear()


def test_a_stop_to_a_file_that_is_killed_can_be_repeated_and_is_not_sent_by_an_upload(
    shop: Shop, server: Records, tmp_path: Path
) -> None:
    shop.start()
    shop.change()
    file = tmp_path / "record.json"
    for _ in each_kill(shop, lambda: shop.stop(file)):
        before = file.read_bytes() if file.exists() else None
        with server.client() as client:
            assert list(send_waiting(shop.home, client)) == []
        if shop.home.opened():
            shop.stop(file)
        assert before in (None, file.read_bytes())
        assert decode_record(file.read_bytes()).meta.verified
        # What the killed writer left beside it begins with a dot, and goes an hour later.
        assert [path for path in tmp_path.glob("*record.json*") if path.name[0] != "."] == [file]
        file.unlink()
    assert server.records == {}


def test_an_upload_that_is_killed_can_be_repeated(shop: Shop, server: Records) -> None:
    started = shop.start()
    shop.change()
    server.answers = [(403, {}, b"{}")]
    with pytest.raises(WaitingError), server.client() as client:
        shop.stop(client)
    (waiting,) = shop.home.waiting()
    text = waiting.record()

    def uploading() -> None:
        with server.client() as client:
            list(send_waiting(shop.home, client))

    for _ in each_kill(shop, uploading):
        uploading()
        assert server.records == {started.id: text}
        assert shop.home.waiting() == []
        server.records.clear()


def test_a_life_killed_at_any_moment_loses_nothing(shop: Shop, server: Records) -> None:
    chance = random.Random(8)
    done: list[str] = []

    def living() -> None:
        if not shop.home.opened() and not server.records:
            shop.start()
        shop.run("pnpm", "test")
        write(shop.folder, {"src/cart.ts": f"export const time = {time.monotonic_ns()};\n"})
        shop.run("pnpm", "lint")
        with server.client() as client:
            shop.stop(client)

    least = 0
    for _ in range(7):
        pid = in_another_process(living, lambda: None)
        time.sleep(chance.uniform(0.02, 0.5))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if server.records:
            break
        sessions = shop.home.opened()
        if sessions:
            commands = sessions[0].commands()
            assert len(commands) >= least
            least = len(commands)
            done = [sessions[0].started.id]
    if not server.records or shop.home.opened():
        if not shop.home.opened():
            shop.start()
        with server.client() as client:
            write(shop.folder, {"src/last.ts": "x\n"})
            shop.stop(client)
    (id,) = server.records
    assert done in ([], [id])
    assert len(decode_record(server.records[id]).meta.commands or ()) >= least
    assert RecorderHome(shop.home.path.parent).opened() == []
