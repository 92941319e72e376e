"""Judges are files that people write: every mistake is named with file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.errors import ConfigurationError
from debrief.fields import FieldsError, fields_of
from debrief.judging.model import litellm_name, load_judges

GOOD = "---\nweight: 0.5\nmodel: openai/gpt-5-mini\n---\n\nLook for care.\n"
OWN_JUDGES = Path(__file__).parents[2] / "judges"


def test_the_projects_own_judges_load_in_name_order() -> None:
    judges = load_judges(OWN_JUDGES)
    shares = [("code-reuse", 0.4), ("plan-compliance", 0.6)]
    assert [(judge.name, judge.weight) for judge in judges] == shares
    assert {judge.model for judge in judges} == {"openrouter/x-ai/grok-4.1-fast"}
    for judge in judges:
        assert len(judge.body.split()) > 500
        assert "0.0" in judge.body
        assert "feedback" in judge.body


@settings(max_examples=20, deadline=None)
@given(body=st.text(st.characters(codec="utf-8")).filter(lambda text: bool(text.strip())))
@example("\n  Indented first.\r\n\n---\n\nA rule is no fence.  \n\n\n")
def test_any_body_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, body: str
) -> None:
    folder = tmp_path_factory.mktemp("judges")
    (folder / "care.md").write_bytes(f"---\nweight: 1\nmodel: m\n---\n{body}".encode())
    (judge,) = load_judges(folder)
    assert (judge.body, judge.weight) == (body, 1.0)
    assert isinstance(judge.weight, float)


def test_criteria_are_questions_with_a_weight_of_one_or_their_own(tmp_path: Path) -> None:
    criteria = "criteria:\n  - Is it tested?\n  - question: Does it work?\n    weight: 3\n"
    (tmp_path / "care.md").write_text(GOOD.replace("model:", f"{criteria}model:"))
    (judge,) = load_judges(tmp_path)
    assert [(criterion.question, criterion.weight) for criterion in judge.criteria] == [
        ("Is it tested?", 1.0),
        ("Does it work?", 3.0),
    ]


@pytest.mark.parametrize(
    ("front", "weight"),
    [
        ("weight: 0.5\nmodel: m\ndescription: Looks for care.\ntags: [a, b]\nowner team: x", 0.5),
        ("weight: '0.4'\nmodel: m", 0.4),
        ("weight: 0\nmodel: m", 0.0),
    ],
    ids=["fields of its own", "in quotes", "asked, and not counted"],
)
def test_a_judge_may_have_fields_of_its_own_and_any_weight_from_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, front: str, weight: float
) -> None:
    (tmp_path / "care.md").write_text(f"---\n{front}\n---\nLook for care.\n")
    (judge,) = load_judges(tmp_path)
    assert (judge.weight, judge.model, judge.body) == (weight, "m", "Look for care.\n")
    monkeypatch.setenv("DEBRIEF_JUDGES", str(tmp_path))
    assert CliRunner().invoke(app, ["judges", "list"]).exit_code == 0


def test_other_files_and_a_guide_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "care.md").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    (tmp_path / "README.md").write_text("How to write a judge")
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / ".hidden.md").write_text("nothing")
    (tmp_path / "folder.md").mkdir()
    assert [judge.name for judge in load_judges(tmp_path)] == ["care"]


def test_another_model_can_be_asked_for_all_judges(tmp_path: Path) -> None:
    (tmp_path / "care.md").write_text(GOOD)
    assert load_judges(tmp_path, model="offline")[0].model == "offline"
    assert load_judges(tmp_path, model="x-ai/grok")[0].model == "openrouter/x-ai/grok"


@pytest.mark.parametrize(
    ("written", "routed"),
    [
        ("x-ai/grok-4.1-fast", "openrouter/x-ai/grok-4.1-fast"),
        ("meta-llama/llama-4", "openrouter/meta-llama/llama-4"),
        ("openrouter/x-ai/grok-4.1-fast", "openrouter/x-ai/grok-4.1-fast"),
        ("anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("azure/my-deployment", "azure/my-deployment"),
        ("openrouter/auto", "openrouter/openrouter/auto"),
        ("openrouter/openrouter/auto", "openrouter/openrouter/auto"),
        ("gpt-5-mini", "gpt-5-mini"),
        ("offline", "offline"),
    ],
)
def test_a_bare_openrouter_tag_is_led_to_openrouter(written: str, routed: str) -> None:
    assert litellm_name(written) == routed


MISTAKES = {
    "no weight": ("model: m", 1, "weight: Field required"),
    "no model": ("weight: 1", 1, "model: Field required"),
    "a slip": ("weight: 1\nmodel: m\nmodle: n", 4, "modle: is not a known field; did you mean"),
    "another slip": ("Weight: 1\nmodel: m", 2, "did you mean weight?"),
    "word": ("model: m\nweight: heavy", 3, "weight: Input should be a valid number"),
    "bool": ("model: m\nweight: true", 3, "weight: Input should be a valid number"),
    "negative": ("weight: -1\nmodel: m", 2, "greater than or equal to 0"),
    "quoted": ("weight: '-1'\nmodel: m", 2, "greater than or equal to 0"),
    "a word in quotes": ("weight: 'heavy'\nmodel: m", 2, "weight: Input should be a valid number"),
    "nan": ("weight: .nan\nmodel: m", 2, "finite"),
    "infinite": ("weight: .inf\nmodel: m", 2, "finite"),
    "model is a number": ("weight: 1\nmodel: 4", 3, "model: "),
    "model is empty": ("weight: 1\nmodel: ''", 3, "model: "),
    "spaces": ("weight: 1\nmodel: a b", 3, "model: String should match pattern"),
    "broken YAML": ("weight: [1\nmodel: m", 3, "cannot be read"),
    "a list": ("- weight", 2, "holds no fields"),
    "twice": ("weight: 1\nmodel: m\nweight: 2", 4, "given twice"),
    "twice within": (
        *("weight: 1\nmodel: m\ncriteria:\n- {question: a, question: b}", 5),
        "given twice",
    ),
    "deep": (f"weight: 1\nmodel: {'[' * 5_000}", 3, "levels deep"),
    "deep names": (f"weight: 1\n{'? ' * 5_000}a", 3, "levels deep"),
    "200,000 digits": (f"model: m\nweight: {'9' * 200_000}", 2, "over 65,536 characters"),
    "5,000 digits": (f"model: m\nweight: {'9' * 5_000}", 3, "a number too long"),
    "50,000 digits": (f"model: m\nweight: 0x{'f' * 50_000}", 3, "a number too long"),
    "a date that there is not": ("weight: 1\nmodel: 2026-02-30", 3, "there is no such date"),
    "an alias": ("weight: &a 1\nmodel: *a", 3, "an alias"),
    "an alias of itself": ("weight: 1\nmodel: &a [*a]", 3, "an alias"),
    "merged": ("weight: 1\nmodel: m\n<<: {weight: 2}", 4, "<<: is not a known field"),
    "a program": ("weight: 1\nmodel: !!python/object/apply:os.system ['true']", 3, "a tag"),
    "a tag": ("weight: 1\nmodel: !!timestamp x", 3, "a tag"),
    "a list for a name": ("weight: 1\nmodel: m\n? [a]\n: b", 4, "a name is no text"),
    "a control character": ("weight: 1\nmodel: \x07", 2, "cannot be read"),
    "a line in a name": (
        'weight: 1\nmodel: m\n"a\\nb\\e[2J": 1',
        4,
        "a b\ufffd[2J: is not a known field",
    ),
    "a long name": (f"weight: 1\nmodel: m\n? {'a' * 5_000}\n: 1", 4, "…: is not a known field"),
    "criteria are a word": ("weight: 1\nmodel: m\ncriteria: yes", 4, "criteria: "),
    "no text": ("weight: 1\nmodel: m\ncriteria: [4]", 4, "criteria: "),
}
"""Front matter of one fault each, the line that has it, and what is said of it."""
BROKEN = {
    "no front matter": ("Look for care.\n", 1, "front matter is missing"),
    "empty file": ("", 1, "front matter is missing"),
    "never closed": ("---\nweight: 1\nmodel: m\n", 3, "never closed"),
    "no body": ("---\nweight: 1\nmodel: m\n---\n \n\n", 5, "body is empty"),
    "nothing": ("---\n---\nx\n", 2, "holds no fields"),
}
"""The same of whole files."""


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [*((f"---\n{front}\n---\nx\n", *said) for front, *said in MISTAKES.values()), *BROKEN.values()],
    ids=[*MISTAKES, *BROKEN],
)
def test_a_mistake_is_named_with_file_and_line(
    tmp_path: Path, text: str, line: int, reason: str
) -> None:
    path = tmp_path / "care.md"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_judges(tmp_path)
    assert caught.value.culprit == f"{path}:{line}"
    assert reason in caught.value.reason


def test_bytes_that_are_not_utf_8_are_named_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "care.md"
    path.write_bytes(b"---\nweight: 1\nmodel: m\n---\nfine\n\xff\n")
    with pytest.raises(ConfigurationError, match="not UTF-8") as caught:
        load_judges(tmp_path)
    assert caught.value.culprit == f"{path}:6"


def test_two_judges_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "care.md").write_text(GOOD)
    (tmp_path / "Care.md").write_text(GOOD)
    with pytest.raises(ConfigurationError, match="second judge of the name care"):
        load_judges(tmp_path)


@pytest.mark.parametrize(("folder", "reason"), [(".", "no judge"), ("x", "no such folder")])
def test_a_folder_without_judges_is_refused(tmp_path: Path, folder: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        load_judges(tmp_path / folder)


@pytest.mark.parametrize("front", [front for front, *_ in MISTAKES.values()], ids=MISTAKES)
def test_a_mistake_is_one_line_of_the_command_with_the_next_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, front: str
) -> None:
    path = tmp_path / "care.md"
    path.write_text(f"---\n{front}\n---\nx\n")
    monkeypatch.setenv("DEBRIEF_JUDGES", str(tmp_path))
    done = CliRunner().invoke(app, ["judges", "list"])
    (line,) = done.output.splitlines()
    assert done.exit_code == 1
    assert re.match(rf"(debrief: )?{re.escape(str(path))}:\d+: \S.*\. \S.*\.\Z", line), line
    assert len(line) < 1_000


@given(
    st.text("abc:-[]{}&*!?|>'\"#%@`,.\n\t 019x<=~\\", max_size=60)
    | st.text(max_size=60).filter(lambda text: "\r" not in text)
)
def test_fields_are_read_or_refused_whatever_is_written(text: str) -> None:
    try:
        fields = fields_of(text)
    except FieldsError as error:
        line, reason = error.line, error.reason
    else:
        line, reason = 1, ""
        assert list(fields) == list(fields.lines)
    assert 1 <= line <= text.count("\n") + 2
    assert "\n" not in reason
