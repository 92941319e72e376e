"""``debrief push``: transcripts to where a team's workers read them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.console import console


def push(
    to: Annotated[
        str, typer.Option("--to", help="An fsspec URL such as s3://…. Default: DEBRIEF_PUSH_TO.")
    ] = "",
    sessions: Annotated[
        list[Path] | None,
        typer.Option(
            "--sessions",
            help="A folder with transcripts; may be given more than once. "
            "Default: the usual folders of this machine's user.",
        ),
    ] = None,
    owner: Annotated[
        str, typer.Option("--as", help="Whose transcripts they are. Default: the user's name.")
    ] = "",
) -> None:
    """Bring your transcripts to an object store, secrets taken out, new and changed ones only.

    The prompts that were captured of these sessions go along.

    A team's workers read them there: DEBRIEF_SESSIONS names the same URL. Placeholders of secrets
    are the team's when DEBRIEF_REDACTION_KEY is.
    """
    import getpass

    from debrief.errors import ConfigurationError, InputError
    from debrief.redaction.redactor import Redactor, key_of
    from debrief.sessions.sources import default_folders
    from debrief.sessions.transfer import push as bring
    from debrief.settings import load_settings
    from debrief.slugs import slugify
    from debrief.snapshots.captures import captures_beside

    settings = load_settings()
    url = to or settings.push_to
    if "://" not in url:
        raise ConfigurationError(
            "--to", "names no object store", "Give a URL such as s3://bucket/transcripts."
        )
    folders = [folder.absolute() for folder in sessions or default_folders(Path.home())]
    for folder in folders:
        if not folder.is_dir():
            raise InputError(str(folder), "is not a folder", "Name one that holds transcripts.")
    screen = console()
    done = bring(
        folders,
        url,
        slugify(owner or getpass.getuser()),
        Redactor(key_of(settings)),
        settings.home,
        report=lambda line: screen.print(f"  {line}"),
        captures=captures_beside(folders),
    )
    screen.print(
        f"{done.files} new or changed, {done.unchanged} unchanged, {done.secrets} secrets "
        f"replaced: {done.url}"
    )
