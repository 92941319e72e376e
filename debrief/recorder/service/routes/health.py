"""Whether the service can do its work."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter

from debrief import __version__
from debrief.recorder.contracts import Contract
from debrief.recorder.errors import RevisionError, StorageError
from debrief.recorder.service.documented import problems
from debrief.recorder.service.problems import RefusedError
from debrief.recorder.service.state import Provided

router = APIRouter(tags=["health"])


class Health(Contract):
    """The service works, and so does its database."""

    status: Literal["ok"] = "ok"
    version: str


@router.get("/health", responses=problems(503), summary="Is the service there, and its database?")
async def health(service: Provided) -> Health:
    """Ask the database; 503 when it does not answer within three seconds. Takes no token."""
    try:
        await service.health.do(service.store.check)
    except RevisionError as error:
        raise RefusedError(
            503, "database", error.reason, error.next_move, {"Retry-After": "5"}
        ) from error
    except StorageError as error:
        raise RefusedError(
            503, "database", "is not there", error.next_move, {"Retry-After": "5"}
        ) from error
    return Health(version=__version__)
