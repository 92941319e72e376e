"""Compares what was read of a program's transcripts with what really happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from debrief.keys import week_of
from debrief.markdown import plain, shorten, table
from debrief.sessions.model import Session, UnreadTranscript
from debrief.sessions.sources import default_folders, read_week, scan
from tools.programs.definitions import Definitions, Script
from tools.programs.fields import FIELDS, Pair
from tools.programs.running import Run, Stage, Truth

OK, WRONG, ABSENT = "ok", "**differs**", "–"
SESSIONS = "sessions"


class Comparison(Struct, frozen=True, kw_only=True):
    """What came of one program."""

    program: str
    version: str
    failure: str = ""
    """Why it could not be run or read."""
    missing: str = ""
    """Why it could not be installed, so that nothing is known of it."""
    differences: dict[str, list[str]] = {}
    """By field; an empty list where all is as it was."""
    unknown: dict[str, str] = {}

    def cell(self, field: str) -> str:
        """Return a field's entry in the table; empty when there was nothing to compare."""
        if field not in self.differences:
            return ""
        if not self.differences[field]:
            return OK
        return ABSENT if field in self.unknown else WRONG

    @property
    def is_wrong(self) -> bool:
        """Something differs that the program's files hold."""
        return bool(self.failure) or WRONG in map(self.cell, self.differences)


def compared(stage: Stage, known: Definitions) -> Comparison:
    """Read a program's home and compare it with the truth."""
    found = scan(default_folders(stage.home, {}))
    read = {week: list(read_week(found, week)) for week in found.weeks()}
    program = known.programs[stage.name]
    scripts = {
        name: replace(script, told=program.told.get(name, script.told))
        for name, script in known.scripts.items()
    }
    everything = [one for listed in read.values() for one in listed]
    result = compare(stage.read(), scripts, everything, program.unknown)
    result.differences[SESSIONS].extend(misfiled(read))
    return result


def misfiled(read: Mapping[str, Iterable[Session | UnreadTranscript]]) -> Iterator[str]:
    """Yield, in words, the sessions that a scan filed under another week than they began in.

    Args:
        read: what reading gives, by the week of the scan.
    """
    for week, listed in read.items():
        for one in listed:
            if isinstance(one, Session) and (began := week_of(one.started)) != week:
                yield f"session {one.id} of the week {began} is filed under {week}"


def compare(
    truth: Truth,
    scripts: Mapping[str, Script],
    read: Sequence[Session | UnreadTranscript],
    unknown: Mapping[str, str] = MappingProxyType({}),
) -> Comparison:
    """Compare sessions with the truth."""
    left = [session for session in read if isinstance(session, Session)]
    unread = [
        transcript
        for transcript in read
        if not (isinstance(transcript, Session) or transcript.expected)
    ]
    lost = [f"{transcript.path}: {transcript.reason}" for transcript in unread]
    chains: dict[str, list[Run]] = {}
    for run in truth.runs:
        script = scripts[run.script]
        if script.steps or script.resumes:  # else nobody asked the model anything
            chains.setdefault(script.resumes or run.script, []).append(run)
    pairs = []
    for name, runs in chains.items():
        candidates = [
            Pair(truth=truth, scripts=scripts, runs=runs, session=session) for session in left
        ]
        best = max(candidates, key=lambda pair: len(pair.matched), default=None)
        if best is None or not best.matched:
            lost.append(f"{name}: no session")
            continue
        pairs.append(best)
        left.remove(best.session)
    lost += [
        f"{name}: exit code {run.code}" for run in truth.runs if run.code for name in [run.script]
    ]
    lost += [f"session {session.id} is of nothing that was run" for session in left]
    lost += [
        f"tool {name} is not offered" for exchange in truth.exchanges for name in exchange.unoffered
    ]
    differences = {
        field: [each for pair in pairs for each in differ(pair)] for field, differ in FIELDS.items()
    }
    return Comparison(
        program=truth.program,
        version=truth.version,
        differences={SESSIONS: [*lost, *truth.errors], **(differences if pairs else {})},
        unknown=dict(unknown),
    )


def report(results: Sequence[Comparison], day: date) -> str:
    """Return the table, what differs, and what no file holds, as Markdown."""
    header = ("field", *(f"{result.program} {result.version}".rstrip() for result in results))
    rows = [(field, *(result.cell(field) for result in results)) for field in (SESSIONS, *FIELDS)]
    lines = [f"- {result.program}: {result.failure}" for result in results if result.failure]
    lines += [
        f"- {result.program}: not installed: {result.missing}"
        for result in results
        if result.missing
    ]
    for result in results:
        for field, found in result.differences.items():
            if found and result.cell(field) == ABSENT:
                lines.append(f"- {result.program}, {field}: {result.unknown[field]}")
            elif found:
                more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
                what = shorten("; ".join(found[:3]), 600)
                lines.append(f"- {result.program}, **{field}**: {plain(what)}{more}")
    return "\n\n".join([f"As of {day}:", table(header, rows), "\n".join(lines)])
