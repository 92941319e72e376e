from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from debrief.errors import InputError
from debrief.judging.model import load_judges
from debrief.snapshots.captures import read_capture
from debrief.snapshots.fingerprint import compute_eval_fingerprint, compute_prompt_fingerprint
from debrief.snapshots.migration import MigrationStep, apply, earlier_folders, plan_migration
from debrief.snapshots.model import PromptSnapshot
from tests.machine import files_below
from tests.snapshots.scenario import MONDAY, commit, git, repository, write

TRACE = """# Conversation Trace

## Session Metadata

- **Session ID**: 0a1b2c3d-0000-4000-8000-000000000001
- **Command**: code

## Main Conversation

### [2026-01-05T10:00:00.123Z] User

# Work with haiku

Carry the plan out.
"""
OPUS = {"main.md": "# Work with opus\n", "reviewer.md": "Review it.\n"}
HAIKU = {"main.md": "# Work with haiku\n\nCarry the plan out.\n"}
EARLIER_TOOL: dict[str, str] = {
    "judges/reuse.md": "---\nweight: 0.4\nmodel: x-ai/grok-4.1-fast\n---\nReuse.\n",
    "config.toml": "schema_version = '1.0'\n",
    "tasks/retries.md": "# Retries\n",
    **{f"prompts/active/claude-code-cli/opus/{name}": text for name, text in OPUS.items()},
    **{f"prompts/active/claude-code-cli/haiku/{name}": text for name, text in HAIKU.items()},
    "training_data/retries/code_trace.md": "# A trace that tells nothing\n",
    "training_data/retries/judge_reuse.json": "{}",
    "training_data/queue/code_trace.md": TRACE,
    "training_data/queue/human_feedback.md": "Well done.\n",
    "training_data/queue/test_results_before.json": "{}",
    "training_data/queue/test_results_after.json": "{}",
    "training_data/queue/judge_reuse.json": "{}",
    "sessions/queue/prompts/main.md": "Recorded.",
    "sessions/queue/metadata.json": '{"tool": "droid", "model": "opus", "prompt_fingerprint":'
    ' "b7d4e2f9", "recorded_at": "2025-12-12T14:30:00Z", "mine": 1}',
    "dspy_cache/00/1.val": "an answer",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {f".weft/{name}": text for name, text in EARLIER_TOOL.items()}
    shop = repository(tmp_path_factory.mktemp("made") / "shop", files)
    touched = {".weft/training_data/retries/judge_reuse.md": "0.4"}
    commit(shop, touched, MONDAY + timedelta(days=9))
    return shop


@pytest.fixture
def shop(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "shop"))


def planned(shop: Path, name: str = ".weft") -> list[MigrationStep]:
    return plan_migration(shop / name, shop / ".debrief", load_judges)


def migrated(shop: Path) -> int:
    return apply(planned(shop)).files


def metadata(shop: Path, sample: str) -> dict[str, Any]:
    value = json.loads((shop / ".debrief" / sample / "metadata.json").read_bytes())
    assert isinstance(value, dict)
    return value


def told(shop: Path, action: str, name: str = ".weft") -> dict[str, str]:
    root = shop / name if action == "left" else shop / ".debrief"
    return {
        step.target.relative_to(root).as_posix(): step.note
        for step in planned(shop, name)
        if step.action == action
    }


def test_everything_of_use_is_copied_and_the_rest_is_left_with_a_reason(shop: Path) -> None:
    before, earlier = files_below(shop), files_below(shop / ".weft")
    assert planned(shop)
    assert files_below(shop) == before
    migrated(shop)
    home = shop / ".debrief"
    assert (home / "plans/retries.md").read_text() == "# Retries\n"
    assert (home / "judges/reuse.md").read_text() == EARLIER_TOOL["judges/reuse.md"]
    assert (home / "prompts/active/claude-code/opus/main.md").read_text() == OPUS["main.md"]
    assert (home / "training_data/queue/code_trace.md").read_text() == TRACE
    assert told(shop, "left") == {
        "config.toml": "configures the earlier tool; docs/settings.md names Debrief's settings",
        "dspy_cache": "is a cache of answers; Debrief keeps its own: 1 file",
    }
    assert files_below(shop / ".weft") == earlier


