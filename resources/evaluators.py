"""The resource that chooses which model reviews, judges and mines, and its limits."""

import dagster as dg
from msgspec import structs
from pydantic import Field

from debrief.evaluators import Evaluators
from debrief.stages.configuration import EvaluatorChoice

_CHOICE = tuple(field.name for field in structs.fields(EvaluatorChoice))


class EvaluatorResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The choice of the model that reviews, judges and mines, or of none."""

    no_model: bool = Field(
        default=False,
        description="Ask no model, so nothing is reviewed. Also DEBRIEF_NO_MODEL=1.",
    )
    model: str = Field(
        default="",
        description=(
            "A LiteLLM model name that answers for every judge, review and rubric, among those of "
            "DEBRIEF_MODELS. Empty: DEBRIEF_MODEL, else the model that each judge's file names, "
            "else none where no key for these is set."
        ),
    )
    repository: str = Field(
        default="",
        description=(
            "A repository on this machine whose own `.debrief/judges` and `.debrief/prompts` win "
            "over the project's, and whose `human_feedback.md` files are read, among those of "
            "DEBRIEF_REPOSITORIES."
        ),
    )
    max_cost_usd: float | None = Field(
        default=None,
        description=(
            "No new call once the run, with the runs that it retries, has spent so much; the next "
            "run makes what was left out. DEBRIEF_MAX_COST_USD holds where it is lower or this is "
            "empty."
        ),
    )
    max_calls: int | None = Field(
        default=None,
        description=(
            "No new call after so many. DEBRIEF_MAX_CALLS holds where it is lower or this is empty."
        ),
    )
    dry_run: bool = Field(
        default=False,
        description=(
            "Ask nothing and write nothing: each stage's metadata says what asking would take."
        ),
    )

    def choice(self) -> EvaluatorChoice:
        """Return what is configured, for the library."""
        return EvaluatorChoice(**{name: getattr(self, name) for name in _CHOICE})

    def open(self, run: dg.DagsterRun | None = None) -> Evaluators:
        """Return whoever is configured.

        Args:
            run: its stages and processes share the limits, and so do its retries.

        Raises:
            ConfigurationError: settings do not name what is chosen, or a model is needed and no
                key for it is set.
        """
        if run is None:
            return self.choice().open()
        return self.choice().open(run.run_id, account_of(run))


def account_of(run: dg.DagsterRun) -> str:
    """Return the run that spending is counted under: of one that was retried, the first.

    A retry by Dagster goes on with the first run's limit; a person who runs it again has a new
    one.
    """
    return ("dagster/retry_number" in run.tags and run.root_run_id) or run.run_id
