"""A plan's training data: its prompts and metadata come from the session that carried it out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debrief.redaction.redactor import Redactor
from debrief.training.training_data_exporter import create_training_data
from tests.machine import files_below

PLAN_ID = "retries"
PROMPTS = {
    "main.md": "Do it.\n",
    "code-review-auditor.md": "Look twice.\n",
    "plan-alignment-checker.md": "Prüfe es.\n",
}
METADATA = {
    "tool": "droid",
    "model": "sonnet",
    "recorded_at": "2025-12-12T14:30:00Z",
    "prompt_fingerprint": "b7d4e2f9",
    "note": "mine",
}
GIVEN: dict[str, Any] = {
    "plan_id": PLAN_ID,
    "plan": "# Retries\n",
    "base": "1" * 40,
    "evaluations": (),
    "eval_fingerprint": "a3f8b2c1",
    "eval_digest": "a3f8b2c1" * 8,
    "tests": {},
    "feedback": None,
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a ``.debrief`` folder with the capture of the plan's session."""
    capture = tmp_path / ".debrief/sessions" / PLAN_ID
    (capture / "prompts").mkdir(parents=True)
    for name, text in PROMPTS.items():
        (capture / "prompts" / name).write_text(text)
    (capture / "metadata.json").write_text(json.dumps(METADATA))
    return tmp_path / ".debrief"


def export(home: Path) -> tuple[Path, list[str]]:
    """Export the plan; return its folder and the warnings."""
    folder, _, warnings = create_training_data(home, Redactor(b"k" * 32), **GIVEN)
    return folder, warnings


def metadata_in(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "metadata.json").read_bytes())
    assert isinstance(found, dict)
    return found


def remove_prompts(home: Path) -> None:
    prompts = home / "sessions" / PLAN_ID / "prompts"
    for path in prompts.iterdir():
        path.unlink()
    prompts.rmdir()


class TestCopyPrompts:
    def test_copies_prompts_directory_to_staging(self, home: Path) -> None:
        folder, _ = export(home)
        assert folder == home / "training_data" / PLAN_ID
        captured = files_below(home / "sessions" / PLAN_ID / "prompts")
        assert files_below(folder / "prompts") == captured
        assert [path.name for path in folder.parent.iterdir()] == [PLAN_ID]

    def test_returns_warning_when_prompts_missing(self, home: Path) -> None:
        remove_prompts(home)
        folder, warnings = export(home)
        assert any("prompts" in warning for warning in warnings), warnings
        assert not (folder / "prompts").exists()

    def test_copies_all_markdown_files(self, home: Path) -> None:
        folder, _ = export(home)
        assert {path.name: path.read_text() for path in (folder / "prompts").iterdir()} == PROMPTS


class TestCopyAndUpdateMetadata:
    def test_copies_metadata_and_adds_eval_fingerprint(self, home: Path) -> None:
        folder, _ = export(home)
        assert metadata_in(folder)["eval_fingerprint"] == "a3f8b2c1"
        captured = json.loads((home / "sessions" / PLAN_ID / "metadata.json").read_bytes())
        assert captured == METADATA

    def test_creates_minimal_metadata_when_source_missing(self, home: Path) -> None:
        (home / "sessions" / PLAN_ID / "metadata.json").unlink()
        folder, warnings = export(home)
        found = metadata_in(folder)
        assert found["eval_fingerprint"] == "a3f8b2c1"
        assert not {"tool", "model", "recorded_at", "prompt_fingerprint"} & set(found)
        assert any("metadata.json" in warning for warning in warnings), warnings

    def test_preserves_existing_metadata_fields(self, home: Path) -> None:
        folder, _ = export(home)
        assert METADATA.items() <= metadata_in(folder).items()


class TestCreateTrainingData:
    def test_create_training_data_includes_prompts_and_metadata(self, home: Path) -> None:
        folder, _ = export(home)
        names = {f"prompts/{name}" for name in PROMPTS} | {"metadata.json", "plan.md"}
        assert names <= set(files_below(folder))

    def test_create_training_data_requires_eval_fingerprint(self, home: Path) -> None:
        given = {key: value for key, value in GIVEN.items() if key != "eval_fingerprint"}
        with pytest.raises(TypeError, match="eval_fingerprint"):
            create_training_data(home, Redactor(b"k" * 32), **given)
        assert not (home / "training_data").exists()
