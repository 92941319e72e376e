"""Models as a machine's settings configure them."""

from __future__ import annotations

from pathlib import Path

import pytest

from debrief.errors import ConfigurationError, ModelError
from debrief.models.choosing import Models, key_name
from debrief.settings import Settings, load_settings
from tests.models.openai_server import OpenAIServer, Reply


def settings(home: Path, **values: str) -> Settings:
    return load_settings({"DEBRIEF_HOME": str(home), **values})


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("openrouter/x-ai/grok-4.1-fast", "OPENROUTER_API_KEY"),
        ("gpt-4o-mini", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("nano-gpt/x", "NANO_GPT_API_KEY"),
        ("together_ai/x/y", "TOGETHERAI_API_KEY"),
    ],
)
def test_the_key_is_the_providers(model: str, key: str) -> None:
    assert key_name(model) == key


def test_a_missing_key_is_named_with_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"OPENROUTER_API_KEY is not set.*\.env"):
        Models(settings(tmp_path)).get("openrouter/acme/tiny")


def test_a_key_in_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("OPENROUTER_API_KEY=sk-or-1\n")
    file.chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        settings(tmp_path)
    file.chmod(0o600)
    assert Models(settings(tmp_path)).get("openrouter/acme/tiny").name == "openrouter/acme/tiny"


def test_a_server_on_this_machine_needs_no_key(tmp_path: Path) -> None:
    assert Models(settings(tmp_path)).get("ollama/llama3").name == "ollama/llama3"


def test_one_run_shares_cache_budget_and_count_between_its_models(tmp_path: Path) -> None:
    with OpenAIServer(lambda call: Reply("Fine.")) as server:
        models = Models(
            settings(tmp_path, DEBRIEF_MODEL_BASE_URL=server.url, DEBRIEF_MAX_CALLS="2")
        )
        assert models.get("openai/a") is models.get("openai/a")
        models.get("openai/a").ask("x")
        models.get("openai/b").ask("x")
        with pytest.raises(ModelError, match="max_calls"):
            models.get("openai/b").ask("y")
    assert models.spent.calls == 2
    assert (tmp_path / "cache" / "answers.sqlite").is_file()


def test_a_fallback_is_asked_only_when_it_is_configured(tmp_path: Path) -> None:
    def reply(model: str) -> Reply:
        return Reply(status=400) if model == "a" else Reply("From b.")

    with OpenAIServer(lambda call: reply(call.body["model"])) as server:
        base = {"DEBRIEF_MODEL_BASE_URL": server.url}
        with pytest.raises(ModelError, match="openai/a"):
            Models(settings(tmp_path, **base)).get("openai/a").ask("x")
        models = Models(settings(tmp_path, **base, DEBRIEF_FALLBACK_MODELS="openai/b"))
        assert models.get("openai/a").ask("x").model == "openai/b"
        assert models.spent.calls == 1


def test_the_cache_can_be_turned_off(tmp_path: Path) -> None:
    Models(settings(tmp_path, DEBRIEF_CACHE="off", OPENAI_API_KEY="k")).get("openai/a")
    assert not (tmp_path / "cache").exists()
