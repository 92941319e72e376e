"""Sessions of a week, their prompts and circumstances: when they are current, and how made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.sessions.model import SessionHead
from debrief.sessions.redaction import redact_rows
from debrief.sessions.store import SESSIONS_TABLE, read_from, scan_into, store_week
from debrief.snapshots.captured_plans import CapturedPlans
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.snapshots.rows import ROWS, lasting_snapshot, metadata_row, snapshot_row
from debrief.stages.configuration import SessionSources
from debrief.stages.run import StageRun
from debrief.stages.table import TableStage, upstream


def read_sessions(run: StageRun, week: str) -> bool | None:
    """Read a week's sessions into the lake; return whether it had them as they are now.

    Returns:
        None where there is no session of the week.
    """
    servers = run.once("servers", run.sources.servers)
    places = run.once("places", run.sources.places)
    scan = run.once("scan", lambda: scan_into(run.lake, places, run.redactor, servers))
    if not scan.of_week(week):
        return None
    plans = run.once("plans", lambda: CapturedPlans(places))
    return store_week(
        run.lake, scan, week, run.redactor, servers, plan_of=plans.of, again=run.scope.force
    )


def is_read(lake: Lake, sources: SessionSources, weeks: Sequence[str]) -> bool:
    """Return whether the lake holds the sessions of some weeks as they are now."""
    redactor = sources.redactor()
    scan = scan_into(lake, sources.places(), redactor, sources.servers())
    return all(
        (stamp := lake.stamp(SESSIONS_TABLE, week)) is not None
        and stamp.inputs == read_from(scan, week, redactor)
        for week in weeks
    )


def _snapshot_inputs(run: StageRun, week: str) -> str:
    above = upstream(run.lake, "raw_sessions", week=week)
    return digest_of(ROWS, above, run.captures.digest, run.clones.digest)


def _snapshots(
    run: StageRun, week: str, stored: Sequence[PromptSnapshotRow]
) -> Iterable[PromptSnapshotRow]:
    heads = run.lake.read("raw_sessions", week, SessionHead)
    rows = [snapshot_row(head, run.captures, run.clones) for head in heads]
    before = {row.session_id: row for row in stored}
    return [
        lasting_snapshot(row, before.get(row.session_id)) for row in redact_rows(rows, run.redactor)
    ]


def _all_recorded(run: StageRun, week: str, rows: Sequence[PromptSnapshotRow]) -> bool:
    """Return whether no snapshot may yet be found in a repository, or found better."""
    return all(row.origin == "recorded" for row in rows)


PROMPT_SNAPSHOTS = TableStage(
    table="prompt_snapshots",
    row_type=PromptSnapshotRow,
    inputs=_snapshot_inputs,
    make=_snapshots,
    is_final=_all_recorded,
)


def _metadata_inputs(run: StageRun, week: str) -> str:
    above = upstream(run.lake, "raw_sessions", "prompt_snapshots", week=week)
    return digest_of(ROWS, above, run.captures.digest, run.clones.digest)


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
            run.captures,
            run.clones,
            before.get(head.id),
        )
        for head in run.lake.read("raw_sessions", week, SessionHead)
    ]
    return redact_rows(rows, run.redactor)


SESSION_METADATA = TableStage(
    table="session_metadata",
    row_type=SessionMetadataRow,
    inputs=_metadata_inputs,
    make=_metadata,
)
