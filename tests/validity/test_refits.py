"""Tables fitted to a part of a family, and without it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from debrief.evidence import Evidence
from debrief.offline.facts import Facts
from debrief.offline.success import shipped_table
from debrief.validity.figures import figures_of
from debrief.validity.measuring import LabelledRun, Measured
from tools.validity.bars import bars_of
from tools.validity.refits import LEFT_OUT, REFITTED, REFITTED_PROBABILITY, with_refits


def family(name: str, sessions: int, honest: bool, tasks: int = 50) -> Iterator[Measured]:
    """Sessions whose calls fail where the session fails; or anywhere, unless they are honest."""
    chance = Random(name)
    for number in range(sessions):
        success = chance.random() < 0.5
        failed = chance.random() < (0.2 if success else 0.8) if honest else chance.random() < 0.5
        errors = tuple(Evidence(1, f"c{n}") for n in range(20 if failed else 1))
        facts = Facts(
            kind="coding",
            asked_for_change=True,
            turns=1,
            messages=20,
            calls=40,
            wrote=4_000,
            errors=errors,
            edits=(Evidence(1, "e"),),
        )
        run = LabelledRun(
            session_id=f"{name}-{number}",
            success=success,
            task=f"{name}-{number % tasks}",
            family=name,
            kind="coding",
        )
        values: dict[str, float | None] = {
            "fewer calls": -40.0,
            "fewer errors": -float(len(errors)),
        }
        yield Measured(run=run, facts=facts, values=values)


def test_a_refit_helps_where_facts_know_and_never_sees_what_it_is_tested_on() -> None:
    rows = [*family("telling", 600, honest=True, tasks=150), *family("silent", 200, honest=False)]
    refitted = with_refits(rows, lambda _, without: shipped_table())
    figures = {(each.family, each.score): each.estimates for each in figures_of(refitted)}
    assert figures["telling", REFITTED]["AUROC"].value > 0.75
    assert figures["telling", REFITTED_PROBABILITY]["Brier excess"].high < 0
    (bar,) = (each for each in bars_of(LEFT_OUT, figures_of(refitted), []) if "Brier" in each.name)
    assert bar.holds
    assert bar.measured.endswith("1 of 2 families have a probability")
    assert "AUROC" not in figures.get(("silent", REFITTED_PROBABILITY), {})
    noise = figures["silent", REFITTED]["AUROC"]
    assert noise.low <= 0.5 <= noise.high
    before = figures["telling", LEFT_OUT]["AUROC"].value
    assert figures["telling", REFITTED]["AUROC"].value > before


def test_a_family_with_too_few_labels_is_not_refitted() -> None:
    rows = with_refits(list(family("small", 40, honest=True)), lambda _, without: shipped_table())
    assert all(row.values.get(REFITTED) is None for row in rows)
    assert all(row.values[LEFT_OUT] is not None for row in rows)
