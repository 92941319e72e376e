"""One trace: its observations, how they hang together, and what a person asked for in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import orjson
from msgspec import Struct

from debrief.langfuse import vendors
from debrief.langfuse.client import Row
from debrief.langfuse.messages import Memory, TracedMessage, messages_by, messages_to
from debrief.langfuse.parts import Parts, attributes_in, result_of, result_text, same_spelling
from debrief.langfuse.vendors import arguments_of, decoded, plain
from debrief.sessions.model import CallStatus
from debrief.sessions.readers.values import first_string, mapping, moment

TOOLS = ("TOOL", "RETRIEVER")
ANSWERS = ("GENERATION", "EMBEDDING")
_MAYBE_TOOLS = ("SPAN", "EVENT")
_CALLED = {"args", "kwargs"}
"""How a traced function's input is written down."""
_DEEPEST = 8


class UserRequest(Struct, frozen=True, kw_only=True):
    """What an input asks for."""

    text: str = ""
    images: int = 0
    in_words: bool = False
    """False where the text is only the data that the input is."""
    goes_on: bool = False
    """Nobody says anything new: the last are results of calls."""
    requests: int = 0
    """How often a person spoke up to here, where the input has what was said before."""
    messages: tuple[TracedMessage, ...] = ()
    """The conversation that the input is, if it is one."""

    def is_next_after(self, other: UserRequest) -> bool:
        """Return whether this is asked later in the conversation in which the other was asked."""
        before = [
            message.text
            for message in self.messages
            if message.role == "user" and message.has_words
        ][:-1]
        return not self.goes_on and self.requests > other.requests and other.text in before


def request_in(value: object, memory: Memory | None = None) -> UserRequest:
    """Return what an input asks for: of a conversation what a person said last.

    Args:
        value: decoded or as text.
        memory: of the session's requests.
    """
    value = _called_with(decoded(value))
    if messages := messages_to(value, memory):
        return _asked_last(messages)
    if isinstance(value, dict):
        value = {
            key: item for key, item in value.items() if key not in vendors.BESIDE_REQUESTS
        } or None
    words = words_in(value, vendors.REQUESTS)
    return UserRequest(text=words or data_in(value), in_words=bool(words.strip()))


def answer_in(value: object) -> str:
    """Return the words of an output: of a conversation what the model said last; empty when it
    is only data."""
    value = decoded(value)
    if messages := messages_by(value):
        answers = [
            message.text
            for message in messages
            if message.role == "assistant" and message.text.strip()
        ]
        return answers[-1] if answers else ""
    return words_in(value, vendors.ANSWERS)


def words_in(value: object, keys: Iterable[str], depth: int = _DEEPEST) -> str:
    """Return the words in a value that is no conversation; empty when it is only data.

    Of an object they stand under the first of ``keys`` that holds any, or under its only key.
    """
    value = decoded(value)
    if isinstance(value, list):
        parts = Parts()
        parts.add_all(item for item in value if isinstance(item, dict))
        return parts.text if value and parts.known == len(value) else ""
    if not isinstance(value, dict):
        return plain(value)
    if not depth:
        return ""
    found = (words_in(value[key], keys, depth - 1) for key in keys if value.get(key))
    if words := next(filter(None, found), ""):
        return words
    only = next(iter(value.values())) if len(value) == 1 else None
    return plain(only) if isinstance(only, str) else ""


def data_in(value: object) -> str:
    """Return a value as text, as it was written where it was; an empty one as none."""
    return "" if decoded(value) in ([], {}) else plain(value)


def _asked_last(messages: tuple[TracedMessage, ...]) -> UserRequest:
    people = [message for message in messages if message.role == "user" and message.has_words]
    last = _last_but_a_beginning(messages)
    goes_on = last is not None and not (last.role == "user" and last.has_words)
    own = "" if goes_on else messages[-1].text
    return UserRequest(
        text=people[-1].text if people else own,
        images=people[-1].images if people else 0,
        in_words=bool(people),
        goes_on=goes_on,
        requests=len(people),
        messages=messages,
    )


def _last_but_a_beginning(messages: Sequence[TracedMessage]) -> TracedMessage | None:
    """Return the last message, instructions apart, and apart from the beginning of an answer that
    the model is given to go on from."""
    others = [message for message in messages if message.role != "system"]
    while len(others) > 1 and others[-1].role == "assistant" and not others[-1].calls:
        others.pop()
    return others[-1] if others else None


def _called_with(value: object) -> object:
    """Return the argument of a traced function that holds what was asked."""
    if not isinstance(value, dict) or not value or not set(value) <= _CALLED:
        return value
    args, kwargs = value.get("args", []), value.get("kwargs", {})
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        return value
    given = [decoded(one) for one in (*args, *kwargs.values())]
    if len(given) == 1:
        return given[0]
    for one in given:
        if isinstance(one, list | dict) and messages_to(one):
            return one
    return kwargs if kwargs and not args else value


