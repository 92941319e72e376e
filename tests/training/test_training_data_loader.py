"""A training sample with its prompts and metadata, and without them."""

from __future__ import annotations

import json
from pathlib import Path

from debrief.snapshots.model import PromptSnapshot
from debrief.training.lessons import load_training_sample
from debrief.training.model import TrainingSample

METADATA = {
    "tool": "droid",
    "model": "sonnet",
    "recorded_at": "2025-12-12T14:30:00Z",
    "prompt_fingerprint": "b7d4e2f9",
    "eval_fingerprint": "a3f8b2c1",
}
FILES = {
    "plan.md": "# Retries\n",
    "prompts/main.md": "Do it.\n",
    "prompts/code-review-auditor.md": "Look twice.\n",
    "metadata.json": json.dumps(METADATA),
}


def load(tmp_path: Path, *missing: str) -> TrainingSample:
    """Load a sample without some of its parts, and check that a warning names each of them."""
    folder = tmp_path / "retries"
    for name, text in FILES.items():
        if not name.startswith(missing):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    loaded = load_training_sample(folder)
    paths = [warning.path for warning in loaded.warnings]
    assert all(any(part in path for path in paths) for part in missing), loaded.warnings
    return loaded.sample


class TestLoadTrainingSampleWithMetadata:
    def test_load_sample_populates_used_prompts(self, tmp_path: Path) -> None:
        assert load(tmp_path).used_prompts == PromptSnapshot(
            main="Do it.\n", subagents={"code-review-auditor": "Look twice.\n"}
        )

    def test_load_sample_populates_tool_and_model(self, tmp_path: Path) -> None:
        sample = load(tmp_path)
        assert (sample.tool, sample.model) == ("droid", "sonnet")

    def test_load_sample_populates_fingerprints(self, tmp_path: Path) -> None:
        sample = load(tmp_path)
        assert (sample.prompt_fingerprint, sample.eval_fingerprint) == ("b7d4e2f9", "a3f8b2c1")

    def test_load_sample_handles_missing_prompts(self, tmp_path: Path) -> None:
        sample = load(tmp_path, "prompts")
        assert sample.used_prompts is None
        assert (sample.tool, sample.prompt_fingerprint) == ("droid", "b7d4e2f9")

    def test_load_sample_handles_missing_metadata(self, tmp_path: Path) -> None:
        sample = load(tmp_path, "metadata.json")
        assert (sample.tool, sample.model) == ("claude-code", None)
        assert (sample.prompt_fingerprint, sample.eval_fingerprint) == (None, None)
        assert sample.used_prompts is not None
