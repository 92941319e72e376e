"""Two sessions beside each other: both orders are asked, and a difference needs both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.errors import InputError
from debrief.lake import Lake
from debrief.scoring.model import SessionScores
from debrief.scoring.pairwise import Placed, median_session
from debrief.sessions.model import Session
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.scoring.scenario import session, turn
from tests.view.shown import scores_of

GOOD, BAD = "Tests were run and pass.", "I think it is done."


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Two runs of one task, and one that a judge is told lies in."""
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBRIEF_SESSIONS", str(tmp_path / "none"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")
    lake = Lake(str(tmp_path / "lake"))
    sessions = [
        session("run-good", (turn(1, text=GOOD),)),
        session("run-bad", (turn(1, text=BAD),)),
        session("run-huge", (turn(1, text="some words of the work " * 30_000), turn(2))),
    ]
    lake.write("raw_sessions", "2026-10-05", sessions, Session)
    return lake


def compare(lake: Lake, server: OpenAIServer, *arguments: str, against: str = "run-bad") -> Result:
    given = ["score", "run-good", "--against", against, "--lake", lake.url, *arguments]
    env = {"DEBRIEF_MODEL_BASE_URL": server.url, "COLUMNS": "200"}
    return CliRunner().invoke(app, [*given, "--model", "openai/tiny", "--yes"], env=env)


def said(better: object, **changed: Any) -> Reply:
    first = {"recording": 1, "turn": 1, "quote": GOOD, "what": "One was checked."}
    second = {"recording": 2, "turn": "turn 1", "quote": BAD, "what": "One was not."}
    swapped = [{**first, "recording": "2"}, {**second, "recording": 1}]
    whole = {"grounds": [first, second, *swapped], "better": better, "lesson_1": "", "lesson_2": ""}
    return Reply(f"Here it is:\n```json\n{json.dumps({**whole, **changed})}\n```")


def good_is_first(call: Call) -> bool:
    return call.user.index(GOOD) < call.user.index(BAD)


def test_what_both_orders_say_counts_and_is_asked_once(lake: Lake) -> None:
    def careful(call: Call) -> Reply:
        place = 1 if good_is_first(call) else 2
        return said(f"Recording {place}", **{f"lesson_{3 - place}": "Run the tests."})

    with OpenAIServer(careful) as server:
        told = compare(lake, server)
        assert told.exit_code == 0, told.output
        assert sorted(map(good_is_first, server.calls)) == [False, True]
        asked = len(server.calls)
        found = json.loads(compare(lake, server, "--json").stdout)
        assert len(server.calls) == asked
    assert told.stdout.startswith("run-good did better what was asked of it, in both orders.")
    assert f"One was not. (run-bad, turn 1: “{BAD}”)" in told.stdout
    assert told.stdout.count("run-bad could learn: Run the tests.") == 2
    assert "run-good could learn" not in told.stdout
    assert found["finding"] == "first"
    assert [each["shown_first"] for each in found["orders"]] == ["run-good", "run-bad"]
    grounds = {
        (each["session_id"], each["place"]["quote"]) for each in found["orders"][0]["grounds"]
    }
    assert grounds == {("run-good", GOOD), ("run-bad", BAD)}, "what stands elsewhere is left out"


@pytest.mark.parametrize(
    ("answer", "finding"),
    [
        pytest.param(lambda call: said(1), "order_decides", id="the first place wins"),
        pytest.param(lambda call: said("neither"), "no_difference", id="neither"),
        pytest.param(
            lambda call: said(1 if good_is_first(call) else None), "no_difference", id="one order"
        ),
        pytest.param(lambda call: said(2 if good_is_first(call) else 1), "second", id="the other"),
    ],
)
def test_a_difference_in_one_order_alone_is_none(
    lake: Lake, answer: Callable[[Call], Reply], finding: str
) -> None:
    with OpenAIServer(answer) as server:
        assert json.loads(compare(lake, server, "--json").stdout)["finding"] == finding


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param(said(3), "better: Input should be 0, 1 or 2", id="no such place"),
        pytest.param(
            said(1, grounds=[{"recording": 1, "turn": 1, "quote": "It was all tested twice."}]),
            "none of its quotations stands in the recordings",
            id="invented quotations",
        ),
        pytest.param(Reply("The first one."), "it holds no single JSON object", id="prose"),
    ],
)
def test_an_answer_without_form_or_proof_is_refused(lake: Lake, reply: Reply, reason: str) -> None:
    with OpenAIServer(lambda _: reply) as server:
        refused = compare(lake, server)
        assert len(server.calls) == 2
        assert reason in server.calls[1].user
    assert refused.exit_code == 1
    assert "gave no usable answer on run-good beside run-bad in 2 calls" in refused.stderr


@pytest.mark.parametrize(
    ("against", "arguments", "reason"),
    [
        ("run-good", (), "is the same session"),
        ("run-huge", (), "does not fit into one call, so it cannot be compared"),
        ("run-bad", ("--store",), "takes one session, --model, --lake and --json alone"),
        ("median", (), "needs 5 scored coding sessions of no repository; there are 0"),
    ],
)
def test_what_cannot_be_compared_is_named_before_anything_is_asked(
    lake: Lake, against: str, arguments: tuple[str, ...], reason: str
) -> None:
    with OpenAIServer(lambda _: said(1)) as server:
        refused = compare(lake, server, *arguments, against=against)
        assert not server.calls
    assert refused.exit_code == 1
    assert reason in refused.stderr


def test_the_median_is_of_the_same_repository_and_kind(lake: Lake) -> None:
    own = replace(session("own"), repository="shop")
    placed = [Placed(f"s{n}", "shop", "coding", n / 10) for n in range(1, 6)]
    others = [Placed("far", "other", "coding", 0.3), Placed("ask", "shop", "service", 0.3)]
    mine = [Placed("own", "shop", "coding", 0.9), Placed("mute", "shop", "coding", None)]
    assert median_session(own, "coding", [*placed, *others, *mine]) == "s3"
    with pytest.raises(InputError, match="there are 4"):
        median_session(own, "coding", placed[1:])


def test_a_session_is_compared_with_the_middle_one_of_the_lake(lake: Lake) -> None:
    sessions = list(lake.read("raw_sessions", "2026-10-05", Session))
    more = [session(f"more-{n}", (turn(1, text=BAD),)) for n in range(5)]
    lake.write("raw_sessions", "2026-10-05", [*sessions, *more], Session)
    rows = [replace(scores_of(one, n / 10), kind="coding") for n, one in enumerate(more)]
    lake.write("session_scores", "2026-10-05", rows, SessionScores)
    with OpenAIServer(lambda call: said(1 if good_is_first(call) else 2)) as server:
        done = compare(lake, server, "--json", against="median")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["sessions"], found["finding"]) == (["run-good", "more-2"], "first")
