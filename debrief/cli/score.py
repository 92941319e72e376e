"""``debrief score``: what a session is worth, and why."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from debrief.cli.console import console
from debrief.cli.scorecard import (
    as_builtins,
    print_many,
    print_movements,
    print_receipts,
    print_scores,
)
from debrief.errors import ConfigurationError, DebriefError, InputError
from debrief.evaluators import make_evaluators
from debrief.lake import Lake
from debrief.langfuse.model import ScoreReceipt
from debrief.redaction.redactor import Redactor, key_of
from debrief.redaction.sessions import redact_session
from debrief.scoring.by_hand import AGENT, HandScorer, write_prompts
from debrief.scoring.chunking import TARGET
from debrief.scoring.invariance import chunk_invariance
from debrief.scoring.model import ChunkScorer, SessionScores
from debrief.scoring.scorer import score_session
from debrief.sessions.lookup import (
    session_in_file,
    session_in_folders,
    session_in_lake,
    sessions_in_folder,
    sessions_of_lake,
)
from debrief.sessions.model import Session
from debrief.sessions.sources import default_folders
from debrief.settings import Settings, load_settings
from debrief.weeks import week_of

UNANSWERED = 3
"""Exit code while prompts still need an answer."""
RECEIPTS_TABLE = "langfuse_scores"


class Wanted(Struct, frozen=True, kw_only=True):
    """What is to be scored, by whom, and what becomes of it."""

    session: str = ""
    """An id (or its beginning) in the lake or among the machine's transcripts, a transcript, or a
    folder of them."""
    langfuse: str = ""
    """The id of a session on the configured server."""
    everything: bool = False
    """Every session of the lake."""
    offline: bool = False
    model: str = ""
    store: bool = False
    invariance: bool = False
    as_json: bool = False
    answers: str = ""
    """A folder in which a coding agent answers the prompts."""
    lake: str = ""


def score(wanted: Wanted) -> int:
    """Score what is wanted and print it; return the exit code.

    Raises:
        DebriefError: the session is not found, or something that is needed is not configured.
    """
    named = [bool(wanted.session), bool(wanted.langfuse), wanted.everything]
    if sum(named) != 1:
        raise InputError("debrief score", "needs one of SESSION, --langfuse ID and --all")
    if wanted.offline and wanted.model:
        raise ConfigurationError("--offline and --model", "exclude each other", "Give one of them.")
    settings = load_settings()
    redactor = Redactor(key_of(settings))

    def redact(session: Session) -> Session:
        return redact_session(session, redactor)

    lake = Lake(wanted.lake or settings.lake)
    many = sessions_of_lake(lake) if wanted.everything else None
    if wanted.session and Path(wanted.session).is_dir():
        many = sessions_in_folder(Path(wanted.session), redact)
    if many is not None:
        if wanted.store or wanted.answers:
            raise InputError(
                "--store and --answers",
                "take one session",
                "For many sessions: debrief backfill --stage langfuse_scores, or debrief run.",
            )
        return _score_many(many, wanted, _scorer(wanted, settings))
    session = _found(wanted, settings, lake, redact)
    if wanted.answers and _asks_for_answers(session, Path(wanted.answers)):
        return UNANSWERED
    scorer = _scorer(wanted, settings)
    if wanted.invariance:
        return _show_invariance([session], wanted, scorer)
    row = score_session(session, scorer)
    if row.status == "failed":
        raise DebriefError(session.id, f"could not be scored: {row.failure}".rstrip("."))
    receipts = _store(row, scorer, settings, lake, redactor) if wanted.store else []
    if wanted.as_json:
        _print_json(as_builtins(session, row, receipts))
        return int(any(receipt.status != "written" for receipt in receipts))
    out = console()
    print_scores(out, session, row)
    if receipts:
        out.print()
        return int(not print_receipts(out, receipts))
    return 0


def _scorer(wanted: Wanted, settings: Settings) -> ChunkScorer:
    if wanted.answers:
        return HandScorer(Path(wanted.answers), wanted.model or AGENT)
    offline = wanted.offline or (not wanted.model and settings.offline)
    return make_evaluators(settings, offline=offline, model=wanted.model).chunk_scorer


def _asks_for_answers(session: Session, folder: Path) -> bool:
    """Write the prompts and say which still need an answer; return whether any does."""
    missing = [prompt for prompt in write_prompts(session, folder) if not prompt.is_answered]
    if missing:
        out = console()
        out.print(f"{len(missing)} prompts need an answer; then run the same command again:")
        for prompt in missing:
            out.print(f"  {prompt.path}  →  {prompt.answer.name}", soft_wrap=True)
    return bool(missing)


def _found(
    wanted: Wanted, settings: Settings, lake: Lake, redact: Callable[[Session], Session]
) -> Session:
    if wanted.langfuse:
        from debrief.langfuse.client import langfuse_from_settings
        from debrief.langfuse.fetcher import SessionFetcher

        client = langfuse_from_settings(settings)
        if client is None:
            raise _no_server("--langfuse")
        with client:
            return SessionFetcher(client, redact).fetch_session(wanted.langfuse)
    if Path(wanted.session).is_file():
        return session_in_file(Path(wanted.session), redact)
    session = session_in_lake(lake, wanted.session)
    if session is None:
        named = settings.sessions.split(os.pathsep)
        folders = [Path(folder).expanduser() for folder in named if folder]
        folders = folders or default_folders(Path.home())
        session = session_in_folders(folders, wanted.session, redact)
    if session is None:
        raise InputError(
            wanted.session,
            f"is no transcript, and no session in {lake.url} or among this machine's transcripts",
            "debrief sources lists where they are looked for.",
        )
    return session


def _score_many(sessions: Iterable[Session], wanted: Wanted, scorer: ChunkScorer) -> int:
    if wanted.invariance:
        return _show_invariance(sessions, wanted, scorer)
    rows = [score_session(session, scorer) for session in sessions]
    if not rows:
        raise InputError(wanted.session or "the lake", "holds no session", "debrief run fills it.")
    if wanted.as_json:
        _print_json(msgspec.to_builtins(rows))
    else:
        print_many(console(), rows, TARGET)
    return int(any(row.status == "failed" for row in rows))


def _show_invariance(sessions: Iterable[Session], wanted: Wanted, scorer: ChunkScorer) -> int:
    count = 0

    def counted() -> Iterable[Session]:
        nonlocal count
        for session in sessions:
            count += 1
            yield session

    movements = list(chunk_invariance(counted(), scorer))
    if wanted.as_json:
        _print_json({"sessions": count, "movements": msgspec.to_builtins(movements)})
    else:
        print_movements(console(), movements, count)
    return 0


def _store(
    row: SessionScores, scorer: ChunkScorer, settings: Settings, lake: Lake, redactor: Redactor
) -> list[ScoreReceipt]:
    """Write one session's scores to the server; return their receipts, filed with the week's."""
    from debrief.langfuse.client import langfuse_from_settings
    from debrief.langfuse.session_scorer import SessionScorer

    client = langfuse_from_settings(settings)
    if client is None:
        raise _no_server("--store")
    week = week_of(row.started)
    previous = list(lake.read(RECEIPTS_TABLE, week, ScoreReceipt))
    with client:
        whole = SessionScorer(client, scorer, redact=lambda text: redactor.redact(text).text)
        receipts = whole.store(row, previous)
    lake.write(RECEIPTS_TABLE, week, receipts, ScoreReceipt)
    return whole.receipts[row.session_id]


def _no_server(option: str) -> ConfigurationError:
    return ConfigurationError(
        option,
        "needs a Langfuse server, and none is configured",
        "Set LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY.",
    )


def _print_json(value: object) -> None:
    print(msgspec.json.format(msgspec.json.encode(value)).decode())
