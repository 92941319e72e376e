"""Every session on every rubric."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec import structs

from debrief.errors import ModelError
from debrief.models.language_model import LanguageModel
from debrief.rubrics.judging import ModelRubricJudge, evaluate_rubrics
from debrief.rubrics.model import Rubric, RubricJudgement
from debrief.sessions.model import Session
from debrief.state import State
from tests.models.openai_server import OpenAIServer, Reply
from tests.rubrics.scenario import rubric, session
from tests.waiting import LONG, wait_until


class CountingJudge:
    """Gives every session 3, and remembers what it was asked."""

    model = "counting"

    def __init__(self, fails_on: str = "") -> None:
        self.asked: list[tuple[str, str]] = []
        self._fails_on = fails_on

    def judge_rubric(self, rubric: Rubric, session: Session) -> RubricJudgement:
        self.asked.append((session.id, rubric.id))
        if session.id == self._fails_on:
            raise ModelError("counting", "no usable answer")
        return RubricJudgement(score=3, reasoning=f"{rubric.id} in {session.id}")


SESSIONS = [session(n) for n in range(6)]
RUBRICS = [rubric(n, name=f"Rubric {n}") for n in range(1, 4)]


def test_only_what_changed_is_asked_again() -> None:
    judge = CountingJudge()
    rows = list(evaluate_rubrics(SESSIONS, RUBRICS, judge))
    judge.asked.clear()
    grown = [structs.replace(SESSIONS[0], digest="another"), *SESSIONS[1:]]
    reworded = [structs.replace(RUBRICS[0], description="Other words."), *RUBRICS[1:]]
    list(evaluate_rubrics(grown, reworded, judge, rows))
    assert len(judge.asked) == 3 + 5
    judge.asked.clear()
    judge.model = "another model"
    list(evaluate_rubrics(SESSIONS[:1], RUBRICS, judge, rows))
    assert len(judge.asked) == 3


def test_a_rubric_that_moved_to_another_place_keeps_its_scores() -> None:
    judge = CountingJudge()
    rows = list(evaluate_rubrics(SESSIONS, RUBRICS, judge))
    moved = [structs.replace(RUBRICS[0], id="rubric_009"), *RUBRICS[1:]]
    again = list(evaluate_rubrics(SESSIONS, moved, judge, rows))
    assert len(judge.asked) == 18
    assert {row.rubric_id for row in again if row.rubric_key == "key-1"} == {"rubric_009"}


@pytest.mark.parametrize("workers", [1, 3])
def test_rows_come_session_by_session_and_a_failure_alone_is_asked_again(workers: int) -> None:
    failing = CountingJudge(fails_on=SESSIONS[2].id)
    rows = list(evaluate_rubrics(SESSIONS, RUBRICS[::-1], failing, workers=workers))
    assert [(r.session_id, r.rubric_id) for r in rows] == [
        (s.id, r.id) for s in SESSIONS for r in RUBRICS
    ]
    failed = [row for row in rows if row.status == "failed"]
    assert {row.session_id for row in failed} == {SESSIONS[2].id}
    assert "no usable answer" in failed[0].failure
    assert failed[0].score is None
    healed = CountingJudge()
    again = list(evaluate_rubrics(SESSIONS, RUBRICS, healed, rows, workers=workers))
    assert all(row.status == "ok" for row in again)
    assert list(evaluate_rubrics(SESSIONS, RUBRICS, healed, again, workers=workers)) == again
    assert len(healed.asked) == 3


MANY = [session(n) for n in range(8)]
EIGHT = [rubric(n, name=f"Rubric {n}") for n in range(1, 9)]
JUDGED = "SCORE: 4\nREASONING: Turn 1 names billing/rounding.py and the expected result."


def answer_in_waves(server: OpenAIServer, size: int, waves: int) -> None:
    """Answer no question before so many wait for an answer, again and again."""
    answered = server.most_answers = server.received

    def all_wait() -> bool:
        return server.received == answered + size

    try:
        for _ in range(waves):
            wait_until(all_wait)
            answered = server.most_answers = server.received
    finally:
        server.most_answers = None


def test_judging_keeps_the_server_busy_and_asks_nothing_twice(tmp_path: Path) -> None:
    concurrency = 8
    with OpenAIServer(lambda call: Reply(JUDGED)) as server, ThreadPoolExecutor(1) as aside:

        def judge() -> ModelRubricJudge:
            model = LanguageModel(
                "openai/m", api_key="k", base_url=server.url, timeout=2 * LONG, pause=0.01,
                concurrency=concurrency, cache=State(tmp_path / "answers.sqlite"),
            )  # fmt: skip
            model.ask("warm up")
            return ModelRubricJudge("m", model.ask, secret=b"of this machine")

        asking = judge()
        server.most_answers = server.received
        busy = aside.submit(
            answer_in_waves, server, concurrency, len(MANY) * len(EIGHT) // concurrency
        )
        rows = list(evaluate_rubrics(MANY, EIGHT, asking, workers=concurrency))
        busy.result()
        assert all(row.status == "ok" for row in rows)
        assert server.most_at_once == concurrency
        other, sent = judge(), server.received
        again = list(evaluate_rubrics(MANY, EIGHT, other, workers=concurrency))
        assert [row.score for row in again] == [row.score for row in rows]
        assert server.received == sent
