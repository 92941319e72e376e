"""Facts: what a session shows of how it went, each with its evidence.

One pass over the whole session, subagents included, and never over a part of it. Nothing here
weighs anything: the same session always gives the same facts.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

from msgspec import Struct

from debrief.markdown import shorten
from debrief.offline.shell import (
    CheckKind,
    check_of,
    code_in,
    commands_in,
    pattern,
    script_of,
    writes_of,
)
from debrief.offline.signs import (
    Ending,
    Hazard,
    admission_in,
    any_of,
    approval_in,
    correction_in,
    ending_of,
    farewell_in,
    first_line,
    hazards_of,
    label,
    line_at,
)
from debrief.scoring.model import SessionKind
from debrief.sessions.model import Evidence, Message, Session, Subagent, ToolCall, Turn, calls_of

_SOFT = frozenset(["grep", "rg", "diff", "cmp", "test", "[", "which", "pgrep", "gh", "false", "ls"])
"""Programs whose exit status 1 is an answer, no error."""
_HARMLESS = frozenset(
    ["cd", "echo", "export", "set", "source", "true", "tail", "head", "tee", "sort", "wc", "sleep"]
)
_FAILED = re.compile(
    r'\A\s*(?:<returncode>(?!0)|Exit code:? [1-9]|Error\b|❌|\{"error")|"exitCode":\s?[1-9]'
)
_ASSERTS = re.compile(r"^[ \t]*assert\b", re.MULTILINE)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_FIRST_WORDS, _QUOTE = 4_000, 120
_PRINTED = 6_000
"""Characters of a check's output, from its end, that are read."""
_LAST = threading.local()
_SERVED = 3
"""Calls from which on a session that hardly works on files is one of a service."""
_WORKED = 0.2
"""The least share of calls to a shell and to files in a coding session."""


class CheckRun(Struct, frozen=True, kw_only=True, gc=False):
    """A test, lint or type run, a build, or another command that the work shows to be a check."""

    kind: CheckKind
    tool: str
    passed: bool | None
    """None when nothing tells."""
    place: int
    """The call's position in the session."""
    evidence: Evidence

    @property
    def shown(self) -> str:
        """Return which check it was, where, and how it ended."""
        outcome = {True: "passed", False: "failed", None: "outcome not known"}[self.passed]
        where = self.evidence
        return f"turn {where.turn}: {self.kind} ({self.tool}) {outcome}: {where.quote}"


class Facts(Struct, frozen=True, kw_only=True):
    """What a session shows. Counts take subagents in."""

    kind: SessionKind
    asked_for_change: bool
    """The first prompt asks for work to be done, not only for an answer."""
    turns: int
    """Human turns."""
    messages: int
    """Messages of the agent with words in them."""
    calls: int
    wrote: int
    """Characters that the agent wrote, in words and into calls: what it took."""
    errors: tuple[Evidence, ...] = ()
    """Calls that failed, a check that found something before anything was changed left out."""
    streak: tuple[Evidence, ...] = ()
    """The longest run of failed calls, one after the other."""
    timeouts: tuple[Evidence, ...] = ()
    repeats: tuple[Evidence, ...] = ()
    """The same call again, with nothing changed in between."""
    edits: tuple[Evidence, ...] = ()
    """Files changed, by editing tools and in the shell."""
    left: int = 0
    """Calls that left anything behind: edits, and scratch files, installations, removals too."""
    created: tuple[Evidence, ...] = ()
    """Files that were not there before, as far as editing tools say."""
    checks: tuple[CheckRun, ...] = ()
    last_check: CheckRun | None = None
    """The last one with an outcome since the last edit."""
    doubts: tuple[Evidence, ...] = ()
    """Messages in which the agent speaks of trouble or thinks again."""
    corrections: tuple[Evidence, ...] = ()
    interruptions: tuple[Evidence, ...] = ()
    rejections: tuple[Evidence, ...] = ()
    approvals: tuple[Evidence, ...] = ()
    """Words that accept the work; thanks alone are none."""
    hazards: tuple[Hazard, ...] = ()
    ending: Ending = "closed"
    end: Evidence | None = None
    """What it ends with; None for a session without any work."""
    admitted: Evidence | None = None
    """Where the last message says that something was not achieved."""


