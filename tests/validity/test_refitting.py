"""The order refitted to labels: an effect that is there is found, and none is made up."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.outcomes.store import Label, Labels, Success, own_table, put_labels
from debrief.scoring.model import SessionScores
from debrief.scoring.order import VALUES, OrderedSession, places_of, shipped_table
from debrief.sessions.model import Session
from debrief.stats import Estimate
from debrief.validity.refitting import Gain, LabelledOrder, Refit, gain_text, refit
from tests.scoring.scenario import NOON, session


def labelled(count: int, effect: float, seed: int = 0, each: int = 1) -> LabelledOrder:
    """Sessions of which those that were not done have more corrections, or fewer; all else is noise."""
    luck = Random(seed)
    sessions, labels = [], {}
    for number in range(count):
        done = luck.random() < 0.6
        facts = {name: luck.random() for name in VALUES}
        facts["corrections"] = luck.gauss(-effect if done else effect, 1)
        id_ = f"s{number:03}"
        started = NOON + timedelta(hours=number)
        sessions.append(
            OrderedSession(
                session_id=id_,
                started=started,
                tool="t",
                model="offline",
                kind="coding",
                facts=facts,
            )
        )
        labels[id_] = Success(done, "csv", f"task-{number // each}")
    return LabelledOrder(tuple(sessions), labels)


def fitted(rows: LabelledOrder, *, force: bool = False) -> Refit:
    return refit(rows, shipped_table(), force=force)


def test_an_effect_is_found_on_tasks_that_were_held_out() -> None:
    made = fitted(labelled(120, effect=1.0))
    (gain,) = made.gains
    assert made.taken == ("coding",)
    assert (gain.sessions, gain.tested, gain.sources) == (120, 120, {"csv": 120})
    assert gain.refitted is not None
    assert gain.brier is not None
    assert gain.refitted.low > 0.6
    assert gain.brier.value < 0
    assert "tested on 120 of held-out tasks" in gain_text(gain)


def test_a_sign_that_is_the_other_way_round_is_turned() -> None:
    rows = labelled(120, effect=-1.0)
    made = fitted(rows)
    (gain,) = made.gains
    assert made.table is not None
    assert (
        made.table.coding.weights["corrections"] > 0 > shipped_table().coding.weights["corrections"]
    )
    assert gain.gained is not None
    assert gain.gained.low > 0
    chances = places_of(rows.sessions, made.table)
    assert all(place.probability is not None for place in chances.values())


def test_noise_is_seldom_stored() -> None:
    stored = sum(bool(fitted(labelled(60, effect=0.0, seed=seed)).taken) for seed in range(8))
    assert stored <= 2


@pytest.mark.parametrize(("value", "is_better"), [(-0.03, True), (-0.01, False), (0.01, False)])
def test_what_may_be_luck_is_no_gain(value: float, is_better: bool) -> None:
    brier = Estimate(value=value, low=value - 0.05, high=value + 0.05)
    gain = Gain(kind="coding", sessions=60, done=30, sources={"csv": 60}, tested=60, brier=brier)
    assert gain.is_better == is_better
    assert ("not clearly better" in gain_text(gain)) != is_better


@pytest.mark.parametrize(
    ("count", "missing"), [(19, "1 more labelled sessions are needed"), (10, "10 more")]
)
def test_too_few_labels_are_counted(count: int, missing: str) -> None:
    rows = labelled(60, effect=1.0)
    few = dict(sorted(rows.labels.items())[:count])
    (gain,) = fitted(LabelledOrder(rows.sessions, few), force=True).gains
    assert gain.missing.startswith(missing)
    assert gain.missing in gain_text(gain)


def lake_of(folder: Path, rows: LabelledOrder) -> Lake:
    """A lake with these sessions, scored, and labelled by a file."""
    lake = Lake(str(folder / "lake"))
    heads: dict[str, list[Session]] = {}
    scored: dict[str, list[SessionScores]] = {}
    for row in rows.sessions:
        one = replace(session(row.session_id), started=row.started)
        heads.setdefault(week_of(row.started), []).append(one)
        scored.setdefault(week_of(row.started), []).append(
            SessionScores(
                session_id=one.id,
                session_digest=one.digest,
                started=one.started,
                ended=one.ended,
                task=one.task,
                tool=one.tool,
                model="offline",
                scoring_fingerprint="f",
                status="ok",
                kind="coding",
                facts=row.facts,
            )
        )
    for week, sessions in heads.items():
        lake.write("raw_sessions", week, sessions, Session)
        lake.write("session_scores", week, scored[week], SessionScores)
    labels = [
        Label(
            session_id=id_,
            name="success",
            value=str(int(known.success)),
            source="csv",
            origin="f",
            task=known.task,
        )
        for id_, known in rows.labels.items()
    ]
    put_labels(lake, Labels(labels=tuple(labels)))
    return lake


def fit(lake: Lake, *options: str) -> Result:
    return CliRunner().invoke(app, ["fit", *options, "--lake", lake.url], env={"COLUMNS": "200"})


def test_the_command_stores_what_gains_and_goes_back(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, labelled(120, effect=1.0))
    dry = fit(lake, "--dry-run").stdout
    assert "coding: 120 labelled sessions (120 csv)" in dry
    assert "Would be stored: coding. Nothing was changed." in dry
    assert own_table(lake) is None
    told = json.loads(fit(lake, "--json").stdout)
    assert (told["stored"], told["kinds"][0]["tested"]) == (True, 120)
    table = own_table(lake)
    assert table is not None
    assert (table.coding.sessions, table.service) == (120, shipped_table().service)
    fit(lake, "--shipped")
    assert own_table(lake) is None


def test_without_labels_or_scores_it_says_what_to_run(tmp_path: Path) -> None:
    refused = fit(Lake(str(tmp_path / "empty")))
    assert refused.exit_code == 1
    assert "holds no label of success. Label sessions on the pages" in refused.stderr
    lake = Lake(str(tmp_path / "lake"))
    lake.write("raw_sessions", week_of(NOON), [session("s1")], Session)
    put_labels(
        lake, Labels(labels=(Label(session_id="s1", name="success", value="1", source="csv"),))
    )
    refused = fit(lake)
    assert "holds no scores. Run debrief run first." in refused.stderr
