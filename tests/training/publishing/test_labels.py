"""Labels: which answers are desirable, which are not, and what says so."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from debrief.scoring.verdict import VerdictName
from debrief.signals.schema import Ending
from debrief.training.model import SampleLine
from debrief.training.samples import encode_line
from tests.training.publishing.test_forms import KNOWN, LS, as_form
from tests.training.scenario import (
    call,
    line_of,
    outcome,
    said,
    says,
    scores,
    session,
    signals,
    turn,
)

UNDO = turn("No, that is wrong. Undo it.", says("Undone."), number=2)


def labels(line: SampleLine) -> list[tuple[str, bool, str, str]]:
    return [
        (one["completion"][-1]["content"], one["label"], one["label_source"], one["reason"])
        for one in as_form("kto", encode_line(line))
    ]


def test_an_answer_that_the_person_corrects_is_not_desirable() -> None:
    of = session("s1", turn("Go.", says("", LS), says("Gone.")), UNDO)
    rated = scores(of, 0.4, verdict=said("complete_unverified"))
    first, last = labels(line_of(of, scores=rated))
    assert first == ("Gone.", False, "correction", "No, that is wrong. Undo it.")
    assert last[:3] == ("Undone.", True, "review")


@pytest.mark.parametrize(
    ("verdict", "person", "label"),
    [
        ("complete_verified", None, (True, "review", "complete, verified. Reviewed by judge-1.")),
        ("complete_unverified", None, (True, "review", "complete, not verified. Reviewed by judge-1.")),
        ("partial", None, (False, "review", "partial. Reviewed by judge-1.")),
        ("failed", None, (False, "review", "failed. Reviewed by judge-1.")),
        ("undetermined", None, None),
        ("complete_verified", False, (False, "person", "failed. A person said so.")),
        ("partial", True, (True, "person", "complete, verified. A person said so.")),
    ],
)  # fmt: skip
def test_a_sessions_end_is_labelled_by_its_verdict_alone(
    verdict: VerdictName, person: bool | None, label: tuple[bool, str, str] | None
) -> None:
    of = session("s1", KNOWN)
    known = None if person is None else outcome(person, "view")
    line = line_of(of, scores=scores(of, verdict=said(verdict)), outcome=known)
    assert [label[1:] for label in labels(line)] == ([label] if label else [])


def test_a_session_that_nobody_reviewed_has_no_label() -> None:
    of = session("s1", KNOWN)
    assert labels(line_of(of, scores=None, signals=signals(of))) == []


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


@pytest.mark.parametrize("ending", ["open", "interrupted", "limit"])
def test_an_end_that_breaks_off_is_undesirable_and_not_the_whole_answer_before_it(
    ending: Ending,
) -> None:
    open_call = call("Bash", {"command": "make"}, None)
    broken = turn("Build it.", says("", LS), says("", open_call))
    alone = session("s1", broken)
    cut = session("s2", KNOWN, replace(broken, number=2))
    whole = session("s3", KNOWN, turn("Build it.", number=2))
    for of, found in ((alone, [False]), (cut, [False]), (whole, [])):
        rated = scores(of, verdict=said("partial"))
        line = line_of(of, scores=rated, signals=signals(of, ending=ending))
        assert [label[1] for label in labels(line)] == found
