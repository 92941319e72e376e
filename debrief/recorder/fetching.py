"""Records from a server: page by page, each whole or asked for again, and kept until all are here.

A page that breaks off on the way is thrown away and fetched again from the cursor before it. What
is here already stays on the disk, so that a fetch that was ended goes on where it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING
from uuid import UUID

import msgspec
from msgspec import Struct

from debrief.digests import digest_of
from debrief.errors import InputError
from debrief.recorder.contracts import Status
from debrief.recorder.durable import locked
from debrief.recorder.encoding import MAX_BYTES
from debrief.recorder.remote import (
    BUSY,
    TOKEN,
    URL,
    Patience,
    Remote,
    ServerAwayError,
    flat,
    words_of,
)

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState

A_PAGE = 200
STATUSES: tuple[Status, ...] = ("draft", "ready")
_MOVES: Mapping[int, str] = {
    401: f"Check {TOKEN}.",
    403: f"Use a token with the scope export: {TOKEN}.",
    404: f"Check {URL}.",
}
_FOLDER = "recorder/fetched"
_LONGEST_LINE = 2 * MAX_BYTES


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
    """The records of a server, brought here before they are read. Use it as a context manager.

    Args:
        remote: the server; its token has the scope ``export``.
        home: of this machine's settings; what is fetched waits below it.
        wish: which records.
        patience: how long the server is waited for.
        tell: is told in words what another attempt is waited for with.
    """

    def __init__(
        self,
        remote: Remote,
        home: Path,
        wish: Wanted,
        patience: Patience | None = None,
        tell: Callable[[str], None] = lambda words: None,
    ) -> None:
        self.url = remote.url
        self.requests = 0
        """Sent so far."""
        self._remote = remote
        self._wish = wish
        self._patience = patience or Patience()
        self._tell = tell
        key = digest_of(self.url, wish)[:16]
        self._lock = home / _FOLDER / f"{key}.lock"
        self._exit = ExitStack()
        self._files = {
            status: home / _FOLDER / f"{key}.{status}.jsonl"
            for status in STATUSES
            if wish.status in (None, status)
        }
        self.withheld: dict[str, str] = {}
        """Why the server did not give a record out, by its id; known once all are fetched."""

    def __enter__(self) -> FetchedRecords:
        """Be the only process that fetches these records here.

        Raises:
            InputError: another one does.
        """
        mine = self._exit.enter_context(locked(self._lock))
        if not mine:
            self._exit.close()
            raise InputError(
                self.url, "is being asked for the same records already", "Wait for its end."
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

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
            while True:
                try:
                    manifest = self._page(http, status, state, kept)
                except _StaleCursorError:
                    state = _State()
                    continue
                except BaseException:
                    _cut(kept, state.size)
                    raise
                kept.flush()
                state.size, state.cursor = kept.tell(), manifest.cursor
                for told in manifest.reasons:
                    state.withheld[told.get("id", "")] = told.get("reason", "")
                _state_file(file).write_bytes(msgspec.json.encode(state))
                if manifest.sessions < A_PAGE:
                    break
        self.withheld |= state.withheld

    def _page(
        self, http: httpx.Client, status: Status, state: _State, kept: IO[bytes]
    ) -> _Manifest:
        """Write a whole page behind what is here; return its manifest."""
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
            before_sleep=self._tell_of_wait,
            reraise=True,
        )
        try:
            return retrying(self._once, http, status, state, kept)
        except (httpx.TransportError, _BrokenOffError) as error:
            raise ServerAwayError(
                self.url,
                f"gave no whole page: {error or type(error).__name__}",
                "Run the same again: it goes on where it was.",
            ) from error

    def _tell_of_wait(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        why = flat(error) or type(error).__name__
        self._tell(f"{self.url}: gave no whole page: {why}; again in {state.upcoming_sleep:.0f} s")

    def _once(
        self, http: httpx.Client, status: Status, state: _State, kept: IO[bytes]
    ) -> _Manifest:
        told = {
            "format": "record",
            "manifest": "true",
            "limit": str(A_PAGE),
            "status": status,
            "taskId": self._wish.task,
            "since": self._wish.since,
            "cursor": state.cursor,
        }
        self.requests += 1
        _cut(kept, state.size)
        asked = {name: value for name, value in told.items() if value}
        with http.stream("GET", "/export.jsonl", params=asked) as answer:
            code = answer.status_code
            if code in BUSY:
                raise _BrokenOffError(f"it answered {code}")
            if code != 200:
                answer.read()
                said = "; ".join(words_of(answer))
                if state.cursor and "cursor" in said:
                    raise _StaleCursorError
                raise InputError(self.url, f"refused ({code}): {said}", _MOVES.get(code, ""))
            last, count = None, -1
            for line in _lines(answer.iter_bytes()):
                if last is not None:
                    kept.write(last)
                last, count = line, count + 1
        try:
            manifest = _MANIFEST_LINE.decode(last or b"").manifest
        except msgspec.DecodeError:
            raise _BrokenOffError("the count at its end is missing") from None
        if manifest.lines != count or manifest.lines + manifest.withheld != manifest.sessions:
            raise _BrokenOffError(f"it counts {manifest.lines} records and sent {count}")
        return manifest


def _cut(file: IO[bytes], size: int) -> None:
    file.seek(size)
    file.truncate()


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines with their ends, one held at a time."""
    rest: list[bytes] = []
    size = 0
    for piece in pieces:
        *ended, unfinished = piece.split(b"\n")
        for line in ended:
            yield b"".join((*rest, line, b"\n"))
            rest, size = [], 0
        rest.append(unfinished)
        size += len(unfinished)
        if size > _LONGEST_LINE:
            raise _BrokenOffError("one of its lines has no end")
    if size:
        raise _BrokenOffError("its last line has no end")


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
