"""The same stories on the stand-in and, where ``DEBRIEF_TEST_LANGFUSE`` names one, a real server.

``make test-langfuse DEBRIEF_TEST_LANGFUSE=http://<public key>:<secret key>@<host>`` runs them; what
they send there stays in that project, under session ids of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.langfuse.client import LangfuseClient
from debrief.langfuse.errors import RequestRefusedError
from debrief.langfuse.fetcher import SessionFetcher
from debrief.langfuse.listing import Listing, list_session
from debrief.sessions.model import Session
from tests.langfuse import test_codex_plugin
from tests.langfuse.plugin import send
from tests.langfuse.scenario import (
    START,
    DropIn,
    Recorder,
    call,
    calls,
    client_of,
    says,
    tool,
    user,
)
from tests.langfuse.server import Json, LangfuseServer, Mode
from tests.langfuse.sites import ADDRESS, real_client
from tests.langfuse.test_claude_plugin import common, work

PATIENCE = 60.0
MODES: list[Mode] = ["events_only", "dual", "legacy", "old"]


class Place:
    """A server, and what is to be on it."""

    def __init__(self, shown: LangfuseServer, real: LangfuseClient | None = None) -> None:
        self.shown = shown
        """The stand-in; beside a real server it only holds what is sent there."""
        self.session = f"s-{uuid4()}"
        self._real = real

    @property
    def client(self) -> LangfuseClient:
        return self._real or client_of(self.shown)

    def arrive(self) -> None:
        """Have everything on the server, under ids as a real one takes them."""
        for row in self.shown.observations:
            above = row["parentObservationId"]
            row.update(
                id=hexed(f"{self.session} {row['id']}", 16),
                traceId=hexed(f"{self.session} {row['traceId']}", 32),
                parentObservationId=above and hexed(f"{self.session} {above}", 16),
            )
        self.shown.traces.clear()
        for row in self.shown.observations:
            if all(row["traceId"] != trace["id"] for trace in self.shown.traces):
                kept = {
                    "id": row["traceId"],
                    "timestamp": row["startTime"],
                    "name": row["traceName"],
                }
                told = {"sessionId": self.session, "input": "", "output": "", "tags": row["tags"]}
                self.shown.traces.append(kept | told)
        if self._real is None:
            return
        self._real.post("/otel/v1/traces", spans_of(self.shown.observations))
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found, count = list_session(self._real, self.session), len(self.shown.observations)
            if found and found.listed("", START, "").observations >= count:
                with suppress(InputError):
                    SessionFetcher(self._real).fetch_session(self.session, count=count)
                    return
            time.sleep(0.5)
        raise AssertionError(f"{self.session} did not arrive in {PATIENCE} s")

    def fetch(self) -> Session:
        later = datetime.now(START.tzinfo) + timedelta(days=1)
        return SessionFetcher(self.client, now=lambda: later).fetch_session(self.session)


def hexed(text: str, length: int) -> str:
    return sha256(text.encode()).hexdigest()[:length]


def spans_of(rows: list[Json]) -> Json:
    """Observations as OpenTelemetry's protocol carries them, in JSON."""
    spans = []
    for row in rows:
        facts: dict[str, Any] = {
            "session.id": row["sessionId"],
            "langfuse.observation.type": row["type"].lower(),
            "langfuse.observation.input": row["input"],
            "langfuse.observation.output": row["output"],
            "langfuse.observation.level": row["level"],
            "langfuse.observation.status_message": row["statusMessage"],
            "langfuse.observation.model.name": row["model"],
            "langfuse.observation.usage_details": row["usageDetails"] or None,
            "langfuse.trace.name": row["traceName"],
            **{
                f"langfuse.observation.metadata.{key}": value
                for key, value in (row.get("metadata") or {}).items()
            },
        }
        texts = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in facts.items()
            if value not in (None, "")
        }
        attributes: list[Json] = [
            {"key": key, "value": {"stringValue": text}} for key, text in texts.items()
        ]
        spans.append(
            {
                "traceId": row["traceId"],
                "spanId": row["id"],
                **({"parentSpanId": above} if (above := row["parentObservationId"]) else {}),
                "name": row["name"],
                "kind": 1,
                "startTimeUnixNano": nanoseconds(row["startTime"]),
                "endTimeUnixNano": nanoseconds(row["endTime"]),
                "attributes": attributes,
                "status": {},
            }
        )
    scope = {"name": "langfuse-sdk", "version": "5.0.4"}
    whole = {"resource": {"attributes": []}, "scopeSpans": [{"scope": scope, "spans": spans}]}
    return {"resourceSpans": [whole]}


def nanoseconds(at: str) -> str:
    return str(round(datetime.fromisoformat(at).timestamp() * 1_000) * 1_000_000)


@pytest.fixture(params=[*MODES, *(["real"] if ADDRESS else [])])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with ExitStack() as stack:
        if request.param != "real":
            yield Place(stack.enter_context(LangfuseServer(request.param)))
            return
        real = stack.enter_context(real_client())
        yield Place(stack.enter_context(LangfuseServer()), real)


