"""Forget sessions in what Dagster stores, as part of ``debrief forget``.

Stages put no words of a session into Dagster's events. Earlier versions did, and a failure still
names the session that it concerns. Dagster has no way to change an event: runs with such events are
deleted, and what was newest of a partition in them is reported again, by its row count alone, so
that no backfill makes it anew.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import dagster as dg

from assets.partitions import PAIRS, pair_key
from debrief.conversion import open_lake
from debrief.errors import ConfigurationError, InputError
from debrief.files import only_writer
from debrief.forgetting.choosing import Choice, Sources
from debrief.forgetting.forget import ForgetReceipt, forget
from debrief.forgetting.places import SweptPlace
from debrief.forgetting.signs import Signs
from debrief.forgetting.subject import Subject, Swept
from debrief.langfuse.client import langfuse_from_settings
from debrief.recorder.postgres import database_url, postgres_folder
from debrief.recorder.storage.connecting import Database
from debrief.recorder.storage.store import RecordStore
from debrief.redaction.redactor import Redactor, key_of
from debrief.sessions.forgotten import Forgotten
from debrief.sessions.store import sessions_of
from debrief.settings import Settings
from debrief.training.selection import observed_pairs
from pipelines.home import CONFIGURATION, dagster_home
from pipelines.instance import (
    SCHEMA,
    UNDER_WAY,
    newest_materializations,
    open_instance,
)

BUSY = "busy"
"""Code of the error that a run is under way."""
_CHECKED = dg.DagsterEventType.ASSET_CHECK_EVALUATION
_COUNTS = ("dagster/partition_row_count", "dagster/row_count")
_PATIENCE = 60.0
"""Seconds to wait for others that write Dagster's files."""


def forget_sessions(
    settings: Settings,
    choice: Choice,
    agrees: Callable[[ForgetReceipt], bool] = lambda receipt: True,
    *,
    instance: dg.DagsterInstance | None = None,
    of_run: str = "",
) -> ForgetReceipt:
    """Forget sessions of the lake of ``settings``, while no run works on it.

    Args:
        settings: of this machine.
        choice: which sessions.
        agrees: asked with what was found, before anything is changed.
        instance: Dagster's, where it is open already.
        of_run: the run that does this, which is no obstacle to it.

    Raises:
        InputError: nothing is known of what is asked for, or a run is under way.
        DebriefError: a place is away.
    """
    lake = open_lake(settings.lake)
    with ExitStack() as stack:
        sources = Sources(
            settings=settings,
            lake=lake,
            forgotten=Forgotten.of(lake, Redactor(key_of(settings))),
            langfuse=_entered(stack, langfuse_from_settings(settings)),
            records=_entered(stack, _records(settings)),
        )
        if instance is None and (dagster_home(settings) / CONFIGURATION).exists():
            instance = stack.enter_context(open_instance(settings))
        if instance is not None:
            _check_idle(instance, of_run)
        if "://" not in lake.url:
            for held in (lake.url, sessions_of(lake)):
                stack.enter_context(only_writer(settings.home, held))
        places = [_place(instance)] if instance is not None else []
        return forget(choice, sources, places, agrees)


def _entered(stack: ExitStack, opened: Any) -> Any:
    return stack.enter_context(opened) if opened is not None else None


def _records(settings: Settings) -> RecordStore | None:
    """Return the recorder's store; None where there is none, or nothing was ever stored in it."""
    if not settings.database_url and not postgres_folder(settings).exists():
        return None
    store = RecordStore(database_url(settings, start=True))
    if store.revision() is None:
        store.close()
        return None
    store.check()
    return store


def _check_idle(instance: dg.DagsterInstance, of_run: str) -> None:
    for run in instance.get_runs(dg.RunsFilter(statuses=UNDER_WAY)):
        if run.run_id != of_run:
            raise InputError(
                f"run {run.run_id[:8]}",
                "is under way, and would bring back what it has read",
                "Wait for its end, or end it.",
            ).known_as(BUSY)


def _place(instance: dg.DagsterInstance) -> SweptPlace:
    def sweep(subject: Subject, act: bool) -> Iterator[Swept]:
        yield from _sweep(instance, subject, act)

    return SweptPlace("Dagster", "failures that name it; previews of earlier versions", sweep)


