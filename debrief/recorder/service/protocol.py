"""HTTP/1.1 connections that cannot be held open by saying little.

The server beneath has no limit on how long a client may take over its request, and its parser none
on what a head holds. Here a head, a body and the reading of an answer have one each, an answer that
comes before the end of a body ends the connection instead of reading on, and when there are too
many connections, the one that has kept us waiting longest makes room.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httptools
import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from debrief.recorder.service.limits import Limits
from debrief.recorder.service.pace import ReadingPace, bytes_held
from debrief.recorder.service.problems import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

_LINGER_SECONDS = 3.0
_LINGER_BYTES = 1 << 20
_HEAD_PIECE = 4_096
_MOST_FRAMING = 16
"""Bytes that a chunked body may take on the wire for each that it holds, beyond a head's length."""
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}(?= )")
_DISGUISED = re.compile(rb"%(?:2[DdEeFf]|3[0-9]|4[1-9A-Fa-f]|5[0-9AaFf]|6[1-9A-Fa-f]|7[0-9AaEe])")
"""Escapes of what a path has as it is. One that is written so is taken as it stands, which is none
of ours: a proxy in front, whose rules are about plain paths, would not know it either."""
_STAND_IN = b"TRACE"
"""What the parser, which knows no others, is told in place of a method that it refuses."""


class _UnfitError(Exception):
    """A request that the parser takes and this service does not."""


