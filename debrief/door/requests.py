"""Tell requests that our own pages sent from those that another site made a browser send.

Any page that a person has open can send requests to this machine, and one whose name is made to
resolve to 127.0.0.1 would be taken for ours. So a request is answered by its host name, and what
it may do follows from where it was sent from (`Fetch metadata`_, which every current browser sends
to trustworthy addresses, else the origin).

.. _Fetch metadata: https://www.w3.org/TR/fetch-metadata/
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers

from debrief.door.refusal import Refusal
from debrief.settings import Settings, variable_of

LOCAL = ("127.0.0.1", "localhost", "::1")
SAFE = ("GET", "HEAD")
_JSON = "application/json"


def own_hosts(settings: Settings) -> frozenset[str]:
    """Return the names by which people may ask for the pages."""
    named = host_of(settings.view_url)
    return frozenset({*LOCAL, *settings.hosts, *([named] if named else [])})


def host_of(address: str) -> str | None:
    """Return the host name in an address; None if there is none."""
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def refusal_of(
    kind: str, method: str, headers: Headers, hosts: frozenset[str], *, is_graphql: bool
) -> Refusal | None:
    """Return why a request is refused; None if it may pass.

    Args:
        kind: ``http`` or ``websocket``, as ASGI has it.
        method: of the request.
        headers: of the request.
        hosts: of ``own_hosts``.
        is_graphql: it is for Dagster's GraphQL, which obeys whatever reaches it, a GET as well.
    """
    host = headers.get("host", "")
    if host_of(f"//{host}") not in hosts:
        return Refusal(421, f"{host!r} is no name of these pages; {_NAMES} can add it.")
    if kind == "websocket":
        return None if _has_own_origin(headers, host) else _from_elsewhere("listen")
    if is_graphql:
        # A page's form cannot send this type, and its script only after a question that is refused.
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method != "POST" or media_type != _JSON:
            return Refusal(403, f"GraphQL takes a POST of {_JSON} only, from pages of {_SETTINGS}.")
        if _is_a_program(headers):
            return None
    if method not in SAFE:
        return None if _is_same_origin(headers, host) else _from_elsewhere("change anything")
    return None if _is_own_or_a_link(headers) else _from_elsewhere("load this")


_NAMES = variable_of("hosts")
_SETTINGS = f"{variable_of('view_url')} and {_NAMES}"


def _from_elsewhere(what: str) -> Refusal:
    return Refusal(403, f"Only pages of {_SETTINGS} may {what}; this was asked from elsewhere.")


def _has_own_origin(headers: Headers, host: str) -> bool:
    try:
        return urlsplit(headers.get("origin", "")).netloc == host
    except ValueError:
        return False


def _is_a_program(headers: Headers) -> bool:
    """Return whether a POST comes from no browser: each browser says where it was asked."""
    return "origin" not in headers and "sec-fetch-site" not in headers


def _is_same_origin(headers: Headers, host: str) -> bool:
    if site := headers.get("sec-fetch-site"):
        return site == "same-origin"
    return _has_own_origin(headers, host)


def _is_own_or_a_link(headers: Headers) -> bool:
    """Return whether a person asks, or a page of ours, or somebody follows a link to here."""
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    mode, place = (headers.get(f"sec-fetch-{name}") for name in ("mode", "dest"))
    return (mode, place) == ("navigate", "document")
