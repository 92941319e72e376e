"""A session's change made again, in real repositories and from real transcripts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.execution.model import NotExecuted, RebuiltTree
from debrief.execution.rebuilding import rebuild
from debrief.execution.trees import lay_out
from debrief.sessions.model import Recorded, Session
from tests.execution.repositories import Repo, Work
from tests.training.scenario import call, says, session, turn

OLD = "import time\n\n\ndef send():\n    return 1\n"
NEW = "import time\n\n\ndef send():\n    return retry(1)\n"
RETRY = "def retry(value):\n    return value\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "shop")
    made.commit(-48, {"README.md": "# Shop\n", "app/send.py": "import time\n"})
    made.commit(-2, {"app/send.py": OLD})
    return made


@pytest.fixture
def rebuilt(tmp_path: Path) -> Callable[[Work | Session, Repo], RebuiltTree | NotExecuted]:
    def run(work: Work | Session, repo: Repo) -> RebuiltTree | NotExecuted:
        one = work.session(tmp_path) if isinstance(work, Work) else work
        return rebuild(one, repo.folder, tmp_path / "store")

    return run


Rebuilt = Callable[[Work | Session, Repo], RebuiltTree | NotExecuted]


def retrying() -> Work:
    """A session that edits one file and writes another."""
    work = Work()
    work.reads("app/send.py", OLD)
    work.edits("app/send.py", "    return 1\n", "    return retry(1)\n", line=5)
    work.writes("app/retry.py", RETRY)
    return work


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def laid_out(tree: RebuiltTree, id: str, tmp_path: Path) -> dict[str, bytes]:
    folder = tmp_path / f"tree-{id[:8]}"
    lay_out(id, Path(tree.clone), tmp_path / "store", folder)
    return files_of(folder)


def test_the_tree_is_exact_where_a_commit_holds_the_very_files(
    tmp_path: Path, repo: Repo, rebuilt: Rebuilt
) -> None:
    base = repo.git("rev-parse", "HEAD")
    made = repo.commit(1, {"app/send.py": NEW, "app/retry.py": RETRY})
    repo.commit(30, {"app/send.py": "print('later')\n"})
    before = files_of(repo.folder)
    tree = rebuilt(retrying(), repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.base, tree.base_source) == (base, "inferred")
    assert (tree.exact, tree.seen_in, tree.landed) == (True, made, made)
    assert tree.files == ("app/retry.py", "app/send.py")
    assert laid_out(tree, tree.base_tree, tmp_path) == {
        "README.md": b"# Shop\n", "app/send.py": OLD.encode(),
    }  # fmt: skip
    assert laid_out(tree, tree.final_tree, tmp_path)["app/send.py"] == NEW.encode()
    assert files_of(repo.folder) == before


def test_a_later_read_of_all_files_shows_the_end_too(repo: Repo, rebuilt: Rebuilt) -> None:
    work = retrying()
    work.reads("app/send.py", NEW)
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.exact, tree.seen_in, tree.differing) == (False, "read", ())
    work.reads("app/retry.py", RETRY)
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.exact, tree.seen_in, tree.landed) == (True, "read", "")


def test_a_commit_that_holds_something_else_is_named_and_its_files_differ(
    repo: Repo, rebuilt: Rebuilt
) -> None:
    changed = NEW.replace("import time\n", "import time, random\n")
    made = repo.commit(1, {"app/send.py": changed, "app/retry.py": RETRY})
    tree = rebuilt(retrying(), repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.exact, tree.landed, tree.differing) == (False, made, ("app/send.py",))


def test_git_s_own_output_names_the_base(repo: Repo, rebuilt: Rebuilt) -> None:
    base = repo.git("rev-parse", "HEAD")
    repo.git("checkout", "--quiet", "-b", "retry")
    made = repo.commit(0.5, {"app/send.py": NEW, "app/retry.py": RETRY})
    repo.git("checkout", "--quiet", "main")
    repo.commit(-1, {"other.py": "print('of somebody else, before the session')\n"})
    work = retrying()
    work.runs("git add -A && git commit -m Retry", f"[retry {made[:7]}] Retry\n 2 files changed")
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.base, tree.base_source, tree.exact) == (base, "transcript", True)
    work = Work()
    work.runs("cd /home/ann/shop && git log --oneline -3", f"{base[:8]} Work\n1234567 Begin")
    work.edits("app/send.py", "    return 1\n", "    return 2\n", line=5)
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.base, tree.base_source) == (base, "transcript")


def test_an_inferred_base_that_does_not_fit_gives_way_to_one_that_does(
    repo: Repo, rebuilt: Rebuilt
) -> None:
    base = repo.git("rev-parse", "HEAD")
    repo.commit(-1, {"app/send.py": OLD.replace("return 1", "return 1 + 1")})
    tree = rebuilt(retrying(), repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.base, tree.base_source) == (base, "inferred")
    work = Work()
    work.edits("app/send.py", "    return 7\n", "    return 8\n", line=5)
    never = rebuilt(work, repo)
    assert isinstance(never, NotExecuted)
    assert (never.reason, never.detail) == ("not_rebuilt", "app/send.py")
    work = Work()
    work.edits("app/send.py", "    return 1\n", "    return 2\n", line=9)
    elsewhere = rebuilt(work, repo)
    assert isinstance(elsewhere, NotExecuted)
    assert elsewhere.reason == "not_rebuilt", "the text is there, but not at the line it was at"


def test_what_was_not_committed_before_is_part_of_a_known_base(
    tmp_path: Path, repo: Repo, rebuilt: Rebuilt
) -> None:
    base = repo.git("rev-parse", "HEAD")
    work, mine = Work(), OLD.replace("import time", "import time  # mine")
    work.runs("git rev-parse HEAD", base)
    work.reads("app/send.py", mine)
    work.edits("app/send.py", "    return 1\n", "    return 2\n", line=5)
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    assert tree.base == base
    assert laid_out(tree, tree.base_tree, tmp_path)["app/send.py"] == mine.encode()


def test_a_base_that_is_gone_or_cut_off_is_the_reason(
    tmp_path: Path, repo: Repo, rebuilt: Rebuilt
) -> None:
    one = replace(
        retrying().session(tmp_path),
        recorded=Recorded(base_commit=(gone := repo.git("rev-parse", "HEAD~1"))),
    )
    known = rebuilt(one, repo)
    assert isinstance(known, RebuiltTree)
    assert (known.base, known.base_source, known.exact) == (gone, "recorded", False)
    lost = rebuilt(replace(one, recorded=Recorded(base_commit="ab" * 20)), repo)
    assert isinstance(lost, NotExecuted)
    assert (lost.reason, lost.detail) == ("base_gone", "ab" * 20)
    Repo(tmp_path / "unused").git(
        "clone", "--quiet", "--depth=1", f"file://{repo.folder}", str(tmp_path / "shallow")
    )
    shallow = rebuild(one, tmp_path / "shallow", tmp_path / "store")
    assert isinstance(shallow, NotExecuted)
    assert (shallow.reason, shallow.detail) == ("shallow_clone", gone)
    empty = rebuilt(retrying(), Repo(tmp_path / "empty"))
    assert isinstance(empty, NotExecuted)
    assert empty.reason == "no_base"
    looked = Work()
    looked.reads("app/send.py", OLD)
    nothing = rebuilt(looked, repo)
    assert isinstance(nothing, NotExecuted)
    assert nothing.reason == "nothing_changed"


def test_a_file_that_a_command_changed_differs_until_something_shows_it(
    repo: Repo, rebuilt: Rebuilt
) -> None:
    work = retrying()
    work.runs("sed -i s/retry/again/ app/send.py")
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.exact, tree.differing) == (False, ("app/send.py",))
    again = NEW.replace("retry", "again")
    work.reads("app/send.py", again)
    work.reads("app/retry.py", RETRY)
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.exact, tree.differing) == (True, ())
    work = retrying()
    work.runs("npx prettier --write .")
    made = repo.commit(1, {"app/send.py": NEW, "app/retry.py": f"{RETRY}\n"})
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.exact, tree.seen_in) == (True, made)


def test_a_commit_does_not_show_what_a_command_did_after_it(repo: Repo, rebuilt: Rebuilt) -> None:
    other = RETRY.replace("value", "it")
    made = repo.commit(0.15, {"app/send.py": NEW, "app/retry.py": other})
    work = retrying()
    work.runs("sed -i s/value/it/ app/retry.py")
    work.runs("git commit -am Retry", f"[main {made[:7]}] Retry")
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.exact, tree.landed, tree.differing) == (True, made, ())
    work.runs("git checkout main && git pull")
    assert rebuilt(work, repo) == tree, "the work is what was committed"
    work.runs("sed -i s/retry/again/ app/send.py app/retry.py")
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.exact, tree.landed) == (False, made)
    assert tree.differing == ("app/retry.py", "app/send.py")


def test_what_commands_move_and_remove_is_followed_as_far_as_it_can_be(
    tmp_path: Path, repo: Repo, rebuilt: Rebuilt
) -> None:
    repo.commit(-1, {"docs/a.md": "a\n", "docs/b/c.md": "c\n", "old.tmp": "x\n"})
    work = retrying()
    work.runs("git mv app/retry.py app/again.py && rm -rf docs *.tmp /tmp/elsewhere")
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    removed = ("docs/a.md", "docs/b/c.md", "old.tmp")
    assert tree.differing == ("app/again.py", *removed), "a command may have failed half way"
    assert set(laid_out(tree, tree.final_tree, tmp_path)) == {
        "README.md", "app/again.py", "app/send.py",
    }  # fmt: skip
    new: dict[str, str | None] = {"app/send.py": NEW, "app/again.py": RETRY}
    made = repo.commit(1, new | dict.fromkeys(removed))
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    assert (tree.exact, tree.seen_in, tree.differing) == (True, made, ())


def test_the_repository_may_lie_anywhere_on_the_other_machine(repo: Repo, rebuilt: Rebuilt) -> None:
    repo.commit(-1, {".gitignore": "dist\n"})
    work = Work("/home/ann/worktrees/7/app")
    work.reads("send.py", OLD)
    work.edits("send.py", "    return 1\n", "    return 2\n", line=5)
    work.writes("generated/.gitignore", "*\n")
    tree = rebuilt(work, repo)
    assert isinstance(tree, RebuiltTree)
    assert tree.files == ("app/generated/.gitignore", "app/send.py")


def test_a_patch_of_codex_is_applied_as_codex_does(
    tmp_path: Path, repo: Repo, rebuilt: Rebuilt
) -> None:
    patch = """*** Begin Patch
