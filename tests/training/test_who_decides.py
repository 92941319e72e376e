"""A lake that two models reviewed: what each would train on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from debrief.judging.model import JudgeEvaluation
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.outcomes.store import Labels, outcome, put_labels
from debrief.outcomes.verdicts import verdicts_in
from debrief.scoring.llm_review import SessionReview, TrainOn
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import VerdictName
from debrief.snapshots.fingerprint import comparison_key
from debrief.training.model import training_path
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
PLAIN: dict[str, VerdictName] = {
    "checked": "complete_verified",
    "unchecked": "complete_unverified",
    "asked": "undetermined",
    "broken": "partial",
    "failed": "failed",
    "labelled": "complete_verified",
}
FIRST: dict[str, VerdictName] = {**PLAIN, "unchecked": "partial", "asked": "complete_verified"}
SECOND: dict[str, VerdictName] = {**PLAIN, "broken": "complete_verified", "asked": "failed"}


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
            verdict=said(verdict, source=model),
            review=readings.get(name),
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
    return {"model-a": "0a0a0a0a", "model-b": "0b0b0b0b"}[model]


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
    scored_by(lake, "model-a", FIRST)
    assert trained_on(lake, "model-a") == {"checked", "asked"}
    scored_by(lake, "model-b", SECOND)
    assert trained_on(lake, "model-b") == {"checked", "unchecked", "broken"}
    assert trained_on(lake, "model-a") == {"checked", "asked"}
    assert verdicts_in(lake)["labelled"].basis == "person"


def test_where_a_model_reviewed_some_sessions_another_one_s_reviews_speak_for_the_others(
    tmp_path: Path,
) -> None:
    lake = empty(tmp_path)
    scored_by(lake, "model-a", PLAIN)
    scored_by(lake, "model-b", {"asked": "failed", "broken": "complete_unverified"})
    assert trained_on(lake, "model-b") == {"checked", "unchecked", "broken"}


def test_what_a_reviewer_would_not_train_on_is_left_out_in_whole_or_in_part(tmp_path: Path) -> None:
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
    assert why == "whoever reviewed it would train on nothing of it"
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
