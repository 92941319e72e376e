"""The calls of a session, reported once, and their results, repeated again and again.

A model's output reports a call. Its result is in the inputs after it, each of which repeats
the whole conversation up to there, and often by an observation of the tool as well. Nothing of
this may be counted twice, although vendors differ in whether calls have ids, and whether an id is
used once, once a trace, or for every call of a tool.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from debrief.langfuse.messages import Said
from debrief.langfuse.parts import ReportedCall, ReportedResult
from debrief.sessions.model import CallStatus, ToolCall


@dataclass(slots=True, eq=False)
class TracedCall:
    """A call as it becomes known."""

    id: str
    name: str
    arguments: str
    """Empty while nothing tells them."""
    key: str
    """The arguments in one spelling."""
    trace: str
    turn: int
    reported: datetime | None = None
    """When its message began."""
    at: datetime | None = None
    """When its tool began, where that was observed."""
    result: str | None = None
    status: CallStatus = "unanswered"
    observed: bool = False
    """An observation of the tool was found."""

    def answer(self, text: str, status: CallStatus) -> None:
        """Take a result."""
        self.result, self.status = text, status

    def made(self) -> ToolCall:
        """Return it in the normal form."""
        return ToolCall(
            id=self.id,
            name=self.name,
            input=self.arguments,
            result=self.result,
            status=self.status,
            at=self.at or self.reported,
        )


@dataclass(slots=True, eq=False)
class _Repeated:
    """A call as an input repeats it."""

    call: ReportedCall
    place: int
    """Of its message in the input."""
    result: ReportedResult | None = None
    known: TracedCall | None = None


Repeat = tuple[ReportedCall, ReportedResult | None]
"""A call that only a later input tells, and what came back from it."""


class Calls:
    """All calls that a session's models reported so far."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, list[TracedCall]] = {}
        self._settled: dict[int, Said] = {}
        """Messages that were taken before, by the place of each in memory."""

    def add(self, reported: ReportedCall, trace: str, turn: int, at: datetime | None) -> TracedCall:
        """Take a call that a model tells for the first time."""
        call = TracedCall(
            reported.id, reported.name, reported.arguments, reported.key, trace, turn, at
        )
        for key in _keys(call.id, call.name, call.key, trace, turn):
            self._by_key.setdefault(key, []).append(call)
        return call

    def find(self, reported: ReportedCall, trace: str) -> TracedCall | None:
        """Return the call of a trace that is repeated, nothing having come back from it."""
        found = self._by_key.get(("trace", trace, reported.id, reported.name, reported.key), ())
        return next((call for call in reversed(found) if call.result is None), None)

    def by_id(self, call_id: str) -> Sequence[TracedCall]:
        """Return the calls that have an id, in the order that they were reported."""
        return self._by_key.get(("id", call_id), ()) if call_id else ()

    def settle(
        self, said: Sequence[Said], trace: str, turn: int, since: int
    ) -> dict[int, list[Repeat]]:
        """Take the results in a conversation; return the calls, by the place of the message in it,
        that nobody reported yet.

        Args:
            said: an input, which repeats what was said before. What it has in common with an
                input before, in the very same objects, is not looked at again.
            trace: that it belongs to.
            turn: that it belongs to.
            since: where in ``said`` a person spoke last; calls before are none of this turn.
        """
        repeated, loose = _paired(said, self._settled)
        self._settled.update((id(one), one) for one in said)
        self._recognise(repeated, trace, turn)
        for one in repeated:
            if one.known is None:
                continue
            if one.result is not None and one.known.result is None:
                one.known.answer(one.result.text, one.result.status)
            if not one.known.arguments:
                one.known.arguments, one.known.key = one.call.arguments, one.call.key
        for result in loose:
            self._answer(result, trace, turn)
        unknown: dict[int, list[Repeat]] = {}
        for one in repeated:
            if one.known is None and one.place > since:
                unknown.setdefault(one.place, []).append((one.call, one.result))
        return unknown

    def _recognise(self, repeated: list[_Repeated], trace: str, turn: int) -> None:
        """Find the reported calls that are repeated: of several alike, the latest by the latest."""

        taken: set[TracedCall] = set()

        def find(
            has_id: bool,
            key_of: Callable[[ReportedCall], Hashable],
            unless: Callable[[TracedCall], bool] = lambda _: False,
        ) -> None:
            left: dict[Hashable, int] = {}
            for one in reversed(repeated):
                if one.known is not None or bool(one.call.id) != has_id:
                    continue
                key = key_of(one.call)
                found = self._by_key.get(key, ())
                at = left.get(key, len(found)) - 1
                while at >= 0 and (found[at] in taken or unless(found[at])):
                    at -= 1
                left[key] = max(at, 0)
                if at >= 0:
                    one.known = found[at]
                    taken.add(found[at])

        find(True, lambda one: ("trace", trace, one.id, one.name, one.key))
        find(True, lambda one: ("any", one.id, one.name, one.key))
        find(True, lambda one: ("id", one.id), lambda call: len(self.by_id(call.id)) > 1)
        find(True, lambda one: ("turn", turn, one.name, one.key), lambda call: bool(call.id))
        find(False, lambda one: ("turn", turn, one.name, one.key))

    def _answer(self, result: ReportedResult, trace: str, turn: int) -> None:
        """Give a result to its call where the input repeats the result alone."""
        if result.call_id:
            found = [call for call in self.by_id(result.call_id) if call.result is None]
            own = [call for call in found if call.trace == trace]
            call = next(reversed(own or found), None)
        else:
            waiting = self._by_key.get(("turn", turn), ())
            fitting = (c for c in waiting if result.name in ("", c.name) and c.result is None)
            call = next(fitting, None)
        if call is not None:
            call.answer(result.text, result.status)


def _keys(call_id: str, name: str, key: str, trace: str, turn: int) -> Iterable[Hashable]:
    if call_id:
        yield "id", call_id
        yield "any", call_id, name, key
    yield "trace", trace, call_id, name, key
    yield "turn", turn, name, key
    yield "turn", turn


def _paired(
    said: Sequence[Said], settled: Mapping[int, Said]
) -> tuple[list[_Repeated], list[ReportedResult]]:
    """Return the calls in a conversation with their results, and the results without a call.

    A result answers the first call of its id that waits, else of its name, else at all. Where a
    later message calls the same once more, what the one before called waits no longer.
    """
    repeated: list[_Repeated] = []
    waiting: dict[tuple[str, str], deque[_Repeated]] = {}
    loose: list[ReportedResult] = []
    for place, one in enumerate(said):
        if id(one) in settled:
            continue
        made = [_Repeated(call, place) for call in one.calls]
        repeated += made
        latest: dict[tuple[str, str], deque[_Repeated]] = {}
        for each in made:
            for name in (("id", each.call.id), ("name", each.call.name), ("any", "")):
                latest.setdefault(name, deque()).append(each)
        waiting |= latest
        for result in one.results:
            key = ("id", result.call_id) if result.call_id else ("name", result.name)
            queue = waiting.get(key if key[1] else ("any", ""), deque())
            while queue and queue[0].result is not None:
                queue.popleft()
            if queue:
                queue[0].result = result
            else:
                loose.append(result)
    return repeated, loose
