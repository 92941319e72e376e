"""Records from a server, fetched in pages and kept on disk until all are here.

A page is complete only with the manifest at its end; one that breaks off is fetched again from
the cursor before it. Complete pages stay on disk, so an interrupted fetch continues where it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO
from uuid import UUID

import msgspec
from msgspec import Struct

from debrief.digests import digest_of
from debrief.errors import InputError
from debrief.files import locked
from debrief.recorder.client import (
    RecorderAwayError,
    RecorderClient,
    RecorderRefusedError,
    TemporaryError,
)
from debrief.recorder.contracts import Status

PAGE_SIZE = 200
_FOLDER = "recorder/fetched"


class FetchedRecord(Struct, frozen=True, gc=False):
    """A record of a server."""

    id: UUID
    status: Status
    text: bytes


class RecordQuery(Struct, frozen=True, kw_only=True):
    """Which records are fetched."""

    task: str = ""
    """Empty: every task."""
    status: Status | None = None
    """None: any."""
    since: str = ""
    """ISO time with its zone: stopped then or later; empty: all."""


class _Manifest(Struct, frozen=True):
    sessions: int
    lines: int
    withheld: int
    cursor: str
    reasons: list[dict[str, str]] = []


class _ManifestLine(Struct, frozen=True):
    manifest: _Manifest


class _Progress(Struct):
    """How far a fetch has come."""

    cursor: str = ""
    size: int = 0
    """Bytes of complete pages."""
    withheld: dict[str, str] = {}
    """Why the server withheld a record, by its id."""


class _SessionId(Struct, frozen=True, rename="camel"):
    session_id: str


class _RecordId(Struct, frozen=True):
    meta: _SessionId


_RECORD = msgspec.json.Decoder(_RecordId)
_MANIFEST_LINE = msgspec.json.Decoder(_ManifestLine)


class FetchedRecords:
    """The records of a server, fetched before they are read. Use it as a context manager.

    Args:
        client: of the server; its token has the scope ``export``.
        home: of this machine's settings; fetched records are kept below it.
        query: which records.
    """

    def __init__(self, client: RecorderClient, home: Path, query: RecordQuery) -> None:
        self._client = client
        self._query = query
        key = digest_of(client.url, query)[:16]
        self._lock = home / _FOLDER / f"{key}.lock"
        self._exit = ExitStack()
        statuses: tuple[Status, ...] = (query.status,) if query.status else ("draft", "ready")
        self._files = {status: home / _FOLDER / f"{key}.{status}.jsonl" for status in statuses}
        self.withheld: dict[str, str] = {}
        """Why the server withheld a record, by its id; complete once all are fetched."""

    def __enter__(self) -> FetchedRecords:
        """Lock the records against other processes of this machine.

        Raises:
            InputError: another one fetches them.
        """
        if not self._exit.enter_context(locked(self._lock)):
            self._exit.close()
            raise InputError(
                self._client.url,
                "is being asked for the same records already",
                "Wait for its end.",
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def fetch(self) -> None:
        """Fetch all records that are not here yet.

        Raises:
            RecorderAwayError: the server cannot be reached, or its pages break off again and
                again; complete pages are kept.
            RecorderRefusedError: the server refused.
        """
        for status, path in self._files.items():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
                progress = _read_progress(path)
                try:
                    self._fetch(status, path, file, progress)
                except RecorderRefusedError as error:
                    if not progress.cursor or "cursor" not in error.reason:
                        raise
                    # The server's history is another one by now.
                    progress = _Progress()
                    self._fetch(status, path, file, progress)
            self.withheld |= progress.withheld

    def __iter__(self) -> Iterator[FetchedRecord]:
        """Yield the fetched records, one at a time."""
        for status, path in self._files.items():
            if path.exists():
                with path.open("rb") as lines:
                    for line in lines:
                        text = line.removesuffix(b"\n")
                        id = UUID(_RECORD.decode(text).meta.session_id)
                        yield FetchedRecord(id, status, text)

    def forget(self) -> None:
        """Remove what was fetched."""
        for path in self._files.values():
            path.unlink(missing_ok=True)
            _progress_file(path).unlink(missing_ok=True)

    def _fetch(self, status: Status, path: Path, file: IO[bytes], progress: _Progress) -> None:
        sessions = PAGE_SIZE
        while sessions == PAGE_SIZE:
            params = {
                "format": "record",
                "manifest": "true",
                "limit": str(PAGE_SIZE),
                "status": status,
                "taskId": self._query.task,
                "since": self._query.since,
                "cursor": progress.cursor,
            }
            given = {name: value for name, value in params.items() if value}
            file.seek(progress.size)
            try:
                manifest = self._client.download(
                    "/export.jsonl", given, file, lambda: _take_manifest(file, progress.size)
                )
            except BaseException as error:
                file.truncate(progress.size)
                if isinstance(error, RecorderAwayError):
                    move = "Run the same again: it continues where it was."
                    raise RecorderAwayError(error.culprit, error.reason, move) from error
                raise
            sessions = manifest.sessions
            progress.size, progress.cursor = file.tell(), manifest.cursor
            progress.withheld |= {one["id"]: one["reason"] for one in manifest.reasons}
            _progress_file(path).write_bytes(msgspec.json.encode(progress))


def _take_manifest(file: IO[bytes], start: int) -> _Manifest:
    """Cut the manifest off the page that begins at ``start``; make sure that the page is whole."""
    file.seek(start)
    last, count = b"", -1
    for line in file:
        last, count = line, count + 1
    try:
        manifest = _MANIFEST_LINE.decode(last).manifest
    except msgspec.DecodeError:
        raise TemporaryError("gave no whole page: the count at its end is missing") from None
    if manifest.lines != count or manifest.lines + manifest.withheld != manifest.sessions:
        raise TemporaryError(
            f"gave no whole page: it counts {manifest.lines} records and sent {count}"
        )
    file.truncate(file.seek(-len(last), os.SEEK_END))
    file.flush()
    return manifest


def _read_progress(path: Path) -> _Progress:
    try:
        progress = msgspec.json.decode(_progress_file(path).read_bytes(), type=_Progress)
    except (OSError, msgspec.DecodeError):
        return _Progress()
    return progress if path.stat().st_size >= progress.size else _Progress()


def _progress_file(path: Path) -> Path:
    return path.with_suffix(".state")