def kind_of(row: Row) -> str:
    """Return what an observation is of, in capitals."""
    return str(row.get("type") or "SPAN").upper()


def id_of(row: Row) -> str:
    """Return an observation's id as text."""
    return str(row.get("id"))


class ServerTrace:
    """One trace.

    Args:
        identity: of the trace.
        rows: its observations in the order of their start; at least one.
        memory: of the session's requests.
    """

    def __init__(self, identity: str, rows: Sequence[Row], memory: Memory) -> None:
        self.id = identity
        self._memory = memory
        self._asked: dict[int, UserRequest] = {}
        self.rows = rows
        self.root = next((row for row in rows if row.get("isRootObservation")), None)
        self.answers = [row for row in rows if kind_of(row) in ANSWERS]
        self._parents = {id_of(row): str(row.get("parentObservationId") or "") for row in rows}
        self._with_parts = set(self._parents.values())
        self._generations = {id_of(row): row for row in self.answers}
        self._covers: dict[int, list[Row]] = {}
        self.covers: set[str] = set()
        """Ids of the generations that are there for others: one for a loop of steps, or the same
        request to a model seen by two integrations."""
        self._find_covers()

    @property
    def is_blank(self) -> bool:
        """Whether nothing was traced of what went in and what came out."""
        return all(row.get(key) in (None, "") for row in self.rows for key in ("input", "output"))

    def is_within(self, part: str, cover: str) -> bool:
        """Return whether an observation is part of a generation, by their ids."""
        return cover in self._above(part)

    def covers_that_end_with(self, row: Row) -> list[Row]:
        """Return the generations of whose parts an observation is the last, inner ones first."""
        return self._covers.get(id(row), [])

    def _above(self, part: str) -> Iterator[str]:
        """Yield the ids of the generations that an observation is part of, inner ones first."""
        seen = {""}
        while (part := self._parents.get(part, "")) not in seen:
            seen.add(part)
            if part in self._generations:
                yield part

    def _find_covers(self) -> None:
        for row in reversed(self.answers):
            for above in self._above(id_of(row)):
                if above in self.covers:
                    break
                self.covers.add(above)
                self._covers.setdefault(id(row), []).append(self._generations[above])

    def may_be_a_tool_s(self, row: Row) -> bool:
        """Return whether an observation may be one of a tool: it says so, or has no parts."""
        if kind_of(row) in TOOLS:
            return True
        is_a_leaf = id_of(row) not in self._with_parts
        return kind_of(row) in _MAYBE_TOOLS and row is not self.root and is_a_leaf

    def request_in(self, row: Row) -> UserRequest:
        """Return what the input of one of its observations asks for."""
        key = id(row)
        if key not in self._asked:
            self._asked[key] = request_in(row.get("input"), self._memory)
        return self._asked[key]

    def asked(self) -> UserRequest:
        """Return what is asked for in it: by its root, else by its first generation."""
        generations = [row for row in self.answers if kind_of(row) == "GENERATION"]
        with_input = [row for row in self.rows if row.get("input") not in (None, "")]
        data = UserRequest()
        for row in (self.root, *generations[:1], *self.answers[:1], *with_input[:1]):
            asked = self.request_in(row) if row is not None else data
            if asked.messages or asked.in_words:
                return asked
            data = data if data.text else asked
        return data

    def requests(self) -> list[tuple[UserRequest, Sequence[Row]]]:
        """Return what is asked for in it, and the observations that belong to each request.

        Some keep a whole session in one trace. That shows in generations side by side of which
        one repeats what was asked before, and the answer, and has something new behind.
        """
        first = self.asked()
        if len(self.answers) < 2 or (self.root is not None and not self._is_bare(self.root)):
            return [(first, self.rows)]
        beside = self._parents[id_of(self.answers[0])]
        starts: list[tuple[UserRequest, int]] = []
        for place, row in enumerate(self.rows):
            if kind_of(row) != "GENERATION" or self._parents[id_of(row)] != beside:
                continue
            asked = self.request_in(row)
            if asked.messages and (not starts or asked.is_next_after(starts[-1][0])):
                starts.append((asked, place))
        if len(starts) < 2:
            return [(first, self.rows)]
        places = [0, *(place for _, place in starts[1:]), len(self.rows)]
        pieces = zip(starts, places[:-1], places[1:], strict=True)
        return [(asked, self.rows[begin:end]) for (asked, _), begin, end in pieces]

    def _is_bare(self, root: Row) -> bool:
        """Return whether the root is there for its trace alone, and asks for nothing by itself."""
        if kind_of(root) in ANSWERS or id_of(root) == self.id:
            return True
        asked = self.request_in(root)
        return not (asked.messages or asked.in_words)


_OF_MESSAGES = ("tool_call_id", "isError", "is_error")
"""Marks of an output that is a message or an answer of a server, and not the tool's own data."""


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
