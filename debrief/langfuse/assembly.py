"""Build turns from Langfuse traces: a trace is a turn when a person asks for something in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from debrief.langfuse import vendors
from debrief.langfuse.calls import Calls, TracedCall, match, same_tool
from debrief.langfuse.client import Row
from debrief.langfuse.messages import TracedMessage, messages_by
from debrief.langfuse.parts import ReportedCall, declared_by
from debrief.langfuse.traces import (
    ANSWERS,
    TOOLS,
    Observed,
    ServerTrace,
    UserRequest,
    answer_in,
    data_in,
    id_of,
    kind_of,
    observed_in,
)
from debrief.langfuse.vendors import decoded
from debrief.sessions.model import DeclaredTool, Message, Turn, Usage
from debrief.sessions.readers.values import mapping, moment, unique, whole_number


def usage_of(row: Row) -> Usage:
    """Return the tokens of one observation; none where it tells none."""
    details = mapping(row.get("usageDetails") or row.get("usage"))
    found = {
        name: next((count for key in keys if (count := whole_number(details.get(key)))), 0)
        for name, keys in vendors.TOKENS.items()
    }
    return Usage(**found)


_NOTHING = ("None", "null")
"""How an integration may write down that a model said nothing."""


@dataclass(slots=True, eq=False)
class _Draft:
    """A message as it becomes known."""

    id: str
    source: str
    """The observation that tells it."""
    model: str = ""
    at: datetime | None = None
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    calls: list[TracedCall] = field(default_factory=list)
    observed: list[Observed] = field(default_factory=list)
    """What happened after it and may be of its calls."""
    is_a_place: bool = False
    """Nobody said it: it is there for what happened before anybody said anything."""

    def made(self) -> Message:
        text = "" if self.calls and self.text.strip() in _NOTHING else self.text
        return Message(
            id=self.id,
            model=self.model,
            at=self.at,
            text=text,
            calls=tuple(call.made() for call in self.calls),
            usage=self.usage,
        )


@dataclass(slots=True, eq=False)
class _OpenTurn:
    number: int
    asked: UserRequest
    at: datetime | None
    ended: datetime | None = None
    drafts: list[_Draft] = field(default_factory=list)
    has_tools: bool = False
    """The model was given tools or called some, so that other spans are none of them."""
    _texts: set[str] = field(default_factory=set)

    @property
    def calls(self) -> list[TracedCall]:
        return [call for draft in self.drafts for call in draft.calls]

    @property
    def is_silent(self) -> bool:
        return not any(draft.text or draft.calls or draft.observed for draft in self.drafts)

    def add(self, *drafts: _Draft) -> None:
        self.drafts += drafts
        self._texts.update(draft.text.strip() for draft in drafts)

    def says(self, text: str) -> bool:
        return text.strip() in self._texts

    def made(self) -> Turn:
        return Turn(
            number=self.number,
            prompt=self.asked.text,
            at=self.at,
            ended=self.ended,
            images=self.asked.images,
            messages=tuple(
                draft.made() for draft in self.drafts if draft.calls or not draft.is_a_place
            ),
        )


class Assembly:
    """Turns as they grow, trace by trace in the order of time."""

    def __init__(self) -> None:
        self.declared: tuple[DeclaredTool, ...] = ()
        """The tools that the models were given, each once."""
        self._calls = Calls()
        self._turns: list[_OpenTurn] = []

    def add(self, trace: ServerTrace) -> None:
        """Add a trace."""
        turns = [self._add_rows(trace, asked, rows) for asked, rows in trace.requests()]
        if trace.root is not None:
            self._last_words(trace.root, trace, turns[-1])

    def finished(self) -> tuple[Turn, ...]:
        """Return the turns, every call with what came back from it; to be called once."""
        for turn in self._turns:
            _place_observed(turn)
        return tuple(turn.made() for turn in self._turns)

    def _turn_for(self, trace: ServerTrace, asked: UserRequest, rows: Sequence[Row]) -> _OpenTurn:
        """Return the turn that a request belongs to: one before where nobody asks anything new."""
        last = self._turns[-1] if self._turns else None
        if last is not None:
            if asked.goes_on:
                return self._turn_of_results(asked.messages) or last
            if trace.is_blank or (not trace.answers and _is_of_a_tool(trace, last)):
                return last
            if last.is_silent and asked.text and asked.text == last.asked.text:
                return last
        turn = _OpenTurn(len(self._turns) + 1, asked, moment(rows[0].get("startTime")))
        self._turns.append(turn)
        return turn

    def _turn_of_results(self, messages: Sequence[TracedMessage]) -> _OpenTurn | None:
        """Return the turn whose calls came to the results that a request goes on from."""
        new = messages[_last_answer_place(messages) + 1 :]
        results = (result for message in reversed(new) for result in message.results)
        known = (self._calls.by_id(result.call_id) for result in results)
        return next((self._turns[calls[-1].turn - 1] for calls in known if calls), None)

    def _add_rows(self, trace: ServerTrace, asked: UserRequest, rows: Sequence[Row]) -> _OpenTurn:
        turn = self._turn_for(trace, asked, rows)
        ends = (moment(row.get("endTime")) for row in rows)
        turn.ended = max((at for at in (*ends, turn.ended) if at is not None), default=None)
        for row in rows:
            kind = kind_of(row)
            if kind not in TOOLS:
                given, gave = decoded(row.get("input")), decoded(row.get("output"))
                if declared := tuple(declared_by(row, given, gave)):
                    self.declared = unique((*self.declared, *declared))
                    turn.has_tools = True
            if kind in ANSWERS:
                self._take_results(row, trace, turn)
                if id_of(row) not in trace.covers:
                    self._answer(row, gave, trace, turn)
                for cover in trace.covers_that_end_with(row):
                    self._cover(cover, trace, turn)
            elif trace.may_be_a_tool_s(row) or (row is trace.root and _is_of_a_tool(trace, turn)):
                _observe(row, turn)
        return turn

    def _take_results(self, row: Row, trace: ServerTrace, turn: _OpenTurn) -> None:
        """Take the results of calls that an input has, and calls that only it has."""
        messages = trace.request_in(row).messages
        since = _last_answer_place(messages)
        for place, calls in self._calls.settle(messages, trace.id, turn.number, since).items():
            text, at = messages[place].text, moment(row.get("startTime"))
            alike = (d for d in reversed(turn.drafts) if not d.calls and d.text == text)
            draft = next(alike, None)
            if draft is None:
                source = id_of(row)
                draft = _Draft(f"{source}:input:{place}", source, at=at, text=text)
                turn.add(draft)
            for reported, result in calls:
                call = self._call(reported, draft, trace, turn)
                if result is not None:
                    call.answer(result.text, result.status)

    def _call(
        self, reported: ReportedCall, draft: _Draft, trace: ServerTrace, turn: _OpenTurn
    ) -> TracedCall:
        call = self._calls.add(reported, trace.id, turn.number, draft.at)
        draft.calls.append(call)
        turn.has_tools = True
        return call

    def _answer(self, row: Row, gave: object, trace: ServerTrace, turn: _OpenTurn) -> None:
        """Add what a model said and called."""
        own, at = id_of(row), moment(row.get("startTime"))
        draft = _Draft(own, own, model=model_of(row), at=at, usage=usage_of(row))
        if kind_of(row) == "EMBEDDING":
            turn.add(draft)
            return
        messages = _after_the_echo(messages_by(gave))
        if not messages:
            text = answer_in(gave) or data_in(row.get("output"))
            why = str(row.get("statusMessage") or "") if row.get("level") == "ERROR" else None
            draft.text = "" if text == why else text
            turn.add(draft)
            return
        drafts = [draft]
        is_new = False
        for message in messages:
            if message.role == "assistant":
                reported = [
                    c for c in message.calls if not c.id or not self._calls.find(c, trace.id)
                ]
                is_said = not message.text.strip() or turn.says(message.text)
                is_new = is_new or not is_said or bool(reported) or not message.calls
                drafts[-1].text = "\n\n".join(filter(None, (drafts[-1].text, message.text)))
                for call in reported:
                    self._call(call, drafts[-1], trace, turn)
            if message.results and drafts[-1].calls:
                drafts.append(_Draft(f"{draft.id}:{len(drafts)}", draft.source, draft.model))
                drafts[-1].at = draft.at
        self._calls.settle(messages, trace.id, turn.number, len(messages))
        if is_new:
            turn.add(*(d for d in drafts if d is draft or d.text or d.calls))

    def _cover(self, row: Row, trace: ServerTrace, turn: _OpenTurn) -> None:
        """Add of a generation around others what these do not tell themselves."""
        inner = [draft for draft in turn.drafts if trace.is_within(draft.source, id_of(row))]
        gave = decoded(row.get("output"))
        if not inner:
            self._answer(row, gave, trace, turn)
            return
        last = inner[-1]
        known = {(call.name, call.key) for draft in inner for call in draft.calls}
        for message in _after_the_echo(messages_by(gave)):
            for reported in message.calls:
                is_known = any(call.turn == turn.number for call in self._calls.by_id(reported.id))
                if not is_known and (reported.name, reported.key) not in known:
                    self._call(reported, last, trace, turn)
        text = answer_in(gave)
        if text.strip() and not turn.says(text):
            turn.add(_Draft(id_of(row), id_of(row), at=last.at, text=text))
        if not any(draft.usage != Usage() for draft in inner):
            last.usage = usage_of(row)
        last.model = last.model or model_of(row)

    def _last_words(self, root: Row, trace: ServerTrace, turn: _OpenTurn) -> None:
        """Add what a root says that no model said."""
        if kind_of(root) in (*ANSWERS, *TOOLS) or _is_of_a_tool(trace, turn):
            return
        at = moment(root.get("endTime")) or moment(root.get("startTime"))
        gave = decoded(root.get("output"))
        if not trace.answers and any(message.calls for message in messages_by(gave)):
            self._answer({**root, "model": "", "usageDetails": None}, gave, trace, turn)
            return
        text = answer_in(gave) or ("" if trace.answers else data_in(root.get("output")))
        if text and not turn.says(text):
            turn.add(_Draft(f"{id_of(root)}:output", id_of(root), at=at, text=text))


def model_of(row: Row) -> str:
    """Return the model that answered; empty when nothing tells."""
    return str(row.get("model") or row.get("providedModelName") or "")


def _last_answer_place(messages: Sequence[TracedMessage]) -> int:
    """Return where in a conversation a person spoke last; -1 for nowhere."""
    places = range(len(messages) - 1, -1, -1)
    return next((n for n in places if messages[n].role == "user" and messages[n].has_words), -1)


def _after_the_echo(messages: Sequence[TracedMessage]) -> Sequence[TracedMessage]:
    """Return what is new in an output that repeats the conversation first."""
    return messages[_last_answer_place(messages) + 1 :]


def _is_of_a_tool(trace: ServerTrace, turn: _OpenTurn) -> bool:
    """Return whether a trace without a model is of a tool, called in a turn: some functions are
    traced by themselves."""
    root = trace.root if trace.root is not None else trace.rows[0]
    if trace.answers:
        return False
    if kind_of(root) in TOOLS:
        return True
    name = str(root.get("name") or "")
    return any(call.result is None and same_tool(name, call.name) for call in turn.calls)


def _observe(row: Row, turn: _OpenTurn) -> None:
    """Keep an observation beside the message that came before it, or by itself."""
    if not turn.drafts:
        at, source = moment(row.get("startTime")), id_of(row)
        turn.add(_Draft(f"{source}:call", source, at=at, is_a_place=True))
    turn.drafts[-1].observed.append(observed_in(row, kind_of(row) in TOOLS))


def _place_observed(turn: _OpenTurn) -> None:
    """Give a turn's calls what was observed of them; what is of none is a call of its own.

    Where models tell their calls, a span is none by itself, and of a tool's observation inside
    another's one is enough.
    """
    observed = [observation for draft in turn.drafts for observation in draft.observed]
    left = set(match(turn.calls, observed))
    whole = {one.id for one in observed}
    halves = {one.parent for one in observed if one not in left}
    for draft in turn.drafts:
        for one in draft.observed:
            is_part = one.parent in whole or one.id in halves
            if one in left and (not turn.has_tools or (one.is_a_tool_s and not is_part)):
                call = TracedCall(one.id, one.name, one.arguments, one.key, "", turn.number)
                call.observe(one)
                draft.calls.append(call)
