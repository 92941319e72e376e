from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from debrief.cli.app import app
from debrief.errors import InputError
from debrief.sessions.model import Session
from debrief.training.publishing.form import encoded
from debrief.training.publishing.publish import ExportOptions, publish
from debrief.training.samples import encode_line
from tests.training.lakes import TASK, lake_of, stored
from tests.training.publishing.readers import problems
from tests.training.publishing.test_forms import as_form
from tests.training.scenario import FINGERPRINT, call, line_of, says, session, turn
from tests.training.strategies import sessions

TWO_AT_ONCE = session(
    "busy",
    turn(
        "Fix it.",
        says("Both at once.", call("Bash", {"command": "ls"}, "a.py"), call("Read", {}, "x = 1")),
        says("Done."),
    ),
)
ONE_A_MESSAGE = """
{%- for message in messages %}
{%- if message.tool_calls and message.tool_calls | length != 1 %}
{{- raise_exception("one call a message") }}
{%- endif %}
{{- "<|" + message.role + "|>" + message.content }}
{%- for call in message.tool_calls or [] %}{{ "[" + call.function.name + "]" }}{% endfor %}
{%- endfor %}"""
"""Refuses what the templates of small models refuse."""


def rendered(messages: list[dict[str, Any]]) -> str:
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(reason: str) -> None:
        raise TemplateError(reason)

    environment = ImmutableSandboxedEnvironment()
    environment.globals["raise_exception"] = refuse
    return environment.from_string(ONE_A_MESSAGE).render(messages=messages)


def test_calls_made_at_once_are_told_one_after_the_other() -> None:
    (line,) = as_form("messages", encode_line(line_of(TWO_AT_ONCE)), single_calls=True)
    told = [
        (m["role"], m["content"], [c["function"]["name"] for c in m.get("tool_calls", [])])
        for m in line["messages"]
    ]
    assert told[-5:] == [
        ("assistant", "Both at once.", ["Bash"]),
        ("tool", "a.py", []),
        ("assistant", "", ["Read"]),
        ("tool", "x = 1", []),
        ("assistant", "Done.", []),
    ]


@given(sessions())
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_every_line_stays_valid_and_loses_neither_call_nor_result(of: Session) -> None:
    try:
        line = encode_line(line_of(of))
    except InputError:
        return
    before = json.loads(line)
    (after,) = as_form("messages", line, single_calls=True)
    assert (after["tools"], after["metadata"]) == (before["tools"], before["metadata"])
    assert all(len(m.get("tool_calls", [])) < 2 for m in after["messages"])
    for found in (_calls, _results, _words):
        assert sorted(found(after)) == sorted(found(before))
    assert as_form("messages", encoded(after), single_calls=True) == [after]


def _calls(line: dict[str, Any]) -> list[str]:
    return [json.dumps(c) for m in line["messages"] for c in m.get("tool_calls", [])]


def _results(line: dict[str, Any]) -> list[str]:
    return [json.dumps(m) for m in line["messages"] if m["role"] == "tool"]


def _words(line: dict[str, Any]) -> list[str]:
    return [m["content"] for m in line["messages"] if m["role"] != "tool" and m["content"]]


@pytest.mark.parametrize("form", ["messages", "trl", "openai", "preference"])
def test_a_published_set_renders_where_a_message_may_have_one_call(
    tmp_path: Path, form: str
) -> None:
    twin = session("twin", *TWO_AT_ONCE.turns, turn("Why?", says("Because."), number=2))
    lake = lake_of(tmp_path / "lake", [TWO_AT_ONCE, twin], {"busy": 0.9, "twin": 0.2})
    stored(lake, eval_share=0.0, near_duplicates="keep")
    publish(lake, str(tmp_path / "plain"), ExportOptions(form=form))
    publish(lake, str(tmp_path / "single"), ExportOptions(form=form, single_calls=True))
    plain, single = (_first(tmp_path / name) for name in ("plain", "single"))
    assert problems(form, encoded(single)) == []
    for column in {"messages", "chosen", "rejected"} & set(single):
        from jinja2 import TemplateError

        assert "[Bash]" in rendered(single[column])
        with pytest.raises(TemplateError, match="one call"):
            rendered(plain[column])
    assert "one after the other" in (tmp_path / "single" / "README.md").read_text()


def _first(folder: Path) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(
        (folder / TASK / FINGERPRINT / "train.jsonl").read_text().splitlines()[0]
    )
    return line


def test_the_command_takes_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    lake = lake_of(tmp_path / "lake", [TWO_AT_ONCE])
    stored(lake, eval_share=0.0)
    arguments = ["export", "--to", str(tmp_path / "out"), "--lake", lake.url, "--single-calls"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert all(len(m.get("tool_calls", [])) < 2 for m in _first(tmp_path / "out")["messages"])
