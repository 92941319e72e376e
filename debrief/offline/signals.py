"""Signals: what a session shows of how it went, each with its evidence by turn.

This is the ground that every offline score stands on. Reading is pure and deterministic: the
same session, or the same part of one, always gives the same signals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from debrief.offline.activity import Activity, activity_of
from debrief.offline.check_results import checks_in
from debrief.offline.commands import arguments, shell_command, simple_commands
from debrief.offline.edits import Places, edits_of
from debrief.offline.file_access import is_search, read_key
from debrief.offline.hazards import hazards_of
from debrief.offline.model import CheckRun, EditHunk, Hazard, Sighting, Signals
from debrief.offline.replies import approval_in, correction_in
from debrief.sessions.model import Message, Session, ToolCall, Turn

__all__ = ["CheckRun", "EditHunk", "Hazard", "Sighting", "Signals", "read_signals"]

_WORDY = 20
_SOFT = frozenset(["grep", "rg", "diff", "cmp", "test", "[", "which", "pgrep", "gh", "false"])
_NOISE = re.compile(r"^\s*(?:Exit code:? \d+|</?tool_use_error>)\s*", re.IGNORECASE)
_TAG = re.compile(r"</?tool_use_error>")
_POLLS = re.compile(r"output|status|list|wait|monitor|todo|task|plan", re.IGNORECASE)


def read_signals(session: Session, turns: Iterable[int] | None = None) -> Signals:
    """Read the signals of a session, or of some of its turns.

    Args:
        session: of any source; what a source does not record is simply not seen.
        turns: numbers of the turns to look at; all by default. Subagents count for the turn
            that started them.
    """
    activity = activity_of(session, turns)
    return _Reading(activity).signals()


class _Reading:
    """One pass over the calls in order, and one over the person's words."""

    def __init__(self, activity: Activity) -> None:
        self.activity = activity
        self.checks: list[CheckRun] = []
        self.edits: list[EditHunk] = []
        self.places = Places()
        self.found: dict[str, list[Sighting]] = {}
        self.hazards: list[Hazard] = []
        self.seen_paths: set[str] = set()
        self.read_keys: set[tuple[str, str]] = set()
        self.done_calls: set[tuple[str, str]] = set()
        self.searches = 0
        self.reads = 0
        self.looked_first = False
        self.last_edit = -1
        context = (-1, "")
        compacted = {turn.number for turn in activity.turns if turn.compacted}
        for position, (turn, agent, call) in enumerate(activity.calls):
            if (turn, agent) != context:
                self.done_calls.clear()
                if agent != context[1] or turn in compacted:
                    self.read_keys.clear()
                context = (turn, agent)
            self._call(position, turn, call)
        for turn_ in activity.turns:
            self._person(turn_)

    def note(self, what: str, turn: int, quote: str) -> None:
        self.found.setdefault(what, []).append(Sighting(turn, quote))

    def get(self, what: str) -> tuple[Sighting, ...]:
        return tuple(self.found.get(what, ()))

    def _call(self, position: int, turn: int, call: ToolCall) -> None:
        for kind, quote in hazards_of(call):
            refused = call.status == "rejected"
            self.hazards.append(Hazard(turn=turn, kind=kind, quote=quote, refused=refused))
        if call.status == "rejected":
            return
        if call.status == "unanswered":
            self.note("unanswered", turn, _label(call))
        command = shell_command(call)
        checked = self._shell(position, turn, call, command) if command is not None else False
        sibling = "Sibling tool call errored" in (call.result or "")[:80]
        if call.status == "failed" and not checked and not sibling:
            self.note("tool_errors", turn, f"{_label(call)}: {_first_line(call.result)}")
        self._detected(turn, call, command)
        edits = edits_of(turn, call)
        for edit in edits:
            self._edit(position, edit)
        reads = read_key(call, command) is not None
        if not edits and command is None and not reads and call.status == "ok":
            self._repeat(turn, call)

    def _shell(self, position: int, turn: int, call: ToolCall, command: str) -> bool:
        checks = checks_in(call, command)
        for check in checks:
            self.checks.append(
                CheckRun(
                    turn=turn,
                    call=position,
                    kind=check.kind,
                    tool=check.tool,
                    passed=check.result.passed,
                    failures=check.result.failures,
                    total=check.result.total,
                    quote=check.result.quote,
                )
            )
        commands = simple_commands(command)
        if call.status == "ok" and (done := next(filter(_publishes, commands), None)):
            self.note("commits", turn, " ".join(done[:3]))
        failed_softly = call.exit_code in (None, 1) and commands and commands[-1][0] in _SOFT
        return bool(checks) or bool(failed_softly)

    def _detected(self, turn: int, call: ToolCall, command: str | None) -> None:
        if is_search(call, command):
            self.searches += 1
        key = read_key(call, command)
        if key is not None and call.status == "ok":
            self.reads += 1
            path, part = key
            self.seen_paths.add(path)
            if key in self.read_keys:
                self.note("rereads", turn, f"{_name(path)}{' ' + part if part else ''}")
            self.read_keys.add(key)
        if self.last_edit < 0 and (self.searches or self.reads):
            self.looked_first = True

    def _edit(self, position: int, edit: EditHunk) -> None:
        known = edit.path in self.seen_paths or self.places.knows(edit.path)
        if not edit.created and not known:
            self.note("blind_edits", edit.turn, _name(edit.path))
        earlier = self.places.add(edit)
        if earlier is not None:
            quote = f"{_name(edit.path)} line {edit.start}, written in turn {earlier}"
            self.note("repeated_edits", edit.turn, quote)
        self.edits.append(edit)
        self.seen_paths.add(edit.path)
        self.read_keys = {key for key in self.read_keys if key[0] != edit.path}
        self.done_calls.clear()
        self.last_edit = position

    def _repeat(self, turn: int, call: ToolCall) -> None:
        key = (call.name, call.input)
        if key in self.done_calls and len(call.input) > _WORDY and not _POLLS.search(call.name):
            self.note("repeated_calls", turn, _label(call))
        self.done_calls.add(key)

    def _person(self, turn: Turn) -> None:
        for deed in turn.interventions:
            if deed.kind == "interruption":
                self.note("interruptions", turn.number, deed.text or "interrupted")
            elif deed.kind == "rejection":
                self.note("rejections", turn.number, _first_line(deed.text) or "call rejected")
            elif deed.kind == "answer":
                self.note("answers", turn.number, _first_line(deed.text))
            if deed.kind in ("rejection", "remark") and (words := correction_in(deed.text)):
                self.note("corrections", turn.number, words)
        if turn.compacted:
            self.note("compactions", turn.number, "conversation compacted")
        if turn.number < 2:
            return
        if words := correction_in(turn.prompt):
            self.note("corrections", turn.number, words)
        if words := approval_in(turn.prompt):
            self.note("approvals", turn.number, words)

    def signals(self) -> Signals:
        activity = self.activity
        last = activity.turns[-1] if activity.turns else None
        closing = _closing(activity.turns)
        interrupted = bool(last and any(d.kind == "interruption" for d in last.interventions))
        messages = activity.messages
        return Signals(
            turns=sum(turn.number > 0 for turn in activity.turns),
            messages=len(messages),
            calls=len(activity.calls),
            checks=tuple(self.checks),
            edits=tuple(self.edits),
            tool_errors=self.get("tool_errors"),
            repeated_edits=self.get("repeated_edits"),
            repeated_calls=self.get("repeated_calls"),
            rereads=self.get("rereads"),
            blind_edits=self.get("blind_edits"),
            interruptions=self.get("interruptions"),
            rejections=self.get("rejections"),
            answers=self.get("answers"),
            corrections=self.get("corrections"),
            approvals=self.get("approvals"),
            hazards=tuple(self.hazards),
            unanswered=self.get("unanswered"),
            compactions=self.get("compactions"),
            commits=self.get("commits"),
            searches=self.searches,
            reads=self.reads,
            searched_before_first_edit=self.looked_first,
            subagents=len(activity.subagents),
            parallel_messages=sum(len(message.calls) > 1 for message in messages),
            input_tokens=sum(m.usage.input + m.usage.cache_write for m in messages),
            output_tokens=sum(m.usage.output for m in messages),
            lines_added=sum(edit.added for edit in self.edits),
            lines_removed=sum(edit.removed for edit in self.edits),
            ended_answered=closing is not None and not interrupted,
            ended_interrupted=interrupted and not _answered_after(last),
            closing=closing,
            checked_after_last_edit=any(run.call > self.last_edit for run in self.checks),
        )


