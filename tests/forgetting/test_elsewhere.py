"""What is kept of a session outside of the lake: on servers, at home, in repositories."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.errors import InputError, LangfuseError
from debrief.forgetting.choosing import Choice, Sources
from debrief.forgetting.forget import ForgetReceipt, forget
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.langfuse.client import LangfuseClient
from debrief.langfuse.outgoing import NAMES, ScoreReceipt, score_id
from debrief.langfuse.scores import WriteOptions, write_scores
from debrief.langfuse.source import LangfuseSource, ServerFilter
from debrief.outcomes.giving import give_label, label_of
from debrief.outcomes.labels import annotations_of
from debrief.recorder.checks import ReadyRule
from debrief.recorder.exporting import lines_of
from debrief.recorder.local_session import Started
from debrief.recorder.service.ingest import Ingest
from debrief.recorder.state import RecorderHome
from debrief.recorder.storage.rows import NotFoundError
from debrief.recorder.storage.store import RecordStore
from debrief.redaction.redactor import Redactor, key_of
from debrief.sessions.forgotten import Forgotten
from debrief.sessions.recorder_source import RecorderSource
from debrief.sessions.scanning import ScanEntry
from debrief.sessions.store import SessionServer, scan_into, sessions_of_lake, store_week
from debrief.sessions.transfer import mirror, push
from debrief.settings import Settings, load_settings
from debrief.state import FORGOTTEN, AuditEntry, open_state
from debrief.tasks.model import FORM as HARBOR
from debrief.training.publishing.exported import note_export
from debrief.training.publishing.folder import OwnFolder, files_of
from tests.forgetting.searching import found_in, letters, sentences_of_some
from tests.langfuse.scenario import START, Recorder, client_of, scored
from tests.langfuse.server import LangfuseServer
from tests.recorder.records import benchmark, build, upload_of
from tests.recorder.service.helpers import KEY, ensure_task
from tests.sessions.scenario import Log
from tests.snapshots.scenario import write

ONE, TWO = (f"0a1b2c3d-0000-4000-8000-00000000000{n}" for n in (1, 2))
FIRST = "Please find out why the harbour crane index loses its newest entries at night."
SECOND = "The invoice for lighthouse keepers counts every lamp twice, which is too many."


class Machine:
    """A machine with a home and a lake, and what it forgets with."""

    def __init__(self, path: Path, **environment: str) -> None:
        self.path = path
        self.home, self.there = path / "home", path / "transcripts"
        places = {"DEBRIEF_HOME": str(self.home), "DEBRIEF_LAKE": str(path / "lake")}
        self.settings: Settings = load_settings({**places, **environment})
        self.lake = Lake(self.settings.lake)
        self.redactor = Redactor(key_of(self.settings))
        self.servers: list[SessionServer] = []
        self.langfuse: LangfuseClient | None = None
        self.records: RecordStore | None = None

    def tells(self, session: str, words: str, day: int = 5, **more: str) -> Path:
        log = Log(words, session=session, started=datetime(2026, 1, day, 9, tzinfo=UTC), **more)
        log.says(f"I looked into this: {words.lower()} It is mended now.")
        return log.write(self.there / "project" / f"{session}.jsonl")

    def reads(self, *folders: Path) -> list[str]:
        """Read everything in; return the ids of the lake's sessions."""
        found = scan_into(self.lake, folders or [self.there], self.redactor, self.servers)
        for week in found.weeks():
            store_week(self.lake, found, week, self.redactor, self.servers)
        return sorted(session.id for session in sessions_of_lake(self.lake))

    def forgets(self, *ids: str, person: str = "", before: date | None = None) -> ForgetReceipt:
        sources = Sources(
            settings=self.settings,
            lake=self.lake,
            forgotten=Forgotten.of(self.lake, self.redactor),
            langfuse=self.langfuse,
            records=self.records,
        )
        return forget(Choice(sessions=ids, person=person, before=before), sources)

    def found_in(self, receipt: ForgetReceipt) -> dict[str, int]:
        return {holding.place: holding.count for holding in receipt.found}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def source(server: LangfuseServer) -> LangfuseSource:
    since = START - timedelta(days=1)
    moments = iter(START + timedelta(days=days) for days in range(1, 500))
    return LangfuseSource(
        client_of(server, attempts=2), ServerFilter(since=since), now=lambda: next(moments)
    )


