"""Figures of a lake: sessions, rows by stage and week, what they cost, and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from debrief.lake import Lake
from debrief.metrics.figures import Family, family

WEEKS_SHOWN = 8
"""Weeks with figures of their own, the newest; older ones change rarely and would be a series
each for ever."""


class _Judged(Struct, frozen=True):
    status: str
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class _Session(Struct, frozen=True):
    tool: str


class _Unread(Struct, frozen=True):
    expected: bool


class _Receipt(Struct, frozen=True):
    status: str


class _Set(Struct, frozen=True):
    samples: int


class Tally(Struct, frozen=True, kw_only=True):
    """What the rows of one partition come to."""

    by_status: tuple[tuple[str, int], ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    """Of the rows whose cost is known."""
    cost_unknown: int = 0
    """Rows that took tokens at a price nobody knows."""


Form = Literal["sessions", "unread", "judged", "receipts", "sets"]
TABLES: dict[str, Form] = {
    "raw_sessions": "sessions",
    "unread_transcripts": "unread",
    "judge_evaluations": "judged",
    "session_scores": "judged",
    "rubric_evaluations": "judged",
    "langfuse_scores": "receipts",
    "training_index": "sets",
}


class LakeFigures:
    """Figures of a lake; a partition is read again only when its stamp has changed."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._known: dict[tuple[str, str], tuple[str, Tally]] = {}

    def families(self) -> Iterator[Family]:
        """Read what has changed, and yield all figures."""
        tallies = {table: self._of_table(table, form) for table, form in TABLES.items()}
        weeks = sorted(tallies["raw_sessions"])[-WEEKS_SHOWN:]
        evaluated = {table: tallies[table] for table, form in TABLES.items() if form == "judged"}
        yield family(
            "debrief_sessions",
            "Sessions in the lake, by the tool they were held with.",
            ("tool",),
            _summed(tallies["raw_sessions"].values()),
        )
        yield family(
            "debrief_week_sessions",
            "Sessions of the newest weeks.",
            ("week",),
            (((week,), _rows(tallies["raw_sessions"][week])) for week in weeks),
        )
        yield family(
            "debrief_unread_transcripts",
            "Transcripts that are no session: empty ones, and those that cannot be read.",
            ("reason",),
            _summed(tallies["unread_transcripts"].values()),
        )
        yield family(
            "debrief_rows",
            "Rows in the lake by stage and status; failed ones are tried again by the next run.",
            ("stage", "status"),
            (
                ((table, *labels), value)
                for table in (*evaluated, "langfuse_scores")
                for labels, value in _summed(tallies[table].values())
            ),
        )
        yield family(
            "debrief_week_rows",
            "Rows of the newest weeks by stage and status.",
            ("stage", "week", "status"),
            (
                ((table, week, status), count)
                for table, found in evaluated.items()
                for week in weeks
                if week in found
                for status, count in found[week].by_status
            ),
        )
        yield family(
            "debrief_tokens",
            "Tokens that the rows in the lake took.",
            ("stage", "kind"),
            (
                ((table, kind), sum(getattr(tally, f"{kind}_tokens") for tally in found.values()))
                for table, found in evaluated.items()
                for kind in ("input", "output")
            ),
        )
        yield family(
            "debrief_cost_usd",
            "What the rows in the lake cost, as far as prices are known.",
            ("stage",),
            (
                ((table,), sum(tally.cost_usd for tally in found.values()))
                for table, found in evaluated.items()
            ),
        )
        yield family(
            "debrief_week_cost_usd",
            "What the rows of the newest weeks cost, as far as prices are known.",
            ("stage", "week"),
            (
                ((table, week), found[week].cost_usd)
                for table, found in evaluated.items()
                for week in weeks
                if week in found
            ),
        )
        yield family(
            "debrief_cost_unknown_rows",
            "Rows that took tokens at a price nobody knows.",
            ("stage",),
            (
                ((table,), sum(tally.cost_unknown for tally in found.values()))
                for table, found in evaluated.items()
            ),
        )
        sets = tallies["training_index"].values()
        yield family("debrief_training_sets", "Training sets.", (), [((), float(len(sets)))])
        yield family(
            "debrief_training_samples",
            "Samples in all training sets.",
            (),
            [((), float(sum(count for tally in sets for _, count in tally.by_status)))],
        )

    def _of_table(self, table: str, form: Form) -> dict[str, Tally]:
        found = {}
        for partition in self._lake.partitions(table):
            stamp = self._lake.stamp(table, partition)
            if stamp is None:
                continue
            known = self._known.get((table, partition))
            if known is None or known[0] != stamp.digest:
                known = (stamp.digest, _tally(self._lake, table, partition, form))
                self._known[table, partition] = known
            found[partition] = known[1]
        return found


def _tally(lake: Lake, table: str, partition: str, form: Form) -> Tally:
    statuses: Counter[str] = Counter()
    match form:
        case "sessions":
            statuses.update(row.tool for row in lake.read(table, partition, _Session))
        case "unread":
            rows = lake.read(table, partition, _Unread)
            statuses.update("empty" if row.expected else "unreadable" for row in rows)
        case "receipts":
            statuses.update(row.status for row in lake.read(table, partition, _Receipt))
        case "sets":
            statuses["samples"] = sum(row.samples for row in lake.read(table, partition, _Set))
        case "judged":
            return _judged(lake.read(table, partition, _Judged))
    return Tally(by_status=tuple(statuses.items()))


def _judged(rows: Iterable[_Judged]) -> Tally:
    statuses: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    cost, unknown = 0.0, 0
    for row in rows:
        statuses[row.status] += 1
        taken["input"] += row.input_tokens
        taken["output"] += row.output_tokens
        cost += row.cost_usd or 0.0
        unknown += row.cost_usd is None and row.input_tokens + row.output_tokens > 0
    return Tally(
        by_status=tuple(statuses.items()),
        input_tokens=taken["input"],
        output_tokens=taken["output"],
        cost_usd=cost,
        cost_unknown=unknown,
    )


def _summed(tallies: Iterable[Tally]) -> Iterator[tuple[tuple[str], float]]:
    total: Counter[str] = Counter()
    for tally in tallies:
        total.update(dict(tally.by_status))
    yield from (((name,), float(count)) for name, count in total.items())


def _rows(tally: Tally) -> float:
    return float(sum(count for _, count in tally.by_status))
