"""What sessions avoid: the offline rubrics, one a kind of trouble, on a scale from 1 to 5.

A session is on a scale by how often a trouble happened in it for what it did, so that a long one is
not worse for its length. One that gave a trouble no occasion (no edit, for edits that miss) has no
place on its scale. The kinds stand in ``avoided.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Literal

from msgspec import Struct, convert

from debrief.keys import digest_of
from debrief.sessions.model import Session, calls_of
from debrief.troubles import finding
from debrief.troubles.model import TroubleEvent, TroubleKind

Occasion = Literal["calls", "commands", "edits", "reads", "prompts", "later prompts"]


class AvoidedTrouble(Struct, frozen=True, kw_only=True):
    """A kind of trouble that a session can avoid."""

    kind: TroubleKind
    name: str
    description: str
    occasion: Occasion
    """What it is counted by."""
    shares: frozenset[str] = frozenset()
    """Score names that are made of the same signals, so that a link between trouble and score is
    there by construction."""

    @property
    def key(self) -> str:
        """The rubric's key."""
        return f"avoids-{self.kind.replace('_', '-')}"

    @property
    def scale(self) -> tuple[str, str, str, str, str]:
        """What 1, 2, 3, 4 and 5 look like."""
        low, middle, high = (round(1 / bound) for bound in _BOUNDS)
        each = self.occasion
        return (
            f"More than 1 in {high} {each}",
            f"Up to 1 in {high} {each}",
            f"Up to 1 in {middle} {each}",
            f"Up to 1 in {low} {each}",
            f"Not in any of the {each}",
        )

    @property
    def scoring_criteria(self) -> str:
        """The scale as five lines, ``1: …`` to ``5: …``."""
        return "\n".join(f"{point}: {text}" for point, text in enumerate(self.scale, 1))


def _read() -> tuple[tuple[AvoidedTrouble, ...], tuple[float, float, float]]:
    text = (resources.files("debrief.rubrics") / "avoided.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    low, middle, high = table["bounds"]
    return convert(table["trouble"], tuple[AvoidedTrouble, ...]), (low, middle, high)


AVOIDED, _BOUNDS = _read()
BY_KEY: Mapping[str, AvoidedTrouble] = {trouble.key: trouble for trouble in AVOIDED}
VERSION = digest_of(finding.VERSION, AVOIDED, _BOUNDS)[:8]
"""With another one, sessions are mined and judged anew."""


class Look(Struct, frozen=True):
    """What a session shows of each kind of trouble that it gave occasion to, so that the session
    itself can be let go."""

    levels: Mapping[str, int]
    """From 1 to 5, by key."""
    events: Mapping[str, Sequence[TroubleEvent]]
    """By key; empty where it did not happen."""


Looking = Callable[[Session], Look]


def look_at(session: Session) -> Look:
    """Return where a session is on each scale, and what put it there."""
    found = finding.events_of(session, lambda _: None)
    occasions = _occasions(session)
    events = {
        trouble.key: [event for event in found if event.kind == trouble.kind]
        for trouble in AVOIDED
        if occasions[trouble.occasion]
    }
    levels = {key: _level(len(own), occasions[BY_KEY[key].occasion]) for key, own in events.items()}
    return Look(levels, events)


def _occasions(session: Session) -> dict[Occasion, int]:
    calls = list(calls_of(session))
    return {
        "calls": len(calls),
        "commands": sum(call.action == "run" for call in calls),
        "edits": sum(call.action == "edit" for call in calls),
        "reads": sum(call.action == "read" for call in calls),
        "prompts": session.prompt_count,
        "later prompts": max(0, session.prompt_count - 1),
    }


def _level(times: int, occasions: int) -> int:
    if not times:
        return 5
    return 4 - sum(times / occasions > bound for bound in _BOUNDS)
