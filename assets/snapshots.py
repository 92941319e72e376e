"""Snapshots: the prompts in force and the circumstances of each session."""

from collections.abc import Iterable

from assets import versions
from assets.presentation import preview
from assets.sessions import raw_sessions
from assets.weekly import Filled, Metadata, StageRun, upstream, weekly_stage
from debrief.digests import digest_of
from debrief.sessions.model import SessionHead
from debrief.snapshots.captures import Captures, find_captures, repository_folders
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.snapshots.rows import ROWS, metadata_row, snapshot_row


def _captures(run: StageRun) -> Captures:
    """Return the captures of the run's weeks; a run searches once."""
    return run.once(
        "captures",
        lambda: find_captures(
            [
                *run.sessions.places(),
                *sorted(
                    repository_folders(
                        head
                        for week in run.context.partition_keys
                        for head in run.lake.read("raw_sessions", week, SessionHead)
                    )
                ),
            ]
        ),
    )


def _snapshot_inputs(run: StageRun, week: str) -> str:
    return digest_of(upstream(run.lake, "raw_sessions", week=week), _captures(run).digest)


def _snapshots(run: StageRun, week: str, _: object) -> Iterable[PromptSnapshotRow]:
    for head in run.lake.read("raw_sessions", week, SessionHead):
        yield snapshot_row(head, _captures(run), lambda text: run.redactor.redact(text).text)


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
    return {
        "snapshots": preview(
            ("session", "origin", "fingerprint", "subagents", "from"),
            [
                (r.session_id, r.origin, r.prompt_fingerprint, len(r.subagents), r.note)
                for r in rows
            ],
        ),
        "captures_with_problems": preview(
            ("file", "reason"), [(p.path, p.reason) for p in _captures(run).problems]
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
    for head in run.lake.read("raw_sessions", week, SessionHead):
        prompt = prompts.get(head.id) or PromptSnapshotRow(session_id=head.id, origin="unknown")
        yield metadata_row(head, prompt, _captures(run))


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
