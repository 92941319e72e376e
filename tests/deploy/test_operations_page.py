"""``docs/operations.md`` speaks of commands, options, settings and metrics that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import typer

import pipelines.command  # noqa: F401  registers its commands
from debrief.cli.app import app
from debrief.settings import load_settings
from pipelines.metrics import Metrics, sources

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs" / "operations.md").read_text()


def commands() -> Iterator[tuple[str, ...]]:
    for told in re.findall(r"`debrief ([^`]+)`|^\$ debrief (.+)$", PAGE, re.M):
        yield tuple((told[0] or told[1]).split())


@pytest.mark.parametrize("words", sorted(set(commands())), ids=" ".join)
def test_every_command_is_there_with_its_options(words: tuple[str, ...]) -> None:
    known = typer.main.get_command(app)
    rest = list(words)
    while hasattr(known, "commands") and rest:
        known = known.commands[rest.pop(0)]
    options = {option for parameter in known.params for option in parameter.opts}
    assert set(re.findall(r"--[a-z-]+", " ".join(rest))) <= options


def test_every_setting_is_written_up() -> None:
    written_up = (TOP / "docs" / "settings.md").read_text()
    named = set(re.findall(r"`((?:DEBRIEF|DAGSTER|DATABASE)_[A-Z_]+)`", PAGE))
    assert {name for name in named if name not in written_up} == set()


def test_every_metric_is_one_that_is_told(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    settings = load_settings({"DEBRIEF_HOME": str(tmp_path), "DATABASE_URL": postgres_url})
    monkeypatch.setenv("DAGSTER_HOME", "")
    with ExitStack() as stack:
        from debrief.recorder.storage.store import RecordStore

        with RecordStore(postgres_url) as store:
            store.migrate()
        metrics = Metrics(sources(settings, stack))
        told = {
            f"{found.name}_total" if found.type == "counter" else found.name
            for found in metrics.collect()
        }
        assert metrics.errors() == {}
    named = set(re.findall(r"`?\b(debrief_[a-z_]+[a-z])\b", PAGE))
    assert named <= told
    assert told - named <= {"debrief_pool_used", "debrief_pool_waiting", "debrief_tokens"}


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (TOP / "docs" / target).exists()
