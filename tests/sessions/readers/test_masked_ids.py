"""Ids that another tool masked to one word lose no call and no token, and unite no sessions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.sessions.model import Message, Session, Subagent, ToolCall, Usage, calls_of
from debrief.sessions.readers.assembly import TranscriptDraft, assemble
from debrief.sessions.readers.forks import joined
from debrief.sessions.readers.patches import created
from debrief.sessions.scanning import ScanEntry, identities, with_unique_calls
from debrief.sessions.sources import scan
from tests.sessions.scenario import Log, usage

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
MASK = "REDACTED"
ANSWERS = st.sampled_from(["ok", "failed", "edited", "never"])
SESSIONS = st.lists(st.lists(ANSWERS, max_size=4), min_size=1, max_size=6)
"""A session as its messages' calls, each by what came of it."""


def masked(id: str) -> str:
    return MASK


def told(messages: list[list[str]], name: Callable[[str], str]) -> Session:
    """Make a session in which calls are parallel and each message's results come behind it."""
    draft = TranscriptDraft("a.jsonl")
    draft.id = name("session")
    timeline = draft.timeline
    timeline.prompt("Go", START)
    for number, answers in enumerate(messages):
        at = START + timedelta(minutes=number)
        draft.see(at)
        message = timeline.begin_message(name(f"m{number}"), "model", at)
        timeline.spend(Usage(number + 1, 2))
        for index, answer in enumerate(answers):
            timeline.call(message, name(f"c{number}.{index}"), "run", {"n": answer}, at)
        for index, answer in enumerate(answers):
            if answer == "never":
                break
            call = timeline.calls[name(f"c{number}.{index}")]
            edit = created("a.py", "x\n") if answer == "edited" else None
            text = f"result {number}.{index}"
            timeline.result(call, text, failed=answer == "failed", at=at, edit=edit)
    return assemble(draft, source="test", tool="test")


def without_ids(session: Session) -> list[Message]:
    def bare(call: ToolCall) -> ToolCall:
        return replace(call, id="")

    return [
        replace(message, id="", calls=tuple(map(bare, message.calls)))
        for turn in session.turns
        for message in turn.messages
    ]


def measures(session: Session) -> tuple[object, ...]:
    return session.usage, session.api_calls, session.lines_added, session.lines_removed


@given(SESSIONS)
def test_a_masked_session_is_the_same_in_all_but_its_ids(messages: list[list[str]]) -> None:
    true, hidden = told(messages, str), told(messages, masked)
    assert without_ids(hidden) == without_ids(true)
    assert measures(hidden) == measures(true)
    assert_no_id_is_used_again(hidden)


def assert_no_id_is_used_again(session: Session) -> None:
    ids = [call.id for call in calls_of(session)]
    assert len(set(ids)) == len(ids)


@given(st.lists(st.lists(st.sampled_from(["c", "c-2", "c-3", "d"]), max_size=4), max_size=5))
def test_no_two_calls_of_a_session_have_one_id_in_whatever_threads_they_are(
    threads: list[list[str]],
) -> None:
    def thread(number: int, ids: list[str]) -> Message:
        calls = [ToolCall(id=id, name="run", input=f'{{"n":{n}}}') for n, id in enumerate(ids)]
        return Message(id=f"m{number}", model="model", calls=tuple(calls))

    main = told([["ok"]], str)
    agents = [
        Subagent(id=str(number), messages=(thread(number, ids),), call_id=ids[0] if ids else "")
        for number, ids in enumerate(threads)
    ]
    session = replace(main, subagents=tuple(agents))
    unique = with_unique_calls(session)
    assert_no_id_is_used_again(unique)
    assert without_ids(unique) == without_ids(session)
    assert [call.input for call in calls_of(unique)] == [call.input for call in calls_of(session)]
    assert with_unique_calls(unique) == unique


@given(SESSIONS, st.integers(1, 5))
def test_a_copy_that_ends_earlier_adds_nothing_to_a_masked_session(
    messages: list[list[str]], kept: int
) -> None:
    whole, part = told(messages, masked), told(messages[:kept], masked)
    both = joined([part, whole])
    assert without_ids(both) == without_ids(whole)
    assert measures(both) == measures(whole)


def logged(messages: list[list[str]], hide: bool, folder: Path) -> Session:
    """Write such a session as Claude Code does, a record a block, and read it."""
    log = Log("Go")
    for number, answers in enumerate(messages):
        spent = usage(number + 1, 2, 0, 10 * number)
        said: dict[str, Any] = {"id": f"m{number}", "request": f"r{number}", "usage": spent}
        log.says(f"Step {number}.", **said)
        for index in range(len(answers)):
            block = {"type": "tool_use", "id": f"c{number}.{index}", "name": "Bash", "input": {}}
            log.says(block, **{**said, "usage": {**spent, "output_tokens": 3 + index}})
        for index, answer in enumerate(answers):
            if answer == "never":
                break
            made = {"type": "create", "filePath": "a", "content": "x", "structuredPatch": []}
            outcome = made if answer == "edited" else None
            log.result(f"c{number}.{index}", f"{index}", outcome, error=answer == "failed")
    if not hide:
        return log.read(folder / "true")
    for record in log.records:
        record["uuid"] = record["sessionId"] = MASK
        record["parentUuid"] = record["parentUuid"] and MASK
        record["message"].pop("id", None)
        if record["type"] == "assistant":
            record["message"]["id"] = record["requestId"] = MASK
        blocks = record["message"]["content"]
        for block in blocks if isinstance(blocks, list) else ():
            block.update({key: MASK for key in ("id", "tool_use_id") if key in block})
    return log.read(folder / "masked")


@given(SESSIONS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_transcript_of_claude_code_is_the_same_when_masked(
    tmp_path: Path, messages: list[list[str]]
) -> None:
    true, hidden = logged(messages, False, tmp_path), logged(messages, True, tmp_path)
    assert without_ids(hidden) == without_ids(true)
    assert measures(hidden) == measures(true)


def test_sessions_whose_ids_are_masked_stay_apart(tmp_path: Path) -> None:
    for hour in (9, 10):
        log = Log(session=MASK)
        log.user("Go", uuid=MASK, timestamp=f"2026-03-02T{hour:02}:00:00Z")
        log.says("Gone.", id=MASK, uuid=MASK, timestamp=f"2026-03-02T{hour:02}:01:00Z")
        log.write(tmp_path / f"{hour}.jsonl")
    found = scan([tmp_path])
    assert len({entry.session_id for entry in found.entries}) == 2


def test_a_name_of_two_digits_may_be_any_sessions_and_one_of_three_is_an_id() -> None:
    def shared(id: str) -> bool:
        pi = ScanEntry(source="pi", path="", own_id=id, started=START, week="2026-03-02")
        begun = (START, START + timedelta(hours=1))
        first, second = (
            replace(pi, path=f"{at}.jsonl", started=at, own_started=at) for at in begun
        )
        return not set(identities(first)).isdisjoint(identities(second))

    assert not shared("masked-name-20")
    assert shared("run-name-207")
