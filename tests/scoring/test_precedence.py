"""Whose row counts for a session that several models reviewed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.scoring.precedence import effective_judgements, effective_rows, in_order


class Row(Struct, frozen=True):
    session_id: str
    model: str
    status: str = "ok"


@pytest.mark.parametrize(
    ("rows", "asked_for", "first"),
    [
        (["a"], (), "a"),
        (["b", "a"], (), "b"),
        (["b", "a"], ("a",), "a"),
        (["!b", "a"], (), "a"),
        (["!b", "a"], ("b",), "a"),
        (["!a", "!b"], (), "!a"),
    ],
)
def test_the_model_that_is_asked_for_counts_and_then_the_last_run(
    rows: list[str], asked_for: tuple[str, ...], first: str
) -> None:
    made = [
        Row("s1", name.removeprefix("!"), "failed" if name.startswith("!") else "ok")
        for name in rows
    ]
    assert in_order(made, asked_for)[0] == made[rows.index(first)]


def test_each_session_has_one_row_and_keeps_its_place() -> None:
    rows = [Row("s2", "b"), Row("s1", "a"), Row("s3", "a"), Row("s2", "a")]
    assert list(effective_rows(rows)) == rows[:3]


def test_of_each_judge_one_answer_counts_though_it_is_no_number() -> None:
    known: dict[str, Any] = {"session_digest": "d", "started": datetime(2026, 11, 2, tzinfo=UTC)}
    scored = JudgeEvaluation(
        session_id="s1", judge="reuse", weight=0.5, model="b", status="ok", score=0.9,
        eval_fingerprint="f", **known,
    )  # fmt: skip
    silent = replace(scored, model="a", score=None)
    plan = replace(scored, judge="plan", score=0.5)
    broken = replace(plan, model="a", status="failed", score=None)
    assert list(effective_judgements([silent, scored, broken, plan])) == [silent, plan]
