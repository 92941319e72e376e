"""What ``eval --export`` leaves behind: a training sample, with a person's words in it."""

from __future__ import annotations

import json
from pathlib import Path

from debrief.training.plans import load_training_sample
from tests.cli.shop import SECRET, Shop, server, shop
from tests.judging.repository import PLAN_ID, git, write

__all__ = ["server", "shop"]


def test_an_export_is_a_training_sample(shop: Shop) -> None:
    capture = shop.root / ".debrief" / "sessions" / PLAN_ID
    metadata = '{"tool": "droid", "model": "opus", "prompt_fingerprint": "b7d4e2f9", "extra": 1}'
    write(
        capture,
        {
            "metadata.json": metadata,
            "prompts/main.md": f"Be kind. {SECRET}",
            "prompts/reviewer.md": "Review.",
        },
    )
    result = shop.eval(
        "--export", "--tests", "cat test_up.py", "--feedback", f"Good work. Key {SECRET}"
    )
    assert result.exit_code == 0, result.output
    folder = shop.root / ".debrief" / "training_data" / PLAN_ID
    sample = load_training_sample(folder).sample
    assert sample.plan_content is not None
    assert "Retry uploads" in sample.plan_content
    assert (sample.tool, sample.model, sample.prompt_fingerprint) == ("droid", "opus", "b7d4e2f9")
    assert len(sample.eval_fingerprint or "") == 8
    assert sample.used_prompts is not None
    assert sample.used_prompts.subagents == {"reviewer": "Review."}
    found = [(one.judge_name, one.score, one.weight) for one in sample.judge_results]
    assert found == [("courage", 0.5, 1.0), ("tidiness", 0.9, 3.0)]
    assert (sample.test_results_before or {})["exit_code"] == 1
    assert (sample.test_results_after or {})["passed"] is True
    assert "test_upload" in str((sample.test_results_after or {})["output"])
    assert json.loads((folder / "metadata.json").read_text())["extra"] == 1
    assert "Score: 0.90" in (folder / "judge_tidiness.md").read_text()
    for path in folder.rglob("*"):
        assert path.is_dir() or SECRET not in path.read_text()
    assert git(shop.root, "worktree", "list").count("\n") == 1


def test_an_export_again_replaces_all_but_a_persons_words(shop: Shop) -> None:
    folder = shop.root / ".debrief" / "training_data" / PLAN_ID
    shop.eval("--export", "--feedback", "Good work.")
    write(folder, {"judge_gone.json": "{}"})
    result = shop.eval("--export")
    assert "is missing" in result.stderr
    assert (folder / "human_feedback.md").read_text() == "Good work.\n"
    assert not (folder / "judge_gone.json").exists()
    assert [path.name for path in folder.parent.iterdir()] == [PLAN_ID]


def test_a_persons_words_can_be_written_in_an_editor(shop: Shop, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text(
        '#!/bin/sh\nprintf "From the editor.\\n" | cat - "$1" > "$1.n"; mv "$1.n" "$1"\n'
    )
    editor.chmod(0o755)
    shop.eval("--export", "--edit", EDITOR=str(editor), VISUAL=str(editor))
    folder = shop.root / ".debrief" / "training_data" / PLAN_ID
    assert (folder / "human_feedback.md").read_text() == "From the editor.\n"


def test_what_belongs_to_an_export_is_not_dropped_in_silence(shop: Shop) -> None:
    result = shop.eval("--feedback", "Good.")
    assert result.exit_code == 1
    assert "Add --export" in result.stderr


def test_an_export_through_a_link_is_refused(shop: Shop, tmp_path: Path) -> None:
    (shop.root / ".debrief" / "training_data").symlink_to(tmp_path)
    result = shop.eval("--export")
    assert result.exit_code == 1
    assert "symbolic link" in result.stderr
