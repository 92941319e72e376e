"""Asset of a week's sessions, read, redacted and normalised, and its checks."""

from collections.abc import Iterable
from operator import attrgetter

import dagster as dg
from msgspec import UNSET

from assets.checks import check
from assets.partitions import not_listed
from assets.presentation import metadata_of, table
from assets.stages import StageView, asset_of, weeks_of
from debrief.errors import InputError
from debrief.lake import Lake
from debrief.sessions.model import SessionHead, UnreadTranscript
from debrief.sessions.scanning import ScanEntry, is_reported
from debrief.sessions.store import (
    SCAN_PARTITION,
    SCAN_TABLE,
    SESSIONS_TABLE,
    UNREAD_TABLE,
    transcripts_of,
)
from debrief.stages.sessions import RAW_SESSIONS, read_sessions, scan_of
from debrief.stages.shown import ShownTable, listed, tallied
from resources import Stages


@asset_of(RAW_SESSIONS)
def raw_sessions(context: dg.AssetExecutionContext, stages: Stages) -> dg.MaterializeResult[None]:
    """Read the sessions of a run's weeks into the lake."""
    run = stages.run(context, weeks_of(context))
    lake, view = run.lake, StageView(context, run.lake, RAW_SESSIONS)
    for week in run.weeks:
        before = {head.id: head.digest for head in lake.read(SESSIONS_TABLE, week, SessionHead)}
        skipped = read_sessions(run, week)
        if skipped is None:
            continue
        heads = list(lake.read(SESSIONS_TABLE, week, SessionHead))
        unread = list(lake.read(UNREAD_TABLE, week, UnreadTranscript))
        failed = sorted((row for row in unread if not row.expected), key=attrgetter("path"))
        columns = ("tool", "task", "sessions", "lines +/−", "output tokens", "secrets")
        view.show(
            week,
            len(heads),
            f"{len(heads)} sessions, {len(failed)} failed" + (" (unchanged)" if skipped else ""),
            metadata_of(
                {
                    "sessions": ShownTable(columns, [(*of, *sums) for of, sums in _sums(heads)]),
                    "unread": listed(failed, "transcript=path", "line", "reason"),
                    "without_a_session": tallied(
                        (row for row in unread if row.expected), "source", "reason"
                    ),
                    "places_passed_over": sum(len(head.problems) for head in heads),
                    "secrets_replaced": sum(head.redactions for head in heads),
                    "failed": len(failed),
                    "made_now": sum(before.get(head.id) != head.digest for head in heads),
                }
            ),
        )
    if older := not_listed(scan_of(run).weeks()):
        context.log.warning(older)
    return view.result()


def _sums(heads: Iterable[SessionHead]) -> list[tuple[tuple[str, str], tuple[object, ...]]]:
    """Return the sessions, lines, output tokens and secrets of each tool and task."""
    groups: dict[tuple[str, str], list[SessionHead]] = {}
    for head in heads:
        groups.setdefault((head.tool, head.task), []).append(head)
    return [
        (
            of,
            (
                len(own),
                f"+{sum(head.lines_added for head in own)} "
                f"−{sum(head.lines_removed for head in own)}",
                sum(head.usage.output for head in own),
                sum(head.redactions for head in own),
            ),
        )
        for of, own in sorted(groups.items())
    ]


@check(RAW_SESSIONS)
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
        metadata={
            "sessions": len(seen),
            "twice": table(ShownTable(("session", "week", "other week"), doubled)),
        },
    )


@check(RAW_SESSIONS)
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
            "lost": table(ShownTable(("week", "transcript"), lost)),
        },
    )


@check(RAW_SESSIONS)
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
            "sessions": table(
                listed(wrong, "session=id", "tool", "reported=reported_usage", "read=usage")
            ),
        },
    )


@check(RAW_SESSIONS)
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
