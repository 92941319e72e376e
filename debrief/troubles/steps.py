"""A session as a list of steps of each agent, with the tokens and time of a stretch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import astuple

from debrief.models.usage import ModelUsage, Price
from debrief.sessions.model import Evidence, Message, Session, ToolCall, Turn, Usage
from debrief.troubles.model import TroubleKind, TroubleReason

Prices = Callable[[str], Price | None]
"""The price of a model by its name; None when it is not known."""
_SILENCE = 600.0
"""Seconds: a longer wait for the next message is no work, but a person who is away."""


class CallMade(Struct, frozen=True, kw_only=True):
    """A call, where it stands, and the message that it is of."""

    turn: int
    agent: str
    """The subagent's id; empty for the session's own agent."""
    message: int
    """Number of the message in the session."""
    call: ToolCall
    at: datetime | None
    """Of the call, else of its message."""
    folder: str = ""
    """The session's."""

    def below(self, path: str) -> str:
        """Return a path below the session's folder; as it is where it lies elsewhere."""
        folder = self.folder.rstrip("/") + "/"
        if "\\" in folder:  # of Windows
            folder, path = (text.replace("\\", "/") for text in (folder, path))
        below = path.removeprefix(folder) if len(folder) > 1 else path
        return below.removeprefix("./")

    def evidence(self, quote: str) -> Evidence:
        """Return this place with the words that show something."""
        return Evidence(self.turn, self.call.id, quote)


class Mishap(Struct, frozen=True, kw_only=True):
    """One time that something went wrong, before it is known what it took."""

    kind: TroubleKind
    subject: str
    name: str
    reason: TroubleReason = ""
    at: datetime | None
    evidence: Evidence
    steps: tuple[CallMade, ...] = ()
    messages: tuple[int, ...] = ()
    """Of the stretch; by default those of its steps."""
    command: str = ""
    file: str = ""
    words: str = ""
    worked: str = ""
    put_in: int = 0
    """Tokens that a result put into the context, where the stretch is that alone."""


class Toll(Struct, frozen=True):
    """What one message took."""

    usage: Usage
    model: str
    seconds: float | None
    calls: int = 0
    """That it made."""

    def of_result(self, tokens: int) -> Toll:
        """Return what a result of so many tokens takes alone: they are put into the context once,
        and written into the provider's cache where the model's program uses it."""
        is_cached = bool(self.usage.cache_write)
        usage = Usage(cache_write=tokens) if is_cached else Usage(input=tokens)
        return Toll(usage, self.model, None)


class Course:
    """What the agents of a session did, each in order.

    What a fork has from its original counts there alone.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.tolls: list[Toll] = []
        """Of each message, by its number."""
        self.last_message: dict[int, int] = {}
        """Number of the last message of each turn; absent for a turn without one."""
        self.compactions: list[int] = []
        """Numbers of the own agent's messages that were first after a compaction."""
        self._messages: dict[int, tuple[int, ...]] = {}
        own: list[CallMade] = []
        turns = [turn for turn in session.turns if turn.origin != "inherited"]
        for turn in turns:
            begun = len(self.tolls)
            own += self._steps(turn.number, "", turn.messages, turn.ended)
            self._messages[turn.number] = tuple(range(begun, len(self.tolls)))
            if turn.messages:
                self.last_message[turn.number] = len(self.tolls) - 1
        places = {step.call.id: step.turn for step in own}
        last = turns[-1].number if turns else 0
        self.strands: list[list[CallMade]] = [own]
        """The steps of the session's own agent, then those of each subagent."""
        for child in session.subagents:
            number = next((places[key] for key in (child.call_id, child.id) if key in places), last)
            self.strands.append(list(self._steps(number, child.id, child.messages, None)))
        self.turns: list[Turn] = turns

    def parts_of(self, mishap: Mishap, known: set[str]) -> list[tuple[Toll, float]]:
        """Return what the messages of a mishap took, each with the share of it that counts: that
        of the calls of the stretch which are not ``known`` yet. They are from then on."""
        if mishap.messages:
            fresh = [number for number in mishap.messages if f"message {number}" not in known]
            known.update(f"message {number}" for number in fresh)
            return [(self.tolls[number], 1.0) for number in fresh]
        steps = [step for step in mishap.steps if step.call.id not in known]
        known.update(step.call.id for step in steps)
        if mishap.put_in:
            return [(self.tolls[step.message].of_result(mishap.put_in), 1.0) for step in steps[:1]]
        counts = Counter(step.message for step in steps)
        return [
            (toll, n / toll.calls) for number, n in counts.items() for toll in [self.tolls[number]]
        ]

    def messages_of_turn(self, number: int) -> tuple[int, ...]:
        """Return the numbers of the own agent's messages of a turn."""
        return self._messages.get(number, ())

    def _steps(
        self, turn: int, agent: str, messages: Sequence[Message], ended: datetime | None
    ) -> Iterator[CallMade]:
        ends = [message.at for message in messages[1:]] + [ended]
        steps: list[CallMade] = []
        for message, end in zip(messages, ends, strict=False):
            number = len(self.tolls)
            if message.summary and not agent:
                self.compactions.append(number)
            self.tolls.append(
                Toll(message.usage, message.model, _seconds(message.at, end), len(message.calls))
            )
            steps += (
                CallMade(
                    turn=turn,
                    agent=agent,
                    message=number,
                    call=call,
                    at=call.at or message.at,
                    folder=self.session.cwd,
                )
                for call in message.calls
            )
        return iter(steps)


def _seconds(begun: datetime | None, ended: datetime | None) -> float | None:
    if begun is None or ended is None or ended < begun:
        return None
    passed = (ended - begun).total_seconds()
    return passed if passed <= _SILENCE else None


def cost_of(
    parts: Iterable[tuple[Toll, float]], prices: Prices
) -> tuple[Usage, float | None, float | None]:
    """Return the tokens of messages, what they cost in USD, and the minutes they took.

    The cost is None as soon as a message's price or its tokens are not known; the minutes are None
    where no message's are.

    Args:
        parts: messages, each with the share of it that counts, up to 1.
        prices: returns the price of a model by its name.
    """
    usage, cost = [0.0] * len(Usage.__struct_fields__), 0.0
    seconds: list[float] = []
    known = True
    for toll, share in parts:
        usage = [
            whole + share * tokens for whole, tokens in zip(usage, astuple(toll.usage), strict=True)
        ]
        price = prices(toll.model) if any(astuple(toll.usage)) else None
        known = known and price is not None
        cost += share * price.cost(_billed(toll.usage)) if price is not None else 0.0
        if toll.seconds is not None:
            seconds.append(share * toll.seconds)
    minutes = round(sum(seconds) / 60, 2) if seconds else None
    total = Usage(*map(round, usage))
    return total, (round(cost, 6) if known and any(usage) else None), minutes


def _billed(usage: Usage) -> ModelUsage:
    return ModelUsage(
        input_tokens=usage.input + usage.cache_read + usage.cache_write,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