def _sweep(instance: dg.DagsterInstance, subject: Subject, act: bool) -> Iterator[Swept]:
    """Delete the runs whose events, configuration or tags hold something of the sessions."""
    runs, checked, logs = set[str](), set[dg.AssetKey](), list[list[str]]()
    for run in instance.get_runs():
        if _any_in((run.run_config, dict(run.tags)), subject.signs):
            runs.add(run.run_id)
        for entry in instance.all_logs(run.run_id):
            log = _log_with(instance, entry, subject.signs)
            if log:
                logs.append(log)
            if not _any_in(_said(entry), subject.signs):
                continue
            runs.add(run.run_id)
            event = entry.dagster_event
            if event is not None and event.event_type is _CHECKED:
                checked.add(event.asset_check_evaluation_data.asset_key)
    if act:
        _delete(instance, runs, checked)
        for log in logs:
            instance.compute_log_manager.delete_logs(log_key=log)
        _drop_pairs(instance, subject)
        _compact(instance, subject.settings, something_went=bool(runs))
    if runs:
        yield Swept("runs", len(runs), "run")
    if logs:
        yield Swept("logs of steps", len(logs), "log")


def _said(entry: dg.EventLogEntry) -> object:
    """Return what an event holds that is not Dagster's own words."""
    event = entry.dagster_event
    if event is None:
        return entry.user_message, str(entry.error_info or "")
    if event.event_specific_data is None:
        return ()
    return json.loads(dg.serialize_value(event.event_specific_data))


def _any_in(value: object, signs: Signs) -> bool:
    """Return whether a text of a decoded value is, or holds, something of the sessions."""
    if isinstance(value, str):
        return signs.are_in(value)
    if isinstance(value, dict):
        return any(_any_in(each, signs) for pair in value.items() for each in pair)
    return isinstance(value, list | tuple) and any(_any_in(each, signs) for each in value)


def _log_with(instance: dg.DagsterInstance, entry: dg.EventLogEntry, signs: Signs) -> list[str]:
    """Return the key of a step's output if it holds something of the sessions, else nothing."""
    event = entry.dagster_event
    if event is None or event.event_type is not dg.DagsterEventType.LOGS_CAPTURED:
        return []
    key = [entry.run_id, "compute_logs", event.logs_captured_data.file_key]
    said = instance.compute_log_manager.get_log_data(key)
    texts = ((each or b"").decode("utf-8", "replace") for each in (said.stdout, said.stderr))
    return key if any(signs.are_in(line) for text in texts for line in text.splitlines()) else []


def _delete(instance: dg.DagsterInstance, runs: set[str], checked: set[dg.AssetKey]) -> None:
    """Delete runs, and the history of checks; what is newest of partitions is reported again."""
    again = {
        (made.asset_key, made.partition): made
        for entry in newest_materializations(instance)
        if (made := entry.asset_materialization) is not None
        and (entry.run_id in runs or made.asset_key in checked)
    }
    if checked:
        instance.wipe_assets(sorted(checked))  # checks have no other way to go
    for made in again.values():
        counts = {name: made.metadata[name] for name in _COUNTS if name in made.metadata}
        instance.report_runless_asset_event(
            dg.AssetMaterialization(
                made.asset_key, partition=made.partition, metadata=counts, tags=made.tags
            )
        )
    for run_id in runs:
        instance.delete_run(run_id)
        instance.compute_log_manager.delete_logs(prefix=[run_id])


def _drop_pairs(instance: dg.DagsterInstance, subject: Subject) -> None:
    """Delete the partitions of training sets that no session is left of."""
    tasks = {head.task for head in subject.chosen.heads.values()}
    left = {pair_key(*pair) for pair in observed_pairs(subject.lake)}
    for key in instance.get_dynamic_partitions(str(PAIRS.name)):
        if key not in left and any(key.startswith(f"{task}.") for task in tasks):
            instance.delete_dynamic_partition(str(PAIRS.name), key)


def _compact(instance: dg.DagsterInstance, settings: Settings, *, something_went: bool) -> None:
    """Rewrite Dagster's tables, so that nothing of what was deleted is left in free pages."""
    url = settings.dagster_database_url
    if url and something_went:
        database = Database(url)
        try:
            database.rewrite(SCHEMA if f"search_path={SCHEMA}" in unquote(url) else "public")
        finally:
            database.close()
    for path in _sqlite_files(instance):
        try:
            with closing(sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)) as link:
                link.execute("VACUUM")
                link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as error:
            reason = f"could not be rewritten without what was deleted: {error}"
            raise ConfigurationError(str(path), reason, "Run the same again.") from error


def _sqlite_files(instance: dg.DagsterInstance) -> list[Path]:
    found = Path(instance.root_directory).glob("*.db")
    return sorted(path for path in found if path.name in ("event_log.db", "runs.db"))
