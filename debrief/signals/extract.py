"""Extract facts from a session (checks, failures, corrections, …), each with its evidence.

One pass over the whole session, subagents included, and never over a part of it. Nothing here
weighs anything: the same session always gives the same facts, and each can be looked up in the
event that it cites.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from debrief.markdown import shorten
from debrief.sessions.model import Evidence, Message, Session, Subagent, ToolCall, Turn, calls_of
from debrief.sessions.readers.patches import FileEdit, edits_of_call
from debrief.signals.check_commands import (
    CheckRun,
    can_check,
    checks_in,
    language_of,
    last_covering,
)
from debrief.signals.checks import last_checks
from debrief.signals.excerpts import first_line, label
from debrief.signals.lines import lasting_lines
from debrief.signals.risky_commands import Hazard, hazards_of
from debrief.signals.schema import Change, SessionSignals
from debrief.signals.shell import (
    commands_in,
    folder_of,
    pattern,
    removed_by,
    script_of,
    writes_of,
)
from debrief.signals.termination import End, end_of, publishes
from debrief.signals.user_feedback import approval_in, correction_in

_SOFT = frozenset(["grep", "rg", "diff", "cmp", "test", "[", "which", "pgrep", "gh", "false", "ls"])
"""Programs whose exit status 1 is an answer, no error."""
_FAILED = re.compile(
    r'\A\s*(?:<returncode>(?!0)|Exit code:? [1-9]|Error\b|❌|\{"error")|"exitCode":\s?[1-9]'
)
_CANCELLED = re.compile(r"\A\W*(?:<tool_use_error>)?Sibling tool call errored")
"""A call that was not run because another one failed."""
_SCRATCH = re.compile(r"^(?:/private)?/(?:tmp|var/folders|var/tmp|dev)/")
_HIDDEN = re.compile(r"(?:^|/)\.(?:claude|codex|cursor|gemini|factory)/(?:plans|projects|todos)/")
"""Where coding agents keep plans and notes of their own."""
_TESTS = re.compile(r"(?:^|[/_.-])(?:tests?|specs?|__tests__)(?:[/_.-]|$)", re.IGNORECASE)
_ASSERTED = re.compile(
    r"^-(?!--)[ \t]*(?!//|#|\*|--)"
    r"(.*(?:\bassert\w*\b|\bexpect\(|\brequire\.\w+\(|\bt\.(?:Error|Fatal)f?\().*(?<!, err\)))$",
    re.MULTILINE,
)
_COMMITTED = re.compile(
    r"^\[.+ [0-9a-f]{7,40}\]|^ *[0-9a-f]{7,40}\.\.[0-9a-f]{7,40} ", re.MULTILINE
)
"""What git prints of a commit, or of a push, that it made."""
_QUOTE = 120
_SERVED = 3
"""Calls from which on a session that hardly works on files is one of a service."""
_WORKED = 0.2
"""The least share of calls to a shell and to files in a coding session."""
_LAST = threading.local()

SessionKind = Literal["coding", "service", "unknown"]
"""What kind of work a session is, by its calls."""


class Facts(Struct, frozen=True, kw_only=True):
    """What a session shows. Counts take subagents in."""

    kind: SessionKind
    turns: int
    """Human turns."""
    asked: int
    """Characters of all prompts."""
    calls: int
    wrote: int
    """Characters that the agent wrote, in words and into calls: what it took."""
    closing: int = 0
    """Characters of the last message."""
    errors: tuple[Evidence, ...] = ()
    """Calls that failed, a check that found something before anything was changed left out."""
    streak: tuple[Evidence, ...] = ()
    """The longest run of failed calls, one after the other."""
    timeouts: tuple[Evidence, ...] = ()
    """Failed calls that ran out of time."""
    repeats: tuple[Evidence, ...] = ()
    """The same call again by the same agent, and nothing but looking in between."""
    edits: tuple[Evidence, ...] = ()
    """Files of the work that were changed, by editing tools and in the shell."""
    created: tuple[Evidence, ...] = ()
    """Files that were not there before, as far as editing tools say."""
    taken_back: tuple[Evidence, ...] = ()
    """Files that the session made and removed again."""
    rewritten: tuple[Evidence, ...] = ()
    """Assertions of test files that were there before, taken out or changed: a test that passes
    after it may show less."""
    deleted: tuple[Evidence, ...] = ()
    """Files that were removed by name, and that the session had not made by an editing tool."""
    published: tuple[Evidence, ...] = ()
    """Commits and pushes that were answered without an error."""
    first_edit: int = -1
    """Position of the first edit among the calls; -1 without one."""
    last_edit: int = -1
    """Position of the last one."""
    edited: dict[str, int] = {}
    """Position of the last edit by file."""
    checks: tuple[CheckRun, ...] = ()
    last_check: CheckRun | None = None
    """The last one since the last edit, with a known outcome, that could have failed because of the
    change; the last one of all where nothing was changed."""
    failed_before: CheckRun | None = None
    """The same check, seen failing before it passed."""
    corrections: tuple[Evidence, ...] = ()
    interruptions: tuple[Evidence, ...] = ()
    rejections: tuple[Evidence, ...] = ()
    approvals: tuple[Evidence, ...] = ()
    """Words that accept the work; thanks alone are none."""
    hazards: tuple[Hazard, ...] = ()
    end: End

    @property
    def broke_off(self) -> bool:
        """Return whether it does not end with an answer."""
        return self.end.ending != "closed"


def extract_signals(session: Session) -> Facts:
    """Return the facts of a whole session; recalled when it was the last that was asked about."""
    if getattr(_LAST, "session", None) is not session:
        _LAST.facts = _Reading(session).facts()
        _LAST.session = session
    facts: Facts = _LAST.facts
    return facts


def is_work(path: str, cwd: str) -> bool:
    """Return whether a file belongs to the work in a folder: no scratch file, no agent's own note,
    no name that only the shell knows."""
    if _HIDDEN.search(path) or path.startswith("$"):
        return False
    return not _SCRATCH.match(path) or bool(cwd and path.startswith(cwd.rstrip("/") + "/"))


class _Reading:
    """One pass over the calls in order, and one over the person's words."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.seen: dict[str, list[Evidence]] = {}
        self.checks: list[CheckRun] = []
        self.hazards: list[Hazard] = []
        self.calls = self.wrote = self.worked = 0
        self.first_edit = -1
        self.recent: set[str] = set()
        """Commands that failed, and scripts that ran."""
        self.known: set[str] = set()
        """Those before the last edit."""
        self.own: set[str] = set()
        """Files that the session made."""
        self.written: set[str] = set()
        """Lines that it wrote into older tests."""
        self.edited: dict[str, int] = {}
        """Position of the last edit by file."""
        self.streak: list[Evidence] = []
        self.run: list[Evidence] = []
        self.done: dict[str, set[tuple[str, str]]] = {}
        """Calls since something last changed, by agent."""
        self.started = _started_by(session)
        for turn in session.turns:
            self.done.clear()
            self._work(turn.number, turn.messages, "")
            self._person(turn)
        last = session.turns[-1].number if session.turns else 0
        while self.started:
            for child in self.started.pop(next(iter(self.started))):
                self._work(last, child.messages, child.id)

    def note(self, what: str, turn: int, quote: str, call: str = "") -> None:
        self.seen.setdefault(what, []).append(Evidence(turn, call, quote))

    def _work(self, turn: int, messages: Sequence[Message], agent: str) -> None:
        """Read messages and their calls, and after a call the subagents that it started."""
        left: list[tuple[str, Message | ToolCall]] = [
            (agent, message) for message in reversed(messages)
        ]
        while left:
            by, one = left.pop()
            if isinstance(one, Message):
                self.wrote += len(one.text)
                left += ((by, call) for call in reversed(one.calls))
                continue
            self._call(turn, one, by)
            for child in reversed(self.started.pop(one.id, ())):
                left += ((child.id, message) for message in reversed(child.messages))

    def _call(self, turn: int, call: ToolCall, agent: str) -> None:
        place, result = self.calls, call.result or ""
        self.calls += 1
        self.wrote += len(call.input)
        self.worked += call.action in ("run", "read", "search", "edit")
        for kind, quote in hazards_of(call):
            where = Evidence(turn, call.id, quote)
            self.hazards.append(Hazard(kind, where, refused=call.status == "rejected"))
        if call.status == "rejected" or _CANCELLED.search(result[:100]):
            return
        failed = (
            call.status == "failed" or bool(call.exit_code) or bool(_FAILED.search(result[:300]))
        )
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
        finding = bool(checks) and not self.edited
        self._outcome(turn, call, failed and not soft and not finding)
        if self._changes(turn, place, call, failed):
            self.done.clear()
        elif call.action in ("read", "search", "run") and not checks and len(call.input) > 20:
            done = self.done.setdefault(agent, set())
            key = (call.name, call.input)
            if key in done:
                self.note("repeats", turn, label(call), call.id)
            if call.action == "run":
                done.clear()
            done.add(key)

    def _outcome(self, turn: int, call: ToolCall, failed: bool) -> None:
        text = call.result or ""
        if not failed:
            if call.status != "unanswered" and call.action not in ("plan", "wait"):
                self.run = []
            return
        where = Evidence(turn, call.id, f"{label(call)}: {_line_of_failure(text)}")
        self.seen.setdefault("errors", []).append(where)
        self.run.append(where)
        if len(self.run) > len(self.streak):
            self.streak = list(self.run)
        found = pattern("stopped", "timeout").search(text[-600:])
        if call.exit_code == 124 or found:
            quote = shorten(found[0], _QUOTE) if found else "exit status 124"
            self.note("timeouts", turn, quote, call.id)

    def _changes(self, turn: int, place: int, call: ToolCall, failed: bool) -> bool:
        """Note what a call changed; return whether it may have changed anything."""
        if call.action == "edit" or call.path is not None:
            if failed or call.status == "unanswered":
                return False
            edits = edits_of_call(call)
            named = [call.path] if call.path else list(call.paths)
            for path in filter(self._is_work, [edit.path for edit in edits] or named):
                self._edited(turn, place, path, call.id)
            for edit in edits:
                if self._is_work(edit.path):
                    self._assertions(turn, edit, call.id)
            return True
        if not call.command or call.status == "unanswered":
            return False
        if publishes(call) and not failed and self._was_published(call):
            self.note("published", turn, label(call), call.id)
        writes = list(writes_of(call.command))
        written = [write.path for write in writes if write.is_edit and self._is_work(write.path)]
        if not (failed and len(commands_in(call.command)) == 1):
            for path in dict.fromkeys(written):
                self._edited(turn, place, path, call.id)
            for path in filter(self._is_work, removed_by(call.command)):
                self.note("taken_back" if path in self.own else "deleted", turn, path, call.id)
        return bool(writes)

    def _assertions(self, turn: int, edit: FileEdit, call: str) -> None:
        """Note files that the session made, and an assertion of older tests that it rewrote: one
        that is gone, and neither moved nor written by the session itself.
        """
        if edit.patch.startswith("@@ -0,0"):
            self.note("created", turn, edit.path, call)
            self.own.add(edit.path)
        elif edit.path not in self.own and _TESTS.search(edit.path) and "+0,0 @@" not in edit.patch:
            added = {line[1:].strip() for line in edit.patch.split("\n") if line[:1] == "+"}
            gone = (line.strip() for line in _ASSERTED.findall(edit.patch))
            older = (line for line in gone if line not in added and line not in self.written)
            if line := next(older, ""):
                self.note("rewritten", turn, shorten(line, _QUOTE), call)
            self.written |= added

    def _was_published(self, call: ToolCall) -> bool:
        """Return whether nothing speaks against a commit or push of the work: no scratch repository
        and no hook that failed under a program that hides its exit status.
        """
        result = call.result or ""
        refused = pattern("outcomes", "failed").search(result) and not _COMMITTED.search(result)
        return not refused and self._is_work(f"{folder_of(call.command) or '.'}/")

    def _edited(self, turn: int, place: int, path: str, call: str) -> None:
        self.note("edits", turn, path, call)
        self.first_edit = place if self.first_edit < 0 else self.first_edit
        self.edited[path] = place
        self.known |= self.recent

    def _is_work(self, path: str) -> bool:
        return is_work(path, self.session.cwd)

    def _person(self, turn: Turn) -> None:
        for deed in turn.interventions:
            if deed.kind == "interruption":
                self.note("interruptions", turn.number, deed.text or "interrupted")
            elif deed.kind == "rejection":
                self.note("rejections", turn.number, first_line(deed.text) or "call rejected")
            if deed.kind in ("rejection", "remark") and (words := correction_in(deed.text)):
                self.note("corrections", turn.number, words)
        if turn.number > 1 and (words := correction_in(turn.prompt)):
            self.note("corrections", turn.number, words)
        elif turn.number > 1 and (words := approval_in(turn.prompt)):
            self.note("approvals", turn.number, words)

    def facts(self) -> Facts:
        turns = self.session.turns
        last = self._last_check()
        messages = [message for turn in turns for message in turn.messages]
        served = self.calls >= _SERVED or self.session.prompt_count > 1
        kind: SessionKind = "unknown"
        if self.worked and self.worked >= _WORKED * self.calls:
            kind = "coding"
        elif self.calls and self.worked < _WORKED * self.calls and served:
            kind = "service"
        return Facts(
            **{what: tuple(places) for what, places in self.seen.items()},
            kind=kind,
            turns=self.session.prompt_count,
            asked=sum(len(turn.prompt) for turn in turns),
            calls=self.calls,
            wrote=self.wrote,
            closing=len(messages[-1].text) if messages else 0,
            streak=tuple(self.streak),
            first_edit=self.first_edit,
            edited=dict(self.edited),
            last_edit=max(self.edited.values(), default=-1),
            checks=tuple(self.checks),
            last_check=last,
            failed_before=_failed_before(last, self.checks),
            hazards=tuple(self.hazards),
            end=end_of(turns),
        )

    def _last_check(self) -> CheckRun | None:
        """Return the check that counts for what was changed: for its code, if there is any.

        Where nothing was changed, it is the last one that ran.
        """
        code = {path: at for path, at in self.edited.items() if language_of(path)}
        changed = code or self.edited
        if not changed:
            return next((run for run in reversed(self.checks) if run.passed is not None), None)
        return last_covering(changed, self.checks, self.first_edit, max(changed.values()))


