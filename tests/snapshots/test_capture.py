from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.cli.capture import run_tool, tool_command
from debrief.errors import ConfigurationError, InputError
from debrief.snapshots.capture import RepositoryPaths, find_repository
from debrief.snapshots.captured_plans import CapturedPlans
from debrief.snapshots.captures import find_captures, read_capture, transcript_folders
from debrief.snapshots.model import PromptSnapshot
from debrief.snapshots.plans import (
    LONGEST,
    POINTER,
    checked_plan_id,
    ensure_worktree,
    file_run,
    find_plan,
    only_run_of,
    plan_ids,
    prepare,
    repository_of,
)
from tests.snapshots.scenario import PROMPTS, agent_command, commit, git, head, repository, write

PLAN = "# Retry queue\n\nRetry three times.\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen.json"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def shop(tmp_path: Path) -> RepositoryPaths:
    folder = repository(tmp_path / "shop")
    write(folder, {".debrief/plans/retries.md": PLAN})
    return repository_of(folder)


def places(home: Path) -> list[Path]:
    return transcript_folders("claude-code", os.environ, home)


def carry_out(
    shop: RepositoryPaths, home: Path, mode: str = "works", model: str | None = "opus"
) -> tuple[int, dict[str, Any], tuple[str, ...]]:
    """Carry the plan out; return the exit code, what the tool saw, and the filed sessions."""
    run = prepare(shop, "retries", "claude-code", model, transcripts_in=places(home))
    command = tool_command("claude-code", agent_command(home.parent, mode))
    code = run_tool([*command, *run.arguments], run.worktree, {"DEBRIEF_CAPTURE": str(run.capture)})
    seen = json.loads((home.parent / "seen.json").read_bytes())
    return code, seen, file_run(run, places(home))


def test_the_capture_is_there_before_the_tool_starts_and_the_session_is_filed_when_it_ends(
    shop: RepositoryPaths, home: Path
) -> None:
    before = git(shop.root, "status", "--porcelain")
    code, seen, ids = carry_out(shop, home)
    worktree = shop.root / ".debrief/worktrees/retries"
    capture = shop.root / ".debrief/sessions/retries"
    assert code == 0
    assert seen["cwd"] == str(worktree)
    assert seen["plan"] == PLAN
    assert seen["capture"] == str(capture)
    assert seen["arguments"] == ["--model", "opus", PLAN.strip()]
    assert seen["metadata"]["tool"] == "claude-code"
    assert seen["metadata"]["model"] == "opus"
    assert git(worktree, "branch", "--show-current") == "retries"
    found = read_capture(capture)
    assert found.problems == ()
    assert found.snapshot is not None
    assert found.snapshot.main == "Test first.\n"
    assert set(found.snapshot.subagents) == {"reviewer", "tester"}
    assert found.metadata is not None
    assert found.metadata.prompt_fingerprint == seen["metadata"]["prompt_fingerprint"]
    assert found.session_ids == ids
    assert len(ids) == 1
    assert (capture / "transcripts" / f"{ids[0]}.jsonl").stat().st_mode & 0o077 == 0
    assert git(shop.root, "status", "--porcelain") == before
    session = head(ids[0], str(worktree))
    assert find_captures([shop.root]).of(session) == found


