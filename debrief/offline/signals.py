"""Signals: what a session shows of how it went, each with its evidence by turn.

This is the ground that every offline score stands on. Reading is pure and deterministic: the
same session, or the same part of one, always gives the same signals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from debrief.markdown import shorten
from debrief.offline.calls import (
    Activity,
    EditHunk,
    Hazard,
    Places,
    activity_of,
    edits_of,
    hazards_of,
    is_search,
    read_key,
)
from debrief.offline.check_results import CheckRun, checks_in
from debrief.offline.commands import CheckKind, arguments, shell_command, simple_commands
from debrief.offline.dialogue import Sighting, approval_in, correction_in
from debrief.sessions.model import Session, ToolCall, Turn

_WORDY = 20
_SOFT = frozenset(["grep", "rg", "diff", "cmp", "test", "[", "which", "pgrep", "gh", "false"])
_NOISE = re.compile(r"^\s*(?:Exit code:? \d+|</?tool_use_error>)\s*", re.IGNORECASE)
_TAG = re.compile(r"</?tool_use_error>")
_POLLS = re.compile(r"output|status|list|wait|monitor|todo|task|plan", re.IGNORECASE)
_TURNS = 3


class Signals(Struct, frozen=True, kw_only=True):
    """What a session, or a part of one, shows. Counts take subagents in; cache reads are apart."""

    turns: int
    """Human turns."""
    messages: int
    calls: int
    checks: tuple[CheckRun, ...]
    edits: tuple[EditHunk, ...]
    """Edits that succeeded, in order."""
    tool_errors: tuple[Sighting, ...] = ()
    """Calls that the tool itself refused; a check that found failures is none."""
    repeated_edits: tuple[Sighting, ...] = ()
    """Edits of a place that an earlier edit had changed already."""
    repeated_calls: tuple[Sighting, ...] = ()
    """The same call again, with nothing edited in between."""
    rereads: tuple[Sighting, ...] = ()
    """The same part of a file again, the file not having changed in between."""
    blind_edits: tuple[Sighting, ...] = ()
    """Edits of an existing file that was not looked at before."""
    interruptions: tuple[Sighting, ...] = ()
    rejections: tuple[Sighting, ...] = ()
    answers: tuple[Sighting, ...] = ()
    corrections: tuple[Sighting, ...] = ()
    approvals: tuple[Sighting, ...] = ()
    hazards: tuple[Hazard, ...]
    unanswered: tuple[Sighting, ...] = ()
    compactions: tuple[Sighting, ...] = ()
    commits: tuple[Sighting, ...] = ()
    """Commits, pushes and pull requests that went through."""
    searches: int
    """Searches and looks into folders."""
    reads: int
    searched_before_first_edit: bool
    subagents: int
    parallel_messages: int
    """Messages that made several calls at once."""
    input_tokens: int
    """New input and cache writes."""
    output_tokens: int
    lines_added: int
    lines_removed: int
    ended_answered: bool
    """The last turn ends with words of the model, a commit, or thanks: nothing is left open."""
    ended_interrupted: bool
    closing: Sighting | None
    """What the last turn ends with."""
    checked_after_last_edit: bool

    @property
    def growth(self) -> int:
        """Lines added plus lines removed."""
        return self.lines_added + self.lines_removed

    @property
    def tokens(self) -> int:
        """Input and output tokens, cache reads apart."""
        return self.input_tokens + self.output_tokens

    @property
    def growth_per_1000_tokens(self) -> float | None:
        """Lines added and removed per 1,000 tokens; None without tokens."""
        return 1000 * self.growth / self.tokens if self.tokens else None

    @property
    def calls_per_turn(self) -> float | None:
        """Tool calls per human turn; None without turns."""
        return self.calls / self.turns if self.turns else None

    @property
    def exploration(self) -> str:
        """How much was looked at before and while editing."""
        searches = f"{self.searches} search{'es' * (self.searches != 1)}"
        return f"looked first: {searches}, {counted(self.reads, 'read{s}')}"

    def last_check(self, *kinds: CheckKind) -> CheckRun | None:
        """Return the last check with a known outcome, of these kinds or of any."""
        for run in reversed(self.checks):
            if run.passed is not None and (not kinds or run.kind in kinds):
                return run
        return None

    def open_checks(self) -> list[CheckRun]:
        """Return the checks whose last known outcome was a failure: one for all tests, else one
        a tool."""
        last: dict[tuple[str, str], CheckRun] = {}
        for run in self.checks:
            if run.passed is not None:
                last[run.kind, "" if run.kind == "test" else run.tool] = run
        return [run for run in last.values() if not run.passed]


def read_signals(session: Session, turns: Iterable[int] | None = None) -> Signals:
    """Read the signals of a session, or of some of its turns.

    Args:
        session: of any source; what a source does not record is simply not seen.
        turns: numbers of the turns to look at; all by default. Subagents count for the turn
            that started them.
    """
    return _Reading(activity_of(session, turns)).signals()


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

    def _call(self, position: int, turn: int, call: ToolCall) -> None:
        refused = call.status == "rejected"
        for kind, quote in hazards_of(call):
            self.hazards.append(Hazard(turn=turn, kind=kind, quote=quote, refused=refused))
        if refused:
            return
        if call.status == "unanswered":
            self.note("unanswered", turn, _label(call))
        command = shell_command(call)
        checked = self._shell(position, turn, call, command) if command is not None else False
        sibling = "Sibling tool call errored" in (call.result or "")[:80]
        if call.status == "failed" and not checked and not sibling:
            self.note("tool_errors", turn, f"{_label(call)}: {_first_line(call.result)}")
        key = read_key(call, command)
        self._look(turn, call, command, key)
        edits = edits_of(turn, call)
        for edit in edits:
            self._edit(position, edit)
        if not edits and command is None and key is None and call.status == "ok":
            self._repeat(turn, call)

    def _shell(self, position: int, turn: int, call: ToolCall, command: str) -> bool:
        checks = checks_in(call, command, turn, position)
        self.checks += checks
        commands = simple_commands(command)
        if call.status == "ok" and (done := next(filter(_publishes, commands), None)):
            self.note("commits", turn, " ".join(done[:3]))
        failed_softly = call.exit_code in (None, 1) and commands and commands[-1][0] in _SOFT
        return bool(checks) or bool(failed_softly)

    def _look(
        self, turn: int, call: ToolCall, command: str | None, key: tuple[str, str] | None
    ) -> None:
        if is_search(call, command):
            self.searches += 1
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
        if not edit.created and edit.path not in self.seen_paths:
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
            **{what: tuple(sightings) for what, sightings in self.found.items()},
            turns=sum(turn.number > 0 for turn in activity.turns),
            messages=len(messages),
            calls=len(activity.calls),
            checks=tuple(self.checks),
            edits=tuple(self.edits),
            hazards=tuple(self.hazards),
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
        return Sighting(last.number, shorten(commands[-1], 60)) if published else None
    lines = [line for line in final.text.strip().split("\n") if line.strip()]
    return Sighting(last.number, shorten(lines[0], 100)) if lines else None


def _answered_after(last: Turn | None) -> bool:
    """Return whether the model still answered after the last interruption of a turn."""
    if last is None or not last.messages:
        return False
    stops = [d.at for d in last.interventions if d.kind == "interruption" and d.at]
    final = last.messages[-1]
    return bool(stops and final.at and final.at > max(stops) and final.text.strip())


def _publishes(words: tuple[str, ...]) -> bool:
    head = words[:3]
    return head[:2] in (("git", "commit"), ("git", "push")) or head == ("gh", "pr", "create")


def _label(call: ToolCall) -> str:
    command = shell_command(call)
    if command is not None:
        return shorten(command, 60)
    path = call.path or arguments(call).get("file_path") or arguments(call).get("path")
    return f"{call.name} {_name(path)}" if isinstance(path, str) else call.name


def _name(path: str) -> str:
    parts = path.replace("\\", "/").split("/")
    return "/".join(parts[-2:])


def _first_line(text: str | None) -> str:
    text = _NOISE.sub("", _NOISE.sub("", (text or "")[:2000])).strip()
    return shorten(_TAG.sub("", text.split("\n", 1)[0]), 100) if text else ""


def turns_of(sightings: Sequence[Sighting]) -> str:
    """Return ``turn 3`` or ``turns 3, 4, 9 and 2 more``."""
    numbers = list(dict.fromkeys(sighting.turn for sighting in sightings))
    shown = ", ".join(map(str, numbers[:_TURNS]))
    more = f" and {len(numbers) - _TURNS} more" if len(numbers) > _TURNS else ""
    return f"turn{'s' if len(numbers) > 1 else ''} {shown}{more}"


def cited(what: str, sightings: Sequence[Sighting]) -> str:
    """Return e.g. ``2 tool errors (turns 3, 5: "no such file")``; ``what`` as of ``counted``."""
    return f"{counted(len(sightings), what)} ({turns_of(sightings)}: “{sightings[0].quote}”)"


def counted(count: int, what: str) -> str:
    """Return number and noun, ``{s}`` in ``what`` being the plural's ending.

    >>> counted(1, "line{s} added"), counted(2, "line{s} added")
    ('1 line added', '2 lines added')
    """
    return f"{count} {what.replace('{s}', '' if count == 1 else 's')}"
