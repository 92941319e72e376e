"""Sessions of a week, read, redacted and normalised; their prompts and circumstances."""

from collections.abc import Iterable, Sequence
from operator import attrgetter

import dagster as dg
from msgspec import UNSET

from assets import versions
from assets.presentation import listed, preview, tallied
from assets.weekly import (
    COUNT,
    Filled,
    Metadata,
    StageRun,
    check,
    upstream,
    weekly_asset,
    weekly_stage,
)
from debrief.errors import InputError
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.sessions.model import SessionHead, UnreadTranscript
from debrief.sessions.redaction import redact_rows
from debrief.sessions.scanning import ScanEntry, is_reported
from debrief.sessions.store import (
    SCAN_PARTITION,
    SCAN_TABLE,
    read_from,
    scan_into,
    store_week,
    transcripts_of,
)
from debrief.snapshots.captures import Captures, find_captures, repository_folders
from debrief.snapshots.clones import Clones
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.snapshots.rows import (
    ROWS,
    lasting_snapshot,
    metadata_row,
    snapshot_row,
)
from resources import SessionStore

TABLE, UNREAD = "raw_sessions", "unread_transcripts"


@weekly_asset(group_name="sessions", code_version=versions.SESSIONS)
def raw_sessions(run: StageRun, week: str) -> Metadata | None:
    """Every session that started in the week, from every configured source, in one normal form: one
    row a session, its turns, calls, results, tokens and code growth nested.

    Secrets are replaced by placeholders before anything is stored. A transcript that could not be
    read is listed with the reason in `unread_transcripts`.
    """
    lake = run.lake
    places, servers = run.sessions.places, run.sessions.servers()
    scan = run.once("scan", lambda: scan_into(lake, places(), run.redactor, servers))
    if not scan.of_week(week):
        return None
    before = {head.id: head.digest for head in lake.read(TABLE, week, SessionHead)}
    skipped = store_week(lake, scan, week, run.redactor, servers, again=run.scope.force)
    heads = list(lake.read(TABLE, week, SessionHead))
    unread = list(lake.read(UNREAD, week, UnreadTranscript))
    failed = sum(not row.expected for row in unread)
    return {
        COUNT: len(heads),
        "sessions": preview(
            ("tool", "task", "sessions", "lines +/−", "output tokens", "secrets"),
            [(*of, *sums) for of, sums in sorted(_sums(heads).items())],
        ),
        "unread": listed(
            sorted((row for row in unread if not row.expected), key=attrgetter("path")),
            *("transcript=path", "line", "reason"),
        ),
        "without_a_session": tallied((row for row in unread if row.expected), "source", "reason"),
        "places_passed_over": sum(len(head.problems) for head in heads),
        "secrets_replaced": sum(head.redactions for head in heads),
        "failed": failed,
        "made_now": sum(before.get(head.id) != head.digest for head in heads),
        "summary": f"{len(heads)} sessions, {failed} failed" + (" (unchanged)" if skipped else ""),
    }


def _sums(heads: Iterable[SessionHead]) -> dict[tuple[str, str], tuple[object, ...]]:
    """Return the sessions, lines, output tokens and secrets of each tool and task."""
    groups: dict[tuple[str, str], list[SessionHead]] = {}
    for head in heads:
        groups.setdefault((head.tool, head.task), []).append(head)
    return {
        of: (
            len(own),
            f"+{sum(head.lines_added for head in own)} −{sum(head.lines_removed for head in own)}",
            sum(head.usage.output for head in own),
            sum(head.redactions for head in own),
        )
        for of, own in groups.items()
    }


def is_read(lake: Lake, sessions: SessionStore, weeks: Sequence[str]) -> bool:
    """Return whether the lake holds the sessions of some weeks as they are now."""
    redactor = sessions.redactor()
    scan = scan_into(lake, sessions.places(), redactor, sessions.servers())
    return all(
        (stamp := lake.stamp(TABLE, week)) is not None
        and stamp.inputs == read_from(scan, week, redactor)
        for week in weeks
    )


@check(raw_sessions)
def unique_sessions(lake: Lake, weeks: list[str]) -> dg.AssetCheckResult:
    """No session stands twice."""
    seen: dict[str, str] = {}
    doubled = []
    for week in weeks:
        for head in lake.read(TABLE, week, SessionHead):
            if head.id in seen:
                doubled.append((head.id, seen[head.id], week))
            seen[head.id] = week
    return dg.AssetCheckResult(
        passed=not doubled,
        metadata={"sessions": len(seen), "twice": preview(("session", "week", "week"), doubled)},
    )


@check(raw_sessions)
def no_lost_sessions(lake: Lake, weeks: list[str]) -> dg.AssetCheckResult:
    """Nothing is lost: every transcript that was found stands in a session or is listed as unread
    with a reason."""
    found = sorted(
        (entry.week, entry.path)
        for entry in lake.read(SCAN_TABLE, SCAN_PARTITION, ScanEntry)
        if entry.week in weeks and is_reported(entry)
    )
    taken = {week for week, _ in found}
    written = {(week, path) for week in taken for path in transcripts_of(lake, week)}
    unread = {
        (week, row.path): row.reason
        for week in taken
        for row in lake.read(UNREAD, week, UnreadTranscript)
    }
    lost = [each for each in found if each not in written and not unread.get(each)]
    return dg.AssetCheckResult(
        passed=not lost,
        metadata={
            "found": len(found),
            "in_a_session": sum(each in written for each in found),
            "unread_with_a_reason": sum(each in unread for each in found),
            "lost": preview(("week", "transcript"), lost),
        },
    )


