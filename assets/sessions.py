"""Sessions of a week, read, redacted and normalised; their prompts and circumstances."""

import re
from collections.abc import Iterable, Sequence

import dagster as dg
from msgspec import UNSET

from assets import versions
from assets.presentation import PREVIEW_ROWS, preview, session_links
from assets.weekly import (
    COUNT,
    Filled,
    Metadata,
    StageRun,
    checked_weeks,
    explain_full_disk,
    upstream,
    weekly_asset,
    weekly_stage,
)
from debrief.errors import InputError
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.redaction.sessions import redact_rows
from debrief.sessions.model import SessionHead, UnreadTranscript
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
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.snapshots.rows import ROWS, metadata_row, snapshot_row
from resources.storage import LakeResource, SessionStore

TABLE, UNREAD = "raw_sessions", "unread_transcripts"


@weekly_asset(
    group_name="sessions",
    code_version=versions.SESSIONS,
    description=(
        "Every session that started in the week, from every configured source, in one normal "
        "form: one row a session, its turns, calls, results, tokens and code growth nested. "
        "Secrets are replaced by placeholders before anything is stored. A transcript that "
        "could not be read is listed with the reason in `unread_transcripts`."
    ),
)
def raw_sessions(run: StageRun, week: str) -> Metadata | None:
    """Read a week's transcripts."""
    lake = run.lake
    places, servers = run.sessions.places, run.sessions.servers()
    scan = run.once("scan", lambda: scan_into(lake, places(), run.redactor, servers))
    if not scan.of_week(week):
        return None
    before = {head.id: head.digest for head in lake.read(TABLE, week, SessionHead)}
    with explain_full_disk(lake, TABLE, week):
        again = run.scope.force
        skipped = store_week(lake, scan, week, run.redactor, servers, again=again)
    heads = list(lake.read(TABLE, week, SessionHead))
    unread = list(lake.read(UNREAD, week, UnreadTranscript))
    failed = sum(not row.expected for row in unread)
    shown = session_links(lake, week, {head.id for head in heads[:PREVIEW_ROWS]})
    return {
        COUNT: len(heads),
        "sessions": preview(
            ("session", "started", "tool", "task", "lines +/−", "output tokens", "secrets"),
            [
                (
                    shown.get(head.id),
                    f"{head.started:%a %d %b %H:%M}",
                    head.tool,
                    head.task,
                    f"+{head.lines_added} −{head.lines_removed}",
                    head.usage.output,
                    head.redactions,
                )
                for head in heads
            ],
        ),
        "unread": preview(
            ("transcript", "line", "reason"),
            [
                (row.path, row.line, row.reason)
                for row in sorted(unread, key=lambda row: (row.expected, row.path))
            ],
        ),
        "places_passed_over": sum(len(head.problems) for head in heads),
        "secrets_replaced": sum(head.redactions for head in heads),
        "failed": failed,
        "made_now": sum(before.get(head.id) != head.digest for head in heads),
        "summary": f"{len(heads)} sessions, {failed} failed" + (" (unchanged)" if skipped else ""),
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


@dg.asset_check(asset=raw_sessions, description="No session stands twice.")
def unique_sessions(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> dg.AssetCheckResult:
    """Count ids over the weeks of the run."""
    tables = lake.open()
    seen: dict[str, str] = {}
    doubled = []
    for week in checked_weeks(context, tables, TABLE):
        for head in tables.read(TABLE, week, SessionHead):
            if head.id in seen:
                doubled.append((head.id, seen[head.id], week))
            seen[head.id] = week
    return dg.AssetCheckResult(
        passed=not doubled,
        metadata={"sessions": len(seen), "twice": preview(("session", "week", "week"), doubled)},
    )


@dg.asset_check(
    asset=raw_sessions,
    description=(
        "Nothing is lost: every transcript that was found stands in a session or is listed as "
        "unread with a reason."
    ),
)
def no_lost_sessions(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> dg.AssetCheckResult:
    """Compare what was found with what was written and what failed."""
    tables = lake.open()
    weeks = set(checked_weeks(context, tables, TABLE))
    found = sorted(
        (entry.week, entry.path)
        for entry in tables.read(SCAN_TABLE, SCAN_PARTITION, ScanEntry)
        if entry.week in weeks and is_reported(entry)
    )
    weeks &= {week for week, _ in found}
    written = {(week, path) for week in weeks for path in transcripts_of(tables, week)}
    unread = {
        (week, row.path): row.reason
        for week in weeks
        for row in tables.read(UNREAD, week, UnreadTranscript)
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


@dg.asset_check(
    asset=raw_sessions,
    description=(
        "Where a tool keeps its own total of a session's tokens, what was read comes to the same."
    ),
)
def tokens_as_reported(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> dg.AssetCheckResult:
    """Compare both over the weeks of the run."""
    tables = lake.open()
    reported = [
        head
        for head in tables.rows(TABLE, SessionHead, checked_weeks(context, tables, TABLE))
        if head.reported_usage is not UNSET
    ]
    wrong = [head for head in reported if head.reported_usage != head.usage]
    return dg.AssetCheckResult(
        passed=not wrong,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "sessions_with_a_total": len(reported),
            "disagreeing": len(wrong),
            "sessions": preview(
                ("session", "tool", "reported", "read"),
                [(head.id, head.tool, str(head.reported_usage), str(head.usage)) for head in wrong],
            ),
        },
    )


_NOT_READ = re.compile(
    r"not listed: |not fetched: (?:refused|stayed busy|cannot be reached|the server is away)"
)


@dg.asset_check(
    asset=raw_sessions,
    description=(
        "Every server that sessions are read from answered. If not, the run fails, after "
        "everything else was done; the next one tries again."
    ),
)
def servers_were_read(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> dg.AssetCheckResult:
    """Look for what a server refused.

    Raises:
        InputError: one refused, or did not answer.
    """
    tables = lake.open()
    rows: list[ScanEntry | UnreadTranscript] = [
        *tables.read(SCAN_TABLE, SCAN_PARTITION, ScanEntry),
        *tables.rows(UNREAD, UnreadTranscript, checked_weeks(context, tables, TABLE)),
    ]
    for row in rows:
        if _NOT_READ.match(row.reason):
            move = "Its settings are LANGFUSE_HOST and its keys, or DATABASE_URL; then run again."
            raise InputError(row.path, row.reason.rstrip("."), move)
    return dg.AssetCheckResult(passed=True)


def _captures(run: StageRun) -> Captures:
    """Return the captures of the run's weeks; a run searches once."""

    def found() -> Captures:
        heads = run.lake.rows(TABLE, SessionHead, run.context.partition_keys)
        return find_captures([*run.sessions.places(), *sorted(repository_folders(heads))])

    return run.once("captures", found)


def _snapshot_inputs(run: StageRun, week: str) -> str:
    return digest_of(ROWS, upstream(run.lake, "raw_sessions", week=week), _captures(run).digest)


def _snapshots(run: StageRun, week: str, _: object) -> Iterable[PromptSnapshotRow]:
    heads = run.lake.read("raw_sessions", week, SessionHead)
    return redact_rows([snapshot_row(head, _captures(run)) for head in heads], run.redactor)


@weekly_stage(
    PromptSnapshotRow,
    inputs=_snapshot_inputs,
    make=_snapshots,
    is_final=lambda run, week, rows: all(row.origin == "recorded" for row in rows),
    group_name="snapshots",
    code_version=versions.SNAPSHOTS,
    deps=[raw_sessions],
    description=(
        "The exact main prompt and subagent prompts of each session, and their fingerprint: "
        "as captured when the session began, else reconstructed from the repository's history "
        "and marked so, else unknown."
    ),
)
def prompt_snapshots(run: StageRun, week: str, filled: Filled[PromptSnapshotRow]) -> Metadata:
    """Find the prompts of a week's sessions."""
    rows = filled.rows
    problems = redact_rows(_captures(run).problems, run.redactor)
    return {
        "snapshots": preview(
            ("session", "origin", "fingerprint", "subagents", "from"),
            [
                (r.session_id, r.origin, r.prompt_fingerprint, len(r.subagents), r.note)
                for r in rows
            ],
        ),
        "captures_with_problems": preview(
            ("file", "reason"), [(each.path, each.reason) for each in problems]
        ),
        "summary": f"{sum(r.origin != 'unknown' for r in rows)} of {len(rows)} with prompts",
    }


def _metadata_inputs(run: StageRun, week: str) -> str:
    above = upstream(run.lake, "raw_sessions", "prompt_snapshots", week=week)
    return digest_of(ROWS, above, _captures(run).digest)


def _metadata(run: StageRun, week: str, _: object) -> Iterable[SessionMetadataRow]:
    prompts = {
        row.session_id: row for row in run.lake.read("prompt_snapshots", week, PromptSnapshotRow)
    }
    rows = [
        metadata_row(
            head,
            prompts.get(head.id) or PromptSnapshotRow(session_id=head.id, origin="unknown"),
            _captures(run),
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
    description=(
        "Tool, model, task, repository and prompt fingerprint of each session: what results are "
        "grouped and compared by."
    ),
)
def session_metadata(run: StageRun, week: str, filled: Filled[SessionMetadataRow]) -> Metadata:
    """File the circumstances of a week's sessions."""
    return {
        "metadata": preview(
            ("session", "task", "tool", "model", "prompts"),
            [(r.session_id, r.task, r.tool, r.model, r.prompt_fingerprint) for r in filled.rows],
        )
    }
