"""Records from a server: page by page, each whole or asked for again, and kept until all are here.

A page that breaks off on the way is thrown away and fetched again from the cursor before it. What
is here already stays on the disk, so that a fetch that was ended goes on where it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec
from msgspec import Struct

from debrief.digests import digest_of
from debrief.errors import InputError
from debrief.recorder.contracts import Status
from debrief.recorder.remote import (
    BUSY,
    TOKEN,
    URL,
    Patience,
    Remote,
    ServerAwayError,
    words_of,
)

if TYPE_CHECKING:
    import httpx

A_PAGE = 200
STATUSES: tuple[Status, ...] = ("draft", "ready")
_MOVES: Mapping[int, str] = {
    401: f"Check {TOKEN}.",
    403: f"Use a token with the scope export: {TOKEN}.",
    404: f"Check {URL}.",
}
_FOLDER = "recorder/fetched"


class FetchedRecord(Struct, frozen=True, gc=False):
    """A record as a server gave it out."""

    cursor: str
    id: UUID
    status: Status
    text: bytes


class Wanted(Struct, frozen=True, kw_only=True):
    """Which records are meant."""

    task: str = ""
    """Empty: every task."""
    status: Status | None = None
    """None: any."""
    since: str = ""
    """ISO time with its zone: stopped then or later; empty: from the first one on."""


class _Manifest(Struct, frozen=True):
    sessions: int
    lines: int
    withheld: int
    cursor: str
    reasons: list[dict[str, str]] = []


class _ManifestLine(Struct, frozen=True):
    manifest: _Manifest


class _State(Struct):
    """How far a fetch has come."""

    cursor: str = ""
    size: int = 0
    """Bytes that are here."""
    whole: bool = False
    withheld: dict[str, str] = {}
    """Why the server did not give a record out, by its id."""


class _Identity(Struct, frozen=True, rename="camel"):
    session_id: str


class _Identified(Struct, frozen=True):
    meta: _Identity


_RECORD = msgspec.json.Decoder(_Identified)
_MANIFEST_LINE = msgspec.json.Decoder(_ManifestLine)


class FetchedRecords:
    """The records of a server, brought here before they are read.

    Args:
        remote: the server; its token has the scope ``export``.
        home: of this machine's settings; what is fetched waits below it.
        wish: which records.
        patience: how long the server is waited for.
    """

    def __init__(
        self, remote: Remote, home: Path, wish: Wanted, patience: Patience | None = None
    ) -> None:
        self.url = remote.url
        self.requests = 0
        """Sent so far."""
        self._remote = remote
        self._wish = wish
        self._patience = patience or Patience()
        key = digest_of(self.url, wish)[:16]
        self._files = {
            status: home / _FOLDER / f"{key}.{status}.jsonl"
            for status in STATUSES
            if wish.status in (None, status)
        }
        self.withheld: dict[str, str] = {}
        """Why the server did not give a record out, by its id; known once all are fetched."""

    def fetch(self) -> None:
        """Bring all records here that are not here yet.

        Raises:
            ServerAwayError: the server cannot be reached, or breaks off again and again; what
                came is kept.
            InputError: it refused.
        """
        with self._remote.client(self._patience.timeout) as http:
            for status, file in self._files.items():
                self._fetch(http, status, file)

    def __iter__(self) -> Iterator[FetchedRecord]:
        """Yield the fetched records, one held at a time."""
        for status, file in self._files.items():
            if not file.exists():
                continue
            with file.open("rb") as lines:
                for line in lines:
                    text = line.removesuffix(b"\n")
                    yield FetchedRecord(
                        "", UUID(_RECORD.decode(text).meta.session_id), status, text
                    )

    def forget(self) -> None:
        """Remove what was fetched."""
        for file in self._files.values():
            file.unlink(missing_ok=True)
            _state_file(file).unlink(missing_ok=True)

    def _fetch(self, http: httpx.Client, status: Status, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = _read_state(file)
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(handle, "r+b") as kept:
            kept.truncate(state.size)
            kept.seek(state.size)
            while True:
                try:
                    lines, manifest = self._page(http, status, state.cursor)
                except _StaleCursorError:
                    state = _State()
                    kept.truncate(0)
                    kept.seek(0)
                    continue
                for line in lines:
                    kept.write(line + b"\n")
                kept.flush()
                state.size, state.cursor = kept.tell(), manifest.cursor
                for told in manifest.reasons:
                    state.withheld[told.get("id", "")] = told.get("reason", "")
                _state_file(file).write_bytes(msgspec.json.encode(state))
                if manifest.sessions < A_PAGE:
                    break
        self.withheld |= state.withheld

    def _page(
        self, http: httpx.Client, status: Status, cursor: str
    ) -> tuple[list[bytes], _Manifest]:
        """Return a page, whole."""
        import httpx
        from tenacity import (
            Retrying,
            retry_if_exception_type,
            stop_after_attempt,
            stop_after_delay,
            wait_exponential,
        )

        patience = self._patience
        retrying = Retrying(
            retry=retry_if_exception_type((httpx.TransportError, _BrokenOffError)),
            stop=stop_after_attempt(patience.attempts) | stop_after_delay(patience.in_all),
            wait=wait_exponential(multiplier=patience.first_wait, max=patience.longest_wait),
            sleep=patience.sleep,
            reraise=True,
        )
        try:
            return retrying(self._once, http, status, cursor)
        except (httpx.TransportError, _BrokenOffError) as error:
            raise ServerAwayError(
                self.url,
                f"gave no whole page: {error or type(error).__name__}",
                "Run the same again: it goes on where it was.",
            ) from error

    def _once(
        self, http: httpx.Client, status: Status, cursor: str
    ) -> tuple[list[bytes], _Manifest]:
        told = {
            "format": "record",
            "manifest": "true",
            "limit": str(A_PAGE),
            "status": status,
            "taskId": self._wish.task,
            "since": self._wish.since,
            "cursor": cursor,
        }
        self.requests += 1
        answer = http.get("/export.jsonl", params={k: v for k, v in told.items() if v})
        code = answer.status_code
        if code in BUSY:
            raise _BrokenOffError(f"it answered {code}")
        if code != 200:
            said = "; ".join(words_of(answer))
            if cursor and "cursor" in said:
                raise _StaleCursorError
            raise InputError(self.url, f"refused ({code}): {said}", _MOVES.get(code, ""))
        lines = answer.content.split(b"\n")
        if lines.pop() or not lines:
            raise _BrokenOffError("its last line has no end")
        try:
            manifest = _MANIFEST_LINE.decode(lines.pop()).manifest
        except msgspec.DecodeError:
            raise _BrokenOffError("the count at its end is missing") from None
        if manifest.lines != len(lines) or manifest.lines + manifest.withheld != manifest.sessions:
            raise _BrokenOffError(f"it counts {manifest.lines} records and sent {len(lines)}")
        return lines, manifest


class _BrokenOffError(Exception):
    """A page did not come whole; another try may bring it."""


class _StaleCursorError(Exception):
    """The server's history is another one by now."""


def _read_state(file: Path) -> _State:
    try:
        state = msgspec.json.decode(_state_file(file).read_bytes(), type=_State)
        return state if file.exists() and file.stat().st_size >= state.size else _State()
    except (OSError, msgspec.DecodeError):
        return _State()


def _state_file(file: Path) -> Path:
    return file.with_suffix(".state")
