"""Lines that were shown before are not shown again."""

from __future__ import annotations

import pytest

from debrief.scoring.repeats import ShownLines

LINES = [f"the amount of line {n} is rounded" for n in range(20)]
TEXT = "\n".join(LINES)


def known(text: str = TEXT, turn: int = 3, *, is_diff: bool = False) -> ShownLines:
    shown = ShownLines()
    shown.add(text, turn, is_diff=is_diff)
    return shown


@pytest.mark.parametrize(
    "form",
    ["{}", "    {}", "  12→{}", "12\t{}", "12: {}", "> {}"],
    ids=["as it was", "indented", "numbered", "by cat", "by grep", "quoted"],
)
def test_a_run_of_lines_is_known_again_however_a_tool_prints_it(form: str) -> None:
    again = "\n".join(form.format(line) for line in LINES)
    assert known().without_repeats(again) == "(20 lines that stand in turn 3 already)"


def test_what_is_new_around_a_run_stays() -> None:
    text = "\n".join(["new before", *LINES[4:12], "new behind"])
    said = "new before\n(8 lines that stand in turn 3 already)\nnew behind"
    assert known().without_repeats(text) == said


def test_five_lines_in_a_row_are_shown_again() -> None:
    text = "\n".join(LINES[:5])
    assert known().without_repeats(text) == text


def test_brackets_and_blank_lines_are_no_run() -> None:
    text = "}\n\n" * 10
    assert known(text).without_repeats(text) == text


def test_lines_of_a_diff_are_known_from_a_file_and_keep_their_sign() -> None:
    diff = "\n".join(["@@ -1 +1,20 @@", *(f"+{line}" for line in LINES)])
    said = "@@ -1 +1,20 @@\n+(20 lines that stand in turn 3 already)"
    assert known().without_repeats(diff, is_diff=True) == said


def test_the_same_diff_is_shown_once_though_its_signs_mix() -> None:
    diff = "\n".join(f"{'+-'[n % 2]}{line}" for n, line in enumerate(LINES))
    again = known(diff, is_diff=True).without_repeats(diff, is_diff=True)
    assert again == "(20 lines that stand in turn 3 already)"


def test_the_opposite_change_is_shown() -> None:
    diff = "\n".join(f"{'+-'[n % 2]}{line}" for n, line in enumerate(LINES))
    back = "\n".join(f"{'-+'[n % 2]}{line}" for n, line in enumerate(LINES))
    assert known(diff, is_diff=True).without_repeats(back, is_diff=True) == back
