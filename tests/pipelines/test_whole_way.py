"""Hostile transcripts of every tool, through everything: no secret and no markup comes out."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from debrief.errors import CONTROLS
from tests.benchmarks.whole_way import commands
from tests.markup import signs_of_life
from tests.pipelines.conftest import Home, history_of
from tests.planting import Planted, Search, write_markup, write_transcripts

KINDS = ("github", "password")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Planted]:
    """Return the folder of all that came of transcripts, and the secrets that were in them."""
    given, made = tmp_path_factory.mktemp("given"), tmp_path_factory.mktemp("made")
    planted = write_transcripts(given, KINDS)
    write_markup(given)
    home = Home(made)
    for number, words in enumerate(commands(given, made)):
        said = home.typed(*words)
        (made / f"printed-{number}.txt").write_text(said.all)
        assert said.code == int("none.jsonl" in words[1]), said.all
    return made, planted


def test_no_secret_is_anywhere(planted: tuple[Path, Planted]) -> None:
    made, secrets = planted
    assert len(secrets.places) > 500
    assert (made / "exports" / "messages").is_dir()
    assert any((made / "store").rglob("*.jsonl"))
    found = Search(secrets).below(made)
    assert {secrets.places[secret]: where[0] for secret, where in found.items()} == {}


def test_what_is_looked_for_would_be_found(tmp_path: Path) -> None:
    secrets = write_transcripts(tmp_path, KINDS)
    assert set(Search(secrets).below(tmp_path)) == set(secrets.places)


def test_nothing_on_a_page_or_a_terminal_is_alive(planted: tuple[Path, Planted]) -> None:
    made, _ = planted
    pages: dict[str, str] = {}
    with history_of(made / ".debrief" / "lake") as instance:
        for run in instance.get_runs():
            for record in instance.all_logs(run.run_id):
                event = record.dagster_event
                if event is None:
                    continue
                data = event.event_specific_data
                shown = getattr(getattr(data, "materialization", data), "metadata", {})
                for name, value in shown.items() if isinstance(shown, dict) else ():
                    if isinstance(value, dg.MarkdownMetadataValue):
                        pages[f"{event.step_key}: {name}, {len(pages)}"] = value.md_str or ""
    assert len(pages) > 10
    assert {name: found for name, page in pages.items() if (found := signs_of_life(page))} == {}
    reports = [*made.rglob("reports/*.md"), *made.rglob("*card.md")]
    assert {
        str(page): found for page in reports if (found := signs_of_life(page.read_text()))
    } == {}
    printed = "".join(path.read_text() for path in made.glob("printed-*.txt"))
    assert "evil.example" in printed
    assert CONTROLS.findall(printed) == []
