"""The answer to an export: lines as they are made, complete or visibly broken."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import orjson
from fastapi.responses import StreamingResponse

from debrief.errors import DebriefError, InputError
from debrief.recorder.exporting import ExportedLine, lines_of, side_of_record
from debrief.recorder.service.logs import LOGGER

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from debrief.recorder.service.requests import ExportQuery
    from debrief.recorder.storage.exporting import Export
    from debrief.recorder.storage.rows import StoredRecord
    from debrief.training.model import Split

MEDIA_TYPE = "application/jsonl"
_CHUNK = 1 << 18
"""Bytes that are sent at once, about."""
_MOST_NAMED = 1_000
"""Withheld sessions that a manifest names."""


class ExportResponse(StreamingResponse):
    """Sends an export's lines for as long as the client is there.

    A failure on the way ends the connection without the last chunk of the transfer, so that no
    client takes what it received for everything.

    Args:
        export: the records; closed when the answer ends.
        query: what was requested.
        release: called when the answer ends, however it does.
    """

    def __init__(self, export: Export, query: ExportQuery, release: Callable[[], None]) -> None:
        headers = {"Debrief-Cursor": export.end}
        if query.split is None:
            headers["Debrief-Count"] = str(export.count)
        super().__init__(_chunks(export, query), media_type=MEDIA_TYPE, headers=headers)
        self._export = export
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send everything, and close the export whatever happens."""
        try:
            await super().__call__(scope, receive, send)
        except DebriefError as error:
            # The server breaks off an answer that is left unfinished.
            fields = {"id": scope["state"]["request_id"], "error": type(error).__name__}
            logging.getLogger(LOGGER).warning("export broke off", extra={"fields": fields})
        finally:
            self._export.close()
            self._release()


def _chunks(export: Export, query: ExportQuery) -> Iterator[bytes]:
    rows = (row for row in export if query.split is None or _side(row) in (query.split, None))
    chunk = bytearray()
    count = 0
    withheld: list[ExportedLine] = []
    for line in lines_of(query.format, rows):
        if not line.line:
            withheld.append(line)
            continue
        count += 1
        chunk += line.line
        if len(chunk) >= _CHUNK:
            yield bytes(chunk)
            chunk.clear()
    if query.manifest:
        reasons = [{"id": str(line.id), "reason": line.withheld} for line in withheld[:_MOST_NAMED]]
        manifest = {
            "sessions": export.count,
            "lines": count,
            "withheld": len(withheld),
            "reasons": reasons,
            "cursor": export.end,
        }
        chunk += orjson.dumps({"manifest": manifest}) + b"\n"
    yield bytes(chunk)


def _side(row: StoredRecord) -> Split | None:
    """Return a record's side; None if it gives no line, which the manifest then names."""
    try:
        return side_of_record(row)
    except InputError:
        return None
