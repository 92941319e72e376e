"""Runs handed to whoever the instance's launcher hands runs to, and waited for.

What is to be done over many weeks becomes several runs over a few weeks each, so that several
workers have something to do.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import dagster as dg
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.launcher import DefaultRunLauncher
from dagster._core.origin import (
    DEFAULT_DAGSTER_ENTRY_POINT,
    JobPythonOrigin,
    RepositoryPythonOrigin,
)
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from msgspec import Struct
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from assets import langfuse
from assets import spending as language_models
from assets.progress import PROGRESS
from debrief.errors import ConfigurationError, InputError
from debrief.sessions.transfer import split_locations
from debrief.settings import Settings, load_settings
from pipelines.failures import failure_in
from pipelines.queue import BROKER
from pipelines.ranges import Tags, range_tags
from pipelines.recovery import settle_dead_runs

MODULE, ATTRIBUTE, LOCATION = "pipelines.definitions", "defs", "debrief"
_POLL = 0.5
_SLOWEST_POLL = 3.0
_LOOK_FOR_THE_DEAD = 10.0
_STORAGE_AWAY = 120.0
T = TypeVar("T")


class Piece(Struct, frozen=True, kw_only=True):
    """One run that is to be handed out."""

    job: str
    tags: Tags
    config: Mapping[str, Any] = {}
    assets: tuple[str, ...] = ()
    """Of the job, those that are to be made; empty for all of them."""
    told: str
    """What it is, for people."""


class Failed(Struct, frozen=True):
    """A run that was handed out and failed."""

    run_id: str
    told: str
    reason: str


def pieces_of(
    job: str,
    ranges: Iterable[tuple[str, str]],
    tags: Tags,
    config: Mapping[str, Any],
    assets: tuple[str, ...] = (),
) -> list[Piece]:
    """Return one piece a range of partitions."""
    return [
        Piece(
            job=job,
            tags={**tags, **(range_tags(first, last) if first else {})},
            config=config,
            assets=assets,
            told=f"{', '.join(assets) or job}{f' {first} … {last}' if first else ''}",
        )
        for first, last in ranges
    ]


def carry_out(
    instance: dg.DagsterInstance,
    pieces: Sequence[Piece],
    like: dg.DagsterRun | None = None,
    ended: Callable[[dg.DagsterRun], None] = lambda run: None,
) -> list[Failed]:
    """Hand out runs, wait until all of them have ended, and return those that failed.

    When this process is stopped, so are the runs.

    Args:
        instance: whose launcher hands them out.
        pieces: the runs.
        like: the run that they belong to, whose code location is theirs.
        ended: told of every run that has ended.

    Raises:
        ConfigurationError: the instance starts runs on this machine alone, or the broker does not
            take them.
    """
    if not pieces:
        return []
    if isinstance(instance.run_launcher, DefaultRunLauncher):
        raise ConfigurationError(
            str(Path(instance.root_directory) / "dagster.yaml"),
            "names no launcher that hands runs to workers, and DEBRIEF_LAUNCH=queue asks for one",
            "Remove the file, so that it is written anew, or name CeleryRunLauncher in it.",
        )
    prepare_pools(instance)
    log = logging.getLogger(PROGRESS)
    waiting: dict[str, Piece] = {}
    failed: list[Failed] = []
    try:
        for piece in pieces:
            waiting[_submit(instance, piece, like)] = piece
        log.info("%d runs wait for workers: %s", len(pieces), pieces[0].told)
        for done, run in enumerate(_as_they_end(instance, waiting), 1):
            piece = waiting.pop(run.run_id)
            ended(run)
            outcome = "done"
            if run.status is not dg.DagsterRunStatus.SUCCESS:
                outcome = _reason(instance, run)
                failed.append(Failed(run.run_id, piece.told, outcome))
            log.info("%s: %s (%d of %d)", piece.told, outcome, done, len(pieces))
    finally:
        for run_id in waiting:
            _stop(instance, run_id)
    return failed


def prepare_pools(instance: dg.DagsterInstance) -> None:
    """Make the pools known to the instance before two workers do so at the same moment.

    On Postgres, the second of them would lose its run.
    """
    storage = instance.event_log_storage
    for pool in (language_models.POOL, langfuse.POOL):
        if pool in storage.get_concurrency_keys():
            continue
        try:
            storage.initialize_concurrency_limit_to_default(pool)
        except Exception:
            if pool not in storage.get_concurrency_keys():
                raise


def describe(failed: Sequence[Failed]) -> str:
    """Return which runs failed, and why, in one line; what failed alike is told together."""
    alike: dict[str, list[Failed]] = {}
    for each in failed:
        alike.setdefault(each.reason, []).append(each)
    return "; ".join(
        f"{', '.join(f'{each.told} (run {each.run_id[:8]})' for each in group)}: {reason}"
        for reason, group in alike.items()
    )


def chosen_here(settings: Settings) -> dict[str, Any]:
    """Return the configuration by which a worker does what this process was told to do.

    A worker's own environment tells it everything else: keys, limits, servers.
    """
    evaluator = {
        "offline": settings.offline,
        "model": settings.model,
    }
    chosen: dict[str, dict[str, Any]] = {
        "evaluator": {name: value for name, value in evaluator.items() if value},
        "lake": {"url": settings.lake},
        "sessions": {"folders": split_locations(settings.sessions)},
        "langfuse": {"enabled": settings.langfuse},
    }
    return {name: {"config": config} for name, config in chosen.items()}


def _laid_over(chosen: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a run's own configuration over what was chosen here."""
    resources = {name: dict(each["config"]) for name, each in chosen.items()}
    for name, each in config.get("resources", {}).items():
        resources.setdefault(name, {}).update(each.get("config") or {})
    return {**config, "resources": {name: {"config": each} for name, each in resources.items()}}


