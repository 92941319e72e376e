"""Sessions: every transcript of a week, read, redacted and normalised."""

import dagster as dg

from assets import versions
from assets.presentation import preview
from assets.scope import scope
from assets.weekly import Metadata, checked, counted, each_week, weekly_asset
from debrief.lake import Lake
from debrief.sessions.heads import SessionHead
from debrief.sessions.model import UnreadTranscript
from debrief.sessions.scanning import ScanEntry, is_reported
from debrief.sessions.store import (
    SCAN_PARTITION,
    SCAN_TABLE,
    scan_into,
    store_week,
    transcripts_of,
)
from resources.lake import LakeResource
from resources.sessions import SessionStore

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
def raw_sessions(
    context: dg.AssetExecutionContext, lake: LakeResource, sessions: SessionStore
) -> dg.MaterializeResult[None]:
    """Read the weeks' transcripts."""
    tables = lake.open()
    server = sessions.server()
    scan = scan_into(tables, sessions.places(), server=server)
    redactor = sessions.redactor()

    def one_week(week: str) -> Metadata:
        before = {head.id: head.digest for head in tables.read(TABLE, week, SessionHead)}
        skipped = store_week(tables, scan, week, redactor, server, again=scope().again)
        return _shown(tables, week, skipped, before)

    return each_week(context, tables, one_week)


def _shown(lake: Lake, week: str, skipped: bool, before: dict[str, str]) -> Metadata:
    heads = list(lake.read(TABLE, week, SessionHead))
    unread = list(lake.read(UNREAD, week, UnreadTranscript))
    failed = [row for row in unread if not row.expected]
    told = f"{len(heads)} sessions, {len(failed)} failed"
    return {
        **counted(heads),
        "sessions": preview(
            ("session", "started", "tool", "task", "lines +/−", "output tokens", "secrets"),
            [
                (
                    head.id,
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
        "failed": len(failed),
        "made_now": sum(before.get(head.id) != head.digest for head in heads),
        "told": told + (" (unchanged)" if skipped else ""),
    }


@dg.asset_check(asset=raw_sessions, description="No session stands twice.")
def unique_sessions(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> dg.AssetCheckResult:
    """Count ids over the weeks of the run."""
    tables = lake.open()
    seen: dict[str, str] = {}
    doubled = []
    for week in checked(context, tables, TABLE):
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
    found = written = failed = 0
    lost: list[tuple[str, str]] = []
    entries = [e for e in tables.read(SCAN_TABLE, SCAN_PARTITION, ScanEntry) if is_reported(e)]
    for week in checked(context, tables, TABLE):
        accounted = transcripts_of(tables, week)
        unread = {row.path: row for row in tables.read(UNREAD, week, UnreadTranscript)}
        for entry in entries:
            if entry.week != week:
                continue
            found += 1
            written += entry.path in accounted
            failed += entry.path in unread
            reason = unread[entry.path].reason if entry.path in unread else ""
            if entry.path not in accounted and not reason:
                lost.append((week, entry.path))
    return dg.AssetCheckResult(
        passed=not lost,
        metadata={
            "found": found,
            "in_a_session": written,
            "unread_with_a_reason": failed,
            "lost": preview(("week", "transcript"), lost),
        },
    )
