"""Parse and run the query of a session list: search, filters, sorting, page."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import without_controls
from debrief.keys import is_week
from debrief.scoring.dimensions import BY_NAME
from debrief.scoring.order import LOOK_FIRST
from debrief.scoring.verdict import BASIS_LABELS, VERDICT_LABELS, VERDICT_NAMES, WORST_FIRST
from debrief.view.index import Index
from debrief.view.indexed import SessionRow
from debrief.view.links import sessions_path
from debrief.view.values import number_of, refused

if TYPE_CHECKING:
    from debrief.scoring.verdict import Basis, VerdictName

ON_A_PAGE = 50
_EQUAL = (
    *("verdict", "basis", "scored_by"),
    *("task", "tool", "model", "fingerprint", "week", "source", "repository"),
)
"""Filters that name one value of the column of their name."""
SCORES = ("quality", *BY_NAME, "judges")
_MEASURES = ("turns", "tokens", "seconds", "lines_added", "lines_removed", "spent_usd", "cost_usd")
_LIMITS: Mapping[str, tuple[str, str]] = {
    f"{column}_{side}": (column, sign)
    for column in (*SCORES, "place", "probability", *_MEASURES)
    for side, sign in (("min", ">="), ("max", "<="))
}
"""Filters that limit a column, with how they do."""
_SHORT = "verdict IN ('failed', 'partial')"
_FLAGS = {
    "first": (f"place < {LOOK_FIRST}", "look at these first"),
    "failed": ("failed != ''", "failed"),
    "unpriced": ("spent_usd IS NULL", "cost not known"),
}
"""Filters that are set or not, with what they ask for, in SQL and in words."""
_NO_VERDICT = {"none": ("verdict = ''", "not scored"), "short": (_SHORT, "not done, or partly")}
"""What a filter of verdicts may ask for beside one of them."""
_FILTERS = ("q", *_EQUAL, *_LIMITS, "outcome", "label", "trouble", "since", *_FLAGS)
"""Every parameter of an address that leaves sessions out. ``verdict`` may be ``none`` or ``short``
too, ``repository`` ``none``; ``outcome`` is ``yes``, ``no``, or ``none``: nothing is known of what
became of the work; ``label`` what somebody said, ``any`` or ``none``; ``trouble`` an id; ``since``
a day."""
SORTS: Mapping[str, str] = {
    "verdict": "verdict, not done first",
    "-verdict": "verdict, done and checked first",
    "place": "look at these first",
    "-started": "newest",
    "started": "oldest",
    "quality": "mean of dimensions, lowest first",
    "-quality": "mean of dimensions, highest first",
    **{name: name.replace("_", " ") for name in BY_NAME},
    "judges": "judges",
    "-tokens": "most tokens",
    "-turns": "most turns",
    "-seconds": "longest",
    "-spent_usd": "dearest",
    "-lines_added": "most lines added",
    "-lines_removed": "most lines removed",
    "-cost_usd": "dearest to score",
    "title": "title",
    "task": "task",
    "tool": "tool",
    "model": "model",
    "fingerprint": "prompts",
    "match": "best match",
}
"""Sort orders and their names; any column of a list may be given, with a minus for descending."""
DEFAULT = "verdict"
_BY_VERDICT = " ".join(
    f"WHEN '{name}' THEN {number}"
    for number, name in enumerate(name for name in WORST_FIRST if name != "undetermined")
)
_SORTED_BY = {"verdict": f"(CASE verdict {_BY_VERDICT} END)"}
"""What SQL sorts by instead of a column's own values; sessions that cannot be told come last."""
_SET, _NOT_SET = ("1", "on", "yes"), ("0", "off", "no")
_FIXED: Mapping[str, Collection[str]] = {
    "verdict": (*VERDICT_NAMES, *_NO_VERDICT),
    "basis": tuple(BASIS_LABELS),
    "outcome": ("yes", "no", "none"),
}
"""Filters whose values are the same on every lake."""
_BESIDE = {"repository": ("none",), "label": ("any", "none")}
"""What a filter may ask for beside a value that a session has."""
_KNOWN = {
    **{name: (name, "sessions") for name in _EQUAL if name not in _FIXED},
    "label": ("said", "labels"),
    "trouble": ("trouble", "events"),
}
"""Columns and tables of the filters whose values are the lake's."""
_HIGHEST, _MOST_PAGES = 1e15, 999_999
_COLUMNS = frozenset(SessionRow.__struct_fields__)
_MOST_WORDS = 32
"""Words and phrases of a search that count."""
_WORD = re.compile(r'"([^"]*)"|(\S+)')
MARK, UNMARK = "\ue000", "\ue001"
"""Around what was found, in an excerpt."""


