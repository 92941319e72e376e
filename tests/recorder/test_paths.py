from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.errors import readable
from debrief.recorder.scratch import path_problem

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


@settings(max_examples=50)
@given(st.text())
def test_a_readable_path_gives_a_terminal_no_orders(path: str) -> None:
    text = readable(path)
    assert text.isprintable()
    assert path == text or ast.literal_eval(text).removesuffix("…") in path
