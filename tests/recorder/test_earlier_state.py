"""What the version of 2026-11-27, which kept its state in folders, left on a machine.

``earlier_state/`` was made by that version: a session under way with two commands, the second one
without an end; a record that waits; one that was sent; rules that somebody agreed to.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.files import locked
from debrief.recorder.checks import problems_of
from debrief.recorder.client import RecorderClient
from debrief.recorder.encoding import decode_record
from debrief.recorder.messages import calls_of, patches_of
from debrief.recorder.session import session_of
from debrief.recorder.stopping import send_waiting
from debrief.recorder.storage.store import RecordStore
from debrief.recorder.verification import verify
from tests.recorder.service.helpers import Api, ensure_task, running
from tests.recorder.session_scenario import HASTE, Records, Shop
from tests.snapshots.scenario import write

EARLIER = Path(__file__).parent / "earlier_state"
WAITING = next((EARLIER / "outbox").glob("*/record.json"))


@pytest.fixture
def upgraded(shop: Shop) -> Shop:
    """The shop, whose earlier recorder gave way to this one."""
    shutil.copytree(EARLIER, shop.home.path)
    folders = shop.home.path / "open"
    digest = hashlib.sha256(os.fsencode(shop.folder)).hexdigest()[:32]
    (folders / "shop").rename(folders / digest)
    for file in shop.home.path.rglob("session.json"):
        file.write_text(file.read_text().replace('"/shop"', f'"{shop.folder}"'))
    return shop


@pytest.fixture
def api(record_store: RecordStore) -> Iterator[Api]:
    ensure_task(record_store)
    with running(record_store) as api:
        yield api


def test_a_session_of_an_earlier_version_goes_on_to_its_record(upgraded: Shop, file: Path) -> None:
    test, lint = session_of(upgraded.home, upgraded.folder).commands()
    assert (test.output, test.exit_code) == ("2 passed\na warning\ndone\n", 0)
    assert (lint.output, lint.exit_code) == ("src/cart.ts: 1 problem\n", None)
    write(upgraded.folder, {"src/cart.ts": "export const cart = [2];\n"})
    record = upgraded.stop(file).record
    assert record.meta.verified
    assert (problems_of(record), verify(upgraded.folder, record)) == ([], [])
    assert len(patches_of(record)) == 3
    runs = [json.loads(done.call.function.arguments) for done in calls_of(record, "run_cmd")]
    assert [run["args"] for run in runs] == [["test"], ["lint"]]


def test_a_record_that_an_earlier_version_kept_is_taken_by_the_service_of_today(
    upgraded: Shop, api: Api
) -> None:
    with RecorderClient(api.url, api.tokens["write"], HASTE) as client:
        results = list(send_waiting(upgraded.home, client))
    ids = [WAITING.parent.name]
    assert [(sent.session_id, sent.error) for sent in results] == [(ids[0], None)]
    stored = api.store.session(decode_record(WAITING.read_bytes()).meta.session_id)
    assert stored.sha256 == hashlib.sha256(WAITING.read_bytes()).hexdigest()
    assert upgraded.home.waiting() == []
    assert [sent.session_id for sent in upgraded.home.sent(9)] == [
        *ids,
        *(path.stem for path in (EARLIER / "sent").iterdir()),
    ]
    assert upgraded.home.has_agreed(next((EARLIER / "agreed").iterdir()).stem)


def test_the_earlier_folders_are_taken_over_once_and_go(upgraded: Shop, server: Records) -> None:
    assert len(upgraded.home.unsent()) == 1
    assert {path.name for path in upgraded.home.path.iterdir()} == {"state.sqlite", "locks"}
    upgraded.home.remove(upgraded.home.waiting()[0])
    upgraded.home.query("PRAGMA user_version = 1")  # as if it had died before they were gone
    shutil.copytree(EARLIER / "outbox", upgraded.home.path / "outbox")
    assert upgraded.home.unsent() == []
    assert not (upgraded.home.path / "outbox").exists()


def test_what_cannot_be_read_and_what_is_in_use_is_left_as_it_is(upgraded: Shop) -> None:
    (folder,) = (upgraded.home.path / "open").iterdir()
    lock = locked(upgraded.home.path / "locks" / folder.name)
    with lock, pytest.raises(InputError, match="an earlier version of the recorder is at this"):
        upgraded.home.opened()
    whole = (folder / "session.json").read_bytes()
    (folder / "session.json").write_bytes(whole[:40])
    with pytest.raises(InputError, match="is not what the recorder wrote") as caught:
        upgraded.run("pnpm", "test")
    assert caught.value.culprit == str(folder / "session.json")
    (folder / "session.json").write_bytes(whole)
    assert len(upgraded.home.opened()) == len(upgraded.home.waiting()) == 1


@pytest.mark.parametrize("name", ["objects/1b", "stop.json", "commands/00001.end.json"])
def test_a_session_that_cannot_be_taken_over_is_named(upgraded: Shop, name: str) -> None:
    (folder,) = (upgraded.home.path / "open").iterdir()
    if name == "objects/1b":
        shutil.rmtree(folder / name)
    else:
        (folder / name).write_bytes(b"\xff")
    with pytest.raises(InputError) as caught:
        upgraded.home.opened()
    assert caught.value.culprit.startswith(str(folder))
    assert "away" in caught.value.next_move
    shutil.move(folder, upgraded.folder.parent / "away")
    assert (upgraded.home.opened(), len(upgraded.home.waiting())) == ([], 1)


def test_what_an_earlier_version_begins_afterwards_is_taken_over_too(upgraded: Shop) -> None:
    (folder,) = (upgraded.home.path / "open").iterdir()
    aside = shutil.move(folder, upgraded.folder.parent / "aside")
    assert upgraded.home.opened() == []
    shutil.copytree(aside, folder)
    assert len(upgraded.home.opened()) == 1
    assert not folder.exists()
    shutil.copytree(aside, folder)
    with pytest.raises(InputError, match="has another one"):
        upgraded.home.opened()
    assert folder.exists()
