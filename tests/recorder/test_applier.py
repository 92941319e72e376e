from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.recorder.applier import FileState, apply_operations, apply_to_folder
from debrief.recorder.contracts import CreateFile, DeleteFile, Operation, UpdateFile
from tests.recorder.records import AFTER, BEFORE, operations

TO_TWO = "@@ -1 +1 @@\n-one\n+two\n"


def plain(files: dict[str, str]) -> dict[str, FileState]:
    return {path: FileState("100644", text) for path, text in files.items()}


def fill(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())


def contents(root: Path) -> dict[str, str]:
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            kind = "*" if path.stat().st_mode & 0o100 else ""
            found[name] = kind + path.read_bytes().decode()
        else:
            found[f"{name}/"] = ""
    return found


def test_operations_turn_the_files_before_into_the_files_after() -> None:
    assert apply_operations(plain(BEFORE), operations(BEFORE, AFTER)) == plain(AFTER)


names = st.sampled_from(["a", "b", "c/d", "c/e", "f/g/h"])
texts = st.text(st.sampled_from("ab\n\r"), max_size=12).map(lambda text: f"{text}\n")


@given(st.dictionaries(names, texts), st.dictionaries(names, texts))
def test_operations_between_any_two_sets_of_files_give_the_second(
    before: dict[str, str], after: dict[str, str]
) -> None:
    before = {path: text.replace("\r", "x") for path, text in before.items()}
    after = {path: text.replace("\r", "y") for path, text in after.items()}
    assert apply_operations(plain(before), operations(before, after)) == plain(after)


def test_modes_change_with_and_without_the_text_and_stay_where_nothing_is_said() -> None:
    before = {
        "a": FileState("100644", "one\n"),
        "b": FileState("100755", "one\n"),
        "c": FileState("100755", "one\n"),
        "d": FileState("120000", "one"),
    }
    ops: list[Operation] = [
        UpdateFile(path="a", diff="", mode="100755"),
        UpdateFile(path="b", diff=TO_TWO, mode="100644"),
        UpdateFile(path="c", diff=TO_TWO),
        UpdateFile(
            path="d",
            diff="@@ -1 +1 @@\n-one\n\\ No newline at end of file\n"
            "+two\n\\ No newline at end of file\n",
        ),
        CreateFile(path="e", diff="a/b", mode="120000"),
    ]
    assert apply_operations(before, ops) == {
        "a": FileState("100755", "one\n"),
        "b": FileState("100644", "two\n"),
        "c": FileState("100755", "two\n"),
        "d": FileState("120000", "two"),
        "e": FileState("120000", "a/b"),
    }


def test_a_type_change_is_delete_and_create() -> None:
    before = {"a": FileState("120000", "b"), "c": FileState("100644", "c\n")}
    ops: list[Operation] = [
        DeleteFile(path="a"),
        DeleteFile(path="c"),
        CreateFile(path="a", diff="now a file\n"),
        CreateFile(path="c/d", diff="now in a folder\n"),
    ]
    assert apply_operations(before, ops) == plain({"a": "now a file\n", "c/d": "now in a folder\n"})


