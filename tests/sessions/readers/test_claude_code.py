"""Claude Code's files without times, without a session, of other tools, and that are gone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from debrief.keys import week_of
from debrief.sessions.readers.base import BrokenTranscript, NoSession
from debrief.sessions.readers.claude_code import READER
from debrief.sessions.readers.claude_code.content import words_of_refusal
from debrief.sessions.sources import scan
from tests.sessions.scenario import Log, read, write_lines


@pytest.mark.parametrize(
    ("name", "started"),
    [
        ("x", datetime(2022, 1, 3, tzinfo=UTC)),
        ("talk-2026-02-03", datetime(2026, 2, 3, tzinfo=UTC)),
        ("talk-2026-02-03T10-30-05", datetime(2026, 2, 3, 10, 30, 5, tzinfo=UTC)),
        ("talk-2026-02-33", datetime(2022, 1, 3, tzinfo=UTC)),
        ("019c2a8e-7000-7abc-8def-000000000000", datetime(2026, 2, 4, 21, 28, 23, 808000, UTC)),
    ],
)
def test_a_session_without_times_is_dated_by_its_name_and_by_no_copy(
    tmp_path: Path, name: str, started: datetime
) -> None:
    log = Log("One", session=name)
    del log.records[0]["timestamp"]
    path = log.write(tmp_path / f"{name}.jsonl")
    session = read(path)
    assert session.started == session.ended == started
    ((problem),) = session.problems
    assert problem.reason.startswith("no record tells its time")
    (entry,) = scan([tmp_path]).entries
    assert (entry.started, entry.week) == (started, week_of(started))


QWEN = (
    b'{"uuid":"u1","parentUuid":null,"sessionId":"s1","timestamp":"2026-03-02T09:00:00.000Z",'
    b'"type":"user","provenance":"real_user","message":{"role":"user","parts":[{"text":"Go"}]}}'
)


def test_another_tools_records_in_the_same_envelope_are_not_claimed() -> None:
    assert not READER.claims(QWEN, "a.jsonl")
    assert READER.claims(QWEN.replace(b'"parts":[{"text":"Go"}]', b'"content":"Go"'), "a.jsonl")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b'{"type":"file-history-snapshot","messageId":"m","snapshot":{}}\n',
        b'{"type":"queue-operation","operation":"enqueue","content":"x"}\n',
    ],
    ids=["empty", "blank lines", "snapshots alone", "bookkeeping alone"],
)
def test_a_file_that_never_held_a_session_is_told_from_a_broken_one(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(NoSession):
        read(path)


def test_a_file_of_prompts_that_none_can_understand_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(BrokenTranscript, match="2 prompts and answers, of which none"):
        read(write_lines(tmp_path / "x.jsonl", QWEN, QWEN.replace(b"u1", b"u2")))


def test_a_subagents_file_that_cannot_be_read_does_not_cost_the_session(tmp_path: Path) -> None:
    log = Log("Find the cart's total")
    session = read(log.write(tmp_path / "x.jsonl"), tmp_path / "agent-gone.jsonl")
    assert session.prompt_count == 1
    ((path, reason),) = [(problem.path, problem.reason) for problem in session.problems]
    assert path.endswith("agent-gone.jsonl")
    assert reason.startswith("cannot be read")


def test_what_the_program_says_of_a_refusal_is_not_the_persons() -> None:
    head = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"
    told = "The user wants to clarify these questions.\n    This means they may have more.\n\n"
    asked = f'{head}{told}    Questions asked:\n- "Which tag?"\n  '
    assert words_of_refusal(f"{asked}(No answer provided)\n") == ""
    assert words_of_refusal(f"{asked}Answer: the newest\n") == "the newest"
    assert words_of_refusal(f"{head}use pnpm") == "use pnpm"
