"""The fields that are compared: each yields what differs, in words; nothing when all is as it was.

What was is what the scripted model sent and was asked, and what git and the clock say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import add

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.sessions.model import Message, Session, ToolCall, Usage
from debrief.training.conversations import conversation_of
from debrief.training.given import given_to
from tools.programs.definitions import Deed, Script
from tools.programs.protocols import SentCall
from tools.programs.running import BRANCH, Run, Truth
from tools.programs.server import NO_SCRIPT, Exchange

_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_PROMPT_FILES = re.compile(
    r"<system-reminder>.*?</system-reminder>|# AGENTS\.md instructions for .*?</INSTRUCTIONS>"
    r"|<loaded_context>.*?</loaded_context>",
    re.DOTALL,
)
"""In which programs put prompt files among the messages."""
_MARK = re.compile(r"\(\w+-md\)")
"""Of the repository's prompt files."""
_SLACK = timedelta(seconds=1)
Differences = Iterator[str]


class Pair(Struct, kw_only=True):
    """One session as it was, and as it was read."""

    truth: Truth
    scripts: Mapping[str, Script]
    runs: list[Run]
    session: Session

    @property
    def exchanges(self) -> list[Exchange]:
        """All that was asked while the session ran."""
        times = [(run.began, run.ended) for run in self.runs]
        return [
            exchange
            for exchange in self.truth.exchanges
            if any(began <= exchange.at <= ended for began, ended in times)
        ]

    @property
    def summaries(self) -> list[Exchange]:
        """What was asked for compactions."""
        runs = [run for run in self.runs if self.scripts[run.script].summarises]
        return [
            exchange
            for run in runs
            for exchange in self.exchanges
            if run.began <= exchange.at <= run.ended
        ]

    def asked(self, *names: str) -> list[Exchange]:
        """Return what was exchanged on scripts; on the person's own when none is named."""
        names = names or tuple(run.script for run in self.runs)
        beside = self.summaries
        asked = (exchange for exchange in self.exchanges if not exchange.is_broken_off)
        return [
            exchange for exchange in asked if exchange.script in names and exchange not in beside
        ]

    @property
    def messages(self) -> list[Message]:
        """The model's own messages, as read, without what came of answers that broke off: a
        program may go on from it, ask again without it, or forget it."""
        own = (turn for turn in self.session.turns if turn.origin != "inherited")
        begun = {exchange.text for exchange in self.exchanges if exchange.is_broken_off}
        read = (message for turn in own for message in turn.messages)
        return [message for message in read if message.calls or message.text not in begun]

    @property
    def matched(self) -> list[tuple[Exchange, Message]]:
        """The messages that were sent and read alike, in order."""
        return _matched(self.asked(), self.messages)

    @property
    def calls(self) -> Iterator[tuple[Deed, SentCall, ToolCall]]:
        """The calls of those messages: of the script, as sent, as read."""
        for sent, message in self.matched:
            steps = self.scripts[sent.script].steps
            deeds = next(step.calls for step in steps if step.text == sent.text)
            yield from zip(deeds, sent.calls, message.calls, strict=True)


def _matched(sent: Sequence[Exchange], read: Sequence[Message]) -> list[tuple[Exchange, Message]]:
    pairs, left = [], list(read)
    for exchange in sent:
        place = next((at for at, message in enumerate(left) if _is_same(exchange, message)), None)
        if place is not None:
            pairs.append((exchange, left[place]))
            left = left[place + 1 :]
    return pairs


def _is_same(sent: Exchange, read: Message) -> bool:
    if sent.text.strip() != read.text.strip() or len(sent.calls) != len(read.calls):
        return False
    return all(map(_is_same_call, sent.calls, read.calls))


def _is_same_call(sent: SentCall, read: ToolCall) -> bool:
    given = msgspec.json.decode(read.input)
    as_sent = sent.input in given.values() if isinstance(sent.input, str) else sent.input == given
    return as_sent and sent.name == read.name


def _prompts(pair: Pair) -> Differences:
    scripts = [pair.scripts[run.script] for run in pair.runs]
    typed = [
        script.prompt
        for script in scripts
        if not (script.typed or script.summarises or script.keys)
    ]
    commands = [script.typed for script in scripts]
    read = [turn.prompt.strip() for turn in pair.session.turns if turn.is_own]
    yield from _unlike(typed, [prompt for prompt in read if prompt not in commands])


def _history(pair: Pair) -> Differences:
    """The model saw, with its last request, the prompts of the turns that lead to it, and only
    those; after a compaction nobody can tell."""
    sent = pair.asked()
    if pair.summaries or not sent:
        return
    said = "\n".join(text for role, text in sent[-1].said if role == "user")
    turns = [turn for turn in pair.session.turns if not turn.rewound]
    given = [turn.expansion or turn.prompt for turn in turns]
    given += [deed.expansion for turn in turns for deed in turn.interventions]
    given += [text.text for turn in turns for message in turn.messages for text in message.context]
    read = "\n".join(given)
    for script in pair.scripts.values():
        if script.steps and (script.prompt in said) != (script.prompt in read):
            yield f"{script.prompt!r} is {'not ' * (script.prompt in said)}read, other than sent"


