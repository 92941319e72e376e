"""Fingerprints by name: the first heading, or what a person calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.snapshots.fingerprint import prompt_digest
from debrief.snapshots.model import (
    PromptSnapshot,
    PromptSnapshotRow,
    SubagentPrompt,
    fingerprint_names,
    heading_of,
    name_prompt,
    prompts_in_use,
)


def row(session: str, main: str, **subagents: str) -> PromptSnapshotRow:
    digest = prompt_digest(PromptSnapshot(main=main, subagents=subagents))
    return PromptSnapshotRow(
        session_id=session,
        origin="recorded",
        main=main,
        subagents=tuple(SubagentPrompt(*pair) for pair in subagents.items()),
        prompt_fingerprint=digest[:8],
        prompt_digest=digest,
    )


SHOP, STRICT, OTHER = (
    "# Shop\n\nBe kind.\n",
    "# Shop\n\nRun the tests.\n",
    "Use tabs.\n\n## Later\n",
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path / "lake"))
    unknown = PromptSnapshotRow(session_id="s6", origin="unknown")
    weeks = {
        "2026-03-02": [row("s1", SHOP), row("s2", SHOP), row("s3", STRICT), unknown],
        "2026-03-09": [row("s4", SHOP), row("s5", OTHER, tester="Test."), row("s7", "")],
    }
    for week, rows in weeks.items():
        lake.write("prompt_snapshots", week, rows, PromptSnapshotRow)
    return lake


def test_each_fingerprint_has_a_name_of_its_own_and_its_sessions(lake: Lake) -> None:
    shop, strict = (row("", text).prompt_fingerprint for text in (SHOP, STRICT))
    used = {prompt.name: prompt for prompt in prompts_in_use(lake)}
    assert next(iter(used)) == f"Shop · {shop}"
    assert {*used} == {
        f"Shop · {shop}", f"Shop · {strict}", "Later", "no prompt files", "prompts not known",
    }  # fmt: skip
    assert used[f"Shop · {shop}"].sessions == (
        ("s1", "2026-03-02"), ("s2", "2026-03-02"), ("s4", "2026-03-09"),
    )  # fmt: skip
    assert used["Later"].snapshot.subagents == (SubagentPrompt("tester", "Test."),)


def test_a_persons_name_comes_first_and_can_be_taken_back(lake: Lake, tmp_path: Path) -> None:
    shop, strict = (row("", text).prompt_fingerprint for text in (SHOP, STRICT))
    name_prompt(lake, tmp_path, shop, "  Kind\x1b shop ", "ada")
    assert fingerprint_names(lake)[shop] == "Kind\ufffd shop"
    assert fingerprint_names(lake)[strict] == "Shop"
    name_prompt(lake, tmp_path, shop, "", "ada")
    assert fingerprint_names(lake)[shop] == f"Shop · {shop}"
    with pytest.raises(InputError, match="more than 60 characters"):
        name_prompt(lake, tmp_path, shop, "x" * 61, "ada")


@pytest.mark.parametrize(
    ("main", "name"),
    [
        ("#hashtag first\n\n### Real heading ###\n", "Real heading"),
        ("\n\n  You are careful.\nVery.", "You are careful."),
        ("# <script>\x1b[31m" + "x" * 100, "<script>\ufffd[31m" + "x" * 46 + "…"),
        ("\n \n", "only subagents: tester"),
    ],
    ids=["heading", "words", "hostile", "subagents"],
)
def test_a_prompt_is_called_by_its_first_heading_or_words(main: str, name: str) -> None:
    assert heading_of(row("s", main, tester="Test.")) == name
