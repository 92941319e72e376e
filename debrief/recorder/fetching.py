"""Records from a server, page by page: each page complete, or fetched again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO
from uuid import UUID

import msgspec
from msgspec import Struct

from debrief.recorder.client import RecorderClient, TemporaryError
from debrief.recorder.contracts import Status
from debrief.recorder.storage.rows import SessionFilter, StoredRecord
from debrief.sessions.readers.recorder.records import decode_meta

PAGE_SIZE = 200


class _Manifest(Struct, frozen=True):
    sessions: int
    lines: int
    withheld: int
    cursor: str
    reasons: list[dict[str, str]] = []


class _ManifestLine(Struct, frozen=True):
    manifest: _Manifest


_MANIFEST_LINE = msgspec.json.Decoder(_ManifestLine)


def fetch_records(
    client: RecorderClient, filters: SessionFilter, withheld: dict[str, str]
) -> Iterator[StoredRecord]:
    """Yield a server's records. One that is marked meanwhile may come twice; the later one counts.

    Args:
        client: its token has the scope ``export``.
        filters: which records.
        withheld: receives why the server withheld a record, by its id.

    Raises:
        RecorderAwayError: the server cannot be reached, or its pages break off again and again.
        RecorderRefusedError: the server refused.
    """
    statuses: tuple[Status, ...] = (filters.status,) if filters.status else ("draft", "ready")
    since = filters.since.isoformat() if filters.since else ""
    for status in statuses:
        params = {"format": "record", "manifest": "true", "limit": str(PAGE_SIZE)}
        params |= {"status": status, "taskId": filters.task_id or "", "since": since}
        sessions = PAGE_SIZE
        while sessions == PAGE_SIZE:
            with tempfile.TemporaryFile() as file:
                given = {name: value for name, value in params.items() if value}
                page = client.download("/export.jsonl", given, file, _check_page)
                file.seek(0)
                for _ in range(page.lines):
                    text = file.readline().removesuffix(b"\n")
                    yield StoredRecord(UUID(decode_meta(text).session_id), status, text)
            withheld |= {each["id"]: each["reason"] for each in page.reasons}
            sessions, params["cursor"] = page.sessions, page.cursor


def _check_page(file: IO[bytes]) -> _Manifest:
    """Return the manifest at the end of a page that is complete."""
    file.seek(0)
    last, count = b"", -1
    for line in file:
        last, count = line, count + 1
    try:
        page = _MANIFEST_LINE.decode(last).manifest
    except msgspec.DecodeError:
        raise TemporaryError("gave no whole page: the count at its end is missing") from None
    if page.lines != count or page.lines + page.withheld != page.sessions:
        raise TemporaryError(f"gave no whole page: it counts {page.lines} records and sent {count}")
    return page
