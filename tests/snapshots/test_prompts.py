from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.snapshots.capture import Prompts, active_prompts, prompts_in, subagent_names
from tests.snapshots.scenario import PROMPTS, write


def test_claude_code_has_subagents_and_other_tools_a_main_prompt_alone(tmp_path: Path) -> None:
    write(tmp_path, {**PROMPTS, "AGENTS.md": "For all.", ".factory/droids/helper.md": "Help."})
    subagents = {"reviewer": "Review it.\n", "tester": "Prüfe es.\n"}
    assert prompts_in(tmp_path, "claude-code") == Prompts("Test first.\n", subagents)
    assert prompts_in(tmp_path, "droid") == Prompts("Test first.\n\nFor all.\n")
    assert prompts_in(tmp_path, "opencode") == Prompts("For all.")
    assert prompts_in(tmp_path, "gemini-cli") is None, "it reads GEMINI.md"


def test_a_text_under_two_names_is_one_prompt_and_a_link_within_is_followed(tmp_path: Path) -> None:
    write(tmp_path, {"AGENTS.md": "For all."})
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert prompts_in(tmp_path, "droid") == Prompts("For all.")
    assert prompts_in(tmp_path, "claude-code") == Prompts("For all.")


@pytest.mark.parametrize("name", ["CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md"])
def test_the_main_prompt_is_the_first_that_is_there(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"AGENTS.md": "last", name: "first"})
    assert prompts_in(tmp_path, "claude-code") == Prompts("first")


def test_active_prompts_of_the_model_come_before_those_of_the_tool(tmp_path: Path) -> None:
    assert prompts_in(tmp_path, "claude-code") is None
    assert active_prompts(tmp_path, "claude-code", "opus") is None
    top = ".debrief/prompts/active/claude-code"
    files = {"main.md": "any", "opus/main.md": "opus", "opus/reviewer.md": "look"}
    write(tmp_path, {f"{top}/{name}": text for name, text in files.items()})
    assert active_prompts(tmp_path, "claude-code", "opus") == Prompts("opus", {"reviewer": "look"})
    assert active_prompts(tmp_path, "claude-code", "haiku") == Prompts("any")
    assert active_prompts(tmp_path, "claude-code", None) == Prompts("any")
    assert active_prompts(tmp_path, "droid", None) is None


@pytest.mark.parametrize("name", ["CLAUDE.md", ".claude/agents", ".claude/agents/helper.md"])
def test_a_link_that_leads_out_of_the_repository_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"outside/helper.md": "secret", "shop/README.md": ""})
    link = tmp_path / "shop" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "outside" / ("" if name.endswith("agents") else "helper.md"))
    with pytest.raises(InputError, match="leads out of the repository"):
        prompts_in(tmp_path / "shop", "claude-code")


BROKEN = {
    "not UTF-8": ({"CLAUDE.md": b"caf\xe9"}, "is not UTF-8: .* at byte 3"),
    "a subagent that is not UTF-8": ({".claude/agents/a.md": b"\xff"}, "a.md: is not UTF-8"),
    "a name that is not UTF-8": ({".claude/agents/caf\udce9.md": b"x"}, "name that is not UTF-8"),
    "larger than any prompt": ({"CLAUDE.md": b" " * ((4 << 20) + 1)}, "is over 4 MB"),
}


@pytest.mark.parametrize(("files", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_prompt_that_cannot_be_taken_is_refused_by_name(
    tmp_path: Path, files: dict[str, bytes], reason: str
) -> None:
    write(tmp_path, files)
    with pytest.raises(InputError, match=reason):
        prompts_in(tmp_path, "claude-code")


NAMES = st.text(alphabet="ab.", min_size=1, max_size=3).filter(lambda name: name.strip("."))


@given(st.sets(st.lists(NAMES, min_size=1, max_size=3).map("/".join), max_size=6))
def test_every_subagent_has_a_name_that_is_a_files_and_not_the_main_prompts(
    stems: set[str],
) -> None:
    assert subagent_names(["main.md"]) == {"main.md": "main-subagent"}
    names = subagent_names(f"{stem}.md" for stem in stems)
    assert set(names) == {f"{stem}.md" for stem in stems}
    assert len(set(names.values())) == len(names)
    assert all("/" not in name and name != "main" for name in names.values())
