"""What goes into a prompt is part of a code version: Dagster shows what it makes as stale."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from debrief.stages.catalog import all_stages

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
        """Return the code versions with this content, by stage."""
        return {stage.name: stage.code_version() for stage in all_stages()}

    def changed_by(self, path: str) -> set[str]:
        """Return the stages whose version changes with a file; the file stays as it was."""
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
        for module in ("debrief.stages.versions", "debrief.evaluators"):
            patched.setattr(f"{module}.folder", lambda name: made.folder / name)
        files = resources.files
        patched.setattr(
            resources,
            "files",
            lambda package: made.folder / package if package in PACKAGED else files(package),
        )
        yield made


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


def test_what_one_call_asks_changes_scores_and_judgements_and_what_follows(copy: Copy) -> None:
    changed = copy.changed_by("prompts/dimensions.toml")
    follow = {"extracted_rubrics", "training_sets", "fingerprint_leaderboard"}
    assert {"session_scores", "judge_evaluations"} | follow <= changed
    assert not {"raw_sessions", "prompt_snapshots", "session_metadata"} & changed


def test_a_judge_changes_judgements_and_what_rests_on_them(copy: Copy) -> None:
    changed = copy.changed_by("judges/code-reuse.md")
    assert changed == {"judge_evaluations", "training_sets", "prompt_candidates", "weekly_report"}


def test_the_questions_of_commands_alone_make_no_asset_stale(copy: Copy) -> None:
    for name in OF_COMMANDS:
        assert not copy.changed_by(f"prompts/{name}")