class GuardedProtocol(HttpToolsProtocol):
    """One connection, with a deadline for whatever its client has to do next."""

    limits: Limits

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._pace = ReadingPace(self.limits.stalled_seconds, self.limits.answer_rate)
        self._begun = self.loop.time()
        self._received = 0
        self._in_body = False
        self._in_head = True
        self._head_size = 0
        self._unknown_method = b""
        self._framing = 0
        self._lingering = False
        self._lingered = 0

    # What the connection waits for

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a head; make room for it when there are too many."""
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > self.limits.connections and not _make_room(self):
            self._answer(503, "connections", "are as many as the service takes", "Try again soon.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget all deadlines."""
        self._stop_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; the deadline stays where it is until the head or body is whole."""
        rest = data
        while rest and not self._lingering and not self.transport.is_closing():
            # What a head holds can be measured only between pieces.
            size = len(rest) if self.busy else _HEAD_PIECE
            self._take(rest[:size])
            rest = rest[size:]
        self._lingered += len(rest)
        if self._lingered > _LINGER_BYTES:
            self.transport.close()

    def _take(self, data: bytes) -> None:
        if self._timer is None and not self.busy:
            self._await_head()
        self._received += len(data)
        self._framing += len(data)
        self._unset_keepalive_if_required()
        self._parse(data)
        self._watch()

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._end_with_this_answer()
        except httptools.HttpParserInvalidMethodError:
            found = None if self._unknown_method else _METHOD.match(data)
            if found is None:
                self._refuse()
            else:
                self._unknown_method = found[0]
                self.parser = httptools.HttpRequestParser(self)
                self._parse(_STAND_IN + data[found.end() :])
        except httptools.HttpParserError:
            if self.busy and not self.cycle.more_body:
                self._end_with_this_answer()
            else:
                self._refuse()
        else:
            grown = self._received if self._in_head else self._framing if self.busy else 0
            if grown > self.limits.head:
                self._refuse()

    # What the parser finds

    def on_message_begin(self) -> None:
        """Begin a request; one that comes before the last was answered is not taken.

        The answer that is under way then ends the connection, which tells the client so.
        """
        if self.busy:
            raise _UnfitError
        super().on_message_begin()
        self._in_head = True
        self._head_size = 0

    def on_url(self, url: bytes) -> None:
        """Measure the path."""
        self._head_size += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Measure a header; what comes behind a body is none of the request's."""
        if self._in_head:
            self._head_size += len(name) + len(value) + 4
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer, unless two readers could take the head differently."""
        if (
            self._head_size > self.limits.head
            or b"#" in self.url
            or not _is_plain(self.headers, self.parser.get_http_version())
        ):
            raise _UnfitError
        self._in_head = False
        self._framing = 0
        super().on_headers_complete()
        if _DISGUISED.search(self.scope["raw_path"]):
            self.scope["path"] = self.scope["raw_path"].decode()
        if self._unknown_method:
            self.scope["method"] = self._unknown_method.decode()
            self._unknown_method = b""

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._framing -= _MOST_FRAMING * len(body)
        super().on_body(body)

    def _end_with_this_answer(self) -> None:
        if self.busy:
            self.cycle.keep_alive = False
        else:
            self.transport.close()

    @property
    def busy(self) -> bool:
        """A request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def waits_for_client(self) -> bool:
        """Nothing is done for the client at the moment: a head, a body or an end is missing."""
        return not self.busy or self.cycle.more_body

    @property
    def waiting_since(self) -> float:
        """When it began to wait, on the loop's clock."""
        return self._begun

    def _await_head(self) -> None:
        self._begun = self.loop.time()
        self._received = 0
        self._set_timer(self.limits.head_seconds, self._head_is_late)

    def _watch(self) -> None:
        """Set the deadline that fits what has come so far."""
        if self.transport.is_closing():
            self._stop_timer()
        elif self.busy and self.cycle.more_body:
            if self._timer is None or not self._in_body:
                self._begun = self.loop.time()
                self._received = len(self.cycle.body)
                self._in_body = True
                self._set_timer(self.limits.body_grace, self._body_is_late)
        elif self.busy:
            self._in_body = False
            self._stop_timer()

    def _head_is_late(self) -> None:
        if self.transport.is_closing():
            return
        if self._received:
            self._answer(
                408,
                "request head",
                f"was not whole after {self.limits.head_seconds:g} seconds",
                "Send it at once.",
            )
        else:
            self.transport.close()

    def _body_is_late(self) -> None:
        """Look whether the body comes fast enough; look again when it could be too slow."""
        if self.transport.is_closing() or not (self.busy and self.cycle.more_body):
            return
        spent = self.loop.time() - self._begun
        allowed = self.limits.body_grace + self._received / self.limits.body_rate
        if self.flow.read_paused:
            self._begun += 1.0
            self._set_timer(1.0, self._body_is_late)
        elif spent < allowed:
            self._set_timer(allowed - spent, self._body_is_late)
        else:
            self._answer(
                408,
                "body",
                f"came at less than {self.limits.body_rate // 1024} kB a second",
                "Send it faster.",
            )

    def _set_timer(self, seconds: float, late: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # What the client does not take

    def pause_writing(self) -> None:
        """Give the client a time in which to take what was written."""
        super().pause_writing()
        self._pace.pause(self.loop.time(), bytes_held(self.transport))
        self._look_at_pace()

    def resume_writing(self) -> None:
        """The client reads on."""
        self._stop_write_timer()
        self._pace.resume(self.loop.time(), bytes_held(self.transport))
        super().resume_writing()

    def _look_at_pace(self) -> None:
        """End the connection if the client is too slow; look again when it could be."""
        self._stop_write_timer()
        left = self._pace.left(self.loop.time(), bytes_held(self.transport))
        if left > 0:
            self._write_timer = self.loop.call_later(left, self._look_at_pace)
        else:
            self.transport.abort()

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    # Ends

    def on_response_complete(self) -> None:
        """Wait for the next request, or take leave when this one's body was not wanted."""
        if self.cycle.more_body and not self.transport.is_closing():
            self.server_state.total_requests += 1
            self._linger()
            return
        super().on_response_complete()
        if not self.busy:
            self._stop_timer()
            self._in_body = False
            self._begun = self.loop.time()
            self._received = 0

    def _refuse(self) -> None:
        """Answer what is no HTTP in the shape of all other refusals."""
        too_long = self._in_head and max(self._received, self._head_size) > self.limits.head
        status = 431 if too_long else 400
        self._answer(status, "request", "is no HTTP/1.1 that this service takes", "Correct it.")

    def _answer(self, status: int, place: str, reason: str, next_move: str) -> None:
        """Answer without the app, and close."""
        if self.transport.is_closing():
            return
        if self.busy and self.cycle.response_started:
            self.transport.close()
            return
        problem = Problem(
            status=status,
            title=HTTPStatus(status).phrase,
            detail=f"{place}: {reason}. {next_move}",
            place=place,
            reasons=[reason],
            next_move=next_move,
            request_id="",
        )
        body = orjson.dumps(problem.model_dump(by_alias=True))
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            f"content-type: {MEDIA_TYPE}",
            f"content-length: {len(body)}",
            *(["retry-after: 1"] if status == 503 else []),
            "connection: close",
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        if self.busy:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._linger()

    def _linger(self) -> None:
        """Close our side, and read on a little, so that the answer is not lost with the rest."""
        self._stop_timer()
        self._lingering = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._set_timer(_LINGER_SECONDS, self.transport.close)

    def shutdown(self) -> None:
        """Close at the end of the running request, or now."""
        if self._lingering:
            self.transport.close()
        else:
            super().shutdown()


def _is_plain(headers: list[tuple[bytes, bytes]], version: str) -> bool:
    """Return whether a head says once where it is for, and in one way where its body ends."""
    if version not in ("1.0", "1.1"):
        return False
    hosts, codings = 0, []
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding":
            codings.append(value.strip().lower())
    if hosts > 1 or (not hosts and version == "1.1"):
        return False
    return not codings or (codings == [b"chunked"] and version == "1.1")


def _make_room(newest: GuardedProtocol) -> bool:
    """Close the connection whose client has kept us waiting longest; say whether there was one."""
    waiting = [
        other
        for other in newest.connections
        if isinstance(other, GuardedProtocol)
        and other is not newest
        and other.waits_for_client
        and not other.transport.is_closing()
    ]
    if not waiting:
        return False
    longest = min(waiting, key=lambda other: other.waiting_since)
    longest.transport.abort()
    return True


def limited(limits: Limits) -> type[GuardedProtocol]:
    """Return the protocol with its limits, as the server wants it: a class."""
    return type("LimitedProtocol", (GuardedProtocol,), {"limits": limits})
