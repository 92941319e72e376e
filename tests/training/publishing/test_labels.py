"""Labels: which answers are desirable, which are not, and what says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.outcomes.store import Success
from debrief.scoring.verdict import Basis, VerdictName
from debrief.training.model import SampleLine
from debrief.training.publishing.form import Standing
from debrief.training.publishing.labels import MIN_MARGIN, standings
from debrief.training.samples import encode_line
from tests.training.publishing.test_forms import KNOWN, LS, as_form
from tests.training.scenario import call, line_of, said, says, scores, session, turn

UNDO = turn("No, that is wrong. Undo it.", says("Undone."), number=2)


def labels(line: SampleLine, standing: Standing = "") -> list[tuple[str, bool, str, str]]:
    return [
        (one["completion"][-1]["content"], one["label"], one["label_source"], one["reason"])
        for one in as_form("kto", encode_line(line), standing=standing)
    ]


def test_an_answer_that_the_person_corrects_is_not_desirable() -> None:
    of = session("s1", turn("Go.", says("", LS), says("Gone.")), UNDO)
    rated = scores(of, 0.4, verdict=said("complete_unverified"))
    first, last = labels(line_of(of, scores=rated), "high")
    assert first == ("Gone.", False, "correction", "No, that is wrong. Undo it.")
    assert last == ("Undone.", True, "overall quality", "0.40, among the high ones of this export")


@pytest.mark.parametrize(
    ("verdict", "standing", "outcome", "label"),
    [
        ("complete_verified", "low", None, (True, "verdict", "done, checked. The last check passed: pytest.")),
        ("partial", "high", None, (False, "verdict", "partly done. The last check failed: pytest.")),
        ("failed", "", None, (False, "verdict", "not done. The last check failed: pytest.")),
        ("complete_unverified", "", None, None),
        ("undetermined", "", None, None),
        ("undetermined", "low", None, (False, "overall quality", "0.70, among the low ones of this export")),
        ("complete_verified", "high", False, (False, "outcome", "not done. A person's label says so.")),
        ("partial", "low", True, (True, "outcome", "done, checked. A person's label says so.")),
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
    assert [label[1:] for label in labels(line, standing)] == ([label] if label else [])


def test_nothing_is_desirable_that_is_not_trained_on_elsewhere() -> None:
    refused = call("Bash", {"command": "rm -rf ."}, "The user doesn't want to.", status="rejected")
    of = session("s1", turn("Go.", says("", refused), says("", LS), says("Gone.")))
    found: dict[VerdictName, str] = {
        "complete_verified": "assistant tool assistant",
        "partial": "assistant tool assistant tool assistant",
    }
    for verdict, roles in found.items():
        rated = scores(of, verdict=said(verdict))
        (made,) = as_form("kto", encode_line(line_of(of, scores=rated)))
        assert [one["role"] for one in made["completion"]] == roles.split()
        assert made["label"] == (verdict == "complete_verified")
        whole = [*made["prompt"], *made["completion"]]
        assert [one["role"] for one in whole] == [
            "user",
            "assistant",
            "tool",
            "assistant",
            "tool",
            "assistant",
        ]


@pytest.mark.parametrize("basis", ["open_end", "stopped"])
def test_an_end_that_breaks_off_is_undesirable_and_not_the_whole_answer_before_it(
    basis: Basis,
) -> None:
    open_call = call("Bash", {"command": "make"}, None)
    broken = turn("Build it.", says("", LS), says("", open_call))
    alone = session("s1", broken)
    cut = session("s2", KNOWN, replace(broken, number=2))
    whole = session("s3", KNOWN, turn("Build it.", number=2))
    for of, found in ((alone, [False]), (cut, []), (whole, [])):
        rated = scores(of, verdict=said("partial", basis=basis))
        assert [label[1] for label in labels(line_of(of, scores=rated))] == found


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
