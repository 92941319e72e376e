"""Tool calls in Langfuse observations, where later messages repeat them: each is taken once.

A model's output reports a call. Its result is in the inputs after it, each of which repeats
the whole conversation up to there, and often in an observation of the tool as well. Nothing of
this may be counted twice, although vendors differ in whether calls have ids, and whether an id is
used once, once a trace, or for every call of a tool.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import orjson

from debrief.langfuse.messages import TracedMessage
from debrief.langfuse.parts import ReportedCall, ReportedResult
from debrief.langfuse.traces import Observed
from debrief.sessions.model import CallStatus, ToolCall

_NONE = ("", "{}")
"""Arguments that nothing tells, and none."""


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

    def may_be_of(self, one: Observed) -> bool:
        """Return whether an observation may be of it: it did not begin before the report."""
        return not (one.at and self.reported and one.at < self.reported)

    def observe(self, one: Observed) -> None:
        """Take what was observed of it, and not told: of its result, what the model was given
        next tells more."""
        self.observed = True
        self.at = one.at or self.at
        if self.arguments in _NONE and one.arguments:
            self.arguments, self.key = one.arguments, one.key
        if self.result is None and one.result is not None:
            self.answer(one.result, one.status)
        elif one.status == "failed" and self.status != "rejected":
            self.status = "failed"

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
        self._settled: dict[int, TracedMessage] = {}
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
        self, messages: Sequence[TracedMessage], trace: str, turn: int, since: int
    ) -> dict[int, list[Repeat]]:
        """Take the results in a conversation; return the calls, by the place of the message in it,
        that nobody reported yet.

        Args:
            messages: an input, which repeats what was said before. What it has in common with an
                input before, in the very same objects, is not looked at again.
            trace: that it belongs to.
            turn: that it belongs to.
            since: where in ``messages`` a person spoke last; calls before are none of this turn.
        """
        repeated, loose = _paired(messages, self._settled)
        self._settled.update((id(message), message) for message in messages)
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

        find(True, lambda call: ("trace", trace, call.id, call.name, call.key))
        find(True, lambda call: ("any", call.id, call.name, call.key))
        find(True, lambda call: ("id", call.id), lambda call: len(self.by_id(call.id)) > 1)
        find(True, lambda call: ("turn", turn, call.name, call.key), lambda call: bool(call.id))
        find(False, lambda call: ("turn", turn, call.name, call.key))

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
    messages: Sequence[TracedMessage], settled: Mapping[int, TracedMessage]
) -> tuple[list[_Repeated], list[ReportedResult]]:
    """Return the calls in a conversation with their results, and the results without a call.

    A result answers the first call of its id that waits, else of its name, else at all. Where a
    later message calls the same once more, what the one before called waits no longer.
    """
    repeated: list[_Repeated] = []
    waiting: dict[tuple[str, str], deque[_Repeated]] = {}
    loose: list[ReportedResult] = []
    for place, message in enumerate(messages):
        if id(message) in settled:
            continue
        made = [_Repeated(call, place) for call in message.calls]
        repeated += made
        latest: dict[tuple[str, str], deque[_Repeated]] = {}
        for each in made:
            for name in (("id", each.call.id), ("name", each.call.name), ("any", "")):
                latest.setdefault(name, deque()).append(each)
        waiting |= latest
        for result in message.results:
            key = ("id", result.call_id) if result.call_id else ("name", result.name)
            queue = waiting.get(key if key[1] else ("any", ""), deque())
            while queue and queue[0].result is not None:
                queue.popleft()
            if queue:
                queue[0].result = result
            else:
                loose.append(result)
    return repeated, loose


_UNDER_WAY = 200
"""Calls of a tool that may wait for their results at once; of which an observation with other
arguments may be."""
_BEFORE_A_NAME = (" ", ".", "/", ":")
_BEFORE_A_SERVER_S_NAME = ("__", ".", "/", ":")


def match(calls: Sequence[TracedCall], observed: Iterable[Observed]) -> list[Observed]:
    """Give each call what was observed of it, and return the observations of no call.

    By id where there is one; else by name, what came back alike before the same arguments alone,
    and those before arguments that a framework filled up or changed.
    """
    by_id: defaultdict[str, list[TracedCall]] = defaultdict(list)
    by_key: defaultdict[str, list[TracedCall]] = defaultdict(list)
    for call in calls:
        by_id[call.id].append(call)
        by_key[call.key].append(call)
    rest: list[Observed] = []
    for one in observed:
        found = by_id.get(one.call_id, []) if one.call_id else []
        waiting = [call for call in found if not call.observed]
        if waiting:
            waiting[0].observe(one)
        elif not found:
            rest.append(one)
    alike = {key: _Latest(found) for key, found in by_key.items()}
    for fits, key in itertools.product((_same_result, _by_name_alone), ("key", "inner_key")):
        found_by = ((observed, alike.get(getattr(observed, key))) for observed in rest)
        rest = [
            observed
            for observed, latest in found_by
            if latest is None or not latest.takes(observed, fits)
        ]
    arguments_in = cache(orjson.loads)

    def more_arguments(one: Observed, call: TracedCall) -> bool:
        called, given = arguments_in(call.key), arguments_in(one.key)
        return bool(called.items() <= given.items())

    for fits in (more_arguments, _by_name_alone):
        left = _Latest(calls)
        rest = [observed for observed in rest if not left.takes(observed, fits)]
    return rest


class _Latest:
    """Calls that were not observed yet, those of the latest message first, and of that the first
    one: an observation is of the latest that was reported before it."""

    def __init__(self, calls: Iterable[TracedCall]) -> None:
        self._by_name: dict[str, list[TracedCall]] = {}
        for call in calls:
            if not call.observed:
                self._by_name.setdefault(call.name, []).append(call)
        for alike in self._by_name.values():
            alike.sort(key=_how_late, reverse=True)

    def takes(self, one: Observed, fits: Callable[[Observed, TracedCall], bool]) -> bool:
        """Give an observation to the call that it fits, if there is one."""
        found: list[TracedCall] = []
        for name, alike in self._by_name.items():
            if same_tool(one.name, name):
                waiting = (call for call in alike if not call.observed and call.may_be_of(one))
                under_way = itertools.islice(waiting, _UNDER_WAY)
                found += itertools.islice((call for call in under_way if fits(one, call)), 1)
        if not found:
            return False
        latest = max(found, key=_how_late)
        latest.observe(one)
        self._by_name[latest.name].remove(latest)
        return True


def same_tool(observed: str, called: str) -> bool:
    """Return whether an observation's name is that of a tool: itself, behind what a framework says
    of it (``execute_tool search``), or without the server that the model knows it by.

    >>> same_tool("running tool: search", "search"), same_tool("search", "mcp__web__search")
    (True, True)
    >>> same_tool("search", "re_search")
    False
    """
    if observed == called:
        return True
    if observed.endswith(called):
        return observed.removesuffix(called).endswith(_BEFORE_A_NAME)
    return called.endswith(observed) and called.removesuffix(observed).endswith(
        _BEFORE_A_SERVER_S_NAME
    )


def _same_result(one: Observed, call: TracedCall) -> bool:
    return call.result == one.result


def _how_late(call: TracedCall) -> float:
    return call.reported.timestamp() if call.reported is not None else -math.inf


def _by_name_alone(one: Observed, call: TracedCall) -> bool:
    return True
