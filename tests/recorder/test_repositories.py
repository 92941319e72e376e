"""Repositories of every kind: each is recorded exactly, and none is touched."""

import hashlib
import os
import tempfile
import threading
from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.git.scratch import scratch_of
from debrief.recorder.assembly import build_record
from debrief.recorder.checks import ReadyRule, readiness
from debrief.recorder.comparison import uncommitted_paths
from debrief.recorder.contracts import IGNORED
from debrief.recorder.messages import files_of
from debrief.recorder.repository import baseline_of, without_credentials
from tests.recorder.repositories import (
    REDACTOR,
    changes_between,
    commit,
    facts,
    head,
    kinds,
    rebuilt,
    recorded,
    repository,
    run,
    skips,
    trace,
    tree_of_folder,
    untouched,
    write,
)

ANOTHER = "a submodule, or a repository of its own"


def test_a_linked_worktree_is_recorded_by_itself(tmp_path: Path) -> None:
    main = repository(tmp_path / "main", {"a": "1\n"})
    linked = tmp_path / "linked"
    run(main, "worktree", "add", "--quiet", "-b", "side", str(linked))
    write(main, {"a": "of main\n"})
    write(linked, {"a": "of linked\n", "b": "x\n"})
    assert kinds(recorded(linked)) == {"a": "update", "b": "create"}
    assert kinds(recorded(main)) == {"a": "update"}
    assert baseline_of(linked).branch == "side"


def test_a_detached_head_has_no_branch(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    run(work, "switch", "--quiet", "--detach")
    write(work, {"a": "1\n"})
    assert baseline_of(work).branch is None
    assert kinds(recorded(work)) == {"a": "create"}


def test_a_folder_below_the_top_means_the_whole_repository(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"deep/er/a": "1\n"})
    write(work, {"top": "1\n", "deep/er/a": "2\n"})
    assert len(changes_between(work / "deep/er", head(work)).files) == 2
    assert uncommitted_paths(work / "deep") == ["deep/er/a", "top"]


def test_a_folder_with_a_line_end_in_its_name_holds_a_repository_like_any_other(
    tmp_path: Path,
) -> None:
    work = repository(tmp_path / "wo\nrk")
    write(work, {"kept.txt": "changed\n"})
    assert baseline_of(work).worktree == work
    assert kinds(recorded(work)) == {"kept.txt": "update"}