def facts_of(session: Session) -> Facts:
    """Return the facts of a whole session; recalled when it was the last that was asked about."""
    if getattr(_LAST, "session", None) is not session:
        _LAST.facts = _Reading(session).facts()
        _LAST.session = session
    facts: Facts = _LAST.facts
    return facts


class _Reading:
    """One pass over the calls in order, and one over the person's words."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.seen: dict[str, list[Evidence]] = {}
        self.checks: list[CheckRun] = []
        self.hazards: list[Hazard] = []
        self.messages = self.calls = self.wrote = 0
        self.shell_calls = self.looks = self.edit_calls = self.left = 0
        self.last_edit = -1
        self.streak: list[Evidence] = []
        self.run: list[Evidence] = []
        self.done: set[tuple[str, str]] = set()
        self.scripts: dict[str, int] = {}
        """The edits made when a script ran last."""
        self.started = _started_by(session)
        self.farewell = farewell_in(session.turns)
        for turn in session.turns:
            if turn is not self.farewell:
                self._work(turn.number, turn.messages)
            self._person(turn)
        last = session.turns[-1].number if session.turns else 0
        while self.started:
            for child in self.started.pop(next(iter(self.started))):
                self._work(last, child.messages)

    def note(self, what: str, turn: int, quote: str, call: str = "") -> None:
        self.seen.setdefault(what, []).append(Evidence(turn, call, quote))

    def _work(self, turn: int, messages: Sequence[Message]) -> None:
        """Read messages and their calls, and after a call the subagents that it started."""
        left: list[Message | ToolCall] = [*reversed(messages)]
        while left:
            one = left.pop()
            if isinstance(one, Message):
                self._message(turn, one)
                left += reversed(one.calls)
            else:
                self._call(turn, one)
                for child in reversed(self.started.pop(one.id, ())):
                    left += reversed(child.messages)

    def _message(self, turn: int, message: Message) -> None:
        self.wrote += len(message.text)
        if message.text.strip():
            self.messages += 1
            if found := any_of("doubts").search(message.text.lower()):
                self.note("doubts", turn, line_at(message.text, found))

    def _call(self, turn: int, call: ToolCall) -> None:
        place, result = self.calls, call.result or ""
        self.calls += 1
        self.wrote += len(call.input)
        for kind, quote in hazards_of(call):
            where = Evidence(turn, call.id, quote)
            self.hazards.append(Hazard(kind, where, refused=call.status == "rejected"))
        if call.status == "rejected":
            return
        command = call.command if call.action == "run" else None
        failed = (
            call.status == "failed" or bool(call.exit_code) or bool(_FAILED.search(result[:300]))
        )
        checked = command is not None and self._checks(turn, place, call, command, failed)
        soft = failed and command is not None and call.exit_code in (None, 1) and _is_soft(command)
        known = self.last_edit < 0 and checked
        self._outcome(turn, call, failed and not soft and not known)
        if self._writes(turn, place, call, command, failed):
            self.done.clear()
        elif call.action not in ("wait", "plan") and not checked and len(call.input) > 20:
            key = (call.name, call.input)
            if key in self.done:
                self.note("repeats", turn, label(call), call.id)
            self.done.add(key)

    def _outcome(self, turn: int, call: ToolCall, failed: bool) -> None:
        text = call.result or ""
        if failed:
            where = Evidence(turn, call.id, f"{label(call)}: {first_line(text)}")
            self.seen.setdefault("errors", []).append(where)
            self.run.append(where)
            if len(self.run) > len(self.streak):
                self.streak = list(self.run)
        elif call.status != "unanswered" and call.action not in ("wait", "plan"):
            self.run = []
        if found := pattern("stopped", "timeout").search(text[-600:] if failed else text[-200:]):
            self.note("timeouts", turn, shorten(found[0], _QUOTE), call.id)

    def _checks(self, turn: int, place: int, call: ToolCall, command: str, failed: bool) -> bool:
        """Note the checks that a command ran; return whether there was one."""
        self.shell_calls += 1
        commands = [each.words for each in commands_in(command) if each.words]
        checks = {words: check for words in commands if (check := check_of(words))}
        known, edits = bool(checks), len(self.seen.get("edits", ()))
        again = set()
        for words in commands:
            if not known and (script := script_of(words)) is not None:
                if script in again or self.scripts.get(script, edits) < edits:
                    again.add(script)
                    checks[words] = "test", script
                self.scripts[script] = edits
        if not checks and _ASSERTS.search(code_in(command)):
            checks[()] = "test", "an assertion"
        certain = all(
            words in checks or words[0].rpartition("/")[2] in _HARMLESS for words in commands
        )
        for kind, tool in dict.fromkeys(checks.values()):
            passed, quote = _result_of(call, failed, certain or len(commands) == 1)
            where = Evidence(turn, call.id, quote)
            run = CheckRun(kind=kind, tool=tool, passed=passed, place=place, evidence=where)
            self.checks.append(run)
        return bool(checks)

    def _writes(
        self, turn: int, place: int, call: ToolCall, command: str | None, failed: bool
    ) -> bool:
        """Note what a call changed; return whether it left anything behind."""
        if command is None:
            self.looks += call.action in ("read", "search")
            path = call.path
            if path is None and call.action == "edit":
                path = next(iter(call.paths), None)
            if path is None or failed:
                return False
            self.note("edits", turn, path, call.id)
            if call.patch.startswith("@@ -0,0"):
                self.note("created", turn, path, call.id)
            self.last_edit, self.edit_calls, self.left = place, self.edit_calls + 1, self.left + 1
            return True
        writes = [] if call.status == "unanswered" else list(writes_of(command))
        edits = list(dict.fromkeys(write.path for write in writes if write.is_edit))
        if edits and not (failed and len(commands_in(command)) == 1):
            for path in edits:
                self.note("edits", turn, path, call.id)
            self.last_edit = place
        self.left += bool(writes)
        return bool(writes)

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
        prompt = next((t.prompt for t in self.session.turns if t.number and t.prompt.strip()), "")
        known = [run for run in self.checks if run.passed is not None]
        last = known[-1] if known and known[-1].place >= self.last_edit else None
        worked = self.shell_calls + self.looks + self.edit_calls
        served = self.calls >= _SERVED or self.session.prompt_count > 1
        kind: SessionKind = "unknown"
        if worked and worked >= _WORKED * self.calls:
            kind = "coding"
        elif self.calls and worked < _WORKED * self.calls and served:
            kind = "service"
        ending, end = ending_of(self.session.turns, kind, self.farewell)
        return Facts(
            **{what: tuple(places) for what, places in self.seen.items()},
            kind=kind,
            asked_for_change=_is_task(prompt),
            turns=self.session.prompt_count,
            messages=self.messages,
            calls=self.calls,
            wrote=self.wrote,
            left=self.left,
            streak=tuple(self.streak),
            checks=tuple(self.checks),
            last_check=last,
            hazards=tuple(self.hazards),
            ending=ending,
            end=end,
            admitted=admission_in(self.session.turns, self.farewell),
        )


def _started_by(session: Session) -> dict[str, list[Subagent]]:
    """Return the subagents by the call that started each; by ``""`` where it is not known."""
    ids = {call.id for call in calls_of(session)}
    started: dict[str, list[Subagent]] = {}
    for child in session.subagents:
        key = next((each for each in (child.call_id, child.id) if each in ids), "")
        started.setdefault(key, []).append(child)
    return started


def _is_task(prompt: str) -> bool:
    text = prompt[:_FIRST_WORDS]
    if any_of("untouched").search(text):
        return False
    is_question = bool(any_of("questions").search(text)) or text.rstrip().endswith("?")
    return bool(any_of("changes").search(text)) and not (is_question and len(prompt) < 300)


def _result_of(call: ToolCall, failed: bool, certain: bool) -> tuple[bool | None, str]:
    """Return whether a check passed, and the line that tells: the last one that does.

    Most commands in transcripts end in ``| tail``, which hides the exit status; it counts where
    it must be the check's own, and where the output says nothing.
    """
    text = _ANSI.sub("", (call.result or "")[-_PRINTED:]).replace("\\n", "\n")
    if call.result is None or pattern("outcomes", "none").search(text):
        return None, shorten(text, _QUOTE)
    lines = [line for line in text.split("\n") if line.strip()]
    for line in reversed(lines):
        bad = pattern("outcomes", "failed").search(line)
        if bad or pattern("outcomes", "passed").search(line):
            return not (bad or (failed and certain)), shorten(line.strip(), _QUOTE)
    quote = shorten(lines[-1].strip(), _QUOTE) if lines else ""
    return (not failed if certain or not failed else None), quote


def _is_soft(command: str) -> bool:
    commands = [words for words, _ in commands_in(command) if words]
    return bool(commands) and commands[-1][0] in _SOFT
