"""``debrief push``, ``cache`` and ``tokens``: what a team shares."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table

from debrief.cli.database import database_address
from debrief.cli.shared import AsJson, Database, console, print_json

if TYPE_CHECKING:
    from debrief.recorder.storage.rows import Scope, Token
    from debrief.recorder.storage.store import RecordStore


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
    from debrief.keys import slugify
    from debrief.redaction.redactor import Redactor, key_of
    from debrief.sessions.sources import default_folders
    from debrief.sessions.transfer import push as bring
    from debrief.settings import load_settings
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


tokens_app = typer.Typer(
    no_args_is_help=True, help="Who may use the recorder's API: make tokens, list and revoke them."
)


@tokens_app.command("create")
def tokens_create(
    name: Annotated[str, typer.Argument(help="Whose it is, such as ci or ada-laptop.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, write or export; may be given more than once. All if none."),
    ] = None,
    database: Database = "",
    as_json: AsJson = False,
) -> None:
    """Make a token and show it once; only its digest is kept.

    **read** lists tasks, sessions and benchmarks; **write** stores them and marks sessions ready;
    **export** reads the records themselves.
    """
    from debrief.recorder.storage.rows import SCOPES

    with _store(database) as store:
        token, secret = store.add_token(name, cast("Sequence[Scope]", scope or SCOPES))
    if as_json:
        print_json({**_fields(token), "token": secret})
        return
    print(secret)
    console(stderr=True).print(
        f"The token of {token.name}, for {', '.join(token.scopes)}. It is not shown again: only "
        "its digest is kept."
    )


@tokens_app.command("list")
def tokens_list(database: Database = "", as_json: AsJson = False) -> None:
    """List the tokens: scopes, when they were made, last used and revoked."""

    with _store(database) as store:
        tokens = store.tokens()
    if as_json:
        print_json([_fields(token) for token in tokens])
        return
    if not tokens:
        console().print("There are no tokens. Make one with: debrief tokens create NAME")
        return
    table = Table("name", "scopes", "made", "last used", "revoked", box=None, pad_edge=False)
    for token in tokens:
        moments = (token.created_at, token.last_used_at, token.revoked_at)
        times = ("" if at is None else f"{at:%Y-%m-%d %H:%M}" for at in moments)
        table.add_row(token.name, ", ".join(token.scopes), *times)
    console().print(table)


@tokens_app.command("revoke")
def tokens_revoke(
    name: Annotated[str, typer.Argument(help="As in **debrief tokens list**.")],
    database: Database = "",
) -> None:
    """Revoke a token at once and for good; its name is not used again."""
    with _store(database) as store:
        token = store.revoke_token(name)
    console().print(f"Revoked {token.name}.")


@contextmanager
def _store(database: str) -> Iterator[RecordStore]:
    from debrief.recorder.storage.store import RecordStore

    with RecordStore(database_address(database)) as store:
        if store.revision() is None:
            store.migrate()
        store.check()
        yield store


def _fields(token: Token) -> dict[str, object]:
    names = ("name", "scopes", "created_at", "last_used_at", "revoked_at")
    return {name: getattr(token, name) for name in names}
