"""What sessions avoid: the offline rubrics, one a kind of trouble, on a scale from 1 to 5.

A session is on a scale by how often a trouble happened in it for what it did, so that a long one is
not worse for its length. One that gave a trouble no occasion (no edit, for edits that miss) has no
place on its scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from debrief.keys import digest_of
from debrief.scoring.model import ScoreName
from debrief.sessions.model import Session, calls_of
from debrief.troubles import finding
from debrief.troubles.model import TroubleEvent, TroubleKind

Occasion = Literal["calls", "commands", "edits", "reads", "prompts", "later prompts"]
_BOUNDS = (0.02, 0.05, 0.1)
"""Times for each occasion up to which a session is at 4, 3 and 2."""


class AvoidedTrouble(Struct, frozen=True, kw_only=True):
    """A kind of trouble that a session can avoid."""

    kind: TroubleKind
    name: str
    description: str
    occasion: Occasion
    """What it is counted by."""
    shares: frozenset[ScoreName] = frozenset()
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


AVOIDED = (
    AvoidedTrouble(
        kind="failing_command",
        name="Avoids Failing Commands",
        description="A shell command ends with an error that nobody wanted to see.",
        occasion="commands",
        shares=frozenset(["excellence"]),
    ),
    AvoidedTrouble(
        kind="missed_edit",
        name="Avoids Missed Edits",
        description="Text to replace is not in the file, or was not read before.",
        occasion="edits",
    ),
    AvoidedTrouble(
        kind="refused_permission",
        name="Avoids Refused Permissions",
        description="A call is refused, by the person or by a rule of theirs.",
        occasion="calls",
        shares=frozenset(["excellence"]),
    ),
    AvoidedTrouble(
        kind="correction",
        name="Avoids Corrections",
        description="The person says that something is wrong.",
        occasion="later prompts",
        shares=frozenset(["user_turn_efficiency"]),
    ),
    AvoidedTrouble(
        kind="interruption",
        name="Avoids Interruptions",
        description="The person stops the work before it is done.",
        occasion="prompts",
        shares=frozenset(["excellence", "user_turn_efficiency"]),
    ),
    AvoidedTrouble(
        kind="repeated_read",
        name="Avoids Repeated Reads",
        description="A file is opened another time though nothing changed in it.",
        occasion="reads",
        shares=frozenset(["token_efficiency"]),
    ),
    AvoidedTrouble(
        kind="polling",
        name="Avoids Polling",
        description="The state of something is asked for over and over while it runs.",
        occasion="calls",
        shares=frozenset(["token_efficiency"]),
    ),
    AvoidedTrouble(
        kind="blind_check",
        name="Avoids Blind Checks",
        description="A test passes that could not fail because of the change.",
        occasion="commands",
        shares=frozenset(["excellence"]),
    ),
    AvoidedTrouble(
        kind="work_done_twice",
        name="Avoids Doing Work Twice",
        description="After a compaction, finished work starts over.",
        occasion="calls",
        shares=frozenset(["token_efficiency"]),
    ),
    AvoidedTrouble(
        kind="missing_tool",
        name="Avoids Missing Tools",
        description="A program or skill is used that is not installed.",
        occasion="calls",
    ),
    AvoidedTrouble(
        kind="wrong_folder",
        name="Avoids Wrong Folders",
        description="Something runs from another directory than it needs.",
        occasion="commands",
    ),
    AvoidedTrouble(
        kind="long_output",
        name="Avoids Filling the Context",
        description="One result fills much of the context.",
        occasion="calls",
        shares=frozenset(["token_efficiency"]),
    ),
)
"""All kinds but ``same_start``, which one session alone does not show.

The last check and who stopped the session decide the verdict, and no word does; tokens and
prompts are what some troubles take.
"""
BY_KEY: Mapping[str, AvoidedTrouble] = {each.key: each for each in AVOIDED}
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
        each.key: [event for event in found if event.kind == each.kind]
        for each in AVOIDED
        if occasions[each.occasion]
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
