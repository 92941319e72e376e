"""Build the snapshot rows of a session: which prompts it ran with, and in what circumstances.

What git holds is what was committed before the session began: close to what was in force, and not
the same, since uncommitted edits and the user's own settings are not in it. Prompts from there are
therefore always marked ``reconstructed``, with the commit and how it is known.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from msgspec import UNSET

from debrief.errors import InputError
from debrief.git import find_commit, git
from debrief.sessions.model import Session, SessionHead
from debrief.snapshots.capture import (
    AGENTS_FOLDER,
    CLAUDE_CODE,
    DROID,
    find_repository,
    prompt_files,
    subagent_names,
)
from debrief.snapshots.captures import Captures, repository_of
from debrief.snapshots.clones import NO_CLONES, Clones
from debrief.snapshots.fingerprint import FINGERPRINT_LENGTH, prompt_digest
from debrief.snapshots.licences import licence_at
from debrief.snapshots.model import (
    UNKNOWN,
    CommitOrigin,
    PromptSnapshot,
    PromptSnapshotRow,
    SessionMetadata,
    SessionMetadataRow,
    SnapshotOrigin,
    SubagentPrompt,
)

ROWS = "6"
"""Raised when the same session gives other rows."""

_COMMIT = re.compile(r"[0-9a-f]{7,64}\Z")


class CommitAt(NamedTuple):
    """A commit, and how it is known."""

    commit: str
    origin: CommitOrigin


class _Found(NamedTuple):
    """A session's prompts and where they are from."""

    origin: SnapshotOrigin
    snapshot: PromptSnapshot | None
    note: str
    at: CommitAt = CommitAt("", "")
    """Of what was reconstructed."""


def snapshot_row(
    session: SessionHead, captures: Captures, clones: Clones = NO_CLONES
) -> PromptSnapshotRow:
    """Return the prompts a session ran with: captured, else as its transcript holds them, else
    reconstructed, else unknown.

    They are the exact texts, secrets included, to be redacted before they are stored.

    Args:
        session: whose prompts.
        captures: those at hand.
        clones: of repositories, for sessions whose own folder is not here.
    """
    found = _prompts_of(session, captures, clones)
    if found.snapshot is None:
        return PromptSnapshotRow(session_id=session.id, origin=found.origin, note=found.note)
    digest = prompt_digest(found.snapshot)
    return PromptSnapshotRow(
        session_id=session.id,
        origin=found.origin,
        main=found.snapshot.main,
        subagents=tuple(
            SubagentPrompt(name, text) for name, text in sorted(found.snapshot.subagents.items())
        ),
        prompt_fingerprint=digest[:FINGERPRINT_LENGTH],
        prompt_digest=digest,
        note=found.note,
        commit=found.at.commit,
        commit_origin=found.at.origin,
    )


def _prompts_of(session: SessionHead, captures: Captures, clones: Clones) -> _Found:
    """Return a session's prompts and where they are from."""
    capture = captures.of(session)
    if capture is not None and capture.snapshot is not None:
        note = capture.folder
        stated = capture.metadata.prompt_fingerprint if capture.metadata else None
        if stated and stated != prompt_digest(capture.snapshot)[:FINGERPRINT_LENGTH]:
            note += f" (its metadata.json says {stated}, its prompts say otherwise)"
        return _Found("recorded", capture.snapshot, note)
    if session.recorded and session.recorded.system:
        snapshot = PromptSnapshot(main=session.recorded.system)
        return _Found("recorded", snapshot, "the session's record")
    folder = repository_at_hand(session, clones)
    found = folder and reconstruct(
        folder, session.tool, session.branch, session.started, session.base_commit or ""
    )
    if session.instructions is not UNSET:
        main = _given_main(session)
        subagents = found[0].subagents if found else {}
        note = "the transcript" if main else "the transcript, which shows that there was none"
        return _Found("recorded", PromptSnapshot(main=main, subagents=subagents), note)
    names = ", ".join(prompt_files(session.tool).names)
    if folder and found:
        held = f", which holds none of {names}" * (not found[0].main)
        of = f" of the clone {folder.name}" if folder != _own_repository(session) else ""
        note = f"commit {found[1].commit}{of}{held}"
        return _Found("reconstructed", found[0], note, found[1])
    if not names:
        reason = f"which prompt files {session.tool} reads is not known"
    elif folder is None:
        reason = "none in its transcript, and its repository is not at hand"
    else:
        reason = "none in its transcript, and its folder has no history of that time"
    return _Found("unknown", None, f"no capture; {reason}")


