"""What the commands that launch the graph have in common: options, run configuration, weeks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from debrief.cli.shared import check_models, check_no_file
from debrief.errors import InputError
from debrief.evaluators import configured_model
from debrief.keys import FIRST_WEEK, is_week, week_after
from debrief.settings import Settings, load_settings, variable_of
from debrief.stages.configuration import StageOptions
from debrief.weekly import Done


class RunOptions(Struct, frozen=True):
    """Where to read, where to write, and who evaluates."""

    sessions: tuple[str, ...] = ()
    """Folders, or URLs of an object store."""
    lake: str = ""
    no_model: bool = False
    model: str = ""
    local: bool = False
    """No Langfuse server and no webhook is used, whatever is configured."""
    score_target: str = ""
    score_names: tuple[str, ...] = ()
    """By which sessions are good when rubrics are mined; those of the settings by default."""
    max_cost_usd: float | None = None
    clones: tuple[str, ...] = ()
    """Folders that are or hold clones of the sessions' repositories."""

    def apply(self) -> Settings:
        """Make what was chosen this process's settings, and those of what it starts; return them.

        A run works only on what settings name, whoever configured it.

        Raises:
            InputError: a folder is not there.
            ConfigurationError: options contradict each other, or a place cannot be used.
        """
        check_models(self.no_model, self.model)
        check_no_file(self.lake)
        for folder in self.sessions:
            if "://" not in folder and not Path(folder).is_dir():
                raise InputError(folder, "is not a folder", "Name one that holds transcripts.")
        for folder in self.clones:
            if not Path(folder).is_dir():
                raise InputError(folder, "is not a folder", "Name one that holds clones.")
        former = load_settings()
        here = _repository()
        own = here / ".debrief" / "judges" if here else None
        repositories = [*map(str, former.repositories), *([str(here)] if here else [])]
        chosen = {
            "sessions": os.pathsep.join(map(_absolute, self.sessions)),
            "clones": os.pathsep.join(map(_absolute, self.clones)),
            "lake": self.lake,
            "no_model": "1" if self.no_model else "0" if self.model else "",
            "model": self.model,
            "max_cost_usd": "" if self.max_cost_usd is None else str(self.max_cost_usd),
            "langfuse": "off" if self.local else "",
            "score_target": self.score_target,
            "score_names": ",".join(self.score_names),
            "webhook": "off" if self.local else "",
            "repositories": os.pathsep.join(dict.fromkeys(repositories)),
            "judges": str(own) if own and own.is_dir() and not former.judges else "",
        }
        os.environ.update({variable_of(name): value for name, value in chosen.items() if value})
        return load_settings()

    @contextmanager
    def applied(self) -> Iterator[Settings]:
        """Make what was chosen this process's settings within the block.

        Other threads may read the environment meanwhile: no other variable is touched.

        Raises:
            InputError, ConfigurationError: as ``apply`` does.
        """
        former = dict(os.environ)
        try:
            yield self.apply()
        finally:
            for name in {name for name, value in os.environ.items() if former.get(name) != value}:
                if name in former:
                    os.environ[name] = former[name]
                else:
                    del os.environ[name]

    def resources(self, settings: Settings) -> dict[str, dict[str, Any]]:
        """Return the configuration of a run's resources: all that says what it runs on."""
        here = _repository()
        has_model = bool(configured_model(settings, here))
        return {
            "lake": {"url": settings.lake},
            "sessions": {"folders": list(settings.sessions)},
            "evaluator": {
                "no_model": not has_model,
                "model": settings.model if has_model else "",
                "repository": str(here) if here else "",
                **limits_of(settings),
            },
            "langfuse": {"enabled": settings.langfuse, "score_target": settings.score_target},
            "webhook": {"enabled": settings.webhook},
        }


def limits_of(settings: Settings) -> dict[str, Any]:
    """Return the limits on what models may take, as a part of an evaluator's configuration."""
    limits = {"max_cost_usd": settings.max_cost_usd, "max_calls": settings.max_calls}
    return {name: limit for name, limit in limits.items() if limit is not None}


def left_of(evaluator: dict[str, Any], parts: Sequence[Done]) -> dict[str, Any]:
    """Return an evaluator's configuration with the limits that runs before have left of its own.

    Args:
        evaluator: the configuration for all runs together.
        parts: what the stages of those runs took.
    """
    calls, usd = sum(part.calls for part in parts), sum(part.cost_usd or 0.0 for part in parts)
    taken = {"max_cost_usd": usd, "max_calls": calls}
    left = {name: max(0, evaluator[name] - taken[name]) for name in taken if name in evaluator}
    return {**evaluator, **left}


def demo_options(lake: str) -> RunOptions:
    """Return the options of a run on the bundled sample sessions."""
    from debrief.samples import REVIEWER, SCORE_NAMES, folder

    return RunOptions(
        sessions=(str(folder()),),
        lake=lake or str(load_settings().home / "demo"),
        model=REVIEWER,
        score_names=SCORE_NAMES,
        local=True,
    )


def run_config(resources: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a run's configuration; Dagster's own log lines are not printed."""
    others: dict[str, Any] = {
        name: resources[name] for name in ("langfuse", "webhook") if name in resources
    }
    stages = {name: config for name, config in resources.items() if name not in others}
    by_resource: dict[str, Any] = {"stages": stages, **others}
    return {
        "loggers": {"quiet": {}},
        "resources": {name: {"config": config} for name, config in by_resource.items()},
    }


def stage_options(resources: dict[str, dict[str, Any]]) -> StageOptions:
    """Return what the stages of a run are configured with, from the run's configuration."""
    return StageOptions.model_validate(
        {name: resources[name] for name in StageOptions.model_fields if name in resources}
    )


def _repository() -> Path | None:
    """Return the repository that a command was started in; None outside of any."""
    from debrief.snapshots.capture import find_repository

    repository = find_repository(Path.cwd())
    return repository.root if repository else None


def _absolute(folder: str) -> str:
    return folder if "://" in folder else str(Path(folder).absolute())


def parse_weeks(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the weeks that options name: Mondays, or ranges of them with ``..`` between.

    Raises:
        InputError: a text is neither.
    """
    weeks: set[str] = set()
    for text in texts:
        first, _, last = text.partition("..")
        last = last or first
        for end in (first, last):
            if not is_week(end):
                raise InputError(
                    f"--week {text}",
                    f"{end or 'nothing'} is not the date of a Monday",
                    "Weeks are written 2026-11-16, ranges 2026-10-05..2026-11-16.",
                )
        if last < first:
            raise InputError(f"--week {text}", "runs backwards", f"Write {last}..{first}.")
        if first < FIRST_WEEK:
            raise InputError(
                f"--week {text}", f"begins before {FIRST_WEEK}", "No week before that is looked at."
            )
        while first <= last:
            weeks.add(first)
            first = week_after(first)
    return tuple(sorted(weeks))
