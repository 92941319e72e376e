"""The page about a week, and the messages to a webhook: a real server on loopback."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.langfuse.outgoing import ScoreReceipt
from debrief.redaction.redactor import Redactor
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.model import SessionHead
from debrief.signals.schema import TABLE as SIGNALS
from debrief.signals.schema import SessionSignals
from debrief.summary import Failure, content_of
from debrief.weekly import (
    ATTEMPTS,
    LONGEST,
    MOST_FAILURES,
    Done,
    added_up,
    by_stage,
    headline,
    page_of,
    report_of,
    send,
)
from resources import WebhookResource
from tests.hooks import hook
from tests.snapshots.scenario import head
from tests.training.scenario import judgement, scores, signals

BEFORE, WEEK = "2026-10-05", "2026-10-12"


COMPLETE, UNTOLD = (
    SessionVerdict(verdict=name, basis="review", source="judge-1")
    for name in ("complete_verified", "undetermined")
)


def lake_of(tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path))
    for week, quality in ((BEFORE, 0.5), (WEEK, 0.75)):
        heads = [head(f"{week}-{n}", lines_added=10) for n in range(3)]
        lake.write("raw_sessions", week, heads, SessionHead)
        told = [] if week == BEFORE else [COMPLETE, UNTOLD]
        pairs = zip(heads, told, strict=False)
        rows = [scores(one, quality, verdict=verdict) for one, verdict in pairs]
        lake.write("session_scores", week, rows, SessionScores)
        seen = [signals(heads[0], "correction", "failed_check"), signals(heads[1], "correction")]
        lake.write(SIGNALS, week, seen[: 1 + (week == WEEK)], SessionSignals)
        lake.write("judge_evaluations", week, map(judgement, heads), JudgeEvaluation)
    return lake


def test_scores_that_a_server_refused_are_failures(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    receipts = [
        ScoreReceipt(
            score_id=f"{session}-{name}",
            session_id=session,
            name=name,
            value="0.5",
            status="written" if session == "good" else "failed",
            reason="" if session == "good" else "401: the key is not valid",
        )
        for session in ("good", "refused")
        for name in ("tool_mastery", "overall_quality")
    ]
    lake.write("langfuse_scores", WEEK, receipts, ScoreReceipt)
    assert content_of(lake, [WEEK]).failures == (
        Failure("sending", "2 scores of refused", "401: the key is not valid"),
    )


def test_the_page_says_what_was_done_what_it_cost_and_what_changed(tmp_path: Path) -> None:
    done = [
        Done(stage="raw_sessions", partition=WEEK, rows=3, fresh=2),
        Done(stage="raw_sessions", partition=BEFORE, rows=3, fresh=3),
        Done(
            stage="session_scores",
            partition=WEEK,
            rows=3,
            fresh=2,
            calls=2,
            input_tokens=9_000,
            output_tokens=800,
            cost_usd=0.25,
        ),
        Done(stage="training_sets", partition="a-b|late-readings", rows=3),
    ]  # fmt: skip
    report = report_of(lake_of(tmp_path), WEEK, done)
    page = page_of(report)
    assert "| raw_sessions | 3 | 2 | 0 | 0 |" in page
    assert "| training_sets | 3 | 0 | 0 | 0 |" in page
    assert "2 calls, 9,000 tokens in and 800 out: $0.2500." in page
    assert "| overall quality, mean of the reviewed | 0.750 | – |" in page
    assert "| complete, verified | 1 | 0 |" in page
    assert "| not reviewed | 1 | 3 |" in page
    assert "2 reviewed by judge-1: 1 complete, verified; 1 undetermined. 1 not reviewed." in page
    assert "| sessions with: correction | 2 | 1 |" in page
    assert "| sessions with: failed check | 1 | 1 |" in page
    assert "sessions with: refusal" not in page
    assert headline(report) == (
        "Week of 2026-10-12: 3 sessions, 2 with a verdict (1 complete, verified; 1 undetermined), "
        "1 not reviewed, nothing failed, $0.25 spent"
    )
    assert report.did_something
    assert page_of(report_of(lake_of(tmp_path), WEEK, done)) == page
    linked = page_of(report, "http://pages/weeks/2026-10-12")
    assert linked.startswith("# The week of [2026-10-12](http://pages/weeks/2026-10-12)\n")
    assert linked.partition("\n")[2] == page.partition("\n")[2]


def test_what_failed_is_told_with_its_reason_and_cannot_draw_on_the_page(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    failed = [
        judgement(head(f"s{n:02}"), "plan", None, failure="| no <b>answer</b> |")
        for n in range(MOST_FAILURES + 3)
    ]
    lake.write("judge_evaluations", WEEK, failed, JudgeEvaluation)
    page = page_of(report_of(lake, WEEK))
    assert "- judging: s00 by plan" in page
    assert "<b>" not in page
    assert "- and 3 more in judging" in page
    assert "The next run tries them again." in page


def test_the_page_of_a_week_alone_in_the_lake_has_nothing_to_compare_with(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.write("raw_sessions", WEEK, [head("s1")], SessionHead)
    report = report_of(lake, WEEK)
    assert "| overall quality, mean of the reviewed | – | – |" in page_of(report)
    assert "Nothing but this page was made." in page_of(report)
    assert (
        headline(report)
        == "Week of 2026-10-12: 1 session, not reviewed, nothing failed, $0.00 spent"
    )
    assert not report.did_something


def test_a_price_that_nobody_knows_makes_the_sum_unknown() -> None:
    parts = [Done(stage="a", calls=1, cost_usd=None), Done(stage="a", calls=1, cost_usd=1.0)]
    assert added_up("a", parts).cost_usd is None
    assert [part.calls for part in by_stage(parts)] == [2]


def test_each_stage_is_told_once_in_the_order_of_its_parts() -> None:
    names = ["raw_sessions", "session_scores", "rubrics", "session_scores"]
    told = [part.stage for part in by_stage(Done(stage=name) for name in names)]
    assert told == ["raw_sessions", "session_scores", "rubrics"]


REDACTOR = Redactor(b"0" * 32)
TOKEN = "ghp_" + "R7qLw2ZtVx9KdM4nBsYp8HcJf3GaUe6TiXoQ"


def test_a_message_arrives_as_slack_takes_it_and_a_busy_server_is_asked_again() -> None:
    waits: list[float] = []
    with hook(503, 429, 200) as server:
        assert send(server.url, "hello", REDACTOR, sleep=waits.append) == ""
        assert server.got == [{"text": "hello"}] * 3
    assert len(waits) == 2
    assert max(waits) <= 4


@pytest.mark.parametrize(("status", "attempts"), [(500, ATTEMPTS), (404, 1), (410, 1)])
def test_a_server_that_refuses_is_told_by_name_and_never_by_address(
    status: int, attempts: int
) -> None:
    with hook(status) as server:
        reason = send(server.url, "hello", REDACTOR, sleep=lambda _: None)
        assert len(server.got) == attempts
    assert reason == f"127.0.0.1 answered {status}"


def test_a_server_that_hangs_or_is_not_there_costs_nothing_but_a_reason() -> None:
    with hook(200, delay=0.5) as server:
        hung = send(server.url, "hello", REDACTOR, timeout=0.05, sleep=lambda _: None)
    gone = send(server.url, "hello", REDACTOR, sleep=lambda _: None)
    assert "could not be reached: ReadTimeout" in hung
    assert "could not be reached: ConnectError" in gone
    assert "secret-part" not in hung + gone


@pytest.mark.parametrize(
    "url", ["hooks.example.com/x", "ftp://example.com/x", "http://", "http://["]
)
def test_what_is_no_address_is_said_to_be_none(url: str) -> None:
    assert send(url, "hello", REDACTOR) == "DEBRIEF_WEBHOOK_URL is no address of a web server"


def test_a_message_holds_no_secret_and_is_not_endless() -> None:
    with hook(200) as server:
        send(server.url, f"take_sessions failed: token {TOKEN} refused. {'why ' * 2_000}", REDACTOR)
        text = server.got[0]["text"]
    assert TOKEN not in text
    assert "<secret:" in text
    assert len(text) == LONGEST


@pytest.mark.parametrize("values", [{}, {"DEBRIEF_WEBHOOK_URL": "url", "DEBRIEF_WEBHOOK": "off"}])
def test_messages_go_out_only_where_one_is_asked_for(
    values: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with hook(200) as server:
        for name, value in values.items():
            monkeypatch.setenv(name, value.replace("url", server.url))
        WebhookResource().send(logging.getLogger(), "hello", "run")
        assert not server.got
