"""What a session took, turn by turn: tokens, cost, and how its context grew, drawn small."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from debrief.models.usage import ModelUsage, Price, price_of
from debrief.sessions.model import Message, Usage
from debrief.view.transcript import ShownTranscript, ShownTurn

WIDTH, HEIGHT = 300, 56
"""Of a drawing, in its own units."""
_WIDEST = 12.0


class Taken(Struct, frozen=True, kw_only=True):
    """What a turn took, its subagents included."""

    turn: int
    tokens: int
    """Input that was not in the provider's cache, and output."""
    cost: float | None
    """In USD; None when a model's price is not known."""
    context: int
    """Tokens of the longest prompt that the model was sent."""


class Bar(Struct, frozen=True, kw_only=True):
    """A turn's bar in a drawing."""

    taken: Taken
    x: float
    y: float
    width: float
    height: float


class Figure(Struct, frozen=True, kw_only=True):
    """The drawings of a session."""

    bars: tuple[Bar, ...]
    """Tokens a turn."""
    line: str
    """Points of the context's growth, message by message; empty for fewer than two."""
    compactions: tuple[float, ...]
    """Where the conversation was compacted."""
    largest: int
    """Tokens of the largest context."""
    tokens: int
    cost: float | None
    """Of all turns; None when a model's price is not known."""


def figure_of(transcript: ShownTranscript, prices: Path) -> Figure | None:
    """Return the drawings of a session; None when its transcript counts no tokens.

    Args:
        transcript: the session's.
        prices: a file of one's own prices, which comes before what is known of models.
    """
    own = (message for turn in transcript.session.turns for message in turn.messages)
    others = (message for agent in transcript.session.subagents for message in agent.messages)
    models = {message.model for message in (*own, *others)}
    known = {model: price_of(model, prices) for model in models}
    taken = [_taken(transcript, shown, known) for shown in transcript.turns]
    if not any(each.tokens for each in taken):
        return None
    most = max(each.tokens for each in taken)
    step = WIDTH / len(taken)
    bars = [
        Bar(
            taken=each,
            x=round(place * step, 2),
            y=round(HEIGHT - HEIGHT * each.tokens / most, 2),
            width=round(min(_WIDEST, max(step * 0.8, 0.5)), 2),
            height=round(HEIGHT * each.tokens / most, 2),
        )
        for place, each in enumerate(taken)
    ]
    points, compactions = _growth(transcript.turns)
    costs = [each.cost for each in taken]
    return Figure(
        bars=tuple(bars),
        line=points,
        compactions=compactions,
        largest=max(each.context for each in taken),
        tokens=sum(each.tokens for each in taken),
        cost=None if None in costs else sum(filter(None, costs)),
    )


def _taken(
    transcript: ShownTranscript, shown: ShownTurn, prices: Mapping[str, Price | None]
) -> Taken:
    own = shown.turn.messages
    calls = (call for message in own for call in message.calls)
    agents = (agent for call in calls for agent in transcript.agents_of(call))
    messages = [*own, *(message for agent in agents for message in agent.agent.messages)]
    costs = [_cost(message, prices[message.model]) for message in messages]
    return Taken(
        turn=shown.turn.number,
        tokens=sum(
            each.usage.input + each.usage.cache_write + each.usage.output for each in messages
        ),
        cost=None if None in costs else sum(filter(None, costs)),
        context=max((_context(message.usage) for message in own), default=0),
    )


def _cost(message: Message, price: Price | None) -> float | None:
    usage = message.usage
    if usage == Usage():
        return 0.0
    if price is None:
        return None
    return price.cost(
        ModelUsage(
            input_tokens=_context(usage),
            output_tokens=usage.output,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
        )
    )


def _context(usage: Usage) -> int:
    return usage.input + usage.cache_write + usage.cache_read


def _growth(turns: Iterable[ShownTurn]) -> tuple[str, tuple[float, ...]]:
    """Return the points of the context's growth, and where the conversation was compacted."""
    sizes: list[int] = []
    compacted: list[int] = []
    for shown in turns:
        if shown.turn.compacted:
            compacted.append(len(sizes))
        sizes += [size for each in shown.turn.messages if (size := _context(each.usage))]
    if len(sizes) < 2:
        return "", ()
    most, last = max(sizes), len(sizes) - 1
    kept: Sequence[int] = range(0, len(sizes), max(1, len(sizes) // WIDTH))
    points = (f"{WIDTH * n / last:.1f},{HEIGHT - HEIGHT * sizes[n] / most:.1f}" for n in kept)
    return " ".join(points), tuple(round(WIDTH * min(n, last) / last, 1) for n in compacted)