HANDED_OVER = {
    "as it is": ("# Queue\n\nRetry.\n", "# Queue\n\nRetry."),
    "without front matter": ("---\nplan_id: retries\n---\n\n# Queue\n", "# Queue"),
    "a list, which looks like an option": ("- Retry.\n", "Carry out this plan:\n\n- Retry."),
    "a path, which looks like a command": (
        "/etc is full.",
        "Carry out this plan:\n\n/etc is full.",
    ),
    "at the limit": ("ü" * (LONGEST // 2), "ü" * (LONGEST // 2)),
    "over the limit": ("ü" * (LONGEST // 2) + "x", POINTER),
}


@pytest.mark.parametrize(("plan", "prompt"), HANDED_OVER.values(), ids=HANDED_OVER)
def test_the_plan_is_the_tools_prompt_and_is_kept_whole(
    shop: RepositoryPaths, home: Path, plan: str, prompt: str
) -> None:
    write(shop.root, {".debrief/plans/retries.md": plan})
    code, seen, ids = carry_out(shop, home)
    assert code == 0
    assert seen["arguments"][-1] == prompt
    assert seen["plan"] == plan
    capture = shop.root / ".debrief/sessions/retries"
    assert (capture / "plan.md").read_text() == plan
    found = find_captures([shop.root]).of(head(ids[0], seen["cwd"]))
    assert found is not None
    assert found.plan == plan
    assert CapturedPlans().of(head(ids[0], seen["cwd"])) == plan


@pytest.mark.parametrize("plan", ["", "---\nplan_id: retries\n---\n\n", "Retry.\0\n"])
def test_a_plan_that_says_nothing_is_refused_before_anything_is_made(
    shop: RepositoryPaths, plan: str
) -> None:
    write(shop.root, {".debrief/plans/retries.md": plan})
    with pytest.raises(InputError, match=r"retries\.md"):
        prepare(shop, "retries", "claude-code", None)
    assert not (shop.root / ".debrief/worktrees/retries").exists()


def test_an_earlier_run_keeps_the_plan_that_it_had(shop: RepositoryPaths, home: Path) -> None:
    _, seen, first = carry_out(shop, home)
    write(shop.root, {".debrief/plans/retries.md": "# Another plan\n"})
    _, _, second = carry_out(shop, home)
    plans = CapturedPlans()
    assert plans.of(head(first[0], seen["cwd"])) == PLAN
    assert plans.of(head(second[0], seen["cwd"])) == "# Another plan\n"


def test_a_second_run_of_a_plan_keeps_the_first_ones_capture(
    shop: RepositoryPaths, home: Path
) -> None:
    _, _, first = carry_out(shop, home)
    write(shop.root / ".debrief/worktrees/retries", {"CLAUDE.md": "Test last.\n"})
    _, _, second = carry_out(shop, home)
    sessions = shop.root / ".debrief/sessions"
    assert first != second
    assert (sessions / first[0] / "prompts/main.md").read_text() == "Test first.\n"
    assert (sessions / "retries/prompts/main.md").read_text() == "Test last.\n"
    captures = find_captures([shop.root])
    cwd = f"{shop.root}/.debrief/worktrees/retries"
    for ids, main in ((first, "Test first.\n"), (second, "Test last.\n")):
        found = captures.of(head(ids[0], cwd))
        assert found is not None
        assert found.snapshot is not None
        assert found.snapshot.main == main


def test_a_run_that_was_ended_before_it_was_filed_is_filed_by_the_next(
    shop: RepositoryPaths, home: Path
) -> None:
    run = prepare(shop, "retries", "claude-code", None)
    run_tool(
        [*tool_command("claude-code", agent_command(home.parent)), "x"],
        run.worktree,
        {"DEBRIEF_CAPTURE": str(run.capture), "SESSION": "lost"},
    )
    carry_out(shop, home)
    lost = shop.root / ".debrief/sessions/lost"
    assert read_capture(lost).session_ids == ("lost",)
    assert (lost / "transcripts/lost.jsonl").is_file()


def test_a_run_without_a_session_is_kept_under_the_time_it_began(
    shop: RepositoryPaths, home: Path
) -> None:
    code, _, ids = carry_out(shop, home, "silent")
    assert (code, ids) == (3, ())
    carry_out(shop, home, "silent")
    carry_out(shop, home, "silent")
    names = sorted(path.name for path in (shop.root / ".debrief/sessions").iterdir())
    assert len(names) == 3
    assert names[0] == "retries"
    assert all(name.startswith("retries.20") for name in names[1:])


def test_a_subagents_transcript_is_filed_with_its_sessions(
    shop: RepositoryPaths, home: Path
) -> None:
    _, _, ids = carry_out(shop, home, "helped")
    filed = shop.root / ".debrief/sessions/retries/transcripts"
    found = {path.relative_to(filed).as_posix() for path in filed.rglob("*.jsonl")}
    assert found == {f"{ids[0]}.jsonl", f"{ids[0]}/subagents/agent-a1.jsonl"}


def test_a_session_in_another_folder_at_the_same_time_is_not_filed(
    shop: RepositoryPaths, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", {"plan.md": PLAN})
    run = prepare(shop, "retries", "claude-code", None)
    variables = {"DEBRIEF_CAPTURE": str(run.capture), "SESSION": "elsewhere"}
    command = tool_command("claude-code", agent_command(tmp_path))
    run_tool([*command, "x"], tmp_path / "other", variables)
    assert file_run(run, places(home)) == ()


def test_active_prompts_are_captured_and_handed_to_the_tool(
    shop: RepositoryPaths, home: Path
) -> None:
    active = {
        "main.md": "Be careful.",
        "plain.md": "Look twice.",
        "fancy.md": "---\nname: fancy\ndescription: Looks well\ntools: Read, Grep\nmodel: haiku\n---\nLook.",
        "odd.md": "---\n: [\n---\nLook.",
    }
    top = ".debrief/prompts/active/claude-code/opus"
    write(shop.root, {f"{top}/{name}": text for name, text in active.items()})
    _, seen, _ = carry_out(shop, home)
    found = read_capture(shop.root / ".debrief/sessions/retries")
    assert found.snapshot is not None
    assert found.snapshot.main == "Be careful."
    assert found.snapshot.subagents["fancy"] == active["fancy.md"]
    *options, option, agents, opening = seen["arguments"]
    assert options == ["--model", "opus", "--append-system-prompt", "Be careful."]
    assert (option, opening) == ("--agents", PLAN.strip()), (
        "the plan reaches the model all the same"
    )
    assert json.loads(agents) == {
        "fancy": {
            "description": "Looks well",
            "prompt": "Look.",
            "tools": ["Read", "Grep"],
            "model": "haiku",
        },
        "odd": {"description": "odd", "prompt": active["odd.md"]},
        "plain": {"description": "plain", "prompt": "Look twice."},
    }


def test_prompts_that_were_never_committed_count_where_the_worktree_has_none(
    tmp_path: Path, home: Path
) -> None:
    folder = repository(tmp_path / "bare", {"README.md": ""})
    write(folder, {**PROMPTS, "plan.md": PLAN})
    run = prepare(repository_of(folder), "retries", "claude-code", None)
    found = read_capture(run.capture)
    assert found.snapshot is not None
    assert found.snapshot.main == "Test first.\n"
    assert run.subagents == 2
    assert "--agents" in run.arguments


def test_droid_has_its_main_prompt_only(shop: RepositoryPaths) -> None:
    active = ".debrief/prompts/active/droid"
    write(shop.root, {f"{active}/main.md": "Be brief.", f"{active}/helper.md": "Help."})
    run = prepare(shop, "retries", "droid", None)
    assert run.arguments == ("--append-system-prompt", "Be brief.", PLAN.strip())
    assert read_capture(run.capture).snapshot == PromptSnapshot(main="Be brief.")
    metadata = json.loads((run.capture / "metadata.json").read_bytes())
    assert (metadata["tool"], metadata["model"]) == ("droid", None)


def test_a_worktree_and_a_branch_are_used_again_and_made_again_where_deleted(
    shop: RepositoryPaths,
) -> None:
    assert ensure_worktree(shop, "retries")
    worktree = shop.root / ".debrief/worktrees/retries"
    commit(worktree, {"work.py": "done"})
    assert not ensure_worktree(shop, "retries")
    git(shop.root, "worktree", "remove", str(worktree))
    assert ensure_worktree(shop, "retries")
    assert (worktree / "work.py").read_text() == "done"
    shutil.rmtree(worktree)
    assert ensure_worktree(shop, "retries")


def test_a_worktree_whose_files_were_not_written_yet_is_finished(shop: RepositoryPaths) -> None:
    worktree = shop.root / ".debrief/worktrees/retries"
    git(shop.root, "worktree", "add", "-q", "--no-checkout", "-b", "retries", str(worktree))
    assert ensure_worktree(shop, "retries")
    assert git(worktree, "status", "--short") == ""
    assert git(worktree, "ls-files")


REFUSED: dict[str, tuple[str, str | bytes, str, str]] = {
    "a folder in the worktree's place": (
        *(".debrief/worktrees/retries/mine.txt", "", "retries"),
        "is there, and no worktree",
    ),
    "a branch that is checked out elsewhere, in git's own words": (
        *(".debrief/plans/main.md", PLAN, "main"),
        r"git worktree failed: .*'main' is already",
    ),
    "a plan that says it is another": (
        *(".debrief/plans/retries.md", '---\nplan_id: "queue"\n---\nplan_id: retries\n', "retries"),
        "is the plan queue",
    ),
    "a plan that is not UTF-8": (
        *(".debrief/plans/retries.md", b"caf\xe9", "retries"),
        "is not UTF-8",
    ),
}


@pytest.mark.parametrize(("file", "content", "plan_id", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_plan_that_cannot_be_carried_out_is_refused_with_the_reason(
    shop: RepositoryPaths, file: str, content: str | bytes, plan_id: str, reason: str
) -> None:
    write(shop.root, {file: content})
    with pytest.raises(InputError, match=reason):
        prepare(shop, plan_id, "claude-code", None)


def test_a_repository_without_a_commit_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "new", {"plan.md": PLAN})
    git(tmp_path / "new", "init", "--quiet")
    with pytest.raises(InputError, match="has no commit yet"):
        prepare(repository_of(tmp_path / "new"), "retries", "claude-code", None)


def test_a_plan_id_that_is_no_slug_is_refused_and_nothing_written(shop: RepositoryPaths) -> None:
    before = sorted(shop.root.rglob("*"))
    unsafe = ["../x", "a/b", "..", ".", "", "-x", "A", "a..b", "a b", "a\n", "é", "a.", "\x00"]
    for plan_id in (*unsafe, "x" * 64):
        with pytest.raises(InputError, match="is no plan id"):
            prepare(shop, plan_id, "claude-code", None)
    assert sorted(shop.root.rglob("*")) == before


@given(st.text(max_size=10))
def test_a_plan_id_that_is_taken_stays_within_its_folder(plan_id: str) -> None:
    try:
        checked_plan_id(plan_id)
    except InputError:
        return
    assert Path("/top", plan_id).resolve().parent == Path("/top")


def test_a_plan_is_looked_for_from_the_nearest_place_on(shop: RepositoryPaths) -> None:
    worktree = shop.root / ".debrief/worktrees/retries"
    wanted = [".debrief/plans/retries.md", ".debrief/plans/retries/plan.md"]
    wanted += [".debrief/worktrees/retries/plan.md", "plan.md"]
    write(shop.root, dict.fromkeys(wanted, PLAN))
    for name in wanted:
        assert find_plan(shop.root, "retries", worktree) == shop.root / name
        (shop.root / name).unlink()
    with pytest.raises(InputError, match=r"plan retries: was not found.*plans/retries\.md"):
        find_plan(shop.root, "retries", worktree)


def test_a_prompt_that_is_not_utf8_stops_before_anything_is_captured(
    shop: RepositoryPaths, home: Path
) -> None:
    _, _, first = carry_out(shop, home)
    write(shop.root / ".debrief/worktrees/retries", {"CLAUDE.md": b"caf\xe9"})
    with pytest.raises(InputError, match=r"CLAUDE\.md: is not UTF-8"):
        prepare(shop, "retries", "claude-code", None)
    assert read_capture(shop.root / ".debrief/sessions/retries").session_ids == first


@pytest.mark.parametrize("name", [".debrief/sessions", ".debrief/sessions/retries"])
def test_a_link_in_the_captures_place_is_refused(
    shop: RepositoryPaths, tmp_path: Path, name: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (shop.root / name).parent.mkdir(exist_ok=True)
    (shop.root / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a symbolic link"):
        prepare(shop, "retries", "claude-code", None)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_plans_that_are_there_are_offered(shop: RepositoryPaths) -> None:
    write(shop.root / ".debrief/plans", {"queue/plan.md": "", "No Slug.md": "", "notes.txt": ""})
    assert plan_ids(shop.root) == ["queue", "retries"]
    assert plan_ids(shop.root / "nowhere") == []


def test_a_plan_is_carried_out_once_at_a_time(shop: RepositoryPaths) -> None:
    with only_run_of(shop.root, "retries"):
        with (
            pytest.raises(InputError, match="by another debrief code"),
            only_run_of(shop.root, "retries"),
        ):
            pass
        with only_run_of(shop.root, "queue"):
            pass
    with only_run_of(shop.root, "retries"):
        pass


def test_a_repository_is_found_from_every_folder_of_it(
    shop: RepositoryPaths, tmp_path: Path
) -> None:
    ensure_worktree(shop, "retries")
    worktree = shop.root / ".debrief/worktrees/retries"
    assert find_repository(worktree) == RepositoryPaths(worktree, shop.root, shop.root / ".git")
    assert find_repository(shop.root / ".claude/agents") == shop
    git(tmp_path, "init", "--quiet", "--separate-git-dir", str(tmp_path / "apart"), "split")
    split = tmp_path / "split"
    assert find_repository(split) == RepositoryPaths(split, split, tmp_path / "apart")
    with pytest.raises(InputError, match="lies in no git repository"):
        repository_of(tmp_path)


def test_the_tools_exit_code_is_passed_on_also_when_a_signal_ended_it(
    shop: RepositoryPaths, home: Path
) -> None:
    code, _, ids = carry_out(shop, home, "killed")
    assert code == 128 + 15
    assert len(ids) == 1


def test_a_tool_whose_setting_is_no_command_is_named_with_the_setting() -> None:
    with pytest.raises(ConfigurationError, match="DEBRIEF_CLAUDE_COMMAND: is no command"):
        tool_command("claude-code", "claude 'unclosed")


def test_an_interruption_typed_for_the_tool_does_not_end_us() -> None:
    """The terminal sends it to both; the tool decides what it means."""
    child = "import os, signal, time; os.kill(os.getppid(), signal.SIGINT); time.sleep(0.2)"
    program = (
        "import sys; from pathlib import Path; from debrief.cli.capture import run_tool;"
        f"print(run_tool([sys.executable, '-c', {child!r}], Path('.'), {{}}))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0\n")
