"""What a run takes of models, and what it drops, in the words that a person sees first."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import typer
from msgspec.structs import replace

from debrief.cli.asking import AskingEstimate, agree, estimate_text
from debrief.cli.progress import shown_progress, spent_text
from debrief.errors import ConfigurationError
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.models.usage import ModelUsage, RunUsage
from debrief.scoring.model import SessionScores
from debrief.settings import Settings, load_settings
from debrief.stages.lost_rows import lost_rows
from tests.view.shown import fill, scores_of, session_of

ASKED = AskingEstimate(
    model="openai/tiny", calls=312, tokens=4_100_000, cost_usd=1.30, sessions=300, recalled=1
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"DEBRIEF_HOME": str(tmp_path)})


def limits(settings: Settings) -> tuple[float | None, int | None]:
    return settings.max_cost_usd, settings.max_calls


def test_what_it_takes_is_said_with_how_far_it_may_go(settings: Settings) -> None:
    said = (
        "openai/tiny would be asked 312 questions on 300 sessions: about 4.1 M tokens, about $1.30 "
    )
    assert estimate_text(ASKED, settings) == (
        f"{said}(up to $1.96), in 624 calls at most. Kept from before: 1 answer."
    )
    limited = settings.with_given(max_cost_usd=1.0)
    assert (
        f"{said}(up to $1.00, the limit; the rest is left for the next run), in"
        in estimate_text(ASKED, limited)
    )
    first = AskingEstimate(model="openai/tiny", calls=1, tokens=900, cost_usd=0.001)
    assert estimate_text(first, settings) == (
        "openai/tiny would be asked 1 question: about 900 tokens, about $0.0010 (up to $0.0100), "
        "in 2 calls at most."
    )
    unknown = replace(ASKED, cost_usd=None)
    assert f"not known ({settings.prices} may hold it)" in estimate_text(unknown, settings)
    assert "of its plan" in estimate_text(replace(unknown, model="claude-code"), settings)


def test_where_nobody_can_be_asked_a_limit_is_an_agreement_and_silence_is_none(
    settings: Settings,
) -> None:
    with pytest.raises(ConfigurationError, match="Add --yes, or a limit: --max-cost 2"):
        agree(ASKED, settings)
    with pytest.raises(typer.Exit):
        agree(ASKED, settings, dry_run=True)
    assert limits(agree(ASKED, settings, yes=True)) == (None, 624)
    assert limits(agree(ASKED, settings.with_given(max_cost_usd=2.0))) == (2.0, 624)
    assert limits(agree(ASKED, settings.with_given(max_calls=20))) == (None, 20)
    assert limits(agree(replace(ASKED, calls=0), settings)) == (None, 0)
    assert limits(agree(replace(ASKED, is_open=True), settings, yes=True)) == (None, None)
    with pytest.raises(ConfigurationError, match=r"Add --yes, or set DEBRIEF_MAX_CALLS=312\."):
        agree(replace(ASKED, cost_usd=None), settings)


def test_a_few_questions_are_asked_without_a_word_and_a_limit_holds(settings: Settings) -> None:
    assert limits(agree(ASKED, settings, is_small=True)) == (None, 624)
    unknown = replace(ASKED, cost_usd=None)
    assert limits(agree(unknown, settings, is_small=True)) == (None, 624)
    limited = settings.with_given(max_cost_usd=1.0)
    assert limits(agree(ASKED, limited, is_small=True)) == (1.0, 624)


def test_progress_has_calls_tokens_money_and_the_time_left() -> None:
    usage = ModelUsage(input_tokens=1_200_000, output_tokens=34_567, cost_usd=0.41)
    spent = RunUsage(calls=120, usage=usage)
    assert spent_text(spent, 300, 240) == (
        "120 of 300 calls, 1.2 M tokens, $0.41, about 6 min left"
    )
    assert spent_text(spent, 0, 240) == "120 calls, 1.2 M tokens, $0.41"
    assert spent_text(RunUsage(), 300, 1) == ""


def test_off_a_terminal_each_stage_is_one_line_that_counts_all_of_it(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logging.getLogger("debrief.progress")
    with shown_progress(settings):
        log.info("found 4 transcripts in 2 weeks")
        for number in (1, 2):
            log.info("raw_sessions week %s (%s of 2): 2 sessions", number, number)
        assert capsys.readouterr().err == "  found 4 transcripts in 2 weeks\n"
        log.info("recurring_friction 3 recurring")
        assert capsys.readouterr().err == "  raw_sessions week 2 (2 of 2): 2 sessions\n"
    assert capsys.readouterr().err == "  recurring_friction 3 recurring\n"
    kept = (settings.home / "logs/runs.log").read_text().splitlines()
    assert len(kept) == 4, "the log has every line"


def test_what_models_said_of_an_earlier_reading_is_counted_before_it_goes(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    kept, read_anew = session_of("kept"), session_of("anew")
    fill(lake, [(kept, 0.5), (read_anew, 0.5)])
    week = week_of(kept.started)
    rows = [
        replace(scores_of(kept, 0.5), model="openai/tiny"),
        replace(scores_of(read_anew, 0.5), model="openai/tiny", session_digest="of an old reading"),
    ]
    lake.write("session_scores", week, rows, SessionScores)
    assert lost_rows(lake, [week], "openai/other") == (
        "what openai/tiny said of 1 session is of an earlier reading of them. To have it anew: "
        "debrief run --model openai/tiny."
    )
    assert lost_rows(lake, [week], "openai/tiny") == ""
