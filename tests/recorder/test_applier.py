from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.recorder.contracts import CreateFile, DeleteFile, Operation, UpdateFile
from debrief.recorder.patching import FileState, apply_operations
from tests.recorder.records import AFTER, BEFORE, operations

TO_TWO = "@@ -1 +1 @@\n-one\n+two\n"


def plain(files: dict[str, str]) -> dict[str, FileState]:
    return {path: FileState("100644", text) for path, text in files.items()}


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
def test_what_cannot_be_applied_is_refused_and_leaves_the_texts_alone(
    name: str, ops: Sequence[Operation], reason: str
) -> None:
    before = plain({"a": "one\n", "b": "1\n"})
    with pytest.raises(InputError) as caught:
        apply_operations(before, [CreateFile(path="first", diff="x"), *ops])
    assert reason in str(caught.value)
    assert before == plain({"a": "one\n", "b": "1\n"})