def chat(place: Place) -> None:
    """Three requests in two turns, with a call that fails, and the turns' roots."""
    recorder = Recorder(place.shown, place.session)
    before: list[Json] = []
    for number, prompt in enumerate(("Fix the cart.", "And test it.")):
        before.append(user(prompt))
        trace = f"t{number}"
        root = recorder.root(trace, prompt, f"Done {number}.", traceName="turn")
        inside = {"parentObservationId": root, "traceName": "turn"}
        made = calls(call(f"c{number}", "run_tests", folder=f"f{number}"), text="Let me see.")
        usage = {"model": "gpt-4o", "usageDetails": {"input": 10, "output": 5}}
        recorder.generation(trace, json.dumps(before), json.dumps(made), **usage, **inside)
        failed = {"level": "ERROR", "statusMessage": "tool failed"} if number else {}
        recorder.ran(trace, "run_tests", {"folder": f"f{number}"}, "1 failed", **failed, **inside)
        before += [made, tool(f"c{number}", "1 failed")]
        answer = says(f"Done {number}.")
        recorder.generation(trace, json.dumps(before), json.dumps(answer), **usage, **inside)
        before.append(answer)


def expected(place: Place, fill: Callable[[Place], None]) -> Session:
    """The session that the reading of the plainest stand-in gives."""
    with LangfuseServer() as server:
        plain = Place(server)
        plain.session = place.session
        fill(plain)
        plain.arrive()
        return plain.fetch()


def test_a_session_is_the_same_from_every_server(place: Place) -> None:
    chat(place)
    place.arrive()
    session = place.fetch()
    assert session.turns == expected(place, chat).turns
    assert [turn.prompt for turn in session.turns] == ["Fix the cart.", "And test it."]
    found = [call for turn in session.turns for m in turn.messages for call in m.calls]
    told = [(call.result, call.status) for call in found]
    assert told == [("1 failed", "ok"), ("1 failed", "failed")]


def test_a_session_whose_id_stands_on_roots_alone_is_whole(place: Place) -> None:
    chat(place)
    for row in place.shown.observations:
        row["sessionId"] = place.session if row["isRootObservation"] else None
    place.arrive()
    assert place.fetch().turns == expected(place, chat).turns


def test_what_began_in_one_moment_is_in_the_order_of_the_conversation(place: Place) -> None:
    agent = DropIn(place.shown, place.session)
    agent.asks(user("Go."), answers=calls(call("c1", "run_tests", folder="a")))
    for number in range(1, 20):
        answers = calls(call(f"c{number + 1}", "run_tests", folder=f"f{number}"))
        agent.asks(tool(f"c{number}", f"{number} passed"), answers=answers)
    agent.asks(tool("c20", "20 passed"), answers=says("Done."))
    for row in place.shown.observations:
        row["startTime"] = row["endTime"] = place.shown.observations[0]["startTime"]
    place.arrive()
    (turn,) = place.fetch().turns
    found = [call for message in turn.messages for call in message.calls]
    assert [call.result for call in found] == [f"{number} passed" for number in range(1, 21)]


def test_a_result_of_a_megabyte_is_whole(place: Place) -> None:
    agent = DropIn(place.shown, place.session)
    agent.asks(user("Go."), answers=calls(call("c1", "run_tests", folder="a")))
    agent.asks(tool("c1", "y" * 1_000_000), answers=says("Done."))
    place.arrive()
    (turn,) = place.fetch().turns
    assert turn.messages[0].calls[0].result == "y" * 1_000_000


def test_the_plugin_s_session_is_that_of_its_transcript(place: Place, tmp_path: Path) -> None:
    log = work()
    log.session = place.session
    for record in log.records:
        record["sessionId"] = place.session
    send(log, place.shown)
    place.arrive()
    read, there = common(place.fetch()), common(replace(log.read(tmp_path), id=place.session))
    assert (read.turns, read.usage, read.problems) == (there.turns, there.usage, there.problems)
    assert read == there


def test_the_codex_plugin_s_session_is_that_of_its_rollout(place: Place, tmp_path: Path) -> None:
    test_codex_plugin.send(place.shown, "t1", session=place.session)
    place.arrive()
    there = replace(test_codex_plugin.rollout(tmp_path), id=place.session)
    assert test_codex_plugin.common(place.fetch()) == test_codex_plugin.common(there)


def test_a_listing_shows_every_session_with_all_that_it_has(place: Place) -> None:
    chat(place)
    for row in place.shown.observations:
        row["sessionId"] = place.session if row["isRootObservation"] else None
    place.arrive()
    found = Listing.between(place.client, START, START + timedelta(hours=1), {})
    alone = list_session(place.client, place.session)
    assert alone is not None
    shown = [listing.listed("", START, "") for listing in (found[place.session], alone)]
    assert shown[0] == shown[1]
    assert (shown[0].observations, shown[0].started) == (8, START + timedelta(seconds=1))


def test_nothing_is_known_of_another_session(place: Place) -> None:
    with pytest.raises(InputError, match="has nothing of it"):
        place.fetch()
    assert list_session(place.client, place.session) is None


def test_a_wrong_key_is_refused(place: Place) -> None:
    wrong = LangfuseClient(place.client.host, "pk-lf-nobody", "sk-lf-nothing")
    with pytest.raises(RequestRefusedError, match=r"401 .*[Ii]nvalid") as refused:
        list_session(wrong, place.session)
    assert "LANGFUSE_SECRET_KEY" in refused.value.next_move


def test_the_health_is_shown_to_anybody(place: Place) -> None:
    answer = httpx.get(f"{place.client.host}/api/public/health").json()
    assert answer["status"] == "OK"
    assert answer["version"].split(".")[0].isdecimal()
