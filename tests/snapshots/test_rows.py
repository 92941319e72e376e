"""What a repository's history says of a session: prompts, commit, licence."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from debrief.sessions.model import Instructions
from debrief.snapshots.capture import prompts_in
from debrief.snapshots.captures import find_captures
from debrief.snapshots.clones import find_clones
from debrief.snapshots.fingerprint import compute_prompt_fingerprint, prompt_digest
from debrief.snapshots.model import PromptSnapshot
from debrief.snapshots.rows import (
    CommitAt,
    lasting_snapshot,
    metadata_row,
    reconstruct,
    snapshot_row,
)
from tests.snapshots.scenario import MONDAY, PROMPTS, commit, git, head, repository, write

HOUR = timedelta(hours=1)
NOTHING = find_captures([])


def test_the_prompts_are_those_that_were_committed_last_before_the_session(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    first = git(shop, "rev-parse", "HEAD")
    commit(shop, {"CLAUDE.md": "Later words."}, MONDAY + 2 * HOUR)
    write(shop, {"CLAUDE.md": "Never committed."})
    found = reconstruct(shop, "claude-code", "main", MONDAY + HOUR)
    subagents = {"reviewer": "Review it.\n", "tester": "Prüfe es.\n"}
    assert found == (
        PromptSnapshot(main="Test first.\n", subagents=subagents),
        CommitAt(first, "branch"),
    )
    later = reconstruct(shop, "claude-code", "main", MONDAY + 3 * HOUR)
    assert later is not None
    assert later[0].main == "Later words."
    assert reconstruct(shop, "claude-code", "main", MONDAY - HOUR) is None


def test_what_is_reconstructed_and_what_is_captured_of_the_same_files_is_the_same(
    tmp_path: Path,
) -> None:
    shop = repository(tmp_path / "shop", {**PROMPTS, ".claude/agents/web/reviewer.md": "Other."})
    captured = prompts_in(shop, "claude-code")
    found = reconstruct(shop, "claude-code", "main", MONDAY + HOUR)
    assert captured is not None
    assert found is not None
    assert prompt_digest(found[0]) == prompt_digest(captured)
    assert set(found[0].subagents) == {"reviewer", "tester", "web.reviewer"}


def test_the_branch_of_the_session_counts_and_head_when_it_is_gone(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    git(shop, "checkout", "--quiet", "-b", "side")
    commit(shop, {"CLAUDE.md": "On the side."})
    git(shop, "checkout", "--quiet", "main")
    mains = {
        branch: found[0].main
        for branch in ("side", "main", "gone", "--output=x", "")
        if (found := reconstruct(shop, "claude-code", branch, MONDAY + HOUR))
    }
    assert mains.pop("side") == "On the side."
    assert set(mains.values()) == {"Test first.\n"}
    assert len(mains) == 4


def test_droids_are_found_and_links_and_binary_prompts_survived(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    git(shop, "init", "--quiet", "--initial-branch=main")
    (shop / "CLAUDE.md").symlink_to("/etc/passwd")
    commit(
        shop, {"AGENTS.md": b"caf\xe9", ".factory/droids/helper.md": "Help.", "CLAUDE.md.bak": ""}
    )
    git(shop, "add", "CLAUDE.md")
    git(shop, "commit", "--quiet", "-m", "a link")
    droid = reconstruct(shop, "droid", "main", MONDAY + HOUR)
    claude = reconstruct(shop, "claude-code", "main", MONDAY + HOUR)
    assert droid is not None
    assert claude is not None
    assert droid[0] == PromptSnapshot(main="caf\ufffd", subagents={"helper": "Help."})
    assert claude[0] == PromptSnapshot(main="caf\ufffd")


def test_a_folder_that_is_no_repository_or_empty_gives_nothing(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "--quiet")
    for place in (tmp_path, tmp_path / "nowhere", empty):
        assert reconstruct(place, "claude-code", "main", MONDAY) is None


def test_a_commit_that_the_session_names_comes_before_its_time(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    first = git(shop, "rev-parse", "HEAD")
    second = commit(shop, {"CLAUDE.md": "Later words."}, MONDAY + 2 * HOUR)
    known = [
        found[0].main
        for commit in (second, "f" * 40, "")
        if (found := reconstruct(shop, "claude-code", "main", MONDAY + HOUR, commit))
    ]
    assert known == ["Later words.", "Test first.\n", "Test first.\n"]
    session = head(cwd=str(shop), branch="main", started=MONDAY + HOUR)
    for named, told, origin in (
        (second, second, "transcript"),
        ("f" * 40, "f" * 40, "transcript"),
        (UNSET, first, "branch"),
    ):
        named_session = replace(session, base_commit=named)
        row = snapshot_row(named_session, NOTHING)
        made = metadata_row(named_session, row, NOTHING)
        assert (made.base_commit, made.base_commit_origin) == (told, origin)


def test_a_row_says_where_its_prompts_came_from(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    session = head(cwd=f"{shop}/.debrief/worktrees/gone", branch="main", started=MONDAY + HOUR)
    row = snapshot_row(session, NOTHING)
    assert row.origin == "reconstructed"
    assert row.note.startswith("commit ")
    assert row.main == "Test first.\n"
    committed = PromptSnapshot(
        main="Test first.\n", subagents={"reviewer": "Review it.\n", "tester": "Prüfe es.\n"}
    )
    assert row.prompt_fingerprint == compute_prompt_fingerprint(committed)


def test_prompts_in_a_transcript_have_the_fingerprint_of_their_files(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    given = (
        Instructions(path=f"{tmp_path}/home/CLAUDE.md", text="Mine alone.", place="message"),
        Instructions(path=f"{shop}/CLAUDE.md", text="Test first.", place="message"),
    )
    session = head(cwd=str(shop), branch="main", started=MONDAY + HOUR)
    told = snapshot_row(replace(session, instructions=given), NOTHING)
    assert (told.origin, told.note) == ("recorded", "the transcript")
    assert told.prompt_fingerprint == snapshot_row(session, NOTHING).prompt_fingerprint
    gone = snapshot_row(replace(session, cwd=f"{shop}/gone", instructions=given), NOTHING)
    assert (gone.origin, gone.main) == ("recorded", "Test first.\n")


def test_a_session_of_another_machine_is_given_the_prompts_of_a_clone_of_its_repository(
    tmp_path: Path,
) -> None:
    shop = repository(tmp_path / "shop")
    git(tmp_path, "clone", "--quiet", "--bare", str(shop), "host/ann/storefront.git")
    commit(shop, {"CLAUDE.md": "Later words."}, MONDAY + 2 * HOUR)
    away = head(cwd="/home/bob/shop", repository="shop", branch="main", started=MONDAY + HOUR)
    row = snapshot_row(away, NOTHING, find_clones([tmp_path / "host"]))
    assert (row.origin, row.main, row.commit_origin) == ("reconstructed", "Test first.\n", "branch")
    assert row.note == f"commit {row.commit} of the clone storefront.git"
    made = metadata_row(away, row, NOTHING, find_clones([tmp_path / "host"]))
    assert (made.base_commit, made.base_commit_origin) == (row.commit, "branch")
    gone = snapshot_row(replace(away, branch="gone"), NOTHING, find_clones([shop]))
    assert (gone.main, gone.commit_origin) == ("Test first.\n", "head")


def test_what_a_clone_showed_once_stays_known_without_it(tmp_path: Path) -> None:
    (tmp_path / "licensed").mkdir()
    clones = find_clones(
        [repository(tmp_path / "licensed" / "shop", PROMPTS | {"LICENSE": MIT_TAG})]
    )
    away = head(cwd="/home/bob/shop", repository="shop", branch="main", started=MONDAY + HOUR)
    row = snapshot_row(away, NOTHING, clones)
    facts = metadata_row(away, row, NOTHING, clones)
    assert facts.licence == "MIT"
    later = lasting_snapshot(snapshot_row(away, NOTHING), row)
    assert later == row
    assert metadata_row(away, later, NOTHING, before=facts) == facts
    told = snapshot_row(replace(away, instructions=()), NOTHING)
    assert lasting_snapshot(told, row) == told, "the transcript says more"
    (tmp_path / "bare").mkdir()
    bare = find_clones([repository(tmp_path / "bare" / "shop")])
    assert metadata_row(away, row, NOTHING, bare, facts).licence == "", "it states none now"


def test_of_two_clones_of_a_name_that_with_the_sessions_commit_is_taken_and_else_none(
    tmp_path: Path,
) -> None:
    ours = repository(tmp_path / "ann/shop")
    theirs = repository(tmp_path / "bob/shop", {"CLAUDE.md": "Of another shop."})
    commit(theirs, {"CLAUDE.md": "Bob's."})
    clones = find_clones([tmp_path])
    away = head(cwd="/home/carl/shop", repository="Shop", started=MONDAY + HOUR)
    assert snapshot_row(away, NOTHING, clones).origin == "unknown"
    for folder, main in ((ours, "Test first.\n"), (theirs, "Bob's.")):
        named = replace(away, base_commit=git(folder, "rev-parse", "HEAD"))
        row = snapshot_row(named, NOTHING, clones)
        assert (row.main, row.commit_origin) == (main, "transcript")
    assert snapshot_row(replace(away, repository="other"), NOTHING, clones).origin == "unknown"


def test_what_was_merged_after_the_session_began_was_not_in_force(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    git(shop, "checkout", "--quiet", "-b", "side")
    commit(shop, {"CLAUDE.md": "On the side."}, MONDAY + HOUR)
    git(shop, "checkout", "--quiet", "main")
    git(shop, "merge", "--quiet", "--no-ff", "-m", "merge", "side", date=MONDAY + 3 * HOUR)
    found = reconstruct(shop, "claude-code", "main", MONDAY + 2 * HOUR)
    assert found is not None
    assert found[0].main == "Test first.\n"


def test_another_commit_in_a_clone_is_another_digest_and_no_clone_has_none(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    before = find_clones([tmp_path]).digest
    commit(shop, {"CLAUDE.md": "Later words."})
    assert len({find_clones([]).digest, before, find_clones([tmp_path]).digest}) == 3
    assert find_clones([]).digest == ""


def test_a_row_without_prompts_says_why(tmp_path: Path) -> None:
    session = head(cwd=str(repository(tmp_path / "shop")), started=MONDAY + HOUR)
    row = snapshot_row(replace(session, tool="a-tool"), NOTHING)
    reason = "which prompt files a-tool reads is not known"
    assert (row.origin, row.note) == ("unknown", f"no capture; {reason}")
    row = snapshot_row(replace(session, started=MONDAY - HOUR), NOTHING)
    assert row.note.endswith("its folder has no history of that time")
    row = snapshot_row(replace(session, cwd=f"{tmp_path}/away"), NOTHING)
    assert row.note.endswith("none in its transcript, and its repository is not at hand")


def test_a_session_that_had_no_prompt_files_has_a_fingerprint_too(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", {"readme.md": "A shop."})
    session = head(cwd=str(shop), tool="gemini-cli", started=MONDAY + HOUR)
    committed = snapshot_row(session, NOTHING)
    assert (committed.origin, committed.main) == ("reconstructed", "")
    assert committed.note.endswith("which holds none of GEMINI.md")
    shown = snapshot_row(replace(session, cwd="/gone", instructions=()), NOTHING)
    assert (shown.origin, "there was none" in shown.note) == ("recorded", True)
    nothing = compute_prompt_fingerprint(PromptSnapshot(main=""))
    assert committed.prompt_fingerprint == shown.prompt_fingerprint == nothing


def test_a_session_that_tells_no_folder_is_not_given_this_folders_prompts(tmp_path: Path) -> None:
    for cwd in ("", ".", "C:\\shop", str(tmp_path / "gone")):
        row = snapshot_row(head(cwd=cwd), NOTHING)
        assert (row.origin, row.prompt_fingerprint) == ("unknown", "unknown")


def test_a_capture_comes_before_the_history_and_a_wrong_fingerprint_is_told(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    write(
        shop / ".debrief/sessions/s1",
        {
            "prompts/main.md": "Captured.",
            "metadata.json": '{"prompt_fingerprint": "00000000", "model": "opus",'
            ' "recorded_at": "2026-01-05T08:59:00"}',
        },
    )
    session = head("s1", str(shop), models=(), branch="main")
    captures = find_captures([shop])
    row = snapshot_row(session, captures)
    assert (row.origin, row.main) == ("recorded", "Captured.")
    assert row.prompt_fingerprint == compute_prompt_fingerprint(PromptSnapshot(main="Captured."))
    assert "its metadata.json says 00000000" in row.note
    circumstances = metadata_row(session, row, captures)
    assert circumstances.model == "opus"
    assert circumstances.recorded_at == MONDAY - timedelta(minutes=1)


MIT_TAG = "SPDX-License-Identifier: MIT\n"


def test_a_row_names_the_commit_and_licence_and_neither_where_the_folder_is_gone(
    tmp_path: Path,
) -> None:
    place = repository(tmp_path / "shop", {"LICENSE": MIT_TAG})
    captures = find_captures([])
    expected = {place: (git(place, "rev-parse", "HEAD"), "MIT"), tmp_path / "gone": ("", "")}
    for folder, facts in expected.items():
        session = head(cwd=str(folder), branch="main")
        row = metadata_row(session, snapshot_row(session, captures), captures)
        assert (row.base_commit, row.licence) == facts