class ListQuery(Struct, frozen=True, kw_only=True):
    """A list of sessions that somebody asked for."""

    filters: dict[str, str] = {}
    """By parameter of the address; none is empty."""
    sort: str = DEFAULT
    page: int = 1

    def with_(self, **changes: Any) -> str:
        """Return the address of the list, from its first page on, with some parameters changed."""
        sort = "" if self.sort == DEFAULT else self.sort
        return sessions_path(**{**self.filters, "sort": sort, **changes})

    @property
    def is_limited(self) -> bool:
        """Return whether the range of a column is limited."""
        return any(name in _LIMITS for name in self.filters)

    @property
    def chosen(self) -> list[tuple[str, str]]:
        """Return each filter in words, with the address of the list without it."""
        return [(self.words_of(name), self.with_(**{name: ""})) for name in self.filters]

    def words_of(self, name: str) -> str:
        """Return a filter that is set, in words."""
        return _in_words(name, self.filters[name])


def _in_words(name: str, value: str) -> str:
    if name in _LIMITS:
        column, sign = _LIMITS[name]
        return f"{column.replace('_', ' ')} {'≥' if sign == '>=' else '≤'} {value}"
    if name in _FLAGS:
        return _FLAGS[name][1]
    words = {
        "q": f"“{value}”",
        "since": f"since {value}",
        "scored_by": f"scored by {value}",
        "verdict": _NO_VERDICT.get(
            value, ("", VERDICT_LABELS.get(cast("VerdictName", value), value))
        )[1],
        "trouble": "with one trouble",
        "basis": BASIS_LABELS.get(cast("Basis", value), value),
    }
    return words.get(name, f"{name}: {value}")


def query_of(parameters: Mapping[str, str]) -> ListQuery:
    """Read a query from an address; an empty value is none.

    Raises:
        HTTPException: a value is wrong by its form, or is none of a fixed list.
    """
    stripped = ((name, without_controls(text).strip()) for name, text in parameters.items())
    given = {name: text for name, text in stripped if text}
    filters = {name: _value(name, given[name]) for name in _FILTERS if name in given}
    sort = given.get("sort", DEFAULT)
    if sort != "match" and sort.removeprefix("-") not in _COLUMNS:
        raise refused("sort", sort, "is no column to sort by", SORTS)
    return ListQuery(
        filters={name: value for name, value in filters.items() if value},
        sort=sort,
        page=number_of("page", given.get("page", "1"), least=1, most=_MOST_PAGES),
    )


def _value(name: str, text: str) -> str:
    """Return a filter's value as addresses have it; empty for a flag that is not set.

    Raises:
        HTTPException: it is none.
    """
    if name in _LIMITS:
        return _number(name, text)
    if name in _FLAGS:
        if text not in _SET and text not in _NOT_SET:
            raise refused(name, text, "is neither set nor not", (*_SET, *_NOT_SET))
        return "1" if text in _SET else ""
    if name == "since":
        return _day(name, text)
    if name == "week" and not is_week(text):
        raise refused(name, text, "is no week: a week is named by its Monday, such as 2026-11-16")
    if text not in (known := _FIXED.get(name, (text,))):
        raise refused(name, text, "is not known", known)
    return text


