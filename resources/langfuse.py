"""The Langfuse server as Dagster configures it."""

from typing import Literal

import dagster as dg
from pydantic import Field

from debrief.langfuse.client import LangfuseClient, langfuse_from_settings
from debrief.langfuse.scores import WriteOptions
from debrief.settings import load_settings


class LangfuseResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Whether scores are written to a server; which one, the environment says."""

    enabled: bool = Field(
        default=True, description="False keeps scores local even where a server is configured."
    )

    score_target: Literal["session", "trace"] = Field(
        default="session",
        description=(
            "What scores hang on: the session, or its first trace, for servers without session "
            "scores."
        ),
    )
    rescored: Literal["replace", "keep"] = Field(
        default="replace",
        description="What becomes of another scorer's scores once the new ones are there.",
    )

    def options(self) -> WriteOptions:
        """Return how scores are written."""
        return WriteOptions(score_target=self.score_target, rescored=self.rescored)

    def open(self) -> LangfuseClient | None:
        """Return a client; None when no server is configured.

        A server is configured by LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY.
        """
        settings = load_settings()
        is_asked = self.enabled and settings.has_langfuse
        return langfuse_from_settings(settings) if is_asked else None
