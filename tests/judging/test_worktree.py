"""What is read of a worktree: all of the change, nothing else, and nothing touched."""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from debrief.errors import InputError
from debrief.judging.fitting import fit
from debrief.judging.worktree import (
    context_from_worktree,
    plan_base,
    read_worktree,
    session_from_worktree,
)
from debrief.redaction.redactor import Redactor
from tests.judging.repository import (
    NEW_TEST,
    NEW_UP,
    PLAN_ID,
    UTIL,
    git,
    make_repository,
    plan_text,
    work,
    write,
)
from tests.waiting import LONG


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    made = make_repository(tmp_path / "shop")
    work(made)
    return made


def changes_shown(worktree: Path, max_size: int = 240_000) -> str:
    changes = read_worktree(worktree, plan_text())
    return context_from_worktree(changes, lambda text: text, max_size).git_changes


def test_a_judge_sees_status_diff_new_files_and_changed_files_whole_and_nothing_changes(
    worktree: Path,
) -> None:
    index = Path(git(worktree, "rev-parse", "--git-path", "index"))
    before = (index.read_bytes(), git(worktree, "status", "--porcelain"))
    shown = changes_shown(worktree)
    assert (index.read_bytes(), git(worktree, "status", "--porcelain")) == before
    for part in (
        " M up.py",
        "?? test_up.py",
        "-    return file.send()",
        "+    return any(file.send() for _ in util.retry(3))",
        "--- /dev/null\n+++ b/test_up.py\n@@ -0,0 +1,5 @@",
        *(f"+{line}\n" for line in NEW_TEST.splitlines()),
        f"=== up.py ===\n{NEW_UP}",
    ):
        assert part in shown
    assert UTIL not in shown
    assert "plan.md" not in shown.partition("Diff since")[2]


def test_staged_and_committed_work_counts_from_the_plans_commit_on(worktree: Path) -> None:
    plan = (worktree / "plan.md").read_text()
    git(worktree, "add", "up.py")
    git(worktree, "commit", "--quiet", "-m", "Use retry")
    git(worktree, "add", "test_up.py")
    changes = read_worktree(worktree, plan)
    assert [file.path for file in changes.files] == ["test_up.py", "up.py"]
    assert changes.base == plan_base(plan)
    assert len(changes.commits) == 1
    assert "Use retry" in context_from_worktree(changes, lambda text: text).git_changes


@pytest.mark.parametrize("sha", ["", "0" * 40, "not a sha"])
def test_without_a_usable_commit_in_the_plan_head_is_the_base(worktree: Path, sha: str) -> None:
    changes = read_worktree(worktree, plan_text(sha))
    assert changes.base == git(worktree, "rev-parse", "HEAD")
    assert len(changes.files) == 2


def test_renames_are_a_deletion_and_a_creation(worktree: Path) -> None:
    git(worktree, "mv", "util.py", "helpers.py")
    changes = read_worktree(worktree, plan_text())
    found = {file.path: file.created for file in changes.files}
    assert found == {"helpers.py": True, "util.py": False, "test_up.py": True, "up.py": False}


def test_binary_generated_ignored_and_huge_files_are_named_or_passed_over(worktree: Path) -> None:
    lock = '{"lockfileVersion": 3}\n'
    write(worktree, {"logo.png": b"\x89PNG\0\0", "package-lock.json": lock, "empty.txt": ""})
    write(worktree, {"dump.sql": "INSERT\n" * 200_000, "debug.log": "ignored\n"})
    (worktree / "link").symlink_to("/etc/passwd")
    changes = read_worktree(worktree, plan_text())
    assert changes.named == (
        "dump.sql: new, far too large (1400000 bytes)",
        "empty.txt: new, empty",
        "link: new, a link to /etc/passwd",
        "logo.png: new, binary",
        "package-lock.json: new, generated",
    )
    shown = context_from_worktree(changes, lambda text: text).git_changes
    assert "logo.png: new, binary" in shown
    assert "debug.log" not in shown
    assert "root:" not in shown


def test_a_tracked_file_that_became_binary_a_link_or_a_program_is_no_obstacle(
    worktree: Path,
) -> None:
    write(worktree, {"a.bin": b"text\n", "b.txt": "text\n", "c.sh": "echo\n", "é ü.txt": "one\n"})
    git(worktree, "add", "a.bin", "b.txt", "c.sh", "é ü.txt")
    git(worktree, "commit", "--quiet", "-m", "More")
    write(worktree, {"a.bin": b"\0\1", "é ü.txt": "two\n"})
    (worktree / "b.txt").unlink()
    (worktree / "b.txt").symlink_to("c.sh")
    (worktree / "c.sh").chmod(0o755)
    changes = read_worktree(worktree, "A plan without a commit.")
    assert "a.bin: binary" in changes.named
    paths = [file.path for file in changes.files]
    assert "é ü.txt" in paths
    assert "b.txt" in paths
    assert "c.sh" not in paths


