"""The webhook that is sent how a week was, or why a run failed."""

from logging import Logger

import dagster as dg
from pydantic import Field

from debrief.redaction.redactor import Redactor, key_of
from debrief.settings import load_settings
from debrief.weekly import send, webhook_of


class WebhookResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Whether messages are sent; where to, DEBRIEF_WEBHOOK_URL says."""

    enabled: bool = Field(default=True, description="False sends nothing, whatever is configured.")

    def send(self, log: Logger, text: str, run_id: str) -> None:
        """Send a message about a run, with a link to it; a failure is a warning."""
        settings = load_settings()
        url = webhook_of(settings)
        if not self.enabled or not url:
            return
        ui = settings.ui_url.rstrip("/")
        link = f"{ui}/runs/{run_id}" if ui else f"(run {run_id})"
        problem = send(url, f"{text} {link}", Redactor(key_of(settings)))
        if problem:
            log.warning(f"no message was sent: {problem}")
