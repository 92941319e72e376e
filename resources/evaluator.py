"""Who judges, scores and mines: language models, or the offline evaluator."""

from pathlib import Path

import dagster as dg
from pydantic import Field

from debrief.evaluators import Evaluators, make_evaluators
from debrief.settings import load_settings


class EvaluatorResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The choice between models and the offline evaluator; never a silent one."""

    offline: bool = Field(
        default=False,
        description="Ask no model: the deterministic offline evaluator. Also DEBRIEF_OFFLINE=1.",
    )
    model: str = Field(
        default="",
        description=(
            "A LiteLLM model name that answers for every judge, dimension and rubric. Empty: "
            "DEBRIEF_MODEL, else the model that each judge's file names."
        ),
    )

    repository: str = Field(
        default="",
        description=(
            "A repository on this machine whose own `.debrief/judges` win over the project's, and "
            "whose `human_feedback.md` files are read."
        ),
    )
    max_cost_usd: float | None = Field(
        default=None,
        description=(
            "No new call once the run, with the runs that it retries, has spent so much; the next "
            "run makes what was left out. Empty: DEBRIEF_MAX_COST_USD, else no limit."
        ),
    )
    max_calls: int | None = Field(
        default=None,
        description="No new call after so many. Empty: DEBRIEF_MAX_CALLS, else no limit.",
    )
    dry_run: bool = Field(
        default=False,
        description=(
            "Ask nothing and write nothing: each stage's metadata says what asking would take."
        ),
    )

    def open(self, run: dg.DagsterRun | None = None) -> Evaluators:
        """Return whoever is configured.

        Args:
            run: its stages and processes share the limits, and so do its retries.

        Raises:
            ConfigurationError: a model is needed and no key for it is set.
        """
        settings = load_settings()
        offline = self.offline or (not self.model and settings.offline)
        return make_evaluators(
            settings,
            offline=offline,
            model=self.model,
            repository=self.repository_folder(),
            max_cost_usd=self.max_cost_usd,
            max_calls=self.max_calls,
            run=run.run_id if run is not None else "",
            account=account_of(run) if run is not None else "",
            dry_run=self.dry_run,
        )

    def repository_folder(self) -> Path | None:
        """Return the repository; None without one."""
        return Path(self.repository).expanduser() if self.repository else None


def account_of(run: dg.DagsterRun) -> str:
    """Return the run that spending is counted under: of one that was retried, the first.

    A retry by Dagster goes on with the first run's limit; a person who runs it again has a new
    one.
    """
    return ("dagster/retry_number" in run.tags and run.root_run_id) or run.run_id