def test_a_file_of_git_lfs_is_changed_when_its_contents_are_and_other_filters_are_not_run(
    worktree: Path,
) -> None:
    weights = b"\0" * 1000
    digest = hashlib.sha256(weights).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize 1000\n"
    attributes = "*.bin filter=lfs\n*.enc filter=crypt\n"
    write(worktree, {".gitattributes": attributes, "a.bin": pointer, "b.enc": "1\n"})
    git(worktree, "add", ".")
    git(worktree, "commit", "--quiet", "-m", "Add weights")
    git(worktree, "config", "filter.crypt.clean", "false")
    write(worktree, {"a.bin": weights, "b.enc": "2\n"})
    changes = read_worktree(worktree, plan_text())
    assert changes.named == ("b.enc: its filter 'crypt' is not run",)
    assert "a.bin" not in changes.status
    write(worktree, {"a.bin": weights + b"1"})
    changes = read_worktree(worktree, plan_text())
    assert changes.named[0] == "a.bin: kept in Git LFS"
    assert changes.files == ()


def test_a_diff_of_30_mb_is_bounded_and_soon_read(worktree: Path) -> None:
    line = "value = 'a line of some length, as they are in data files'\n"
    big = {f"data/part{n}.txt": line * 10_000 for n in range(50)}
    write(worktree, dict(big))
    write(worktree, {"wide.js": "x" * 30_000_000})
    start = time.monotonic()
    changes = read_worktree(worktree, plan_text())
    context = context_from_worktree(changes, lambda text: text, 60_000)
    assert time.monotonic() - start < LONG / 2
    assert context.size < 65_000
    assert "util.retry(3)" in context.git_changes
    assert "wide.js: new, far too large" in context.git_changes
    assert "data/part1.txt: the whole file's changes" in context.git_changes


def test_contents_are_shown_whole_or_named(worktree: Path) -> None:
    plan, files = plan_text(), read_worktree(worktree, plan_text()).files
    shown = changes_shown(worktree, len(plan) + len(fit(files, 100_000)[0]) + 20)
    assert "=== up.py ===" not in shown
    assert "Not repeated in full, for size: up.py" in shown
    assert "+    return any(" in shown


def test_secrets_are_taken_out_of_plan_and_changes(worktree: Path) -> None:
    secret = "sk-ant-api03-" + "Zx9_kQ2vLm8Tn4Rb" * 5 + "AA"
    write(worktree, {"settings.py": f'KEY = "{secret}"\n'})
    redactor = Redactor(b"0123456789abcdef")
    changes = read_worktree(worktree, plan_text() + f"\nUse {secret}.\n")
    context = context_from_worktree(changes, lambda text: redactor.redact(text).text)
    assert secret not in context.plan_content + context.git_changes
    assert "<secret:" in context.plan_content
    assert "<secret:" in context.git_changes
    assert context.shrink is not None
    assert secret not in context.shrink(2000).git_changes


def conflict(worktree: Path) -> None:
    """Leave two commits behind that change the same line."""
    git(worktree, "add", ".")
    git(worktree, "commit", "--quiet", "-m", "Ours")
    git(worktree, "checkout", "--quiet", "-b", "theirs", "HEAD~1")
    write(worktree, {"up.py": "import other\n"})
    git(worktree, "commit", "--quiet", "-am", "Theirs")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("rebase", PLAN_ID), "in the middle of a rebase"),
        (("merge", PLAN_ID), "in the middle of a merge"),
        (("cherry-pick", PLAN_ID), "in the middle of a cherry-pick"),
    ],
)
def test_a_worktree_in_the_middle_of_something_is_refused_with_the_way_out(
    worktree: Path, command: tuple[str, ...], said: str
) -> None:
    conflict(worktree)
    with pytest.raises(CalledProcessError):
        git(worktree, *command)
    with pytest.raises(InputError, match=f"{said}.*--abort"):
        read_worktree(worktree, plan_text())


def test_conflicts_of_a_stash_are_refused(worktree: Path) -> None:
    git(worktree, "stash")
    write(worktree, {"up.py": "import other\n"})
    git(worktree, "commit", "--quiet", "-am", "Theirs")
    with pytest.raises(CalledProcessError):
        git(worktree, "stash", "pop")
    with pytest.raises(InputError, match=r"has conflicts, the first in up\.py"):
        read_worktree(worktree, plan_text())


def test_an_untouched_worktree_says_so_and_a_plain_folder_is_none(tmp_path: Path) -> None:
    worktree = make_repository(tmp_path / "shop")
    assert "Nothing is changed." in changes_shown(worktree)
    plain = worktree.parent / "plain"
    plain.mkdir()
    with pytest.raises(InputError, match="is a folder and no git worktree"):
        read_worktree(plain, plan_text())


def test_a_repository_without_a_commit_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    with pytest.raises(InputError, match="has no commit yet"):
        read_worktree(tmp_path, plan_text())


def test_a_worktree_is_a_session_of_one_turn(worktree: Path) -> None:
    changes = read_worktree(worktree, plan_text())
    moment = datetime(2026, 3, 2, tzinfo=UTC)
    session = session_from_worktree(changes, PLAN_ID, moment, "claude-code")
    assert (session.lines_added, session.lines_removed) == (6, 1)
    assert (session.task, session.turns[0].prompt) == (PLAN_ID, changes.plan)
    edits = [call.name for call in session.turns[0].messages[0].calls]
    assert sorted(edits) == ["Edit", "Write"]


def test_front_matter_is_for_tools() -> None:
    assert plan_base(plan_text("abc1234")) == "abc1234"
    assert plan_base("git_sha: abc1234\n") == ""
