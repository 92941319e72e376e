"""Work on a partition, alone: the one place where stages take leases.

Two runs of one partition both succeed: the second waits for the first, and finds done what it
would have done.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import dagster as dg

from assets.progress import PROGRESS
from debrief.lake import Lake
from debrief.state.leases import stop_with_parent
from debrief.state.watch import Watch
from resources.attendance import attend, steps_have_processes

_WATCH: ContextVar[Watch] = ContextVar("watch")
"""Of the run whose stage works in this context."""


@contextmanager
def leased(
    context: dg.AssetExecutionContext, lake: Lake, table: str, partition: str
) -> Iterator[None]:
    """Work on a partition of a table while no other run does.

    Args:
        context: of the run that wants to.
        lake: where the table is.
        table: its name.
        partition: the partition's key.

    Raises:
        RunOverError: the run was over before its turn came.
    """
    keeper = attend(context.instance, context.run)

    def tell(what: str) -> None:
        told = f"{table} {partition}: {what}"
        context.log.info(told)
        logging.getLogger(PROGRESS).info(told)

    with keeper.hold(f"{table} {partition} of {lake.url}", context.run_id, tell) as watch:
        if steps_have_processes(context):
            stop_with_parent(watch)
        token = _WATCH.set(watch)
        try:
            yield
        finally:
            _WATCH.reset(token)


def still_ours() -> None:
    """Go on only while the run may, and the partition is its own.

    To be asked before anything is written: what a stage made after it lost its lease is made of
    refusals.

    Raises:
        RunOverError: it may not.
    """
    watch = _WATCH.get(None)
    if watch is not None:
        watch.check()
