"""``debrief push`` and ``cache``: what a team shares."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.shared import console

if TYPE_CHECKING:
    pass


def push(
    to: Annotated[
        str, typer.Option("--to", help="An fsspec URL such as s3://…. Default: DEBRIEF_PUSH_TO.")
    ] = "",
    sessions: Annotated[
        list[Path] | None,
        typer.Option(
            "--sessions",
            help="A folder with transcripts; may be given more than once. "
            "Default: DEBRIEF_SESSIONS, else the tools' usual folders.",
        ),
    ] = None,
    owner: Annotated[
        str, typer.Option("--as", help="Whose transcripts they are. Default: the user's name.")
    ] = "",
) -> None:
    """Bring your transcripts to an object store, secrets taken out, new and changed ones only.

    The prompts that were captured of these sessions go along. Sessions that this machine's lake
    was made to forget stay here.

    A team's workers read them there: DEBRIEF_SESSIONS names the same URL. Placeholders of secrets
    are the team's when DEBRIEF_REDACTION_KEY is.
    """
    import getpass

    from debrief.errors import ConfigurationError, InputError
    from debrief.keys import slugify
    from debrief.lake import Lake
    from debrief.redaction.redactor import Redactor, key_of
    from debrief.sessions.forgotten import Forgotten
    from debrief.sessions.places import places_of
    from debrief.sessions.transfer import push as bring
    from debrief.settings import load_settings
    from debrief.snapshots.captures import captures_beside

    settings = load_settings()
    url = to or settings.push_to
    if "://" not in url:
        raise ConfigurationError(
            "--to", "names no object store", "Give a URL such as s3://bucket/transcripts."
        )
    # What is in an object store already is other people's, or was pushed before.
    own = [folder for folder in settings.sessions if "://" not in folder]
    folders = [folder.absolute() for folder in sessions or places_of(settings, own)]
    for folder in folders:
        if not folder.is_dir():
            raise InputError(str(folder), "is not a folder", "Name one that holds transcripts.")
    screen, redactor = console(), Redactor(key_of(settings))
    done = bring(
        folders,
        url,
        slugify(owner or getpass.getuser()),
        redactor,
        settings.home,
        report=lambda line: screen.print(f"  {line}"),
        captures=captures_beside(folders),
        is_left_out=Forgotten.of(Lake(settings.lake), redactor).has,
    )
    screen.print(
        f"{done.files} new or changed, {done.unchanged} unchanged, {done.secrets} secrets "
        f"replaced: {done.url}"
    )


cache_app = typer.Typer(no_args_is_help=True, help="The answers of language models that were kept.")


@cache_app.command()
def prune(
    days: Annotated[
        float | None,
        typer.Option(help="Drop what was kept longer. Default: DEBRIEF_CACHE_DAYS, else 90."),
    ] = None,
    megabytes: Annotated[
        float | None,
        typer.Option(
            "--mb", help="Keep the newest up to this. Default: DEBRIEF_CACHE_MB, else 2000."
        ),
    ] = None,
) -> None:
    """Drop the oldest answers, and give their room back. Runs do it by themselves once a day."""
    from debrief.settings import load_settings
    from debrief.state import open_state, prune_answers

    options = {"DEBRIEF_CACHE_DAYS": days, "DEBRIEF_CACHE_MB": megabytes}
    given = {name: str(value) for name, value in options.items() if value is not None}
    settings = load_settings({**os.environ, **given})
    state = open_state(settings)
    dropped = prune_answers(state, settings)
    state.compact()
    left = state.size()
    console().print(
        f"Dropped {dropped.answers} answers ({dropped.bytes / 1e6:.1f} MB); "
        f"{left.answers} are left ({left.bytes / 1e6:.1f} MB) in {state.location}"
    )


@cache_app.command()
def share(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="Address of a Postgres database. Default: DEBRIEF_STATE_URL, else DATABASE_URL.",
        ),
    ] = "",
) -> None:
    """Copy the answers that this machine has kept to the database of a team: none is paid twice.

    The file stays as it is; what the team has already stays too.
    """
    from debrief.errors import ConfigurationError
    from debrief.settings import load_settings
    from debrief.state import HERE, VARIABLE, State, state_file

    settings = load_settings()
    url = to or settings.state_url or settings.database_url
    if not url or url == HERE:
        raise ConfigurationError("--to", "names no database", f"Give one, or set {VARIABLE}.")
    own = State(state_file(settings))
    shared = State(url)
    new = shared.copy_from(own)
    console().print(f"{new} of {own.size().answers} answers are new in {shared.location}")