def _submit(instance: dg.DagsterInstance, piece: Piece, like: dg.DagsterRun | None) -> str:
    from pipelines.definitions import defs

    implicit = bool(piece.assets)
    job = (
        defs.resolve_implicit_global_asset_job_def()
        if implicit
        else defs.resolve_job_def(piece.job)
    )
    assets = frozenset(dg.AssetKey(name) for name in piece.assets) if implicit else None
    run = instance.create_run_for_job(
        job_def=job.get_subset(asset_selection=assets) if assets else job,
        run_config=_laid_over(chosen_here(load_settings()), piece.config),
        tags={**job.run_tags, **piece.tags},
        asset_selection=assets,
        job_code_origin=_code_origin(job.name),
        remote_job_origin=_remote_origin(job.name, like),
    )
    # The launcher looks a run up in its storage; the workspace is for those that ask it for code.
    with warnings.catch_warnings():
        # The launcher makes the same task anew for each run.
        warnings.filterwarnings("ignore", message="Task name 'execute_job' is already")
        try:
            instance.submit_run(run.run_id, cast(Any, None))
        except Exception as error:
            raise ConfigurationError(
                BROKER, f"the broker took no run ({error})", "Start it, and run the same again."
            ) from error
    return run.run_id


def _code_origin(job: str) -> JobPythonOrigin:
    """Return where a worker finds the code: in its own installation."""
    return JobPythonOrigin(
        job,
        RepositoryPythonOrigin(
            executable_path=sys.executable,
            code_pointer=ModuleCodePointer(MODULE, ATTRIBUTE, working_directory=None),
            entry_point=DEFAULT_DAGSTER_ENTRY_POINT,
        ),
    )


def _remote_origin(job: str, like: dg.DagsterRun | None) -> RemoteJobOrigin:
    """Return where the UI files a run: under the code location of the run that it belongs to."""
    if like is not None and like.remote_job_origin is not None:
        return like.remote_job_origin.repository_origin.get_job_origin(job)
    location = ManagedGrpcPythonEnvCodeLocationOrigin(
        LoadableTargetOrigin(module_name=MODULE, attribute=ATTRIBUTE), LOCATION
    )
    return RemoteRepositoryOrigin(location, "__repository__").get_job_origin(job)


def _as_they_end(
    instance: dg.DagsterInstance, waiting: Mapping[str, Piece]
) -> Iterator[dg.DagsterRun]:
    """Yield each run once it has ended; one whose worker died is found to have."""
    pause = _POLL
    looked = time.monotonic()
    while waiting:
        found = patiently(lambda: instance.get_runs(dg.RunsFilter(run_ids=list(waiting))))
        gone = waiting.keys() - {run.run_id for run in found}
        if gone:
            raise InputError(f"run {min(gone)}", "was deleted while it was waited for")
        over = [run for run in found if run.is_finished]
        yield from over
        pause = _POLL if over else min(_SLOWEST_POLL, pause * 1.2)
        if time.monotonic() - looked > _LOOK_FOR_THE_DEAD:
            patiently(lambda: settle_dead_runs(instance))
            looked = time.monotonic()
        if waiting:
            time.sleep(pause)


def patiently(ask: Callable[[], T], seconds: float = _STORAGE_AWAY) -> T:
    """Ask Dagster's storage something, again while it is away: the runs go on without it.

    Dagster itself tries for some seconds, which is less than a server takes to be restarted.
    """
    tries = Retrying(
        retry=retry_if_exception(_is_away),
        stop=stop_after_delay(seconds),
        wait=wait_random(0.5, 2.0),
        before_sleep=lambda _: logging.getLogger(PROGRESS).warning(
            "Dagster's storage does not answer; asked again"
        ),
        reraise=True,
    )
    found: T = tries(ask)
    return found


def _is_away(error: BaseException) -> bool:
    from sqlalchemy.exc import InterfaceError, OperationalError

    own = type(error).__name__ == "DagsterPostgresException"
    return own or isinstance(error, OperationalError | InterfaceError)


def _reason(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    if run.status is dg.DagsterRunStatus.CANCELED:
        return "was stopped"
    events = (
        record.dagster_event for record in instance.all_logs(run.run_id) if record.dagster_event
    )
    step, reason = failure_in(events, run.job_name)
    return f"{step}: {reason}"


def _stop(instance: dg.DagsterInstance, run_id: str) -> None:
    run = instance.get_run_by_id(run_id)
    if run is None or run.is_finished:
        return
    if run.status is dg.DagsterRunStatus.STARTED:
        instance.report_run_canceling(run, "Stopped with what launched it.")
    else:
        instance.report_run_canceled(run, "Stopped with what launched it, before it began.")
    try:
        instance.run_coordinator.cancel_run(run_id)
    except Exception as error:
        # The broker is away; a run that is marked so notices by itself.
        logging.getLogger(PROGRESS).warning("run %s: %s", run_id[:8], error)
