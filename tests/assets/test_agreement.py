"""Agreement as the orchestrator makes it: measured, failing closed, and asked for."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg
import pytest

from assets.agreement import agreement_suffices, judge_agreement
from assets.outcomes import labels, labels_were_read
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
    evaluator = EvaluatorResource(no_model=True, repository=str(place))
    result = dg.materialize(
        [labels, labels_were_read, judge_agreement, agreement_suffices],
        resources=resources(str(place / "lake"), evaluator=evaluator),
        raise_on_error=False,
    )
    return result, (place / "lake/reports/judge_agreement.md").read_text()


def check_of(
    result: dg.ExecuteInProcessResult, name: str = "agreement_suffices"
) -> dg.AssetCheckEvaluation:
    checks = result.get_asset_check_evaluations()
    (check,) = [check for check in checks if check.check_name == name]
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
    shown = metadata(result, asset="judge_agreement")
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
    assert failure.step_key == "judge_agreement"
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
    assert metadata(made(place)[0], asset="judge_agreement")["matched"] == 2


def test_a_file_that_cannot_be_used_fails_the_run_and_costs_no_other_label(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ((ident(n), "code-reuse", FRACTIONS[a]) for n, (a, _) in enumerate(PAIRS))
    good = csv_of(place, rows)["DEBRIEF_LABELS"]
    monkeypatch.setenv("DEBRIEF_LABELS", f"{place / 'nowhere.csv'}{os.pathsep}{good}")
    result, page = made(place)
    assert metadata(result, asset="judge_agreement")["matched"] == 100
    (failure,) = result.filter_events(lambda event: event.is_step_failure)
    assert failure.step_key == "labels_labels_were_read"
    assert "nowhere.csv: cannot be read" in str(failure.event_specific_data)
    assert "nowhere.csv: cannot be read" in page


def test_lines_that_cannot_be_used_are_listed_and_no_failure(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = place / "labels.csv"
    file.write_text(f"session_id,success\n{ident(1)},yes\n{ident(2)},perhaps\n")
    monkeypatch.setenv("DEBRIEF_LABELS", str(file))
    result, _ = made(place)
    shown = metadata(result, asset="labels")
    assert (shown["dagster/row_count"], shown["sessions_decided"], shown["not_read"]) == (1, 1, 1)
    check = check_of(result, "labels_were_read")
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "labels.csv:3: success is" in str(check.metadata["problems"].value).replace("\\", "")
    file.write_text(f"session_id,success\n{ident(1)},no\n")
    assert check_of(made(place)[0], "labels_were_read").passed
