from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from debrief.snapshots.capture import keep_out_of_history
from debrief.snapshots.captures import find_captures, read_capture, repository_folders
from debrief.snapshots.model import PromptSnapshot
from debrief.snapshots.plans import repository_of
from tests.snapshots.scenario import git, head, repository, write


def capture(root: Path, key: str, main: str = "Do it.", **metadata: object) -> Path:
    folder = root / ".debrief" / "sessions" / key
    given = {"tool": "claude-code", "recorded_at": "2026-01-05T09:00:00Z", **metadata}
    write(folder, {"prompts/main.md": main, "metadata.json": json.dumps(given)})
    return folder


def main_of(root: Path, **session: str) -> str | None:
    found = find_captures([root]).of(head(**session))
    return found.snapshot.main if found is not None and found.snapshot is not None else None


def test_a_session_is_met_by_its_id_whatever_the_folder_is_called(tmp_path: Path) -> None:
    capture(tmp_path, "s1", "by folder")
    capture(tmp_path, "retries", "by metadata", session_id="s2")
    capture(tmp_path, "queue", "one of several", session_id="s3", session_ids=["s3", "s4"])
    assert main_of(tmp_path, id="s1") == "by folder"
    assert main_of(tmp_path, id="s2") == "by metadata"
    assert main_of(tmp_path, id="s4") == "one of several"
    assert main_of(tmp_path, id="s5") is None


@pytest.mark.parametrize("home", [".debrief", ".weft", ".lw_coder"])
def test_a_session_in_a_plans_worktree_has_the_plans_capture(tmp_path: Path, home: str) -> None:
    capture(tmp_path, "retries", "of the plan")
    capture(tmp_path, "queue", "of another session", session_id="s9")
    assert main_of(tmp_path, cwd=f"{tmp_path}/{home}/worktrees/retries/web") == "of the plan"
    assert main_of(tmp_path, cwd=f"{tmp_path}/{home}/worktrees/queue") is None


def test_a_plan_of_one_repository_is_not_that_of_another(tmp_path: Path) -> None:
    capture(tmp_path / "shop", "fix", "of the shop")
    capture(tmp_path / "site", "fix", "of the site")
    assert main_of(tmp_path, cwd=f"{tmp_path}/site/.debrief/worktrees/fix") == "of the site"
    assert main_of(tmp_path, cwd="/elsewhere/.debrief/worktrees/fix") is None


def test_a_session_that_was_resumed_in_a_later_run_began_with_the_earlier_prompts(
    tmp_path: Path,
) -> None:
    capture(tmp_path, "a-later", "new", session_id="s1", recorded_at="2026-01-06T09:00:00Z")
    capture(tmp_path, "b-earlier", "old", session_id="s1", recorded_at="2026-01-05T09:00:00")
    assert main_of(tmp_path, id="s1") == "old"


def test_captures_are_found_at_any_depth_and_through_no_link(tmp_path: Path) -> None:
    capture(tmp_path / "a" / "b", "s1")
    capture(tmp_path / "hidden", "s2")
    place = tmp_path / "a/b/.debrief/sessions"
    (place / "s3").symlink_to(tmp_path / "hidden/.debrief/sessions/s2")
    write(place, {".s4.123/metadata.json": "{}"})
    assert main_of(tmp_path / "a", id="s1") == "Do it."
    assert main_of(place, id="s1") == "Do it."
    assert main_of(tmp_path / "a", id="s3") is None
    assert find_captures([tmp_path / "a", tmp_path / "nowhere"]).problems == ()


def test_the_digest_tells_of_every_change_even_in_captures_of_one_name(tmp_path: Path) -> None:
    capture(tmp_path / "shop", "fix")
    other = capture(tmp_path / "site", "fix")
    before = find_captures([tmp_path]).digest
    assert find_captures([tmp_path]).digest == before
    write(other, {"prompts/main.md": "Changed."})
    assert find_captures([tmp_path]).digest != before


