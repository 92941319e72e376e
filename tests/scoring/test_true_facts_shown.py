"""The checks that a model is told of, held against the raw transcripts that they come from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session
from debrief.sessions.store import sessions_in_folder
from debrief.signals.extract import session_activity

SHARED = Path(__file__).parents[3] / "shared" / "sessions" / "claude-code"


def blocks_of(path: str) -> Iterator[dict[str, Any]]:
    for line in Path(path).read_text(errors="replace").splitlines():
        try:
            content = json.loads(line)["message"]["content"]
        except (ValueError, KeyError, TypeError):
            continue
        yield from (each for each in content if isinstance(each, dict))


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def bare(text: str) -> str:
    return re.sub(r"\W+", "", re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\\n", "\n"))


def wrong_of(session: Session) -> Iterator[str]:
    used: dict[str, str] = {}
    came: dict[str, tuple[str, bool]] = {}
    for ref in session.transcripts:
        for block in blocks_of(ref.path) if Path(ref.path).suffix == ".jsonl" else ():
            if block.get("type") == "tool_use":
                used[block["id"]] = str(block["input"].get("command", ""))
            elif block.get("type") == "tool_result":
                text, failed = text_of(block.get("content")), block.get("is_error") is True
                came.setdefault(block["tool_use_id"], (text, failed))
    for run in session_activity(session).checks:
        call = run.evidence.call
        if call not in used:
            continue
        text, failed = came.get(call, ("", False))
        raw = re.match(r"(?:Error: )?Exit code (\d+)", text)
        code = int(raw[1]) if raw else None if failed else 0
        if run.exit_code not in (None, code):
            yield f"{session.id}: exit status {run.exit_code}, not {code}"
        if run.passed is False and not failed and not re.search("(?i)fail|error|panic|✗|×", text):
            yield f"{session.id}: nothing says that {run.tool} failed"
        if bare(run.evidence.quote.rstrip("…")) not in bare(text):
            yield f"{session.id}: it did not print {run.evidence.quote}"
        if bare(run.command)[:60] not in bare(used[call]):
            yield f"{session.id}: the command was not {run.command}"


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the sessions are not beside us")
def test_no_check_that_is_shown_differs_from_its_transcript() -> None:
    sessions = list(sessions_in_folder(SHARED, lambda session: session))
    assert sum(len(session_activity(session).checks) for session in sessions) > 300
    assert [wrong for session in sessions for wrong in wrong_of(session)] == []
