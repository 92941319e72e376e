"""Others' work that comes in during a recording is told apart from the person's own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from debrief.recorder.checks import problems_of, validations_of
from debrief.recorder.contracts import Record
from debrief.recorder.messages import operations_of, patches_of
from debrief.recorder.stopping import Stopped
from debrief.recorder.verification import verify
from tests.recorder.repositories import tree_of_folder
from tests.recorder.session_scenario import Shop
from tests.snapshots.scenario import commit, git, write


@pytest.fixture
def theirs(shop: Shop, tmp_path: Path) -> Path:
    """A colleague's clone, one commit ahead, which the shop's repository pulls from."""
    clone = tmp_path / "theirs"
    git(tmp_path, "clone", "-q", str(shop.folder), str(clone))
    commit(clone, {"src/theirs.ts": "theirs\n", "src/total.ts": "1\n"})
    git(shop.folder, "remote", "add", "origin", str(clone))
    git(shop.folder, "config", "pull.rebase", "false")
    return clone


def own(record: Record) -> set[str]:
    return {op.path for op in operations_of(record)}


def stopped(shop: Shop) -> Stopped:
    """Stop, seeing to it that the record gives the very files that are there."""
    done = shop.stop(shop.folder.parent / "record.json")
    assert (problems_of(done.record), verify(shop.folder, done.record)) == ([], [])
    assert done.record.meta.final_tree == tree_of_folder(shop.folder)
    return done


def apart(shop: Shop, base: str, commits: int) -> Record:
    done = stopped(shop)
    meta = done.record.meta
    assert (meta.base_ref, done.not_ready) == (base, ())
    assert meta.others is not None
    assert (meta.others.commits, meta.others.mixed) == (commits, "")
    assert meta.others.first_base != base
    assert any("of others came in" in warning for warning in meta.warnings)
    return done.record


def mixed(shop: Shop, reason: str) -> None:
    done = stopped(shop)
    assert done.record.meta.others is not None
    assert reason in done.record.meta.others.mixed
    assert any(reason in why for why in done.not_ready)


def test_a_pull_that_moves_ahead(shop: Shop, theirs: Path) -> None:
    shop.start()
    write(shop.folder, {"src/mine.ts": "mine\n"})
    shop.run("pnpm", "lint")
    git(shop.folder, "pull", "-q", "origin", "main")
    write(shop.folder, {"src/mine.ts": "mine, and more\n"})
    shop.run("pnpm", "test")
    record = apart(shop, git(theirs, "rev-parse", "HEAD"), 1)
    assert own(record) == {"src/mine.ts"}
    assert [check.on_final_tree for check in validations_of(record)] == [False, True]
    assert len(patches_of(record)) == 2


def test_a_merge_of_a_branch_that_went_another_way(shop: Shop, theirs: Path) -> None:
    commit(shop.folder, {"src/before.ts": "before the session\n"})
    shop.start()
    write(shop.folder, {"src/mine.ts": "mine\n"})
    git(shop.folder, "pull", "-q", "--no-edit", "origin", "main")
    merge = git(shop.folder, "rev-parse", "HEAD")
    commit(shop.folder, {"src/mine.ts": "mine, committed\n"})
    shop.run("pnpm", "test")
    assert own(apart(shop, merge, 2)) == {"src/mine.ts"}


def test_a_merge_over_own_commits(shop: Shop, theirs: Path) -> None:
    shop.start()
    commit(shop.folder, {"src/mine.ts": "mine\n", "src/cart.ts": "mine\n"})
    git(shop.folder, "pull", "-q", "--no-edit", "origin", "main")
    shop.run("pnpm", "test")
    record = apart(shop, git(theirs, "rev-parse", "HEAD"), 1)
    assert own(record) == {"src/mine.ts", "src/cart.ts"}


def test_a_merge_over_own_commits_of_a_branch_that_went_another_way(
    shop: Shop, theirs: Path
) -> None:
    commit(shop.folder, {"src/before.ts": "before the session\n"})
    shop.start()
    commit(shop.folder, {"src/mine.ts": "mine\n"})
    git(shop.folder, "pull", "-q", "--no-edit", "origin", "main")
    shop.run("pnpm", "test")
    mixed(shop, "in between the session's own")


def test_a_rebase_of_own_commits_and_of_earlier_ones(shop: Shop, theirs: Path) -> None:
    commit(shop.folder, {"src/before.ts": "before the session\n"})
    shop.start()
    write(shop.folder, {"src/mine.ts": "mine\n"})
    git(shop.folder, "add", "-A")
    git(shop.folder, "commit", "-q", "-m", "Mine")
    shop.run("pnpm", "lint")
    git(shop.folder, "pull", "-q", "--rebase", "origin", "main")
    write(shop.folder, {"src/more.ts": "more\n"})
    shop.run("pnpm", "test")
    record = apart(shop, git(shop.folder, "rev-parse", "HEAD~1"), 2)
    assert own(record) == {"src/mine.ts", "src/more.ts"}


def test_a_change_of_branches(shop: Shop, theirs: Path) -> None:
    git(shop.folder, "fetch", "-q", "origin")
    shop.start()
    git(shop.folder, "checkout", "-q", "--detach", "origin/main")
    shop.change()
    shop.run("pnpm", "test")
    record = apart(shop, git(theirs, "rev-parse", "HEAD"), 1)
    assert own(record) == {"src/cart.ts", "src/discount.ts", "src/old.ts"}


def test_a_cherry_picked_commit_of_others_and_a_branch_of_earlier_work(
    shop: Shop, theirs: Path
) -> None:
    git(shop.folder, "checkout", "-q", "-b", "earlier")
    commit(shop.folder, {"src/earlier.ts": "earlier\n"})
    git(shop.folder, "checkout", "-q", "main")
    git(shop.folder, "fetch", "-q", "origin")
    shop.start()
    git(shop.folder, "merge", "-q", "earlier")
    git(shop.folder, "cherry-pick", "origin/main")
    write(shop.folder, {"src/mine.ts": "mine\n"})
    shop.run("pnpm", "test")
    record = apart(shop, git(shop.folder, "rev-parse", "HEAD"), 2)
    assert own(record) == {"src/mine.ts"}


def test_own_commits_however_they_came_about_are_the_persons(shop: Shop) -> None:
    base = git(shop.folder, "rev-parse", "HEAD")
    shop.start()
    commit(shop.folder, {"src/one.ts": "1\n"})
    commit(shop.folder, {"src/two.ts": "2\n"})
    git(shop.folder, "commit", "-q", "--amend", "-m", "another message")
    git(shop.folder, "reset", "-q", "--soft", "HEAD~1")
    git(shop.folder, "stash", "-q", "-u")
    git(shop.folder, "checkout", "-q", "-b", "topic")
    git(shop.folder, "stash", "pop", "-q")
    git(shop.folder, "commit", "-q", "--amend", "--all", "--no-edit")
    shop.run("pnpm", "test")
    done = stopped(shop)
    assert (done.record.meta.base_ref, done.record.meta.others) == (base, None)
    assert own(done.record) == {"src/one.ts", "src/two.ts"}
    assert done.not_ready == ()


def test_an_amended_baseline_is_still_the_baseline(shop: Shop) -> None:
    base = git(shop.folder, "rev-parse", "HEAD")
    shop.start()
    write(shop.folder, {"src/cart.ts": "mine\n"})
    git(shop.folder, "commit", "-q", "--all", "--amend", "--no-edit")
    record = stopped(shop).record
    assert (record.meta.base_ref, own(record)) == (base, {"src/cart.ts"})


def test_a_file_that_both_changed_is_told_once_and_a_warning_says_so(
    shop: Shop, theirs: Path
) -> None:
    commit(theirs, {"src/cart.ts": "0\nexport const cart = [];\nexport const total = 0;\n9\n"})
    shop.start()
    write(shop.folder, {"src/cart.ts": "export const cart = [];\nexport const total = 1;\n"})
    shop.run("pnpm", "lint")
    git(shop.folder, "commit", "-q", "--all", "-m", "mine")
    write(theirs, {"src/cart.ts": "0\nexport const cart = [];\nexport const total = 0;\n"})
    git(theirs, "commit", "-q", "--all", "-m", "theirs")
    git(shop.folder, "config", "merge.conflictStyle", "merge")
    git(shop.folder, "fetch", "-q", "origin")
    git(shop.folder, "merge", "-q", "--no-edit", "-X", "ours", "origin/main")
    shop.run("pnpm", "test")
    record = apart(shop, git(theirs, "rev-parse", "HEAD"), 3)
    assert (own(record), len(patches_of(record))) == ({"src/cart.ts"}, 1)
    assert any("others changed 'src/cart.ts' too" in text for text in record.meta.warnings)


def test_a_merge_with_conflicts_under_way_and_a_rebase_under_way(shop: Shop, theirs: Path) -> None:
    commit(theirs, {"src/cart.ts": "theirs\n"})
    shop.start()
    commit(shop.folder, {"src/cart.ts": "mine\n"})
    git(shop.folder, "fetch", "-q", "origin")
    with pytest.raises(subprocess.CalledProcessError):
        git(shop.folder, "merge", "-q", "origin/main")
    shop.run("pnpm", "test")
    done = shop.stop(shop.folder.parent / "merge.json")
    assert done.record.meta.verified
    assert any("a merge is under way" in reason for reason in done.not_ready)
    git(shop.folder, "merge", "--abort")
    shop.start()
    with pytest.raises(subprocess.CalledProcessError):
        git(shop.folder, "rebase", "-q", "origin/main")
    write(shop.folder, {"src/mine.ts": "mine\n"})
    done = shop.stop(shop.folder.parent / "rebase.json")
    assert any("a rebase is under way" in reason for reason in done.not_ready)


def test_without_a_reflog_nobody_can_tell(shop: Shop, theirs: Path) -> None:
    git(shop.folder, "config", "core.logAllRefUpdates", "false")
    shutil.rmtree(shop.folder / ".git/logs")
    shop.start()
    write(shop.folder, {"src/mine.ts": "mine\n"})
    git(shop.folder, "pull", "-q", "origin", "main")
    mixed(shop, "git's reflog does not say")