def _messages(pair: Pair) -> Differences:
    sent = pair.asked()
    matched = pair.matched
    if len(matched) < max(len(sent), len(pair.messages)):
        yield f"{len(sent)} sent, {len(pair.messages)} read, {len(matched)} alike"
    known = [exchange for exchange, _ in matched]
    yield from (
        f"lost: {_shown(exchange.text, exchange.calls)}"
        for exchange in sent
        if exchange not in known
    )
    alike = [message for _, message in matched]
    yield from (
        f"not sent: {_shown(message.text, message.calls)}"
        for message in pair.messages
        if message not in alike
    )


def _shown(text: str, calls: Iterable[SentCall | ToolCall]) -> str:
    return f"{text!r} {[f'{call.name} {call.input}' for call in calls]}"


def _results(pair: Pair) -> Differences:
    results: dict[str, str] = {}
    for exchange in pair.exchanges:
        results = {**exchange.results, **results}
    for _, sent, call in pair.calls:
        told = _without_reminders(results.get(sent.id, ""))
        read = _without_reminders(call.result or "")
        if told != read:
            yield f"{call.name}: the model was told {told!r}, read {read!r}"


def _without_reminders(text: str) -> str:
    return _REMINDER.sub("", text).strip()


def _status(pair: Pair) -> Differences:
    for deed, _, call in pair.calls:
        for each in _unlike(deed.status, call.status):
            yield f"{call.name} {deed.command or deed.file}: {each}"


def _exit_code(pair: Pair) -> Differences:
    for deed, _, call in pair.calls:
        if deed.exit is not None:
            yield from _unlike(deed.exit, call.exit_code)


def _tokens(pair: Pair) -> Differences:
    wrong = [(sent.usage, read.usage) for sent, read in pair.matched if sent.usage != read.usage]
    if wrong:
        yield f"{len(wrong)} of {len(pair.matched)}: sent {wrong[0][0]}, read {wrong[0][1]}"


def _total(pair: Pair) -> Differences:
    exchanges = pair.exchanges
    broken = [replace(exchange.usage, output=1) for exchange in exchanges if exchange.is_broken_off]
    exchanges = [exchange for exchange in exchanges if not exchange.is_broken_off]
    whole = reduce(add, (exchange.usage for exchange in exchanges), Usage())
    scripted = (exchange.usage for exchange in exchanges if exchange.script != NO_SCRIPT)
    allowed = [whole] if pair.summaries else [whole, reduce(add, scripted, Usage())]
    allowed += [
        reduce(add, broken, usage) for usage in allowed
    ]  # as its stream's first event has it
    if pair.session.usage not in allowed:
        yield f"sent {whole}, read {pair.session.usage}"


def _model(pair: Pair) -> Differences:
    for models in {(sent.model, read.model) for sent, read in pair.matched}:
        yield from _unlike(*models)


def _growth(pair: Pair) -> Differences:
    scripts = [pair.scripts[run.script] for run in pair.runs]
    if any(step.meanwhile for script in scripts for step in script.steps):
        return
    changes = any(call.do == "edit" for call in _deeds(pair))
    growth = pair.truth.growth if changes else (0, 0)
    yield from _unlike(growth, (pair.session.lines_added, pair.session.lines_removed))


def _deeds(pair: Pair) -> Iterator[Deed]:
    for run in pair.runs:
        for step in pair.scripts[run.script].steps:
            yield from step.calls


def _unlike(was: object, read: object) -> Differences:
    if was != read:
        yield f"{was}, read {read}"


def _times(pair: Pair) -> Differences:
    session, first, last = pair.session, pair.runs[0], pair.runs[-1]
    moments = [("start", session.started, first.began, first.ended)]
    moments.append(("end", session.ended, last.began, last.ended))
    by_name = {run.script: run for run in pair.runs}
    for sent, read in pair.matched:
        run = by_name[sent.script]
        moments.append((sent.text, read.at or run.began, run.began, run.ended))
    for name, moment, begin, end in moments:
        if not begin - _SLACK <= moment <= end + _SLACK:
            yield f"{name}: {_clock(begin)} to {_clock(end)}, read {_clock(moment)}"


def _clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}"


def _helper(pair: Pair) -> Differences:
    names = [pair.scripts[run.script].helper for run in pair.runs]
    helpers = [name for name in names if name]
    agents = pair.session.subagents
    if len(agents) != len(helpers):
        yield f"{len(helpers)} started, {len(agents)} read"
    made = {call.id for message in pair.messages for call in message.calls}
    for name, agent in zip(helpers, agents, strict=False):
        prompt, sent = pair.scripts[name].prompt, pair.asked(name)
        if agent.prompt.strip() != prompt:
            yield f"asked {prompt!r}, read {agent.prompt!r}"
        if agent.call_id not in made:
            yield f"call {agent.call_id!r} is none of the session's"
        alike = _matched(sent, agent.messages)
        if not len(alike) == len(sent) == len(agent.messages):
            yield f"{len(sent)} messages, {len(agent.messages)} read, {len(alike)} alike"
        elif any(exchange.usage != message.usage for exchange, message in alike):
            yield "its tokens"


