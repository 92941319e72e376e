"""A message about a run to a webhook, in the form that Slack's incoming webhooks take.

Whatever goes wrong is logged and costs the run nothing. The address itself is a secret and is
never logged; the server's name is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import urlsplit

from debrief.redaction.redactor import Redactor
from debrief.settings import Settings

UI_URL = "DEBRIEF_UI_URL"
"""The setting that says where Dagster's UI is, for links."""
LONGEST = 3_000
"""Characters of a message."""
ATTEMPTS = 3
SECONDS = 10.0
"""For one attempt."""
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})


def webhook_of(settings: Settings) -> str:
    """Return the address that messages go to; empty when there is none, or it is switched off."""
    return settings.webhook_url if settings.webhook else ""


def send(
    url: str,
    text: str,
    redactor: Redactor,
    *,
    timeout: float = SECONDS,
    pause: float = 1.0,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Send a message, and return why it did not arrive; empty when it did.

    Args:
        url: the webhook.
        text: the message; secrets are taken out of it, and it is cut to ``LONGEST``.
        redactor: takes the secrets out.
        timeout: seconds for one of three attempts.
        pause: seconds before the second attempt, doubled before the third.
        sleep: waits.
    """
    import httpx

    try:
        place = urlsplit(url)
        known = place.scheme in ("http", "https") and bool(place.hostname)
    except ValueError:
        known = False
    if not known:
        return "DEBRIEF_WEBHOOK_URL is no address of a web server"
    body = {"text": _cut(redactor.redact(text).text)}
    reason = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            sleep(pause * 2 ** (attempt - 1))
        try:
            status = httpx.post(url, json=body, timeout=timeout).status_code
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            reason = f"{place.hostname} could not be reached: {type(error).__name__}"
            continue
        if status < 300:
            return ""
        reason = f"{place.hostname} answered {status}"
        if status not in _BUSY:
            break
    return reason


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
