"""Pairs, labels and rewards: what is held against each other, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.outcomes.store import Success
from debrief.scoring.verdict import VERDICT_NAMES, VerdictName
from debrief.sessions.model import Session, Turn
from debrief.training.model import LINES, LineRow, SampleLine
from debrief.training.publishing.form import Standing, StoredLine, decoded, encoded
from debrief.training.publishing.outcome_forms import MIN_MARGIN, pair_line, pairs_of, standings
from debrief.training.samples import encode_line
from tests.training.lakes import TASK, lake_of, stored
from tests.training.publishing.readers import problems
from tests.training.publishing.test_forms import KNOWN, LS, as_form
from tests.training.scenario import (
    FINGERPRINT,
    call,
    judgement,
    line_of,
    metadata,
    said,
    says,
    scores,
    session,
    turn,
)

GOOD = session("good", turn("Fix the loop.", says("Fixed, and the tests pass.")))
BAD = session("bad", turn("Fix the loop.", says("Somehow it does not work.")))


def line(
    of: Session, verdict: VerdictName, quality: float = 0.5, judged: float = 0.5, remark: str = ""
) -> StoredLine:
    rated = scores(of, None, verdict=said(verdict))
    first = replace(rated.verdicts[0], value=quality, rationale=remark)
    rated = replace(rated, verdicts=(first, *rated.verdicts[1:]))
    return decoded(encode_line(line_of(of, scores=rated, judgements=[judgement(of, score=judged)])))


def test_a_pair_says_why_the_one_is_better() -> None:
    made_line = pair_line(
        line(GOOD, "done_verified", 0.9, 0.8, "turn 1 ends with\npassing tests"),
        line(BAD, "partly", 0.3, 0.2, "nothing was checked"),
    )
    assert made_line is not None
    assert problems("preference", encoded(made_line)) == []
    made = json.loads(encoded(made_line))
    assert made["reasons"] == [
        "done, checked, against partly done (better: The last check passed: pytest.; worse: The "
        "last check failed: pytest.)",
        "judge reuse 0.80 against 0.20 (better: uses what is there; worse: uses what is there)",
        "dimension task_completion 0.90 against 0.30 (better: turn 1 ends with passing tests; "
        "worse: nothing was checked)",
    ]
    assert made["chosen"][-1]["content"] == "Fixed, and the tests pass."
    assert (made["chosen_session"], made["rejected_session"]) == ("good", "bad")


def test_copies_of_which_other_things_are_said_are_no_pair() -> None:
    copy = session("copy", *GOOD.turns)
    assert pair_line(line(GOOD, "done_verified"), line(copy, "partly")) is None


def lake_rows(folder: Path, *sessions: Session) -> list[LineRow]:
    lake = lake_of(folder, sessions)
    stored(lake, near_duplicates="keep")
    return list(lake.read(LINES, f"{TASK}/{FINGERPRINT}", LineRow))


def test_sessions_that_began_with_the_same_words_are_known_by_them(tmp_path: Path) -> None:
    spaced = session("spaced", turn("Fix  the\nloop. ", says("Done.")))
    elsewhere = session("elsewhere", *GOOD.turns, repository="other")
    rows = lake_rows(tmp_path, BAD, GOOD, spaced, elsewhere, session("third"))
    openings = {row.session_id: row.opening for row in rows}
    assert openings["bad"] == openings["good"] == openings["spaced"]
    assert len(set(openings.values())) == 3


@pytest.mark.parametrize("opening", [turn("", says("On it."), images=1), turn("", images=2)])
def test_openings_that_nobody_knows_are_not_the_same(tmp_path: Path, opening: Turn) -> None:
    made = [session(name, opening, turn("Go.", says("Ok."))) for name in ("one", "other")]
    one, other = lake_rows(tmp_path, *made)
    assert one.opening != other.opening


def entrant(number: int, verdict: VerdictName, opening: str) -> LineRow:
    return LineRow(
        session_id=f"s{number}",
        window=1,
        split="train",
        verdict=verdict,
        offset=number,
        size=1,
        opening=opening,
        messages=2,
        tokens=1,
        digest="",
    )


ENTRANTS = st.lists(
    st.tuples(st.sampled_from(VERDICT_NAMES), st.sampled_from(["a", "b", "c"])), max_size=30
).map(lambda drawn: [entrant(number, *one) for number, one in enumerate(drawn)])


@given(ENTRANTS)
def test_each_is_in_one_pair_at_most_and_the_better_one_is_done_and_checked(
    entrants: list[LineRow],
) -> None:
    pairs = pairs_of(entrants)
    used = [row.offset for pair in pairs for row in pair]
    assert len(used) == len(set(used))
    assert [better.offset for better, _ in pairs] == sorted(row.offset for row, _ in pairs)
    for better, worse in pairs:
        assert better.verdict == "done_verified"
        assert worse.verdict in ("partly", "not_done")
        assert better.opening == worse.opening
    for opening in "abc":
        free = {
            row.verdict for row in entrants if row.opening == opening and row.offset not in used
        }
        assert "done_verified" not in free or free.isdisjoint({"partly", "not_done"})
        taken = {worse.verdict for better, worse in pairs if better.opening == opening}
        assert "not_done" not in free or "partly" not in taken, "what is not done is taken first"


UNDO = turn("No, that is wrong. Undo it.", says("Undone."), number=2)


def labels(line: SampleLine, standing: Standing = "") -> list[tuple[str, bool, str, str]]:
    return [
        (one["completion"][-1]["content"], one["label"], one["label_source"], one["reason"])
        for one in as_form("kto", encode_line(line), standing=standing)
    ]


def test_an_answer_that_the_person_corrects_is_not_desirable() -> None:
    of = session("s1", turn("Go.", says("", LS), says("Gone.")), UNDO)
    rated = scores(of, 0.4, verdict=said("done_unverified"))
    first, last = labels(line_of(of, scores=rated), "high")
    assert first == ("Gone.", False, "correction", "No, that is wrong. Undo it.")
    assert last == ("Undone.", True, "overall quality", "0.40, among the high ones of this export")


@pytest.mark.parametrize(
    ("verdict", "standing", "outcome", "label"),
    [
        ("done_verified", "low", None, (True, "verdict", "done, checked. The last check passed: pytest.")),
        ("partly", "high", None, (False, "verdict", "partly done. The last check failed: pytest.")),
        ("not_done", "", None, (False, "verdict", "not done. The last check failed: pytest.")),
        ("done_unverified", "", None, None),
        ("cannot_tell", "", None, None),
        ("cannot_tell", "low", None, (False, "overall quality", "0.70, among the low ones of this export")),
        ("done_verified", "high", False, (False, "outcome", "not done. A person's label says so.")),
        ("partly", "low", True, (True, "outcome", "done, checked. A person's label says so.")),
    ],
)  # fmt: skip
def test_a_sessions_end_is_labelled_by_its_verdict_and_by_quality_only_when_that_is_asked_for(
    verdict: VerdictName,
    standing: Standing,
    outcome: bool | None,
    label: tuple[bool, str, str] | None,
) -> None:
    of = session("s1", KNOWN)
    known = None if outcome is None else Success(outcome, "person", "s1")
    line = line_of(of, scores=scores(of, verdict=said(verdict)), outcome=known)
    assert [one[1:] for one in labels(line, standing)] == ([label] if label else [])


@given(st.dictionaries(st.text(), st.floats(0, 1)), st.floats(0, 0.5))
def test_the_ends_of_an_export_are_apart_and_of_the_asked_size(
    qualities: dict[str, float], share: float
) -> None:
    ends = standings(qualities, share)
    low, high = ([qualities[one] for one in ends if ends[one] == end] for end in ("low", "high"))
    assert len(low) == len(high) <= len(qualities) * share
    rest = [quality for name, quality in qualities.items() if name not in ends]
    if low:
        assert min(high) - max(low) >= MIN_MARGIN
        assert all(max(low) <= one <= min(high) for one in rest)


def test_a_trajectory_has_its_beginning_its_check_and_its_rewards() -> None:
    tested = call("Bash", {"command": "cd app && uv run pytest -q"}, "2 passed")
    linted = call("Bash", {"command": "ruff check"}, "ok")
    gone = call("Bash", {"command": "pytest -q && git commit -am Gone"}, "2 passed")
    turns = (turn("Go.", says("", linted), says("", tested, gone), says("Gone.")), UNDO)
    of = session("s1", *turns)
    line = line_of(of, metadata=metadata(of, base_commit="1" * 40), scores=scores(of, None))
    (made,) = as_form("rl", encode_line(line))
    assert made["prompt"] == [{"role": "user", "content": "Go."}]
    assert made["environment"]["base_commit"] == "1" * 40
    assert made["environment"]["check"] == "cd app && uv run pytest -q"
    assert made["reward_model"]["ground_truth"] == made["environment"]["check"]
    assert (made["reward"], made["reward_source"]) == (1.0, "verdict")
    assert made["step_rewards"] == [0.0, 0.0, -1.0, 1.0]


@pytest.mark.parametrize(
    ("verdict", "outcome", "reward"),
    [
        ("done_verified", None, (1.0, "verdict")),
        ("partly", None, (0.0, "verdict")),
        ("not_done", None, (0.0, "verdict")),
        ("done_unverified", None, (None, "none")),
        ("cannot_tell", None, (None, "none")),
        ("cannot_tell", True, (1.0, "outcome")),
        ("done_verified", False, (0.0, "outcome")),
    ],
)
def test_a_reward_is_an_outcome_or_a_verdict_and_never_made_up(
    verdict: VerdictName, outcome: bool | None, reward: tuple[float | None, str]
) -> None:
    of = session("s1", KNOWN)
    known = None if outcome is None else Success(outcome, "ci", "s1")
    rated = scores(of, 0.9, verdict=said(verdict))
    (made,) = as_form("rl", encode_line(line_of(of, scores=rated, outcome=known)))
    assert (made["reward"], made["reward_source"]) == reward
    assert made["step_rewards"][-1] == reward[0]