def _system(pair: Pair) -> Differences:
    sent = _lines("\n".join(pair.matched[0][0].system))
    read = _lines(given_to(pair.session, None).system)
    lost, more = (sum((one - other).values()) for one, other in ((sent, read), (read, sent)))
    if lost or more:
        yield f"of {sent.total()} lines {lost} were not read, and {more} that were not sent"


def _lines(text: str) -> Counter[str]:
    return Counter(filter(None, map(str.strip, text.splitlines())))


def _tools(pair: Pair) -> Differences:
    sent = {tool.name: tool for tool in pair.matched[0][0].tools}
    read = {tool.name: tool for tool in pair.session.declared_tools or ()}
    if missing := sent.keys() ^ read.keys():
        yield f"{len(sent)} offered, {len(read)} read; not in both: {', '.join(sorted(missing))}"
    for name in sorted(sent.keys() & read.keys()):
        if sent[name].description.strip() != read[name].description.strip():
            yield f"{name}: its description"
        if _decoded(sent[name].parameters) != _decoded(read[name].parameters):
            yield f"{name}: its parameters"


def _decoded(parameters: str) -> object:
    return msgspec.json.decode(parameters) if parameters else None


def _instructions(pair: Pair) -> Differences:
    first = pair.matched[0][0]
    sent = [("system", text) for text in first.system]
    sent += [("message", said.text) for said in first.said]
    read = [
        (instruction.place, instruction.text) for instruction in pair.session.instructions or ()
    ]
    yield from _unlike(_files_in(sent), _files_in(read))


def _files_in(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return each prompt file of the repository, by its mark, and its place."""
    found = [(mark, place) for place, text in texts for mark in _MARK.findall(text)]
    return sorted(found)


def _command(pair: Pair) -> Differences:
    script = pair.scripts[pair.runs[0].script]
    if not script.typed:
        return
    turns = pair.session.turns
    deeds = [(deed.text, deed.expansion) for turn in turns for deed in turn.interventions]
    commands = dict(deeds + [(turn.prompt, turn.expansion) for turn in turns])
    if script.prompt not in commands.get(script.typed, ""):
        yield f"{script.typed}: {commands}"


def _compaction(pair: Pair) -> Differences:
    compactions = sum(pair.scripts[run.script].summarises for run in pair.runs)
    yield from _unlike(compactions, pair.session.compactions)
    summaries = [message.summary for message in pair.messages]
    for sent in pair.summaries[-1:]:
        if not any(sent.text in summary for summary in summaries):
            yield "the summary was not read"


def _context(pair: Pair) -> Differences:
    """What the model was told that no person wrote, where a script has that."""
    parts = [part for run in pair.runs for part in pair.scripts[run.script].told]
    sent, read = pair.asked(), [text.text for message in pair.messages for text in message.context]
    if not parts or not sent:
        return
    told = "\n".join(text for role, text in sent[-1].said if role != "assistant")
    for given in _PROMPT_FILES.findall(told):  # they are another field's
        told = told.replace(given, "\n") if _MARK.search(given) else told
    for part in parts:
        yield from (f"{part!r} was not sent" for _ in [part] if part not in told)
        yield from (f"{part!r} is not read" for _ in [part] if not any(part in one for one in read))
    commands = [pair.scripts[run.script].aside for run in pair.runs]
    line = conversation_of(pair.session).close()
    in_line = "\n".join(message.content for message in line if message.role in ("user", "tool"))
    lost, more = _lines(told) - _lines(in_line), _lines(in_line) - _lines(told)
    yield from (f"not in the line: {text!r}" for text in lost)
    # A program may give the model what a person ran as a call.
    yield from (f"in the line alone: {text!r}" for text in more if text not in commands)


def _problems(pair: Pair) -> Differences:
    yield from (f"line {problem.line}: {problem.reason}" for problem in pair.session.problems)


FIELDS: Mapping[str, Callable[[Pair], Differences]] = {
    "prompts": _prompts,
    "history": _history,
    "messages": _messages,
    "results": _results,
    "status": _status,
    "exit code": _exit_code,
    "tokens": _tokens,
    "tokens in all": _total,
    "model": _model,
    "growth": _growth,
    "folder": lambda pair: _unlike(pair.truth.repository, pair.session.cwd),
    "branch": lambda pair: _unlike(BRANCH, pair.session.branch),
    "version": lambda pair: _unlike(pair.truth.version, pair.session.tool_version),
    "times": _times,
    "subagent": _helper,
    "system prompt": _system,
    "tools": _tools,
    "prompt files": _instructions,
    "slash command": _command,
    "compaction": _compaction,
    "context": _context,
    "problems": _problems,
}
