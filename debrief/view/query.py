"""Parse and run the query of a session list: search, filters, sorting, page."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from datetime import date
from itertools import islice
from typing import Any, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import without_controls
from debrief.keys import is_week
from debrief.scoring.verdict import BASIS_LABELS, NOT_REVIEWED, VERDICT_LABELS, VERDICT_NAMES
from debrief.signals.schema import EventKind, WorkKind
from debrief.view.index import Index
from debrief.view.indexed import SessionRow
from debrief.view.links import sessions_path
from debrief.view.values import number_of, refused
from debrief.view.wording import EVENT_LABELS, WORK_LABELS

ON_A_PAGE = 50
_EQUAL = (
    *("verdict", "basis", "reviewer", "work"),
    *("task", "tool", "model", "fingerprint", "week", "source", "repository"),
)
"""Filters that name one value of the column of their name."""
_MEASURES = ("turns", "tokens", "seconds", "lines_added", "lines_removed", "spent_usd", "cost_usd")
_LIMITS: Mapping[str, tuple[str, str]] = {
    f"{column}_{side}": (column, sign)
    for column in _MEASURES
    for side, sign in (("min", ">="), ("max", "<="))
}
"""Filters that limit a column, with how they do."""
_FLAGS = {
    "failed": ("failed != ''", "failed"),
    "unpriced": ("spent_usd IS NULL", "cost not known"),
    "stubs": ("is_stub", "stubs"),
}
"""Filters that are set or not, with what they ask for, in SQL and in words."""
_FILTERS = ("q", *_EQUAL, "event", *_LIMITS, "label", "friction", "facet", "since", *_FLAGS)
"""Every parameter of an address that leaves sessions out. ``verdict`` and ``repository`` may be
``none`` too; ``event`` is a kind, or ``any``; ``label`` what somebody said, ``any`` or ``none``;
``friction`` and ``facet`` an id; ``since`` a day."""
DEFAULT = "look"
"""What a person would want to look at: the most urgent event, how often, then the newest."""
BY_QUALITY: Mapping[str, str] = {
    "-quality": "quality by review, highest first",
    "quality": "quality by review, lowest first",
}
"""Sort orders that only the reviews of a certified reviewer give."""
SORTS: Mapping[str, str] = {
    DEFAULT: "to look at",
    "-started": "newest",
    "started": "oldest",
    "-tokens": "most tokens",
    "-turns": "most turns",
    "-seconds": "longest",
    "-spent_usd": "most expensive",
    "-lines_added": "most lines added",
    "-lines_removed": "most lines removed",
    "-cost_usd": "most expensive to review",
    "title": "title",
    "task": "task",
    "tool": "tool",
    "model": "model",
    "fingerprint": "prompts",
    "match": "best match",
}
"""Sort orders and their names; each column may have a minus, for descending."""
_SORTED = frozenset(name.removeprefix("-") for name in (*SORTS, *BY_QUALITY))
_LOOK = "urgency IS NULL, urgency, event_count DESC, started DESC, id"
_SET, _NOT_SET = ("1", "on", "yes"), ("0", "off", "no")
_FIXED: Mapping[str, Collection[str]] = {
    "verdict": (*VERDICT_NAMES, "none"),
    "basis": tuple(BASIS_LABELS),
    "work": get_args(WorkKind),
    "event": (*get_args(EventKind), "any"),
}
"""Filters whose values are the same on every lake."""
_BESIDE = {"repository": ("none",), "label": ("any", "none")}
"""What a filter may ask for beside a value that a session has."""
_KNOWN = {
    **{name: (name, "sessions") for name in _EQUAL if name not in _FIXED},
    "label": ("said", "labels"),
    "friction": ("friction", "friction"),
    "facet": ("question", "facets"),
}
"""Columns and tables of the filters whose values are the lake's."""


def _words(labels: Mapping[Any, str], **more: str) -> dict[str, str]:
    return {**labels, **more}


