"""Sessions: records in, their state and their bytes out."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response

from debrief.errors import DebriefError
from debrief.recorder.contracts import Contract, Status, StoredSession, Upload
from debrief.recorder.ingest import read_json, read_model
from debrief.recorder.service.auth import admit, needs, refuse
from debrief.recorder.service.bodies import record_body, small_body
from debrief.recorder.service.direct import DirectRoute
from debrief.recorder.service.documented import body, guarded, with_body
from debrief.recorder.service.problems import RefusedError
from debrief.recorder.service.state import Provided, Service, service_of
from debrief.recorder.service.uploads import LARGE
from debrief.recorder.service.values import Cursor, PageSize, Sessions

router = APIRouter(tags=["sessions"])
uploads = APIRouter(tags=["sessions"], route_class=DirectRoute)


class SessionPage(Contract):
    """Some sessions, in the order in which they came in."""

    sessions: list[StoredSession]
    cursor: str | None
    """Goes on after the last of them; what comes in later is after it too."""
    more: bool
    """There are more by now."""


class StoredUpload(StoredSession):
    """What an upload became."""

    session_id: UUID
    """The session's id."""


class NewStatus(Contract):
    """What a session is to be."""

    status: Status


@uploads.post(
    "/sessions",
    status_code=201,
    response_model=StoredUpload,
    dependencies=[Depends(needs("write"))],
    responses=with_body(404, 409),
    openapi_extra=body(Upload),
    summary="Store a record.",
)
async def store_session(request: Request) -> Response:
    """Check a record and store it, as a draft.

    The id is the client's, so that a repeated upload is harmless: the same record again is
    answered as the first was, another one under the same id with 409. A record that
    contradicts itself, or holds a secret that cannot be replaced, is refused with every reason
    (422). Secrets that can be replaced are; the session then stays a draft.
    """
    service = service_of(request)
    secret = await admit(request, "write")
    async with record_body(request) as data:
        if len(data) < LARGE:
            stored = await service.uploads.store(secret, data) or refuse(service, secret)
        else:
            stored = await service.work.do(_store, service, secret, data)
    answer = StoredUpload(**stored.model_dump(), session_id=stored.id)
    return Response(
        answer.model_dump_json(by_alias=True),
        201,
        media_type="application/json",
        headers={"Location": f"/sessions/{stored.id}"},
    )


router.routes.extend(uploads.routes)


def _store(service: Service, secret: str, data: bytes) -> StoredSession:
    """Check and store in one go, on one connection: the token is looked up with the insert."""
    try:
        row = service.ingest.check(data)
    except DebriefError:
        if service.store.find_token(secret) is None:
            refuse(service, secret)
        raise
    return service.store.add_session_by(secret, row) or refuse(service, secret)


@router.get(
    "/sessions",
    dependencies=[Depends(needs("read"))],
    responses=guarded(),
    summary="List sessions.",
)
async def list_sessions(
    service: Provided,
    wanted: Sessions,
    cursor: Cursor = None,
    limit: PageSize = 100,
) -> SessionPage:
    """Return a page of sessions without their records, in the order in which they came in."""
    page = await service.work.do(service.store.sessions, wanted, cursor, limit)
    return SessionPage(sessions=list(page.items), cursor=page.cursor, more=page.more)


@router.get(
    "/sessions/{id}",
    dependencies=[Depends(needs("read"))],
    responses=guarded(404),
    summary="One session.",
)
async def show_session(service: Provided, id: UUID) -> StoredSession:
    """Return a session without its record."""
    return await service.work.do(service.store.session, id)


@router.get(
    "/sessions/{id}/record",
    dependencies=[Depends(needs("export"))],
    response_class=Response,
    responses={
        200: {
            "description": "The stored bytes.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Record"}}},
        },
        **guarded(404),
    },
    summary="One session's record, byte for byte.",
)
async def show_record(service: Provided, id: UUID) -> Response:
    """Return the stored record, byte for byte."""
    text = await service.work.do(service.store.record_text, id)
    return Response(text, media_type="application/json")


@router.patch(
    "/sessions/{id}",
    dependencies=[Depends(needs("write"))],
    responses=with_body(404, 409),
    openapi_extra=body(NewStatus),
    summary="Mark a session ready, or a draft again.",
)
async def mark_session(
    service: Provided,
    id: UUID,
    data: Annotated[bytes, Depends(small_body)],
) -> StoredSession:
    """Set a session's status; 409 with every reason when it is not ready."""
    wanted = read_model(NewStatus, read_json(data)).status
    return await service.work.do(_mark, service, id, wanted)


def _mark(service: Service, session_id: UUID, status: Status) -> StoredSession:
    session = service.store.session(session_id)
    if status == "ready" and session.not_ready:
        raise RefusedError(
            409,
            f"session {session_id}",
            session.not_ready,
            "Record the work again with what is missing.",
        )
    return service.store.set_status(session_id, status)
