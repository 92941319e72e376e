from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.errors import ConfigurationError
from debrief.settings import load_settings
from tools.settings_page import PAGE, settings_page


def environment_file(home: Path, text: str, mode: int = 0o600) -> None:
    home.mkdir(exist_ok=True)
    path = home / ".env"
    path.write_text(text)
    path.chmod(mode)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    environment_file(tmp_path, "OPENROUTER_API_KEY=from-file\nDEBRIEF_MODEL=m\n")
    settings = load_settings(
        {"DEBRIEF_HOME": str(tmp_path), "OPENROUTER_API_KEY": "from-environment"}
    )
    assert settings.variable("OPENROUTER_API_KEY") == "from-environment"
    assert settings.model == "m"


def test_a_key_file_that_others_can_read_is_refused_with_the_command_that_mends_it(
    tmp_path: Path,
) -> None:
    environment_file(tmp_path, "OPENROUTER_API_KEY=x\n", mode=0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        load_settings({"DEBRIEF_HOME": str(tmp_path)})


def test_the_lake_is_beside_the_home_unless_it_is_named(tmp_path: Path) -> None:
    assert load_settings({"DEBRIEF_HOME": str(tmp_path)}).lake == str(tmp_path / "lake")
    named = load_settings({"DEBRIEF_HOME": str(tmp_path), "DEBRIEF_LAKE": "s3://bucket/lake"})
    assert named.lake == "s3://bucket/lake"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("DEBRIEF_TIMEOUT", "many", "'many' should be a valid number"),
        ("DEBRIEF_TIMEOUT", "-1", "'-1' should be greater than or equal to 0"),
        ("DEBRIEF_MAX_COST_USD", "nan", "'nan' should be a finite number"),
        ("DEBRIEF_MAX_CALLS", "1.5", "'1.5' should be a valid integer"),
        ("DEBRIEF_CONCURRENCY", "0", "'0' should be greater than 0"),
        ("DEBRIEF_CACHE", "maybe", "'maybe' should be a valid boolean"),
        ("DEBRIEF_CACHE_MB", "inf", "'inf' should be a finite number"),
        ("DEBRIEF_LAUNCH", "celery", "'celery' should be 'here' or 'queue'"),
        ("DEBRIEF_WEEKS_A_RUN", "²", "'²' should be a valid integer"),
        ("DEBRIEF_LANGFUSE_SINCE", "last year", "'last year' should be a valid datetime or date"),
        ("DEBRIEF_LANGFUSE_REQUESTS_A_MINUTE", "0", "'0' should be greater than 0"),
        ("DEBRIEF_MIN_AGREEMENT", "2", "'2' should be less than or equal to 1"),
        ("DEBRIEF_SCORE_NAMES", "clarity,../up", "'../up' is no score name"),
        ("DEBRIEF_SCORE_NAMES", ",", "names no score"),
        ("DEBRIEF_EXTRACTION_MIN_RUBRICS", "0", "'0' should be greater than 0"),
        ("DEBRIEF_EXTRACTION_MAX_RUBRICS", "2", "2 is below DEBRIEF_EXTRACTION_MIN_RUBRICS, 3"),
        ("DEBRIEF_RECORDER_IGNORE", "'*.log", "No closing quotation"),
    ],
)
def test_a_wrong_value_is_refused_with_its_variable(name: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}: {re.escape(reason)}"):
        load_settings({"DEBRIEF_HOME": "/nowhere", name: value})


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load_settings({"DEBRIEF_HOME": "/nowhere", "DEBRIEF_TIMEOUT": ""}).timeout == 180


def test_lists_are_read_from_one_variable() -> None:
    environ = {
        "DEBRIEF_HOME": "/nowhere",
        "DEBRIEF_FALLBACK_MODELS": "a/b, c,",
        "DEBRIEF_LABELS": "/one.csv:/two.csv",
        "DEBRIEF_RECORDER_IGNORE": "'my notes/*' *.log",
    }
    settings = load_settings(environ)
    assert settings.fallback_models == ("a/b", "c")
    assert settings.labels == (Path("/one.csv"), Path("/two.csv"))
    assert settings.recorder_ignore == ("my notes/*", "*.log")


def test_no_secret_shows_when_settings_are_printed() -> None:
    secrets = ["DEBRIEF_REDACTION_KEY", "LANGFUSE_SECRET_KEY", "DEBRIEF_RECORDER_TOKEN"]
    secrets += ["DATABASE_URL", "DAGSTER_DATABASE_URL", "DEBRIEF_STATE_URL", "OPENAI_API_KEY"]
    secrets += ["DEBRIEF_WEBHOOK_URL", "DEBRIEF_BROKER"]
    environ = dict.fromkeys(secrets, "not-to-be-seen")
    assert "not-to-be-seen" not in repr(load_settings({"DEBRIEF_HOME": "/nowhere", **environ}))


def test_the_settings_page_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert settings_page(page) == page, "Run: python -m tools.settings_page"


@pytest.mark.parametrize(
    "name", ["DEBRIEF_MODEL_BASE_URL", "LANGFUSE_HOST", "DEBRIEF_RECORDER_URL", "DEBRIEF_SESSIONS"]
)
def test_an_address_with_a_password_is_refused_and_not_repeated(name: str) -> None:
    with pytest.raises(ConfigurationError, match="keys belong in the env") as told:
        load_settings({name: "s3://ann:geheim@example.org/v1"})
    assert "geheim" not in str(told.value)


@given(st.integers(1, 100), st.integers(1, 100))
def test_no_more_rubrics_are_asked_for_at_least_than_at_most(least: int, most: int) -> None:
    given = {
        "DEBRIEF_EXTRACTION_MIN_RUBRICS": str(least),
        "DEBRIEF_EXTRACTION_MAX_RUBRICS": str(most),
    }
    if least <= most:
        settings = load_settings(given)
        found = settings.extraction_min_rubrics, settings.extraction_max_rubrics
        assert found == (least, most)
    else:
        with pytest.raises(ConfigurationError, match="DEBRIEF_EXTRACTION_MAX_RUBRICS"):
            load_settings(given)


def test_score_names_are_three_unless_they_are_named_however_they_are_spelt() -> None:
    usual = ("excellence", "token_efficiency", "user_turn_efficiency")
    assert load_settings({}).score_names == usual
    named = load_settings(
        {"DEBRIEF_SCORE_NAMES": "Excellence, Token-Efficiency,clarity, excellence"}
    )
    assert named.score_names == ("excellence", "token_efficiency", "clarity")