def test_our_scores_and_labels_on_langfuse_go_and_the_session_is_not_fetched_again(
    machine: Machine,
) -> None:
    with LangfuseServer() as server:
        for name in ("s0", "s1"):
            Recorder(server, name).trace(f"t-{name}", f"Go on with {name}, please.", "Done.")
        machine.servers = [source(server)]
        assert machine.reads() == ["s0", "s1"]
        machine.langfuse = client_of(server)
        label = label_of("s0", "success", "bad", "It did not do what I asked for.", "ann")
        give_label(machine.lake, machine.home, label)
        receipts = write_scores(
            machine.langfuse,
            [scored("s0"), scored("s1")],
            annotations=annotations_of(machine.lake),
        )
        on_trace = WriteOptions(score_target="trace")
        receipts += write_scores(machine.langfuse, [scored("s0")], options=on_trace)
        machine.lake.write("langfuse_scores", week_of(START), receipts, ScoreReceipt)
        written = {
            receipt.score_id: receipt.session_id
            for receipt in receipts
            if receipt.status == "written"
        }
        assert len(written) == 3 * len(NAMES) + 1
        machine.lake.drop("langfuse_scores", week_of(START))  # as on another machine

        receipt = machine.forgets("s0")
        assert machine.found_in(receipt)["Langfuse"] == 2 * len(NAMES) + 1
        gone = {identity for identity, session in written.items() if session == "s0"}
        assert set(server.deletions) == gone
        server.two_minutes_pass(len(gone))
        assert set(server.scores) == {score_id("s1", name) for name in NAMES}
        assert [remaining.what for remaining in receipt.remaining] == ["on_server"]

        Recorder(server, "s0").trace("t9", "And more of it.", "Done.")
        server.requests.clear()
        assert machine.reads() == ["s1"]
        rows = server.sent("GET", "/v2/observations")
        assert not [row for row in rows if row.query.get("sessionId") == "s0"]
        assert machine.found_in(machine.forgets("s0")) == {}
        assert "s0" not in str(list(machine.lake.rows("scan", ScanEntry)))


