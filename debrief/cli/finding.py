"""Find one session by what a person typed: an id, the beginning of one, or a transcript's path."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from debrief.cli.shared import console
from debrief.errors import InputError

if TYPE_CHECKING:
    from debrief.lake import Lake
    from debrief.langfuse.client import LangfuseClient
    from debrief.redaction.redactor import Redactor
    from debrief.sessions.model import Session
    from debrief.settings import Settings

SESSION_HELP = (
    "An id in the lake or among this machine's transcripts (its beginning will do) "
    "or on the Langfuse server, or a transcript"
)


def made_whole(redactor: Redactor) -> Callable[[Session], Session]:
    """Return what gives a session its captured plan and takes its secrets out."""
    from debrief.sessions.redaction import redact_session
    from debrief.sessions.store import with_plan
    from debrief.snapshots.captured_plans import CapturedPlans

    plans = CapturedPlans()
    return lambda session: redact_session(with_plan(session, plans.of), redactor)


def find_session(
    session: str,
    settings: Settings,
    lake: Lake,
    redact: Callable[[Session], Session],
    langfuse: str = "",
) -> Session:
    """Return the session that is meant, redacted.

    Args:
        session: what was typed.
        settings: where else to look.
        lake: looked in first, unless it is a file's name.
        redact: takes the secrets out of what comes from elsewhere.
        langfuse: an id on the Langfuse server, instead of ``session``.

    Raises:
        InputError: there is none, or there are several.
    """
    from debrief.langfuse.client import langfuse_for, langfuse_from_settings
    from debrief.langfuse.fetcher import StillArrivingError
    from debrief.sessions.sources import default_folders
    from debrief.sessions.store import session_in_file, session_in_folders, session_in_lake

    if langfuse:
        return _fetched(langfuse, langfuse_for("--langfuse", settings), redact)
    if Path(session).is_file():
        return session_in_file(Path(session), redact)
    one = session_in_lake(lake, session)
    if one is None:
        folders = [Path(session).expanduser() for session in settings.sessions]
        folders = folders or default_folders(Path.home(), os.environ)
        one = session_in_folders(folders, session, redact)
    if one is not None:
        return one
    where = f"in {lake.url} or among this machine's transcripts"
    try:
        client = langfuse_from_settings(settings)
        if client is not None:
            where += f" or on {client.host}"
            return _fetched(session, client, redact)
    except StillArrivingError:
        raise
    except InputError:
        pass
    raise InputError(
        session,
        f"is no transcript, and no session {where}",
        "debrief sources lists where they are looked for; on a Langfuse server they are, too, "
        "once LANGFUSE_HOST and its keys are set.",
    )


def _fetched(session: str, client: LangfuseClient, redact: Callable[[Session], Session]) -> Session:
    from debrief.langfuse.fetcher import SessionFetcher

    with client:
        console(stderr=True).print(f"Looking for {session} on {client.host} …")
        return SessionFetcher(client, redact).fetch_session(session)
