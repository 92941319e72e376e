"""What the commands that launch the graph have in common."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from debrief.errors import ConfigurationError, InputError
from debrief.settings import Settings, load_settings
from debrief.weeks import FIRST_WEEK, is_week, week_after


class Choice(Struct, frozen=True, kw_only=True):
    """Where to read, where to write, and who evaluates."""

    sessions: tuple[str, ...] = ()
    """Folders, or URLs of an object store."""
    lake: str = ""
    offline: bool = False
    model: str = ""
    local: bool = False
    """No Langfuse server is read or written to, and no webhook told, whatever is configured."""

    def settle(self) -> Settings:
        """Check the choice and lay it over this process's environment.

        The environment is where the resources, the UI and every child process look, so that a
        command and the UI that it starts mean the same lake.

        Raises:
            InputError: a folder is not there.
            ConfigurationError: options contradict each other.
        """
        if self.offline and self.model:
            raise ConfigurationError(
                "--offline and --model", "exclude each other", "Give one of them."
            )
        for folder in self.sessions:
            if "://" not in folder and not Path(folder).is_dir():
                raise InputError(folder, "is not a folder", "Name one that holds transcripts.")
        chosen = {
            "DEBRIEF_SESSIONS": os.pathsep.join(map(_absolute, self.sessions)),
            "DEBRIEF_LAKE": self.lake,
            "DEBRIEF_OFFLINE": "1" if self.offline else "",
            "DEBRIEF_MODEL": self.model,
            "DEBRIEF_LANGFUSE": "off" if self.local else "",
            "DEBRIEF_WEBHOOK": "off" if self.local else "",
        }
        os.environ.update({name: value for name, value in chosen.items() if value})
        return load_settings()


def _absolute(place: str) -> str:
    return place if "://" in place else str(Path(place).absolute())


def parse_weeks(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the weeks that options name: Mondays, or ranges of them with ``..`` between.

    Raises:
        InputError: a text is neither.
    """
    weeks: set[str] = set()
    for text in texts:
        first, _, last = text.partition("..")
        last = last or first
        for end in (first, last):
            if not is_week(end):
                raise InputError(
                    f"--week {text}",
                    f"{end or 'nothing'} is not the date of a Monday",
                    "Weeks are written 2026-11-16, ranges 2026-10-05..2026-11-16.",
                )
        if last < first:
            raise InputError(f"--week {text}", "runs backwards", f"Write {last}..{first}.")
        if first < FIRST_WEEK:
            raise InputError(
                f"--week {text}", f"begins before {FIRST_WEEK}", "No week before that is looked at."
            )
        while first <= last:
            weeks.add(first)
            first = week_after(first)
    return tuple(sorted(weeks))