def test_a_sample_without_prompts_gets_those_its_trace_begins_with(shop: Path) -> None:
    migrated(shop)
    capture = read_capture(shop / ".debrief/training_data/queue")
    assert capture.problems == ()
    assert capture.snapshot == PromptSnapshot(main=HAIKU["main.md"])
    assert metadata(shop, "training_data/queue") == {
        "tool": "claude-code",
        "model": "haiku",
        "recorded_at": "2026-01-05T09:00:00Z",
        "session_id": "0a1b2c3d-0000-4000-8000-000000000001",
        "prompt_fingerprint": compute_prompt_fingerprint(PromptSnapshot(main=HAIKU["main.md"])),
        "eval_fingerprint": compute_eval_fingerprint(load_judges(shop / ".weft/judges")),
        "filled_in": [
            "prompts",
            "tool",
            "model",
            "recorded_at",
            "session_id",
            "prompt_fingerprint",
            "eval_fingerprint",
        ],
    }


def test_a_sample_whose_trace_tells_nothing_gets_those_of_opus_and_the_date_it_was_added(
    shop: Path,
) -> None:
    migrated(shop)
    found = metadata(shop, "training_data/retries")
    assert (found["tool"], found["model"]) == ("claude-code", "opus")
    assert found["recorded_at"] == "2026-01-05T09:00:00Z"
    snapshot = PromptSnapshot(main=OPUS["main.md"], subagents={"reviewer": OPUS["reviewer.md"]})
    assert read_capture(shop / ".debrief/training_data/retries").snapshot == snapshot
    assert "session_id" not in found


def test_what_was_recorded_is_kept_but_for_fingerprints_of_another_definition(shop: Path) -> None:
    migrated(shop)
    assert metadata(shop, "sessions/queue") == {
        "tool": "droid",
        "model": "opus",
        "recorded_at": "2025-12-12T14:30:00Z",
        "prompt_fingerprint": compute_prompt_fingerprint(PromptSnapshot(main="Recorded.")),
        "mine": 1,
        "before_migration": {"prompt_fingerprint": "b7d4e2f9"},
    }


def test_a_plan_is_taken_from_the_plans_and_one_that_nobody_has_is_missing(shop: Path) -> None:
    missing = told(shop, "missing")
    assert "training_data/retries/human_feedback.md" in missing
    assert {name for name in missing if name.endswith("plan.md")} == {"training_data/queue/plan.md"}
    assert missing["training_data/queue/plan.md"].startswith("write it")
    migrated(shop)
    assert (shop / ".debrief/training_data/retries/plan.md").read_text() == "# Retries\n"


def test_what_is_there_is_never_overwritten(shop: Path) -> None:
    write(shop / ".debrief", {"plans/retries.md": "mine", "training_data/queue/plan.md": "mine"})
    write(shop / ".debrief", {"training_data/queue/metadata.json": "mine"})
    before = dict.fromkeys(["plans/retries.md", "training_data/queue/metadata.json"], "mine")
    assert set(told(shop, "differs")) == set(before)
    migrated(shop)
    for name, text in before.items():
        assert (shop / ".debrief" / name).read_text() == text


def test_migrating_twice_does_nothing_the_second_time(shop: Path) -> None:
    assert migrated(shop) > 0
    assert {step.action for step in planned(shop)} == {"same", "left", "missing"}
    assert migrated(shop) == 0


def test_two_files_that_go_to_one_place_are_not_mixed(shop: Path) -> None:
    write(shop / ".weft", {"plans/retries.md": "the newer place"})
    assert "another file goes to" in told(shop, "left")["tasks/retries.md"]
    migrated(shop)
    assert (shop / ".debrief/plans/retries.md").read_text() == "the newer place"
    assert set(told(shop, "differs")) == {"plans/retries.md"}


def test_a_sample_that_no_history_knows_is_dated_by_its_trace(shop: Path) -> None:
    write(shop, {".lw_coder/training_data/queue/code_trace.md": TRACE})
    found = plan_migration(shop / ".lw_coder", shop / "other", load_judges)
    written = {step.target.name: step.content for step in found if step.action == "write"}
    made = json.loads(written["metadata.json"] or b"")
    assert made["recorded_at"] == "2026-01-05T10:00:00Z"
    reasons = [step.note for step in found if step.action == "missing"]
    assert "nothing says which prompts were in force" in reasons
    assert "nothing says its model" in reasons
    assert any(reason.startswith("its eval_fingerprint is not known: ") for reason in reasons)


