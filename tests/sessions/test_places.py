"""A working directory tells the task and the repository."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.keys import SLUG, Place, place_of, slugify

CASES = {
    "/home/ann/shop": ("shop", "shop"),
    "/home/ann/shop/": ("shop", "shop"),
    "/home/ann/shop/.debrief/worktrees/retry-queue": ("retry-queue", "shop"),
    "/home/ann/shop/.debrief/worktrees/retry-queue/src/deep": ("retry-queue", "shop"),
    "/home/ann/shop/.lw_coder/worktrees/plan": ("plan", "shop"),
    "/home/ann/shop/.weft/worktrees/plan": ("plan", "shop"),
    "/home/ann/shop/.worktrees/fix/login": ("shop", "shop"),
    "/home/ann/shop/.claude/worktrees/agent-1": ("shop", "shop"),
    "/home/ann/shop/.git/worktrees/fix": ("shop", "shop"),
    "/home/ann/shop/worktrees/fix": ("shop", "shop"),
    "/home/ann/shop-worktrees/fix/src": ("shop", "shop"),
    "/home/ann/.codex/worktrees/ab12/shop": ("shop", "shop"),
    "/home/ann/.cursor/worktrees/shop/ab12": ("shop", "shop"),
    "/home/kim/.tool/worktrees/shop/x": ("shop", "shop"),
    "C:\\Users\\ann\\shop": ("shop", "shop"),
    "C:\\Users\\ann\\.tool\\worktrees\\shop\\x": ("shop", "shop"),
    "": ("unknown", ""),
    "/": ("unknown", ""),
    "C:\\": ("unknown", ""),
    "/home/ann/shop/.debrief/worktrees/..": ("shop", "shop"),
}


@pytest.mark.parametrize("cwd", CASES)
def test_a_directory_names_its_task_and_repository(cwd: str) -> None:
    assert place_of(cwd) == Place(*CASES[cwd])


def test_names_that_are_no_slugs_become_slugs() -> None:
    assert place_of("/home/ann/My Shop") == Place(slugify("My Shop"), "My Shop")


def test_a_repository_that_the_transcript_names_wins() -> None:
    assert place_of("/tmp/checkout", "shop") == Place("shop", "shop")


@given(st.text())
def test_every_path_has_a_task_that_is_a_partition_key(cwd: str) -> None:
    assert SLUG.match(place_of(cwd).task)
