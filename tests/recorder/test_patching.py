from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.git.hunks import HunkError, apply_hunks
from debrief.git.scratch import FileState
from debrief.recorder.contracts import CreateFile, DeleteFile, Operation, UpdateFile
from debrief.recorder.messages import line_count
from debrief.recorder.patching import apply_operations
from tests.recorder.records import operations

LINES = [
    "",
    " ",
    "a",
    "b",
    "  c",
    "tab\t",
    "carriage return\r",
    "\r",
    "form feed \f",
    "line separator \u2028 and next line \x85",
    "ünïcode 🐢",
    "@@ -1,2 +3,4 @@",
    "@@ ",
    "-",
    "--- a/file",
    "+++ b/file",
    "+",
    "\\ No newline at end of file",
    "diff --git a/x b/x",
    "function " + "ü" * 60 + "() {",
]
lines = st.lists(st.sampled_from(LINES), max_size=25)


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts, the second one often an edit of the first."""
    old = draw(lines)
    new = list(old)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(new)))
        new[at : at + draw(st.integers(0, 3))] = draw(st.lists(st.sampled_from(LINES), max_size=3))
    ends = st.sampled_from(["", "\n"])
    if draw(st.integers(0, 9)) == 0:
        new = draw(lines)
    return "\n".join(old) + draw(ends), "\n".join(new) + draw(ends)


def git_hunks(folder: Path, before: str, after: str, *options: str) -> str:
    """Return what git itself takes for the difference, from the first ``@@`` on."""
    (folder / "a").write_bytes(before.encode())
    (folder / "b").write_bytes(after.encode())
    command = ["git", "-c", "core.attributesFile=/dev/null", "diff", "--no-index", "--text"]
    done = subprocess.run(
        [*command, "--no-color", "--no-ext-diff", *options, "a", "b"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    _, found, body = done.stdout.partition(b"\n@@ -")
    return (b"@@ -" + body).decode("utf-8", "replace") if found else ""


@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    pair=texts(),
    context=st.sampled_from(["-U3", "-U0", "-U1", "-U10"]),
    algorithm=st.sampled_from(["myers", "patience", "histogram", "minimal"]),
)
def test_the_hunks_of_any_two_texts_turn_the_first_into_the_second(
    tmp_path: Path, pair: tuple[str, str], context: str, algorithm: str
) -> None:
    before, after = pair
    diff = git_hunks(tmp_path, before, after, context, f"--diff-algorithm={algorithm}")
    if before == after:
        assert diff == ""
        return
    assert apply_hunks(before, diff) == after
    assert line_count(after) == line_count(before) + added(diff)


def added(diff: str) -> int:
    """Return how many lines more a text has after a diff."""
    starts = [line[:1] for line in diff.split("\n")]
    return starts.count("+") - starts.count("-")


END = "\\ No newline at end of file\n"
TEN = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
TWO = "@@ -2 +2 @@\n-two\n+2\n"
DIFF = "@@ -1,3 +1,4 @@ heading\n one\n-two\n+2\n+2b\n three\n@@ -9,2 +10,2 @@\n nine\n-ten\n+10\n"


def test_a_diff_is_applied_where_it_says() -> None:
    expected = TEN.replace("two", "2\n2b").replace("ten", "10")
    assert apply_hunks(TEN, DIFF) == expected


@pytest.mark.parametrize(
    ("name", "diff", "reason"),
    [
        ("nothing", "", "does not begin with"),
        ("file headers", f"--- a\n+++ b\n{DIFF}", "does not begin with"),
        ("no hunk", "one\ntwo\n", "does not begin with"),
        ("trimmed at its end", DIFF.rstrip("\n"), "no line end"),
        ("trimmed at its start", DIFF[1:], "does not begin with"),
        ("too many before", DIFF.replace("-1,3", "-1,4"), "the head counts 4 lines before"),
        ("too few before", DIFF.replace("-1,3", "-1,2"), "the head counts 2 lines before"),
        ("too many after", DIFF.replace("+1,4", "+1,5"), "and 5 after"),
        ("too few after", DIFF.replace("+1,4", "+1"), "and 1 after"),
        ("a count of billions", DIFF.replace("-1,3", "-1,999999999"), "the head counts"),
        ("ten digits", DIFF.replace("-1,3", "-1,9999999999"), "not the head of a hunk"),
        ("a leading zero", DIFF.replace("-1,3", "-01,3"), "not the head of a hunk"),
        ("a minus", DIFF.replace("-1,3", "--1,3"), "not the head of a hunk"),
        ("other digits", DIFF.replace("-1,3", "-1,٣"), "not the head of a hunk"),
        ("no second side", DIFF.replace(" +1,4", ""), "not the head of a hunk"),
        ("a line from 0", DIFF.replace("-1,3 +1,4", "-0,3 +0,4"), "counted from 1"),
        ("sides begin apart", DIFF.replace("+1,4", "+2,4"), "do not begin at the same line"),
        ("second one shifted", DIFF.replace("+10,2", "+9,2"), "line 7: the two sides"),
        ("overlap", DIFF.replace("-9,2 +10,2", "-3,2 +4,2"), "line 7: the hunk begins before"),
        ("backwards", "@@ -9 +9 @@\n-nine\n+9\n" + DIFF, "the hunk begins before"),
        ("a blank context line", DIFF.replace(" three\n", "\n"), "line 6: neither context"),
        ("a line of another kind", DIFF.replace("+2b", "*2b"), "line 5: neither context"),
        ("a carriage return on heads", DIFF.replace("@@\n", "@@\r\n"), "not the head of a hunk"),
        ("an unknown marker", DIFF.replace("+2b\n", "+2b\n\\ No end\n"), "neither context"),
        ("a marker right after a head", f"@@ -1 +1 @@\n{END}-one\n+1\n", "line 2: neither context"),
        (
            "a marker in the middle",
            f"@@ -1,2 +1,2 @@\n one\n{END}-two\n+2\n",
            "line 4: comes after a",
        ),
        ("two markers", f"@@ -1 +1 @@\n-one\n+1\n{END}{END}", "neither context"),
        ("a hunk after the end", f"@@ -1 +1 @@\n-one\n{END}+1\n{TWO}", "line 5: comes after"),
        ("context alone", "@@ -1,2 +1,2 @@\n one\n two\n", "changes nothing"),
        ("a line for itself", "@@ -1 +1 @@\n-one\n+one\n", "changes nothing"),
        ("no lines", "@@ -1,0 +1,0 @@\n", "changes nothing"),
        ("another text", DIFF.replace("-two", "-zwei"), "line 2 of the text is not the one"),
        ("other blanks", DIFF.replace(" three", " three "), "line 3 of the text is not the one"),
        ("behind the end", "@@ -10,2 +10 @@\n ten\n-eleven\n", "ends before its line 11"),
        ("far behind the end", "@@ -99,0 +100 @@\n+new\n", "ends before its line 99"),
        ("an end that the text has not", f"@@ -10 +10 @@\n-ten\n{END}+10\n", "its last line's end"),
        (
            "an open line in the middle",
            f"@@ -1 +1 @@\n-one\n+1\n{END}",
            "would not be the last one",
        ),
    ],
)
def test_hunks_that_do_not_add_up_or_do_not_fit_are_refused(
    name: str, diff: str, reason: str
) -> None:
    with pytest.raises(HunkError) as caught:
        apply_hunks(TEN, diff)
    assert reason in str(caught.value), name


def test_a_text_without_a_last_line_end_fits_only_a_diff_that_says_so() -> None:
    marked = f"@@ -1 +1 @@\n-one\n{END}+1\n{END}"
    assert apply_hunks("one", marked) == "1"
    assert apply_hunks("a", f"@@ -1 +1 @@\n-a\n{END}+a\n") == "a\n"
    with pytest.raises(HunkError, match="last line's end"):
        apply_hunks("one\n", marked)
    with pytest.raises(HunkError, match="last line's end"):
        apply_hunks("one", "@@ -1 +1 @@\n-one\n+1\n")
    with pytest.raises(HunkError, match="behind one without an end"):
        apply_hunks("one", "@@ -1,0 +2 @@\n+two\n")


@given(st.integers(0, 9), st.sampled_from(["x", " ", "\r"]))
def test_a_text_that_differs_in_a_line_the_hunks_show_is_refused(at: int, more: str) -> None:
    shown = at in (0, 1, 2, 8, 9)
    rows = TEN.split("\n")
    rows[at] += more
    other = "\n".join(rows)
    if shown:
        with pytest.raises(HunkError, match=f"line {at + 1} of the text"):
            apply_hunks(other, DIFF)
    else:
        assert rows[at] in apply_hunks(other, DIFF)


@given(st.text(st.sampled_from("@-+ ,0123\\\nab"), max_size=60))
def test_whatever_a_diff_holds_it_is_applied_or_refused(diff: str) -> None:
    try:
        after = apply_hunks(TEN, f"@@ -1,{diff}\n")
    except HunkError:
        return
    assert line_count(after) == line_count(TEN) + added(f"@@ -1,{diff}\n")


TO_TWO = "@@ -1 +1 @@\n-one\n+two\n"


def plain(files: dict[str, str]) -> dict[str, FileState]:
    return {path: FileState("100644", text) for path, text in files.items()}


names = st.sampled_from(["a", "b", "c/d", "c/e", "f/g/h"])
contents = st.text(st.sampled_from("ab\n\r"), max_size=12).map(lambda text: f"{text}\n")


@given(st.dictionaries(names, contents), st.dictionaries(names, contents))
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
        UpdateFile(path="d", diff=f"@@ -1 +1 @@\n-one\n{END}+two\n{END}"),
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
    ("outside", [CreateFile(path="../x", diff="x")], "leaves its folder"),
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