def test_the_repositories_of_sessions_are_searched_from_worktrees_and_subfolders(
    tmp_path: Path,
) -> None:
    place = capture(tmp_path / "shop", "s1").parent
    write(tmp_path / "shop", {".git/HEAD": "ref: refs/heads/main", "web/page.py": ""})
    gone = f"{tmp_path}/shop/.debrief/worktrees/gone"
    for cwd in (f"{tmp_path}/shop", f"{tmp_path}/shop/web", gone):
        assert repository_folders([head(cwd=cwd)]) == {place}
    assert repository_folders([head(cwd=""), head(cwd="web"), head(cwd="/nowhere")]) == set()


BROKEN: dict[str, tuple[dict[str, str | bytes], str, str]] = {
    "no metadata": ({"prompts/main.md": "x"}, "metadata.json", "is missing"),
    "metadata cut short": ({"metadata.json": '{"tool"'}, "metadata.json", "cannot be read"),
    "metadata that is a list": ({"metadata.json": "[]"}, "metadata.json", "cannot be read"),
    "a moment that is none": (
        {"metadata.json": '{"recorded_at": "soon"}'},
        "metadata.json",
        "cannot be read: recorded_at: ",
    ),
    "metadata nested without end": ({"metadata.json": b"[" * 100_000}, "metadata.json", "cannot"),
    "no main prompt": ({"prompts/reviewer.md": "x"}, "prompts", "has no main.md"),
    "no prompts": ({"metadata.json": "{}"}, "prompts", "has no main.md"),
    "a prompt that is not UTF-8": (
        {"prompts/main.md": "x", "prompts/reviewer.md": b"caf\xe9"},
        "reviewer.md",
        "is not UTF-8: unexpected end of data at byte 3",
    ),
}


@pytest.mark.parametrize(("files", "where", "reason"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_told_and_the_rest_is_read(
    tmp_path: Path, files: dict[str, str | bytes], where: str, reason: str
) -> None:
    write(tmp_path / "s1", files)
    found = read_capture(tmp_path / "s1")
    told = [p for p in found.problems if Path(p.path).name == where]
    assert len(told) == 1
    assert reason in told[0].reason


def test_links_to_prompts_are_not_followed(tmp_path: Path) -> None:
    folder = capture(tmp_path, "s1")
    write(tmp_path, {"elsewhere/main.md": "secret"})
    (folder / "prompts" / "leak.md").symlink_to(tmp_path / "elsewhere/main.md")
    assert read_capture(folder).snapshot == PromptSnapshot(main="Do it.")
    shutil.rmtree(folder / "prompts")
    (folder / "prompts").symlink_to(tmp_path / "elsewhere")
    found = read_capture(folder)
    assert found.snapshot is None
    assert [problem.reason for problem in found.problems] == [
        "is a symbolic link, and was not followed"
    ]


def test_captures_stay_out_of_history_and_what_a_team_writes_does_not(tmp_path: Path) -> None:
    shop = repository_of(repository(tmp_path / "shop"))
    exclude = shop.git / "info" / "exclude"
    exclude.write_bytes(b"*.mine")
    keep_out_of_history(shop)
    once = exclude.read_bytes()
    keep_out_of_history(shop)
    assert exclude.read_bytes() == once
    assert exclude.read_text().startswith("*.mine\n#")
    names = [".debrief/sessions/s1/metadata.json", ".debrief/worktrees/x", ".debrief/plans/a.md"]
    names += [".debrief/judges/reuse.md", ".debrief/prompts/active/droid/main.md"]
    write(shop.root, dict.fromkeys(names, ""))
    told = git(shop.root, "status", "--porcelain", "--untracked-files=all").splitlines()
    assert {line[3:] for line in told} == {
        ".debrief/judges/reuse.md",
        ".debrief/plans/a.md",
        ".debrief/prompts/active/droid/main.md",
    }
