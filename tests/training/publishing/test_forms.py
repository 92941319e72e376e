"""Every form, from any session, by the rules of who reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.rubrics.model import Rubric
from debrief.sessions.model import DeclaredTool, Session
from debrief.training.publishing import sharegpt
from debrief.training.publishing.form import decoded, encoded, with_single_calls
from debrief.training.publishing.forms import FORMS, form_named
from debrief.training.samples import encode_line
from tests.training.publishing.readers import problems
from tests.training.scenario import (
    call,
    judgement,
    line_of,
    rubric_evaluation,
    says,
    scores,
    session,
    snapshot,
    turn,
)
from tests.training.strategies import sessions

LINEWISE = [name for name, form in FORMS.items() if form.convert is not None]
BUSY = session(
    "busy",
    turn(
        "Fix it.",
        says(
            "Two at once.",
            call("Bash", {"command": "ls"}, "a.py"),
            call("repo.readFile", {"path": "a.py"}, "x = 1\n"),
        ),
        says("", call("Edit", {"file_path": "a.py", "n": 3}, "ok")),
        says("Done."),
    ),
    turn("And now?", says("Nothing more."), number=2),
)
RUBRICS = {
    "excellence/states-the-goal": Rubric(
        id="rubric_001",
        key="states-the-goal",
        score_name="excellence",
        name="States the goal",
        description="The first prompt says what will be true.",
        scoring_criteria="1: no\n5: yes",
    )
}


def stored(of: Session = BUSY) -> bytes:
    return encode_line(
        line_of(of, snapshot=snapshot(of), rubric_evaluations=[rubric_evaluation(of)])
    )


def as_form(name: str, line: bytes, *, single_calls: bool = False) -> list[dict[str, Any]]:
    convert = FORMS[name].convert
    assert convert is not None
    one = decoded(line)
    made = [encoded(it) for it in convert(with_single_calls(one) if single_calls else one, RUBRICS)]
    assert [problem for data in made for problem in problems(name, data)] == []
    return [json.loads(data) for data in made]


@pytest.mark.parametrize("name", LINEWISE)
def test_a_line_has_the_columns_that_are_declared(name: str) -> None:
    (line,) = as_form(name, stored())
    assert list(line) == list(FORMS[name].columns)


@pytest.mark.parametrize("name", LINEWISE)
@pytest.mark.parametrize("single_calls", [False, True])
@given(of=sessions("s1"))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=30, deadline=None)
def test_any_session_gives_lines_that_its_readers_take(
    name: str, single_calls: bool, of: Session
) -> None:
    try:
        line = stored(of)
    except InputError:
        return
    for made in as_form(name, line, single_calls=single_calls):
        assert set(made) == set(FORMS[name].columns)


def test_openai_gets_messages_and_tools_alone_with_arguments_as_text() -> None:
    (line,) = as_form("openai", stored())
    assert set(line) == {"messages", "tools"}
    called = line["messages"][2]["tool_calls"][0]["function"]
    assert called == {"name": "Bash", "arguments": '{"command":"ls"}'}


def test_openai_gets_descriptions_of_tools_that_it_takes() -> None:
    told = [
        DeclaredTool(name=name, description=text, parameters='{"properties":{"a":{"type":"null"}}}')
        for name, text in [("brief", "Look."), ("long", "word " * 400), ("whole", "w" * 1_025)]
    ]
    line = stored(replace(BUSY, declared_tools=tuple(told)))
    (made,) = as_form("openai", line)
    (original,) = as_form("messages", line)
    assert made["messages"] == original["messages"]
    described = {one["function"]["name"]: one["function"] for one in made["tools"]}
    before = {one["function"]["name"]: one["function"] for one in original["tools"]}
    assert described.keys() == before.keys()
    assert described["brief"] == before["brief"]
    for name in ("long", "whole"):
        description = described[name].pop("description")
        assert 1_000 < len(description) <= 1_024
        assert before[name].pop("description").startswith(description.removesuffix(" …"))
        assert described[name] == before[name]


@pytest.mark.parametrize("size", [100, 31_900, 100_000])
def test_openai_gets_no_metadata_however_much_there_is(size: int) -> None:
    feedback = ',"metadata":{' + "x" * size
    line = encode_line(line_of(BUSY, judgements=[judgement(BUSY, feedback=feedback)]))
    (made,) = as_form("openai", line)
    assert set(made) == {"messages", "tools"}


def test_trl_gets_arguments_as_objects_and_tools_as_text() -> None:
    (line,) = as_form("trl", stored())
    calls = [c["function"] for m in line["messages"] for c in m.get("tool_calls", ())]
    assert calls == [
        {"name": "Bash", "arguments": {"command": "ls"}},
        {"name": "repo_readFile", "arguments": {"path": "a.py"}},
        {"name": "Edit", "arguments": {"file_path": "a.py", "n": 3}},
    ]
    assert {tool["function"]["name"] for tool in json.loads(line["tools"])} >= {"Bash", "Edit"}


def test_arguments_that_were_written_over_several_lines_stay_on_one() -> None:
    broken = replace(call(), input='{\n "command":\r\n "a\\nb"\n}\n')
    line = stored(session("s", turn("Go.", says("", broken), says("Ok."))))
    (trl,) = as_form("trl", line)
    assert trl["messages"][2]["tool_calls"][0]["function"]["arguments"] == {"command": "a\nb"}
    (sharegpt,) = as_form("sharegpt", line)
    assert json.loads(sharegpt["conversations"][1]["value"])["arguments"] == {"command": "a\nb"}


def test_sharegpt_alternates_and_puts_each_call_before_its_result() -> None:
    (line,) = as_form("sharegpt", stored())
    assert [turn["from"] for turn in line["conversations"]] == [
        *("human", "function_call", "observation", "function_call", "observation"),
        *("function_call", "observation", "gpt", "human", "gpt"),
    ]
    assert json.loads(line["conversations"][1]["value"]) == {
        "name": "Bash",
        "arguments": {"command": "ls"},
    }
    assert line["conversations"][4]["value"] == "x = 1\n"
    assert line["system"] == "Be brief."
    assert json.loads(line["tools"])[0]["parameters"]["type"] == "object"


def test_reward_gives_a_line_for_each_rubric_with_its_text() -> None:
    (line,) = as_form("reward", stored())
    assert (line["score"], line["rubric_name"]) == (4.0, "States the goal")
    assert line["criteria"] == "1: no\n5: yes"
    assert as_form("reward", encode_line(line_of(BUSY, scores=scores(BUSY)))) == []


def test_a_chat_template_renders_every_word_of_it() -> None:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(TEMPLATE)
    (line,) = as_form("trl", stored())
    text = template.render(messages=line["messages"], tools=json.loads(line["tools"]))
    for said in (
        "Fix it.",
        "Two at once.",
        '"command": "ls"',
        "x = 1",
        "Nothing more.",
        "Be brief.",
    ):
        assert said in text


TEMPLATE = """\
{%- for tool in tools %}<tool>{{ tool | tojson }}</tool>
{% endfor %}
{%- for message in messages %}
<|{{ message.role }}|>{{ message.content }}
{%- for call in message.tool_calls or [] %}
<call>{{ call.function.name }}
{%- for name, value in call.function.arguments.items() %} {{ name }}={{ value | tojson }}{% endfor %}
 {{ call.function.arguments | tojson }}</call>
{%- endfor %}
{%- endfor %}"""


def test_turns_that_cannot_alternate_are_refused() -> None:
    line = decoded(stored())
    twice = replace(line, messages=(line.messages[1], *line.messages[1:-1]))
    with pytest.raises(ValueError, match="turn 1: human cannot stand here"):
        list(sharegpt.convert(twice))
    with pytest.raises(ValueError, match="even number"):
        list(sharegpt.convert(replace(line, messages=line.messages[:2])))


def test_a_form_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="messages, trl, openai"):
        form_named("alpaca")
