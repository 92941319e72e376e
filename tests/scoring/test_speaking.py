"""Whose scores speak for a session that several have scored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.scoring.precedence import in_order, effective_judgements, effective_rows


class Row(Struct, frozen=True):
    session_id: str
    model: str
    status: str = "ok"


@pytest.mark.parametrize(
    ("rows", "asked_for", "first"),
    [
        (["offline"], (), "offline"),
        (["offline", "model-a"], (), "model-a"),
        (["model-b", "model-a", "offline"], (), "model-b"),
        (["model-b", "model-a", "offline"], ("model-a",), "model-a"),
        (["offline", "model-a"], ("offline",), "model-a"),
        (["!model-b", "offline", "model-a"], (), "model-a"),
        (["!model-b", "offline"], (), "offline"),
        (["!offline", "!model-b"], (), "!model-b"),
    ],
)
def test_a_model_is_heard_before_the_offline_rules_and_the_last_run_first(
    rows: list[str], asked_for: tuple[str, ...], first: str
) -> None:
    made = [
        Row("s1", name.removeprefix("!"), "failed" if name.startswith("!") else "ok")
        for name in rows
    ]
    assert in_order(made, asked_for)[0] == made[rows.index(first)]


def test_each_session_has_one_row_and_keeps_its_place() -> None:
    rows = [Row("s2", "offline"), Row("s1", "offline"), Row("s3", "model-a"), Row("s2", "model-a")]
    assert list(effective_rows(rows)) == [rows[3], rows[1], rows[2]]


def test_of_each_judge_one_answer_counts_though_it_is_no_number() -> None:
    known: dict[str, Any] = {"session_digest": "d", "started": datetime(2026, 11, 2, tzinfo=UTC)}
    rules = JudgeEvaluation(
        session_id="s1", judge="reuse", weight=0.5, model="offline", status="ok", score=0.9,
        eval_fingerprint="f", **known,
    )  # fmt: skip
    silent = replace(rules, model="model-a", score=None)
    plan = replace(rules, judge="plan", score=0.5)
    broken = replace(plan, model="model-a", status="failed", score=None)
    assert list(effective_judgements([rules, silent, broken, plan])) == [silent, plan]
