"""Sessions of a week, the prompts they ran with, and what they are grouped by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from debrief.sessions.model import Session, SessionHead
from debrief.sessions.redaction import redact_rows
from debrief.sessions.scanning import Scan
from debrief.sessions.store import (
    NORMAL_FORM,
    SESSIONS_TABLE,
    SessionServer,
    scan_into,
    store_week,
)
from debrief.snapshots.captured_plans import CapturedPlans
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.snapshots.rows import ROWS, lasting_snapshot, metadata_row, snapshot_row
from debrief.stages.run import StageRun
from debrief.stages.shown import Shown, listed, tallied
from debrief.stages.stage import Stage

RAW_SESSIONS = Stage(
    table=SESSIONS_TABLE,
    doc="""Every session that started in the week, from every configured source, in one normal form:
one row a session, its turns, calls, results, tokens and code growth nested.

Secrets are replaced by placeholders before anything is stored. A transcript that could not be read
is listed with the reason in `unread_transcripts`.""",
    group="sessions",
    row_type=Session,
    version=lambda: NORMAL_FORM,
)


def read_sessions(run: StageRun, week: str) -> bool | None:
    """Read a week's sessions into the lake; return whether it had them as they are now.

    Returns:
        None where there is no session of the week.
    """
    scan = scan_of(run)
    if not scan.of_week(week):
        return None
    plans = run.once("plans", lambda: CapturedPlans(_places(run)))
    return store_week(
        run.lake,
        scan,
        week,
        run.redactor,
        _servers(run),
        plan_of=plans.of,
        again=run.scope.force,
    )


def scan_of(run: StageRun) -> Scan:
    """Return what a run's sources have; they are searched once."""
    return run.once("scan", lambda: scan_into(run.lake, _places(run), run.redactor, _servers(run)))


def _places(run: StageRun) -> Sequence[Path]:
    return run.once("places", run.sources.places)


def _servers(run: StageRun) -> tuple[SessionServer, ...]:
    return run.once("servers", run.sources.servers)


def _at_hand(run: StageRun, week: str) -> object:
    return run.captures.digest, run.clones.digest


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


def _snapshots_shown(run: StageRun, week: str, rows: Sequence[PromptSnapshotRow]) -> Shown:
    problems = redact_rows(run.captures.problems, run.redactor)
    return Shown(
        f"{sum(row.origin != 'unknown' for row in rows)} of {len(rows)} with prompts",
        {
            "snapshots": tallied(rows, "origin", "fingerprint=prompt_fingerprint", "from=note"),
            "captures_with_problems": listed(problems, "file=path", "reason"),
        },
    )


PROMPT_SNAPSHOTS = Stage(
    table="prompt_snapshots",
    doc="""The exact main prompt and subagent prompts of each session, and their fingerprint: as
captured when the session began, else reconstructed from the repository's history and marked so,
else unknown.""",
    group="snapshots",
    row_type=PromptSnapshotRow,
    version=lambda: ROWS,
    reads=(RAW_SESSIONS,),
    made_from=_at_hand,
    make=_snapshots,
    is_final=_all_recorded,
    shown=_snapshots_shown,
    page="/prompts",
)


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


def _metadata_shown(run: StageRun, week: str, rows: Sequence[SessionMetadataRow]) -> Shown:
    columns = ("task", "tool", "model", "prompts=prompt_fingerprint")
    return Shown(f"{len(rows)} rows", {"metadata": tallied(rows, *columns)})


SESSION_METADATA = Stage(
    table="session_metadata",
    doc="""Tool, model, task, repository and prompt fingerprint of each session: what results are
grouped and compared by.""",
    group="snapshots",
    row_type=SessionMetadataRow,
    version=lambda: ROWS,
    reads=(RAW_SESSIONS, PROMPT_SNAPSHOTS),
    made_from=_at_hand,
    make=_metadata,
    shown=_metadata_shown,
)
