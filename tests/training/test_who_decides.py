"""A lake scored offline and by two models: what each would train on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from debrief.judging.model import JudgeEvaluation
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.outcomes.store import Labels, outcome, put_labels
from debrief.rubrics.contrast import values_of
from debrief.scoring.llm_review import SessionReview, TrainOn
from debrief.scoring.model import SessionScores
from debrief.scoring.precedence import effective_rows
from debrief.scoring.verdict import VerdictName
from debrief.snapshots.fingerprint import comparison_key
from debrief.summary import content_of
from debrief.training.model import training_path
from debrief.view.assessment import read_assessment
from debrief.view.indexed import week_rows
from tests.rubrics.scenario import valued
from tests.training.lakes import TASK, lake_of, stored
from tests.training.scenario import MONDAY, PROMPT, judgement, said, says, scores, session, turn

NAMES = ("checked", "unchecked", "asked", "broken", "failed", "labelled")
SESSIONS = {
    name: session(
        name,
        turn(f"Do the {name} work.", says(f"Did the {name} work in full.")),
        turn(f"And the rest of {name}.", says(f"The rest of {name} too."), number=2),
        repository=name,
    )
    for name in NAMES
}
WEEK = week_of(MONDAY)
OFFLINE: dict[str, VerdictName] = {
    "checked": "complete_verified",
    "unchecked": "complete_unverified",
    "asked": "undetermined",
    "broken": "partial",
    "failed": "failed",
    "labelled": "complete_verified",
}
FIRST: dict[str, VerdictName] = {**OFFLINE, "unchecked": "partial", "asked": "complete_verified"}
SECOND: dict[str, VerdictName] = {**OFFLINE, "broken": "complete_verified", "asked": "failed"}


def scored_by(
    lake: Lake,
    model: str,
    verdicts: Mapping[str, VerdictName],
    readings: Mapping[str, SessionReview] = {},
) -> None:
    """Put a scorer's rows before those of others, as a run does."""
    rows = [
        scores(
            SESSIONS[name],
            model=model,
            scoring_fingerprint=f"of-{model}",
            verdict=said(verdict, basis="check" if model == "offline" else "model"),
            reading=readings.get(name),
        )
        for name, verdict in verdicts.items()
    ]
    judged = [
        judgement(SESSIONS[name], model=model, eval_fingerprint=eval_of(model)) for name in NAMES
    ]
    lake.write(
        "session_scores",
        WEEK,
        [*rows, *lake.read("session_scores", WEEK, SessionScores)],
        SessionScores,
    )
    lake.write(
        "judge_evaluations",
        WEEK,
        [*judged, *lake.read("judge_evaluations", WEEK, JudgeEvaluation)],
        JudgeEvaluation,
    )


def eval_of(model: str) -> str:
    return {"no_model": "0f0f0f0f", "model-a": "0a0a0a0a", "model-b": "0b0b0b0b"}[model]


def trained_on(lake: Lake, model: str) -> set[str]:
    fingerprint = comparison_key(PROMPT, eval_of(model))
    row = stored(lake, fingerprint=fingerprint, near_duplicates="keep").row
    left_out = {id_ for reason in row.left_out for id_ in reason.sessions}
    return set(NAMES) - left_out


def empty(folder: Path) -> Lake:
    lake = lake_of(folder, SESSIONS.values())
    lake.write("session_scores", WEEK, (), SessionScores)
    lake.write("judge_evaluations", WEEK, (), JudgeEvaluation)
    label = outcome("labelled", "person", False, "", "", None)
    put_labels(lake, Labels(labels=(label,)))
    return lake


def test_each_would_train_on_what_its_own_verdicts_say_and_a_persons_label_decides(
    tmp_path: Path,
) -> None:
    lake = empty(tmp_path)
    scored_by(lake, "offline", OFFLINE)
    assert trained_on(lake, "offline") == {"checked", "unchecked", "asked"}
    scored_by(lake, "model-a", FIRST)
    assert trained_on(lake, "model-a") == {"checked", "asked"}
    scored_by(lake, "model-b", SECOND)
    assert trained_on(lake, "model-b") == {"checked", "unchecked", "broken"}
    assert trained_on(lake, "model-a") == {"checked", "asked"}
    assert trained_on(lake, "offline") == {"checked", "unchecked", "broken"}


def test_where_a_model_read_one_session_the_offline_rules_decide_on_the_others(
    tmp_path: Path,
) -> None:
    lake = empty(tmp_path)
    scored_by(lake, "model-a", {"asked": "failed", "broken": "complete_unverified"})
    scored_by(lake, "offline", OFFLINE)
    assert trained_on(lake, "offline") == {"checked", "unchecked", "broken"}


def test_pages_counts_and_rubrics_go_by_the_same_verdict(tmp_path: Path) -> None:
    lake = empty(tmp_path)
    scored_by(lake, "model-a", FIRST)
    scored_by(lake, "offline", OFFLINE)
    shown = {name: columns["verdict"] for name, columns in week_rows(lake, WEEK).items()}
    assert shown == FIRST
    first = read_assessment(lake, WEEK, "asked").main
    assert first is not None
    assert first.model == "model-a"
    assert content_of(lake, [WEEK]).verdicts.known == 6
    rows = effective_rows(lake.rows("session_scores", SessionScores))
    assert values_of(valued(rows), "excellence") == {
        "checked": 1.0, "unchecked": 0.0, "asked": 1.0, "broken": 0.0, "failed": 0.0,
        "labelled": 1.0,
    }  # fmt: skip


def test_what_a_reader_would_not_train_on_is_left_out_in_whole_or_in_part(tmp_path: Path) -> None:
    def reading(train: TrainOn) -> SessionReview:
        return SessionReview(verdict="complete_verified", train=train)

    lake = empty(tmp_path)
    readings = {
        "checked": reading(TrainOn(what="none")),
        "unchecked": reading(TrainOn(what="parts", turns=((2, 2),))),
        "asked": reading(TrainOn(what="all")),
    }
    scored_by(lake, "model-a", dict.fromkeys(NAMES, "complete_verified"), readings)
    assert trained_on(lake, "model-a") == set(NAMES) - {"checked", "labelled"}
    fingerprint = comparison_key(PROMPT, eval_of("model-a"))
    row = stored(lake, fingerprint=fingerprint, near_duplicates="keep").row
    (why,) = [reason.reason for reason in row.left_out if "checked" in reason.sessions]
    assert why == "whoever read it would train on nothing of it"
    data = lake.read_bytes(training_path(TASK, fingerprint))
    assert data is not None
    by_session = {
        line["metadata"]["session_id"]: [
            message.get("weight", 1)
            for message in line["messages"]
            if message["role"] == "assistant"
        ]
        for line in map(json.loads, data.decode().splitlines())
    }
    assert by_session["unchecked"] == [0, 1]
    assert by_session["asked"] == [1, 1]
