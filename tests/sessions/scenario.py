"""Transcripts of Claude Code as tests need them: written record by record, awkward where told."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from debrief.sessions.model import Session
from debrief.sessions.readers.base import Transcript
from debrief.sessions.readers.claude_code import READER

MONDAY = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
SESSION = "0a1b2c3d-0000-4000-8000-000000000001"


def usage(input: int, output: int, write: int = 0, read: int = 0) -> dict[str, int]:
    return {
        "input_tokens": input,
        "output_tokens": output,
        "cache_creation_input_tokens": write,
        "cache_read_input_tokens": read,
    }


class Log:
    """One file of a session; every record follows the one before, a minute later.

    It begins with a person's prompt, where one is given.
    """

    def __init__(
        self,
        prompt: str = "",
        *,
        session: str = SESSION,
        started: datetime = MONDAY,
        cwd: str = "/home/ann/shop",
    ) -> None:
        self.session = session
        self.cwd = cwd
        self.records: list[Any] = []
        self.last: str | None = None
        self._at = started
        if prompt:
            self.user(prompt)

    def add(self, type: str, **fields: Any) -> dict[str, Any]:
        number = len(self.records)
        record = {
            "parentUuid": self.last,
            "isSidechain": False,
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.40",
            "gitBranch": "main",
            "type": type,
            "uuid": str(uuid5(NAMESPACE_URL, f"{self.session}/{number}")),
            "timestamp": (self._at + timedelta(minutes=number)).isoformat().replace("+00:00", "Z"),
            **fields,
        }
        self.last = record["uuid"]
        self.records.append(record)
        return record

    def user(self, content: Any, **fields: Any) -> dict[str, Any]:
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def says(
        self,
        *blocks: Any,
        id: str | None = None,
        request: str | None = None,
        usage: dict[str, Any] | None = None,
        model: str = "claude-opus-4-5",
        **fields: Any,
    ) -> dict[str, Any]:
        id = id or f"msg_{len(self.records)}"
        content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
        message: dict[str, Any] = {
            "id": id,
            "role": "assistant",
            "model": model,
            "content": content,
        }
        if usage is not None:
            message["usage"] = usage
        return self.add("assistant", message=message, requestId=request or f"req_{id}", **fields)

    def calls(self, id: str, name: str, **given: Any) -> dict[str, Any]:
        return self.says({"type": "tool_use", "id": id, "name": name, "input": given})

    def result(
        self, id: str, content: Any, outcome: Any = None, error: bool | None = None, **fields: Any
    ) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": id, "content": content}
        if error is not None:
            block["is_error"] = error
        if outcome is not None:
            fields["toolUseResult"] = outcome
        return self.user([block], **fields)

    def lines(self) -> list[bytes]:
        return [json.dumps(record, ensure_ascii=False).encode() for record in self.records]

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(line + b"\n" for line in self.lines()))
        return path

    def read(self, folder: Path) -> Session:
        return read(self.write(folder / f"{self.session}.jsonl"))


def read(path: Path, *companions: Path) -> Session:
    return READER.read(
        Transcript(
            source="claude-code",
            path=str(path),
            companions=tuple(str(companion) for companion in companions),
        )
    )


def hunk(*lines: str) -> dict[str, Any]:
    return {
        "oldStart": 1,
        "oldLines": sum(line[0] in " -" for line in lines),
        "newStart": 1,
        "newLines": sum(line[0] in " +" for line in lines),
        "lines": list(lines),
    }


def write_lines(path: Path, *lines: bytes, end: bytes = b"\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(lines) + end)
    return path
