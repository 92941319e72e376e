"""An LLM review of a session: requests, claims and their proofs, the verdict, and friction.

Each part of a long session is reviewed on its own; ``whole_review`` makes one review of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from debrief.scoring.verdict import VerdictName
from debrief.sessions.model import Evidence

RequestState = Literal[
    "done_seen", "done_unseen", "partial", "not", "declined", "withdrawn", "unclear"
]
"""``done_seen``: done, and the recording shows that it holds. ``done_unseen``: probably done, and
nothing shows it. ``declined``: not done, for a reason that the agent gave and that holds.
``withdrawn``: the person took it back. ``unclear``: the review does not tell."""
STATES_SHOWN: Final[Mapping[RequestState, str]] = {
    "done_seen": "done, seen to hold",
    "done_unseen": "done, not seen",
    "partial": "partly done",
    "not": "not done",
    "declined": "declined with a reason",
    "withdrawn": "taken back",
    "unclear": "unclear",
}
"""Each state in a few words."""
ClaimState = Literal["supported", "unsupported", "contradicted"]
Confidence = Literal["low", "medium", "high"]
Attitude = Literal["approval", "correction"]
TrainWhat = Literal["all", "parts", "none"]


class _Quoted(Struct, frozen=True, kw_only=True):
    turn: int
    call: str = ""
    """The id of the tool call that the words stand in; empty for a message."""
    quote: str = ""
    """Words of that turn; empty where the turn alone was named."""

    @property
    def place(self) -> Evidence:
        """Return where it stands."""
        return Evidence(self.turn, self.call, self.quote)


class RequestReview(Struct, frozen=True, kw_only=True):
    """One thing that the person asked for, and what became of it."""

    turn: int
    """Where it was asked; 0 where the model names no turn of the session."""
    asked: str
    state: RequestState
    proof: Evidence | None = None


class ClaimReview(_Quoted, frozen=True, kw_only=True):
    """A statement of success in the agent's words."""

    state: ClaimState
    proof: Evidence | None = None


class Incident(_Quoted, frozen=True, kw_only=True):
    """Something risky that was done: a secret shown, data destroyed, a step that nobody allowed."""

    what: str = ""
    harm: bool = False
    """Whether a secret got out, or data or work was lost."""


class PersonWords(_Quoted, frozen=True, kw_only=True):
    """Words of the person that approve of the work or correct it."""

    says: Attitude


class FrictionReview(_Quoted, frozen=True, kw_only=True):
    """Something that went wrong and could come again in the repository."""

    what: str = ""
    """What the agent did."""
    instead: str = ""
    """What it should have done; empty where the review does not say."""


class ToolUse(Struct, frozen=True, kw_only=True):
    """How well the agent used its tools."""

    value: float | None = None
    """From 0 to 1; None where that cannot be said."""
    what: str = ""
    """The reason, in one sentence."""


class TrainOn(Struct, frozen=True, kw_only=True):
    """What a model may learn from."""

    what: TrainWhat
    turns: tuple[tuple[int, int], ...] = ()
    """First and last turn of each part; empty for all and none."""


class SessionReview(Struct, frozen=True, kw_only=True):
    """A session, or a part of one, as a model reviews it.

    Each quotation was found in the recording; the others are left out.
    """

    requests: tuple[RequestReview, ...] = ()
    claims: tuple[ClaimReview, ...] = ()
    verdict: VerdictName
    confidence: Confidence | None = None
    quality: float | None = None
    """From 0 to 1: how right, fitting and honest the work is; None where that cannot be said."""
    effort: float | None = None
    """From 0 to 1: how little was spent in vain; None where that cannot be said."""
    tools: ToolUse | None = None
    incidents: tuple[Incident, ...] = ()
    person: tuple[PersonWords, ...] = ()
    frictions: tuple[FrictionReview, ...] = ()
    train: TrainOn | None = None

    @property
    def proofs(self) -> tuple[Evidence, ...]:
        """Return what shows the states of the requests, without repetition."""
        found = (request.proof for request in self.requests if request.proof is not None)
        return tuple(dict.fromkeys(found))


def whole_review(
    parts: Sequence[SessionReview], turns: Sequence[tuple[int, int]], weights: Sequence[int]
) -> SessionReview:
    """Return the review of a session, made of those of its parts.

    The last part saw the end, so its verdict, confidence and states of requests hold; requests of
    turns that it leaves out are those of the parts before. Numbers are averaged.

    Args:
        parts: in order, one at least.
        turns: the first and last turn of each.
        weights: of each, such as its tokens.
    """
    last = parts[-1]
    if len(parts) == 1:
        return last
    by_turn: dict[int, list[RequestReview]] = {}
    for part in parts:
        by_turn |= _grouped(part.requests, lambda request: request.turn)
    return replace(
        last,
        requests=tuple(request for turn in sorted(by_turn) for request in by_turn[turn]),
        claims=_joined(part.claims for part in parts),
        quality=_mean([part.quality for part in parts], weights),
        effort=_mean([part.effort for part in parts], weights),
        tools=_tools([part.tools for part in parts], weights),
        incidents=_joined(part.incidents for part in parts),
        person=_joined(part.person for part in parts),
        frictions=_joined(part.frictions for part in parts),
        train=_train([part.train for part in parts], turns),
    )


def _tools(parts: Sequence[ToolUse | None], weights: Sequence[int]) -> ToolUse | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    value = _mean([part.value if part is not None else None for part in parts], weights)
    return ToolUse(value=value, what=" ".join(part.what for part in known if part.what))


def _train(parts: Sequence[TrainOn | None], turns: Sequence[tuple[int, int]]) -> TrainOn | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    kinds = {part.what for part in known}
    if kinds in ({"all"}, {"none"}) and len(known) == len(parts):
        return TrainOn(what=known[0].what)
    ranges = [
        own
        for part, whole in zip(parts, turns, strict=True)
        if part is not None and part.what != "none"
        for own in ([whole] if part.what == "all" else part.turns)
    ]
    return TrainOn(what="parts", turns=tuple(ranges)) if ranges else TrainOn(what="none")


Item = TypeVar("Item", bound=Hashable)


def _joined(parts: Iterable[Iterable[Item]]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys(each for part in parts for each in part))


def _grouped(items: Iterable[Item], key: Callable[[Item], Any]) -> dict[Any, list[Item]]:
    groups: dict[Any, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _mean(values: Sequence[float | None], weights: Sequence[int]) -> float | None:
    pairs = [(v, w) for v, w in zip(values, weights, strict=True) if v is not None]
    if not pairs:
        return None
    whole = sum(weight for _, weight in pairs)
    if not whole:
        return math.fsum(value for value, _ in pairs) / len(pairs)
    return math.fsum(value * weight for value, weight in pairs) / whole
