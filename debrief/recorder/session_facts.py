"""What is filed of a session, put together for its record."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from debrief import __version__
from debrief.recorder.facts import RanCommand, SessionFacts
from debrief.recorder.state import OUTPUT_KEPT, CommandEnd, FiledCommand, SessionFolder

RECORDER = f"debrief {__version__}"
_INTERRUPTED = "(the recorder was ended while this ran)"


def facts_of(
    session: SessionFolder,
    stopped_at: datetime,
    summary: str | None = None,
    ignore: Sequence[str] = (),
) -> SessionFacts:
    """Return what a session knows of itself when it is stopped.

    Args:
        session: its files.
        stopped_at: when that is.
        summary: the person's own closing words.
        ignore: globs beside those that it was started with.

    Raises:
        InputError: its files cannot be read.
    """
    started = session.started()
    return SessionFacts(
        session_id=started.id,
        task_id=started.task_id,
        recorder=RECORDER,
        system=started.system,
        prompt=started.prompt,
        contents=started.contents,
        ignore=(*started.ignore, *ignore),
        repo_name=started.repo_name,
        repo_remote=started.repo_remote,
        branch=started.branch,
        base_ref=started.base_ref,
        started_at=started.started_at,
        stopped_at=max(stopped_at, started.started_at),
        commands=tuple(map(ran, session.commands())),
        summary=summary,
    )


def ran(filed: FiledCommand) -> RanCommand:
    """Return a command as its record tells of it."""
    start, end = filed.start, filed.end
    if end is None:
        lasted = (filed.seen_at - start.started_at).total_seconds()
        end = CommandEnd(
            exit_code=None,
            ending=_INTERRUPTED,
            duration_ms=round(lasted * 1000),
            cut=len(filed.output) >= OUTPUT_KEPT,
            tree=None,
        )
    return RanCommand(
        cmd=start.cmd,
        args=start.args,
        cwd=start.cwd,
        output=filed.output.decode("utf-8", "replace").replace("\0", "\ufffd"),
        cut=end.cut,
        exit_code=end.exit_code,
        ending=end.ending,
        duration_ms=end.duration_ms,
        tree=end.tree,
    )
