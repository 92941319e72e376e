"""``debrief forget`` on a lake that a real run made: afterwards nothing holds a word of a session."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import msgspec
import pytest

from debrief.lake import Lake
from debrief.models.answers import Answer
from debrief.models.language_model import LanguageModel
from debrief.models.subject import asking_about
from debrief.outcomes.giving import give_label, label_of
from debrief.outcomes.store import all_labels
from debrief.recorder.postgres import programs_folder
from debrief.redaction.redactor import Redactor
from debrief.samples import folder
from debrief.sessions.forgotten import TABLE, Forgotten, Tombstone
from debrief.sessions.model import Session
from debrief.sessions.scanning import ScanEntry
from debrief.sessions.store import sessions_of_lake
from debrief.settings import load_settings
from debrief.state import State
from debrief.tables import TABLES
from debrief.training.formats import validate_line
from debrief.training.model import INDEX, LINES, LineRow, TrainingSetRow
from debrief.training.publishing.folder import exported_files
from debrief.view.index import Index
from pipelines.instance import make_schema, open_instance
from pipelines.pruning import prune_runs
from tests.forgetting.searching import found_in, letters, sentences, sentences_of_some
from tests.machine import files_below
from tests.pipelines.conftest import Demo, Home, only_line
from tests.postgres import in_dagster_schema
from tests.sessions.scenario import Log

MINED = "5da3d54d-1dd0-5f4a-b78d-b2ec216cce62"
CHOSEN = "30b4942c-2ac3-5d41-8817-d4c759f09519"
"""It has a subagent's file."""
KEY = b"k" * 32


class Machine(Home, frozen=True):
    """A machine with a lake, that a person works on."""

    lake_at: Path

    @property
    def lake(self) -> Lake:
        return Lake(str(self.lake_at))

    @property
    def everything(self) -> list[Path]:
        return [self.path]

    def forget(self, *arguments: str, **environment: str) -> str:
        said = self.typed("forget", *arguments, "--lake", str(self.lake_at), **environment)
        assert said.code == 0, said.all
        return said.out

    def run(self, *arguments: str) -> str:
        sessions = str(folder()) if "--sessions" not in arguments else ""
        own = ("--sessions", sessions) if sessions else ()
        said = self.typed("run", "--no-model", "--lake", str(self.lake_at), *own, *arguments)
        assert said.code == 0, said.all
        return said.out

    def sessions(self) -> list[Session]:
        return list(sessions_of_lake(self.lake))


@pytest.fixture
def machine(demo: Demo, tmp_path: Path) -> Machine:
    """A copy of the machine on which the demo was run."""
    shutil.copytree(demo.home.path, tmp_path / "machine")
    return Machine(tmp_path / "machine", tmp_path / "machine/.debrief/demo")


def needles_of(sessions: Iterable[Session], *ids: str) -> set[str]:
    """The sentences that some sessions alone say, and their ids."""
    own = sentences_of_some(sessions, ids)
    assert len(own) > 2 * len(ids)
    return own | {letters(one) for one in ids}


def answers_in(machine: Machine) -> tuple[int, set[str]]:
    """How many answers of models are kept, and which are about the session that is forgotten."""
    state = State(machine.path / ".debrief/cache/answers.sqlite")
    try:
        return state.size().answers, set(state.about({CHOSEN}))
    finally:
        state.close()


def quoting(machine: Machine, session: Session) -> str:
    """Leave words of a session in every place where such may be; return some of them."""
    words = next(turn.prompt for turn in session.turns if len(letters(turn.prompt)) > 60)
    home, lake = machine.path / ".debrief", machine.lake
    give_label(lake, home, label_of(session.id, "success", "bad", words, "ann"))
    Index(lake, home / "view").refresh()
    with (home / "logs/runs.log").open("a") as log:
        log.write(f"failed: {session.id}: gave no usable answer\nnever mind\n")
        log.write(f"said: {words}\n")
    state = State(home / "cache/answers.sqlite")
    model = LanguageModel("openai/x", api_key="k", cache=state)
    with asking_about(session.id):
        model.remember("about it", Answer(text="It went badly, and nothing is quoted."))
    model.remember("old, and quotes", Answer(text=msgspec.json.encode({"why": words}).decode()))
    model.remember("old, of another", Answer(text="All is well."))
    state.close()
    settings = load_settings({"DEBRIEF_HOME": str(home), "DEBRIEF_LAKE": str(machine.lake_at)})
    with open_instance(settings) as instance:
        # As an earlier version showed sessions.
        instance.report_runless_asset_event(dg.AssetMaterialization("weekly_report"))

        @dg.asset(name="fingerprint_leaderboard")
        def shown() -> dg.MaterializeResult[None]:
            return dg.MaterializeResult(metadata={"sessions": dg.MetadataValue.md(f"| {words} |")})

        dg.materialize([shown], instance=instance)
    return words


