"""Judging through HTTP: a server of ours in the provider's place."""

from __future__ import annotations

import time
from pathlib import Path

from debrief.models.language_model import LanguageModel
from debrief.rubrics.judging import ModelRubricJudge, evaluate_rubrics
from debrief.state import State
from tests.models.openai_server import OpenAIServer, Reply
from tests.rubrics.scenario import rubric, session
from tests.waiting import LONG

SESSIONS = [session(n) for n in range(8)]
RUBRICS = [rubric(n, name=f"Rubric {n}") for n in range(1, 9)]
JUDGED = "SCORE: 4\nREASONING: Turn 1 names billing/rounding.py and the expected result."


def test_judging_keeps_the_server_busy_and_asks_nothing_twice(tmp_path: Path) -> None:
    latency, concurrency = 0.05, 8
    with OpenAIServer() as server:
        server.reply = lambda call: Reply(
            JUDGED, latency=latency if server.most_at_once >= concurrency else 5 * latency
        )

        def judge() -> ModelRubricJudge:
            model = LanguageModel(
                "openai/m", api_key="k", base_url=server.url, timeout=LONG, pause=0.01,
                concurrency=concurrency, cache=State(tmp_path / "answers.sqlite"),
            )  # fmt: skip
            model.ask("warm up")
            return ModelRubricJudge("m", model.ask, secret=b"of this machine")

        asking = judge()
        started = time.perf_counter()
        rows = list(evaluate_rubrics(SESSIONS, RUBRICS, asking, workers=concurrency))
        took = time.perf_counter() - started
        assert all(row.status == "ok" for row in rows)
        assert server.most_at_once == concurrency
        assert took < len(rows) * latency, "no faster than one after the other"
        other, sent = judge(), server.received
        again = list(evaluate_rubrics(SESSIONS, RUBRICS, other, workers=concurrency))
        assert [row.score for row in again] == [row.score for row in rows]
        assert server.received == sent
