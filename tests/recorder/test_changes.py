"""What a person does to files, recorded and rebuilt byte for byte, whatever their names."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.errors import readable
from debrief.recorder.comparison import snapshot_tree, uncommitted_paths
from debrief.recorder.messages import files_of, operations_of
from debrief.recorder.paths import path_problem
from tests.recorder.repositories import (
    commit,
    kinds,
    rebuilt,
    recorded,
    repository,
    run,
    skips,
    tree_of_folder,
    untouched,
    write,
)


def test_created_updated_and_deleted_files_come_back(tmp_path: Path) -> None:
    lines = "".join(f"line {n}\n" for n in range(40))
    work = repository(tmp_path / "work", {"a/b.py": lines, "gone.md": "", "z": "same\n"})
    write(work, {"a/b.py": lines.replace("line 20\n", "line twenty\n"), "new/file.ts": ""})
    (work / "gone.md").unlink()
    record = recorded(work)
    assert kinds(record) == {"gone.md": "delete", "a/b.py": "update", "new/file.ts": "create"}
    assert files_of(record) == {"a/b.py": lines, "gone.md": ""}
    assert record.meta.final_tree == tree_of_folder(work) == snapshot_tree(work)
    assert tree_of_folder(rebuilt(work, record, tmp_path / "other")) == record.meta.final_tree


TEXTS = {
    "no final newline on both sides": ("a\nb", "a\nc"),
    "final newline added": ("a\nb", "a\nb\n"),
    "final newline removed": ("a\nb\n", "a\nb"),
    "from empty": ("", "text\n"),
    "to empty": ("text\n", ""),
    "empty lines alone": ("\n", "\n\n\n"),
    "carriage returns": ("a\r\nb\r\n", "a\r\nc\r\n"),
    "carriage return inside": ("a\rb\n", "a\rc\n"),
    "what splitlines would split at": ("a\fb\x0b\x1c\n", "a\fc\x85\u2028d\n"),
    "looks like a diff": ("@@ -1 +1 @@\n", "diff --git a/x b/x\n@@ -2 +2 @@\n"),
    "byte order mark": ("\ufeffbom\n", "\ufeffbom!\n"),
    "a.hidden": ("of which attributes show no difference\n", "1\n"),
    "a.binary": ("that attributes take for another kind\n", "2\n"),
    "white space alone": ("  x  \n\t\n", " x  \n\t \n"),
    "beyond ASCII": ("ü\n" * 9, "ü\n" * 4 + "😀\n" + "ü\n" * 4),
}


def test_texts_come_back_to_the_byte(tmp_path: Path) -> None:
    attributes = {".gitattributes": "*.hidden -diff\n*.binary binary\n"}
    texts_before = {name: before for name, (before, _) in TEXTS.items()}
    work = repository(tmp_path / "work", {**attributes, **texts_before})
    write(work, {name: after for name, (_, after) in TEXTS.items()})
    record = recorded(work)
    assert kinds(record) == dict.fromkeys(sorted(TEXTS), "update")
    other = rebuilt(work, record, tmp_path / "other")
    texts = {name: (other / name).read_bytes().decode() for name in TEXTS}
    assert texts == {name: after for name, (_, after) in TEXTS.items()}


MARKED = "a\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\nb\n"


MERGES = {
    "a merge that was not\nfinished": ("a\nb\n", MARKED),
    "carriage returns": ("a\nb\n", MARKED.replace("\n", "\r\n")),
    "diff3": ("a\n", MARKED.replace("=====", "||||||| base\nwas\n=====", 1)),
    "without: markers that were there before": (MARKED, MARKED + "more\n"),
    "without: markers that were taken out": (MARKED, "a\nb\n"),
    "without: no whole set": ("a\n", "Title\n=======\n<<<<<<< HEAD\n"),
    "without: many beginnings and no end": ("a\n", "<<<<<<< x\n" * 200_00),
}


def test_conflict_markers_that_are_left_in_are_warned_of(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {name: before for name, (before, _) in MERGES.items()})
    write(work, {name: after for name, (_, after) in MERGES.items()})
    write(work, {f"f{n}": "x\n" for n in range(51)})
    many, warning = recorded(work).meta.warnings
    assert many == f"{51 + len(MERGES)} files changed: over 50 are hard to learn from"
    marked = ", ".join(repr(name) for name in MERGES if not name.startswith("without"))
    assert warning == f"conflict markers are left in {marked}"


NAMES = [
    'with "quotes".txt',
    "with\nnewline",
    "with\n\n@@ -1 +1 @@\ndiff --git a/x b/x",
    ":(glob)**",
    ":!everything",
    "-dash",
    "--all",
    " leading and trailing ",
    "tab\tand\x01control",
    "back\\slash\\101",
    "*.[ch]?",
    "ümläut 😀",
    "#hash",
    "deep/-n/:(top)/file",
]


def test_odd_names_are_created_updated_and_deleted(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {f"{name}.old": "1\n2\n" for name in NAMES})
    for number, name in enumerate(NAMES):
        write(work, {name: f"{number}\n"})
        if number % 2:
            write(work, {f"{name}.old": "1\n3\n"})
        else:
            (work / f"{name}.old").unlink()
    record = recorded(work)
    assert len(kinds(record)) == 2 * len(NAMES)
    assert skips(record) == {}
    assert tree_of_folder(rebuilt(work, record, tmp_path / "other")) == tree_of_folder(work)


def test_modes_links_and_type_changes_come_back(tmp_path: Path) -> None:
    work = repository(
        tmp_path / "work",
        {"run.sh": "go\n", "both.sh": "go\n", "was-file": "text\n", "plain": "p\n"},
    )
    (work / "link").symlink_to("plain")
    (work / "was-link").symlink_to("plain")
    base = commit(work)
    (work / "run.sh").chmod(0o755)
    write(work, {"both.sh": "went\n", "tool": "#!/bin/sh\n"})
    (work / "both.sh").chmod(0o755)
    (work / "tool").chmod(0o755)
    for name in ("link", "was-link", "was-file"):
        (work / name).unlink()
    (work / "link").symlink_to("run.sh")
    (work / "was-file").symlink_to("plain")
    (work / "dangling").symlink_to("no/where")
    write(work, {"was-link": "now text\n"})
    record = recorded(work, base)
    assert kinds(record) == {
        "run.sh": "update 100755",
        "both.sh": "update 100755",
        "tool": "create 100755",
        "link": "update",
        "was-file": "delete, create 120000",
        "was-link": "delete, create",
        "dangling": "create 120000",
    }
    assert [op.diff for op in operations_of(record) if op.path == "run.sh"] == [""]  # type: ignore[union-attr]
    assert tree_of_folder(rebuilt(work, record, tmp_path / "other")) == tree_of_folder(work)


def test_a_file_becomes_a_folder_and_a_folder_a_file(tmp_path: Path) -> None:
    work = repository(
        tmp_path / "work", {"thing": "file\n", "folder/a": "a\n", "folder/b/c": "c\n"}
    )
    (work / "thing").unlink()
    for name in ("folder/a", "folder/b/c"):
        (work / name).unlink()
    (work / "folder/b").rmdir()
    (work / "folder").rmdir()
    write(work, {"thing/inside": "in\n", "folder": "now a file\n"})
    record = recorded(work)
    assert tree_of_folder(rebuilt(work, record, tmp_path / "other")) == record.meta.final_tree


def test_what_cannot_be_held_is_left_at_the_baseline_and_named(tmp_path: Path) -> None:
    work = repository(
        tmp_path / "work", {"image": b"\x89PNG\0old", "latin": b"caf\xe9\n", "text": "a\n"}
    )
    write(
        work,
        {
            "image": b"\x89PNG\0new",
            "latin": b"caf\xe9s\n",
            "late": b"x" * 9000 + b"\0",
            "text": "b\n",
            "huge.txt": "word " * 250_000,
        },
    )
    Path(os.fsdecode(os.fsencode(work) + b"/caf\xe9.txt")).write_text("x\n")
    record = recorded(work)
    assert kinds(record) == {"text": "update"}
    assert skips(record) == {
        "image": "binary: it has NUL bytes",
        "late": "binary: it has NUL bytes",
        "latin": "not UTF-8",
        "huge.txt": "over 1,000,000 bytes",
        "caf\\xe9.txt": "a path that is not UTF-8",
    }
    other = rebuilt(work, record, tmp_path / "other")
    assert (other / "image").read_bytes() == b"\x89PNG\0old"
    assert tree_of_folder(other) == record.meta.final_tree


def test_files_in_the_place_of_a_skipped_one_are_skipped_with_it(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"data": b"\0\1", "kit/blob": b"\0\2"})
    (work / "data").unlink()
    (work / "kit/blob").unlink()
    (work / "kit").rmdir()
    write(work, {"data/readme": "text\n", "kit": "text\n"})
    record = recorded(work)
    assert kinds(record) == {}
    assert set(skips(record)) == {"data", "data/readme", "kit", "kit/blob"}


def test_staged_and_unstaged_changes_are_one(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", dict.fromkeys("abcde", "1\n"))
    write(
        work, {"a": "2\n", "b": "2\n", "new": "x\n", "forced.log": "l\n", ".gitignore": "*.log\n"}
    )
    run(work, "add", "a", "new")
    run(work, "add", "--force", "forced.log")
    run(work, "add", "--intent-to-add", ".gitignore")
    write(work, {"a": "3\n", "new": "y\n"})
    run(work, "rm", "--quiet", "--cached", "c")
    run(work, "rm", "--quiet", "d", "e")
    write(work, {"d": "1\n", "e": "2\n"})
    record = recorded(work)
    assert kinds(record) == {
        "a": "update",
        "b": "update",
        "e": "update",
        ".gitignore": "create",
        "forced.log": "create",
        "new": "create",
    }
    assert (rebuilt(work, record, tmp_path / "other") / "a").read_text() == "3\n"


def test_a_file_of_the_index_that_changed_in_the_same_second_is_seen(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {f"f{n}": "aaaa\n" for n in range(20)})
    for number in range(20):
        write(work, {f"f{number}": "bbbb\n"})
        run(work, "add", f"f{number}")
        write(work, {f"f{number}": "cccc\n"})
    record = recorded(work)
    assert len(kinds(record)) == 20
    assert "+cccc" in operations_of(record)[7].diff  # type: ignore[union-attr]


def test_generated_folders_are_told_in_one_line_and_tracked_files_in_them_kept(
    tmp_path: Path,
) -> None:
    work = repository(tmp_path / "work", {"dist/kept.js": "1\n", "secret/plan": "1\n"})
    write(work, {f"app/node_modules/p{n}/index.js": "x\n" for n in range(5)})
    write(work, {"dist/kept.js": "2\n", "dist/made.js": "x\n", "secret/plan": "2\n", "a.py": "1\n"})
    record = recorded(work, ignore=("secret/",))
    assert kinds(record) == {"dist/kept.js": "update", "a.py": "create"}
    assert skips(record) == {
        "app/node_modules/": "ignored (5 changed files)",
        "dist/": "ignored",
        "secret/": "ignored",
    }


def test_a_clean_worktree_is_clean_and_every_difference_is_told(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a": "1\n", "bin": b"\0"})
    assert uncommitted_paths(work) == []
    (work / "a").touch()
    assert uncommitted_paths(work) == []
    write(work, {"a": "2\n", "bin": b"\0\0", "new": "x\n"})
    with untouched(work):
        assert uncommitted_paths(work) == ["a", "bin", "new"]


SAFE = [
    *(
        "README.md",
        "src/app/[id]/(group)/page.tsx",
        "a b/c  d",
        "quote\"s and 'quotes'",
        "line\nend",
    ),
    *("tab\tand\rreturn", ":(glob)**", "-rf", "*", "ünïcode/🐢", "..a/b..", "...", ".gitignore"),
    *(".github/workflows/ci.yml", "git/config", "a.git/config", "back\\slash", "ab:c", "a" * 255),
    "/".join(["a" * 200] * 20),
]


@pytest.mark.parametrize("path", SAFE)
def test_every_name_that_git_takes_is_safe_unless_some_file_system_reads_it_otherwise(
    path: str,
) -> None:
    assert path_problem(path) == ""


PROBLEMS = {
    "an empty path": [""],
    "NUL": ["a\x00b"],
    "not UTF-8": ["a\ud800"],
    "absolute": [
        *("/etc/passwd", "//server/share", "\\\\server\\share", "\\windows", "C:/windows"),
        *("C:\\windows", "c:windows"),
    ],
    "leaves its folder": ["..", "../x", "a/../../x", "a/..", "a\\..\\..\\x", ".. /x"],
    "dot for a folder": [".", "./a", "a/./b"],
    "empty part": ["a//b", "a/"],
    "inside of .git": [
        *(".git", ".git/hooks/pre-commit", "sub/.git/config", ".GIT/config", ".Git"),
        *("a\\.git\\config", ".git. ./config", ".git::$INDEX_ALLOCATION/config"),
        *(".g\u200cit/config", "git~1/config", "GIT~1"),
    ],
    "a name of over 255 bytes": ["a" * 256, "ü" * 128],
    "a path of over 4,096 bytes": ["a/" * 2100 + "a"],
    "a path of over 100 folders": ["a/" * 101 + "b"],
}
CASES = [(path, problem) for problem, paths in PROBLEMS.items() for path in paths]


@pytest.mark.parametrize(("path", "problem"), CASES)
def test_a_path_that_leaves_the_folder_or_enters_git_on_any_system_is_refused(
    path: str, problem: str
) -> None:
    assert problem in path_problem(path)


@settings(max_examples=20)
@given(st.text())
def test_a_readable_path_gives_a_terminal_no_orders(path: str) -> None:
    text = readable(path)
    assert text.isprintable()
    assert path == text or ast.literal_eval(text).removesuffix("…") in path