def test_after_a_session_was_forgotten_no_file_holds_a_sentence_of_it(
    machine: Machine, tmp_path: Path
) -> None:
    sessions = machine.sessions()
    session = next(session for session in sessions if session.id == CHOSEN)
    needles = needles_of(sessions, CHOSEN)
    for form, *more in (("messages", "--parquet"), ("openai",), ("atif",)):
        to = machine.path / "exports" / form
        said = machine.typed(
            "export", "--to", str(to), "--format", form, "--lake", str(machine.lake_at), *more
        )
        assert said.code == 0, said.all
    quoting(machine, session)
    before = found_in(machine.everything, needles)
    places = {Path(name).parts[0:3] for name in before}
    assert len(places) > 5  # what finds nothing afterwards finds it now
    for part in ("exports/openai", "cache/answers", ".dagster/event_log", "/view/", "logs/runs"):
        assert any(part in name for name in before), part

    every, own = answers_in(machine)
    assert own
    there = files_below(machine.lake_at)
    shown = machine.forget(CHOSEN, "--dry-run")
    assert "To be forgotten: 1 session: " + CHOSEN in shown
    assert files_below(machine.lake_at) == there

    receipt = machine.forget(CHOSEN[:8], "--yes")
    assert found_in(machine.everything, needles) == {}
    for line in (
        *("sessions: raw_sessions", "training sets: training", "pages' index: ", "labels: labels"),
        *("Dagster: runs", "answers: ", "logs: ", "exports: ", "lake's tables: session_scores"),
    ):
        assert line in receipt
    assert f"{CHOSEN}.jsonl" in receipt.partition("What remains:")[2]
    assert "1 answers of models in" in receipt
    assert {session.id for session in machine.sessions()} == {
        session.id for session in sessions
    } - {CHOSEN}
    assert "never mind" in (machine.path / ".debrief/logs/runs.log").read_text()
    assert answers_in(machine) == (every - len(own) - 1, set()), "one that quotes it goes too"
    for form in ("messages", "openai"):
        left = machine.path / "exports" / form
        assert len(exported_files(left)) > 3
    assert not list((machine.path / "exports/atif").glob(f"{CHOSEN}*"))
    assert len(list((machine.path / "exports/atif").glob("[!.]*.json"))) == len(sessions) - 1

    summary = machine.run()
    assert "35 sessions in 5 weeks" in summary
    made = [row.samples for row in machine.lake.rows(INDEX, TrainingSetRow) if row.samples]
    assert f"{sum(made)} samples in {len(made)} sets" in summary
    Index(machine.lake, machine.path / ".debrief/view").refresh()
    assert found_in(machine.everything, needles) == {}
    for again in (CHOSEN, CHOSEN[:8]):
        assert "Nothing of it is in any place" in machine.forget(again, "--yes")


def test_what_is_left_of_training_sets_can_be_exported_at_once(machine: Machine) -> None:
    lake, to = machine.lake, machine.path / "out"
    before = [row.session_id for row in lake.rows(LINES, LineRow)]
    left = [session for session in before if session.partition("/")[0] not in (CHOSEN, MINED)]
    assert left
    machine.forget(CHOSEN, MINED, "--yes")
    rows = list(lake.rows(INDEX, TrainingSetRow))
    assert sum(row.samples for row in rows) == len(left)
    assert sum(row.considered for row in rows) == 34
    said = machine.typed("export", "--to", str(to), "--lake", str(machine.lake_at))
    assert said.code == 0, said.all
    lines = [line for file in to.rglob("*.jsonl") for line in file.read_bytes().splitlines()]
    assert len(lines) == len(left)
    stored = lake.names("training", ".jsonl")
    assert not [
        problem
        for name in stored
        for line in (lake.read_bytes(name) or b"").splitlines()
        for problem in validate_line(line)
    ]