def test_a_server_that_is_away_stops_it_before_anything_is_gone(machine: Machine) -> None:
    machine.tells(ONE, FIRST)
    assert machine.reads() == [ONE]
    with LangfuseServer() as server:
        machine.langfuse = client_of(server, attempts=1)
    before = {path: path.read_bytes() for path in machine.path.rglob("*") if path.is_file()}
    with pytest.raises(LangfuseError):
        machine.forgets(ONE)
    after = {path: path.read_bytes() for path in machine.path.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize("mode", ["events_only", "old"])
def test_a_person_is_known_by_the_user_id_that_langfuse_has(machine: Machine, mode: str) -> None:
    with LangfuseServer(mode) as server:  # type: ignore[arg-type]
        for name, user in (("s0", "kim@example.org"), ("s1", "lee@example.org")):
            Recorder(server, name).trace(f"t-{name}", f"Go on with {name}, please.", "Done.")
            for row in (*server.observations, *server.traces):
                row.setdefault("userId", user)
        machine.servers = [source(server)]
        assert machine.reads() == ["s0", "s1"]
        machine.langfuse = client_of(server)
        assert machine.forgets(person="kim@example.org").sessions == ("s0",)


@pytest.mark.parametrize(
    ("folder", "person", "is_theirs"),
    [
        ("/home/kim/shop", "kim", True),
        ("/Users/kim", "kim", True),
        (r"C:\Users\kim\shop", "kim", True),
        ("/home/kimberly/shop", "kim", False),
        ("/srv/kim/shop", "kim", False),
    ],
)
def test_a_person_is_known_by_the_home_folder(
    machine: Machine, folder: str, person: str, is_theirs: bool
) -> None:
    machine.tells(ONE, FIRST, cwd=folder)
    machine.tells(TWO, SECOND, cwd="/home/lee/shop")
    machine.reads()
    give_label(machine.lake, machine.home, label_of(TWO, "success", "good", "", person))
    assert machine.forgets(person=person).sessions == ((ONE,) if is_theirs else ())
    assert machine.reads() == ([TWO] if is_theirs else [ONE, TWO])


def test_a_persons_name_leaves_the_list_of_changes(machine: Machine) -> None:
    state = open_state(machine.settings)
    for name in ("lee", "kim"):
        state.record(AuditEntry(name, "label", f"gave a label to {TWO}"))
    assert machine.forgets(person="lee").sessions == ()
    assert [row.person for row in state.changes()] == [FORGOTTEN, "kim"]
    assert found_in([machine.home], {letters("gave a label to")}) != {}
    with pytest.raises(InputError, match="no change here"):
        machine.forgets(person="lou")


def ingested(store: RecordStore, hour: int = 9, **meta: UUID) -> UUID:
    began = datetime(2026, 11, 2, hour, tzinfo=UTC)
    given: dict[str, Any] = {"session_id": uuid4(), **meta}
    given |= {"started_at": began, "stopped_at": began + timedelta(minutes=30)}
    record = build(**given)
    store.add_session(Ingest(Redactor(KEY), ReadyRule()).check(upload_of(record)))
    return record.meta.session_id


def test_a_record_leaves_the_database_and_is_not_read_in_again(
    machine: Machine, record_store: RecordStore
) -> None:
    ensure_task(record_store)
    ids = [ingested(record_store), ingested(record_store, hour=15)]
    figure = record_store.add_benchmark(benchmark(task_id="cart", session_id=ids[0]))
    machine.servers, machine.records = [RecorderSource(lambda: record_store)], record_store
    assert machine.reads() == sorted(map(str, ids))
    home = RecorderHome(machine.home)
    for uuid in ids:
        home.keep(str(uuid), b"{}")
    receipt = machine.forgets(str(ids[0]))
    counts = machine.found_in(receipt)
    assert (counts["recorder's database"], counts["recorder"]) == (1, 1)
    with pytest.raises(NotFoundError):
        record_store.session(ids[0])
    assert [item.session_id for item in record_store.benchmarks().items] == [None]
    assert figure.value == record_store.benchmarks().items[0].value
    assert [path.stem for path in (machine.home / "recorder/kept").iterdir()] == [str(ids[1])]
    assert machine.reads() == [str(ids[1])]
    again = ingested(record_store, session_id=ids[0])  # sent once more, from somebody's outbox
    assert record_store.session(again)
    assert machine.reads() == [str(ids[1])]
    assert str(ids[0]) not in str(list(machine.lake.rows("scan", ScanEntry)))


def test_an_export_of_records_loses_its_lines(machine: Machine, record_store: RecordStore) -> None:
    ensure_task(record_store)
    uuid, two = ingested(record_store), ingested(record_store, hour=15)
    to = machine.path / "records"
    note_export(machine.lake, str(to), "record")
    to.mkdir()
    with record_store.export() as records:
        lines = [line.line for line in lines_of("record", records)]
    (to / "cart.record.jsonl").write_bytes(b"".join(lines))  # as an earlier version wrote it
    machine.records = record_store
    machine.forgets(str(uuid))
    text = "".join(path.read_text() for path in to.rglob("*.jsonl"))
    assert (str(uuid) in text, str(two) in text) == (False, True)


def test_of_an_export_of_tasks_a_whole_one_goes(machine: Machine) -> None:
    machine.tells(ONE, FIRST)
    machine.tells(TWO, SECOND)
    machine.reads()
    to = machine.path / "tasks"
    note_export(machine.lake, str(to), HARBOR)
    folder = OwnFolder(str(to), HARBOR)
    for session in (ONE, TWO):
        settings = f'session = "{session}"\n'.encode()
        folder.write_folder(f"shop-{session}", {"task.toml": settings, "tests/test.sh": b"true\n"})
    folder.close()
    machine.forgets(ONE)
    assert files_of(folder.place) == {f"shop-{TWO}/task.toml", f"shop-{TWO}/tests/test.sh"}
    assert sorted(path.name for path in to.iterdir()) == [".debrief.json", f"shop-{TWO}"]


def test_a_record_that_the_lake_has_not_read_goes_by_its_age(
    machine: Machine, record_store: RecordStore
) -> None:
    ensure_task(record_store)
    uuid = ingested(record_store)
    machine.records = record_store
    day = record_store.session(uuid).created_at.date()
    assert machine.forgets(before=day + timedelta(days=1)).sessions == (str(uuid),)
    assert record_store.count() == 0
    with pytest.raises(Exception, match="is no session of this lake"):
        machine.forgets(str(uuid4()))


def test_a_mirror_loses_its_copy_and_does_not_fetch_it_again(machine: Machine) -> None:
    machine.tells(ONE, FIRST)
    machine.tells(TWO, SECOND)
    url = f"file://{machine.path}/bucket"
    push([machine.there], url, "kim", machine.redactor, machine.path / "elsewhere")
    shutil.rmtree(machine.there)
    assert machine.reads(mirror(url, machine.home)) == [ONE, TWO]
    needles = sentences_of_some(sessions_of_lake(machine.lake), {ONE}) | {letters(ONE)}
    assert found_in([machine.home], needles)
    receipt = machine.forgets(ONE)
    assert machine.found_in(receipt)["mirrors"] == 1
    assert [remaining.what for remaining in receipt.remaining] == ["object"]
    assert machine.reads(mirror(url, machine.home)) == [TWO]
    assert found_in([machine.home, machine.path / "lake"], needles) == {}

    other = Machine(machine.path / "other", DEBRIEF_LAKE=str(machine.path / "lake"))
    shutil.copy(machine.home / "redaction.key", other.home / "redaction.key")
    other.redactor = Redactor(key_of(other.settings))
    assert other.reads(mirror(url, other.home)) == [TWO]
    mirror(url, other.home)
    assert found_in([other.home], needles) == {}


def test_a_person_is_known_by_the_name_under_which_transcripts_were_pushed(
    machine: Machine,
) -> None:
    machine.tells(ONE, FIRST, cwd="/srv/shop")
    url = f"file://{machine.path}/bucket"
    push([machine.there], url, "kim", machine.redactor, machine.path / "elsewhere")
    shutil.rmtree(machine.there)
    machine.tells(TWO, SECOND, cwd="/srv/shop")
    push([machine.there], url, "lee", machine.redactor, machine.path / "elsewhere")
    machine.reads(mirror(url, machine.home))
    assert machine.forgets(person="kim").sessions == (ONE,)


def test_what_was_forgotten_is_not_pushed_again_and_its_names_are_not_kept(
    machine: Machine,
) -> None:
    machine.tells(ONE, FIRST)
    machine.tells(TWO, SECOND)
    machine.reads()
    url = f"file://{machine.path}/bucket"
    push([machine.there], url, "kim", machine.redactor, machine.home)
    assert machine.found_in(machine.forgets(ONE))["pushed"] == 1
    shutil.rmtree(machine.path / "bucket")
    environment = {
        "DEBRIEF_HOME": str(machine.home),
        "DEBRIEF_LAKE": machine.settings.lake,
        "DEBRIEF_SESSIONS": "",
    }
    command = ["push", "--to", url, "--sessions", str(machine.there), "--as", "kim"]
    done = CliRunner().invoke(app, command, env=environment)
    assert done.exit_code == 0, done.output
    assert [path.stem for path in (machine.path / "bucket").rglob("*.jsonl")] == [TWO]
    assert found_in([machine.home], {letters(ONE)}) == {}


@pytest.fixture
def shop(machine: Machine) -> Path:
    """A repository in which two sessions worked, one of them on a plan that both are in."""
    shop = machine.path / "shop"
    (shop / ".git").mkdir(parents=True)
    for session, words in ((ONE, FIRST), (TWO, SECOND)):
        transcript = machine.tells(session, words, cwd=str(shop))
        both = {"session_id": ONE, "session_ids": [ONE, TWO], "tool": "claude-code"}
        write(
            shop,
            {
                f".debrief/sessions/{session}/prompts/main.md": "Keep changes small.",
                f".debrief/sessions/{session}/metadata.json": json.dumps({"session_id": session}),
                ".debrief/sessions/retries/metadata.json": json.dumps(both),
                f".debrief/training_data/{session}/code_trace.md": words,
                f".debrief/training_data/{session}/metadata.json": json.dumps(
                    {"session_id": session}
                ),
                ".debrief/plans/retries.md": "# Retries",
            },
        )
        copy = shop / ".debrief/sessions/retries/transcripts/project" / transcript.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(transcript, copy)
    return shop


def test_captures_go_and_of_a_plans_only_what_is_the_sessions(machine: Machine, shop: Path) -> None:
    assert machine.reads() == [ONE, TWO]
    needles = sentences_of_some(sessions_of_lake(machine.lake), {ONE}) | {letters(ONE)}
    assert found_in([shop], needles)
    machine.forgets(ONE)
    assert found_in([shop], needles) == {}
    sessions = shop / ".debrief/sessions"
    assert sorted(path.name for path in sessions.iterdir()) == [TWO, "retries"]
    assert len(list(sessions.rglob("*.jsonl"))) == 1
    assert (shop / ".debrief/plans/retries.md").exists()
    machine.forgets(TWO)
    assert sorted(path.name for path in sessions.iterdir()) == []


def test_what_earlier_tools_kept_of_it_is_left_behind_by_a_migration(
    machine: Machine, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.reads()
    shutil.copytree(shop / ".debrief", shop / ".weft")
    machine.forgets(ONE)
    shutil.rmtree(shop / ".debrief")
    environment = {"DEBRIEF_HOME": str(machine.home), "DEBRIEF_LAKE": machine.settings.lake}
    monkeypatch.chdir(shop)
    done = CliRunner().invoke(app, ["migrate", "--apply"], env=environment)
    assert done.exit_code == 0, done.output
    assert "is of a forgotten session" in done.output
    kept = {path.name for path in (shop / ".debrief/training_data").iterdir()}
    assert kept == {TWO}


def test_an_unfinished_recording_of_it_goes_too(machine: Machine) -> None:
    machine.tells(ONE, FIRST)
    machine.reads()
    home = RecorderHome(machine.home)
    started = Started(
        id=ONE,
        task_id="cart",
        prompt=FIRST,
        worktree="/x/shop",
        repo_name="shop",
        base_ref="1" * 40,
        started_at=datetime(2026, 1, 5, tzinfo=UTC),
    )
    home.open(Path("/x/shop"), started)
    home.open(Path("/x/cart"), msgspec.structs.replace(started, id=TWO, prompt=SECOND))
    machine.forgets(ONE)
    assert [session.started.id for session in home.opened()] == [TWO]
