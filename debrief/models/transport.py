"""Bring the replies of providers into the form that DSPy's client reads, before it reads them.

It refuses a whole answer that was paid for, where a count of its tokens is a text, and it knows
neither other encodings than UTF-8 nor every header that names when a limit resets.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.message import Message
from typing import Any

from dspy._vendor.lm15.transports import StdlibTransport
from dspy._vendor.lm15.transports._types import TransportRequest, TransportResponse
from dspy.lm15 import ProviderError

from debrief.models.rate_limits import seconds_until_open
from debrief.models.usage import count_of
from debrief.sessions.readers.documents import mend

_BUSY = (429, 503)
_SHOWN = 80
_FRAMES = ("data:", "event:", "id:", ": ")
"""What a stream of events begins with."""


class UnreadableReplyError(ProviderError):  # type: ignore[misc]
    """A reply that came whole and is no answer, as a stream and a tool's call are none."""


class ReplyTransport(StdlibTransport):  # type: ignore[misc]
    """Sends requests, and returns each reply whole, in UTF-8 and with counts that are numbers."""

    def stream(self, request: TransportRequest) -> TransportResponse:
        """Send one request and return its reply.

        Raises:
            UnreadableReplyError: the reply came whole and will never be an answer.
        """
        with super().stream(request) as reply:
            body = reply.read()
        headers = list(reply.headers)
        if reply.status < 400:
            body = _readable(body, reply.header("content-type") or "", reply.status)
        elif reply.status in _BUSY and not reply.header("retry-after"):
            wait = seconds_until_open(headers, body, datetime.now(UTC))
            headers += [] if wait is None else [("retry-after", f"{wait:.3f}")]
        return TransportResponse(
            status=reply.status,
            reason=reply.reason,
            headers=headers,
            http_version=reply.http_version,
            chunks=iter([body]),
            release=lambda _: None,
        )


def _readable(body: bytes, kind: str, status: int) -> bytes:
    """Return a reply as JSON in UTF-8 that has a number for each count; as it is where it is no
    JSON, and may be one when asked for again: a gateway's page, half an answer, nothing.

    Raises:
        UnreadableReplyError: it is no JSON and is not likely to be one the next time.
    """
    text = _decoded(body, kind)
    start = text.lstrip("\ufeff \t\r\n")
    try:
        return json.dumps(mend(_counted(json.loads(start)))).encode()
    except RecursionError:
        raise UnreadableReplyError("its reply is nested too deeply", status=status) from None
    except json.JSONDecodeError as error:
        is_stream = "text/event-stream" in kind.casefold() or start.startswith(_FRAMES)
        is_cut = start.startswith("{") and not error.msg.startswith("Extra data")
        if start and not start.startswith("<") and (is_stream or not is_cut):
            what = "a stream, which was not asked for" if is_stream else "something else than JSON"
            said = f"it replied with {what}: {start[:_SHOWN]!r}"
            raise UnreadableReplyError(said, status=status) from None
        return body
    except ValueError:
        raise UnreadableReplyError("its reply holds an endless number", status=status) from None


def _decoded(body: bytes, kind: str) -> str:
    """Return a reply's text by the encoding that it has, or else says that it has."""
    header = Message()
    header["content-type"] = kind
    named = header.get_content_charset("")
    for encoding in (json.detect_encoding(body), named):
        try:
            return body.decode(encoding)
        except (LookupError, UnicodeDecodeError):
            continue
    return body.decode("utf-8", "replace")


def _counted(value: Any) -> Any:
    """Return a reply whose counts of tokens are whole numbers; one that is none is left out."""
    if not isinstance(value, dict):
        return value
    named = {name: value[name] for name in ("usage", "usageMetadata") if name in value}
    return {**value, **{name: _counts(each) for name, each in named.items()}}


def _counts(usage: Any) -> dict[str, Any]:
    counts: dict[str, Any] = {}
    for name, value in usage.items() if isinstance(usage, dict) else ():
        if "details" in name.casefold():
            counts[name] = _counts(value)
        elif "token" in name.casefold():
            counts[name] = count_of(value)
        else:
            counts[name] = value
    return {name: value for name, value in counts.items() if value is not None}