def test_all_of_a_person_goes_with_the_labels_that_the_person_gave(machine: Machine) -> None:
    sessions = machine.sessions()
    home = machine.path / ".debrief"
    label = label_of(sessions[0].id, "success", "bad", "sam's own words on it", "sam")
    give_label(machine.lake, home, label)
    csv = machine.path / "labels.csv"
    csv.write_text(f"session_id,name,value,rater\n{sessions[1].id},success,1,sam\n")
    needles = needles_of(sessions, *(session.id for session in sessions))
    receipt = machine.forget("--person", "sam", "--yes", DEBRIEF_LABELS=str(csv))
    assert "Forgotten: 36 sessions: " in receipt
    assert "; the labels of sam" in receipt
    assert f"1 lines of {csv}" in receipt
    csv.unlink()
    assert machine.sessions() == []
    assert list(all_labels(machine.lake)) == []
    assert found_in(machine.everything, needles | {letters("sam's own words on it")}) == {}
    assert "has no session and no label" not in machine.forget("--person", "sam", "--yes")


LONG_AGO = datetime(2026, 10, 19, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "is_meant", "count"),
    [
        (("--repository", "parcel-api"), lambda one: one.repository == "parcel-api", 10),
        (("--before", "2026-10-19"), lambda one: one.ended < LONG_AGO, 13),
    ],
)
def test_a_repositorys_sessions_or_old_ones_are_forgotten_together(
    machine: Machine,
    asked: tuple[str, str],
    is_meant: Callable[[Session], bool],
    count: int,
) -> None:
    sessions = machine.sessions()
    gone = {session.id for session in sessions if is_meant(session)}
    assert len(gone) == count
    machine.forget(*asked, "--yes")
    assert {session.id for session in machine.sessions()} == {
        session.id for session in sessions
    } - gone
    assert found_in(machine.everything, needles_of(sessions, *gone)) == {}
    assert only_line(machine.typed("forget", *asked, "--yes", "--lake", str(machine.lake_at)))


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(("0000dead-0000",), id="an id"),
        pytest.param(("--person", "nobody"), id="a person"),
        pytest.param(("--repository", "nothing"), id="a repository"),
        pytest.param(("--before", "2020-01-01"), id="a day"),
        pytest.param((), id="nothing at all"),
        pytest.param((CHOSEN, "--person", "sam"), id="two things at once"),
    ],
)
def test_what_is_not_known_ends_in_one_line(demo: Demo, asked: tuple[str, ...]) -> None:
    line = only_line(demo.home.typed("forget", *asked, "--lake", demo.lake.url, "--yes"))
    assert line.startswith("debrief: ")


def test_nothing_happens_unless_somebody_agrees_or_while_a_run_is_under_way(
    machine: Machine,
) -> None:
    before = {path: path.read_bytes() for path in machine.lake_at.glob("*/*.zst")}
    said = machine.typed("forget", CHOSEN, "--lake", str(machine.lake_at))
    assert "Forget them? [y/N]" in said.all
    settings = load_settings(
        {"DEBRIEF_HOME": str(machine.path / ".debrief"), "DEBRIEF_LAKE": str(machine.lake_at)}
    )
    with open_instance(settings) as instance:
        run = instance.create_run_for_job(prune_runs, status=dg.DagsterRunStatus.STARTED)
        said = machine.typed("forget", CHOSEN, "--yes", "--lake", str(machine.lake_at))
        assert f"run {run.run_id[:8]}: is under way" in only_line(said)
    assert before == {path: path.read_bytes() for path in machine.lake_at.glob("*/*.zst")}


KILLED_AT = """
import os, signal, sys

import pipelines.forgetting
from pipelines.command import main

places, sys.argv[1:] = sys.argv[1].split(), sys.argv[2:]
for place in places:
    if process := os.fork():
        print(place, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
        continue

    def kill(event, arguments):
        if event in ("os.rename", "os.remove") and f"/{place}/" in str(arguments[event == "os.rename"]):
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(kill)
    main()
    sys.exit()
"""
"""The command in a process for each of some folders of the lake, killed when it would change the
first file there. What it imports is imported once."""