@check(raw_sessions)
def tokens_as_reported(lake: Lake, weeks: list[str]) -> dg.AssetCheckResult:
    """Where a tool keeps its own total of a session's tokens, what was read comes to the same."""
    heads = lake.rows(TABLE, SessionHead, weeks)
    reported = [head for head in heads if head.reported_usage is not UNSET]
    wrong = [head for head in reported if head.reported_usage != head.usage]
    return dg.AssetCheckResult(
        passed=not wrong,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "sessions_with_a_total": len(reported),
            "disagreeing": len(wrong),
            "sessions": listed(
                wrong, "session=id", "tool", "reported=reported_usage", "read=usage"
            ),
        },
    )


@check(raw_sessions)
def servers_were_read(lake: Lake, weeks: list[str]) -> dg.AssetCheckResult:
    """Every server that sessions are read from answered. If not, the run fails, after everything
    else was done; the next one tries again."""
    rows: list[ScanEntry | UnreadTranscript] = [
        *lake.read(SCAN_TABLE, SCAN_PARTITION, ScanEntry),
        *lake.rows(UNREAD, UnreadTranscript, weeks),
    ]
    for row in rows:
        if row.cause == "server":
            move = "Its settings are LANGFUSE_HOST and its keys, or DATABASE_URL; then run again."
            raise InputError(row.path, row.reason.rstrip("."), move)
    return dg.AssetCheckResult(passed=True)


def _captures(run: StageRun) -> Captures:
    """Return the captures of the run's weeks; a run searches once."""

    def found() -> Captures:
        heads = run.lake.rows(TABLE, SessionHead, run.context.partition_keys)
        return find_captures([*run.sessions.places(), *sorted(repository_folders(heads))])

    return run.once("captures", found)


def _clones(run: StageRun) -> Clones:
    """Return the clones of repositories that settings name; a run searches once."""
    return run.once("clones", run.sessions.clones)


def _snapshot_inputs(run: StageRun, week: str) -> str:
    above = upstream(run.lake, "raw_sessions", week=week)
    return digest_of(ROWS, above, _captures(run).digest, _clones(run).digest)


def _snapshots(
    run: StageRun, week: str, stored: Sequence[PromptSnapshotRow]
) -> Iterable[PromptSnapshotRow]:
    heads = run.lake.read("raw_sessions", week, SessionHead)
    rows = [snapshot_row(head, _captures(run), _clones(run)) for head in heads]
    before = {row.session_id: row for row in stored}
    return [
        lasting_snapshot(row, before.get(row.session_id)) for row in redact_rows(rows, run.redactor)
    ]


@weekly_stage(
    PromptSnapshotRow,
    inputs=_snapshot_inputs,
    make=_snapshots,
    is_final=lambda run, week, rows: all(row.origin == "recorded" for row in rows),
    group_name="snapshots",
    code_version=versions.SNAPSHOTS,
    deps=[raw_sessions],
)
def prompt_snapshots(run: StageRun, week: str, filled: Filled[PromptSnapshotRow]) -> Metadata:
    """The exact main prompt and subagent prompts of each session, and their fingerprint: as
    captured when the session began, else reconstructed from the repository's history and marked
    so, else unknown."""
    rows = filled.rows
    problems = redact_rows(_captures(run).problems, run.redactor)
    return {
        "snapshots": tallied(rows, "origin", "fingerprint=prompt_fingerprint", "from=note"),
        "captures_with_problems": listed(problems, "file=path", "reason"),
        "summary": f"{sum(r.origin != 'unknown' for r in rows)} of {len(rows)} with prompts",
    }


def _metadata_inputs(run: StageRun, week: str) -> str:
    above = upstream(run.lake, "raw_sessions", "prompt_snapshots", week=week)
    return digest_of(ROWS, above, _captures(run).digest, _clones(run).digest)


def _metadata(
    run: StageRun, week: str, stored: Sequence[SessionMetadataRow]
) -> Iterable[SessionMetadataRow]:
    prompts = {
        row.session_id: row for row in run.lake.read("prompt_snapshots", week, PromptSnapshotRow)
    }
    before = {row.session_id: row for row in stored}
    rows = [
        metadata_row(
            head,
            prompts.get(head.id) or PromptSnapshotRow(session_id=head.id, origin="unknown"),
            _captures(run),
            _clones(run),
            before.get(head.id),
        )
        for head in run.lake.read("raw_sessions", week, SessionHead)
    ]
    return redact_rows(rows, run.redactor)


@weekly_stage(
    SessionMetadataRow,
    inputs=_metadata_inputs,
    make=_metadata,
    group_name="snapshots",
    code_version=versions.METADATA,
    deps=[raw_sessions, prompt_snapshots],
)
def session_metadata(run: StageRun, week: str, filled: Filled[SessionMetadataRow]) -> Metadata:
    """Tool, model, task, repository and prompt fingerprint of each session: what results are
    grouped and compared by."""
    columns = ("task", "tool", "model", "prompts=prompt_fingerprint")
    return {"metadata": tallied(filled.rows, *columns)}
