"""Small charts of a session: tokens, cost and context size by turn."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from debrief.models.session_cost import Prices, message_cost
from debrief.models.usage import total_cost
from debrief.view.transcript import ShownTranscript, ShownTurn

WIDTH, HEIGHT = 300, 56
"""Of a drawing, in its own units."""
_WIDEST = 12.0


class Bar(Struct, frozen=True, kw_only=True):
    """What a turn took, its subagents included, as a bar in a drawing."""

    turn: int
    anchor: str
    tokens: int
    """Input that was not in the provider's cache, and output."""
    cost: float | None
    """In USD; None when a model's price is not known."""
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
    known = Prices(prices)
    taken = [_taken(transcript, shown, known) for shown in transcript.turns]
    most = max((tokens for tokens, _ in taken), default=0)
    if not most:
        return None
    step = WIDTH / len(taken)
    bars = [
        Bar(
            turn=shown.turn.number,
            anchor=shown.anchor,
            tokens=tokens,
            cost=cost,
            x=round(place * step, 2),
            y=round(HEIGHT - HEIGHT * tokens / most, 2),
            width=round(min(_WIDEST, max(step * 0.8, 0.5)), 2),
            height=round(HEIGHT * tokens / most, 2),
        )
        for place, (shown, (tokens, cost)) in enumerate(zip(transcript.turns, taken, strict=True))
    ]
    sizes, compacted = _context(transcript.turns)
    last, largest = len(sizes) - 1, max(sizes, default=0)
    kept = range(0, len(sizes), max(1, len(sizes) // WIDTH)) if last > 0 else ()
    points = (f"{WIDTH * n / last:.1f},{HEIGHT - HEIGHT * sizes[n] / largest:.1f}" for n in kept)
    return Figure(
        bars=tuple(bars),
        line=" ".join(points),
        compactions=tuple(round(WIDTH * min(n, last) / last, 1) for n in compacted if kept),
        largest=largest,
        tokens=sum(bar.tokens for bar in bars),
        cost=total_cost(bar.cost for bar in bars),
    )


def _taken(
    transcript: ShownTranscript, shown: ShownTurn, prices: Prices
) -> tuple[int, float | None]:
    """Return a turn's tokens, and what they cost."""
    own = shown.turn.messages
    calls = (call for message in own for call in message.calls)
    agents = (agent for call in calls for agent in transcript.agents_of(call))
    messages = [*own, *(message for agent in agents for message in agent.agent.messages)]
    tokens = sum(
        message.usage.input + message.usage.cache_write + message.usage.output
        for message in messages
    )
    return tokens, total_cost(
        message_cost(message, prices.of(message.model)) for message in messages
    )


def _context(turns: Iterable[ShownTurn]) -> tuple[list[int], list[int]]:
    """Return the size of each prompt that the model was sent, and before which of them the
    conversation was compacted."""
    sizes: list[int] = []
    compacted: list[int] = []
    for shown in turns:
        if shown.turn.compacted:
            compacted.append(len(sizes))
        usages = (message.usage for message in shown.turn.messages)
        sizes += filter(
            None, (usage.input + usage.cache_write + usage.cache_read for usage in usages)
        )
    return sizes, compacted
