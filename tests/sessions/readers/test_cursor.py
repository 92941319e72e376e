"""Cursor's agent transcripts, and what only their paths say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session
from debrief.sessions.readers import READERS
from debrief.sessions.readers.files import walk
from tests.sessions.readers.content import calls_of, told_in, write_records

ID, CHILD = "1031d227-0c67-4e17-8954-0b6e2b3322f0", "59c0d1aa-1c67-4e17-8954-0b6e2b3322f1"
WHEN = "<timestamp>Friday, May 8, 2026, 6:05 AM (UTC+5:30)</timestamp>\n"


def asked(words: str, before: str = WHEN) -> dict[str, Any]:
    text = f"{before}<user_query>{words}</user_query>"
    return {"role": "user", "message": {"content": [{"type": "text", "text": text}]}}


def called(name: str, given: Any, text: str = "") -> dict[str, Any]:
    blocks = [{"type": "text", "text": text}, {"type": "tool_use", "name": name, "input": given}]
    return {"role": "assistant", "message": {"content": blocks}}


def written(home: Path, *records: dict[str, Any], file: str = f"{ID}.jsonl") -> None:
    place = home / "projects" / "home-ann-my-shop" / "agent-transcripts" / ID
    write_records(place / file, *records)


def read(home: Path) -> Session:
    (transcript,) = READERS["cursor"].find(walk(home))
    return READERS["cursor"].read(transcript)


def test_the_folder_is_one_that_calls_name_and_the_project_is_named_after(tmp_path: Path) -> None:
    elsewhere = called("Read", {"path": "/home/bob/other.py"})
    written(tmp_path, asked("\nGo.\n"), elsewhere, called("Read", {"path": "src/a.py"}))
    assert read(tmp_path).cwd == ""
    here = called("Read", {"path": "/home/ann/my_shop/src/a.py"})
    endless = called("Read", {"path": "/a" * 500_000})
    written(tmp_path, asked("\nGo.\n"), elsewhere, endless, here)
    session = read(tmp_path)
    assert (session.id, session.cwd, session.repository) == (ID, "/home/ann/my_shop", "my_shop")


def test_a_subagents_transcript_is_its_sessions_and_its_call_the_one_that_asked(
    tmp_path: Path,
) -> None:
    first = called("Task", {"prompt": "Count the files.", "subagent_type": "explore"})
    second = called("Task", {"prompt": "Review.", "subagent_type": "review"})
    written(tmp_path, asked("\nGo.\n"), first, second)
    answer = called("Shell", {"command": "ls"}, "I look.")
    child = f"subagents/{CHILD}.jsonl"
    written(tmp_path, asked("\nReview.\n", before=""), answer, file=child)
    (agent,) = read(tmp_path).subagents
    assert (agent.id, agent.type, agent.prompt) == (CHILD, "review", "Review.")
    assert agent.call_id == "message-2-0"
    (tmp_path / "projects/home-ann-my-shop/agent-transcripts" / ID / f"{ID}.jsonl").unlink()
    alone = read(tmp_path)
    assert [turn.number for turn in alone.turns] == [0]


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("Friday, May 8, 2026, 6:05 AM (UTC+5:30)", "2026-05-08T00:35:00+00:00"),
        ("Monday, Jun 1, 2026, 12:09 AM (UTC-7)", "2026-06-01T07:09:00+00:00"),
        ("Monday, Jun 1, 2026, 12:09\u202fPM (UTC)", "2026-06-01T12:09:00+00:00"),
    ],
)
def test_prompts_have_their_times_in_any_zone(stamp: str, expected: str, tmp_path: Path) -> None:
    written(tmp_path, asked("\nGo.\n", before=f"<timestamp>{stamp}</timestamp>\n"))
    assert read(tmp_path).started.isoformat() == expected


@pytest.mark.parametrize(
    "stamp", ["yesterday", "Friday, Xxx 8, 2026, 6:05 AM", "Friday, May 88, 2026, 6:05 AM"]
)
def test_a_time_that_is_none_costs_nothing_else(stamp: str, tmp_path: Path) -> None:
    written(tmp_path, asked("\nGo.\n", before=f"<timestamp>{stamp}</timestamp>\n"))
    session = read(tmp_path)
    assert [(turn.prompt, turn.at) for turn in session.turns] == [("Go.", None)]


def test_only_what_stands_before_the_query_is_cursors(tmp_path: Path) -> None:
    pasted = "Why <user_query>x</user_query> and <timestamp>?"
    notice = "Briefly inform the user about the task result."
    written(tmp_path, asked(f"\n{pasted}\n"), asked(notice), called("Shell", {"command": "ls"}))
    session = read(tmp_path)
    assert [turn.prompt for turn in session.turns] == [pasted]
    assert told_in(session) == [("task", notice)]


def test_calls_have_no_results_and_their_edits_are_estimates(tmp_path: Path) -> None:
    edits = [
        called("Write", {"path": "/a.py", "contents": "x\ny\n"}),
        called(
            "EditNotebook", {"target_notebook": "/n.ipynb", "old_string": "", "new_string": "z"}
        ),
        called("Grep path\n/home", {"pattern": "x"}),
    ]
    session_records = [asked("\nGo.\n"), *edits]
    written(tmp_path, *session_records)
    session = read(tmp_path)
    calls = calls_of(session)
    assert [(c.name, c.status, c.result, c.added, c.estimated) for c in calls] == [
        ("Write", "unanswered", None, 2, True),
        ("EditNotebook", "unanswered", None, 1, True),
        ("Grep", "unanswered", None, 0, False),
    ]
    assert session.lines_added == 3


def test_a_stopped_turn_is_an_interruption_and_turn_marks_alone_are_no_session(
    tmp_path: Path,
) -> None:
    stopped = {"type": "turn_ended", "status": "aborted", "error": "User aborted manually."}
    failed = {"type": "turn_ended", "status": "error", "error": "the model went away"}
    written(tmp_path, asked("\nGo.\n"), failed, stopped)
    (turn,) = read(tmp_path).turns
    assert [deed.kind for deed in turn.interventions] == ["interruption"]
    written(tmp_path, stopped)
    (transcript,) = READERS["cursor"].find(walk(tmp_path))
    assert READERS["cursor"].peek(transcript) is None
