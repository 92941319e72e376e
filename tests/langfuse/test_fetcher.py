"""Sessions from a server: whole, from servers old and new, in the normal form."""

from __future__ import annotations

import json
from datetime import timedelta

import msgspec
import pytest

from debrief.errors import InputError
from debrief.langfuse.fetcher import SessionFetcher
from debrief.langfuse.session_scorer import SessionScorer
from debrief.scoring.chunking import trace_text, traces_of
from debrief.sessions.model import Session, Usage
from tests.langfuse.scenario import START, Recorder, client_of, fetched, iso, told
from tests.langfuse.server import LangfuseServer, Mode, Trouble
from tests.scoring.scenario import ScriptedScorer


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


@pytest.mark.parametrize("mode", ["events_only", "dual", "old"])
def test_every_kind_of_server_gives_the_same_session(mode: Mode) -> None:
    with LangfuseServer() as reference:
        Recorder(reference).trace("t1", "fix the cart", "Done.")
        expected = fetched(reference)
    with LangfuseServer(mode) as server:
        Recorder(server).trace("t1", "fix the cart", "Done.")
        assert fetched(server) == expected


def test_a_trace_without_observations_stands_for_itself() -> None:
    with LangfuseServer("old") as server:
        Recorder(server).keep("t1", {"q": "hello"}, {"a": "hi there"})
        (turn,) = fetched(server).turns
    assert (turn.prompt, turn.messages[0].text) == ("hello", "hi there")


@pytest.mark.parametrize("mode", ["events_only", "dual", "old"])
def test_a_session_that_is_not_there_is_named(mode: Mode) -> None:
    with LangfuseServer(mode) as server, pytest.raises(InputError, match="has nothing of it"):
        SessionFetcher(client_of(server)).fetch_session("nobody")


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
