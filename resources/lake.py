"""The lake as Dagster configures it."""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from pydantic import Field

from debrief.digests import digest_of
from debrief.lake import Lake
from debrief.settings import Settings, load_settings

_POLL = 0.2


class LakeResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Where the tables and training sets are."""

    url: str = Field(
        default="",
        description="A folder or an fsspec URL (s3://…). Empty: DEBRIEF_LAKE.",
    )

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["LakeResource"]:
        """Let one run at a time work on a local lake, so that no two ask a model the same.

        Where workers take runs, or the lake is in an object store, Dagster's pools do that.
        """
        settings = load_settings()
        lake = self.open()
        if context.run is None or "://" in lake.url or settings.launch == "queue":
            yield self
            return
        with _only_writer(settings, lake.url):
            yield self

    def open(self) -> Lake:
        """Return the lake."""
        return Lake(self.url or load_settings().lake)


@contextmanager
def _only_writer(settings: Settings, lake: str) -> Iterator[None]:
    """Hold a lock of this machine, which goes with the process however it ends."""
    path = settings.home / "locks" / digest_of(lake)[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        if not _locked(file.fileno()):
            logging.getLogger("debrief.progress").info(
                "waits for %s, which has %s", path.read_text() or "another run", lake
            )
        while not _locked(file.fileno()):
            time.sleep(_POLL)
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
