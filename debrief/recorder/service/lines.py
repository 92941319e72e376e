"""JSON lines on their way out: an answer that is whole, or can be seen to be broken."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING

import orjson
from fastapi import Response

from debrief.errors import DebriefError, InputError
from debrief.recorder.conversion import recording_of
from debrief.recorder.exporting import ExportedLine, ExportForm, lines_of
from debrief.recorder.service.logs import LOGGER
from debrief.recorder.service.state import Service
from debrief.training.model import Split
from debrief.training.splitting import side_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from debrief.recorder.storage.exporting import Export
    from debrief.recorder.storage.rows import ExportedRow

MEDIA_TYPE = "application/jsonl"
_CHUNK = 1 << 18
"""Bytes that are sent at once, about."""
_MOST_TOLD = 1_000
"""Withheld sessions that a manifest names."""


class Lines:
    """An export as chunks of bytes, with the manifest of what was sent.

    Args:
        export: the records; closed with this.
        form: what becomes of them.
        split: the side that is meant; both, if None.
        manifest: whether a line about the others ends it.
    """

    def __init__(
        self, export: Export, form: ExportForm, split: Split | None, manifest: bool
    ) -> None:
        self._export = export
        rows = (row for row in export if split is None or _side(row) in (split, None))
        self._lines = lines_of(form, rows, searched=True)
        self._manifest = manifest
        self._sent = 0
        self._withheld: list[ExportedLine] = []
        self._chunks = self._joined()
        self._one_at_a_time = threading.Lock()

    def next_chunk(self) -> bytes | None:
        """Return the next bytes; None after the last."""
        with self._one_at_a_time:
            return next(self._chunks, None)

    def close(self) -> None:
        """Give the export's connection back, once the chunk that is being made is made."""
        with self._one_at_a_time:
            self._chunks.close()
            self._export.close()

    def _joined(self) -> Generator[bytes, None, None]:
        pieces: list[bytes] = []
        size = 0
        for line in self._lines:
            if not line.line:
                self._withheld.append(line)
                continue
            self._sent += 1
            pieces.append(line.line)
            size += len(line.line)
            if size >= _CHUNK:
                yield b"".join(pieces)
                pieces, size = [], 0
        if self._manifest:
            pieces.append(self._manifest_line())
        if pieces:
            yield b"".join(pieces)

    def _manifest_line(self) -> bytes:
        told = self._withheld[:_MOST_TOLD]
        manifest = {
            "sessions": self._export.count,
            "lines": self._sent,
            "withheld": len(self._withheld),
            "reasons": [{"id": str(line.id), "reason": line.withheld} for line in told],
            "cursor": self._export.end,
        }
        return orjson.dumps({"manifest": manifest}) + b"\n"


def _side(row: ExportedRow) -> Split | None:
    """Return a record's side; None for one that gives no line and is told as withheld."""
    try:
        session = recording_of(row.text, str(row.id), row.status).session
    except InputError:
        return None
    return side_of(session.repository, session.started)


class LinesResponse(Response):
    """Sends chunks as they are made, for as long as the client is there.

    A failure on the way ends the connection without the last chunk of the transfer, so that no
    client takes what it has for everything.
    """

    def __init__(self, service: Service, lines: Lines, headers: Mapping[str, str]) -> None:
        super().__init__(media_type=MEDIA_TYPE, headers=headers)
        del self.headers["content-length"]
        self._service = service
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send everything, and let go of the export whatever happens."""
        reading = self._service.reading
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            head = {"status": self.status_code, "headers": self.raw_headers}
            await send({"type": "http.response.start", **head})
            while (chunk := await reading.do(self._lines.next_chunk)) is not None:
                if gone.done():
                    return
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except DebriefError as error:
            # An answer that is left unfinished makes the server break the connection off.
            fields = {"id": scope["state"]["request_id"], "error": type(error).__name__}
            logging.getLogger(LOGGER).warning("export broke off", extra={"fields": fields})
        finally:
            gone.cancel()
            self._service.exports.give_back()
            reading.later(self._lines.close)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
