"""What the commands that launch the graph have in common: options and a run's configuration."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from debrief.cli.shared import check_models, check_no_file
from debrief.errors import InputError
from debrief.evaluators import configured_model
from debrief.keys import FIRST_WEEK, is_week, week_after
from debrief.settings import Settings, load_settings, variable_of
from debrief.stages.configuration import (
    EvaluatorChoice,
    LakeChoice,
    ScopeChoice,
    SessionSources,
    StageOptions,
)
from debrief.weekly import Done


class RunConfiguration(Struct, frozen=True, kw_only=True):
    """The configuration of a run's resources: all that says what it runs on."""

    stages: StageOptions
    langfuse: Mapping[str, Any]
    webhook: Mapping[str, Any]

    @property
    def has_model(self) -> bool:
        """Return whether a model is asked."""
        return not self.stages.evaluator.no_model

    def with_evaluator(self, **changes: Any) -> RunConfiguration:
        """Return the same with another choice of who evaluates, or other limits."""
        evaluator = self.stages.evaluator.model_copy(update=changes)
        return replace(self, stages=self.stages.model_copy(update={"evaluator": evaluator}))

    def within(self, settings: Settings) -> RunConfiguration:
        """Return the same with the limits of settings."""
        return self.with_evaluator(max_cost_usd=settings.max_cost_usd, max_calls=settings.max_calls)

    def after(self, parts: Sequence[Done]) -> RunConfiguration:
        """Return the same with what runs before it have left of the limits.

        Args:
            parts: what the stages of those runs took.
        """
        limits = self.stages.evaluator
        calls, usd = sum(part.calls for part in parts), sum(part.cost_usd or 0.0 for part in parts)
        return self.with_evaluator(
            max_cost_usd=limits.max_cost_usd and max(0.0, limits.max_cost_usd - usd),
            max_calls=limits.max_calls and max(0, limits.max_calls - calls),
        )

    def over(self, where: object, *, force: bool = False) -> RunConfiguration:
        """Return the same over the sessions for which conditions hold."""
        scope = ScopeChoice(where=[str(where)] if where else [], force=force)
        return replace(self, stages=self.stages.model_copy(update={"scope": scope}))

    def for_dagster(self, **ops: Mapping[str, Any]) -> dict[str, Any]:
        """Return it as Dagster takes it; Dagster's own log lines are not printed.

        Args:
            ops: configuration of assets by name.
        """
        by_name: dict[str, Any] = {
            "stages": self.stages.model_dump(exclude_none=True),
            "langfuse": dict(self.langfuse),
            "webhook": dict(self.webhook),
        }
        return {
            "loggers": {"quiet": {}},
            "resources": {name: {"config": config} for name, config in by_name.items()},
            **({"ops": {name: {"config": config} for name, config in ops.items()}} if ops else {}),
        }


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
        for folders, what in ((self.sessions, "transcripts"), (self.clones, "clones")):
            for folder in folders:
                if "://" not in folder and not Path(folder).is_dir():
                    raise InputError(folder, "is not a folder", f"Name one that holds {what}.")
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


def configuration_of(settings: Settings) -> RunConfiguration:
    """Return the configuration of a run that does what settings say."""
    here = _repository()
    has_model = bool(configured_model(settings, here))
    return RunConfiguration(
        stages=StageOptions(
            lake=LakeChoice(url=settings.lake),
            sessions=SessionSources(folders=list(settings.sessions)),
            evaluator=EvaluatorChoice(
                no_model=not has_model,
                model=settings.model if has_model else "",
                repository=str(here) if here else "",
                max_cost_usd=settings.max_cost_usd,
                max_calls=settings.max_calls,
            ),
        ),
        langfuse={"enabled": settings.langfuse, "score_target": settings.score_target},
        webhook={"enabled": settings.webhook},
    )


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