def _number(name: str, text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        number = math.inf
    if not abs(number) < _HIGHEST:
        raise refused(name, text, "is no number")
    return f"{number:g}"


def _day(name: str, text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise refused(name, text, "is no day, such as 2026-11-16") from None


def check_known(index: Index, query: ListQuery) -> None:
    """Refuse a filter for a value that no session has.

    While sessions are still being read, nobody knows.

    Raises:
        HTTPException: no session has it.
    """
    if index.progress.is_behind:
        return
    for name, value in query.filters.items():
        if name not in _KNOWN or value in _BESIDE.get(name, ()):
            continue
        column, table = _KNOWN[name]
        if index.select(f"SELECT 1 FROM {table} WHERE {column} = ? LIMIT 1", (value,)):
            continue
        known = index.select(
            f"SELECT {column} FROM {table} WHERE {column} != '' "
            f"GROUP BY {column} ORDER BY count(*) DESC, {column}"
        )
        raise refused(name, value, "is of no session", (row[0] for row in known))


class FoundSessions(Struct, frozen=True, kw_only=True):
    """A page of a list."""

    query: ListQuery
    sessions: list[SessionRow]
    excerpts: dict[str, str]
    """By id, the words around what was searched for, which is between ``MARK`` and ``UNMARK``."""
    total: int
    """On all pages."""

    @property
    def first(self) -> int:
        """Return the number of the first session on the page, from 1."""
        return (self.query.page - 1) * ON_A_PAGE + 1

    @property
    def pages(self) -> int:
        """Return how many pages there are."""
        return max(1, -(-self.total // ON_A_PAGE))


def search(index: Index, query: ListQuery) -> FoundSessions:
    """Return the page of sessions that a query asks for."""
    where, values = _condition(query.filters)
    total = index.select(f"SELECT count(*) FROM sessions WHERE {where}", values)[0][0]
    query = replace(query, page=min(query.page, max(1, -(-total // ON_A_PAGE))))
    start = (query.page - 1) * ON_A_PAGE
    column, is_falling = query.sort.removeprefix("-"), query.sort.startswith("-")
    order = _order(column, is_falling=is_falling)
    tables = "sessions"
    if column == "match" and "words" in values:
        tables = "texts JOIN sessions ON sessions.number = texts.rowid"
        where, order = f"texts MATCH :words AND {where}", "rank, started DESC"
    elif column == "match":
        order = "started DESC, id"
    names = ", ".join(f"sessions.{name}" for name in SessionRow.__struct_fields__)
    rows = index.select(
        f"SELECT number, {names} FROM {tables} WHERE {where} ORDER BY {order} "
        f"LIMIT {ON_A_PAGE} OFFSET {start}",
        values,
    )
    excerpts: dict[str, str] = {}
    if rows and "words" in values:
        numbers = ", ".join(str(row["number"]) for row in rows)
        texts = index.select(
            "SELECT sessions.id, snippet(texts, -1, ?, ?, '…', 24) "
            "FROM texts JOIN sessions ON sessions.number = texts.rowid "
            f"WHERE texts MATCH ? AND texts.rowid IN ({numbers})",
            (MARK, UNMARK, values["words"]),
        )
        excerpts = dict(map(tuple, texts))
    sessions = [msgspec.convert(dict(row), SessionRow, strict=False) for row in rows]
    return FoundSessions(query=query, sessions=sessions, excerpts=excerpts, total=total)


def _order(column: str, *, is_falling: bool) -> str:
    """Return what SQL sorts by; sessions without a value come last, of equal ones those to look at
    first, then the newest."""
    value, way = _SORTED_BY.get(column, column), "DESC" if is_falling else "ASC"
    then = f"place IS NULL, place {way}, " if column == "verdict" else ""
    return f"{value} IS NULL, {value} {way}, {then}started DESC, id"


def _condition(filters: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Return what filters ask for as an SQL expression, with its values by name."""
    parts, values = [], dict[str, Any](filters)
    for name, value in filters.items():
        if name == "verdict" and value in _NO_VERDICT:
            parts.append(_NO_VERDICT[value][0])
        elif name in _FLAGS:
            parts.append(_FLAGS[name][0])
        elif name == "repository":
            parts.append("repository = iif(:repository = 'none', '', :repository)")
        elif name in _EQUAL:
            parts.append(f"{name} = :{name}")
        elif name in _LIMITS:
            column, sign = _LIMITS[name]
            parts.append(f"{column} {sign} :{name}")
            values[name] = float(value)
        elif name == "outcome":
            parts.append("outcome = iif(:outcome = 'none', '', :outcome)")
        elif name == "label" and value in ("any", "none"):
            parts.append("labels != ''" if value == "any" else "labels = ''")
        elif name == "label":
            parts.append("id IN (SELECT session_id FROM labels WHERE said = :label)")
        elif name == "trouble":
            parts.append("id IN (SELECT session_id FROM events WHERE trouble = :trouble)")
        elif name == "since":
            parts.append("started >= :since")
        elif words := _full_text(value):
            parts.append("number IN (SELECT rowid FROM texts WHERE texts MATCH :words)")
            values["words"] = words
    return " AND ".join(parts) or "true", values


def _full_text(q: str) -> str:
    """Return what FTS5 searches for: each word and each phrase, none of it as an operator."""
    texts = ((phrase or word).replace('"', " ") for phrase, word in _WORD.findall(q))
    searched = (f'"{text}"' for text in texts if any(char.isalnum() for char in text))
    return " ".join(islice(searched, _MOST_WORDS))


def choices_of(index: Index) -> dict[str, list[tuple[str, int]]]:
    """Return what the filters offer: values with how many sessions have them.

    The most used come first, weeks by their date.
    """
    offered = {
        column: index.select(
            f"SELECT {column}, count(*) FROM sessions WHERE {column} != '' "
            f"GROUP BY {column} ORDER BY {'1 DESC' if column == 'week' else '2 DESC, 1'}"
        )
        for column in ("verdict", "scored_by", "task", "tool", "model", "fingerprint", "week")
    }
    offered["label"] = index.select(
        "SELECT said, count(DISTINCT session_id) FROM labels GROUP BY said"
    )
    offered["failed"] = index.select("SELECT 'failed', count(*) FROM sessions WHERE failed != ''")
    offered["first"] = index.select(f"SELECT 1, count(*) FROM sessions WHERE place < {LOOK_FIRST}")
    return {name: [(row[0], row[1]) for row in rows] for name, rows in offered.items()}
