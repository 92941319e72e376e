"""Diffs are shown by their changed lines."""

from __future__ import annotations

from debrief.scoring.diffs import compact_diff
from debrief.sessions.readers.patches import deleted, replaced

FILE = "".join(f"line {n}\n" for n in range(40))


def test_context_is_cut_and_every_changed_line_stays() -> None:
    edit = replaced("a.py", FILE, FILE.replace("line 7\n", "seven\n").replace("line 30\n", ""))
    shown = compact_diff(edit.patch).split("\n")
    changed = [line for line in edit.patch.split("\n") if line[:1] in ("+", "-")]
    assert [line for line in shown if line[:1] in ("+", "-")] == changed
    assert [line for line in shown if line[:1] == " "] == [" line 6", " line 8", " line 29", " line 31"]  # fmt: skip


def test_a_deleted_file_is_one_line_also_where_git_printed_it() -> None:
    patch = deleted("a.py", FILE).patch
    assert compact_diff(patch) == "(deleted, 40 lines)"
    printed = f"diff --git a/a.py b/a.py\ndeleted file mode 100644\nindex 1..0\n--- a/a.py\n+++ /dev/null\n{patch}"
    assert compact_diff(printed) == "diff --git a/a.py b/a.py\n(deleted, 40 lines)"


def test_git_headers_go_and_words_around_a_diff_stay() -> None:
    printed = "commit 1a2b\n    why\n\ndiff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    assert compact_diff(printed) == (
        "commit 1a2b\n    why\n\ndiff --git a/x b/x\n@@ -1 +1 @@\n-a\n+b\n"
    )


def test_a_line_that_looks_like_a_header_is_kept_in_a_hunk() -> None:
    patch = "@@ -1,2 +1,2 @@\n--- old title\n+++ new title"
    assert compact_diff(patch) == patch


def test_where_there_is_no_room_removed_lines_go_before_added_ones() -> None:
    removed = [f"-old line {n} of the module" for n in range(30)]
    added = [f"+new line {n} of the module" for n in range(10)]
    shown = compact_diff("\n".join(["@@ -1,30 +1,10 @@", *removed, *added]), room=500)
    assert "- (27 more lines removed)" in shown
    assert all(line in shown for line in added)
    assert len(compact_diff("\n".join(["@@ -1,30 +1,10 @@", *removed, *added]), room=200)) < 300
