"""What is seen in a session: row types, each with its evidence by turn."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

CheckKind = Literal["test", "lint", "types", "build"]
HazardKind = Literal["destructive", "bypass", "exposure", "remote_code", "secret"]


class EditHunk(Struct, frozen=True, kw_only=True, gc=False):
    """One hunk of a successful edit."""

    turn: int
    path: str
    created: bool
    start: int
    """First changed line after the edit, from 1."""
    end: int
    """Last changed line after the edit; ``start - 1`` when it only removed."""
    added: int
    removed: int
    added_lines: tuple[str, ...]
    removed_lines: tuple[str, ...]


class Sighting(Struct, frozen=True, gc=False):
    """Where something was seen."""

    turn: int
    quote: str
    """Short, one line."""


class CheckRun(Struct, frozen=True, kw_only=True, gc=False):
    """A test, lint or type run, or a build."""

    turn: int
    call: int
    """Position among the calls of the session or part, from 0."""
    kind: CheckKind
    tool: str
    passed: bool | None
    failures: int | None
    total: int | None
    quote: str


class Hazard(Struct, frozen=True, kw_only=True, gc=False):
    """A dangerous command, or a secret shown or written down."""

    turn: int
    kind: HazardKind
    quote: str
    refused: bool
    """The person rejected the call, so it never ran."""


class Signals(Struct, frozen=True, kw_only=True):
    """What a session, or a part of one, shows. Counts take subagents in; cache reads are apart."""

    turns: int
    """Human turns."""
    messages: int
    calls: int
    checks: tuple[CheckRun, ...]
    edits: tuple[EditHunk, ...]
    """Edits that succeeded, in order."""
    tool_errors: tuple[Sighting, ...]
    """Calls that the tool itself refused; a check that found failures is none."""
    repeated_edits: tuple[Sighting, ...]
    """Edits of a place that an earlier edit had changed already."""
    repeated_calls: tuple[Sighting, ...]
    """The same call again, with nothing edited in between."""
    rereads: tuple[Sighting, ...]
    """The same part of a file again, the file not having changed in between."""
    blind_edits: tuple[Sighting, ...]
    """Edits of an existing file that was not looked at before."""
    interruptions: tuple[Sighting, ...]
    rejections: tuple[Sighting, ...]
    answers: tuple[Sighting, ...]
    corrections: tuple[Sighting, ...]
    approvals: tuple[Sighting, ...]
    hazards: tuple[Hazard, ...]
    unanswered: tuple[Sighting, ...]
    compactions: tuple[Sighting, ...]
    commits: tuple[Sighting, ...]
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
