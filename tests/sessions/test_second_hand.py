"""Sessions that another program keeps second-hand, beside their own files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from debrief.sessions.model import Session
from debrief.sessions.sources import scan
from tests.planting import EXAMPLES
from tests.sessions.readers.content import write_records
from tests.sessions.scanned import sessions, unread

ID = "1031d227-0c67-4e17-8954-0b6e2b3322f0"
PARENT, KID = "019a0000-0000-7000-8000-000000000001", "019a0000-0000-7000-8000-000000000002"
TWIN = "its session's own file is here, which says more"


def keep(folder: Path, id: str, second: int = 0) -> Path:
    """Write what Entire keeps of a session that began in this second of a minute."""
    records = [json.loads(line) for line in EXAMPLES["entire"].read_text().splitlines()]
    for record in records:
        record["ts"] = f"2026-03-02T10:00:{second:02}Z"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata.json").write_text(json.dumps({"session_id": id}))
    return write_records(folder / "transcript.jsonl", *records)


def rollout(path: Path, id: str, parent: str = "") -> Path:
    """Write a session of Codex, or a subagent of one."""
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1}}}
    parts = [
        ("session_meta", {"id": id, "cwd": "/shop", "source": spawned if parent else "cli"}),
        ("event_msg", {"type": "user_message", "message": "Go."}),
        (
            "response_item",
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Done."}],
            },
        ),
    ]
    records = [
        {"timestamp": f"2026-03-02T10:00:0{n}Z", "type": kind, "payload": payload}
        for n, (kind, payload) in enumerate(parts)
    ]
    return write_records(path, *records)


def found_in(folder: Path) -> list[tuple[str, str, int]]:
    """Return the source, the id and the number of subagents of each session."""
    return [_facts(session) for session in sessions(scan([folder]))]


def _facts(session: Session) -> tuple[str, str, int]:
    return session.source, session.id, len(session.subagents)


def test_a_session_whose_own_file_is_here_is_read_from_that_alone(tmp_path: Path) -> None:
    keep(tmp_path / "entire" / "ab" / "0", ID)
    alone = scan([tmp_path])
    (entry,) = (entry for entry in alone.entries if entry.session_id)
    assert (entry.source, entry.own_id) == ("entire", ID)

    own = tmp_path / "projects" / "p" / "agent-transcripts" / ID
    blocks = [{"type": "text", "text": "<user_query>\nGo.\n</user_query>"}]
    write_records(own / f"{ID}.jsonl", {"role": "user", "message": {"content": blocks}})
    both = scan([tmp_path], alone.entries)
    (entry,) = (entry for entry in both.entries if entry.session_id)
    assert (entry.source, entry.session_id) == ("cursor", ID)
    (reason,) = (entry.reason for entry in both.entries if entry.source == "entire")
    assert reason == TWIN

    (own / f"{ID}.jsonl").unlink()
    again = scan([tmp_path], both.entries)
    (entry,) = (entry for entry in again.entries if entry.session_id)
    assert (entry.source, entry.own_id) == ("entire", ID)


def test_a_subagent_whose_own_file_lies_beside_is_no_session(tmp_path: Path) -> None:
    rollout(tmp_path / "ab" / "0" / "full.jsonl", PARENT)
    rollout(tmp_path / "ab" / "1" / "full.jsonl", KID, parent=PARENT)
    keep(tmp_path / "ab" / "1", KID)
    keep(tmp_path / "cd" / "0", KID)  # of another checkpoint, without the file
    assert found_in(tmp_path) == [("codex", PARENT, 1)]
    assert [row.reason for row in unread(scan([tmp_path])) if row.source] == [TWIN, TWIN]


def test_a_subagent_whose_own_file_has_its_id_in_its_name_is_no_session(tmp_path: Path) -> None:
    rollout(tmp_path / "codex" / f"rollout-2026-03-02T10-00-00-{PARENT}.jsonl", PARENT)
    rollout(tmp_path / "codex" / f"rollout-2026-03-02T10-00-00-{KID}.jsonl", KID, parent=PARENT)
    keep(tmp_path / "entire" / "ab" / "0", KID)
    assert found_in(tmp_path) == [("codex", PARENT, 1)]


def test_sessions_that_all_have_one_word_as_their_id_are_told_apart_by_their_files(
    tmp_path: Path,
) -> None:
    rollout(tmp_path / "ab" / "0" / "full.jsonl", PARENT)
    keep(tmp_path / "ab" / "0", "session", second=1)
    keep(tmp_path / "cd" / "0", "session", second=1)  # the same, of another checkpoint
    keep(tmp_path / "ef" / "0", "session", second=2)
    assert found_in(tmp_path) == [("codex", PARENT, 0), ("entire", "session", 0)]


@pytest.mark.parametrize("content", ["", '{"what": "no transcript"}\n'])
def test_a_file_beside_that_is_not_read_hides_nothing(tmp_path: Path, content: str) -> None:
    keep(tmp_path / "ab" / "0", KID)
    (tmp_path / "ab" / "0" / "full.jsonl").write_text(content)
    assert found_in(tmp_path) == [("entire", KID, 0)]


def test_what_was_left_out_for_a_file_beside_is_read_when_that_is_gone(tmp_path: Path) -> None:
    rollout(tmp_path / "ab" / "0" / "full.jsonl", PARENT)
    rollout(tmp_path / "ab" / "1" / "full.jsonl", KID, parent=PARENT)
    keep(tmp_path / "ab" / "1", KID)
    before = scan([tmp_path])
    assert [entry.session_id for entry in before.entries if entry.session_id] == [PARENT]
    shutil.rmtree(tmp_path / "ab" / "0")
    (tmp_path / "ab" / "1" / "full.jsonl").unlink()
    (left,) = sessions(scan([tmp_path], before.entries))
    assert _facts(left) == ("entire", KID, 0)