def _given_main(session: SessionHead) -> str:
    """Return the repository's own prompt files as the transcript holds them; empty for none.

    Programs trim a file's end before they send it, so one line end is put back: the fingerprint is
    that of the file then.
    """
    given = (
        instruction
        for instruction in session.instructions or ()
        if _is_own(instruction.path, session.cwd)
    )
    main = "\n\n".join(filter(None, (instructions.text.strip("\n") for instructions in given)))
    return f"{main}\n" if main else ""


def _is_own(path: str, cwd: str) -> bool:
    """Return whether a prompt file is of the repository, not of the person's home."""
    if not (path.startswith("/") and cwd.startswith("/")):
        return True
    folder, here = PurePosixPath(path).parent, PurePosixPath(cwd)
    folder = folder.parent if folder.name in _PROMPT_FOLDERS else folder
    return folder.is_relative_to(here) or here.is_relative_to(folder)


def metadata_row(
    session: SessionHead,
    snapshot: PromptSnapshotRow,
    captures: Captures,
    clones: Clones = NO_CLONES,
    before: SessionMetadataRow | None = None,
) -> SessionMetadataRow:
    """Return a session's circumstances.

    The model is the one that answered most, in the provider's own words; a capture, which has its
    short name (``sonnet``), counts only where the transcript names none.

    Args:
        session: whose circumstances.
        snapshot: its prompts.
        captures: those at hand.
        clones: of repositories, for sessions whose own folder is not here.
        before: the stored row, of which the licence stays where no repository is at hand any more.
    """
    capture = captures.of(session)
    stated = capture.metadata if capture is not None else None
    folder = repository_at_hand(session, clones)
    recorded = session.recorded
    known: dict[CommitOrigin, str] = {
        "recorder": recorded.base_commit if recorded else "",
        "capture": _stated_commit(stated),
        "transcript": session.base_commit or "",
    }
    if snapshot.commit and not any(known.values()):
        known[snapshot.commit_origin] = snapshot.commit
    if folder is not None and not any(known.values()):
        found = commit_at(folder, session.branch, session.started)
        known[found.origin] = found.commit
    origin, commit = next((pair for pair in known.items() if pair[1]), ("", ""))
    licence = licence_at(folder, commit) if folder is not None and commit else ""
    if folder is None and before is not None and snapshot.commit == before.base_commit == commit:
        licence = before.licence
    return SessionMetadataRow(
        session_id=session.id,
        tool=session.tool,
        model=session.models[0] if session.models else (stated.model if stated else None),
        recorded_at=(capture and capture.recorded_at) or session.started,
        task=session.task,
        repository=session.repository,
        prompt_fingerprint=snapshot.prompt_fingerprint,
        prompt_digest=snapshot.prompt_digest,
        eval_fingerprint=(stated.eval_fingerprint if stated else None) or UNKNOWN,
        base_commit=commit,
        base_commit_origin=origin,
        licence=licence,
        status=session.status or "",
        withheld=recorded.withheld if recorded else "",
    )


def lasting_snapshot(row: PromptSnapshotRow, before: PromptSnapshotRow | None) -> PromptSnapshotRow:
    """Return a session's prompts as they were reconstructed before, where they cannot be any more:
    a run without the clone of another does not take back what that one showed."""
    if row.origin == "unknown" and before is not None and before.origin == "reconstructed":
        return before
    return row


def _stated_commit(metadata: SessionMetadata | None) -> str:
    """Return the commit that a capture names, as ``eval --export`` and a recorder do."""
    extra = (metadata.model_extra or {}) if metadata is not None else {}
    named = extra.get("base_commit") or extra.get("git_sha")
    return named if isinstance(named, str) and _COMMIT.match(named) else ""