HAIKU_TRACE = "### [2026-01-05T10:00:00Z] User\n\n" + HAIKU["main.md"] + "\n### [x] Assistant\n"
NOT_FILLED: dict[str, dict[str, str]] = {
    "an empty session": {},
    "a session of empty files": {"sessions/odd/code/notes.txt": "x"},
    "a session with a trace that names no prompts": {"sessions/odd/code/trace.md": "# Trace\n"},
    "a session that only reads a prompt": {
        "sessions/odd/trace.md": "### [2026-01-05T10:00:00Z] User\n\nRead it.\n\n"
        "### [2026-01-05T10:00:01Z] Assistant\n\n" + HAIKU["main.md"]
    },
    "a session of another tool": {"sessions/odd/metadata.json": '{"tool": "droid", "model": null}'},
    "a training sample with a plan alone": {"training_data/odd/plan.md": "# Odd\n"},
    "a training sample of empty records": {"training_data/odd/judge_reuse.json": ""},
    "a training sample of another tool": {
        "training_data/odd/metadata.json": '{"tool": "droid", "model": null}',
        "training_data/odd/judge_reuse.json": "{}",
    },
}


@pytest.mark.parametrize("files", NOT_FILLED.values(), ids=NOT_FILLED)
def test_prompts_and_model_are_not_invented(shop: Path, files: dict[str, str]) -> None:
    kind = next(iter(files), "sessions/").partition("/")[0]
    (shop / ".weft" / kind / "odd").mkdir()
    write(shop / ".weft", files)
    migrated(shop)
    written = files_below(shop / ".debrief" / kind / "odd")
    assert not [name for name in written if "prompts" in str(name)]
    if "metadata.json" in [Path(str(name)).name for name in written]:
        found = metadata(shop, f"{kind}/odd")
        assert found.get("model") is None
        assert found.get("tool") in (None, "droid")
        assert found.get("prompt_fingerprint") is None
    reasons = {**told(shop, "left"), **told(shop, "missing")}
    said = [note for name, note in reasons.items() if name.startswith(f"{kind}/odd")]
    assert any("nothing" in note for note in said), reasons


def test_an_empty_folder_is_left_and_nothing_is_made_for_it(shop: Path) -> None:
    (shop / ".weft/sessions/earlier/code").mkdir(parents=True)
    (shop / ".weft/training_data/none").mkdir()
    empty = "is empty, so nothing is filled in"
    left = told(shop, "left")
    assert (left["sessions/earlier"], left["training_data/none"]) == (empty, empty)
    migrated(shop)
    assert not (shop / ".debrief/sessions/earlier").exists()
    assert not (shop / ".debrief/training_data/none").exists()


def test_a_session_that_begins_with_active_prompts_had_them(shop: Path) -> None:
    write(shop / ".weft", {"sessions/odd/code/trace.md": HAIKU_TRACE})
    migrated(shop)
    assert metadata(shop, "sessions/odd")["model"] == "haiku"
    assert "prompts" in metadata(shop, "sessions/odd")["filled_in"]
    assert (shop / ".debrief/sessions/odd/prompts/main.md").read_text() == HAIKU["main.md"]


def test_prompts_and_metadata_in_a_sessions_code_folder_are_its_capture(shop: Path) -> None:
    recorded = '{"tool": "droid", "model": null, "recorded_at": "2025-12-12T14:30:00Z"}'
    files = {
        "code/prompts/main.md": "Be brief.",
        "code/metadata.json": recorded,
        "code/trace.md": "# Trace\n",
        "plan/trace.md": "# Plan trace\n",
        "eval/human_feedback.md": "Good.\n",
    }
    write(shop / ".weft/sessions/odd", files)
    migrated(shop)
    capture = read_capture(shop / ".debrief/sessions/odd")
    assert capture.problems == ()
    assert capture.snapshot == PromptSnapshot(main="Be brief.")
    assert metadata(shop, "sessions/odd") == {
        **json.loads(recorded),
        "prompt_fingerprint": compute_prompt_fingerprint(PromptSnapshot(main="Be brief.")),
        "filled_in": ["prompt_fingerprint"],
    }
    for name in ("code/trace.md", "plan/trace.md", "eval/human_feedback.md"):
        assert (shop / ".debrief/sessions/odd" / name).read_text() == files[name]
    assert migrated(shop) == 0


def test_judges_that_are_gone_give_no_eval_fingerprint(shop: Path) -> None:
    write(shop / ".weft", {"training_data/queue/judge_manners.json": "{}"})
    found = [step.note for step in planned(shop) if step.action == "missing"]
    assert "its eval_fingerprint is not known: the judge manners is gone" in found
    migrated(shop)
    assert "eval_fingerprint" not in metadata(shop, "training_data/queue")


PLAN = "---\nplan_id: queue\n---\n# Queue\n"


def in_plans(shop: Path) -> None:
    write(shop / ".weft", {"plans/queue.md": PLAN})


