from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.recorder.paths import path_problem, readable


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "src/app/[id]/(group)/page.tsx",
        "a b/c  d",
        "quote\"s and 'quotes'",
        "line\nend",
        "tab\tand\rreturn",
        ":(glob)**",
        "-rf",
        "*",
        "ünïcode/🐢",
        "..a/b..",
        "...",
        ".gitignore",
        ".github/workflows/ci.yml",
        "git/config",
        "a.git/config",
        "back\\slash",
        "ab:c",
        "a" * 255,
        "/".join(["a" * 200] * 20),
    ],
)
def test_every_name_that_git_takes_is_safe_unless_some_file_system_reads_it_otherwise(
    path: str,
) -> None:
    assert path_problem(path) == ""


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "an empty path"),
        ("a\0b", "NUL"),
        ("a\ud800", "not UTF-8"),
        ("/etc/passwd", "absolute"),
        ("//server/share", "absolute"),
        ("\\\\server\\share", "absolute"),
        ("\\windows", "absolute"),
        ("C:/windows", "absolute"),
        ("C:\\windows", "absolute"),
        ("c:windows", "absolute"),
        ("..", "leaves its folder"),
        ("../x", "leaves its folder"),
        ("a/../../x", "leaves its folder"),
        ("a/..", "leaves its folder"),
        ("a\\..\\..\\x", "leaves its folder"),
        (".. /x", "leaves its folder"),
        (".", "dot for a folder"),
        ("./a", "dot for a folder"),
        ("a/./b", "dot for a folder"),
        ("a//b", "empty part"),
        ("a/", "empty part"),
        (".git", "inside of .git"),
        (".git/hooks/pre-commit", "inside of .git"),
        ("sub/.git/config", "inside of .git"),
        (".GIT/config", "inside of .git"),
        (".Git", "inside of .git"),
        ("a\\.git\\config", "inside of .git"),
        (".git. ./config", "inside of .git"),
        (".git::$INDEX_ALLOCATION/config", "inside of .git"),
        (".g\u200cit/config", "inside of .git"),
        ("git~1/config", "inside of .git"),
        ("GIT~1", "inside of .git"),
        ("a" * 256, "a name of over 255 bytes"),
        ("ü" * 128, "a name of over 255 bytes"),
        ("a/" * 2100 + "a", "a path of over 4,096 bytes"),
        ("a/" * 101 + "b", "a path of over 100 folders"),
    ],
)
def test_a_path_that_leaves_the_folder_or_enters_git_on_any_system_is_refused(
    path: str, problem: str
) -> None:
    assert problem in path_problem(path)


@given(st.text())
def test_a_readable_path_gives_a_terminal_no_orders(path: str) -> None:
    told = readable(path)
    assert told.isprintable()
    assert path == told or ast.literal_eval(told).removesuffix("…") in path
