"""The end of a session: its record in a file, in the outbox, and in the service itself."""

from __future__ import annotations

import shutil
import socket
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.recorder.checks import problems_of, validations_of
from debrief.recorder.client import RecorderClient
from debrief.recorder.encoding import decode_record
from debrief.recorder.local_session import StopOptions
from debrief.recorder.messages import calls_of, changes_of, operations_of
from debrief.recorder.session import opened
from debrief.recorder.stopping import HeldError, WaitingError, forget, send_waiting
from debrief.recorder.storage.store import RecordStore
from tests.recorder.repositories import apply_to_folder
from tests.recorder.service.helpers import Api, ensure_task, running
from tests.recorder.session_scenario import (
    HASTE,
    Clock,
    Records,
    Shop,
)
from tests.snapshots.scenario import git, write
from tests.waiting import LONG, wait_until


def test_a_session_becomes_a_record_that_rebuilds_the_changes(shop: Shop, file: Path) -> None:
    started = shop.start(system="Be brief.")
    shop.run("pnpm", "lint")
    shop.change()
    shop.run("pnpm", "test")
    with pytest.raises(InputError, match="the summary: is empty"):
        shop.stop(file, StopOptions(summary=" "))
    done = shop.stop(file, StopOptions(summary="A discount of five."))
    record = decode_record(file.read_bytes())
    assert record == done.record
    assert (problems_of(record), done.not_ready) == ([], ())
    assert record.messages[-1].content == "A discount of five."
    meta = record.meta
    assert (str(meta.session_id), meta.base_ref) == (started.id, started.base_ref)
    assert [(change.kind, change.path) for change in changes_of(record)] == [
        ("update", "src/cart.ts"),
        ("create", "src/discount.ts"),
        ("delete", "src/old.ts"),
    ]
    assert validations_of(record) == [(False, 3), (True, 0)]
    outputs = [done.result for done in calls_of(record, "run_cmd")]
    assert outputs == ["src/cart.ts: 1 problem\n", "2 passed\na warning\ndone\n"]
    git(shop.folder, "stash", "-q", "-u")
    apply_to_folder(shop.folder, operations_of(record))
    git(shop.folder, "add", "-A")
    assert git(shop.folder, "write-tree") == meta.final_tree
    assert shop.home.opened() == []
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_server_that_is_away_gets_the_same_bytes_later(shop: Shop, server: Records) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        away = RecorderClient(f"http://127.0.0.1:{taken.getsockname()[1]}", "t", HASTE)
        for number in range(2):
            shop.start()
            write(shop.folder, {f"new-{number}.ts": ""})
            with pytest.raises(WaitingError, match="cannot be reached"):
                shop.stop(away)
            git(shop.folder, "add", "-A")
            git(shop.folder, "commit", "-q", "-m", "work")
        texts = {session.started.id: session.record() for session in shop.home.waiting()}
        (sent,) = send_waiting(shop.home, away)
        assert sent.error is not None
    with server.client() as client:
        assert all(sent.error is None for sent in send_waiting(shop.home, client))
    assert server.records == texts
    assert shop.home.waiting() == []


def test_a_session_whose_worktree_is_gone_can_be_forgotten(shop: Shop) -> None:
    started = shop.start()
    shutil.rmtree(shop.folder)
    with (
        shop.home.lock_worktree(shop.folder),
        pytest.raises(InputError, match="another process is at this worktree's session"),
    ):
        forget(shop.home, started.id)
    assert forget(shop.home, started.id)
    assert shop.home.opened() == []


def test_stopping_again_sends_the_bytes_of_the_first_time(shop: Shop, server: Records) -> None:
    started = shop.start()
    shop.change()
    clock = Clock()
    with server.client() as client:
        server.answers = [(200, {}, b"no answer of the recorder")]
        with pytest.raises(WaitingError):
            shop.stop(client, clock=clock)
        (waiting,) = shop.home.waiting()
        made = waiting.record()
        shop.home.query("UPDATE sessions SET waits = 0")  # as if the stop had been killed
        with opened(shop.home, shop.folder) as session:
            assert session.started == started
        write(shop.folder, {"later.ts": "a change that came too late\n"})
        done = shop.stop(client, StopOptions(summary="Other words."), clock=clock)
    assert done.made_before
    assert server.records == {started.id: made}


def test_a_baseline_that_is_gone_is_an_error_and_the_session_goes_on(
    shop: Shop, file: Path
) -> None:
    started = shop.start()
    write(shop.folder, {"src/cart.ts": "another\n"})
    git(shop.folder, "add", "-A")
    tree = git(shop.folder, "write-tree")
    other = git(shop.folder, "commit-tree", "-m", "another beginning", tree)
    git(shop.folder, "reset", "-q", "--hard", other)
    git(shop.folder, "reflog", "expire", "--expire=now", "--all")
    git(shop.folder, "gc", "-q", "--prune=now")
    with pytest.raises(InputError, match="no longer has the commit") as caught:
        shop.stop(file)
    assert started.base_ref in caught.value.reason
    assert "debrief record discard" in caught.value.next_move
    assert not file.exists()
    with opened(shop.home, shop.folder) as session:
        assert session.started == started


