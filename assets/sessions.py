"""Assets for a week's sessions, read, redacted and normalised, and the prompts they ran with."""

from collections.abc import Iterable
from operator import attrgetter

import dagster as dg
from msgspec import UNSET

from assets import versions
from assets.partitions import not_listed
from assets.presentation import listed, preview, tallied
from assets.weekly import ShownWeeks, check, weekly_asset
from debrief.errors import InputError
from debrief.lake import Lake
from debrief.sessions.model import SessionHead, UnreadTranscript
from debrief.sessions.redaction import redact_rows
from debrief.sessions.scanning import ScanEntry, is_reported
from debrief.sessions.store import (
    SCAN_PARTITION,
    SCAN_TABLE,
    SESSIONS_TABLE,
    UNREAD_TABLE,
    transcripts_of,
)
from debrief.stages.run import StageRun
from debrief.stages.sessions import (
    PROMPT_SNAPSHOTS,
    SESSION_METADATA,
    read_sessions,
    scan_of,
)
from resources import LakeResource, ScopeResource, SessionStore


@weekly_asset(group_name="sessions", code_version=versions.SESSIONS)
def raw_sessions(
    context: dg.AssetExecutionContext,
    lake: LakeResource,
    sessions: SessionStore,
    scope: ScopeResource,
) -> dg.MaterializeResult[None]:
    """Every session that started in the week, from every configured source, in one normal form: one
    row a session, its turns, calls, results, tokens and code growth nested.

    Secrets are replaced by placeholders before anything is stored. A transcript that could not be
    read is listed with the reason in `unread_transcripts`.
    """
    tables = lake.open()
    run = StageRun(tables, context.partition_keys, sources=sessions.open(), scope=scope.open())
    weeks = ShownWeeks(context, tables)
    for week in weeks:
        before = {head.id: head.digest for head in tables.read(SESSIONS_TABLE, week, SessionHead)}
        skipped = read_sessions(run, week)
        if skipped is None:
            weeks.show_none(week)
            continue
        heads = list(tables.read(SESSIONS_TABLE, week, SessionHead))
        unread = list(tables.read(UNREAD_TABLE, week, UnreadTranscript))
        failed = sum(not row.expected for row in unread)
        weeks.show(
            week,
            len(heads),
            f"{len(heads)} sessions, {failed} failed" + (" (unchanged)" if skipped else ""),
            {
                "sessions": preview(
                    ("tool", "task", "sessions", "lines +/−", "output tokens", "secrets"),
                    [(*of, *sums) for of, sums in sorted(_sums(heads).items())],
                ),
                "unread": listed(
                    sorted((row for row in unread if not row.expected), key=attrgetter("path")),
                    *("transcript=path", "line", "reason"),
                ),
                "without_a_session": tallied(
                    (row for row in unread if row.expected), "source", "reason"
                ),
                "places_passed_over": sum(len(head.problems) for head in heads),
                "secrets_replaced": sum(head.redactions for head in heads),
                "failed": failed,
                "made_now": sum(before.get(head.id) != head.digest for head in heads),
            },
        )
    if older := not_listed(scan_of(run).weeks()):
        context.log.warning(older)
    return weeks.result()


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


@check(raw_sessions)
def unique_sessions(lake: Lake, weeks: list[str]) -> dg.AssetCheckResult:
    """No session stands twice."""
    seen: dict[str, str] = {}
    doubled = []
    for week in weeks:
        for head in lake.read(SESSIONS_TABLE, week, SessionHead):
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
        for row in lake.read(UNREAD_TABLE, week, UnreadTranscript)
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
    heads = lake.rows(SESSIONS_TABLE, SessionHead, weeks)
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
        *lake.rows(UNREAD_TABLE, UnreadTranscript, weeks),
    ]
    for row in rows:
        if row.cause == "server":
            move = "Its settings are LANGFUSE_HOST and its keys, or DATABASE_URL; then run again."
            raise InputError(row.path, row.reason.rstrip("."), move)
    return dg.AssetCheckResult(passed=True)


@weekly_asset(group_name="snapshots", code_version=versions.SNAPSHOTS, deps=[raw_sessions])
def prompt_snapshots(
    context: dg.AssetExecutionContext,
    lake: LakeResource,
    sessions: SessionStore,
    scope: ScopeResource,
) -> dg.MaterializeResult[None]:
    """The exact main prompt and subagent prompts of each session, and their fingerprint: as
    captured when the session began, else reconstructed from the repository's history and marked
    so, else unknown."""
    run = StageRun(lake.open(), context.partition_keys, sources=sessions.open(), scope=scope.open())
    weeks = ShownWeeks(context, run.lake)
    for week, filled in weeks.filled(PROMPT_SNAPSHOTS, run):
        rows = filled.rows
        problems = redact_rows(run.captures.problems, run.redactor)
        weeks.show_filled(
            week,
            filled,
            f"{sum(row.origin != 'unknown' for row in rows)} of {len(rows)} with prompts",
            {
                "snapshots": tallied(rows, "origin", "fingerprint=prompt_fingerprint", "from=note"),
                "captures_with_problems": listed(problems, "file=path", "reason"),
            },
        )
    return weeks.result()


@weekly_asset(
    group_name="snapshots", code_version=versions.METADATA, deps=[raw_sessions, prompt_snapshots]
)
def session_metadata(
    context: dg.AssetExecutionContext,
    lake: LakeResource,
    sessions: SessionStore,
    scope: ScopeResource,
) -> dg.MaterializeResult[None]:
    """Tool, model, task, repository and prompt fingerprint of each session: what results are
    grouped and compared by."""
    run = StageRun(lake.open(), context.partition_keys, sources=sessions.open(), scope=scope.open())
    weeks = ShownWeeks(context, run.lake)
    for week, filled in weeks.filled(SESSION_METADATA, run):
        columns = ("task", "tool", "model", "prompts=prompt_fingerprint")
        shown = {"metadata": tallied(filled.rows, *columns)}
        weeks.show_filled(week, filled, f"{len(filled.rows)} rows", shown)
    return weeks.result()
