"""What the lake keeps of a week's sessions from one reading to the next."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from debrief.lake import Lake
from debrief.redaction.redactor import Redactor
from debrief.sessions.model import Session
from debrief.sessions.store import SESSIONS_TABLE, scan_into, store_week

WEEK = "2026-09-07"
REDACTOR = Redactor(b"a key of thirty-two bytes, or so.")


def transcript(folder: Path, number: int, prompt: str = "Make the retries stop") -> Path:
    """Write a Claude Code transcript of one prompt and one answer."""
    session_id = f"00000000-0000-4000-8000-{number:012d}"
    shared = {"sessionId": session_id, "cwd": "/home/sam/shop", "version": "2.0.1"}
    at = f"2026-09-{7 + number:02}T10:00"
    records = [
        {
            **shared,
            "type": "user",
            "uuid": f"u{number}",
            "timestamp": f"{at}:00Z",
            "message": {"role": "user", "content": prompt},
        },
        {
            **shared,
            "type": "assistant",
            "uuid": f"a{number}",
            "timestamp": f"{at}:09Z",
            "message": {
                "id": f"m{number}",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": "They stop after three now."}],
                "usage": {"input_tokens": 9, "output_tokens": 9},
            },
        },
    ]
    path = folder / "-home-sam-shop" / f"{session_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "projects"


def read_again(lake: Lake, folder: Path) -> list[Session]:
    store_week(lake, scan_into(lake, [folder]), WEEK, REDACTOR)
    return stored(lake)


def stored(lake: Lake) -> list[Session]:
    return list(lake.read(SESSIONS_TABLE, WEEK, Session))


def numbers(sessions: list[Session]) -> Iterator[int]:
    return (int(session.id[-12:]) for session in sessions)


def test_a_session_outlasts_its_transcript_in_its_place(lake: Lake, folder: Path) -> None:
    paths = [transcript(folder, number) for number in (0, 1, 2)]
    before = read_again(lake, folder)
    paths[1].unlink()
    transcript(folder, 3)
    after = read_again(lake, folder)
    assert list(numbers(after)) == [0, 1, 2, 3]
    assert after[:3] == before


def test_a_week_whose_transcripts_are_all_gone_keeps_its_rows(lake: Lake, folder: Path) -> None:
    transcript(folder, 0)
    before = read_again(lake, folder)
    digest = lake.stamp(SESSIONS_TABLE, WEEK)
    shutil.rmtree(folder)
    assert read_again(lake, folder) == before
    after = lake.stamp(SESSIONS_TABLE, WEEK)
    assert digest is not None
    assert after is not None
    assert after.digest == digest.digest


def test_a_transcript_that_changed_replaces_its_session(lake: Lake, folder: Path) -> None:
    transcript(folder, 0)
    read_again(lake, folder)
    transcript(folder, 0, "Make the retries wait longer each time")
    (session,) = read_again(lake, folder)
    assert session.turns[0].prompt == "Make the retries wait longer each time"


def test_a_transcript_that_moved_is_the_same_session(lake: Lake, folder: Path) -> None:
    path = transcript(folder, 0)
    read_again(lake, folder)
    moved = folder / "-home-sam-store" / path.name
    moved.parent.mkdir()
    path.rename(moved)
    (session,) = read_again(lake, folder)
    assert session.transcripts[0].path == str(moved)


def test_a_transcript_that_can_no_longer_be_read_is_told_and_not_kept_twice(
    lake: Lake, folder: Path
) -> None:
    path = transcript(folder, 0)
    transcript(folder, 1)
    read_again(lake, folder)
    path.write_text("{}\n")
    assert list(numbers(read_again(lake, folder))) == [1]
