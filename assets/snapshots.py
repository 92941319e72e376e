"""Snapshots: the prompts in force and the circumstances of each session."""

from collections.abc import Iterable

import dagster as dg

from assets import versions
from assets.presentation import preview
from assets.sessions import raw_sessions
from assets.weekly import Metadata, counted, each_week, fill, upstream, weekly_asset
from debrief.digests import digest_of
from debrief.lake import Lake
from debrief.sessions.heads import SessionHead
from debrief.snapshots.captures import Captures, find_captures, repository_folders
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.snapshots.rows import ROWS, metadata_row, snapshot_row
from resources.lake import LakeResource
from resources.sessions import SessionStore

TABLE, METADATA = "prompt_snapshots", "session_metadata"


@weekly_asset(
    group_name="snapshots",
    code_version=versions.SNAPSHOTS,
    deps=[raw_sessions],
    description=(
        "The exact main prompt and subagent prompts of each session, and their fingerprint: "
        "as captured when the session began, else reconstructed from the repository's history "
        "and marked so, else unknown."
    ),
)
def prompt_snapshots(
    context: dg.AssetExecutionContext, lake: LakeResource, sessions: SessionStore
) -> dg.MaterializeResult[None]:
    """Find each session's prompts."""
    tables = lake.open()
    redactor = sessions.redactor()
    captures = _captures(tables, sessions, context.partition_keys)

    def one_week(week: str) -> Metadata:
        rows = fill(
            tables,
            TABLE,
            week,
            PromptSnapshotRow,
            digest_of(upstream(tables, "raw_sessions", week=week), captures.digest),
            lambda _: [
                snapshot_row(head, captures, lambda text: redactor.redact(text).text)
                for head in tables.read("raw_sessions", week, SessionHead)
            ],
            done=lambda row: row.origin == "recorded",
        ).rows
        return {
            **counted(rows),
            "snapshots": preview(
                ("session", "origin", "fingerprint", "subagents", "from"),
                [
                    (r.session_id, r.origin, r.prompt_fingerprint, len(r.subagents), r.note)
                    for r in rows
                ],
            ),
            "captures_with_problems": preview(
                ("file", "reason"), [(p.path, p.reason) for p in captures.problems]
            ),
            "told": f"{sum(r.origin != 'unknown' for r in rows)} of {len(rows)} with prompts",
        }

    return each_week(context, tables, one_week)


@weekly_asset(
    group_name="snapshots",
    code_version=versions.METADATA,
    deps=[raw_sessions, prompt_snapshots],
    description=(
        "Tool, model, task, repository and prompt fingerprint of each session: what results are "
        "grouped and compared by."
    ),
)
def session_metadata(
    context: dg.AssetExecutionContext, lake: LakeResource, sessions: SessionStore
) -> dg.MaterializeResult[None]:
    """File each session's circumstances."""
    tables = lake.open()
    captures = _captures(tables, sessions, context.partition_keys)

    def one_week(week: str) -> Metadata:
        def make(_: object) -> Iterable[SessionMetadataRow]:
            prompts = {r.session_id: r for r in tables.read(TABLE, week, PromptSnapshotRow)}
            for head in tables.read("raw_sessions", week, SessionHead):
                prompt = prompts.get(head.id) or PromptSnapshotRow(
                    session_id=head.id, origin="unknown"
                )
                yield metadata_row(head, prompt, captures)

        above = upstream(tables, "raw_sessions", TABLE, week=week)
        made_from = digest_of(ROWS, above, captures.digest)
        rows = fill(tables, METADATA, week, SessionMetadataRow, made_from, make).rows
        return {
            **counted(rows),
            "metadata": preview(
                ("session", "task", "tool", "model", "prompts"),
                [(r.session_id, r.task, r.tool, r.model, r.prompt_fingerprint) for r in rows],
            ),
        }

    return each_week(context, tables, one_week)


def _captures(lake: Lake, sessions: SessionStore, weeks: Iterable[str]) -> Captures:
    heads = [h for week in weeks for h in lake.read("raw_sessions", week, SessionHead)]
    return find_captures([*sessions.places(), *sorted(repository_folders(heads))])
