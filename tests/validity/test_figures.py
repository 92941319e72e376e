"""Figures from measured sessions: an effect that is there is found, and chance is called chance."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random

import pytest

from debrief import stats
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import VERDICT_NAMES, SessionVerdict, VerdictName
from debrief.validity.changes import Move
from debrief.validity.figures import Statistic, ValidityReport, report_of
from debrief.validity.measuring import Measured
from debrief.validity.references import ReaderVerdict, Reference
from debrief.validity.report import report_markdown

NOON = datetime(2026, 10, 5, 12, tzinfo=UTC)


def measured(
    name: str,
    verdict: VerdictName | None,
    *readings: VerdictName,
    done: bool | None = None,
    quality: float | None = None,
    place: float | None = None,
    task: str = "",
    family: str = "f",
    moves: tuple[Move, ...] = (),
) -> Measured:
    if readings:
        done = readings[0].startswith("done")
    own = tuple(
        ReaderVerdict(session_id=name, verdict=reading, quality=quality) for reading in readings
    )
    reference = Reference(
        session_id=name, done=done, readings=own, task=task or name, family=family
    )
    said = SessionVerdict(verdict=verdict, basis="check") if verdict else None
    return Measured(reference=reference, edited=True, verdict=said, place=place, moves=moves)


def found(statistics: tuple[Statistic, ...], name: str) -> Statistic:
    (statistic,) = (statistic for statistic in statistics if statistic.name.startswith(name))
    return statistic


def text_of(report: ValidityReport) -> str:
    return report_markdown(report)


def test_agreement_is_of_those_with_a_verdict_and_gross_errors_are_counted() -> None:
    rows = [
        measured("a", "complete_verified", "complete_verified", quality=90.0),
        measured("b", "complete_unverified", "failed", quality=10.0),
        measured("c", "undetermined", "partial", quality=50.0),
        measured("d", "partial", "partial", "complete_unverified", quality=40.0),
        measured("e", None, "complete_verified", quality=80.0),
    ]
    report = report_of(rows)
    assert report.coverage[0].value == stats.share_of(3, 5)
    assert found(report.agreement, "the readers' verdict exactly").value == stats.share_of(2, 3)
    assert found(report.agreement, "gross errors").value == stats.share_of(1, 3)
    assert found(report.agreement, "two readers").value == stats.share_of(0, 1)
    assert found(report.agreement, "verdict, then place, with").count == 5
    assert report.crossed["complete_unverified"] == {"failed": 1}
    assert "| complete_unverified | 0 | 0 | 0 | 1 | 0 |" in text_of(report)


def test_what_cannot_be_told_from_chance_is_said_so_with_the_number_of_labels() -> None:
    chance = Random(4)
    rows = [
        measured(str(n), chance.choice(VERDICT_NAMES[:4]), VERDICT_NAMES[n % 4], quality=n)
        for n in range(31)
    ]
    report = report_of(rows)
    assert "with your 31 labels this cannot be told from chance" in text_of(report)
    honest = [measured(str(n), VERDICT_NAMES[n % 4], VERDICT_NAMES[n % 4]) for n in range(31)]
    assert "with your 31 labels" not in text_of(report_of(honest)).split("## The order")[0]


def runs(tasks: int, right: float, seed: int = 1, families: int = 1) -> Iterator[Measured]:
    """Two runs a task and family, one done: its place is the better one that often."""
    luck = Random(seed)
    for task in range(tasks):
        for family in range(families):
            better = 0.7 if luck.random() < right else 0.3
            for done in (True, False):
                place = better if done else 1 - better
                name = f"{family}-{task}-{done}"
                yield measured(
                    name, "partial", done=done, place=place + luck.random() / 10,
                    task=f"t{task}", family=f"f{family}",
                )  # fmt: skip


def test_pairs_of_one_task_are_compared_with_each_other_alone() -> None:
    report = report_of(list(runs(40, right=1.0)))
    pairs = found(report.order, "runs of one task, place")
    assert (pairs.count, pairs.noun) == (40, "task")
    assert pairs.value is not None
    assert pairs.value.value == 1.0
    assert not pairs.is_chance
    guessed = found(report_of(list(runs(40, right=0.5))).order, "runs of one task, place")
    assert guessed.is_chance


def test_fewer_than_five_tasks_have_no_interval_and_the_reason_is_shown() -> None:
    report = report_of(list(runs(4, right=1.0)))
    assert found(report.order, "runs of one task, place").value is None
    assert "5 tasks with both outcomes are needed" in text_of(report)
    assert "5 of each outcome are needed" in text_of(report)


def test_families_are_a_mean_and_those_that_are_turned_round_are_named() -> None:
    rows = [*runs(30, right=1.0), *runs(30, right=0.0, families=2)]
    wrong = [row for row in rows[60:] if row.reference.family == "f1"]
    report = report_of([*rows[:60], *wrong])
    assert report.reversed_families == ("f1",)
    assert "significantly worse than chance in: f1" in text_of(report)
    mean = found(report.order, "place: AUROC, mean of 2 families")
    assert mean.value is not None
    assert mean.value.value == pytest.approx(0.5, abs=0.02)


def test_the_lift_is_of_failures_below_the_worst_fifth() -> None:
    rows = [
        measured(str(n), "partial", done=n >= 20, place=n / 100, family="one") for n in range(100)
    ]
    lift = found(report_of(rows).order, "failures in the worst fifth").value
    assert lift is not None
    assert lift.value == pytest.approx(5.0)
    assert lift.low > 1.0
    later = [measured(str(n), "partial", done=n >= 20, place=0.5 + n / 200) for n in range(100)]
    assert "no session is in the worst fifth" in text_of(report_of(later))
    even = [measured(str(n), "partial", done=n % 2 == 0, place=n / 100) for n in range(100)]
    assert found(report_of(even).order, "failures in the worst fifth").is_chance


def test_moves_are_reported_as_found() -> None:
    moves = [
        Move(
            change="the person complains", must="fall", before="complete_verified", after="partial"
        ),
        Move(
            change="the person complains",
            must="fall",
            before="complete_verified",
            after="complete_verified",
        ),
    ]
    rows = [
        measured(str(n), "complete_verified", done=True, moves=(m,)) for n, m in enumerate(moves)
    ]
    report = report_of(rows)
    (moved,) = report.moves
    assert (moved.held, moved.count) == (1, 2)
    assert "| the person complains | must fall | 2 sessions | 50% (9% to 91%) |" in text_of(report)


def scored(row: Measured, quality: float | None) -> SessionScores:
    return SessionScores(
        session_id=row.reference.session_id,
        session_digest="d",
        started=NOON,
        ended=NOON,
        task="t",
        tool="x",
        model="m",
        scoring_fingerprint="f",
        status="failed" if quality is None else "ok",
        failure="it refused" if quality is None else "",
        overall_quality=quality,
    )


def test_a_model_and_the_offline_verdict_are_compared_on_the_same_sessions() -> None:
    luck = Random(2)
    rows = [
        measured(
            str(n), luck.choice(VERDICT_NAMES), VERDICT_NAMES[n % 4], quality=100 - 25.0 * (n % 4)
        )
        for n in range(40)
    ]
    good = {str(n): scored(row, 1 - (n % 4) / 4 + n / 1000) for n, row in enumerate(rows)}
    report = report_of(rows, "wise", good | {"0": scored(rows[0], None)})
    better = found(report.paired, "readers' quality: Spearman, the model minus offline")
    assert better.count == 39
    assert better.value is not None
    assert better.value.low > 0
    assert report.failures == {"it refused": 1}
    assert "## wise against the offline verdict" in text_of(report)
    same = {row.reference.session_id: scored(row, row.shown) for row in rows}
    equal = found(report_of(rows, "m", same).paired, "done or not: AUROC, the model minus offline")
    assert equal.is_chance
