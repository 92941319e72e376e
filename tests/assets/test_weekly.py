"""What a stage of weeks tells of itself in the UI, and what is checked about it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from assets.reports import done_in, fingerprint_leaderboard, weekly_report
from assets.sessions import raw_sessions, tokens_as_reported
from debrief.stages import reports
from debrief.stages.configuration import EvaluatorChoice
from debrief.weekly import DONE
from tests.assets.running import asset, resources
from tests.sessions.scenario import MONDAY, Log, usage
from tests.training.lakes import lake_of
from tests.training.test_store import team

session_scores = asset("session_scores")
session_signals = asset("session_signals")

WEEK = "2026-01-05"


@pytest.fixture(autouse=True)
def _without_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)


def _run(
    assets: dg.AssetsDefinition | Sequence[dg.AssetsDefinition],
    tmp_path: Path,
    week: str | None,
    **evaluator: object,
) -> tuple[dg.ExecuteInProcessResult, Sequence[dg.EventLogEntry]]:
    by = EvaluatorChoice.model_validate(evaluator)
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            assets if isinstance(assets, Sequence) else [assets],
            partition_key=week,
            instance=instance,
            resources=resources(str(tmp_path / "lake"), evaluator=by),
            raise_on_error=False,
        )
        return result, instance.all_logs(result.run_id)


def test_why_a_stage_failed_stands_in_a_line_of_its_own(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", team(2), {})
    result, entries = _run(session_scores, tmp_path, WEEK, model="openrouter/some/model")
    assert not result.success
    told = [entry.user_message for entry in entries if entry.level == logging.ERROR]
    assert any("OPENROUTER_API_KEY" in line for line in told)


def test_a_week_is_summed_up_before_anything_else(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", team(2), {})
    result, _ = _run(session_signals, tmp_path, WEEK, no_model=True)
    (made,) = result.asset_materializations_for_node("session_signals")
    assert next(iter(made.metadata)) == "in_short"
    assert "shown_at" not in made.metadata, "plain Dagster has no such page"
    assert str(made.metadata["in_short"].value).startswith("1 session")


def test_a_week_links_to_its_page_where_pages_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_VIEW_URL", "https://debrief.example/")
    lake_of(tmp_path / "lake", team(2), {})
    result, _ = _run(session_scores, tmp_path, WEEK, no_model=True)
    (made,) = result.asset_materializations_for_node("session_scores")
    shown_at = f"https://debrief.example/sessions?week={made.partition}"
    assert made.metadata["shown_at"].value == shown_at


def test_a_week_without_sessions_is_skipped_and_nothing_is_written(tmp_path: Path) -> None:
    result, _ = _run(session_scores, tmp_path, WEEK, no_model=True)
    (made,) = result.asset_materializations_for_node("session_scores")
    assert not made.metadata
    assert not (tmp_path / "lake" / "session_scores").exists()


def test_a_page_keeps_what_was_done_through_versions_and_one_that_alone_says_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(tmp_path / "lake", team(2), {})
    path, done = f"reports/{WEEK}.md", "| session_signals | 1 | 1 | 0 | 0 |"

    def page(*assets: dg.AssetsDefinition) -> str:
        result, _ = _run([*assets, weekly_report], tmp_path, WEEK, no_model=True)
        assert result.success
        assert reports.report_is_current(lake, WEEK)
        return (lake.read_bytes(path) or b"").decode()

    first = page(session_signals)
    assert page(fingerprint_leaderboard) == first  # of all weeks, and no work of this one
    assert done in first
    monkeypatch.setattr(reports, "PAGE", "of a later version")
    assert not reports.report_is_current(lake, WEEK)
    lake.write_bytes(path, b"other words")
    assert page() == first
    lake.drop(DONE, WEEK)  # as versions left it that had the page alone
    assert not reports.report_is_current(lake, WEEK)
    assert page() == first  # it alone says what was done, and what that cost
    lake.drop(DONE, WEEK)
    (tmp_path / "lake" / path).unlink()
    assert done not in page()


def test_rows_of_a_table_without_weeks_count_as_done(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", team(4), {})
    result, _ = _run(fingerprint_leaderboard, tmp_path, None, no_model=True)
    (made,) = result.asset_materializations_for_node("fingerprint_leaderboard")
    (done,) = done_in(result.all_events)
    assert done.rows == made.metadata["dagster/row_count"].value
    assert done.rows
    assert done.fresh == done.rows


def test_sessions_whose_tokens_are_not_as_their_tool_reports_are_counted_and_named(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "sessions"
    for number, output in enumerate((9, 1, None)):
        log = Log("Go", session=f"0a1b2c3d-0000-4000-8000-00000000000{number}")
        log.says("Done.", usage=usage(10, 2))
        if output is not None:
            spent = {"m": {"inputTokens": 10, "outputTokens": output}}
            log.add("cost-state", modelUsage=spent, startTime=1000 * MONDAY.timestamp(), uuid=None)
        log.write(folder / f"{log.session}.jsonl")
    result = dg.materialize(
        [raw_sessions, tokens_as_reported],
        partition_key=WEEK,
        resources=resources(str(tmp_path / "lake"), folders=[str(folder)]),
    )
    (check,) = result.get_asset_check_evaluations()
    assert not check.passed
    assert check.severity == dg.AssetCheckSeverity.WARN
    assert check.metadata["sessions_with_a_total"].value == 2
    assert check.metadata["disagreeing"].value == 1
    assert "output=1," in str(check.metadata["sessions"].value)
