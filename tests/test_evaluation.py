"""The one loop behind judges, scores and rubrics."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from msgspec import Struct

from debrief.errors import InputError
from debrief.evaluation import evaluate, failure_of
from tests.waiting import LONG


class Row(Struct, frozen=True):
    item: str
    status: str = "ok"


GROUPS = [[f"{group}{number}" for number in range(1 + group % 3)] for group in range(12)]
ITEMS = [item for group in GROUPS for item in group]


def ask(item: str) -> Row:
    return Row(item, "failed" if item == "20" else "ok")


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_rows_come_in_order_and_what_is_stored_is_not_asked(workers: int) -> None:
    asked: list[str] = []

    def asking(item: str) -> Row:
        asked.append(item)
        return ask(item)

    stored = {item: Row(item) for item in ITEMS[:10]}
    rows = list(evaluate([[], *GROUPS], stored.get, asking, workers=workers))
    assert [row.item for row in rows] == ITEMS
    assert sorted(asked) == sorted(ITEMS[10:])


@pytest.mark.parametrize(("workers", "ahead"), [(1, 1), (2, 4)])
def test_groups_are_read_only_a_little_ahead_and_closing_asks_no_more(
    workers: int, ahead: int
) -> None:
    read: list[int] = []
    asked: list[str] = []

    def groups() -> Iterator[list[str]]:
        for number in range(50):
            read.append(number)
            yield [str(number)]

    def asking(item: str) -> Row:
        asked.append(item)
        return Row(item)

    rows = evaluate(groups(), lambda item: None, asking, workers=workers)
    next(rows)
    assert len(read) <= ahead
    rows.close()  # type: ignore[attr-defined]
    assert len(asked) <= ahead


def test_workers_ask_at_once_and_a_groups_first_item_goes_alone() -> None:
    together = threading.Barrier(4)
    begun: list[str] = []

    def asking(item: str) -> Row:
        begun.append(item)
        if item.endswith("a"):
            together.wait(timeout=LONG)
        return Row(item)

    groups = [[f"{number}{letter}" for letter in "abc"] for number in range(4)]
    rows = list(evaluate(groups, lambda item: None, asking, workers=4))
    assert [row.item for row in rows] == [item for group in groups for item in group]
    for group in groups:
        assert min(group, key=begun.index) == group[0]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InputError("s1", "is empty", "Look."), "s1: is empty. Look."),
        (KeyError("inside"), "KeyError: 'inside'"),
    ],
)
def test_a_failed_row_names_its_reason(error: Exception, reason: str) -> None:
    assert failure_of(error) == reason
