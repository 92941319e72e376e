"""The configuration of a run: all that says what it runs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from debrief.cli.run_options import repository_here
from debrief.evaluators import configured_model
from debrief.settings import Settings
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

    def over(self, where: str, *, force: bool = False) -> RunConfiguration:
        """Return the same over the sessions for which conditions hold; empty: over all."""
        scope = ScopeChoice(where=[where] if where else [], force=force)
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


def configuration_of(settings: Settings) -> RunConfiguration:
    """Return the configuration of a run that does what settings say."""
    here = repository_here()
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