def in_its_worktree(shop: Path) -> None:
    git(shop, "worktree", "add", "--quiet", ".weft/worktrees/queue")
    write(shop / ".weft/worktrees/queue", {"plan.md": PLAN})


def in_the_history(shop: Path) -> None:
    commit(shop, {".lw_coder/tasks/queue.md": PLAN})
    git(shop, "rm", "--quiet", ".lw_coder/tasks/queue.md")
    git(shop, "commit", "--quiet", "-m", "done")


def in_a_backup(shop: Path) -> None:
    git(shop, "checkout", "--quiet", "--orphan", "aside")
    commit(shop, {".weft/tasks/queue.md": PLAN})
    git(shop, "update-ref", "refs/plan-backups/queue", "HEAD")
    git(shop, "checkout", "--quiet", "main")
    git(shop, "branch", "--quiet", "-D", "aside")


def on_its_branch(shop: Path) -> None:
    git(shop, "checkout", "--quiet", "-b", "queue")
    commit(shop, {"plan.md": PLAN})
    git(shop, "checkout", "--quiet", "main")


PLACES = {
    in_plans: ".weft/plans/queue.md",
    in_its_worktree: ".weft/worktrees/queue/plan.md",
    in_the_history: "the git history: [0-9a-f]{12}:.lw_coder/tasks/queue.md",
    in_a_backup: "the git history: [0-9a-f]{12}:.weft/tasks/queue.md",
    on_its_branch: "the git history: [0-9a-f]{12}:plan.md",
}


@pytest.mark.parametrize(("put", "source"), PLACES.items(), ids=[put.__name__ for put in PLACES])
def test_a_samples_plan_is_looked_for_and_its_source_is_named(
    shop: Path, put: Callable[[Path], None], source: str
) -> None:
    write(shop / ".weft", {"worktrees/other/plan.md": "---\nplan_id: other\n---\n"})
    put(shop)
    (step,) = (step for step in planned(shop) if step.target.match("training_data/queue/plan.md"))
    assert step.action == "write"
    assert re.fullmatch(f"from {source}", step.note)
    migrated(shop)
    assert (shop / ".debrief/training_data/queue/plan.md").read_text() == PLAN
    assert migrated(shop) == 0
    assert not [name for name in told(shop, "missing") if name.endswith("queue/plan.md")]


def test_the_plan_of_another_id_is_not_taken(shop: Path) -> None:
    write(shop / ".weft", {"worktrees/queue/plan.md": "---\nplan_id: other\n---\n# Other\n"})
    git(shop, "branch", "queue")
    assert "training_data/queue/plan.md" in told(shop, "missing")


BROKEN = {"cut short": b'{"tool"', "a list": b"[]", "not UTF-8": b'{"tool": "\xff"}'}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_broken_metadata_is_told_and_made_anew(shop: Path, data: bytes) -> None:
    write(shop, {".weft/sessions/queue/metadata.json": data})
    assert any("made anew" in step.note for step in planned(shop) if step.action == "missing")
    migrated(shop)
    recorded = compute_prompt_fingerprint(PromptSnapshot(main="Recorded."))
    assert metadata(shop, "sessions/queue")["prompt_fingerprint"] == recorded
    assert (shop / ".weft/sessions/queue/metadata.json").read_bytes() == data


def test_links_are_left_and_nothing_is_written_through_one(shop: Path, tmp_path: Path) -> None:
    write(tmp_path, {"secret/main.md": "secret"})
    (shop / ".weft/judges/leak.md").symlink_to(tmp_path / "secret/main.md")
    (shop / ".weft/sessions/leak").symlink_to(tmp_path / "secret")
    assert told(shop, "left")["judges/leak.md"] == "is a symbolic link"
    assert told(shop, "left")["sessions/leak"] == "is a symbolic link"
    (tmp_path / "elsewhere").mkdir()
    (shop / ".debrief").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a symbolic link"):
        migrated(shop)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_folders_of_earlier_tools_are_found_and_their_absence_is_told(
    shop: Path, tmp_path: Path
) -> None:
    write(tmp_path, {"site/.lw_coder/config.toml": "", "site/node_modules/x/.weft/a": ""})
    both = [shop / ".weft", tmp_path / "site/.lw_coder"]
    assert sorted(earlier_folders(tmp_path)) == both
    assert earlier_folders(shop / ".weft") == [shop / ".weft"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"holds no \.weft or \.lw_coder"):
        earlier_folders(tmp_path / "empty")
    with pytest.raises(InputError, match="is no folder"):
        earlier_folders(tmp_path / "nowhere")