def _closing(turns: tuple[Turn, ...]) -> Sighting | None:
    """Return the words that the work ends with, None when it breaks off.

    A last prompt that only thanks needs no answer, and a transcript that was taken by a commit's
    own hook ends with that commit under way.
    """
    if not turns:
        return None
    last = turns[-1]
    if not last.messages:
        thanks = approval_in(last.prompt)
        return Sighting(last.number, thanks) if thanks and len(turns) > 1 else None
    final = last.messages[-1]
    waiting = [call for call in final.calls if call.status == "unanswered"]
    if waiting:
        commands = [shell_command(call) or "" for call in waiting]
        published = all(any(map(_publishes, simple_commands(text))) for text in commands)
        return Sighting(last.number, _short(commands[-1], 60)) if published else None
    lines = [line for line in final.text.strip().split("\n") if line.strip()]
    return Sighting(last.number, _short(lines[0])) if lines else None


def _answered_after(last: Turn | None) -> bool:
    """Return whether the model still answered after the last interruption of a turn."""
    if last is None or not last.messages:
        return False
    stops = [d.at for d in last.interventions if d.kind == "interruption" and d.at]
    final: Message = last.messages[-1]
    return bool(stops and final.at and final.at > max(stops) and final.text.strip())


def _publishes(words: tuple[str, ...]) -> bool:
    head = words[:3]
    return head[:2] in (("git", "commit"), ("git", "push")) or head == ("gh", "pr", "create")


def _label(call: ToolCall) -> str:
    command = shell_command(call)
    if command is not None:
        return _short(command, 60)
    path = call.path or arguments(call).get("file_path") or arguments(call).get("path")
    return f"{call.name} {_name(path)}" if isinstance(path, str) else call.name


def _name(path: str) -> str:
    parts = path.replace("\\", "/").split("/")
    return "/".join(parts[-2:])


def _first_line(text: str | None) -> str:
    text = _NOISE.sub("", _NOISE.sub("", (text or "")[:2000])).strip()
    return _short(_TAG.sub("", text.split("\n", 1)[0])) if text else ""


def _short(text: str, length: int = 100) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"
