"""The address of each page, made in one place, so that every link to it is the same."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from debrief.settings import load_settings


def page_path(*parts: str) -> str:
    """Return the path of a page by its parts, none of which can lead out of its place.

    >>> page_path("training", "shop/cart", "0aaad855-0bbbd855")
    '/training/shop%2Fcart/0aaad855-0bbbd855'
    """
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def address(path: str) -> str:
    """Return where people reach a page, by its path."""
    return load_settings().view_url.rstrip("/") + path


def session_path(session_id: str, turn: int | None = None) -> str:
    """Return the path of a session's page, or of one of its turns."""
    return page_path("sessions", session_id) + ("" if turn is None else f"#turn-{turn}")


def sessions_path(**filters: object) -> str:
    """Return the path of the list of sessions, filtered as its form does; empty ones are left out.

    >>> sessions_path(task="shop", week="", q="a b")
    '/sessions?task=shop&q=a+b'
    """
    chosen = {name: value for name, value in filters.items() if value not in ("", None)}
    return f"/sessions?{urlencode(chosen)}" if chosen else "/sessions"