*** Update File: app/send.py
*** Move to: app/sending.py
@@ def send():
-    return 1
+    return 2
*** Delete File: README.md
*** Add File: app/retry.py
+def retry(value):
+    return value
*** End Patch"""
    edit = call("apply_patch", {"input": patch}, path="app/send.py", patch="@@", estimated=True)
    one = session("s1", turn("Go", says("", edit)), cwd=str(repo.folder))
    tree = rebuilt(one, repo)
    assert isinstance(tree, RebuiltTree)
    assert laid_out(tree, tree.final_tree, tmp_path) == {
        "app/retry.py": RETRY.encode(),
        "app/sending.py": OLD.replace("return 1", "return 2").encode(),
    }


def test_submodules_and_lfs_pointers_of_changed_files_are_reasons(
    tmp_path: Path, repo: Repo, rebuilt: Rebuilt
) -> None:
    part = Repo(tmp_path / "part")
    part.commit(-9, {"lib.py": "x = 1\n"})
    repo.git("submodule", "--quiet", "add", f"file://{part.folder}", "vendor/part")
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 9\n"
    repo.commit(-1, {"model.txt": pointer})
    for path, old, reason in (
        ("vendor/part/lib.py", "x = 1\n", "submodules"),
        ("model.txt", pointer, "lfs_pointers"),
    ):
        work = Work()
        work.writes(path, f"{old}y = 2\n")
        found = rebuilt(work, repo)
        assert isinstance(found, NotExecuted)
        assert (found.reason, found.detail) == (reason, path)
    tree = rebuilt(retrying(), repo)
    assert isinstance(tree, RebuiltTree)
    assert "model.txt" in laid_out(tree, tree.final_tree, tmp_path)


def test_no_link_leads_out_of_a_tree_and_nothing_of_the_repository_runs(
    tmp_path: Path, repo: Repo, rebuilt: Rebuilt
) -> None:
    ran, secret = tmp_path / "ran", tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("key")
    for name, target in (
        ("inside", "app"), ("up", "../secret"), ("root", str(secret)), ("hop", "up/key"),
        ("loop", "loop"),
    ):  # fmt: skip
        (repo.folder / name).symlink_to(target)
    repo.commit(-1, {".gitattributes": "*.py filter=payload\n"})
    payload = f"sh -c 'touch {ran}; cat'"
    for name in ("smudge", "clean", "process"):
        repo.git("config", f"filter.payload.{name}", payload)
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook = repo.folder / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    tree = rebuilt(retrying(), repo)
    assert isinstance(tree, RebuiltTree)
    folder = tmp_path / "laid-out"
    lay_out(tree.final_tree, repo.folder, tmp_path / "store", folder)
    links = {path.name for path in folder.iterdir() if path.is_symlink()}
    assert links == {"inside"}
    assert (folder / "up").read_text() == "../secret"
    assert (folder / "inside/send.py").read_text() == NEW
    assert not ran.exists()


def test_a_bare_clone_serves_as_well(tmp_path: Path, repo: Repo) -> None:
    bare = tmp_path / "shop.git"
    subprocess.run(["git", "clone", "-q", "--bare", repo.folder, bare], check=True)
    tree = rebuild(retrying().session(tmp_path), bare, tmp_path / "store")
    assert isinstance(tree, RebuiltTree)
    assert laid_out(tree, tree.final_tree, tmp_path)["app/send.py"] == NEW.encode()


def test_a_file_that_a_partial_clone_lacks_is_left_out_and_named(
    tmp_path: Path, repo: Repo
) -> None:
    repo.commit(-1, {"film.bin": "a long film\n"})
    blob = repo.git("rev-parse", "HEAD:film.bin")
    (repo.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    tree = repo.git("rev-parse", "HEAD^{tree}")
    folder = tmp_path / "laid-out"
    assert lay_out(tree, repo.folder, tmp_path / "store", folder) == ("film.bin",)
    assert "film.bin" not in files_of(folder)
    assert files_of(folder)
