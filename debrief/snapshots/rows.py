"""The rows that the snapshot stage files for each session."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from debrief.sessions.model import SessionHead
from debrief.snapshots.captures import Captures, repository_of
from debrief.snapshots.fingerprint import FINGERPRINT_LENGTH, prompt_digest
from debrief.snapshots.history import commit_at, licence_at, reconstruct
from debrief.snapshots.model import (
    UNKNOWN,
    PromptSnapshot,
    PromptSnapshotRow,
    SessionMetadata,
    SessionMetadataRow,
    SnapshotOrigin,
    SubagentPrompt,
)

ROWS = "3"
"""Raised when the same session gives another row of metadata."""

Redact = Callable[[str], str]
_COMMIT = re.compile(r"[0-9a-f]{7,64}\Z")


def snapshot_row(session: SessionHead, captures: Captures, redact: Redact) -> PromptSnapshotRow:
    """Return the prompts a session ran with: captured, else reconstructed, else unknown.

    The fingerprint is that of the exact texts; the texts are stored redacted, since they travel
    into training sets.
    """
    capture = captures.of(session)
    if capture is not None and capture.snapshot is not None:
        note = capture.folder
        stated = capture.metadata.prompt_fingerprint if capture.metadata else None
        if stated and stated != prompt_digest(capture.snapshot)[:FINGERPRINT_LENGTH]:
            note += f" (its metadata.json says {stated}, its prompts say otherwise)"
        return _row(session, "recorded", capture.snapshot, note, redact)
    if session.recorded and session.recorded.system:
        snapshot = PromptSnapshot(main=session.recorded.system)
        return _row(session, "recorded", snapshot, "the session's record", redact)
    folder, base_commit = _repository_of(session), session.base_commit or ""
    reconstructed = folder and reconstruct(
        folder, session.tool, session.branch, session.started, base_commit
    )
    if reconstructed:
        snapshot, commit = reconstructed
        return _row(session, "reconstructed", snapshot, f"commit {commit}", redact)
    reason = "no capture, and its repository is not at hand or holds no prompts"
    return PromptSnapshotRow(session_id=session.id, origin="unknown", note=reason)


def metadata_row(
    session: SessionHead, snapshot: PromptSnapshotRow, captures: Captures
) -> SessionMetadataRow:
    """Return a session's circumstances.

    The model is the one that answered most, in the provider's own words; a capture, which has its
    short name (``sonnet``), counts only where the transcript names none.
    """
    capture = captures.of(session)
    stated = capture.metadata if capture is not None else None
    folder = _repository_of(session)
    recorded = session.recorded or None
    if recorded is not None:
        commit = recorded.base_commit
    else:
        commit = _stated_commit(stated) or session.base_commit or ""
    if folder is not None and not commit:
        commit = commit_at(folder, session.branch, session.started)
    return SessionMetadataRow(
        session_id=session.id,
        tool=session.tool,
        model=session.models[0] if session.models else (stated.model if stated else None),
        recorded_at=_recorded_at(stated) or session.started,
        task=session.task,
        repository=session.repository,
        prompt_fingerprint=snapshot.prompt_fingerprint,
        prompt_digest=snapshot.prompt_digest,
        eval_fingerprint=(stated.eval_fingerprint if stated else None) or UNKNOWN,
        base_commit=commit,
        licence=licence_at(folder, commit) if folder is not None and commit else "",
        status=session.status or "",
        withheld=recorded.withheld if recorded is not None else "",
    )


def _row(
    session: SessionHead,
    origin: SnapshotOrigin,
    snapshot: PromptSnapshot,
    note: str,
    redact: Redact,
) -> PromptSnapshotRow:
    digest = prompt_digest(snapshot)
    return PromptSnapshotRow(
        session_id=session.id,
        origin=origin,
        main=redact(snapshot.main),
        subagents=tuple(
            SubagentPrompt(name, redact(text)) for name, text in sorted(snapshot.subagents.items())
        ),
        prompt_fingerprint=digest[:FINGERPRINT_LENGTH],
        prompt_digest=digest,
        note=note,
    )


def _stated_commit(metadata: SessionMetadata | None) -> str:
    """Return the commit that a capture names, as ``eval --export`` and a recorder do."""
    extra = (metadata.model_extra or {}) if metadata is not None else {}
    named = extra.get("base_commit") or extra.get("git_sha")
    return named if isinstance(named, str) and _COMMIT.match(named) else ""


def _recorded_at(metadata: SessionMetadata | None) -> datetime | None:
    moment = metadata.recorded_at if metadata is not None else None
    return moment.replace(tzinfo=UTC) if moment is not None and not moment.tzinfo else moment


def _repository_of(session: SessionHead) -> Path | None:
    """Return the session's folder, or its repository when the worktree has been removed."""
    folder = Path(session.cwd)
    if not folder.is_absolute():
        return None
    return folder if folder.is_dir() else repository_of(session.cwd)