def test_a_session_in_which_nothing_happened_makes_no_record(shop: Shop, file: Path) -> None:
    shop.start(ignore=("*.log",))
    with pytest.raises(InputError, match="nothing was changed and no command was run"):
        shop.stop(file)
    write(shop.folder, {"a.log": "ignored"})
    with pytest.raises(InputError, match="1 changed paths are left out"):
        shop.stop(file)
    shop.run("pnpm", "test")
    assert shop.stop(file).not_ready == ("it changes no file",)


def test_a_record_too_large_is_held_and_the_session_goes_on(shop: Shop, file: Path) -> None:
    shop.start()
    write(shop.folder, {f"data/{n}.txt": f"{n} words and words\n" * 48_000 for n in range(10)})
    with pytest.raises(HeldError, match="bytes; at most 8,000,000 can be sent"):
        shop.stop(file)
    assert not file.exists()
    write(shop.folder, {"src/cart.ts": "smaller\n"})
    record = shop.stop(file, StopOptions(ignore=("data/",))).record
    assert [change.path for change in changes_of(record)] == ["src/cart.ts"]


def test_a_file_that_is_there_is_not_written_over(shop: Shop, file: Path, tmp_path: Path) -> None:
    shop.start()
    shop.change()
    file.write_text("mine")
    with pytest.raises(InputError, match="is there already"):
        shop.stop(file)
    with pytest.raises(InputError, match="is no folder"):
        shop.stop(tmp_path / "nowhere/record.json")
    assert file.read_text() == "mine"
    file.unlink()
    (tmp_path / "x").mkdir()
    file.symlink_to(tmp_path / "x")
    with pytest.raises(InputError, match="is there already"):
        shop.stop(file)
    assert shop.stop(tmp_path / "x/record.json").size


def test_a_name_that_no_task_can_have_is_refused_before_the_session_ends(
    shop: Shop, server: Records
) -> None:
    shop.start()
    shop.change()
    for name in ("", "a" * 201):
        with pytest.raises(InputError, match="is no task's name"), server.client() as client:
            shop.stop(client, StopOptions(create_task=name))
    assert server.asked == []


def test_a_worktree_whose_record_waits_is_told_how_it_is_sent(shop: Shop, server: Records) -> None:
    shop.start(task_id="checkout")
    shop.change()
    with server.client() as client:
        with pytest.raises(WaitingError):
            shop.stop(client)
        with pytest.raises(InputError, match="made and waits") as caught:
            shop.stop(client)
    assert "debrief record upload" in caught.value.next_move
    with pytest.raises(InputError, match="made and waits"):
        shop.run("pnpm", "test")
    for waiting in shop.home.waiting():
        shop.home.remove(waiting)
    with pytest.raises(InputError, match=r"has no session\."):
        shop.run("pnpm", "test")


@pytest.fixture
def api(record_store: RecordStore) -> Iterator[Api]:
    ensure_task(record_store)
    with running(record_store) as api:
        yield api


def client_of(api: Api) -> RecorderClient:
    return RecorderClient(api.url, api.tokens["write"], HASTE)


def test_a_record_that_is_being_sent_is_not_forgotten_under_way(
    shop: Shop, server: Records
) -> None:
    started = shop.start()
    shop.change()
    server.answers = [(403, {}, b"{}")]
    with pytest.raises(WaitingError), server.client() as client:
        shop.stop(client, StopOptions(keep=True))
    server.asked.clear()
    server.hang.clear()
    with server.client() as client, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(lambda: list(send_waiting(shop.home, client)))
        wait_until(lambda: server.asked)
        busy = "another process is sending this record"
        with pytest.raises(InputError, match=busy):
            shop.home.forget(started.id, act=True)
        with pytest.raises(InputError, match=busy):
            forget(shop.home, started.id)
        (twice,) = send_waiting(shop.home, client)
        assert busy in str(twice.error)
        server.hang.set()
        assert [result.error for result in sending.result(LONG)] == [None]
    assert shop.home.forget(started.id, act=True) == 2, "what was sent, and the file that was kept"
    assert shop.home.forget(started.id, act=True) == 0
    assert [path.name for path in (shop.home.path / "locks").glob("record-*")] == []


def test_a_task_that_is_not_there_makes_the_record_wait_until_it_is(shop: Shop, api: Api) -> None:
    started = shop.start(task_id="checkout")
    shop.change()
    with client_of(api) as client:
        with pytest.raises(WaitingError) as caught:
            shop.stop(client)
        assert "checkout" in caught.value.reason
        assert "--create-task" in str(caught.value)
        (sent,) = send_waiting(shop.home, client, "Checkout")
    assert (sent.session_id, sent.error) == (started.id, None)
    assert [task.name for task in api.store.tasks() if task.id == "checkout"] == ["Checkout"]
