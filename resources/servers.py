"""The resources for servers that a run writes to: Langfuse and a webhook."""

from logging import Logger
from typing import Literal

import dagster as dg
from pydantic import Field

from debrief.langfuse.client import LangfuseClient, langfuse_from_settings
from debrief.langfuse.scores import WriteOptions
from debrief.redaction.redactor import redactor_of
from debrief.settings import DAGSTER_PATH, load_settings
from debrief.weekly import send


class LangfuseResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Whether scores are written to a server; which one, the environment says."""

    enabled: bool = Field(
        default=True, description="False keeps scores local even where a server is configured."
    )

    score_target: Literal["", "session", "trace"] = Field(
        default="",
        description=(
            "What scores are written on: the session, or its first trace. Empty: what "
            "DEBRIEF_SCORE_TARGET says, else the session."
        ),
    )

    def options(self) -> WriteOptions:
        """Return how scores are written."""
        settings = load_settings()
        return WriteOptions(
            score_target=self.score_target or settings.score_target,
            all_sessions=settings.langfuse_all_scores,
        )

    def open(self) -> LangfuseClient | None:
        """Return a client; None when no server is configured.

        A server is configured by LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY.
        """
        settings = load_settings()
        is_asked = self.enabled and settings.has_langfuse
        return langfuse_from_settings(settings) if is_asked else None


class WebhookResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Whether messages are sent; where to, DEBRIEF_WEBHOOK_URL says."""

    enabled: bool = Field(default=True, description="False sends nothing, whatever is configured.")

    def send(self, log: Logger, text: str, run_id: str) -> None:
        """Send a message about a run, with a link to it; a failure is a warning."""
        settings = load_settings()
        url = settings.webhook_url
        if not (self.enabled and settings.webhook and url):
            return
        link = f"(run {run_id})"
        if "view_url" in settings.model_fields_set:
            link = f"{settings.view_url.rstrip('/')}{DAGSTER_PATH}/runs/{run_id}"
        problem = send(url, f"{text} {link}", redactor_of(settings))
        if problem:
            log.warning(f"no message was sent: {problem}")
