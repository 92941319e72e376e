"""Tables refitted to labels: an effect that is there is found, and none is made up."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from debrief.offline.success import shipped_table
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.offline.facts import Facts
from debrief.outcomes.store import Label, Labels, own_table, put_labels
from debrief.sessions.model import Evidence, Session
from debrief.validity.figures import figures_of
from debrief.validity.measuring import LabelledRun, Measured
from tests.training.scenario import MONDAY, call, says, session, turn
from tools.validity.bars import bars_of
from tools.validity.refits import LEFT_OUT, REFITTED, REFITTED_PROBABILITY, with_refits

PASSED, FAILED = "==== 9 passed in 0.3s ====", "==== 3 failed, 6 passed in 0.3s ===="


def worked(number: int, weeks: int, good: bool, luck: random.Random) -> Session:
    """A session that edits a file and tests it; a bad one mostly ends with failing tests."""
    ended = PASSED if good == (luck.random() < 0.85) else FAILED
    tries = 1 if ended is PASSED else luck.randint(2, 6)
    path = f"/shop/retry{number}.py"
    edit = call("Write", {"file_path": path}, path=path, added=9, patch="@@ -0,0 +1 @@\n+x\n")
    test = call(arguments={"command": "pytest -q"}, result=ended)
    words = "Looking at the retry loop and what calls it. " * luck.randint(5, 20)
    steps = [says(words, edit), *(says("Now the tests.", test) for _ in range(tries))]
    started = MONDAY + timedelta(weeks=number % weeks, hours=number)
    told = turn(f"Fix the retry loop of upload {number}", *steps, says("Retries are bounded now."))
    return session(f"session-{number:03}", told, started=started, task="shop")


def lake_of(folder: Path, count: int, weeks: int = 8, effect: bool = True, seed: int = 0) -> Lake:
    """A lake of labelled sessions, every second one a success."""
    lake, luck = Lake(str(folder / "lake")), random.Random(seed)
    filed: dict[str, list[Session]] = {}
    labels = []
    for number in range(count):
        good = (number // weeks) % 2 == 0
        one = worked(number, weeks, good if effect else luck.random() < 0.5, luck)
        filed.setdefault(week_of(one.started), []).append(one)
        labels.append(
            Label(session_id=one.id, name="success", value=str(int(good)), source="csv", origin="f")
        )
    for week, sessions in filed.items():
        lake.write("raw_sessions", week, sessions, Session)
    put_labels(lake, Labels(labels=tuple(labels)))
    return lake


def fit(lake: Lake, *options: str) -> Result:
    return CliRunner().invoke(app, ["fit", *options, "--lake", lake.url], env={"COLUMNS": "200"})


@pytest.mark.parametrize("weeks", [8, 1], ids=["held-out weeks", "one week: held-out tasks"])
def test_an_effect_is_found_on_what_was_held_out_and_the_next_run_scores_with_it(
    tmp_path: Path, weeks: int
) -> None:
    lake = lake_of(tmp_path, 120, weeks)
    told = fit(lake, "--dry-run").stdout
    assert "coding: 120 labelled sessions (120 csv), 6" in told
    assert "Would be stored: coding. Nothing was changed." in told
    assert own_table(lake) is None
    (kind,) = json.loads(fit(lake, "--json").stdout)["kinds"]
    assert kind["held_out"] == ("weeks" if weeks > 1 else "tasks")
    assert kind["refitted"]["low"] > 0.55
    assert kind["brier"]["high"] < 0
    table = own_table(lake)
    assert table is not None
    assert table.coding.intercept is not None
    assert table.service == shipped_table().service
    assert "comes with the program" in fit(lake, "--shipped").stdout
    assert own_table(lake) is None


def test_noise_gains_nothing_and_is_stored_only_by_force(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, 60, effect=False)
    told = fit(lake).stdout
    assert (
        "not taken: P(success) is not clearly better than the base rate on held-out weeks" in told
    )
    assert "Stored: nothing." in told
    assert own_table(lake) is None
    assert "Stored: coding." in fit(lake, "--force").stdout
    assert own_table(lake) is not None


def test_too_few_labels_say_how_many_more(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, 13)
    assert "7 more labelled sessions are needed" in fit(lake, "--force").stdout
    assert own_table(lake) is None
    refused = fit(Lake(str(tmp_path / "empty")))
    assert refused.exit_code == 1
    assert "holds no label of success. Run debrief outcomes first." in refused.stderr


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
