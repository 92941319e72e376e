"""Which training sets are current, and where the others go."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.judging.model import JudgeEvaluation
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.training.manifest import (
    MANIFEST,
    current_pairs,
    manifest_pairs,
    note_judges,
    settle_sets,
    stored_sets,
)
from debrief.training.model import INDEX, LINES, training_path
from tests.training.lakes import TASK, lake_of, stored
from tests.training.scenario import FINGERPRINT, MONDAY, judgement, says, session, turn

TODAY = date(2026, 11, 26)
OTHER = f"{FINGERPRINT.partition('-')[0]}-0ddba115"
NAME = f"{TASK}/{FINGERPRINT}"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """One session, judged by two sets of judges, with a training set of each."""
    one = session("one", turn("Fix the cart.", says("Fixed it.")))
    made = lake_of(tmp_path / "lake", [one])
    both = [judgement(one), replace(judgement(one), eval_fingerprint="0ddba115")]
    made.write("judge_evaluations", week_of(MONDAY), both, JudgeEvaluation)
    stored(made)
    stored(made, fingerprint=OTHER)
    return made


def files(lake: Lake) -> list[str]:
    return [name for name in lake.names("training") if name != MANIFEST]


def test_a_session_that_several_judged_is_in_the_set_of_those_who_judged_last(lake: Lake) -> None:
    note_judges(lake, "0ddba115")
    assert list(current_pairs(lake)) == [(TASK, OTHER)]
    note_judges(lake, FINGERPRINT.partition("-")[2])
    assert list(current_pairs(lake)) == [(TASK, FINGERPRINT)]


def test_a_session_that_judges_failed_on_stays_where_it_was(lake: Lake) -> None:
    one = session("one", turn("Fix the cart.", says("Fixed it.")))
    failed = [judgement(one, score=None)]
    lake.write("judge_evaluations", week_of(MONDAY), failed, JudgeEvaluation)
    assert list(current_pairs(lake)) == [(TASK, f"{FINGERPRINT.partition('-')[0]}-unknown")]


def test_judges_that_answered_nothing_do_not_take_the_place_of_others(lake: Lake) -> None:
    note_judges(lake, "0ddba115", has_answered=False)
    assert list(current_pairs(lake)) == [(TASK, OTHER)], "there were no others"
    note_judges(lake, FINGERPRINT.partition("-")[2], has_answered=False)
    assert list(current_pairs(lake)) == [(TASK, OTHER)]


def test_it_is_not_guessed_who_judged_last(lake: Lake) -> None:
    with pytest.raises(InputError, match="judged by several sets of judges"):
        current_pairs(lake)


def test_former_sets_are_moved_with_their_cards_and_go_after_their_days(lake: Lake) -> None:
    data = lake.read_bytes(training_path(TASK, FINGERPRINT))
    settled = settle_sets(lake, [(TASK, OTHER)], TODAY, 30)
    assert (settled.moved, settled.expired) == (1, 0)
    former = f"training/former/{TODAY}/{NAME}.jsonl"
    assert lake.read_bytes(former) == data
    assert len(files(lake)) == 4
    assert [row.fingerprint for row in stored_sets(lake).sets] == [OTHER]
    assert lake.partitions(INDEX) == lake.partitions(LINES) == [f"{TASK}/{OTHER}"]
    settle_sets(lake, [(TASK, OTHER)], TODAY + timedelta(days=30), 30)
    assert lake.read_bytes(former) == data
    later = settle_sets(lake, [(TASK, OTHER)], TODAY + timedelta(days=31), 30)
    assert (later.moved, later.expired) == (0, 2)
    assert files(lake) == [training_path(TASK, OTHER, end) for end in (".card.md", ".jsonl")]


def test_what_ended_half_way_is_finished_by_the_next_call(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(lake, "remove", killed)
    with pytest.raises(KeyboardInterrupt):
        settle_sets(lake, [(TASK, OTHER)], TODAY, 30)
    monkeypatch.undo()
    assert manifest_pairs(lake) == ((TASK, OTHER),)
    assert [row.fingerprint for row in stored_sets(lake).sets] == [OTHER]
    settle_sets(lake, [(TASK, OTHER)], TODAY, 30)
    assert len(files(lake)) == 4
    assert lake.partitions(INDEX) == [f"{TASK}/{OTHER}"]


def test_what_others_put_below_training_stays(lake: Lake) -> None:
    own = ["training/former/mine/notes.jsonl", "training/former/notes.txt", f"{MANIFEST}.old"]
    for name in own:
        lake.write_bytes(name, b"{}\n")
    settle_sets(lake, [(TASK, OTHER)], TODAY, 0)
    settle_sets(lake, [(TASK, OTHER)], TODAY + timedelta(days=1), 0)
    assert set(own) <= set(lake.names("training"))
    assert len(files(lake)) == 2 + len(own)


def test_without_a_manifest_all_sets_are_of_an_earlier_version(lake: Lake) -> None:
    lake.remove(MANIFEST)
    assert manifest_pairs(lake) is None
    assert sorted(stored_sets(lake).earlier) == sorted([(TASK, FINGERPRINT), (TASK, OTHER)])


def test_a_set_whose_lines_have_another_form_is_of_an_earlier_version(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("debrief.training.store.LINE_FORMAT", "the next one")
    assert stored_sets(lake).sets == ()
    assert len(stored_sets(lake).earlier) == 2
