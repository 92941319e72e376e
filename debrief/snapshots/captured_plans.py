"""The plans that captures hold, for the sessions that were started with them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from debrief.sessions.model import Session, SessionHead
from debrief.snapshots.captures import Captures, find_captures, repository_folders


class CapturedPlans:
    """The captured plans at hand.

    A repository is searched when the first session that worked in it is asked for.

    Args:
        places: folders with transcripts, among which captures may lie.
    """

    def __init__(self, places: Iterable[Path] = ()) -> None:
        self._places = list(places)
        self._captures: Captures | None = None
        self._cwds: set[str] = set()
        self._searched: set[Path] = set()

    def of(self, session: Session | SessionHead) -> str:
        """Return the plan that a session was started with; empty where no capture holds one."""
        if self._captures is None:
            self._captures = find_captures(self._places)
        if session.cwd not in self._cwds:
            self._cwds.add(session.cwd)
            new = repository_folders([session]) - self._searched
            if new:
                self._searched |= new
                self._captures = self._captures.joined(find_captures(sorted(new)))
        capture = self._captures.of(session)
        return (capture.plan if capture is not None else None) or ""
