"""``debrief serve``: the recorder's API as a process."""

from __future__ import annotations

import os
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.shared import console, warn
from debrief.errors import ConfigurationError, DebriefError

if TYPE_CHECKING:
    from debrief.recorder.checks import ReadyRule
    from debrief.recorder.storage.store import RecordStore

TOKEN_FILE_NAME = "serve"
"""Begins the name of the token that ``--token-file`` makes."""
_RULES = ("validation", "passed", "final-tree")


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any that is free.")] = 8484,
    database: Annotated[
        str,
        typer.Option(
            help="Address of a Postgres database; DATABASE_URL if none, else the one that comes "
            "along."
        ),
    ] = "",
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            help="Write a token of all scopes there (mode 600), unless the file is there.",
        ),
    ] = None,
    ready: Annotated[
        str,
        typer.Option(
            "--ready",
            metavar="RULE",
            help="What a session needs to be marked ready, beside a verified patch: none, or some "
            "of validation,passed,final-tree. DEBRIEF_READY_RULE if not given, else validation.",
        ),
    ] = "",
    rate: Annotated[
        float,
        typer.Option(
            min=0.1, max=1e6, help="Requests a second that one token may send, over time."
        ),
    ] = 400.0,
    log_level: Annotated[
        str, typer.Option("--log-level", help="debug, info, warning or error.")
    ] = "info",
) -> None:
    """Run the recorder's API: records in, checked; training lines out.

    Without **--database** or DATABASE_URL, Postgres is started on a socket of its own, with its
    data under **~/.debrief/postgres**. The database is migrated first. Clients need a token:
    **debrief tokens create NAME**.

    The log goes to the error output, as uvicorn writes it: a line a request with its path, its
    query and its status; never what a record holds. SIGTERM ends it cleanly: running
    requests have 30 seconds.
    """
    from debrief.cli.database import database_address
    from debrief.recorder.client import is_local
    from debrief.recorder.service.app import Service, create_app
    from debrief.recorder.service.ingest import Ingest
    from debrief.recorder.service.running import (
        LEVELS,
        ServiceLimits,
        listen,
        run,
        url_of,
    )
    from debrief.recorder.storage.store import RecordStore
    from debrief.redaction.redactor import Redactor, key_of
    from debrief.settings import load_settings

    settings = load_settings()
    level = log_level.lower()
    if level not in LEVELS:
        raise ConfigurationError("--log-level", f"is {level}", f"It is one of {', '.join(LEVELS)}.")
    rule = ready_rule(ready or settings.ready_rule)
    redactor = Redactor(key_of(settings))
    limits = ServiceLimits(requests_a_second=rate, burst=max(1, round(10 * rate)))
    listener = listen(host, port)

    def greet() -> None:
        out, url = console(), url_of(listener)
        if not is_local(host):
            warn(
                f"{host} can be reached by other machines, and tokens and records would cross the "
                "network unencrypted. Put a proxy that speaks TLS in front, and let it alone "
                "reach this port."
            )
        out.print(f"Debrief recorder: {url}")
        if token_file is not None:
            out.print(f"  token: {token_file}")
        elif not any(token.revoked_at is None for token in store.tokens()):
            out.print("  Clients need a token. Make one with: debrief tokens create NAME")
        stored = f"{store.count()} sessions are stored"
        out.print(f"  health: curl {url}/health · {stored}")

    with listener, RecordStore(database_address(database)) as store:
        before, after = store.migrate()
        if before != after:
            console().print(f"Migrated the database to {after}.")
        if token_file is not None:
            write_token(store, token_file)
        service = Service(store, Ingest(redactor, rule, settings.recorder_programs), limits)
        run(create_app(service), limits, listener, greet, log_level=level)


def ready_rule(text: str) -> ReadyRule:
    """Return the rule that ``--ready`` names.

    Raises:
        ConfigurationError: it names none.
    """
    from debrief.recorder.checks import ReadyRule

    names = {name.strip() for name in text.split(",") if name.strip()} or {"validation"}
    if names - {*_RULES, "none"} or ("none" in names and len(names) > 1):
        raise ConfigurationError(
            f"the ready rule {text!r}", "is none", f"It is none, or some of {','.join(_RULES)}."
        )
    return ReadyRule(
        validation="none" not in names,
        passed="passed" in names,
        on_final_tree="final-tree" in names,
    )


def write_token(store: RecordStore, path: Path) -> None:
    """Make a token of all scopes and write it to a file that only its user can read.

    A file that is there is left alone when its token works.

    Raises:
        ConfigurationError: the file cannot be written, or holds a token that does not work.
    """
    try:
        if path.exists():
            if store.find_token(path.read_text().strip()) is None:
                raise ConfigurationError(
                    str(path), "holds a token that is not one of this database", "Remove the file."
                )
            return
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ConfigurationError(
            str(path), f"cannot be written ({error.strerror})", "Name another: --token-file"
        ) from error
    taken = {token.name for token in store.tokens()}
    names = chain([TOKEN_FILE_NAME], (f"{TOKEN_FILE_NAME}-{number}" for number in count(2)))
    name = next(name for name in names if name not in taken)
    with os.fdopen(handle, "w") as file:
        try:
            file.write(store.add_token(name, ("read", "write", "export"))[1] + "\n")
        except DebriefError:
            path.unlink()
            raise
