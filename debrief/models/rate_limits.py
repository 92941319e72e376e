"""When a provider's limit lets questions through again, read from a refusal (HTTP 429).

Each provider says it in its own way: ``x-ratelimit-reset-requests: 6m0s`` (OpenAI, Groq),
``anthropic-ratelimit-requests-reset`` with a moment (Anthropic), ``X-RateLimit-Reset`` in
milliseconds since 1970, and that within the body (OpenRouter), ``retryDelay`` (Gemini).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

_SPAN = re.compile(r"(?:\d{1,9}(?:\.\d{1,12})?(?:ms|us|µs|ns|[dhms]))+", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|[dhms])", re.IGNORECASE)
_SECONDS = {
    **{"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0},
    **{"ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9},
}
_NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,12})?")
_IN_MILLISECONDS, _SINCE_1970 = 1e11, 1e9
"""From here on a number is a moment in milliseconds, or in seconds, and no span."""
_LONGEST = 400 * 86_400.0


def seconds_until_open(
    headers: Iterable[tuple[str, str]], body: bytes, now: datetime
) -> float | None:
    """Return how long a refusal asks to wait, where it has no ``Retry-After``; None if it does not.

    Of several limits, those count of which nothing remains, and of these the one that resets last;
    where it does not say of which, the first to reset.

    Args:
        headers: of the refusal.
        body: of the refusal, where some providers repeat or hide the headers.
        now: with a zone.
    """
    given = [(name.casefold(), value.strip()) for name, value in (*headers, *_in_body(body))]
    remaining = {name: value for name, value in given if "remaining" in name}
    spent: list[float] = []
    others: list[float] = []
    for name, value in given:
        if name == "retry-after":
            if (wait := seconds_until(value, now)) is not None:
                return wait
        elif "ratelimit" in name and "reset" in name:
            wait = seconds_until(value, now)
            if wait is not None:
                left = remaining.get(name.replace("reset", "remaining"), "")
                (spent if left in ("0", "0.0") else others).append(wait)
    if spent:
        return max(spent)
    return min(others, default=None)


def seconds_until(text: str, now: datetime) -> float | None:
    """Return how long it is until the moment that a header names; None when it names none.

    >>> now = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
    >>> seconds_until("6m0s", now), seconds_until("2026-11-26T12:00:30Z", now)
    (360.0, 30.0)
    """
    wait: float | None = None
    if _NUMBER.fullmatch(text):
        number = float(text)
        number /= 1_000.0 if number >= _IN_MILLISECONDS else 1.0
        wait = number - now.timestamp() if number >= _SINCE_1970 else number
    elif _SPAN.fullmatch(text):
        parts = _PART.findall(text)
        wait = sum(float(number) * _SECONDS[unit.casefold()] for number, unit in parts)
    elif (moment := _moment(text)) is not None:
        wait = (moment - now).total_seconds()
    return None if wait is None or wait > _LONGEST else max(0.0, wait)


def moment_after(seconds: float) -> str:
    """Return the moment some seconds from now as messages name it, its minute rounded up."""
    moment = datetime.now(UTC) + timedelta(seconds=seconds + 59)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _moment(text: str) -> datetime | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, IndexError, TypeError):
            moment = read(text)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _in_body(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield the headers that a refusal repeats in its error, a wait among its details as one."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return
    error = _field(said[0] if isinstance(said, list) and said else said, "error")
    headers = _field(_field(error, "metadata"), "headers")
    for name, value in headers.items() if isinstance(headers, dict) else ():
        yield str(name), str(value)
    details = _field(error, "details")
    for detail in details if isinstance(details, list) else ():
        if delay := _field(detail, "retryDelay"):
            yield "retry-after", str(delay)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
