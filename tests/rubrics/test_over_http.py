"""Mining, consolidating and judging through HTTP: a server of ours in the provider's place."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from debrief.models.language_model import LanguageModel
from debrief.rubrics.asking import PromptedModel
from debrief.rubrics.judging import ModelRubricJudge, evaluate_rubrics
from debrief.rubrics.model_miner import consolidate_with_model
from debrief.state import State
from debrief.tokens import count_tokens
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.rubrics.scenario import SCALE, mined, rubric, session
from tests.waiting import LONG

SECRET = b"of this machine"
Make = Callable[..., LanguageModel]
IDS = re.compile(r'^\s*"id": "([^"]+)",$', re.MULTILINE)
JUDGED = "SCORE: 4\nREASONING: Turn 1 names billing/rounding.py and the expected result."


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def model(server: OpenAIServer, tmp_path: Path) -> Make:
    """A model as a process of its own would have it, with the cache that all processes share."""

    def make(**options: Any) -> LanguageModel:
        chosen = {"timeout": LONG, "pause": 0.01, "attempts": 2, **options}
        cache = State(tmp_path / "answers.sqlite")
        return LanguageModel("openai/m", api_key="k", base_url=server.url, cache=cache, **chosen)

    return make


def a_set(ids: list[str], scale: str = SCALE, names: str = "Theme") -> str:
    rubrics = [
        {
            "name": f"{names} {letter}",
            "description": f"The user shows {letter * 6}.",
            "scoring_criteria": scale,
            "sources": ids[place::6],
        }
        for place, letter in enumerate("abcdef")
    ]
    return json.dumps({"rubrics": rubrics, "consolidation_notes": "By theme."})


def summarized(call: Call, scale: str = SCALE) -> Reply:
    return Reply(a_set(IDS.findall(call.user.split("## Task")[0]), scale))


def test_an_unanchored_set_is_sent_back_once_with_what_was_wrong(
    server: OpenAIServer, model: Make
) -> None:
    server.reply = lambda call: summarized(
        call, "1: Poor 5: Excellent" if call.number == 1 else SCALE
    )
    rows = [mined(f"habit-{n}") for n in range(8)]
    found = consolidate_with_model(rows, "excellence", PromptedModel("m", model().ask, SECRET))
    first, second = server.calls
    assert second.user.startswith(first.user.rstrip())
    assert "its scales lack anchors (rubric_001: the scale says nothing at 2, 3, 4" in second.user
    assert {rubric.scoring_criteria for rubric in found} == {SCALE}
    again = consolidate_with_model(rows, "excellence", PromptedModel("m", model().ask, SECRET))
    assert again == found
    assert len(server.calls) == 2


def test_a_set_that_stays_unanchored_is_taken_after_one_return(
    server: OpenAIServer, model: Make
) -> None:
    server.reply = lambda call: summarized(call, "1: Poor 5: Excellent")
    rows = [mined(f"habit-{n}") for n in range(8)]
    assert len(consolidate_with_model(rows, "excellence", PromptedModel("m", model().ask))) == 6
    assert len(server.calls) == 2


def test_more_than_fits_one_call_is_merged_in_batches_within_the_budget_and_then_together(
    server: OpenAIServer, model: Make
) -> None:
    server.reply = summarized
    rows = [mined(f"habit-{n:02}") for n in range(40)]
    found = consolidate_with_model(
        rows, "excellence", PromptedModel("m", model().ask), budget=1_100
    )
    assert len(server.calls) >= 4
    assert all(count_tokens(call.user) < 1_100 + 1_000 for call in server.calls)
    assert "merged_001" in server.calls[-1].user
    assert {source for one in found for source in one.sources} == {row.id for row in rows}


def test_judging_keeps_the_server_busy_and_asks_nothing_twice(
    server: OpenAIServer, model: Make
) -> None:
    latency, concurrency = 0.05, 8
    server.reply = lambda call: Reply(
        JUDGED, latency=latency if server.most_at_once >= concurrency else 5 * latency
    )
    sessions = [session(n) for n in range(8)]
    rubrics = [rubric(n, name=f"Rubric {n}") for n in range(1, 9)]
    ask = model(concurrency=concurrency)
    ask.ask("warm up")
    judge = ModelRubricJudge("m", ask.ask, secret=SECRET)
    started = time.perf_counter()
    rows = list(evaluate_rubrics(sessions, rubrics, judge, workers=concurrency))
    took = time.perf_counter() - started
    assert all(row.status == "ok" for row in rows)
    assert server.most_at_once == concurrency
    assert took < len(rows) * latency, "no faster than one after the other"
    sent = server.received
    other = ModelRubricJudge("m", model().ask, secret=SECRET)
    again = list(evaluate_rubrics(sessions, rubrics, other, workers=concurrency))
    assert [row.score for row in again] == [row.score for row in rows]
    assert server.received == sent
