"""Records on their way from a request to the database: those that come together go together.

One thread gathers: it checks what comes for as long as an earlier group is being stored, then
stores all of it in one transaction, while the next one gathers. So a busy service makes few
commits, and an idle one keeps nobody waiting.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Condition
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from debrief.errors import DebriefError
from debrief.recorder.service.work import busy
from debrief.recorder.storage.groups import Arrival

if TYPE_CHECKING:
    from debrief.recorder.contracts import StoredSession
    from debrief.recorder.ingest import Ingest
    from debrief.recorder.service.limits import Limits
    from debrief.recorder.storage.groups import Outcome
    from debrief.recorder.storage.store import RecordStore

LARGE = 1 << 18
"""Bytes of a body that does not wait for others, nor they for it."""
_MOST_TOGETHER, _MOST_BYTES = 64, 16 * LARGE
"""A group that has as many is stored without waiting for more."""
_LONGEST = 0.25
"""Seconds after which it is full however little it has, since some records are slow to check."""
_PATIENCE = 0.05
"""Seconds that a group waits for the one before it."""
_LINGER = 0.003
"""Seconds that it waits for the next record while it has fewer than the group before it."""
_AT_ONCE = 4
"""Groups that are stored at once, when the database is slow."""


class _Upload(Struct, eq=False):
    """A body that waits for its answer."""

    secret: str
    body: bytes
    answer: asyncio.Future[Outcome]


class Uploads:
    """Checks and stores small records, in groups of those that wait.

    Used from one event loop.

    Args:
        store: where they go.
        ingest: what each goes through before.
        limits: how many may wait, and how long.
    """

    def __init__(self, store: RecordStore, ingest: Ingest, limits: Limits) -> None:
        self._store = store
        self._ingest = ingest
        self._most = limits.waiting
        self._seconds = limits.request_seconds
        self._pool = ThreadPoolExecutor(_AT_ONCE + 1, thread_name_prefix="uploads")
        self._waiting: deque[_Upload] = deque()
        self._changed = Condition()
        self._gathering = False
        self._storing = 0
        self._lately = 1

    async def store(self, secret: str, body: bytes) -> StoredSession | None:
        """Check a record and store it for who has a token.

        Returns:
            The session; None when the token may not write, or not any more.

        Raises:
            RefusedError: 503, when too many wait already or the time is over. A record that is
                being stored then is stored all the same.
            DebriefError: as of ``Ingest.check`` and ``RecordStore.add_session_by``.
        """
        loop = asyncio.get_running_loop()
        upload = _Upload(secret, body, loop.create_future())
        with self._changed:
            if len(self._waiting) >= self._most:
                raise busy("too many requests wait for the database")
            self._waiting.append(upload)
            if self._gathering:
                self._changed.notify()
            else:
                self._begin(loop)
        late = busy(f"it took longer than {self._seconds:g} seconds")
        timer = loop.call_later(self._seconds, _answer, [(upload, late)])
        try:
            outcome = await upload.answer
        finally:
            timer.cancel()
        if isinstance(outcome, DebriefError):
            raise outcome
        return outcome

    def close(self) -> None:
        """Let go of the threads, once they are done."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._gathering = True
        self._pool.submit(self._group, loop)

    def _group(self, loop: asyncio.AbstractEventLoop) -> None:
        group: list[tuple[_Upload, Arrival]] = []
        taken = size = 0
        over = monotonic() + _LONGEST
        while upload := self._next(loop, taken, size, over):
            taken += 1
            size += len(upload.body)
            try:
                group.append((upload, Arrival(self._ingest.check(upload.body), upload.secret)))
            except Exception as error:
                _tell(loop, [(upload, self._refusal(upload, error))])
        try:
            _tell(loop, self._stored(group))
        finally:
            with self._changed:
                self._storing -= 1
                self._changed.notify()

    def _next(
        self, loop: asyncio.AbstractEventLoop, taken: int, size: int, over: float
    ) -> _Upload | None:
        """Return what a group takes next; None when it is to be stored now, and counted so."""
        began = monotonic()
        full = taken >= _MOST_TOGETHER or size >= _MOST_BYTES or began > over
        with self._changed:
            while True:
                while self._waiting and not full:
                    upload = self._waiting.popleft()
                    if not upload.answer.done():
                        return upload
                waited = monotonic() - began
                if self._storing:
                    patience, most = 0.0 if full else _PATIENCE, _AT_ONCE
                else:
                    patience, most = 0.0 if full or taken >= self._lately else _LINGER, 1
                if waited >= patience and self._storing < most:
                    break
                self._changed.wait(patience - waited if patience > waited else _PATIENCE)
            self._storing += 1
            self._lately = taken
            self._gathering = False
            if self._waiting:
                self._begin(loop)
            return None

    def _stored(
        self, group: Sequence[tuple[_Upload, Arrival]]
    ) -> list[tuple[_Upload, Outcome | Exception]]:
        if not group:
            return []
        try:
            outcomes = self._store.add_sessions([arrival for _, arrival in group])
        except Exception as error:
            return [(upload, error) for upload, _ in group]
        return [(upload, outcome) for (upload, _), outcome in zip(group, outcomes, strict=True)]

    def _refusal(self, upload: _Upload, error: Exception) -> Exception | None:
        """Tell what is wrong with a record only to who may still write."""
        if not isinstance(error, DebriefError):
            return error
        try:
            return error if self._store.find_token(upload.secret) is not None else None
        except DebriefError as other:
            return other


def _tell(
    loop: asyncio.AbstractEventLoop, answers: Sequence[tuple[_Upload, Outcome | Exception]]
) -> None:
    # The loop may be over, and with it whoever waits for an answer.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_answer, answers)


def _answer(answers: Iterable[tuple[_Upload, Outcome | Exception]]) -> None:
    for upload, answer in answers:
        if upload.answer.done():
            continue
        if isinstance(answer, Exception):
            upload.answer.set_exception(answer)
        else:
            upload.answer.set_result(answer)
