"""Who judges, scores and mines: language models, or the offline evaluator."""

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

    def open(self) -> Evaluators:
        """Return whoever is configured.

        Raises:
            ConfigurationError: a model is needed and no key for it is set.
        """
        settings = load_settings()
        offline = self.offline or (not self.model and settings.get("DEBRIEF_OFFLINE") == "1")
        return make_evaluators(settings, offline=offline, model=self.model)
