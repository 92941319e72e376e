"""Who judges, scores and mines: language models, or the offline evaluator."""

import dagster as dg
from pydantic import Field

from debrief.evaluators import Evaluators, make_evaluators
from debrief.settings import load_settings
from resources.attendance import account_of


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

    max_cost_usd: float | None = Field(
        default=None,
        description=(
            "No new call once the run, or the run of the whole graph that it is part of, has "
            "spent so much; what is left out is made up for by the next run. Empty: "
            "DEBRIEF_MAX_COST_USD, else no limit."
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
            run: its stages and processes share the limits, and so do all runs that one run of the
                whole graph launches, and the runs that take up what a killed one left.

        Raises:
            ConfigurationError: a model is needed and no key for it is set.
        """
        settings = load_settings()
        offline = self.offline or (not self.model and settings.offline)
        return make_evaluators(
            settings,
            offline=offline,
            model=self.model,
            max_cost_usd=self.max_cost_usd,
            max_calls=self.max_calls,
            run=run.run_id if run is not None else "",
            account=account_of(run) if run is not None else "",
            dry_run=self.dry_run,
        )
