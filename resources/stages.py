"""The resource of every asset that works on a lake: where, from what, and by whom."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import dagster as dg
from pydantic import BaseModel, create_model

from debrief.errors import DebriefError
from debrief.files import only_writer
from debrief.lake import Lake
from debrief.settings import load_settings
from debrief.stages.configuration import (
    EvaluatorChoice,
    LakeChoice,
    ScopeChoice,
    SessionSources,
    StageOptions,
)
from debrief.stages.run import StageRun


def launch_form(model: type[BaseModel]) -> Any:
    """Return what the launchpad asks for a model of the library: the same fields and words."""
    fields: dict[str, Any] = {
        name: (field.annotation, field) for name, field in model.model_fields.items()
    }
    return create_model(model.__name__, __base__=dg.Config, __doc__=model.__doc__, **fields)


LakeForm = launch_form(LakeChoice)
SessionsForm = launch_form(SessionSources)
EvaluatorForm = launch_form(EvaluatorChoice)
ScopeForm = launch_form(ScopeChoice)


@contextmanager
def explained(log: dg.DagsterLogManager | None) -> Iterator[None]:
    """Log why the block failed in a line of its own: Dagster's message begins with a stack trace.

    Raises:
        DebriefError: It failed.
    """
    try:
        yield
    except DebriefError as error:
        if log is not None:
            log.error(str(error))
        raise


class Stages(dg.ConfigurableResource):  # type: ignore[type-arg]
    """What the stages of a run work with."""

    lake: LakeForm = LakeForm()  # type: ignore[valid-type]
    sessions: SessionsForm = SessionsForm()  # type: ignore[valid-type]
    evaluator: EvaluatorForm = EvaluatorForm()  # type: ignore[valid-type]
    scope: ScopeForm = ScopeForm()  # type: ignore[valid-type]

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["Stages"]:
        """Let one run at a time work on a local lake, so that no two ask a model the same.

        Where workers take runs, or the lake is in an object store, Dagster's pools do that. Runs
        of one instance wait in its queue; a command's run or one of another instance waits here.

        Raises:
            ConfigurationError: settings name no such lake.
            DebriefError: another run has the lake and does not end.
        """
        with explained(context.log), ExitStack() as held:
            settings, lake, run = load_settings(), self.open_lake(), context.run
            if run is not None and "://" not in lake.url and settings.launch != "queue":
                say = context.log.info if context.log else None
                writer = f"run {run.run_id}"
                held.enter_context(only_writer(settings.home, lake.url, writer, say))
            release = held.pop_all()
        with release:
            yield self

    @property
    def options(self) -> StageOptions:
        """Return what is configured, for the library."""
        names = StageOptions.model_fields
        return StageOptions.model_validate(
            {name: getattr(self, name).model_dump() for name in names}
        )

    def open_lake(self) -> Lake:
        """Return the lake.

        Raises:
            ConfigurationError: settings name no such lake.
        """
        return self.options.lake.open()

    def run(self, context: dg.AssetExecutionContext, weeks: Sequence[str] = ()) -> StageRun:
        """Return what the stages of a run share; its retries share the limits of models.

        Raises:
            ConfigurationError: settings name no such lake.
            InputError: a condition cannot be read.
        """
        run = context.run
        options = self.options
        return StageRun.of(options.lake.open(), options, weeks, run.run_id, account_of(run))


def account_of(run: dg.DagsterRun) -> str:
    """Return the run that spending is counted under: of one that was retried, the first.

    A retry by Dagster goes on with the first run's limit; a person who runs it again has a new
    one.
    """
    return ("dagster/retry_number" in run.tags and run.root_run_id) or run.run_id
