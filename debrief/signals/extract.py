"""Extract the signals of a session, each with its evidence.

One pass over the whole session, subagents included, and never over a part of it. Nothing here
weighs anything: the same session always gives the same signals, and each can be looked up in the
event that it cites.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from debrief.markdown import shorten
from debrief.models.session_cost import Prices, messages_cost
from debrief.sessions.model import (
    Evidence,
    Message,
    Session,
    Subagent,
    ToolCall,
    Turn,
    calls_of,
    messages_of,
)
from debrief.sessions.readers.patches import FileEdit, edits_of_call
from debrief.signals.changes import ChangeLog
from debrief.signals.check_commands import (
    CheckRun,
    can_check,
    checks_in,
    language_of,
)
from debrief.signals.checks import last_checks
from debrief.signals.events import HAZARDS, events_of, interrupted_call, refusals_in
from debrief.signals.excerpts import failing_line, first_line, label
from debrief.signals.lines import lasting_lines
from debrief.signals.request import requests_in
from debrief.signals.risky_commands import hazards_of
from debrief.signals.schema import Change, EventKind, SessionSignals
from debrief.signals.shell import commands_in, pattern, script_of
from debrief.signals.termination import End, end_of
from debrief.signals.user_feedback import approval_in, correction_in
from debrief.signals.work import work_of

VERSION = "6"
"""Change it with whatever changes a signal: rows of another version are made again."""
_SOFT = frozenset(["grep", "rg", "diff", "cmp", "test", "[", "which", "pgrep", "gh", "false", "ls"])
"""Programs whose exit status 1 is an answer, no error."""
_FAILED = re.compile(
    r'\A\s*(?:<returncode>(?!0)|Exit code:? [1-9]|Error\b|❌|\{"error")|"exitCode":\s?[1-9]'
    r"|^(?:FAILED|ERROR): git (?:commit|push)\b",
    re.MULTILINE,
)
_CANCELLED = re.compile(r"\A\W*(?:<tool_use_error>)?Sibling tool call errored")
"""A call that was not run because another one failed."""
_TESTS = re.compile(r"(?:^|[/_.-])(?:tests?|specs?|__tests__)(?:[/_.-]|$)", re.IGNORECASE)
_ASSERTED = re.compile(
    r"^-(?!--)[ \t]*(?!//|#|\*|--)"
    r"(.*(?:\bassert\w*\b|\bexpect\(|\brequire\.\w+\(|\bt\.(?:Error|Fatal)f?\().*(?<!, err\)))$",
    re.MULTILINE,
)
_QUOTE = 120
_LAST = threading.local()


class Activity(Struct, frozen=True, kw_only=True):
    """What a session shows to those who need more than its row: judges and prompts.

    Counts take subagents in.
    """

    calls: int
    errors: tuple[Evidence, ...] = ()
    """Calls that failed, a check that found something before anything was changed left out."""
    edits: tuple[Evidence, ...] = ()
    """Files of the work that were changed, by editing tools and in the shell, one for each time."""
    rewritten: tuple[Evidence, ...] = ()
    """Assertions of test files that were there before, taken out or changed: a test that passes
    after it may show less."""
    deleted: tuple[Evidence, ...] = ()
    """Files that were removed by name, and that the session had not made."""
    commands: tuple[Evidence, ...] = ()
    """Commands that changed files of the work which they do not name."""
    change: Change
    """What is changed in the end."""
    kept: int
    """Lines that the session added or removed for good."""
    edited: dict[str, int] = {}
    """Position of the last edit among the calls, by file."""
    checks: tuple[CheckRun, ...] = ()
    noted: dict[EventKind, tuple[Evidence, ...]]
    """What a person would want to look at, the checks and the end left out."""
    approvals: tuple[Evidence, ...] = ()
    """Words that accept the work; thanks alone are none."""
    end: End


def session_activity(session: Session) -> Activity:
    """Return what a whole session shows; recalled when it was the last that was asked about."""
    if getattr(_LAST, "session", None) is not session:
        _LAST.facts = _Reading(session).facts()
        _LAST.session = session
    facts: Activity = _LAST.facts
    return facts


def session_signals(session: Session, own_prices: Path | None = None) -> SessionSignals:
    """Return the signals of a session as a row.

    Args:
        session: whole.
        own_prices: a file of one's own prices; list prices alone without it.
    """
    facts = session_activity(session)
    checks = last_checks(facts.checks, facts.edited, session.cwd)
    return SessionSignals(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        ended=session.ended,
        task=session.task,
        tool=session.tool,
        work=work_of(session, facts.change),
        requests=requests_in(session),
        change=facts.change,
        checks=checks,
        ending=facts.end.ending,
        end=facts.end.evidence,
        events=events_of(facts.noted, checks, facts.end),
        approvals=facts.approvals,
        calls=facts.calls,
        failed_calls=len(facts.errors),
        lines_kept=facts.kept,
        tokens=session.usage.input + session.usage.output,
        cost_usd=messages_cost(messages_of(session), _prices(own_prices or Path())),
    )


@cache
def _prices(own: Path) -> Prices:
    return Prices(own)


class _Reading:
    """One pass over the calls in order, and one over the person's words."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.log = ChangeLog(session)
        self.errors: list[Evidence] = []
        self.rewritten: list[Evidence] = []
        self.approvals: list[Evidence] = []
        self.noted: dict[EventKind, list[Evidence]] = {}
        self.checks: list[CheckRun] = []
        self.calls = 0
        self.first_edit = -1
        self.recent: set[str] = set()
        """Commands that failed, and scripts that ran."""
        self.known: set[str] = set()
        """Those before the last edit."""
        self.written: set[str] = set()
        """Lines that it wrote into older tests."""
        self.edited: dict[str, int] = {}
        """Position of the last edit by file."""
        self.unnamed = -1
        """Position of the last command that changed files which it does not name."""
        self.stashes = 0
        """Stashes that the session made itself."""
        self.started = _started_by(session)
        for turn in session.turns:
            self._work(turn.number, turn.messages, "")
            self._person(turn)
        last = session.turns[-1].number if session.turns else 0
        while self.started:
            for child in self.started.pop(next(iter(self.started))):
                self._work(last, child.messages, child.id)

    def note(self, kind: EventKind, turn: int, quote: str, call: str = "") -> None:
        self.noted.setdefault(kind, []).append(Evidence(turn, call, quote))

    def _work(self, turn: int, messages: Sequence[Message], agent: str) -> None:
        """Read messages and their calls, and after a call the subagents that it started."""
        left: list[tuple[str, Message | ToolCall]] = [
            (agent, message) for message in reversed(messages)
        ]
        while left:
            by, one = left.pop()
            if isinstance(one, Message):
                left += ((by, call) for call in reversed(one.calls))
                continue
            self._call(turn, one, by)
            for child in reversed(self.started.pop(one.id, ())):
                left += ((child.id, message) for message in reversed(child.messages))

    def _call(self, turn: int, call: ToolCall, agent: str) -> None:
        place, result = self.calls, call.result or ""
        self.calls += 1
        failed = (
            call.status == "failed" or bool(call.exit_code) or bool(_FAILED.search(result[:300]))
        )
        self._risks(turn, call, failed)
        if call.status == "rejected" or _CANCELLED.search(result[:100]):
            return
        soft = failed and call.exit_code in (None, 1) and _is_soft(call)
        checks = []
        if call.action == "run":
            known = self.known if self.edited else ()
            checks = list(
                checks_in(
                    call,
                    turn=turn,
                    place=place,
                    failed=failed,
                    changed=self.edited,
                    known=known,
                )
            )
            self.recent |= {script for words in _words(call) if (script := script_of(words))}
            if failed and not soft and can_check(call):
                self.recent.add(call.command.strip())
            self.checks += checks
        if failed and not soft and not (checks and not self.edited):
            quote = failing_line(call.printed, pattern("outcomes", "failed"))
            self.errors.append(Evidence(turn, call.id, f"{label(call)}: {quote}"))
        log = self.log
        edits, commands, named = len(log.edits), len(log.commands), len(log.named)
        log.take(turn, call, failed=failed, is_main=not agent)
        for edit in log.edits[edits:]:
            self._edited(place, edit.quote)
        if log.commands[commands:]:
            self.unnamed = place
            for word in (word for words in _words(call) for word in words if language_of(word)):
                self._edited(place, word)
        for path in log.named[named:]:
            self._edited(place if self.unnamed < 0 else self.unnamed, path)
        if call.path and not failed:
            for edited in edits_of_call(call):
                if self.log.work.holds(edited.path):
                    self._assertions(turn, edited, call.id)

    def _risks(self, turn: int, call: ToolCall, failed: bool) -> None:
        """Note what was dangerous about a call, whether or not the person let it run."""
        refused = call.status == "rejected"
        if failed and not refused and len(_words(call)) == 1:
            return
        for kind, quote in hazards_of(call, self.edited):
            if event := HAZARDS.get(kind):
                self.note(event, turn, f"refused: {quote}" if refused else quote, call.id)
        for words in _words(call):
            if words[:2] == ("git", "stash"):
                is_kept = words[2:3] in ((), ("push",), ("save",))
                self.stashes += is_kept and not refused
                if words[2:3] in (("drop",), ("clear",)) and not self.stashes:
                    quote = shorten(" ".join(words), 80)
                    self.note(
                        "foreign_files", turn, f"refused: {quote}" if refused else quote, call.id
                    )

    def _assertions(self, turn: int, edit: FileEdit, call: str) -> None:
        """Note an assertion of older tests that the session rewrote: one that is gone, and neither
        moved nor written by the session itself."""
        is_own = self.log.work.shorten(edit.path) in self.log.own
        if not is_own and _TESTS.search(edit.path) and "+0,0 @@" not in edit.patch:
            added = {line[1:].strip() for line in edit.patch.split("\n") if line[:1] == "+"}
            gone = (line.strip() for line in _ASSERTED.findall(edit.patch))
            older = (line for line in gone if line not in added and line not in self.written)
            if line := next(older, ""):
                self.rewritten.append(Evidence(turn, call, shorten(line, _QUOTE)))
            self.written |= added

    def _edited(self, place: int, path: str) -> None:
        self.first_edit = place if self.first_edit < 0 else self.first_edit
        self.edited[path] = place
        self.known |= self.recent

    def _person(self, turn: Turn) -> None:
        for refusal in refusals_in(turn):
            self.note("refusal", turn.number, refusal.quote, refusal.call)
        for deed in turn.interventions:
            if deed.kind == "interruption":
                call = interrupted_call(turn, deed)
                quote = first_line(deed.text) or (f"at: {label(call)}" if call else "interrupted")
                self.note("interruption", turn.number, quote, call.id if call else "")
            if deed.kind in ("rejection", "remark") and (words := correction_in(deed.text)):
                self.note("correction", turn.number, words)
        if turn.number > 1 and (words := correction_in(turn.prompt)):
            self.note("correction", turn.number, words)
        elif turn.number > 1 and (words := approval_in(turn.prompt)):
            self.approvals.append(Evidence(turn.number, "", words))

    def facts(self) -> Activity:
        log, change = self.log, self.log.change
        foreign = [*self.noted.get("foreign_files", ()), *log.foreign]
        noted = {**self.noted, "foreign_files": foreign}
        return Activity(
            calls=self.calls,
            errors=tuple(self.errors),
            edits=tuple(log.edits),
            rewritten=tuple(self.rewritten),
            deleted=tuple(log.deleted),
            commands=tuple(log.commands),
            change=change,
            kept=lasting_lines(self.session, log.keeps),
            edited=dict(self.edited),
            checks=tuple(self.checks),
            noted={kind: tuple(places) for kind, places in noted.items() if places},
            approvals=tuple(self.approvals),
            end=end_of(self.session.turns, has_changed=bool(change)),
        )


def _started_by(session: Session) -> dict[str, list[Subagent]]:
    """Return the subagents by the call that started each; by ``""`` where it is not known."""
    ids = {call.id for call in calls_of(session)}
    started: dict[str, list[Subagent]] = {}
    for child in session.subagents:
        key = next((each for each in (child.call_id, child.id) if each in ids), "")
        started.setdefault(key, []).append(child)
    return started


def _words(call: ToolCall) -> list[tuple[str, ...]]:
    return [words for words, _ in commands_in(call.command) if words]


def _is_soft(call: ToolCall) -> bool:
    commands = _words(call)
    return bool(commands) and commands[-1][0] in _SOFT