def repository_at_hand(session: Session | SessionHead, clones: Clones) -> Path | None:
    """Return the session's own repository where it is here, else a clone of it."""
    return _own_repository(session) or clones.of(session)


def _own_repository(session: Session | SessionHead) -> Path | None:
    """Return the session's folder, or its repository when the worktree has been removed."""
    folder = Path(session.cwd)
    if not folder.is_absolute():
        return None
    own = folder if folder.is_dir() else repository_of(session.cwd)
    return own if own is not None and find_repository(own) is not None else None


_PROMPT_FOLDERS = (".claude", ".github")
_SUBAGENT_FOLDERS = {CLAUDE_CODE: AGENTS_FOLDER, DROID: ".factory/droids"}


def reconstruct(
    repository: Path, tool: str, branch: str, moment: datetime, base_commit: str = ""
) -> tuple[PromptSnapshot, CommitAt] | None:
    """Return the prompts at the session's commit, and that; None without a commit.

    A commit without prompt files has the empty prompt: nothing was put before the first one.

    Args:
        repository: a folder inside the repository's work tree.
        tool: which tool's files to look for.
        branch: the session's branch; HEAD is taken when it is gone.
        moment: when the session began.
        base_commit: where the session says it began; without one that the repository has, the
            last commit before ``moment`` counts.
    """
    if base_commit and _find_commit(repository, base_commit):
        at = CommitAt(base_commit, "transcript")
    else:
        at = commit_at(repository, branch, moment)
    snapshot = _snapshot_at(repository, tool, at.commit) if at.commit else None
    return (snapshot, at) if snapshot is not None else None


@lru_cache(maxsize=1024)
def commit_at(repository: Path, branch: str, moment: datetime) -> CommitAt:
    """Return the last commit of a branch before a moment; an empty one when git has none.

    What was merged later does not count, whenever it was committed.

    Args:
        repository: a folder inside the repository's work tree, or a bare one.
        branch: as it is here, else as it was fetched last; HEAD is taken when it is gone.
        moment: with a time zone.
    """
    before = f"--before={int(moment.timestamp())}"
    revisions: list[tuple[str, CommitOrigin]] = [("HEAD", "head")]
    if branch and not branch.startswith("-"):
        names = (branch, f"refs/remotes/origin/{branch}")
        revisions = [*((name, "branch") for name in names), *revisions]
    for revision, origin in revisions:
        with suppress(InputError):
            found = git(
                repository, "rev-list", "-1", "--first-parent", before, revision, "--"
            ).strip()
            if found:
                return CommitAt(found.decode("ascii"), origin)
    return CommitAt("", "")


_find_commit = lru_cache(maxsize=1024)(find_commit)


@lru_cache(maxsize=256)
def _snapshot_at(repository: Path, tool: str, commit: str) -> PromptSnapshot | None:
    agents = f"{_SUBAGENT_FOLDERS[tool]}/" if tool in _SUBAGENT_FOLDERS else ""
    prompts = prompt_files(tool)
    paths = [*prompts.names, *filter(None, [agents])]
    if not paths:
        return None
    try:
        listing = git(repository, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths)
    except InputError:
        return None
    blobs: dict[str, str] = {}
    for entry in listing.split(b"\0")[:-1]:
        about, _, path = entry.partition(b"\t")
        mode, kind, blob = about.decode("ascii").split()
        if kind == "blob" and mode != "120000":
            blobs[path.decode("utf-8", "replace")] = blob
    main = prompts.text(
        {name: _blob(repository, blobs[name]) for name in prompts.names if name in blobs}
    )
    files = {
        path.removeprefix(agents): blob
        for path, blob in blobs.items()
        if agents and path.startswith(agents) and path.endswith(".md")
    }
    names = subagent_names(files)
    return PromptSnapshot(
        main=main or "",
        subagents={names[path]: _blob(repository, blob) for path, blob in files.items()},
    )


def _blob(repository: Path, name: str) -> str:
    return git(repository, "cat-file", "blob", name).decode("utf-8", "replace")