REFUSED: list[tuple[str, list[Operation], str]] = [
    ("create over a file", [CreateFile(path="a", diff="x")], "'a': is created, but is there"),
    ("update of nothing", [UpdateFile(path="x", diff=TO_TWO)], "'x': is updated, but is not"),
    ("delete of nothing", [DeleteFile(path="x")], "'x': is deleted, but is not there"),
    ("delete twice", [DeleteFile(path="a"), DeleteFile(path="a")], "'a': is deleted, but is not"),
    ("update after delete", [DeleteFile(path="a"), UpdateFile(path="a", diff=TO_TWO)], "not there"),
    ("hunk of another text", [UpdateFile(path="b", diff=TO_TWO)], "'b': line 1: line 1 of the"),
    ("trimmed hunk", [UpdateFile(path="a", diff=TO_TWO.strip())], "has no line end"),
    ("update without change", [UpdateFile(path="a", diff="")], "neither text nor mode"),
    ("update to a link", [UpdateFile(path="a", diff="", mode="120000")], "into a link or back"),
    ("file in a file", [CreateFile(path="a/x", diff="x")], "'a' is not a folder"),
    (
        "file and folder of one name",
        [CreateFile(path="n", diff="x"), CreateFile(path="n/m/o", diff="x")],
        "'n' is not a folder",
    ),
    ("absolute", [CreateFile(path="/tmp/x", diff="x")], "absolute"),
    ("outside", [CreateFile(path="../x", diff="x")], "leaves its folder"),
    ("hook", [CreateFile(path=".git/hooks/post-checkout", diff="x")], "inside of .git"),
    ("NUL", [CreateFile(path="x\0", diff="x")], "NUL"),
]


@pytest.mark.parametrize(("name", "ops", "reason"), REFUSED, ids=[one[0] for one in REFUSED])
def test_what_cannot_be_applied_is_refused_and_leaves_texts_and_folder_alone(
    tmp_path: Path, name: str, ops: Sequence[Operation], reason: str
) -> None:
    files = {"a": "one\n", "b": "1\n"}
    before = plain(files)
    with pytest.raises(InputError) as caught:
        apply_operations(before, [CreateFile(path="first", diff="x"), *ops])
    assert reason in str(caught.value)
    assert before == plain(files)
    root = tmp_path / "root"
    root.mkdir()
    fill(root, files)
    with pytest.raises(InputError) as caught:
        apply_to_folder(root, [CreateFile(path="first", diff="x"), *ops])
    assert reason in str(caught.value)
    assert contents(root) == files
    assert list(tmp_path.iterdir()) == [root]


def test_a_folder_is_changed_exactly(tmp_path: Path) -> None:
    fill(tmp_path, {**BEFORE, "untouched.txt": "same\r\n", "gone/deep/file": "x\n"})
    (tmp_path / "link").symlink_to("old.ts")
    ops: list[Operation] = [
        DeleteFile(path="gone/deep/file"),
        DeleteFile(path="link"),
        *operations(BEFORE, AFTER),
        CreateFile(path="bin/run", diff="#!/bin/sh\r\n", mode="100755"),
        CreateFile(path="link", diff="./src//cart.ts", mode="120000"),
        CreateFile(path='odd "name"\nwith lines', diff=""),
    ]
    changed = apply_to_folder(tmp_path, ops)
    assert changed == sorted({op.path for op in ops})
    found = contents(tmp_path)
    assert os.lstat(tmp_path / "link").st_size == len("./src//cart.ts")
    assert {path: text for path, text in found.items() if not path.endswith("/")} == {
        **AFTER,
        "untouched.txt": "same\r\n",
        "bin/run": "*#!/bin/sh\r\n",
        "link": "-> src/cart.ts",
        'odd "name"\nwith lines': "",
    }
    assert "gone/" not in found


def test_only_the_mode_of_a_file_may_change(tmp_path: Path) -> None:
    fill(tmp_path, {"run": "x\n"})
    apply_to_folder(tmp_path, [UpdateFile(path="run", diff="", mode="100755")])
    assert contents(tmp_path) == {"run": "*x\n"}
    apply_to_folder(tmp_path, [UpdateFile(path="run", diff="", mode="100644")])
    assert contents(tmp_path) == {"run": "x\n"}


def test_files_become_folders_and_folders_files(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "1\n", "b/c": "2\n", "b/d/e": "3\n"})
    ops: list[Operation] = [
        DeleteFile(path="a"),
        DeleteFile(path="b/c"),
        DeleteFile(path="b/d/e"),
        CreateFile(path="a/x", diff="4\n"),
        CreateFile(path="b", diff="5\n"),
    ]
    apply_to_folder(tmp_path, ops)
    assert contents(tmp_path) == {"a/": "", "a/x": "4\n", "b": "5\n"}


