"""What it would take to have a model review the sessions that nobody has reviewed yet."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from msgspec import Struct

from debrief.evaluators import configured_model
from debrief.lake import Lake
from debrief.models.choosing import asked_name, can_be_asked
from debrief.models.logins import logged_in
from debrief.models.programs import program_of
from debrief.models.usage import ModelUsage, price_of
from debrief.outcomes.verdicts import verdicts_in
from debrief.settings import Settings
from debrief.signals.schema import TABLE, Ending, Event, WorkKind

NEWEST = 20
"""Sessions that are offered at once."""
TOKENS_A_SESSION = 12_000
"""Of the one question that reviews and judges a session: 11,700 on average of 48 sessions of
people, 10,400 of 354 of any kind."""
_ANSWER = 1_000
"""Of these, tokens of the answer."""


class ReviewOffer(Struct, frozen=True, kw_only=True):
    """A model that can be asked here, the sessions that it would review, and what that takes."""

    model: str
    """As ``--model`` takes it."""
    title: str
    """The program's name for people; empty for a model that is asked with a key."""
    sessions: tuple[str, ...]
    """Ids; at least one."""
    tokens: int
    """Of the questions and of the answers, roughly."""
    cost_usd: float | None
    """None for a program, which is paid by its plan, and where no price is known."""

    @property
    def command(self) -> str:
        """Return the command that has these sessions reviewed."""
        return f"debrief run --model {self.model} --newest {len(self.sessions)}"


def review_offer(lake: Lake, settings: Settings, most: int = NEWEST) -> ReviewOffer | None:
    """Return what can be offered: the model that is configured, else a program that is logged in.

    Args:
        lake: with signals and verdicts.
        settings: with the model and its key.
        most: sessions at once.

    Returns:
        None where settings say that no model is asked, where there is none, or where no session
        is worth a review.
    """
    if not (model := offered_model(settings)):
        return None
    sessions = tuple(worth_reviewing(lake, most))
    if not sessions:
        return None
    program, price = program_of(model), None
    if program is None:
        price = price_of(asked_name(model, settings), settings.prices)
    usage = ModelUsage(input_tokens=TOKENS_A_SESSION - _ANSWER, output_tokens=_ANSWER)
    return ReviewOffer(
        model=model,
        title="" if program is None else program.title,
        sessions=sessions,
        tokens=TOKENS_A_SESSION * len(sessions),
        cost_usd=None if price is None else price.cost(usage) * len(sessions),
    )


def offered_model(settings: Settings) -> str:
    """Return the model that is configured and can be asked, else a program that is logged in;
    empty where there is none, or settings say that none is asked."""
    if settings.no_model:
        return ""
    if own := configured_model(settings):
        return own if can_be_asked(own, settings) else ""
    return next((program.name for program in logged_in()), "")


class _Signals(Struct, frozen=True, kw_only=True):
    session_id: str
    started: datetime
    work: WorkKind
    ending: Ending
    calls: int = 0
    events: tuple[Event, ...] = ()

    @property
    def is_stub(self) -> bool:
        """Whether there is nothing to review: no call, and no answer."""
        return not self.calls and (self.work == "nothing" or self.ending != "answered")


def worth_reviewing(lake: Lake, most: int) -> list[str]:
    """Return the ids of the newest sessions that nobody has reviewed, stubs left out.

    The newest week comes first, and in a week sessions in which something happened.
    """
    return list(islice(_worth_reviewing(lake), most))


def stubs_in(lake: Lake) -> set[str]:
    """Return the ids of sessions with nothing to review: no call, and no answer."""
    rows = (row for week in lake.partitions(TABLE) for row in lake.read(TABLE, week, _Signals))
    return {row.session_id for row in rows if row.is_stub}


def _worth_reviewing(lake: Lake) -> Iterator[str]:
    verdicts = verdicts_in(lake)
    for week in sorted(lake.partitions(TABLE), reverse=True):
        rows = [
            row
            for row in lake.read(TABLE, week, _Signals)
            if row.session_id not in verdicts and not row.is_stub
        ]
        rows.sort(key=lambda row: (bool(row.events), row.started, row.session_id), reverse=True)
        yield from (row.session_id for row in rows)
