"""What goes into a prompt is part of a code version: Dagster shows what it makes as stale."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from assets import versions
from debrief import content

TOP = Path(__file__).parents[2]
OF_COMMANDS = {"question.txt", "question_answer.txt"}
"""Asked with by `debrief ask`, of which no asset keeps rows."""
PACKAGED = {"debrief.training": "known_tools.toml"}
"""Files beside the code whose words stand in questions to judges, and in training lines."""


class Copy:
    """The project's content, to be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("prompts", "judges"):
            shutil.copytree(TOP / name, folder / name)
        for package, name in PACKAGED.items():
            (folder / package).mkdir()
            shutil.copy(str(resources.files(package) / name), folder / package / name)

    def versions(self) -> dict[str, str]:
        """Return the code versions with this content, by name."""
        loaded = vars(importlib.reload(versions))
        return {name: value for name, value in loaded.items() if name.isupper() and name[0] != "_"}

    def changed_by(self, path: str) -> set[str]:
        """Return the names of the versions that change with a file; the file stays as it was."""
        file, before = self.folder / path, self.versions()
        former = file.read_bytes()
        file.write_bytes(former + b"\n# one more line\n")
        now = self.versions()
        file.write_bytes(former)
        return {name for name, value in now.items() if value != before[name]}


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Copy]:
    made = Copy(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(content, "folder", lambda name: made.folder / name)
        patched.setattr("debrief.evaluators.folder", lambda name: made.folder / name)
        files = resources.files
        patched.setattr(
            resources,
            "files",
            lambda package: made.folder / package if package in PACKAGED else files(package),
        )
        yield made
    importlib.reload(versions)


PROMPTS = sorted({path.name for path in (TOP / "prompts").iterdir()} - OF_COMMANDS)
JUDGES = sorted(path.name for path in (TOP / "judges").glob("*.md") if path.name != "README.md")


@pytest.mark.parametrize(
    "path",
    [
        *(f"prompts/{name}" for name in PROMPTS),
        *(f"judges/{name}" for name in JUDGES),
        *map("/".join, PACKAGED.items()),
    ],
)
def test_each_file_that_goes_into_a_prompt_changes_a_version(copy: Copy, path: str) -> None:
    assert copy.changed_by(path)


@pytest.mark.parametrize("path", ["prompts/dimensions.toml", "judges/code-reuse.md"])
def test_what_one_call_asks_changes_scores_and_judgements_and_what_follows(
    copy: Copy, path: str
) -> None:
    changed = copy.changed_by(path)
    assert {"SCORING", "JUDGING", "MINING", "TRAINING", "LEADERBOARD"} <= changed
    assert not {"SESSIONS", "SNAPSHOTS", "METADATA"} & changed


def test_the_questions_of_commands_alone_make_no_asset_stale(copy: Copy) -> None:
    for name in OF_COMMANDS:
        assert not copy.changed_by(f"prompts/{name}")