def test_a_folder_of_empty_folders_gives_way_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    apply_to_folder(tmp_path, [CreateFile(path="a", diff="x\n")])
    assert contents(tmp_path) == {"a": "x\n"}


def test_no_link_on_the_way_is_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    fill(outside, {"a": "one\n"})
    (root / "link").symlink_to("../outside")
    for op in (
        CreateFile(path="link/x", diff="x"),
        UpdateFile(path="link/a", diff=TO_TWO),
        DeleteFile(path="link/a"),
    ):
        with pytest.raises(InputError, match="'link' is not a folder"):
            apply_to_folder(root, [op])
    assert contents(outside) == {"a": "one\n"}
    apply_to_folder(root, [DeleteFile(path="link"), CreateFile(path="link/x", diff="x\n")])
    assert contents(root) == {"link/": "", "link/x": "x\n"}
    assert contents(outside) == {"a": "one\n"}


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    fill(tmp_path, {"target": "one\n"})
    (tmp_path / "link").symlink_to("target")
    ops: list[Operation] = [DeleteFile(path="link"), CreateFile(path="link", diff="two\n")]
    apply_to_folder(tmp_path, ops)
    assert contents(tmp_path) == {"link": "two\n", "target": "one\n"}


def test_what_was_there_unrecorded_is_never_overwritten(tmp_path: Path) -> None:
    fill(tmp_path, {"notes.txt": "mine\n", "folder/mine": "x\n"})
    with pytest.raises(InputError, match=r"'notes.txt': is created, but is there already"):
        apply_to_folder(tmp_path, [CreateFile(path="notes.txt", diff="theirs\n")])
    with pytest.raises(InputError, match="'folder': is a folder"):
        apply_to_folder(tmp_path, [CreateFile(path="folder", diff="theirs\n")])
    (tmp_path / "holder").mkdir()
    (tmp_path / "holder" / "link").symlink_to(tmp_path / "folder")
    with pytest.raises(InputError, match="'holder': is a folder"):
        apply_to_folder(tmp_path, [CreateFile(path="holder", diff="theirs\n")])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="'pipe': is neither a file nor a link"):
        apply_to_folder(tmp_path, [UpdateFile(path="pipe", diff=TO_TWO)])
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(InputError, match="'binary': is not UTF-8 text"):
        apply_to_folder(tmp_path, [DeleteFile(path="binary")])


def test_a_failure_half_way_is_taken_back(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "one\n", "b/c": "one\n", "z": "one\n"})
    before = contents(tmp_path)
    deep = "/".join(["d" * 250] * 16)
    ops: list[Operation] = [
        DeleteFile(path="b/c"),
        UpdateFile(path="a", diff=TO_TWO),
        UpdateFile(path="z", diff=TO_TWO),
        CreateFile(path=f"x/{deep}/{'e' * 50}", diff="too deep for the file system\n"),
    ]
    with pytest.raises(InputError, match="cannot be"):
        apply_to_folder(tmp_path, ops)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("text", "mode"), [("half of a pair \ud800", "100644"), ("NUL \0", "120000"), ("", "120000")]
)
def test_what_a_file_system_cannot_hold_is_refused_and_taken_back(
    tmp_path: Path, text: str, mode: Any
) -> None:
    fill(tmp_path, {"a": "one\n"})
    ops: list[Operation] = [
        UpdateFile(path="a", diff=TO_TWO),
        CreateFile(path="b", diff=text, mode=mode),
    ]
    with pytest.raises(InputError, match="cannot be written"):
        apply_to_folder(tmp_path, ops)
    assert contents(tmp_path) == {"a": "one\n"}


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        apply_to_folder(tmp_path / "missing", [CreateFile(path="a", diff="x")])
