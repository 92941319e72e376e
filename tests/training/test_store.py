from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.outcomes.store import SUCCESS, Label, Labels, put_labels
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Intervention, Session, Subagent
from debrief.sessions.readers.values import declared_tools
from debrief.signals.schema import TABLE as SIGNALS
from debrief.signals.schema import SessionSignals
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow, SubagentPrompt
from debrief.training.model import LINES, Exclusion, LineRow, training_path
from debrief.training.options import TrainingOptions
from debrief.training.selection import (
    NO_CHANGE,
    NO_VALIDATION,
    NOT_REVIEWED,
    SUSPECTED,
    UNSURE,
    observed_pairs,
)
from debrief.training.splits import BY_WEEK
from debrief.training.store import store_training_set
from tests.training.lakes import TASK, add, lake_of, stored
from tests.training.scenario import (
    FINGERPRINT,
    MONDAY,
    call,
    judgement,
    metadata,
    said,
    says,
    scores,
    session,
    signals,
    text,
    turn,
)

KEY = "AKIA" + "Q7ZK4MNB2XVH6TRD"


def work(id: str, week: int = 0, said: str = "", **fields: Any) -> Session:
    messages = (says(text(20), call(arguments={"command": text(8)})), says(said or text(120)))
    return session(id, turn(text(15), *messages), started=MONDAY + timedelta(weeks=week), **fields)


def team(count: int = 8) -> list[Session]:
    return [work(f"s{n:02d}", n % 5, repository=f"repo{n % 3}") for n in range(count)]


def lines(lake: Lake, task: str = TASK) -> list[dict[str, Any]]:
    data = lake.read_bytes(training_path(task, FINGERPRINT)) or b""
    return [json.loads(line) for line in data.splitlines()]


