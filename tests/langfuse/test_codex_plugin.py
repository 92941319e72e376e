"""A session of Codex that Langfuse's plugin sent is the session of its rollout."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.langfuse.fetcher import SessionFetcher
from debrief.sessions.model import Session, Turn
from debrief.sessions.readers.base import Transcript
from debrief.sessions.readers.codex import READER
from tests.langfuse.scenario import START, Recorder, calls_of, client_of, iso
from tests.langfuse.server import LangfuseServer, Mode

Json = dict[str, Any]
THREAD = "019f15f7-b472-7bc3-8651-5547781e25cf"
PATCH = "*** Begin Patch\n*** Update File: cart.py\n@@\n-total = 0\n+total = 1\n*** End Patch"
SHELL = {"cmd": "pytest", "workdir": "/home/ann/shop"}
CALLS: list[tuple[str, str, Json | str, str]] = [
    ("c1", "exec_command", SHELL, "Process exited with code 1\nOutput:\n1 failed"),
    ("c2", "apply_patch", PATCH, "Success. Updated the following files:\nM cart.py"),
    ("c3", "exec_command", SHELL, "Process exited with code 0\nOutput:\n1 passed"),
]
TOLD = {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 7}


def rollout(folder: Path) -> Session:
    """The session of what Codex itself wrote."""
    at = iter(range(1, 1_000))
    records: list[Json] = []

    def write(kind: str, **payload: Any) -> None:
        records.append({"timestamp": iso(next(at)), "type": kind, "payload": payload})

    def item(kind: str, **payload: Any) -> None:
        write("response_item", **{"type": kind, **payload})

    write("session_meta", id=THREAD, cli_version="0.140.0", cwd="/home/ann/shop")
    write("turn_context", model="gpt-5.4")
    write("event_msg", type="user_message", message="Fix the cart.")
    for number, (id, name, given, output) in enumerate(CALLS):
        if not number:
            item("message", role="assistant", content=[{"type": "output_text", "text": "I look."}])
        kind = "custom_tool_call" if isinstance(given, str) else "function_call"
        told = {"input": given} if isinstance(given, str) else {"arguments": json.dumps(given)}
        item(kind, call_id=id, name=name, **told)
        write("event_msg", type="token_count", info={"last_token_usage": TOLD})
        item("function_call_output", call_id=id, output=output)
    item("message", role="assistant", content=[{"type": "output_text", "text": "Fixed."}])
    write("event_msg", type="token_count", info={"last_token_usage": TOLD})
    path = folder / f"rollout-2026-10-05T12-00-00-{THREAD}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return READER.read(Transcript(path=str(path), source="codex"))


def send(
    server: LangfuseServer, trace: str, calls: int = len(CALLS), session: str = THREAD, **root: Any
) -> None:
    """Send the turn as the plugin does; with fewer calls as one that is under way."""
    recorder = Recorder(server, session)
    facts: Json = {"codex.turn_id": "turn-1", "codex.thread_id": THREAD, "codex.model": "gpt-5.4"}
    facts |= {"codex.cli_version": "0.140.0", "codex.tool_call_count": calls}
    is_over = calls == len(CALLS)
    parent = recorder.observe(
        trace,
        "AGENT",
        "Codex Turn",
        input="Fix the cart.",
        output="Fixed." if is_over else "I look.",
        metadata=facts,
        isRootObservation=True,
        **{"endTime": iso(20 + calls), **root},
    )
    usage = {"input": 100, "output": 7, "total": 107, "cache_read_input_tokens": 40}
    told = {"model": "gpt-5.4", "usageDetails": usage, "parentObservationId": parent}
    for number, (id, name, given, output) in enumerate(CALLS[:calls]):
        made = [{"id": id, "name": name, "arguments": given}]
        gave = {**({} if number else {"content": "I look."}), "tool_calls": made}
        above = recorder.observe(trace, "GENERATION", "LLM", output=json.dumps(gave), **told)
        recorder.ran(
            trace,
            name,
            given if isinstance(given, str) else json.dumps(given),
            output,
            metadata={"codex.call_id": id, "codex.tool_name": name},
            parentObservationId=above,
        )
    if is_over:
        recorder.observe(trace, "GENERATION", "LLM", output='{"content": "Fixed."}', **told)


def common(session: Session) -> Session:
    """What the plugin sends of a session: neither its messages' times nor how edits were done."""

    def turn_of(turn: Turn) -> Turn:
        messages = tuple(
            replace(m, at=None, id="", calls=tuple(replace(c, at=None) for c in m.calls))
            for m in turn.messages
        )
        return replace(turn, at=None, ended=None, messages=messages)

    return replace(
        session,
        source="",
        digest="",
        transcripts=(),
        started=START,
        ended=START,
        turns=tuple(map(turn_of, session.turns)),
    )


@pytest.mark.parametrize("mode", ["events_only", "dual"])
def test_it_is_the_session_of_its_rollout(tmp_path: Path, mode: Mode) -> None:
    with LangfuseServer(mode) as server:
        send(server, "t0", calls=1)
        send(server, "t1")
        session = SessionFetcher(client_of(server)).fetch_session(THREAD)
    assert common(session) == common(rollout(tmp_path))
    assert (session.tool, session.task, session.cwd) == ("codex", "shop", "/home/ann/shop")
    (turn,) = session.turns
    assert [call.status for call in calls_of(turn)] == ["failed", "ok", "ok"]
    assert (session.lines_added, session.lines_removed) == (1, 1)


def test_calls_that_are_still_to_come_are_waited_for(server: LangfuseServer) -> None:
    send(server, "t1")
    server.observations.pop()
    server.observations.pop()
    for row in server.observations:
        row["updatedAt"] = iso(60)
    fetcher = SessionFetcher(client_of(server), now=lambda: START + timedelta(minutes=2))
    with pytest.raises(InputError, match="1 of its observations are not there yet"):
        fetcher.fetch_session(THREAD)


def test_what_was_interrupted_or_failed_says_so_and_subagents_are_named(
    server: LangfuseServer,
) -> None:
    send(server, "t1", level="WARNING", statusMessage="Turn interrupted by user")
    failed = next(row for row in server.observations if row["name"] == "apply_patch")
    failed |= {"level": "ERROR", "statusMessage": "cannot apply", "output": None}
    root = server.observations[0]["id"]
    inside = Recorder(server, THREAD)
    inside.clock = 30
    inside.observe("t1", "AGENT", "Codex Subagent Turn", parentObservationId=root)
    session = SessionFetcher(client_of(server)).fetch_session(THREAD)
    (turn,) = session.turns
    assert [intervention.kind for intervention in turn.interventions] == ["interruption"]
    call = calls_of(turn)[1]
    assert (call.status, call.result) == ("failed", "cannot apply")
    assert [problem.reason for problem in session.problems] == ["1 turns of subagents are not read"]
