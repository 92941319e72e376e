"""``debrief serve``: the recorder's API as a process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from debrief.cli.console import console
from debrief.errors import ConfigurationError, DebriefError
from debrief.recorder.postgres import database_url
from debrief.redaction.redactor import Redactor, key_of
from debrief.settings import load_settings

if TYPE_CHECKING:
    from debrief.recorder.checks import ReadyRule
    from debrief.recorder.storage.store import RecordStore

TOKEN_FILE_NAME = "serve"
"""Begins the name of the token that ``--token-file`` makes."""
_RULE_SETTING = "DEBRIEF_READY_RULE"
_RULES = ("validation", "passed", "final-tree")


class Wish(Struct, frozen=True, kw_only=True):
    """How the service is to run."""

    host: str = "127.0.0.1"
    port: int = 8484
    database: str = ""
    token_file: Path | None = None
    ready: str = ""
    rate: float = 400.0
    log_level: str = "info"


def serve(wish: Wish) -> None:
    """Run the service until it is told to stop.

    Raises:
        ConfigurationError: an option is wrong, or the address is taken.
        StorageError: the database cannot be used.
    """
    from debrief.recorder.ingest import Ingest
    from debrief.recorder.service.app import create_app
    from debrief.recorder.service.logs import LEVELS, start_logging
    from debrief.recorder.service.routes import Service, ServiceLimits
    from debrief.recorder.service.running import listen, make_server, url_of
    from debrief.recorder.storage.store import RecordStore

    settings = load_settings()
    level = wish.log_level.lower()
    if level not in LEVELS:
        raise ConfigurationError("--log-level", f"is {level}", f"It is one of {', '.join(LEVELS)}.")
    rule = ready_rule(wish.ready or settings.ready_rule)
    redactor = Redactor(key_of(settings))
    limits = ServiceLimits(requests_a_second=wish.rate, burst=max(1, round(10 * wish.rate)))
    listener = listen(wish.host, wish.port)
    with listener, RecordStore(wish.database or database_url(settings)) as store:
        before, after = store.migrate()
        if before != after:
            console().print(f"Migrated the database to {after}.")
        if wish.token_file is not None:
            write_token(store, wish.token_file)
        service = Service(store, Ingest(redactor, rule), limits)
        start_logging(level)
        server = make_server(
            create_app(service), limits, lambda: _greet(store, url_of(listener), wish)
        )
        server.run([listener])


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
    with os.fdopen(handle, "w") as file:
        try:
            file.write(_new_token(store) + "\n")
        except DebriefError:
            path.unlink()
            raise


def _new_token(store: RecordStore) -> str:
    taken = {token.name for token in store.tokens()}
    name, number = TOKEN_FILE_NAME, 1
    while name in taken:
        number += 1
        name = f"{TOKEN_FILE_NAME}-{number}"
    return store.add_token(name, ("read", "write", "export"))[1]


def _greet(store: RecordStore, url: str, wish: Wish) -> None:
    from debrief.recorder.service.running import is_local

    out = console()
    if not is_local(wish.host):
        console(stderr=True).print(
            f"debrief: {wish.host} can be reached by other machines, and tokens and records would "
            "cross the network unencrypted. Put a proxy that speaks TLS in front, and let it "
            "alone reach this port.",
            style="yellow",
            soft_wrap=True,
        )
    out.print(f"Debrief recorder: {url}", soft_wrap=True)
    if wish.token_file is not None:
        out.print(f"  token: {wish.token_file}", soft_wrap=True)
    elif not any(token.revoked_at is None for token in store.tokens()):
        out.print("  Clients need a token. Make one with: debrief tokens create NAME")
    out.print(f"  health: curl {url}/health · {store.count()} sessions are stored", soft_wrap=True)
