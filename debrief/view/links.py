"""The address of each page, made in one place, so that every link to it is the same."""

from __future__ import annotations

from urllib.parse import quote, urlencode


def session_path(session_id: str, turn: int | None = None, call: int | None = None) -> str:
    """Return the path of a session's page; of one turn, and of its ``call``-th call from 1."""
    anchor = "" if turn is None else f"#turn-{turn}" + ("" if call is None else f"-call-{call}")
    return f"/sessions/{_part(session_id)}{anchor}"


def sessions_path(**filters: object) -> str:
    """Return the path of the list of sessions, filtered as its form does; empty ones are left out.

    >>> sessions_path(task="shop", week="", q="a b")
    '/sessions?task=shop&q=a+b'
    """
    chosen = {name: value for name, value in filters.items() if value not in ("", None)}
    return f"/sessions?{urlencode(chosen)}" if chosen else "/sessions"


def prompts_path() -> str:
    """Return the path of the list of prompts."""
    return "/prompts"


def prompt_path(fingerprint: str) -> str:
    """Return the path of a prompt's page."""
    return f"/prompts/{_part(fingerprint)}"


def diff_path(before: str, after: str) -> str:
    """Return the path of the difference between two prompts, by their fingerprints."""
    return f"/prompts/{_part(before)}/diff/{_part(after)}"


def rubrics_path() -> str:
    """Return the path of the rubrics' page."""
    return "/rubrics"


def rubric_path(score_name: str, key: str) -> str:
    """Return the path of a rubric's page, or of a candidate's."""
    return f"/rubrics/{_part(score_name)}/{_part(key)}"


def weeks_path() -> str:
    """Return the path of the list of weeks."""
    return "/weeks"


def week_path(week: str) -> str:
    """Return the path of a week's page; the week is its Monday."""
    return f"/weeks/{_part(week)}"


def training_path() -> str:
    """Return the path of the list of training sets."""
    return "/training"


def training_set_path(task: str, pair: str) -> str:
    """Return the path of a training set's page; ``pair`` is its two fingerprints."""
    return f"/training/{_part(task)}/{_part(pair)}"


def label_next_path() -> str:
    """Return the path of the session whose label would teach most."""
    return "/labels/next"


def labels_path(session_id: str) -> str:
    """Return the path that labels of a session are posted to."""
    return f"{session_path(session_id)}/labels"


def advice_path() -> str:
    """Return the path of the proposed lines for a prompt."""
    return "/advice"


def _part(text: str) -> str:
    return quote(text, safe="")
