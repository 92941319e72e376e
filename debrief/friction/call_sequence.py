"""A session as the calls of each agent, in order, with the tokens and the time of a stretch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import count

from msgspec import Struct
from msgspec.structs import astuple

from debrief.models.usage import ModelUsage, Price
from debrief.sessions.model import Evidence, Message, Session, ToolCall, Usage

Prices = Callable[[str], Price | None]
"""Returns the price of a model by its name; None when it is not known."""
_SILENCE = 600.0
"""Seconds: a longer wait for the next message is no work, but a person who is away."""


class MessageCost(Struct, frozen=True):
    """What one message took."""

    usage: Usage
    model: str
    seconds: float | None
    calls: int
    """That it made."""


class CallMade(Struct, frozen=True, kw_only=True):
    """A call, where it stands, and what its message took."""

    turn: int
    call: ToolCall
    at: datetime | None
    """Of the call, else of its message."""
    message: int
    """Number of its message, within the session."""
    cost: MessageCost

    def evidence(self, quote: str) -> Evidence:
        """Return this place with the words that show something."""
        return Evidence(self.turn, self.call.id, quote)


def call_sequences(session: Session) -> list[list[CallMade]]:
    """Return the calls of the session's own agent, then those of each subagent.

    What a fork has from its original counts there alone.
    """
    numbers = count()
    turns = [turn for turn in session.turns if turn.origin != "inherited"]
    own = [
        made for turn in turns for made in _calls(turn.number, turn.messages, turn.ended, numbers)
    ]
    places = {made.call.id: made.turn for made in own}
    last = turns[-1].number if turns else 0
    others = [
        list(
            _calls(
                next((places[key] for key in (child.call_id, child.id) if key in places), last),
                child.messages,
                None,
                numbers,
            )
        )
        for child in session.subagents
    ]
    return [own, *others]


def _calls(
    turn: int, messages: Sequence[Message], ended: datetime | None, numbers: Iterator[int]
) -> Iterator[CallMade]:
    ends = [message.at for message in messages[1:]] + [ended]
    for message, end in zip(messages, ends, strict=False):
        number = next(numbers)
        seconds = _seconds(message.at, end)
        cost = MessageCost(message.usage, message.model, seconds, len(message.calls))
        for call in message.calls:
            at = call.at or message.at
            yield CallMade(turn=turn, call=call, at=at, message=number, cost=cost)


def _seconds(begun: datetime | None, ended: datetime | None) -> float | None:
    if begun is None or ended is None or ended < begun:
        return None
    passed = (ended - begun).total_seconds()
    return passed if passed <= _SILENCE else None


def cost_of(calls: Sequence[CallMade], prices: Prices) -> tuple[Usage, float | None, float | None]:
    """Return the tokens of calls, what they cost in USD, and the minutes they took.

    Of a message that made other calls too, the share of these counts. The cost is None as soon as
    a price or tokens are not known; the minutes are None where no message's are.

    Args:
        calls: of one stretch, each once.
        prices: returns the price of a model by its name.
    """
    usage, cost, known = [0.0] * len(Usage.__struct_fields__), 0.0, True
    seconds: list[float] = []
    shares = Counter(made.message for made in calls)
    for made in {made.message: made for made in calls}.values():
        took = made.cost
        share = shares[made.message] / took.calls
        tokens = astuple(took.usage)
        usage = [whole + share * each for whole, each in zip(usage, tokens, strict=True)]
        price = prices(took.model) if any(tokens) else None
        known = known and price is not None
        cost += share * price.cost(_billed(took.usage)) if price is not None else 0.0
        if took.seconds is not None:
            seconds.append(share * took.seconds)
    minutes = round(sum(seconds) / 60, 2) if seconds else None
    is_priced = known and any(usage)
    return Usage(*map(round, usage)), round(cost, 6) if is_priced else None, minutes


def _billed(usage: Usage) -> ModelUsage:
    return ModelUsage(
        input_tokens=usage.input + usage.cache_read + usage.cache_write,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
