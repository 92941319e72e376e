"""Sessions from a server: whole, from servers old and new, in the normal form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from debrief.errors import InputError
from debrief.langfuse.errors import LangfuseAwayError, RequestRefusedError
from debrief.langfuse.fetcher import SessionFetcher
from debrief.langfuse.session_scorer import SessionScorer
from debrief.scoring.traces import trace_text, traces_of
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.model import Session, Usage
from tests.langfuse.scenario import (
    START,
    Clock,
    DropIn,
    Recorder,
    call,
    calls,
    client_of,
    fetched,
    iso,
    says,
    told,
    tool,
    user,
)
from tests.langfuse.server import LangfuseServer, Mode, Request, Trouble
from tests.scoring.scenario import ScriptedScorer

MODES: list[Mode] = ["events_only", "dual", "legacy", "old"]


def test_a_trace_is_a_turn_with_its_messages_and_calls(server: LangfuseServer) -> None:
    recorder = Recorder(server)
    recorder.trace("t1", "fix the cart", "Done.")
    recorder.trace("t2", '{"messages":[{"role":"user","content":"and test it"}]}', "Tested.")
    session = fetched(server)
    assert [turn.prompt for turn in session.turns] == ["fix the cart", "and test it"]
    assert [message.text for message in session.turns[0].messages] == ["Let me look.", "Done."]
    assert told(session.turns[0]) == [("search", '{"q":"cart"}', "boom", "failed")]
    assert session.usage == Usage(input=20, output=10, cache_read=180)
    assert session.models == ("gpt-4o",)
    assert session.started == START + timedelta(seconds=1)
    assert session.ended == START + timedelta(seconds=6.5)
    assert session.digest


def test_what_a_trace_has_of_another_session_is_that_one_s(server: LangfuseServer) -> None:
    Recorder(server).trace("t1", "fix the cart", "Done.")
    server.observations[-1]["sessionId"] = "s2"
    assert told(fetched(server).turns[0]) == []


@pytest.mark.parametrize("version", ["", "4.16.0", "3.150.0"])
def test_a_server_with_another_way_is_asked_that_way(version: str) -> None:
    with LangfuseServer("old") as server:
        server.version = version
        Recorder(server).trace("t1", "fix the cart", "Done.")
        client = client_of(server)
        sessions = [SessionFetcher(client).fetch_session("s1") for _ in range(2)]
        asked = server.sent("GET", "/v2/observations")
    assert sessions[0] == sessions[1]
    assert len(asked) == (0 if version.startswith("3") else 1)


def test_a_server_without_any_way_is_named(server: LangfuseServer) -> None:
    server.trouble = [Trouble(404), Trouble(404)]
    client = client_of(server)
    for _ in range(2):
        with pytest.raises(RequestRefusedError, match="has neither observations nor traces"):
            SessionFetcher(client).fetch_session("s1")


def test_a_session_that_began_before_a_server_s_move_is_whole() -> None:
    with LangfuseServer("dual") as server:
        recorder = Recorder(server)
        recorder.trace("t1", "fix the cart", "Done.")
        recorder.trace("t2", "and test it", "Tested.")
        expected = fetched(server)
        server.moved = {"t1"}
        assert fetched(server) == expected


def test_fewer_observations_than_were_counted_are_not_taken_yet(server: LangfuseServer) -> None:
    Recorder(server).trace("t1", "fix the cart", "Done.")
    fetcher = SessionFetcher(client_of(server))
    assert fetcher.fetch_session("s1", count=3)
    with pytest.raises(InputError, match="2 of its observations are not there yet: it is still"):
        fetcher.fetch_session("s1", count=5)


def test_a_parent_that_is_still_to_come_is_waited_for(server: LangfuseServer) -> None:
    Recorder(server).trace("t1", "fix the cart", "Done.")
    root = server.observations.pop(0)
    arrived = START + timedelta(hours=1)
    server.observations[-1]["createdAt"] = arrived.isoformat()
    soon = SessionFetcher(client_of(server), now=lambda: arrived + timedelta(minutes=1))
    with pytest.raises(InputError, match="1 of its observations are not there yet"):
        soon.fetch_session("s1")
    later = SessionFetcher(client_of(server), now=lambda: arrived + timedelta(hours=1))
    assert len(later.fetch_session("s1").turns) == 1
    server.observations.insert(0, root)
    assert [turn.prompt for turn in soon.fetch_session("s1").turns] == ["fix the cart"]


def test_a_server_that_dies_in_the_middle_of_a_page_is_asked_again(server: LangfuseServer) -> None:
    Recorder(server).trace("t1", "fix the cart", "y" * 1_000_000)
    whole = fetched(server)
    server.cut_short = [500_000, 10]
    assert fetched(server) == whole
    server.cut_short = [500_000] * 99
    with pytest.raises(LangfuseAwayError, match="cannot be reached"):
        fetched(server)


@pytest.mark.parametrize("mode", ["events_only", "dual"])
def test_a_page_that_grows_while_it_is_read_gives_nothing_twice(mode: Mode) -> None:
    with LangfuseServer(mode) as server:
        server.page = 2
        recorder = Recorder(server)
        recorder.trace("t1", "fix the cart", "Done.")
        expected = fetched(server)
        seen = server.answer

        def growing(request: Request, authorization: str) -> tuple[int, Mapping[str, str], Any]:
            answer = seen(request, authorization)
            server.answer = seen  # type: ignore[method-assign]
            recorder.trace("t2", "and test it", "Tested.")
            return answer

        server.answer = growing  # type: ignore[method-assign]
        session = SessionFetcher(client_of(server)).fetch_session("s1")
        assert session.turns[0] == expected.turns[0]
        assert len(fetched(server).turns) == 2


def test_clocks_that_disagree_lose_nothing(server: LangfuseServer) -> None:
    Recorder(server).trace("t1", "fix the cart", "Done.")
    expected = [message.text for message in fetched(server).turns[0].messages]
    server.observations[0]["startTime"] = iso(3_600)
    (turn,) = fetched(server).turns
    assert turn.prompt == "fix the cart"
    assert [message.text for message in turn.messages] == expected


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "2"}])
def test_a_limit_of_requests_is_waited_for(server: LangfuseServer, headers: dict[str, str]) -> None:
    Recorder(server).trace("t1", "fix the cart", "Done.")
    server.trouble = [Trouble(429, headers)]
    clock = Clock()
    assert SessionFetcher(client_of(server, clock)).fetch_session("s1").turns
    (wait,) = clock.waits
    assert wait >= 2 if headers else wait <= 1


def test_arguments_that_the_model_s_message_leaves_out_are_those_of_the_tool(
    server: LangfuseServer,
) -> None:
    recorder = Recorder(server)
    made = {"role": "assistant", "tool_calls": [{"id": "c1", "name": "Edit"}]}
    recorder.generation("t1", [user("Go.")], json.dumps(made), model="m")
    recorder.ran("t1", "Tool: Edit", {"path": "a.py"}, "updated", metadata={"tool_id": "c1"})
    assert told(fetched(server).turns[0]) == [("Edit", '{"path":"a.py"}', "updated", "ok")]


def test_a_role_without_words_is_no_word(server: LangfuseServer) -> None:
    Recorder(server).generation("t1", [user("Go.")], '{"role": "assistant"}', model="m")
    (message,) = fetched(server).turns[0].messages
    assert (message.text, message.model) == ("", "m")


def test_a_failure_s_reason_is_not_added_to_what_the_model_saw(server: LangfuseServer) -> None:
    agent = DropIn(server)
    agent.asks(user("Go."), answers=calls(call("c1", "run_tests", folder="a")), trace="t")
    failed = {"level": "ERROR", "statusMessage": "tool failed"}
    agent.ran("t", "run_tests", {"folder": "a"}, "FileNotFoundError: a", **failed)
    assert told(fetched(server).turns[0])[0][2:] == ("FileNotFoundError: a", "failed")
    agent.asks(tool("c1", "No such folder."), answers=says("Hm."), trace="t")
    assert told(fetched(server).turns[0])[0][2:] == ("No such folder.", "failed")


def test_a_trace_without_observations_stands_for_itself() -> None:
    with LangfuseServer("old") as server:
        Recorder(server).keep("t1", {"q": "hello"}, {"a": "hi there"})
        (turn,) = fetched(server).turns
    assert (turn.prompt, turn.messages[0].text) == ("hello", "hi there")


OUTPUTS: dict[str, tuple[object, str]] = {
    "none": (None, ""),
    "empty": ("", ""),
    "text": ("plain", "plain"),
    "object": ({"role": "assistant", "content": "from an object"}, "from an object"),
    "parts": ('{"content": [{"type": "text", "text": "from parts"}]}', "from parts"),
    "other": ({"choices": 3, "cost": 1}, '{"choices":3,"cost":1}'),
    "broken": ("{broken json", "{broken json"),
    "list": ([1, 2], "[1,2]"),
    "2 MB": ("y" * 2_000_000, "y" * 2_000_000),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_of_any_form_becomes_text(server: LangfuseServer, name: str) -> None:
    output, text = OUTPUTS[name]
    Recorder(server).generation("t1", "go", output, model="m")
    (turn,) = fetched(server).turns
    assert (turn.prompt, turn.messages[0].text) == ("go", text)


@pytest.mark.parametrize("value", [None, "", {}, []])
def test_a_trace_without_input_has_an_empty_prompt(server: LangfuseServer, value: object) -> None:
    Recorder(server).root("t1", value)
    (turn,) = fetched(server).turns
    assert turn.prompt in ("", json.dumps(value))
    assert trace_text(traces_of(fetched(server))[0])


def test_rows_without_times_models_and_names_are_survived(server: LangfuseServer) -> None:
    Recorder(server).observe("t1", "TOOL", "x", model=None, usageDetails=None, endTime=None)
    server.observations[0] |= {"name": None, "startTime": ""}
    (turn,) = fetched(server).turns
    assert turn.messages[0].calls[0].status == "unanswered"


def test_a_task_comes_from_a_tag(server: LangfuseServer) -> None:
    Recorder(server).observe("t1", "SPAN", "turn", input="go", tags=["beta", "task:Fix Bug"])
    assert fetched(server).task.startswith("fix-bug.")


def test_sessions_are_redacted_before_their_digest(server: LangfuseServer) -> None:
    Recorder(server).trace("t1", "hush", "Done.")

    def redact(session: Session) -> Session:
        turns = tuple(msgspec.structs.replace(turn, prompt="****") for turn in session.turns)
        return msgspec.structs.replace(session, turns=turns)

    plain = fetched(server)
    redacted = SessionFetcher(client_of(server), redact=redact).fetch_session("s1")
    assert redacted.turns[0].prompt == "****"
    assert redacted.digest != plain.digest


def test_an_old_servers_traces_tell_what_their_roots_leave_out() -> None:
    with LangfuseServer("old") as server:
        recorder = Recorder(server)
        recorder.trace("t1", "fix the cart", "Done.")
        server.traces[0]["tags"] = ["task:cart"]
        server.observations[0] |= {"input": None, "output": None, "tags": None}
        session = fetched(server)
    (turn,) = session.turns
    assert (turn.prompt, turn.messages[-1].text, session.task) == ("fix the cart", "Done.", "cart")


def test_a_span_bounds_the_question_in_time(server: LangfuseServer) -> None:
    Recorder(server).trace("t1", "fix the cart", "Done.")
    fetcher = SessionFetcher(client_of(server))
    whole = fetcher.fetch_session("s1")
    span = (START + timedelta(seconds=1), START + timedelta(seconds=3))
    assert fetcher.fetch_session("s1", span) == whole
    query = server.sent("GET", "/v2/observations")[-1].query
    assert (query["fromStartTime"], query["toStartTime"]) == (iso(1), iso(4))


def test_a_server_that_cannot_give_so_much_at_once_is_asked_for_less(
    server: LangfuseServer,
) -> None:
    recorder = Recorder(server)
    for number in range(150):
        recorder.trace(f"t{number}", f"prompt {number}", "Done.")
    server.most_at_once = 100
    client = client_of(server)
    assert len(SessionFetcher(client).fetch_session("s1").turns) == 150
    assert client.rows_at_once == 100


def test_a_session_is_scored_and_stored_from_its_id_alone(server: LangfuseServer) -> None:
    Recorder(server).trace("t1", "fix the cart", "Done.")
    whole = SessionScorer(client_of(server), ScriptedScorer())
    row = whole.score_session("s1")
    assert row.status == "ok"
    assert {receipt.status for receipt in whole.receipts["s1"]} == {"written"}
    sent = len(server.sent("POST", "/scores"))
    assert whole.store(row) == whole.receipts["s1"]
    assert len(server.sent("POST", "/scores")) == sent
    person = SessionVerdict(verdict="failed", basis="person", source="ann")
    whole.store(row, verdict=person)
    (kept,) = (score for score in server.scores.values() if score["name"] == "verdict")
    assert (kept["value"], kept["metadata"]["basis"]) == ("failed", "person")


def test_scores_that_the_server_does_not_take_are_returned_all_the_same(
    server: LangfuseServer,
) -> None:
    Recorder(server).trace("t1", "fix the cart", "Done.")
    server.trouble = [Trouble(500, method="POST")] * 100
    whole = SessionScorer(client_of(server), ScriptedScorer())
    row = whole.score_session("s1")
    assert row.overall_quality is not None
    assert {receipt.status for receipt in whole.receipts["s1"]} == {"failed"}
    server.trouble = []
    assert {receipt.status for receipt in whole.store(row)} == {"written"}
