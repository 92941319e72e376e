"""Agreement as the orchestrator makes it: measured, failing closed, and asked for."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.agreement import agreement_suffices, judge_agreement
from resources import EvaluatorResource
from tests.assets.running import metadata, resources
from tests.rubrics.test_agreement import FRACTIONS, csv_of, ident, lake_with, planted

PAIRS = planted(0.75, 5, 1)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lake_with(tmp_path, [FRACTIONS[b] for _, b in PAIRS])
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    for name in ("DEBRIEF_LABELS", "DEBRIEF_FEEDBACK", "DEBRIEF_MIN_AGREEMENT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def made(place: Path) -> tuple[dg.ExecuteInProcessResult, str]:
    """A run of the asset and its check, and the page that it leaves."""
    evaluator = EvaluatorResource(offline=True, repository=str(place))
    result = dg.materialize(
        [judge_agreement, agreement_suffices],
        resources=resources(str(place / "lake"), evaluator=evaluator),
        raise_on_error=False,
    )
    return result, (place / "lake/reports/judge_agreement.md").read_text()


def check_of(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    (check,) = result.get_asset_check_evaluations()
    return check


def test_planted_labels_give_the_planted_kappa_and_a_demand_is_checked_against_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ((ident(n), "code-reuse", FRACTIONS[a]) for n, (a, _) in enumerate(PAIRS))
    monkeypatch.setenv("DEBRIEF_LABELS", csv_of(place, rows)["DEBRIEF_LABELS"])
    for minimum, passed in (("0.7", True), ("0.8", False)):
        monkeypatch.setenv("DEBRIEF_MIN_AGREEMENT", minimum)
        result, page = made(place)
        assert check_of(result).passed is passed
    shown = metadata(result)
    assert (shown["labels"], shown["matched"]) == (100, 100)
    assert "0.75 (" in shown["agreement"]
    assert "0.75 (" in page


def test_ids_that_have_drifted_fail_the_run_and_say_so(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ((ident(n).upper(), "code-reuse", 0.5) for n in range(4))
    monkeypatch.setenv("DEBRIEF_LABELS", csv_of(place, rows)["DEBRIEF_LABELS"])
    result, page = made(place)
    assert not result.success
    (failure,) = result.filter_events(lambda event: event.is_step_failure)
    assert "4 labels of people: not one matches" in str(failure.event_specific_data)
    assert "not one matches" in page


def test_without_labels_it_says_how_to_label_and_suffices_unless_asked_for(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, page = made(place)
    assert check_of(result).passed
    assert "No labels of people yet" in page
    monkeypatch.setenv("DEBRIEF_MIN_AGREEMENT", "0.1")
    check = check_of(made(place)[0])
    assert not check.passed
    assert "no judge or dimension has labels" in str(check.metadata["shortfall"].value)


def test_feedback_files_of_the_repository_are_read(place: Path) -> None:
    for n in range(2):
        folder = place / ".debrief/sessions" / ident(n)
        folder.mkdir(parents=True)
        (folder / "human_feedback.md").write_text("Fine.\n\ncode-reuse: 0.9\n")
    assert metadata(made(place)[0])["matched"] == 2