def test_killed_half_way_the_same_command_finishes(machine: Machine) -> None:
    sessions = machine.sessions()
    needles = needles_of(
        sessions, *(session.id for session in sessions if session.repository == "meter-etl")
    )
    asked = ("forget", "--repository", "meter-etl", "--yes", "--lake", str(machine.lake_at))
    places = (TABLE, "training", "session_scores", "raw_sessions")
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT, " ".join(places), *asked],
        env=machine.environment(DEBRIEF_LANGFUSE="off"),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    killed = [line for line in done.stdout.splitlines() if line.endswith(str(-signal.SIGKILL))]
    assert killed == [f"{place} {-signal.SIGKILL}" for place in places], done
    machine.forget("--repository", "meter-etl", "--yes")
    assert found_in(machine.everything, needles) == {}
    assert len(machine.sessions()) == 20


@pytest.fixture
def own(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "own", tmp_path / "own/lake")


def told(folder: Path, name: str, words: str, session: str, day: int = 5) -> Log:
    log = Log(words, session=session, started=datetime(2026, 1, day, 9, tzinfo=UTC))
    log.says(f"I looked into this: {words.lower()} It is mended, and the tests are green now.")
    log.user(f"Thanks. And what else is there to be said of {name}?")
    log.says("Nothing else.")
    log.write(folder / f"{session}.jsonl")
    return log


