"""Every file of the shared collection, where it is at hand, counts as an independent count does."""

from __future__ import annotations

import csv
from pathlib import Path

from debrief.sessions.model import Session, Usage, messages_of
from debrief.sessions.readers.base import BrokenTranscript, NoSession
from tests.sessions.scenario import Log, read, usage

COLLECTION = Path(__file__).parents[4] / "shared" / "sessions"
TABLE = COLLECTION / "expected_claude.tsv"
FIELDS = (
    *("human_prompts", "slash_commands", "api_calls", "input", "output"),
    *("cache_create", "cache_read", "lines_added", "lines_removed"),
)

WITHOUT_IDS = {
    "claude-normalization-main.jsonl",
    "session-eea11111-2222-3333-4444-555555555555.jsonl",
    "multi_turn.jsonl",
    "ongoing_pending_task.jsonl",
    "team-parent.jsonl",
    "test-transcript.jsonl",
}
"""Files whose messages have no ids: the table counts all of one file's as one."""


def counted(session: Session) -> dict[str, int]:
    """Count as the table does, which leaves three things out that a session rightly has.

    It counts no prompt that exists in the queue alone, no message that only reports of progress
    tell, and no edit whose result has no object.
    """
    told_by_progress = [
        message
        for agent in session.subagents
        if agent.place == "progress"
        for message in agent.messages
    ]
    tokens = session.usage
    for message in told_by_progress:
        used = message.usage
        tokens += Usage(-used.input, -used.output, -used.cache_write, -used.cache_read)
    calls = [
        call for message in messages_of(session) for call in message.calls if not call.estimated
    ]
    return {
        "records": session.transcripts[0].records,
        "human_prompts": sum(turn.origin == "prompt" for turn in session.turns),
        "slash_commands": session.slash_commands,
        "api_calls": session.api_calls
        - sum(message.usage != Usage() for message in told_by_progress),
        "input": tokens.input,
        "output": tokens.output,
        "cache_create": tokens.cache_write,
        "cache_read": tokens.cache_read,
        "lines_added": sum(call.added for call in calls),
        "lines_removed": sum(call.removed for call in calls),
    }


def differences(path: Path, row: dict[str, str]) -> dict[str, tuple[int, int]]:
    expected = {field: int(row[field]) for field in ("records", *FIELDS)}
    try:
        found = counted(read(path))
    except (BrokenTranscript, NoSession):
        found = {**dict.fromkeys(FIELDS, 0), "records": expected["records"]}
    return {
        field: (expected[field], found[field])
        for field in expected
        if found[field] != expected[field]
        and not (path.name in WITHOUT_IDS and found[field] > expected[field])
    }


def test_every_file_of_the_collection_equals_the_table_in_every_field() -> None:
    rows = []
    if TABLE.is_file():
        with TABLE.open() as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
    wrong = {row["path"]: differences(COLLECTION / row["path"], row) for row in rows}
    assert {path: found for path, found in wrong.items() if found} == {}


def test_the_comparison_tells_a_wrong_count(tmp_path: Path) -> None:
    log = Log("Go")
    log.says("Done", usage=usage(1, 2, 3, 4))
    row = dict.fromkeys(FIELDS, "0") | {"records": "2", "human_prompts": "1", "api_calls": "1"}
    row |= {"input": "1", "output": "2", "cache_create": "3", "cache_read": "5"}
    assert differences(log.write(tmp_path / "x.jsonl"), row) == {"cache_read": (5, 4)}
