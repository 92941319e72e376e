"""Observations of tools, and which of the calls that a model reported each of them is of."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import orjson
from msgspec import Struct

from debrief.langfuse import vendors
from debrief.langfuse.calls import TracedCall
from debrief.langfuse.client import Row
from debrief.langfuse.parts import attributes_in, result_of, result_text, same_spelling
from debrief.langfuse.vendors import arguments_of, decoded, plain
from debrief.sessions.model import CallStatus
from debrief.sessions.readers.values import first_string, mapping, moment

_OF_MESSAGES = ("tool_call_id", "isError", "is_error")
"""Marks of an output that is a message or an answer of a server, and not the tool's own data."""
_NONE = ("", "{}")
"""Arguments that nothing tells, and none."""
_UNDER_WAY = 200
"""Calls of a tool that may wait for their results at once; of which an observation with other
arguments may be."""
_BEFORE_A_NAME = (" ", ".", "/", ":")
_BEFORE_A_SERVER_S_NAME = ("__", ".", "/", ":")


class Observed(Struct, frozen=True, eq=False):
    """One observation of a tool."""

    id: str
    """The observation's own."""
    parent: str
    """The id of the observation that it is a part of; empty for none."""
    call_id: str
    """Of the call that it is of, where the integration tells; empty where not."""
    name: str
    arguments: str
    """As compact JSON text of an object; empty where it has no input."""
    key: str
    """The arguments in one spelling."""
    inner_key: str
    """The same of what is under their only key, where that is all that they are."""
    at: datetime | None
    result: str | None
    status: CallStatus
    """``ok`` where it is not known how it went."""
    is_a_tool_s: bool
    """The integration says that it is a tool's; else it only may be."""

    def may_be_of(self, call: TracedCall) -> bool:
        """Return whether it did not begin before the call was reported."""
        return not (self.at and call.reported and self.at < call.reported)

    def answer(self, call: TracedCall) -> None:
        """Give a call what was observed of it, and not told: of its result, what the model was
        given next tells more."""
        call.observed = True
        call.at = self.at or call.at
        if call.arguments in _NONE and self.arguments:
            call.arguments, call.key = self.arguments, self.key
        if call.result is None and self.result is not None:
            call.answer(self.result, self.status)
        elif self.status == "failed" and call.status != "rejected":
            call.status = "failed"


def observed_in(row: Row, is_a_tool_s: bool) -> Observed:
    """Return an observation as one of a tool."""
    given, gave = decoded(row.get("input")), decoded(row.get("output"))
    facts = _facts(row)
    inner = gave.get("kwargs") if isinstance(gave, dict) and gave.get("lc") == 1 else gave
    message = mapping(inner)
    failed = row.get("level") == "ERROR"
    if any(key in message for key in _OF_MESSAGES):
        failed = failed or result_of(message).status == "failed"
    status: CallStatus = "failed" if failed else "ok"
    result = None if gave is None or gave == "" else _text_of(row.get("output"), gave)
    if failed and not result:
        result = str(row.get("statusMessage") or "") or None
    if isinstance(given, dict) and set(given) == {"args", "kwargs"} and not given["args"]:
        given = given["kwargs"]
    arguments = arguments_of(given)
    return Observed(
        id=str(row.get("id")),
        parent=str(row.get("parentObservationId") or ""),
        call_id=_attribute(facts, vendors.OBSERVED_IDS) or first_string(message, "tool_call_id"),
        name=_attribute(facts, vendors.OBSERVED_NAMES)
        or str(row.get("name") or row.get("type") or "tool"),
        arguments="" if given in (None, "") else arguments,
        key=same_spelling(arguments),
        inner_key=same_spelling(arguments_of(_inside(given))),
        at=moment(row.get("startTime")),
        result=result,
        status=status,
        is_a_tool_s=is_a_tool_s,
    )


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
            one.answer(waiting[0])
        elif not found:
            rest.append(one)
    alike = {key: _Latest(found) for key, found in by_key.items()}
    for fits, key in itertools.product((_same_result, _by_name_alone), ("key", "inner_key")):
        found_by = ((one, alike.get(getattr(one, key))) for one in rest)
        rest = [one for one, latest in found_by if latest is None or not latest.takes(one, fits)]
    arguments_in = cache(orjson.loads)

    def more_arguments(one: Observed, call: TracedCall) -> bool:
        called, given = arguments_in(call.key), arguments_in(one.key)
        return bool(called.items() <= given.items())

    for fits in (more_arguments, _by_name_alone):
        left = _Latest(calls)
        rest = [one for one in rest if not left.takes(one, fits)]
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
                waiting = (call for call in alike if not call.observed and one.may_be_of(call))
                under_way = itertools.islice(waiting, _UNDER_WAY)
                found += itertools.islice((call for call in under_way if fits(one, call)), 1)
        if not found:
            return False
        latest = max(found, key=_how_late)
        one.answer(latest)
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


def _text_of(output: object, gave: object) -> str:
    """Return what a tool gave: the words in the usual covers, else its very text."""
    if not isinstance(gave, dict | list):
        return result_text(_unquoted(gave))
    text = result_text(gave)
    return plain(output) if text == plain(gave) else text


def _unquoted(value: object) -> object:
    """Return a text that was written down as JSON as it was before."""
    if not (isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"'):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def _inside(arguments: object) -> object:
    """Return what is under the only key of arguments that some integrations put around them."""
    if isinstance(arguments, dict) and set(arguments) == {"input"}:
        return decoded(arguments["input"])
    return arguments


def _attribute(facts: dict[str, Any], names: tuple[str, ...]) -> str:
    """Return a name or an id, which some write down as JSON."""
    given = _unquoted(first_string(facts, *names))
    return given if isinstance(given, str) else ""


def _facts(row: Row) -> dict[str, Any]:
    """Return the names and ids that stand in an observation's metadata."""
    metadata = mapping(decoded(row.get("metadata")))
    return {**metadata, **attributes_in(metadata, vendors.OBSERVED_MARKS)}