_WORDS: Mapping[str, Mapping[str, str]] = {
    "verdict": _words(VERDICT_LABELS, none=NOT_REVIEWED),
    "basis": _words(BASIS_LABELS),
    "work": {name: f"work: {words}" for name, words in WORK_LABELS.items()},
    "event": _words(EVENT_LABELS, any="something to look at"),
}
"""Values of filters in words."""
_HIGHEST, _MOST_PAGES = 1e15, 999_999
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
    if name in _WORDS:
        return _WORDS[name][value]
    words = {
        "q": f"“{value}”",
        "since": f"since {value}",
        "reviewer": f"verdict by {value}",
        "friction": "with one recurring friction",
        "facet": "shows what was asked",
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
    if sort.removeprefix("-") not in _SORTED:
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


def check_known(index: Index, query: ListQuery, certified: Collection[str]) -> None:
    """Refuse a filter for a value that no session has, and to rank what nobody may rank.

    While sessions are still being read, nobody knows which values there are.

    Args:
        index: with the sessions.
        query: that was asked for.
        certified: reviewers whose reviews may be ranked.

    Raises:
        HTTPException: no session has it, or no reviewer is certified.
    """
    if query.sort in BY_QUALITY and not certified:
        raise refused("sort", query.sort, "takes a certified reviewer", SORTS)
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
    """On all pages, stubs left out."""
    stubs: int = 0
    """Sessions without a word and with hardly a call, which the list shows as one line."""

    @property
    def first(self) -> int:
        """Return the number of the first session on the page, from 1."""
        return (self.query.page - 1) * ON_A_PAGE + 1

    @property
    def pages(self) -> int:
        """Return how many pages there are."""
        return max(1, -(-self.total // ON_A_PAGE))


def search(index: Index, query: ListQuery, certified: Collection[str] = ()) -> FoundSessions:
    """Return the page of sessions that a query asks for.

    Args:
        index: with the sessions.
        query: that was asked for.
        certified: reviewers whose reviews may be ranked.
    """
    where, values = _condition(query.filters)
    counts = f"SELECT count(*), ifnull(sum(is_stub), 0) FROM sessions WHERE {where}"
    total, stubs = index.select(counts, values)[0]
    if "stubs" in query.filters:
        stubs = 0
    else:
        where, total = f"{where} AND NOT is_stub", total - stubs
    query = replace(query, page=min(query.page, max(1, -(-total // ON_A_PAGE))))
    start = (query.page - 1) * ON_A_PAGE
    order, ranked = _order(query.sort, certified)
    tables = "sessions"
    if query.sort == "match" and "words" in values:
        tables = "texts JOIN sessions ON sessions.number = texts.rowid"
        where, order = f"texts MATCH :words AND {where}", "rank, started DESC"
    names = ", ".join(f"sessions.{name}" for name in SessionRow.__struct_fields__)
    rows = index.select(
        f"SELECT number, {names} FROM {tables} WHERE {where} ORDER BY {order} "
        f"LIMIT {ON_A_PAGE} OFFSET {start}",
        values | ranked,
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
    if "facet" in query.filters:
        given = "SELECT session_id, answer FROM facets WHERE question = ? AND found"
        excerpts |= dict(map(tuple, index.select(given, (query.filters["facet"],))))
    sessions = [msgspec.convert(dict(row), SessionRow, strict=False) for row in rows]
    return FoundSessions(
        query=query, sessions=sessions, excerpts=excerpts, total=total, stubs=stubs
    )


def to_look_at(index: Index, where: str, values: tuple[str, ...], limit: int) -> list[SessionRow]:
    """Return the sessions with something to look at, the most urgent first.

    Args:
        index: with the sessions.
        where: an SQL expression that they are true for.
        values: of the expression.
        limit: how many at most.
    """
    return index.sessions(f"{where} AND urgency IS NOT NULL", values, _LOOK, limit)


def _order(sort: str, certified: Collection[str]) -> tuple[str, dict[str, str]]:
    """Return what SQL sorts by, with its values by name; sessions without a value come last, of
    equal ones the newest first."""
    column, way = sort.removeprefix("-"), "DESC" if sort.startswith("-") else "ASC"
    if column == DEFAULT:
        return _LOOK, {}
    if column == "match":
        return "started DESC, id", {}
    named: dict[str, str] = {}
    if column == "quality":
        named = {f"reviewer_{number}": name for number, name in enumerate(certified)}
        column = f"iif(reviewed_by IN ({', '.join(f':{name}' for name in named)}), quality, NULL)"
    return f"{column} IS NULL, {column} {way}, started DESC, id", named


def _condition(filters: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Return what filters ask for as an SQL expression, with its values by name."""
    parts, values = [], dict[str, Any](filters)
    for name, value in filters.items():
        if name == "verdict" and value == "none":
            parts.append("verdict = ''")
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
        elif name == "event" and value == "any":
            parts.append("event != ''")
        elif name == "event":
            kinds = "SELECT session_id FROM session_events WHERE kind = :event"
            parts.append(f"id IN ({kinds})")
        elif name == "label" and value in ("any", "none"):
            parts.append("labels != ''" if value == "any" else "labels = ''")
        elif name == "label":
            parts.append("id IN (SELECT session_id FROM labels WHERE said = :label)")
        elif name == "friction":
            parts.append("id IN (SELECT session_id FROM friction WHERE friction = :friction)")
        elif name == "facet":
            asked = "SELECT session_id FROM facets WHERE question = :facet AND found"
            parts.append(f"id IN ({asked})")
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
    columns = ("reviewer", "work", "task", "tool", "model", "fingerprint", "week")
    offered = {
        column: index.select(
            f"SELECT {column}, count(*) FROM sessions WHERE {column} != '' "
            f"GROUP BY {column} ORDER BY {'1 DESC' if column == 'week' else '2 DESC, 1'}"
        )
        for column in columns
    }
    offered["verdict"] = index.select(
        "SELECT iif(verdict = '', 'none', verdict), count(*) FROM sessions "
        "GROUP BY 1 ORDER BY 2 DESC, 1"
    )
    offered["event"] = index.select(
        "SELECT kind, count(DISTINCT session_id) FROM session_events GROUP BY kind ORDER BY 2 DESC"
    )
    offered["label"] = index.select(
        "SELECT said, count(DISTINCT session_id) FROM labels GROUP BY said"
    )
    offered["failed"] = index.select("SELECT 'failed', count(*) FROM sessions WHERE failed != ''")
    return {name: [(row[0], row[1]) for row in rows] for name, rows in offered.items()}
