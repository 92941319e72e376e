"""Training lines out: plain JSON lines, streamed, whole or visibly broken."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from debrief.recorder.exporting import ExportForm
from debrief.recorder.service.auth import needs
from debrief.recorder.service.documented import guarded
from debrief.recorder.service.lines import MEDIA_TYPE, Lines, LinesResponse
from debrief.recorder.service.state import Provided
from debrief.recorder.service.values import Cursor, InDigits, Sessions
from debrief.recorder.service.work import busy
from debrief.training.model import Split

router = APIRouter(tags=["export"])

_HEADERS = {
    "Debrief-Count": (
        "integer",
        "Sessions that are meant, of the very snapshot that is sent; without split.",
    ),
    "Debrief-Cursor": ("string", "Goes on after the last session of this export."),
}


@router.get(
    "/export.jsonl",
    dependencies=[Depends(needs("export"))],
    response_class=Response,
    responses={
        200: {
            "description": "One JSON object a line. The answer is chunked: a client that sees no "
            "last chunk has not got everything, and asks again with the same cursor.",
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
            "headers": {
                name: {"schema": {"type": kind}, "description": text}
                for name, (kind, text) in _HEADERS.items()
            },
        },
        **guarded(),
    },
    summary="Records as training lines.",
)
async def export_lines(
    service: Provided,
    wanted: Sessions,
    form: Annotated[
        ExportForm,
        Query(
            alias="format",
            description="record: as it is stored. messages, trl, openai, sharegpt: as trainers "
            "read it.",
        ),
    ] = "record",
    split: Annotated[
        Split | None, Query(description="Only this side of the train/eval split.")
    ] = None,
    limit: Annotated[
        int | None,
        Query(ge=1, le=2**31 - 1, description="How many sessions at most."),
        InDigits,
    ] = None,
    cursor: Cursor = None,
    manifest: Annotated[
        bool, Query(description="End with a line that counts what was sent, and names the rest.")
    ] = False,
) -> Response:
    """Stream the records that are meant, in the order in which they came in.

    ``Debrief-Count`` says how many sessions are meant, ``Debrief-Cursor`` goes on after the last
    of them. What holds a secret, or makes no valid line of its form, is left out; ``manifest``
    names it.
    """
    if not service.exports.take():
        raise busy(f"{service.limits.exports} exports run already")
    try:
        export = await service.reading.do(service.store.export, wanted, cursor, limit)
    except BaseException:
        service.exports.give_back()
        raise
    headers = {"Debrief-Cursor": export.end}
    if split is None:
        headers["Debrief-Count"] = str(export.count)
    return LinesResponse(service, Lines(export, form, split, manifest), headers)
