"""Certificates of a lake: they follow labels and reviews at once, and only blind labels count."""

from __future__ import annotations

from pathlib import Path

import pytest

from debrief.certification import Share, certificates_in, waiting_sessions
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.outcomes.giving import given_labels, labels_csv
from debrief.outcomes.labels import labels_from_csv
from debrief.outcomes.store import Label, Labels, put_labels, success_labels
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import VerdictName
from tests.certification.scenario import MONDAY, REVIEWER, review_row, reviewed_lake, say, session

VERDICTS: dict[str, VerdictName] = {
    "one": "complete_verified",
    "two": "partial",
    "three": "complete_unverified",
    "four": "undetermined",
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return reviewed_lake(str(tmp_path / "lake"), VERDICTS)


def test_a_certificate_follows_labels_and_reviews_at_once(lake: Lake) -> None:
    first = certificates_in(lake)[REVIEWER]
    assert (first.sessions, first.reviews, first.waiting) == (0, 4, 4)
    assert first.reviewed == Share(2, 3)
    say(lake, "one", "good")
    say(lake, "two", "complete_unverified")
    found = certificates_in(lake)[REVIEWER]
    assert (found.complete_hit, found.exact, found.waiting) == (Share(1, 2), Share(0, 1), 2)
    rows = [review_row(session(name, n), "complete_unverified") for n, name in enumerate(VERDICTS)]
    lake.write("session_scores", week_of(MONDAY), rows, SessionScores)
    found = certificates_in(lake)[REVIEWER]
    assert (found.complete_hit, found.exact) == (Share(2, 2), Share(1, 1))


def test_each_reviewer_has_a_certificate_of_its_own(lake: Lake) -> None:
    rows = [review_row(session(name, n), said) for n, (name, said) in enumerate(VERDICTS.items())]
    others = [review_row(session("two", 1), "complete_verified", "other")]
    lake.write("session_scores", week_of(MONDAY), [*rows, *others], SessionScores)
    say(lake, "two", "bad")
    found = certificates_in(lake)
    assert {name: one.incomplete_hit for name, one in found.items()} == {
        REVIEWER: Share(1, 1), "other": Share(0, 1),
    }  # fmt: skip


def test_labels_given_with_a_verdict_in_sight_count_for_no_certificate(lake: Lake) -> None:
    say(lake, "one", "good", blind=False)
    put_labels(lake, Labels(labels=(
        Label(session_id="two", name="success", value="no", source="csv", rater="bob"),
        Label(session_id="three", name="success", value="no", source="csv", rater="b", blind=True),
    )))  # fmt: skip
    found = certificates_in(lake)[REVIEWER]
    assert (found.sessions, found.incomplete_hit) == (1, Share(0, 1))
    assert found.waiting == 1, "what somebody labelled in any way is not asked for again"
    assert waiting_sessions(lake) == ["four"]


def test_who_changes_their_mind_at_the_sight_of_a_review_changes_no_certificate(lake: Lake) -> None:
    say(lake, "two", "good")
    say(lake, "two", "bad", blind=False)
    assert certificates_in(lake)[REVIEWER].complete_hit == Share(0, 1)
    assert success_labels(lake)["two"].success is False, "the session has their last word"
    say(lake, "two", "partial")
    assert certificates_in(lake)[REVIEWER].incomplete_hit == Share(1, 1)
    say(lake, "two", "")
    assert list(given_labels(lake)) == []
    assert certificates_in(lake)[REVIEWER].sessions == 0


def test_sessions_to_label_come_in_one_random_order(tmp_path: Path) -> None:
    names = [f"s{number:03}" for number in range(200)]
    lakes = [
        reviewed_lake(str(tmp_path / place), dict.fromkeys(names, "partial")) for place in "ab"
    ]
    first, second = map(waiting_sessions, lakes)
    assert sorted(first) == sorted(second) == names
    assert first != second, "each lake has an order of its own"
    early = sum(int(name[1:]) for name in first[:100]) / 100
    assert abs(early - 99.5) < 20, "neither the first nor the last sessions come first"
    say(lakes[0], first[0], "unsure")
    assert waiting_sessions(lakes[0]) == first[1:]


def test_a_csv_says_which_labels_were_given_blind_and_is_read_back(
    lake: Lake, tmp_path: Path
) -> None:
    say(lake, "one", "complete_verified")
    say(lake, "two", "bad", blind=False)
    path = tmp_path / "labels.csv"
    path.write_text(labels_csv(given_labels(lake)), newline="")
    read = labels_from_csv(path)
    assert read.problems == ()
    assert {(label.session_id, label.value, label.blind) for label in read.labels} == {
        ("one", "complete_verified", True), ("two", "bad", False),
    }  # fmt: skip
    other = reviewed_lake(str(tmp_path / "other"), VERDICTS)
    put_labels(other, read)
    assert certificates_in(other)[REVIEWER].complete_hit == Share(1, 1)
    put_labels(lake, read)
    assert certificates_in(lake)[REVIEWER].complete_hit == Share(1, 1), "not counted twice"