FIRST = "Please find out why the harbour crane index loses its newest entries at night."
SECOND = "The invoice for lighthouse keepers counts every lamp twice, which is too many."
ONE, TWO, COPY = (f"0a1b2c3d-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))


def test_neither_a_copy_nor_a_resumption_nor_a_fork_brings_it_back(own: Machine) -> None:
    there = own.path / "transcripts"
    log = told(there, "cranes", FIRST, ONE)
    told(there, "lamps", SECOND, TWO)
    # Resumed under another id: it begins with the same records.
    resumed = Log(session=COPY)
    resumed.records = [{**record, "sessionId": COPY} for record in log.records]
    resumed.last = log.last
    resumed.user("One more thing: how many entries of the harbour crane index were lost so far?")
    resumed.write(there / f"{COPY}.jsonl")
    own.run("--sessions", str(there))
    needles = needles_of(own.sessions(), ONE)
    own.forget(ONE, "--yes")
    (own.path / "logs").mkdir()
    later = Log(session="0a1b2c3d-0000-4000-8000-000000000009")
    later.records = [{**record, "sessionId": later.session} for record in log.records]
    later.write(there / "elsewhere" / f"{later.session}.jsonl")
    own.run("--sessions", str(there))
    assert [session.id for session in own.sessions()] == [TWO]
    shutil.rmtree(there)
    assert found_in(own.everything, needles) == {}


def test_a_fork_that_is_a_session_of_its_own_goes_with_it(own: Machine) -> None:
    there = own.path / "transcripts"
    log = told(there, "cranes", FIRST, ONE)
    told(there, "lamps", SECOND, TWO)
    fork = Log(session=COPY)
    # A tool that gives copied records new ids, and keeps their times.
    fork.records = [
        {**record, "sessionId": COPY, "uuid": f"f{record['uuid'][1:]}", "parentUuid": None}
        for record in log.records
    ]
    fork.user("Now try it the other way round, with the harbour crane index kept in memory.")
    fork.write(there / f"{COPY}.jsonl")
    own.run("--sessions", str(there))
    assert {session.id for session in own.sessions()} == {ONE, TWO, COPY}
    receipt = own.forget(ONE, "--yes")
    assert "of these, 1 are copies or forks" in receipt
    assert [session.id for session in own.sessions()] == [TWO]


def test_every_night_sessions_go_that_are_older_than_is_wanted(
    own: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = own.path / "transcripts"
    told(there, "cranes", FIRST, ONE, day=5)
    today = Log(SECOND, session=TWO, started=datetime.now(UTC))
    today.says("Mended.")
    today.write(there / f"{TWO}.jsonl")
    own.run("--sessions", str(there))
    environment = {
        "HOME": str(own.path),
        "DEBRIEF_HOME": str(own.path / ".debrief"),
        "DEBRIEF_LAKE": str(own.lake_at),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with open_instance(load_settings()) as instance:
        assert prune_runs.execute_in_process(instance=instance).success
        assert len(own.sessions()) == 2
        monkeypatch.setenv("DEBRIEF_KEEP_SESSIONS_DAYS", "30")
        assert prune_runs.execute_in_process(instance=instance).success
        assert [session.id for session in own.sessions()] == [TWO]
        assert prune_runs.execute_in_process(instance=instance).success
    own.run("--sessions", str(there))
    assert [session.id for session in own.sessions()] == [TWO]


DAYS = dg.StaticPartitionsDefinition(["monday", "tuesday"])


@dg.asset(partitions_def=DAYS)
def counted() -> dg.MaterializeResult[None]:
    return dg.MaterializeResult(
        metadata={"dagster/partition_row_count": 3, "worst": FIRST, "cost_usd": 1.0},
        data_version=dg.DataVersion("abc"),
    )


@dg.asset
def lonely() -> None:
    """An asset whose check names a session that failed."""


@dg.asset_check(asset=lonely)
def all_well() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=False, metadata={"failed": f"| {ONE} | no answer |"})


def test_what_dagster_knows_of_partitions_and_other_runs_stays(own: Machine) -> None:
    there = own.path / "transcripts"
    told(there, "cranes", FIRST, ONE)
    own.run("--sessions", str(there))
    settings = load_settings({**own.environment(), "DEBRIEF_LAKE": str(own.lake_at)})
    with open_instance(settings) as instance:
        for day in DAYS.get_partition_keys():
            dg.materialize([counted], partition_key=day, instance=instance)
        dg.materialize([lonely, all_well], instance=instance)
        runs = instance.get_runs_count()
        weeks = instance.get_materialized_partitions(dg.AssetKey("raw_sessions"))
    assert weeks
    receipt = own.forget(ONE, "--yes")
    assert re.search(r"Dagster: runs +3 runs", receipt), receipt
    with open_instance(settings) as instance:
        assert instance.get_runs_count() == runs - 3
        assert instance.get_materialized_partitions(counted.key) == {"monday", "tuesday"}
        assert instance.get_materialized_partitions(dg.AssetKey("raw_sessions")) == weeks
        page = dg.AssetRecordsFilter(counted.key, asset_partitions=["monday"])
        (record,) = instance.fetch_materializations(page, limit=5).records
        assert record.asset_materialization is not None
        shown = {name: value.value for name, value in record.asset_materialization.metadata.items()}
        assert shown == {"dagster/partition_row_count": 3}
        assert record.asset_materialization.tags is not None
        assert record.asset_materialization.tags["dagster/data_version"] == "abc"
        assert instance.get_latest_materialization_event(lonely.key) is not None
    storage = own.lake_at / ".dagster"
    assert found_in([storage], {letters(FIRST), letters(ONE)}) == {}


def test_a_teams_database_holds_nothing_of_it_either(own: Machine, postgres_url: str) -> None:
    there = own.path / "transcripts"
    told(there, "cranes", FIRST, ONE)
    told(there, "lamps", SECOND, TWO)
    team = {"DATABASE_URL": postgres_url, "DAGSTER_DATABASE_URL": in_dagster_schema(postgres_url)}
    make_schema(team["DAGSTER_DATABASE_URL"])
    lake = ("--lake", str(own.lake_at))
    said = own.typed("run", "--no-model", "--sessions", str(there), *lake, **team)
    assert said.code == 0, said.all

    def dumped() -> str:
        dump = [str(programs_folder() / "pg_dump"), postgres_url]
        return subprocess.run(dump, check=True, capture_output=True, text=True).stdout

    state = State(postgres_url)
    state.put("k", FIRST.encode())
    state.close()

    @dg.asset(name="weekly_report")
    def shown() -> dg.MaterializeResult[None]:
        return dg.MaterializeResult(metadata={"worst": FIRST})

    settings = load_settings({**own.environment(**team), "DEBRIEF_LAKE": str(own.lake_at)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_DATABASE_URL", team["DAGSTER_DATABASE_URL"])
        with open_instance(settings) as instance:
            dg.materialize([shown], instance=instance)
    assert dumped().count(FIRST) >= 2
    said = own.typed("forget", ONE, "--yes", *lake, **team)
    assert said.code == 0, said.all
    assert FIRST not in dumped()
    assert ONE not in dumped()
    again = own.typed("run", "--no-model", "--sessions", str(there), *lake, **team)
    assert again.code == 0, again.all
    assert [session.id for session in own.sessions()] == [TWO]


def test_a_lake_that_forgot_under_another_key_reads_nothing_in(own: Machine) -> None:
    there = own.path / "transcripts"
    told(there, "cranes", FIRST, ONE)
    own.run("--sessions", str(there))
    own.forget(ONE, "--yes")
    (own.path / ".debrief/redaction.key").write_bytes(os.urandom(32))
    said = own.typed("run", "--no-model", "--lake", str(own.lake_at), "--sessions", str(there))
    assert "written under another redaction key" in said.err
    assert own.sessions() == []


def test_every_table_of_a_lake_is_listed_and_a_tombstone_holds_no_id(machine: Machine) -> None:
    machine.forget(CHOSEN, "--yes")
    lake = machine.lake
    tables = {name.partition("/")[0] for name in lake.names(suffix=".zst")}
    assert tables <= TABLES.keys()
    (row, *_) = lake.rows(TABLE, Tombstone)
    assert len(row.mark) == 64
    key = (machine.path / ".debrief/redaction.key").read_bytes()
    assert Forgotten.of(lake, Redactor(key)).session(CHOSEN)
    assert not Forgotten.of(lake, Redactor(key)).session(MINED)
    assert CHOSEN not in {entry.session_id for entry in lake.rows("scan", ScanEntry)}


def test_what_an_earlier_version_left_goes_too(machine: Machine) -> None:
    class Former(msgspec.Struct):
        session: str
        said: str

    session = next(session for session in machine.sessions() if session.id == CHOSEN)
    lake, words = machine.lake, session.turns[0].prompt
    lake.write("session_scores", "2025-01-06", [Former(CHOSEN, words)], Former)
    lake.write("session_scores", "2025-01-13", [Former(MINED, "Well done.")], Former)
    sets = {name: lake.read_bytes(name) or b"" for name in lake.names("training", ".jsonl")}
    (theirs,) = [name for name, data in sets.items() if CHOSEN.encode() in data]
    name = theirs.replace("training/", "training/former/")
    lake.write_bytes(name, sets[theirs])
    lake.write_bytes(name.replace(".jsonl", ".txt"), words.encode())
    lake.write(INDEX, "former/b1-e1", [Former(CHOSEN, "")], Former)
    lake.write(INDEX, "former/b2-e1", [Former(MINED, "")], Former)
    needles = needles_of(machine.sessions(), CHOSEN)
    machine.forget(CHOSEN, "--yes")
    assert found_in(machine.everything, needles) == {}
    assert "2025-01-13" in lake.partitions("session_scores")
    assert [key for key in lake.partitions(INDEX) if "former" in key] == ["former/b2-e1"]
    assert len((lake.read_bytes(name) or b"").splitlines()) == len(
        (lake.read_bytes(theirs) or b"").splitlines()
    )


def test_a_table_that_nobody_listed_goes_when_it_holds_words(machine: Machine) -> None:
    class Stray(msgspec.Struct):
        text: str

    session = next(session for session in machine.sessions() if session.id == CHOSEN)
    machine.lake.write("stray", "theirs", [Stray(session.turns[0].prompt)], Stray)
    machine.lake.write("stray", "others", [Stray("Nothing of it.")], Stray)
    assert "lake's files: stray/theirs.jsonl.zst" in machine.forget(CHOSEN, "--yes")
    assert machine.lake.partitions("stray") == ["others"]


SHARED = Path(__file__).parents[3] / "shared/sessions"


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="no sessions beside the checkout")
def test_of_real_sessions_nothing_is_left_either(own: Machine) -> None:
    own.run("--sessions", str(SHARED))
    sessions = own.sessions()
    few = {session.id for session in sessions if session.repository == "spotter"}
    assert few
    theirs = sorted(sentences_of_some(sessions, few))[::20]
    assert len(found_in([own.lake_at], theirs[:1])) >= 1
    own.forget("--repository", "spotter", "--yes")
    own.run("--sessions", str(SHARED))
    assert {session.id for session in own.sessions()} == {session.id for session in sessions} - few
    assert found_in(own.everything, theirs) == {}
    own.forget("--before", "2100-01-01", "--yes")
    everything = {sentence for session in sessions for sentence in sentences(session)}
    assert found_in(own.everything, sorted(everything)[::20]) == {}
