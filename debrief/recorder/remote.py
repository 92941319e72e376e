"""A recorder's API seen from outside: where it is, how patiently it is asked, what it says."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from debrief.errors import ConfigurationError, DebriefError
from debrief.settings import Settings

if TYPE_CHECKING:
    import httpx

URL, TOKEN = "DEBRIEF_RECORDER_URL", "DEBRIEF_RECORDER_TOKEN"
BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers after which the same request may succeed."""
_MOST_SAID = 2_000
_AS = "As https://host[/path]"


class ServerAwayError(DebriefError):
    """The server could not be reached, or stayed busy: the same may succeed later."""


class ServerRefusedError(DebriefError):
    """The server answered, and will answer the same again.

    Args:
        culprit: the server.
        reasons: what it said, in its words.
        next_move: what to do about it.
        status: of its answer.
    """

    def __init__(
        self, culprit: str, reasons: Sequence[str], next_move: str = "", status: int = 0
    ) -> None:
        self.reasons, self.status = list(reasons), status
        lines = self.reasons if len(self.reasons) < 2 else ["", *self.reasons]
        said = "\n  ".join(lines)
        super().__init__(culprit, f"refused ({status}): {said}" if status else said, next_move)

    def __reduce__(self) -> tuple[type[ServerRefusedError], tuple[Any, ...]]:
        return type(self), (self.culprit, self.reasons, self.next_move, self.status)


class Patience(Struct, frozen=True, kw_only=True):
    """How long a server is waited for, in seconds."""

    attempts: int = 6
    """Requests at most for one call."""
    first_wait: float = 1.0
    """Before the second; doubled each time."""
    longest_wait: float = 30.0
    """Between two at most; a server that asks for more is given up on."""
    timeout: float = 60.0
    """For one request and its answer."""
    in_all: float = 180.0
    """After which no further attempt is made."""
    sleep: Callable[[float], None] = time.sleep


class Remote(Struct, frozen=True):
    """An API's address, as ``https://records.example.org``, and a token for it.

    The token is in no error and no log.
    """

    url: str
    token: str

    @property
    def is_local(self) -> bool:
        """It is on this machine."""
        import httpx

        host = httpx.URL(self.url).host
        return host == "localhost" or host.startswith("127.") or host == "::1"

    @property
    def is_exposed(self) -> bool:
        """Whoever is on the way can read the token and the records."""
        return self.url.startswith("http:") and not self.is_local

    def client(self, timeout: float) -> httpx.Client:
        """Return a client that shows the token; a proxy is not asked for this machine.

        Raises:
            ConfigurationError: the certificates or the proxy that this machine names are none.
        """
        import ssl

        import httpx

        # Certificates take long to load. A context without any trusts nobody.
        secure = not self.is_local or self.url.startswith("https:")
        try:
            return httpx.Client(
                base_url=self.url,
                headers={"Authorization": f"Bearer {self.token}"},
                timeout=timeout,
                trust_env=not self.is_local,
                verify=httpx.create_ssl_context()
                if secure
                else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            )
        except OSError as error:
            raise ConfigurationError(
                "SSL_CERT_FILE",
                f"names certificates that cannot be used: {error.strerror or flat(error)}",
                "Correct or unset it, and SSL_CERT_DIR.",
            ) from error
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            # What is wrong with it stays out: a proxy's address may hold a password.
            raise ConfigurationError(
                "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY",
                "names no proxy that can be used",
                "As http://host:port, or name this server in NO_PROXY.",
            ) from error


def remote_of(settings: Settings, scope: Literal["write", "export"]) -> Remote | None:
    """Return the configured API; None where no address is set. Nothing is sent to it yet.

    Args:
        settings: of this machine.
        scope: what the token has to allow, for the advice to who has none.

    Raises:
        ConfigurationError: its address or its token is wrong, or the token is missing.
    """
    import httpx

    url, token = settings.recorder_url, settings.recorder_token
    if not url:
        return None
    try:
        parts = httpx.URL(url)
        parts.raw_host.decode("ascii").encode("idna")
        known = parts.host and (parts.port or 0) < 1 << 16 and not any(map(str.isspace, url))
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ConfigurationError(URL, f"is no address: {flat(error)}", _AS) from error
    if not known or parts.scheme not in ("http", "https") or parts.userinfo or parts.query:
        raise ConfigurationError(URL, "is no plain address of a server", _AS)
    if not token:
        move = f"Set it to a token with the scope {scope}: debrief tokens create NAME"
        raise ConfigurationError(TOKEN, "is not set", f"{move} --scope {scope}")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigurationError(TOKEN, "is no token: it has characters that none has")
    return Remote(url.rstrip("/"), token)


def object_of(answer: httpx.Response) -> Mapping[str, Any]:
    """Return the JSON object that an answer holds; an empty one where it holds none."""
    try:
        told = answer.json()
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def words_of(answer: httpx.Response) -> list[str]:
    """Return what a server says of a refusal: its reasons, or its bare words."""
    told = object_of(answer)
    reasons = told.get("reasons")
    if isinstance(reasons, list) and reasons:
        place = flat(told.get("place") or "")
        said = [flat(reason) for reason in reasons]
        return [f"{place}: {one}" if place else one for one in said]
    text = flat(told.get("detail") or answer.text)[:_MOST_SAID]
    return [text or answer.reason_phrase or "no reason given"]


def flat(value: object) -> str:
    """Return a server's words on one line, without what a terminal would obey."""
    words = " ".join(str(value).split())[:_MOST_SAID]
    return "".join(char if char.isprintable() else "\ufffd" for char in words)