def _line_of_failure(text: str) -> str:
    """Return the line of a failed call's result that says so, else the first one."""
    failed = pattern("outcomes", "failed")
    found = next((line for line in text.split("\n") if failed.search(line)), text)
    return first_line(found)


def _failed_before(last: CheckRun | None, checks: Sequence[CheckRun]) -> CheckRun | None:
    if last is None or not last.passed:
        return None
    same = (run for run in checks if run.tool == last.tool and run.place < last.place)
    return next((run for run in same if run.passed is False), None)


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


VERSION = "3"
"""Change it with whatever changes a signal: rows of another version are made again."""


def session_signals(session: Session) -> SessionSignals:
    """Return the signals of a session as a row."""
    facts = extract_signals(session)
    checks = last_checks(facts.checks, facts.edited, session.cwd)
    changed = Change(
        files=tuple(dict.fromkeys(place.quote for place in facts.edits)),
        deleted=tuple(dict.fromkeys(place.quote for place in facts.deleted)),
        commits=facts.published,
    )
    return SessionSignals(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        ended=session.ended,
        task=session.task,
        tool=session.tool,
        work="code" if changed else "answer",
        change=changed,
        checks=checks,
        ending={"closed": "answered"}.get(facts.end.ending, facts.end.ending),  # type: ignore[arg-type]
        end=facts.end.evidence,
        approvals=facts.approvals,
        calls=facts.calls,
        failed_calls=len(facts.errors),
        lines_kept=lasting_lines(session),
        tokens=session.usage.input + session.usage.output,
    )
