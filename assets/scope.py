"""What a run is narrowed down to, and what it makes again though nothing changed.

Said by two tags of a run, so that the command, the UI's launchpad and a backfill started there say
it alike.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import dagster as dg
import msgspec

from debrief.lake import Lake, Row
from debrief.sessions.heads import SessionHead
from debrief.sessions.model import Session
from debrief.sessions.where import Where, parse_where
from debrief.snapshots.model import SessionMetadataRow

FORCE_TAG = "debrief/force"
"""``true``: what is up to date is made again too."""
WHERE_TAG = "debrief/where"
"""Conditions as ``parse_where`` reads them: the other sessions' rows stay as they are."""


class Scope(msgspec.Struct, frozen=True):
    """Which sessions of a run's weeks are taken, and whether again."""

    where: Where = Where()
    again: bool = False

    @property
    def tags(self) -> dict[str, str]:
        """Return the tags of a run of this scope."""
        told = {WHERE_TAG: str(self.where)} if self.where else {}
        return {**told, FORCE_TAG: "true"} if self.again else told

    def ids(self, lake: Lake, week: str) -> set[str]:
        """Return the sessions of a week that are meant.

        A task is the one that the session is filed under, or the one its transcript tells.
        """
        return {name for name, facts in facts_of(lake, week) if self.where.takes(facts)}

    def sessions(self, lake: Lake, week: str) -> Iterator[Session]:
        """Yield the sessions of a week that are meant."""
        only = ("id", self.ids(lake, week)) if self.where else None
        return lake.read("raw_sessions", week, Session, only=only)

    def reusable(self, previous: Iterable[Row]) -> list[Row]:
        """Return the rows of an earlier run that may be taken over."""
        return [] if self.again else list(previous)


_SCOPE: ContextVar[Scope] = ContextVar("scope")


def scope() -> Scope:
    """Return the scope of the stage that runs in this context."""
    return _SCOPE.get(Scope())


@contextmanager
def scoped(context: dg.AssetExecutionContext) -> Iterator[Scope]:
    """Lay the scope that a run's tags tell over what is done inside.

    Raises:
        InputError: the tags are no scope.
    """
    tags = context.run.tags
    told = tags.get(WHERE_TAG, "")
    again = tags.get(FORCE_TAG, "").lower() in ("1", "true", "yes")
    token = _SCOPE.set(Scope(parse_where([told] if told else []), again))
    try:
        yield scope()
    finally:
        _SCOPE.reset(token)


def facts_of(lake: Lake, week: str) -> Iterator[tuple[str, dict[str, set[str]]]]:
    """Yield each session of a week with what conditions can ask of it, by field."""
    filed = {row.session_id: row for row in lake.read("session_metadata", week, SessionMetadataRow)}
    for head in lake.read("raw_sessions", week, SessionHead):
        yield head.id, _facts(head, filed.get(head.id))


def _facts(head: SessionHead, filed: SessionMetadataRow | None) -> dict[str, set[str]]:
    facts = {
        "session": {head.id},
        "source": {head.source},
        "tool": {head.tool},
        "model": set(head.models),
        "task": {head.task},
        "repository": {head.repository},
    }
    if filed is not None:
        facts["task"].add(filed.task)
        facts["repository"].add(filed.repository)
        facts["fingerprint"] = {filed.prompt_fingerprint}
        if filed.model:
            facts["model"].add(filed.model)
    return facts
