"""Records as sessions: found, read once, and what later stages make of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from debrief.cli.sources import scan_stats
from debrief.errors import InputError
from debrief.judging.context import context_from_session
from debrief.lake import Lake
from debrief.recorder.contracts import Record
from debrief.recorder.encoding import encode_record
from debrief.recorder.messages import changes_of
from debrief.recorder.stored import NO_CONTENTS
from debrief.redaction.redactor import Redactor
from debrief.scoring.model import SessionScores
from debrief.sessions.actions import with_actions
from debrief.sessions.model import Session, SessionHead, UnreadTranscript
from debrief.sessions.readers.patches import edits_of_call
from debrief.sessions.readers.recorder import session_of
from debrief.sessions.scanning import Scan
from debrief.sessions.sources import read_week, scan
from debrief.sessions.store import scan_into, store_week
from debrief.signals.extract import session_activity
from debrief.snapshots.captures import Captures
from debrief.snapshots.rows import metadata_row, snapshot_row
from debrief.training.kinship import languages_of, traits_of, was_validated
from debrief.training.model import Exclusion
from debrief.training.options import TrainingOptions
from debrief.training.selection import (
    DRAFT,
    NO_CHANGE,
    NO_VALIDATION,
    NOT_REVIEWED,
    UNSURE,
    Candidate,
    candidate_of,
    reason_against,
)
from tests.recorder.records import BEFORE, as_json, build, without_contents
from tests.sessions.scanned import blank

WEEK = "2026-11-02"
REDACTOR = Redactor(b"k" * 32)


def a_record(**meta: Any) -> Record:
    return build(**{"session_id": uuid4(), **meta})


def write(path: Path, *records: Record, end: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(encode_record(record) + b"\n" for record in records) + end)
    return path


def read(found: Scan) -> tuple[list[Session], list[UnreadTranscript]]:
    rows = [row for week in found.weeks() for row in read_week(found, week)]
    sessions = [row for row in rows if isinstance(row, Session)]
    return sessions, [row for row in rows if isinstance(row, UnreadTranscript)]


def only(record: Record) -> Session:
    return session_of(encode_record(record), "a.record.json")


def test_a_record_is_a_session_with_its_task_and_circumstances() -> None:
    session = only(build(redactions={"count": 3, "unsure": 1, "kinds": ["password"]}))
    assert (session.redactions, session.unsure_redactions) == (3, 1)
    assert (session.source, session.tool, session.task, session.repository) == (
        "recorder",
        "recorder",
        "cart",
        "shop",
    )
    assert (session.branch, session.tool_version) == ("main", "debrief 0.1.0")
    assert session.ended - session.started == timedelta(minutes=42)
    assert [turn.prompt for turn in session.turns] == ["Make the total right."]
    assert session.turns[0].messages[-1].text == "The total is right now."
    assert session.recorded
    assert session.recorded.base_commit == "1" * 40
    assert session.recorded.system == "Work carefully."


def test_messages_have_ids_of_their_turn_and_place_that_no_other_session_has() -> None:
    one, other = only(a_record()), only(a_record())
    ids = [message.id for message in one.turns[0].messages]
    assert ids == [f"{one.id}:1.{number}" for number in range(1, 14, 2)]
    assert not {message.id for message in other.turns[0].messages}.intersection(ids)


def test_commands_have_their_exit_codes_and_calls_their_results() -> None:
    calls = [call for message in only(build()).turns[0].messages for call in message.calls]
    assert [(call.name, call.status, call.exit_code) for call in calls] == [
        ("repo.readFile", "ok", None),
        ("repo.readFile", "ok", None),
        ("repo.readFile", "ok", None),
        ("run_cmd", "failed", 1),
        ("apply_patch", "ok", None),
        ("run_cmd", "ok", 0),
    ]
    assert calls[0].result == BEFORE["README.md"]


def test_a_command_that_was_ended_at_its_time_limit_failed() -> None:
    record = as_json(build())
    record["meta"]["commands"][1]["exitCode"] = None
    session = session_of(json.dumps(record).encode(), "a")
    assert session.turns[0].messages[-2].calls[0].status == "failed"


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n"), max_size=30)


@given(
    st.dictionaries(st.sampled_from("abcdef"), TEXT),
    st.dictionaries(st.sampled_from("abcdef"), TEXT),
)
def test_growth_is_exactly_that_of_the_operations(
    before: dict[str, str], after: dict[str, str]
) -> None:
    whole = {name: text + "\n" for name, text in before.items()}
    record = build(whole, {name: text + "\n" for name, text in after.items()})
    session = only(record)
    changes = changes_of(record)
    assert session.lines_added == sum(change.added for change in changes)
    assert session.lines_removed == sum(change.removed for change in changes)
    edits = [
        (edit.path, edit.added, edit.removed)
        for message in session.turns[0].messages
        for call in message.calls
        for edit in edits_of_call(call)
    ]
    counted = [(c.path, c.added, c.removed) for c in changes if c.added or c.removed]
    assert sorted(edits) == sorted(counted)


def test_a_record_without_contents_is_a_session_that_trains_nothing_and_says_so() -> None:
    session = only(without_contents())
    assert session.recorded
    assert session.recorded.withheld == NO_CONTENTS
    assert session.status == "draft"
    assert (session.lines_added, session.lines_removed) == (6, 3)


def test_what_was_never_verified_stays_a_draft_whatever_the_store_says() -> None:
    unverified = encode_record(build(verified=False))
    assert session_of(unverified, "a", "ready").status == "draft"
    assert session_of(encode_record(build()), "a", "ready").status == "ready"


def test_records_are_found_whatever_kind_of_file_holds_them(tmp_path: Path) -> None:
    record, two, three, four = (a_record() for _ in range(4))
    (tmp_path / "over-many-lines.json").write_text(json.dumps(as_json(four), indent=2))
    write(tmp_path / "one.record.json", record)
    write(tmp_path / "exported.jsonl", two, three, end=b'{"manifest":{"lines":2}}\n')
    sessions, unread = read(scan([tmp_path]))
    assert {session.id for session in sessions} == {
        str(r.meta.session_id) for r in (record, two, three, four)
    }
    assert {session.source for session in sessions} == {"recorder"}
    assert [(row.expected, "counts" in row.reason) for row in unread] == [(True, True)]


def test_a_training_set_is_not_taken_for_records(tmp_path: Path) -> None:
    line = {"messages": [{"role": "user", "content": "hi"}], "tools": [], "metadata": {}}
    (tmp_path / "train.jsonl").write_text(json.dumps(line) + "\n")
    assert read(scan([tmp_path]))[0] == []


def test_a_broken_line_costs_no_other(tmp_path: Path) -> None:
    whole = a_record()
    path = write(tmp_path / "a.record.jsonl", whole)
    path.write_bytes(
        path.read_bytes() + b'{"messages": [{"role": "us\n' + encode_record(a_record())
    )
    sessions, unread = read(scan([tmp_path]))
    assert len(sessions) == 2
    assert ["is no record" in row.reason for row in unread] == [True]


def test_the_same_record_in_two_files_is_one_session(tmp_path: Path) -> None:
    record = a_record()
    write(tmp_path / "a.record.json", record)
    write(tmp_path / "b.jsonl", record, record)
    ((session,), _) = read(scan([tmp_path]))
    assert (session.lines_added, len(session.turns)) == (6, 1)
    assert len(session.transcripts) == 3


def test_unchanged_files_are_not_opened_again_and_a_grown_one_is(tmp_path: Path) -> None:
    path = write(tmp_path / "in" / "a.jsonl", a_record(), a_record())
    write(tmp_path / "in" / "b.record.json", a_record())
    lake = Lake(str(tmp_path / "lake"))
    entries, lines = scan_into(lake, [tmp_path / "in"], REDACTOR).entries, path.read_bytes()
    blank(tmp_path / "in")
    assert scan_into(lake, [tmp_path / "in"], REDACTOR).entries == entries
    write(tmp_path / "in" / "c.json", a_record())
    assert len(scan_into(lake, [tmp_path / "in"], REDACTOR).entries) == 4
    path.write_bytes(lines + encode_record(a_record()) + b"\n")
    assert len(scan_into(lake, [tmp_path / "in"], REDACTOR).entries) == 5


def test_a_file_of_many_records_is_counted_as_one_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", a_record(), a_record(), a_record())
    stats = scan_stats(scan([tmp_path]))["recorder"]
    assert (stats.transcripts, stats.files, stats.bytes) == (3, 1, path.stat().st_size)


def test_a_session_stands_in_the_lake_with_all_that_its_record_tells(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    record = as_json(a_record())
    record["messages"][0]["content"] = f"Use {secret}."
    (tmp_path / "a.record.json").write_text(json.dumps(record))
    lake = Lake(str(tmp_path / "lake"))
    assert not store_week(
        lake, scan_into(lake, [tmp_path / "a.record.json"], REDACTOR), WEEK, REDACTOR
    )
    (session,) = lake.read("raw_sessions", WEEK, Session)
    assert session.recorded
    assert secret not in session.recorded.system
    assert session.redactions == 1
    tools = session.declared_tools or ()
    assert [tool.name for tool in tools] == ["repo.readFile", "apply_patch", "run_cmd"]
    assert all(json.loads(tool.parameters)["required"] for tool in tools)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b'{"messages":[],"tools":[],"meta":{}}', b"\xff\xfe", b"[" * 100_000],
    ids=lambda data: str(data[:9]),
)
def test_what_is_no_record_is_refused_with_the_reason(data: bytes) -> None:
    with pytest.raises(InputError, match="is no record"):
        session_of(data, "a.record.json")


def test_a_patch_that_cannot_be_read_is_told_and_costs_nothing_else() -> None:
    record = as_json(build())
    for message in record["messages"]:
        for call in message.get("tool_calls", ()):
            if call["function"]["name"] == "apply_patch":
                call["function"]["arguments"] = "{"
    session = session_of(json.dumps(record).encode(), "a")
    assert (session.lines_added, len(session.problems)) == (0, 1)


def test_a_patch_that_does_not_fit_the_text_that_was_read_is_told() -> None:
    record = as_json(build())
    assert record["messages"][3]["content"] == BEFORE["README.md"]
    record["messages"][3]["content"] = "another text\n"
    session = session_of(json.dumps(record).encode(), "a")
    assert session.lines_added == only(build()).lines_added
    (problem,) = session.problems
    assert problem.reason.startswith("a patch of README.md that does not fit its text: line 1: ")


def test_sessions_of_one_beginning_are_not_taken_for_copies() -> None:
    first, second = only(a_record()), only(build(session_id=UUID(int=7)))
    ids = [{m.id for turn in s.turns for m in turn.messages} for s in (first, second)]
    assert not ids[0] & ids[1]


def bare(name: str = "operations") -> bytes:
    """A record of another program: no id, no times, no tools, and ``meta`` in snake case."""
    record = as_json(build())
    for message in record["messages"]:
        for call in message.get("tool_calls", ()):
            arguments = json.loads(call["function"]["arguments"])
            if "ops" in arguments:
                call["function"]["arguments"] = json.dumps({name: arguments["ops"]})
                message["content"] = None
    told = {"task_id": "cart", "repo_name": "shop", "base_ref": "a" * 40, "head_ref": "b" * 40}
    return json.dumps({"messages": record["messages"], "meta": told}).encode()


@pytest.mark.parametrize("name", ["ops", "operations"])
def test_a_bare_record_is_a_draft_of_the_day_in_its_files_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "export-2026-11-04.jsonl").write_bytes(bare(name) + b"\n")
    moment = datetime(2026, 11, 4, tzinfo=UTC)
    (session,), unread = read(scan([tmp_path]))
    whole = only(build())
    assert not unread
    assert (session.task, session.repository, session.status) == ("cart", "shop", "draft")
    (problem,) = session.problems
    assert session.started == moment
    assert problem.reason.startswith("no record tells its time")
    assert (session.lines_added, session.lines_removed) == (whole.lines_added, whole.lines_removed)


def test_a_copy_of_a_bare_record_is_the_same_session(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(bare() + b"\n")
    sessions, _ = read(scan([tmp_path]))
    assert len({session.id for session in sessions}) == 1


def test_a_patch_without_operations_is_told() -> None:
    session = session_of(bare("changes"), "a", takes_bare=True)
    assert [problem.reason for problem in session.problems] == [
        "a patch that cannot be read: it has no operations",
        "no record tells its time; it is in the first week",
    ]


ANY, READY = TrainingOptions(), TrainingOptions(status="ready")
UNREVIEWED = TrainingOptions(unreviewed=True)
CHANGED = TrainingOptions(require_change=True)


def session(**meta: Any) -> Session:
    return with_actions(session_of(encode_record(build(**meta)), "r"))


def candidate(
    held_as: Literal["", "draft", "ready"], withheld: str = "", **traits: Any
) -> Candidate:
    read, nothing = session(), Captures(())
    head = SessionHead(**{name: getattr(read, name) for name in SessionHead.__struct_fields__})
    metadata = metadata_row(head, snapshot_row(head, nothing), nothing)
    scores = SessionScores(
        session_id=read.id,
        session_digest=read.digest,
        started=read.started,
        ended=read.ended,
        task=read.task,
        tool=read.tool,
        model="",
        scoring_fingerprint="",
        status="ok",
    )
    made = candidate_of(traits_of(read), metadata, scores)
    traits_of_it = replace(made.traits, **traits)
    return replace(made, held_as=held_as, withheld=withheld, against="", traits=traits_of_it)


DECISIONS = {
    "released": ("ready", {}, READY, None),
    "a draft": ("draft", {}, READY, DRAFT),
    "a draft where any will do": ("draft", {}, UNREVIEWED, None),
    "a draft that nobody reviewed": ("draft", {}, ANY, NOT_REVIEWED),
    "released by another rule": ("ready", {"growth": 0, "validated": False}, READY, None),
    "unknown, nothing changed": ("", {"growth": 0}, READY, NO_CHANGE),
    "unknown, nothing checked": ("", {"validated": False}, READY, NO_VALIDATION),
    "a redaction in doubt": ("ready", {"unsure_redactions": 1}, READY, UNSURE),
    "a change is required": ("ready", {"growth": 0}, CHANGED, NO_CHANGE),
    "nothing to train on": (
        "ready",
        {"withheld": "holds nothing"},
        ANY,
        Exclusion("withheld", "holds nothing"),
    ),
}


@pytest.mark.parametrize(
    ("held_as", "known", "options", "reason"), DECISIONS.values(), ids=DECISIONS
)
def test_what_the_recorder_holds_of_a_session_decides(
    held_as: Literal["", "draft", "ready"],
    known: dict[str, Any],
    options: TrainingOptions,
    reason: Exclusion | None,
) -> None:
    assert reason_against(candidate(held_as, **known), options) == reason


def test_a_line_says_ready_only_where_nothing_is_left_to_do() -> None:
    assert candidate("ready").status == "ready"
    assert candidate("draft").status == "draft"
    assert candidate("").status == "ready"
    assert candidate("ready", unsure_redactions=1).status == "draft"


def test_a_recorded_command_counts_as_the_check_that_it_is() -> None:
    assert was_validated(session())
    assert not was_validated(session(earlier=(), final=((["install"], "done\n"),)))
    checks = session_activity(session()).checks
    assert [(check.tool, check.passed) for check in checks] == [
        ("pnpm lint", False),
        ("pnpm test", True),
    ]


def test_every_file_of_a_patch_is_shown_to_a_judge_as_its_own() -> None:
    shown = context_from_session(session()).git_changes
    assert "4 files changed, 6 lines added, 3 removed." in shown
    assert "+export function" not in shown


def test_languages_are_those_of_all_files_of_a_patch() -> None:
    assert languages_of(session()) == {"TypeScript": 7, "Markdown": 2}


def test_what_is_not_there_comes_back_from_the_lake_as_not_there(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    recorded = session()
    other = replace(recorded, id="other", recorded=UNSET, status=UNSET)
    lake.write("raw_sessions", "w", [other, replace(recorded, status="ready")], Session)
    assert list(lake.read("raw_sessions", "w", Session)) == [
        other,
        replace(recorded, status="ready"),
    ]
    heads = list(lake.read("raw_sessions", "w", SessionHead))
    assert [head.status for head in heads] == [UNSET, "ready"]