def test_a_sha256_repository_is_recorded(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a": "1\n"}, "--object-format=sha256")
    write(work, {"a": "2\n", "b/c": "1\n"})
    record = recorded(work)
    assert len(record.meta.final_tree or "") == 64
    assert record.meta.final_tree == tree_of_folder(work)


def test_a_split_index_is_read_and_stays_split(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {f"f{n}": "1\n" for n in range(30)})
    run(work, "update-index", "--split-index")
    run(work, "config", "core.splitIndex", "true")
    write(work, {"f3": "2\n"})
    run(work, "add", "f3")
    write(work, {"f3": "3\n", "f4": "2\n"})
    assert list((work / ".git").glob("sharedindex.*"))
    assert kinds(recorded(work)) == {"f3": "update", "f4": "update"}


@pytest.mark.parametrize("options", [("--cone",), ("--no-cone",), ("--cone", "--sparse-index")])
def test_a_sparse_checkout_has_not_deleted_what_is_not_checked_out(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    work = repository(
        tmp_path / "work", {"in/a": "1\n", "far/b": "1\n", "far/c": "1\n", "far/d/e": "1\n"}
    )
    run(work, "sparse-checkout", "set", *options, "in")
    assert not (work / "far").exists()
    assert uncommitted_paths(work) == []
    write(work, {"in/a": "2\n", "far/new": "outside of the cone\n", "far/c": "back again\n"})
    record = recorded(work)
    assert kinds(record) == {"in/a": "update", "far/new": "create", "far/c": "update"}


FATES = ("changed", "gone", "touched", "same")


def test_files_that_git_was_told_not_to_look_at_are_named(tmp_path: Path) -> None:
    """They may have been changed before the session, so that it begins all the same."""
    names = {f"{mark}-{fate}": "1\n" for mark in ("assumed", "skipped") for fate in FATES}
    work = repository(tmp_path / "work", {**names, "open": "1\n"})
    for mark, option in {"assumed": "assume-unchanged", "skipped": "skip-worktree"}.items():
        run(work, "update-index", f"--{option}", *(name for name in names if name.startswith(mark)))
    for name in names:
        if name.endswith("changed"):
            write(work, {name: "2\n"})
        elif name.endswith("gone"):
            (work / name).unlink()
        elif name.endswith("touched"):
            os.utime(work / name, (1, 1))
    assert uncommitted_paths(work) == []
    write(work, {"open": "2\n"})
    record = recorded(work)
    assert kinds(record) == {"open": "update"}
    told = "git was told not to look at its changes"
    assert skips(record) == {
        "assumed-changed": f"{told} (assume-unchanged)",
        "assumed-gone": f"{told} (assume-unchanged)",
        "skipped-changed": f"{told} (skip-worktree)",
    }
    assert "3 changed paths could not be recorded" in readiness(record, ReadyRule())[0]
    assert skips(recorded(work, ignore=("assumed-*",))) == {
        "assumed-changed": IGNORED,
        "assumed-gone": IGNORED,
        "skipped-changed": f"{told} (skip-worktree)",
    }


def test_what_was_staged_before_git_was_told_not_to_look_is_not_taken_for_the_file(
    tmp_path: Path,
) -> None:
    work = repository(tmp_path / "work", {"config": "1\n"})
    write(work, {"config": "2\n", "new": "1\n"})
    run(work, "add", "--all")
    run(work, "update-index", "--assume-unchanged", "config", "new")
    write(work, {"config": "3\n"})
    record = recorded(work)
    assert (kinds(record), list(skips(record))) == ({"new": "create"}, ["config"])


def test_a_merge_conflict_is_recorded_as_it_stands_in_the_file(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a": "base\n", "b": "base\n"})
    run(work, "switch", "--quiet", "--create", "theirs")
    write(work, {"a": "theirs\n"})
    run(work, "rm", "--quiet", "b")
    commit(work)
    run(work, "switch", "--quiet", "main")
    write(work, {"a": "ours\n", "b": "ours\n"})
    base = commit(work)
    run(work, "merge", "theirs", allowed=1)
    assert run(work, "ls-files", "--unmerged")
    record = recorded(work, base)
    assert kinds(record) == {"a": "update"}
    rebuilt_a = (rebuilt(work, record, tmp_path / "other") / "a").read_text()
    assert rebuilt_a == (work / "a").read_text()
    assert "<<<<<<<" in rebuilt_a


def with_submodule(folder: Path) -> Path:
    library = repository(folder / "library", {"lib": "1\n"})
    work = repository(folder / "work")
    run(work, "submodule", "--quiet", "add", str(library), "sub")
    return work


def test_submodules_and_repositories_inside_are_skipped(tmp_path: Path) -> None:
    work = with_submodule(tmp_path)
    write(work, {"folder/b": "1\n"})
    base = commit(work)
    assert uncommitted_paths(work) == []
    write(work / "sub", {"lib": "2\n"})
    commit(work / "sub")
    repository(work / "vendor/nested", {"n": "1\n"})
    (work / "vendor/empty").mkdir()
    run(work / "vendor/empty", "init", "--quiet")
    write(work, {"vendor/empty/file": "of another repository\n", "a": "1\n"})
    (work / "folder/b").unlink()
    (work / "folder").rmdir()
    write(work, {"folder": "a file now\n"})
    record = recorded(work, base)
    assert kinds(record) == {"a": "create", "folder": "create", "folder/b": "delete"}
    assert skips(record) == {"sub": ANOTHER, "vendor/nested": ANOTHER, "vendor/empty": ANOTHER}
    changed = ["a", "folder", "folder/b", "sub", "vendor/empty", "vendor/nested"]
    assert uncommitted_paths(work) == changed


def test_submodules_that_are_not_checked_out_are_not_changed(tmp_path: Path) -> None:
    work = with_submodule(tmp_path)
    base = commit(work)
    run(work, "submodule", "--quiet", "deinit", "--force", "sub")
    assert uncommitted_paths(work) == []
    (work / "sub").rmdir()
    record = recorded(work, base)
    assert skips(record) == {"sub": ANOTHER}
    assert kinds(record) == {}


def test_the_worktree_of_a_submodule_is_a_worktree(tmp_path: Path) -> None:
    work = with_submodule(tmp_path)
    write(work / "sub", {"lib": "2\n"})
    assert kinds(recorded(work / "sub")) == {"lib": "update"}


def pointer(content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n"


def test_lfs_paths_are_skipped_and_clean_while_they_are_what_was_stored(tmp_path: Path) -> None:
    big, other = b"big " * 5000, b"other " * 5000
    work = repository(
        tmp_path / "work",
        {
            ".gitattributes": "*.psd filter=lfs diff=lfs merge=lfs -text\n",
            "a.psd": pointer(big),
            "b.psd": pointer(other),
        },
    )
    run(work, "config", "filter.lfs.required", "true")
    run(work, "config", "filter.lfs.clean", "git-lfs clean -- %f")
    run(work, "config", "filter.lfs.process", "git-lfs filter-process")
    write(work, {"a.psd": big, "b.psd": other})
    assert uncommitted_paths(work) == []
    write(work, {"b.psd": b"changed", "c.psd": b"new", "text": "1\n"})
    record = recorded(work)
    assert kinds(record) == {"text": "create"}
    assert skips(record) == {"b.psd": "kept in Git LFS", "c.psd": "kept in Git LFS"}
    assert uncommitted_paths(work) == ["b.psd", "c.psd", "text"]


def test_line_ends_are_those_that_git_would_commit(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"unix": "1\n2\n", "raw": "1\r\n2\r\n"})
    run(work, "config", "core.autocrlf", "true")
    for name in ("unix", "raw"):
        (work / name).unlink()
    run(work, "checkout", "--", ".")
    assert (work / "unix").read_bytes() == b"1\r\n2\r\n"
    assert uncommitted_paths(work) == []
    write(work, {"unix": "1\r\n3\r\n", "fresh": "a\r\n"})
    (work / "raw").touch()
    record = recorded(work)
    assert kinds(record) == {"unix": "update", "fresh": "create"}
    assert files_of(record) == {"unix": "1\n2\n"}


def test_a_file_whose_bytes_are_the_baselines_is_dropped(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"dos": "1\r\n2\r\n"})
    write(work, {".gitattributes": "* text=auto eol=lf\ndos text\n"})
    base = commit(work, "says what it does not do")
    run(work, "rm", "--quiet", "--cached", "dos")
    stored = blob(work, b"1\r\n2\r\n")
    run(work, "update-index", "--add", "--cacheinfo", f"100644,{stored},dos")
    made = run(work, "commit-tree", "-p", base, "-m", "x", run(work, "write-tree").strip())
    run(work, "reset", "--quiet", made.strip())
    (work / "dos").touch()
    assert b"dos" in run(work, "status", "--porcelain")
    assert uncommitted_paths(work) == []
    (work / "dos").chmod(0o755)
    assert kinds(recorded(work)) == {"dos": "update 100755"}


def blob(work: Path, content: bytes) -> str:
    return run(work, "hash-object", "-w", "--stdin", data=content).decode().strip()


def test_other_encodings_and_eol_attributes_are_recorded_in_blob_space(tmp_path: Path) -> None:
    work = repository(
        tmp_path / "work",
        {".gitattributes": "*.u16 working-tree-encoding=UTF-16LE\n*.bat eol=crlf\n*.id ident\n"},
    )
    write(work, {"a.u16": "ü\n".encode("utf-16-le"), "b.bat": "go\r\n", "c.id": "$Id: 12 $\n"})
    record = recorded(work)
    assert kinds(record) == {"a.u16": "create", "b.bat": "create", "c.id": "create"}
    assert record.meta.final_tree == tree_of_folder(work)


def test_replaced_and_alternate_objects_do_not_mislead(tmp_path: Path) -> None:
    store = repository(tmp_path / "store", {"a": "1\n"})
    work = tmp_path / 'work:with"colon'
    run(tmp_path, "clone", "--quiet", "--shared", str(store), str(work))
    run(work, "replace", blob(work, b"1\n"), blob(work, b"lie\n"))
    write(work, {"a": "2\n"})
    record = recorded(work)
    assert files_of(record) == {"a": "1\n"}


def test_temporary_files_inside_of_the_repository_are_refused(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    (work / "tmp").mkdir()
    with pytest.raises(InputError, match="lies in the repository"), scratch_of(work, work / "tmp"):
        pass
    assert list((work / "tmp").iterdir()) == []


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = repository(tmp_path / "work")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    write(work, {"a": "1\n"})
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    build_record(work, facts(head(work)), REDACTOR)
    with pytest.raises(InputError):
        changes_between(work, "f" * 40)
    assert list(scratch.iterdir()) == []


def test_git_may_work_in_the_repository_at_the_same_time(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {f"f{n}": f"{n}\n" for n in range(200)})
    base = head(work)
    write(work, {f"f{n}": "changed\n" for n in range(0, 200, 10)})
    expected = changes_between(work, base).final_tree
    ended = threading.Event()

    def keep_adding() -> None:
        while not ended.is_set():
            run(work, "add", "--all", allowed=128)
            run(work, "reset", "--quiet", allowed=128)

    thread = threading.Thread(target=keep_adding)
    thread.start()
    try:
        found = {changes_between(work, base).final_tree for _ in range(6)}
    finally:
        ended.set()
        thread.join()
    assert found == {expected}


def test_a_lock_that_another_git_holds_is_no_obstacle(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    write(work, {"a": "1\n"})
    (work / ".git/index.lock").touch()
    assert kinds(recorded(work)) == {"a": "create"}
    assert (work / ".git/index.lock").exists()


def test_a_repository_that_may_not_be_written_is_recorded(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a": "1\n"})
    write(work, {"a": "2\n"})
    folders = [work / ".git", *(p for p in (work / ".git").rglob("*") if p.is_dir())]
    before = trace(work)
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert kinds(recorded(work)) == {"a": "update"}
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert trace(work) == before


def test_environment_variables_of_git_are_not_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = repository(tmp_path / "work")
    other = repository(tmp_path / "other")
    base = head(work)
    write(work, {"a": "1\n"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    with untouched(other):
        changes = changes_between(work, base)
    assert [file.path for file in changes.files] == ["a"]


PUBLIC = {
    "https://me:pw@example.org/a.git": "https://example.org/a.git",
    "https://token@example.org:8443/a.git?x=1#y": "https://example.org:8443/a.git",
    "ssh://git@example.org/a.git": "ssh://example.org/a.git",
    "git@example.org:a/b.git": "example.org:a/b.git",
    "/srv/a@b.git": "/srv/a@b.git",
    "https://me:p@ss@example.org/a": "https://example.org/a",
}


@pytest.mark.parametrize(("address", "shown"), PUBLIC.items())
def test_a_remotes_address_loses_its_credentials(address: str, shown: str) -> None:
    assert without_credentials(address) == shown