def reasons(made: Any) -> dict[Exclusion, tuple[str, ...]]:
    return {Exclusion(row.kind, row.detail): row.sessions for row in made.row.left_out}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a stored training set, for copies."""
    folder = tmp_path_factory.mktemp("made")
    assert stored(lake_of(folder, team())).changed
    return folder


@pytest.fixture
def lake(made: Path, tmp_path: Path) -> Lake:
    return Lake(str(shutil.copytree(made, tmp_path, dirs_exist_ok=True)))


def test_a_second_time_nothing_is_written(lake: Lake, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert not stored(lake).changed
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()} == before


def test_after_a_change_the_file_is_what_a_new_lake_would_hold(tmp_path: Path) -> None:
    everybody = team()
    lake = lake_of(tmp_path / "old", everybody)
    stored(lake)
    better = {everybody[3].id: 0.9}
    more = [*everybody, work("s99", 2)]
    add(lake, more, better)
    stored(lake)
    fresh = lake_of(tmp_path / "new", more, better)
    stored(fresh)
    for name in (training_path(TASK, FINGERPRINT), training_path(TASK, FINGERPRINT, ".card.md")):
        assert lake.read_bytes(name) == fresh.read_bytes(name)


def test_made_again_nothing_is_taken_over_from_before(lake: Lake) -> None:
    first = stored(lake)
    name = f"{TASK}/{FINGERPRINT}"
    rows = list(lake.read(LINES, name, LineRow))
    wrong = [replace(row, tokens=1) for row in rows]
    lake.write(LINES, name, wrong, LineRow, lambda: first.row.lines_digest)
    assert not stored(lake).changed
    assert [row.tokens for row in lake.read(LINES, name, LineRow)] == [1] * len(rows)
    members = observed_pairs(lake)[TASK, FINGERPRINT]
    again = store_training_set(lake, TASK, FINGERPRINT, members, TrainingOptions(), again=True)
    assert (again.changed, again.row) == (False, first.row)
    assert list(lake.read(LINES, name, LineRow)) == rows


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "card"])
def test_a_file_that_somebody_damaged_is_made_again(
    lake: Lake, tmp_path: Path, damage: str
) -> None:
    name = training_path(TASK, FINGERPRINT, ".card.md" if damage == "card" else ".jsonl")
    path = tmp_path / name
    whole = path.read_bytes()
    damaged = whole.replace(b"word", b"wird", 1) if damage == "changed" else whole[:900]
    path.unlink() if damage == "gone" else path.write_bytes(damaged)
    stored(lake)
    assert path.read_bytes() == whole


def test_near_duplicates_and_forks_in_another_training_set_are_not_on_the_other_side(
    tmp_path: Path,
) -> None:
    sides = [BY_WEEK.side_of("repo0", MONDAY + timedelta(weeks=week)) for week in range(60)]
    there = next(week for week, side in enumerate(sides) if side != sides[0])
    story = text(200)
    origin = work("origin", 0, story, repository="repo0")
    fork = work("fork", there, story, repository="repo0")
    copy = replace(origin, id="copy", started=fork.started, task="other")
    lake = lake_of(tmp_path, [origin, fork, copy])
    assert reasons(stored(lake)) == reasons(stored(lake, "other")) == {}
    side = BY_WEEK.side_of(origin.repository, origin.started)
    for task, names in ((TASK, {"origin", "fork"}), ("other", {"copy"})):
        rows = list(lake.read(LINES, f"{task}/{FINGERPRINT}", LineRow))
        assert {row.session_id for row in rows} == names
        assert {row.split for row in rows} == {side}


def test_sessions_with_words_for_a_judge_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [work("s1")])
    add(lake, [work("s1")], injection_suspected=True)
    assert reasons(stored(lake)) == {SUSPECTED: ("s1",)}
    assert reasons(stored(lake, allow_suspected_injections=True)) == {}
    add(lake, [work("s1")])
    assert reasons(stored(lake)) == {}
    row = replace(judgement(work("s1")), injection_suspected=True)
    lake.write("judge_evaluations", week_of(row.started), [row], JudgeEvaluation)
    assert reasons(stored(lake)) == {SUSPECTED: ("s1",)}
    assert reasons(stored(lake, allow_suspected_injections=True)) == {}
    assert lines(lake)[0]["metadata"]["injection_suspected"] is True


UNREVIEWED = f"{FINGERPRINT.partition('-')[0]}-unknown"


def test_without_a_model_signals_choose_and_every_line_says_so(tmp_path: Path) -> None:
    lake, sessions = Lake(str(tmp_path)), [work(name) for name in ("s1", "s2", "s3")]
    add(lake, sessions, reviewed=False)
    seen = [signals(sessions[0]), signals(sessions[1], "correction")]
    lake.write(SIGNALS, week_of(MONDAY), seen, SessionSignals)
    label = Label(session_id="s1", name=SUCCESS, value="yes", source="view", rater="ann")
    made = stored(lake, TASK, UNREVIEWED, near_duplicates="keep")
    assert reasons(made) == {
        Exclusion("signals", "correction"): ("s2",),
        Exclusion("signals", "no signals yet"): ("s3",),
    }
    assert (made.row.samples, made.row.unreviewed) == (1, 1)
    assert "1 sample of sessions that nobody reviewed" in made.card
    (line,) = unreviewed_lines(lake)
    assert (line["reviewed"], line["verdict"], line["verdict_basis"]) == (False, "", "")

    put_labels(lake, Labels(labels=(label,)))
    labelled = stored(lake, TASK, UNREVIEWED, near_duplicates="keep")
    assert (labelled.row.samples, labelled.row.unreviewed) == (1, 0)
    (line,) = unreviewed_lines(lake)
    assert (line["reviewed"], line["verdict_basis"]) == (True, "person")

    left = stored(lake, TASK, UNREVIEWED, near_duplicates="keep", unreviewed=False)
    assert reasons(left) == {NOT_REVIEWED: ("s2", "s3")}


def unreviewed_lines(lake: Lake) -> list[dict[str, Any]]:
    data = lake.read_bytes(training_path(TASK, UNREVIEWED)) or b""
    return [json.loads(line)["metadata"] for line in data.splitlines()]


def test_once_a_model_has_reviewed_a_session_the_others_wait_for_a_verdict(lake: Lake) -> None:
    week = week_of(MONDAY)
    rows = list(lake.read("session_scores", week, SessionScores))
    lake.write("session_scores", week, rows[1:], SessionScores)
    gone = rows[0].session_id
    assert reasons(stored(lake)) == {NOT_REVIEWED: (gone,)}
    assert reasons(stored(lake, unreviewed=True)) == {}


def test_a_card_quotes_the_certificates_of_its_reviewers_alone(lake: Lake) -> None:
    members = observed_pairs(lake)[TASK, FINGERPRINT]
    said = {"judge-1": "judge-1 is certified.", "judge-2": "judge-2 is not."}
    made = store_training_set(
        lake, TASK, FINGERPRINT, members, TrainingOptions(), certificates=said
    )
    assert "judge-1 is certified." in made.card
    assert "judge-2" not in made.card


def test_what_is_not_complete_is_counted_for_its_verdict(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, team(3))
    add(lake, team(3), verdict=said("partial"))
    made = stored(lake)
    assert reasons(made) == {Exclusion("verdict", "partial"): ("s00", "s01", "s02")}
    assert (made.row.short, made.row.samples) == (3, 0)
    widened = stored(lake, verdicts=("partial",))
    assert (widened.row.short, widened.row.samples) == (0, 3)
    said_by = "by verdict: 3 partial, given by an LLM review (3); overall quality 0.70 to 0.70"
    assert said_by in widened.card


def test_only_ready_sessions_when_asked_for(tmp_path: Path) -> None:
    tested = call(arguments={"command": "pytest -q"})
    ready = session("ready", turn(text(20), says("", tested), says(text(30))), lines_added=3)
    lake = lake_of(
        tmp_path,
        [
            ready,
            session("untested", turn(text(20), says(text(30))), lines_added=3),
            session("unchanged", turn(text(20), says("", tested), says(text(30)))),
            replace(ready, id="unsure", turns=work("x").turns + ready.turns, unsure_redactions=1),
        ],
    )
    assert reasons(stored(lake, status="ready")) == {
        UNSURE: ("unsure",),
        NO_VALIDATION: ("untested",),
        NO_CHANGE: ("unchanged",),
    }
    assert [row["metadata"]["status"] for row in lines(lake)] == ["ready"]
    stored(lake, status="ready", ready_without_change=True)
    assert {row["metadata"]["session_id"] for row in lines(lake)} == {"ready", "unchanged"}


def tool(name: str, description: str, *arguments: str) -> dict[str, Any]:
    properties = {argument: {"type": "string"} for argument in arguments}
    parameters = {"type": "object", "properties": properties, "required": list(arguments)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


PLACES = [
    *("prompt", "command", "answer", "argument", "argument's name", "result", "file", "branch"),
    *("model", "id", "description of a tool", "system", "licence", "prompts", "rationale"),
]


@pytest.mark.parametrize("place", PLACES)
def test_a_planted_secret_is_in_no_file(tmp_path: Path, place: str) -> None:
    texts = dict.fromkeys(PLACES, "words") | {place: f"export AWS_ACCESS_KEY_ID={KEY}"}
    arguments = {"command": texts["argument"], texts["argument's name"]: texts["file"]}
    tools = [tool("Bash", "Run.", *arguments), tool("Read", texts["description of a tool"])]
    leaky = session(
        texts["id"],
        turn(
            texts["prompt"] if place != "command" else "",
            says("", call("Bash", arguments, texts["result"])),
            says(texts["answer"]),
            interventions=(Intervention(kind="slash_command", text=texts["command"]),),
        ),
        branch=texts["branch"],
        models=(texts["model"],),
        declared_tools=declared_tools(tools),
    )
    lake = lake_of(tmp_path, [leaky, *team(1)])
    week = week_of(leaky.started)
    (verdict,) = scores(leaky).dimension_scores[:1]
    verdict = replace(verdict, rationale=texts["rationale"])
    prompts = (SubagentPrompt("helper", texts["prompts"]),)
    changes: list[tuple[str, Any, dict[str, Any]]] = [
        ("session_scores", SessionScores, {"dimension_scores": (verdict,)}),
        ("session_metadata", SessionMetadataRow, {"licence": texts["licence"]}),
        ("prompt_snapshots", PromptSnapshotRow, {"main": texts["system"], "subagents": prompts}),
    ]
    for table, kind, fields in changes:
        rows = [
            replace(row, **fields) if row.session_id == leaky.id else row
            for row in lake.read(table, week, kind)
        ]
        lake.write(table, week, rows, kind)
    made = stored(lake)
    assert reasons(made) == {
        Exclusion("no_line", "the last gate still found a secret"): (leaky.id,)
    }
    written = b"".join(path.read_bytes() for path in (tmp_path / "training").rglob("*.*"))
    assert KEY.encode() not in written


def test_a_secret_in_a_subagents_line_leaves_out_that_line_alone(tmp_path: Path) -> None:
    agents = [
        Subagent(id=name, prompt="Look.", messages=(says(f"Seen. {text}"),), place="file")
        for name, text in (("clean", ""), ("leaky", f"export AWS_ACCESS_KEY_ID={KEY}"))
    ]
    made = stored(lake_of(tmp_path, [session("s1", subagents=tuple(agents))]))
    assert [row["metadata"]["session_id"] for row in lines(Lake(str(tmp_path)))] == [
        "s1",
        "s1/clean",
    ]
    assert (made.row.sessions, reasons(made)) == (1, {})
    assert "| the last gate still found a secret | 1 |" in made.card
    assert KEY not in made.card


def test_unknown_fingerprints_are_a_pair_like_any_other(tmp_path: Path) -> None:
    one = work("s1")
    lake = lake_of(tmp_path, [one])
    week = week_of(one.started)
    unknown = metadata(one, prompt_fingerprint="unknown", prompt_digest="")
    lake.write("session_metadata", week, [unknown], SessionMetadataRow)
    made = stored(lake, TASK, f"unknown-{FINGERPRINT.rpartition('-')[2]}")
    assert made.row.samples == 1
    assert "(`unknown`)" in made.card


def test_a_run_killed_at_ten_random_moments_and_resumed_gives_the_same_bytes(
    tmp_path: Path,
) -> None:
    everybody = team(16)
    whole = lake_of(tmp_path / "whole", everybody)
    started = time.perf_counter()
    stored(whole)
    took = time.perf_counter() - started
    expected = _files(tmp_path / "whole")
    broken = lake_of(tmp_path / "broken", everybody)
    fork = multiprocessing.get_context("fork")
    moments = random.Random(3)
    for _ in range(10):
        process = fork.Process(target=_store_and_exit, args=(broken,))
        process.start()
        process.join(moments.uniform(0, took))
        process.kill()
        process.join()
        path = tmp_path / "broken" / training_path(TASK, FINGERPRINT)
        if path.exists():
            assert path.read_bytes() == expected[training_path(TASK, FINGERPRINT)]
        if moments.random() < 0.4:
            _forget(tmp_path / "broken")
    stored(broken)
    assert _files(tmp_path / "broken") == expected


def _store_and_exit(lake: Lake) -> None:
    stored(lake)
    os._exit(0)


def _forget(folder: Path) -> None:
    for name in ("training", "training_lines", "training_index", "training_traits"):
        for path in (folder / name).rglob("*"):
            if path.is_file():
                path.unlink()


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted((folder / "training").rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }
