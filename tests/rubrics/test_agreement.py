"""Judges against people: planted agreement is found again, and none is made up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import structs

from debrief.errors import InputError
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.outcomes.gathering import read_labels
from debrief.outcomes.store import Label, LabelledSession, Labels, Roll, put_labels
from debrief.rubrics.agreement import AGREEMENT, ALL, Agreement, AgreementRow, compare
from debrief.rubrics.agreement_report import (
    agreement_markdown,
    agreement_shortfall,
    agreement_text,
    store_agreement,
)
from debrief.rubrics.measures import Measure, measures_of
from debrief.rubrics.model import Rubric
from debrief.scoring.model import SessionScores
from debrief.sessions.model import SessionHead
from debrief.settings import load_settings
from debrief.stats import gwet_ac1, weighted_kappa
from tests.langfuse.scenario import scored
from tests.markup import signs_of_life
from tests.rubrics.scenario import rubric
from tests.snapshots.scenario import head
from tests.training.scenario import judgement, rubric_evaluation

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
FRACTIONS = [0.1, 0.3, 0.5, 0.7, 0.9]


def ident(number: int) -> str:
    return f"0a1b2c3d-{number:04}-4e5f-8a9b-0123456789ab"


def judged(values: Iterable[float], judge: str = "code-reuse") -> list[JudgeEvaluation]:
    return [
        judgement(head(ident(n), started=NOW), judge, value, model="m", eval_fingerprint="e" * 8)
        for n, value in enumerate(values)
    ]


def labelled(values: Iterable[object], name: str = "code-reuse", rater: str = "") -> list[Label]:
    return [
        Label(
            session_id=ident(n),
            name=name,
            value=str(value),
            source="csv",
            rater=rater,
            origin="l.csv",
            line=n + 1,
        )
        for n, value in enumerate(values)
    ]


def roll(count: int) -> Roll:
    return Roll(LabelledSession(id=ident(n), task="shop", started=NOW) for n in range(count))


def compared(labels: Sequence[Label], measures: Sequence[Measure], count: int = 200) -> Agreement:
    return compare(Labels(labels=tuple(labels)), measures, roll(count))


def planted(share: float, levels: int, size: int) -> list[tuple[int, int]]:
    """Pairs whose kappa is ``share`` in any weighting: agreement laid over independence.

    Every level is equally frequent, so is every pair in the independent part.
    """
    independent = [(a, b) for a in range(levels) for b in range(levels)] * size
    same = round(len(independent) * share / (1 - share) / levels)
    return independent + [(level, level) for level in range(levels)] * same


@pytest.mark.parametrize(
    ("share", "levels", "size"),
    [(0.5, 5, 1), (0.75, 5, 1), (0.2, 5, 4), (0.875, 4, 1), (0.6, 2, 2), (0.0, 3, 2)],
)
def test_a_planted_kappa_is_reproduced_to_three_digits(
    share: float, levels: int, size: int
) -> None:
    pairs = planted(share, levels, size)
    for measure in (weighted_kappa, gwet_ac1):
        found = measure([a for a, _ in pairs], [b for _, b in pairs], levels)
        assert found is not None
        assert found.value == pytest.approx(share, abs=5e-4)
        assert found.low <= found.value <= found.high


def test_planted_labels_on_judges_and_rubrics_come_back_through_the_whole_comparison() -> None:
    pairs = planted(0.75, 5, 1)
    evaluations = [
        rubric_evaluation(head(ident(n), started=NOW), b + 1, rubric_key="key-1", model="m")
        for n, (_, b) in enumerate(pairs)
    ]
    measures = measures_of(judged(FRACTIONS[b] for _, b in pairs), [], evaluations, [rubric()])
    labels = [
        *labelled(FRACTIONS[a] for a, _ in pairs),
        *labelled((a + 1 for a, _ in pairs), name="key-1"),
    ]
    found = compared(labels, measures)
    assert [(row.kind, row.name, row.scale, row.labelled) for row in found.rows] == [
        ("judge", "code-reuse", "fraction", 100),
        ("rubric", "excellence/key-1", "five", 100),
    ]
    assert [row.kappa for row in found.rows] == pytest.approx([0.75, 0.75], abs=5e-4)
    assert [row.ac1 for row in found.rows] == pytest.approx([0.75, 0.75], abs=5e-4)


def test_a_category_is_held_against_the_category() -> None:
    scores = [scored(ident(n)) for n in range(6)]
    said = [verdict for verdict in scores[0].verdicts if verdict.dimension == "task_completion"]
    labels = labelled([said[0].category] * 5 + ["failed"], name="task_completion")
    (row,) = compared(labels, measures_of([], scores, [], [])).rows
    assert (row.scale, row.agreed, row.judged_by) == ("category", 5 / 6, "some-model")


def test_several_people_are_one_middle_label_and_are_held_against_each_other() -> None:
    measures = measures_of(judged([0.1, 0.9, 0.5]), [], [], [])
    labels = [
        *labelled([0.1, 0.9, 0.5], rater="ada"),
        *labelled([0.1, 0.9, 0.9], rater="ben"),
        *labelled([0.3, 0.9, 0.9], rater="cyd"),
    ]
    (row,) = compared(labels, measures).rows
    assert (row.labelled, row.raters) == (3, 3)
    assert row.agreed == pytest.approx(2 / 3)
    assert row.people_kappa is not None
    assert 0 < row.people_kappa < 1


def test_a_plain_yes_or_no_is_compared_as_good_or_not() -> None:
    measures = measures_of(judged([0.1, 0.9, 0.6, 0.4]), [], [], [])
    (row,) = compared(labelled(["no", "yes", "no", "0.2"]), measures).rows
    assert (row.scale, row.agreed) == ("yes_or_no", 0.75)
    assert (row.people_rate, row.judge_rate) == (0.25, 0.5)


def test_a_plan_stands_for_its_latest_session() -> None:
    days = {"s-old": NOW, "s-new": NOW.replace(day=3)}
    sessions = [LabelledSession(id=i, task="retry-queue", started=at) for i, at in days.items()]
    assert Roll(sessions).find("retry-queue") == "s-new"


DRIFTS = {
    "upper case": str.upper,
    "a path": lambda id_: f"/home/ada/.claude/projects/shop/{id_}.jsonl",
    "a prefix": lambda id_: f"claude-code:{id_}",
    "cut short": lambda id_: id_[:13],
    "no dashes": lambda id_: id_.replace("-", ""),
}


@pytest.mark.parametrize("drift", DRIFTS.values(), ids=DRIFTS)
def test_ids_that_have_drifted_fail_and_are_named(drift) -> None:  # type: ignore[no-untyped-def]
    labels = [
        Label(session_id=drift(ident(n)), name="code-reuse", value="0.5", source="csv", origin="l")
        for n in range(4)
    ]
    with pytest.raises(InputError) as caught:
        compared(labels, measures_of(judged([0.5] * 4), [], [], []), count=4)
    said = str(caught.value)
    assert said.startswith("4 labels of people: not one matches a scored session")
    assert f"{drift(ident(0))!r} looks like session {ident(0)}" in said


DRIFTED = Label(
    session_id=ident(0).upper(), name="code-reuse", value="0.5", source="csv", origin="l"
)


@pytest.mark.parametrize(
    ("labels", "reasons"),
    [
        pytest.param(
            [*labelled([0.5] * 20), *[DRIFTED] * 3],
            ["3 of 23 labels of people: their ids have drifted"],
            id="a part has drifted, and the rest is no sample",
        ),
        pytest.param(
            [*labelled([0.5] * 20), structs.replace(DRIFTED, name="plan")],
            ["1 labels of people, named plan: not one matches"],
            id="all of one name have drifted, however many others match",
        ),
        pytest.param(
            [structs.replace(DRIFTED, session_id="run-17")],
            ["no session of that id", "run-17", ident(0)],
            id="on sessions that nobody knows",
        ),
        pytest.param(labelled([4], "rubric_001"), ["use its key"], id="on a rubric's place"),
        pytest.param(
            labelled([7, 8]),
            ["2 labels of people: not one matches", "is not from 0 to 1"],
            id="none can be read",
        ),
    ],
)
def test_labels_that_are_no_sample_fail_and_say_why(
    labels: list[Label], reasons: list[str]
) -> None:
    measures = measures_of([*judged([0.5] * 20), *judged([0.5] * 20, "plan")], [], [], [])
    with pytest.raises(InputError) as caught:
        compared(labels, measures)
    assert all(reason in str(caught.value) for reason in reasons)


def test_one_label_in_twenty_may_have_drifted() -> None:
    found = compared([*labelled([0.5] * 20), DRIFTED], measures_of(judged([0.5] * 20), [], [], []))
    assert (found.matched, found.labels) == (20, 21)
    assert found.unmatched[0].similar_to == ident(0)


def test_free_text_that_names_nothing_known_is_no_label_at_all() -> None:
    loose = Label(session_id="plan-9", name="Note", value="good", source="person", loose=True)
    found = compared([loose], measures_of(judged([0.5]), [], [], []))
    assert (found.labels, found.rows, found.unmatched) == (0, (), ())


def test_a_value_off_the_scale_is_reported_with_its_place() -> None:
    labels = [*labelled([0.5, 0.5]), *labelled([7])]
    found = compared(labels, measures_of(judged([0.5, 0.5]), [], [], []))
    assert found.problems[0].startswith("l.csv:1: code-reuse: 7: is not from 0 to 1")


def lake_with(tmp_path: Path, values: Sequence[float]) -> Lake:
    lake = Lake(str(tmp_path / "lake"))
    heads = [
        SessionHead(id=ident(n), source="s", tool="t", task="shop", started=NOW, ended=NOW)
        for n in range(len(values))
    ]
    lake.write("raw_sessions", "2026-03-02", heads, SessionHead)
    lake.write("judge_evaluations", "2026-03-02", judged(values), JudgeEvaluation)
    scores = [scored(ident(n)) for n in range(len(values))]
    lake.write("session_scores", "2026-03-02", scores, SessionScores)
    lake.write("rubrics", "excellence", [rubric()], Rubric)
    return lake


def csv_of(tmp_path: Path, rows: Iterable[tuple[str, str, object]]) -> dict[str, str]:
    path = tmp_path / "labels.csv"
    lines = [",".join(map(str, row)) for row in rows]
    path.write_text("session_id,name,value\n" + "\n".join(lines) + "\n")
    return {"DEBRIEF_HOME": str(tmp_path / "home"), "DEBRIEF_LABELS": str(path)}


def test_agreement_goes_from_a_file_into_the_lake_and_onto_the_card(tmp_path: Path) -> None:
    pairs = planted(0.5, 5, 1)
    lake = lake_with(tmp_path, [FRACTIONS[b] for _, b in pairs])
    assert agreement_text(lake) == ""
    assert "no judge or dimension has labels" in agreement_shortfall(lake, 0.1)
    environ = csv_of(
        tmp_path, ((ident(n), "code-reuse", FRACTIONS[a]) for n, (a, _) in enumerate(pairs))
    )
    put_labels(lake, read_labels(load_settings(environ), None, tmp_path))
    agreement = store_agreement(lake)
    assert [row.kappa for row in lake.read(AGREEMENT, ALL, AgreementRow)] == [0.5]
    assert store_agreement(lake) == agreement
    assert agreement_text(lake).startswith("code-reuse kappa 0.50 (")
    assert "50 of 50 sessions labelled" in agreement_text(lake)
    assert agreement_text(lake, judged_by=["offline"]) == ""
    page = agreement_markdown(agreement)
    assert "| judge code-reuse | m eeeeeeee | 50 of 50 (100%) | 0.50 (" in page
    assert agreement_shortfall(lake, None) == ""
    assert agreement_shortfall(lake, 0.5) == ""
    assert agreement_shortfall(lake, 0.6) == (
        "code-reuse agrees with people by 0.50, and 0.6 is asked for"
    )


def test_agreement_that_can_no_longer_be_measured_is_taken_away(tmp_path: Path) -> None:
    lake = lake_with(tmp_path, [0.1, 0.9])
    put_labels(lake, Labels(labels=tuple(labelled([0.1, 0.9]))))
    store_agreement(lake)
    lost = Label(session_id="x", name="code-reuse", value="1", source="csv", origin="l.csv")
    put_labels(lake, Labels(labels=(lost,), read={"csv": frozenset({"l.csv"})}))
    with pytest.raises(InputError):
        store_agreement(lake)
    assert list(lake.read(AGREEMENT, ALL, AgreementRow)) == []
    assert agreement_shortfall(lake, 0.1) != ""


def test_a_page_shows_what_people_wrote_as_text(tmp_path: Path) -> None:
    labels = [
        *labelled([0.5] * 2),
        Label(session_id="<b>|x", name="code-reuse", value="1", source="csv", origin="l"),
    ]
    page = agreement_markdown(compared(labels, measures_of(judged([0.5] * 2), [], [], [])))
    assert signs_of_life(page) == []
