"""What a list of sessions shows: search, filters, sorting and page, as its address says them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import without_controls
from debrief.scoring.dimensions import BY_NAME
from debrief.view.index import Index
from debrief.view.indexed import SessionRow
from debrief.view.links import sessions_path

ON_A_PAGE = 50
EQUAL = ("task", "tool", "model", "fingerprint", "week", "source", "repository")
"""Filters that name one value of the column of their name."""
SCORES = ("quality", *BY_NAME, "judges", "success_rank")
_MEASURES = ("turns", "tokens", "seconds", "lines_added", "lines_removed", "cost_usd")
RANGES = (*SCORES, *_MEASURES)
"""Columns that can be limited: by ``COLUMN_min`` and ``COLUMN_max``."""
SORTS: Mapping[str, str] = {
    "quality": "quality",
    "-quality": "quality, best first",
    "-started": "newest",
    "started": "oldest",
    **{name: name.replace("_", " ") for name in BY_NAME},
    "judges": "judges",
    "success_rank": "success, least likely first",
    "-tokens": "most tokens",
    "-turns": "most turns",
    "-seconds": "longest",
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
WORST_FIRST = "quality"
_COLUMNS = frozenset(SessionRow.__struct_fields__)
_WORD = re.compile(r'"([^"]*)"|(\S+)')
MARK, UNMARK = "\ue000", "\ue001"
"""Around what was found, in an excerpt."""


class ListQuery(Struct, frozen=True, kw_only=True):
    """A list of sessions that somebody asked for."""

    q: str = ""
    """Words that all have to be in it, and phrases in quotation marks."""
    equal: dict[str, str] = {}
    """Values by column."""
    ranges: dict[str, float] = {}
    """Limits by column, with ``_min`` or ``_max`` behind its name."""
    outcome: str = ""
    """``yes``, ``no``, or ``none``: nothing is known of what became of its work."""
    label: str = ""
    """What somebody said, ``any``, or ``none``."""
    failed: bool = False
    """Only those that could not be scored or judged."""
    sort: str = WORST_FIRST
    page: int = 1

    @property
    def address(self) -> str:
        """Return the address of the list."""
        return self.with_()

    def with_(self, **changes: Any) -> str:
        """Return the address of the list with some parameters changed; empty ones are left out."""
        given = {
            "q": self.q,
            **self.equal,
            **{name: f"{limit:g}" for name, limit in self.ranges.items()},
            "outcome": self.outcome,
            "label": self.label,
            "failed": "1" if self.failed else "",
            "sort": "" if self.sort == WORST_FIRST else self.sort,
            "page": "" if self.page == 1 else str(self.page),
        }
        return sessions_path(**{"page": "", **given, **({"page": ""} | changes)})

    @property
    def chosen(self) -> list[tuple[str, str]]:
        """Return each filter in words, with the address of the list without it."""
        found = [(f"“{self.q}”", self.with_(q=""))] if self.q else []
        found += [
            (f"{name}: {value}", self.with_(**{name: ""})) for name, value in self.equal.items()
        ]
        for name, limit in self.ranges.items():
            column, _, side = name.rpartition("_")
            sign = "≥" if side == "min" else "≤"
            found.append((f"{column.replace('_', ' ')} {sign} {limit:g}", self.with_(**{name: ""})))
        found += [(f"outcome: {self.outcome}", self.with_(outcome=""))] if self.outcome else []
        found += [(f"label: {self.label}", self.with_(label=""))] if self.label else []
        found += [("failed", self.with_(failed=""))] if self.failed else []
        return found


def query_of(parameters: Mapping[str, str]) -> ListQuery:
    """Read a query from an address; what means nothing is left out."""
    given = {name: without_controls(value).strip() for name, value in parameters.items()}
    ranges: dict[str, float] = {}
    for name in RANGES:
        for side in ("min", "max"):
            limit = _number(given.get(f"{name}_{side}", ""))
            if limit is not None:
                ranges[f"{name}_{side}"] = limit
    sort = given.get("sort", "")
    page = given.get("page", "")
    return ListQuery(
        q=given.get("q", ""),
        equal={name: given[name] for name in EQUAL if given.get(name)},
        ranges=ranges,
        outcome=given.get("outcome", ""),
        label=given.get("label", ""),
        failed=given.get("failed", "") in ("1", "on", "yes"),
        sort=sort if sort == "match" or sort.removeprefix("-") in _COLUMNS else WORST_FIRST,
        page=int(page) if page.isascii() and page.isdecimal() and 0 < len(page) < 7 else 1,
    )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < 1e15 else None


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
    where, values = _condition(query)
    total = index.select(f"SELECT count(*) FROM sessions WHERE {where}", values)[0][0]
    query = replace(query, page=min(query.page, max(1, -(-total // ON_A_PAGE))))
    start = (query.page - 1) * ON_A_PAGE
    column, is_falling = query.sort.removeprefix("-"), query.sort.startswith("-")
    order = f"{column} IS NULL, {column} {'DESC' if is_falling else 'ASC'}, started DESC, id"
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
    sessions = [msgspec.convert(dict(row), SessionRow, strict=False) for row in rows]
    return FoundSessions(
        query=query,
        sessions=sessions,
        excerpts=_excerpts(index, values.get("words"), [row["number"] for row in rows]),
        total=total,
    )


def _condition(query: ListQuery) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = dict(query.equal)
    parts = [f"{name} = :{name}" for name in query.equal]
    for name, limit in query.ranges.items():
        column, _, side = name.rpartition("_")
        parts.append(f"{column} {'>=' if side == 'min' else '<='} :{name}")
        values[name] = limit
    if query.outcome:
        parts.append("outcome = :outcome")
        values["outcome"] = "" if query.outcome == "none" else query.outcome
    if query.label in ("any", "none"):
        parts.append("labels != ''" if query.label == "any" else "labels = ''")
    elif query.label:
        parts.append("id IN (SELECT session_id FROM labels WHERE said = :label)")
        values["label"] = query.label
    if query.failed:
        parts.append("failed != ''")
    if words := _full_text(query.q):
        parts.append("number IN (SELECT rowid FROM texts WHERE texts MATCH :words)")
        values["words"] = words
    return " AND ".join(parts) or "true", values


def _full_text(q: str) -> str:
    """Return what FTS5 searches for: each word and each phrase, none of it as an operator."""
    texts = ((phrase or word).replace('"', " ") for phrase, word in _WORD.findall(q))
    return " ".join(f'"{text}"' for text in texts if any(char.isalnum() for char in text))


def _excerpts(index: Index, words: str | None, numbers: list[int]) -> dict[str, str]:
    if not words or not numbers:
        return {}
    marks = ", ".join(map(str, numbers))
    rows = index.select(
        "SELECT sessions.id, snippet(texts, -1, ?, ?, '…', 24) "
        "FROM texts JOIN sessions ON sessions.number = texts.rowid "
        f"WHERE texts MATCH ? AND texts.rowid IN ({marks})",
        (MARK, UNMARK, words),
    )
    return dict(map(tuple, rows))


class Choices(Struct, frozen=True, kw_only=True):
    """What each filter of the form offers: values with how many sessions have them."""

    equal: dict[str, list[tuple[str, int]]]
    outcomes: list[tuple[str, int]]
    labels: list[tuple[str, int]]
    failed: int


def choices_of(index: Index) -> Choices:
    """Return what the filters offer; the most used first, weeks by their date."""

    def values(column: str) -> list[tuple[str, int]]:
        order = "1 DESC" if column == "week" else "2 DESC, 1"
        rows = index.select(
            f"SELECT {column}, count(*) FROM sessions WHERE {column} != '' "
            f"GROUP BY {column} ORDER BY {order}"
        )
        return [(row[0], row[1]) for row in rows]

    said = index.select("SELECT said, count(DISTINCT session_id) FROM labels GROUP BY said")
    return Choices(
        equal={name: values(name) for name in ("task", "tool", "model", "fingerprint", "week")},
        outcomes=values("outcome"),
        labels=[(row[0], row[1]) for row in said],
        failed=index.select("SELECT count(*) FROM sessions WHERE failed != ''")[0][0],
    )
