"""What is left of a training set when some of its sessions are forgotten."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from debrief.forgetting.choosing import Chosen
from debrief.forgetting.lake_files import sweep_training
from debrief.forgetting.signs import Signs
from debrief.forgetting.subject import Subject
from debrief.lake import Lake
from debrief.settings import load_settings
from debrief.training.model import INDEX, LINES, LineRow, TrainingSetRow, training_path
from tests.training.lakes import TASK, lake_of, stored
from tests.training.scenario import FINGERPRINT, says, session, text, turn

SET = f"{TASK}/{FINGERPRINT}"


def forget(lake: Lake, ids: Collection[str]) -> list[int]:
    subject = Subject(load_settings(), lake, Chosen(heads={}), Signs(ids))
    return [swept.count for swept in sweep_training(subject, act=True)]


def test_the_other_sessions_of_a_set_stay_in_it_and_the_last_takes_it_along(tmp_path: Path) -> None:
    team = [session(f"session-000{n}", turn(text(15), says(text(120)))) for n in range(4)]
    lake = lake_of(tmp_path, team)
    before = stored(lake).row
    assert (before.samples, before.left_out) == (4, ())

    assert forget(lake, {team[1].id}) == [1]
    (left,) = lake.read(INDEX, SET, TrainingSetRow)
    rows = list(lake.read(LINES, SET, LineRow))
    assert (left.samples, left.sessions, left.considered) == (3, 3, 3)
    assert {row.session_id for row in rows} == {team[n].id for n in (0, 2, 3)}
    data = lake.read_bytes(training_path(TASK, FINGERPRINT)) or b""
    assert [data[row.offset :].startswith(b"{") for row in rows] == [True] * 3

    assert forget(lake, {row.session_id for row in rows}) == [3]
    assert not lake.partitions(INDEX)
    assert lake.read_bytes(training_path(TASK, FINGERPRINT, ".card.md")) is None
