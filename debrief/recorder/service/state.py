"""What all routes share: the store, the redactor, the limits and what counts against them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from debrief.recorder.service.limits import Admitted, Buckets, Limits, Room
from debrief.recorder.service.uploads import Uploads
from debrief.recorder.service.work import Work

if TYPE_CHECKING:
    from debrief.recorder.ingest import Ingest
    from debrief.recorder.storage.store import RecordStore


class Service:
    """Everything that a request is answered with.

    Args:
        store: where records are.
        ingest: what a record goes through before it is stored.
        limits: what a client may ask for.
    """

    def __init__(self, store: RecordStore, ingest: Ingest, limits: Limits) -> None:
        self.store = store
        self.ingest = ingest
        self.limits = limits
        self.bodies = Room(limits.bodies)
        self.admitted = Admitted()
        self.buckets = Buckets(limits.requests_a_second, limits.burst)
        self.exports = Room(limits.exports)
        self.work = Work("work", limits.threads, limits.waiting, limits.request_seconds)
        self.uploads = Uploads(store, ingest, limits)
        self.reading = Work("export", limits.exports, limits.exports, limits.request_seconds)
        self.health = Work("health", 1, 16, limits.health_seconds)

    def close(self) -> None:
        """Let go of all threads."""
        for work in (self.work, self.reading, self.health):
            work.close()
        self.uploads.close()


def service_of(request: Request) -> Service:
    """Return the service that a request came to."""
    service: Service = request.app.state.service
    return service


async def _provided(request: Request) -> Service:
    """Give a route the service; a coroutine, because others are run in threads."""
    return service_of(request)


Provided = Annotated[Service, Depends(_provided)]
