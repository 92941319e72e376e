"""The Langfuse server as Dagster configures it."""

import dagster as dg
from pydantic import Field

from debrief.langfuse.client import LangfuseClient, langfuse_from_settings
from debrief.settings import load_settings


class LangfuseResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Whether scores are written to a server; which one, the environment says."""

    enabled: bool = Field(
        default=True, description="False keeps scores local even where a server is configured."
    )

    def open(self) -> LangfuseClient | None:
        """Return a client; None when no server is configured.

        A server is configured by LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY.
        """
        return langfuse_from_settings(load_settings()) if self.enabled else None
