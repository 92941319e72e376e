"""Every form, from any session, by the rules of who reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.rubrics.model import Rubric
from debrief.sessions.model import DeclaredTool, Session
from debrief.training.publishing.conversations import StoredLine
from debrief.training.publishing.forms import FORMS, form_named
from debrief.training.samples import encode_line
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


def as_form(name: str, line: bytes) -> list[dict[str, Any]]:
    convert = FORMS[name].convert
    assert convert is not None
    made = []
    for told, problems in convert(StoredLine(memoryview(line)), RUBRICS):
        data = b"".join(told)
        assert list(problems) == []
        assert list(FORMS[name].problems(data)) == []
        assert data.endswith(b"\n")
        assert data.count(b"\n") == 1
        made.append(json.loads(data))
    return made


@pytest.mark.parametrize("name", LINEWISE)
def test_a_line_has_the_columns_that_are_declared(name: str) -> None:
    (line,) = as_form(name, stored())
    assert list(line) == list(FORMS[name].columns)


@pytest.mark.parametrize("name", LINEWISE)
@given(of=sessions("s1"))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=40, deadline=None)
def test_any_session_gives_lines_that_its_readers_take(name: str, of: Session) -> None:
    try:
        line = stored(of)
    except InputError:
        return
    for made in as_form(name, line):
        assert set(made) == set(FORMS[name].columns)


def test_openai_gets_messages_and_tools_alone_with_arguments_as_text() -> None:
    from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
    from pydantic import TypeAdapter

    (line,) = as_form("openai", stored())
    assert set(line) == {"messages", "tools"}
    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(line["messages"])
    TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(line["tools"])
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
    from msgspec.structs import replace

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


def put(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    *parents, last = path.split(".")

    def spoil(line: Any) -> None:
        for step in parents:
            line = line[int(step) if step.isdigit() else step]
        line[int(last) if last.isdigit() else last] = value

    return spoil


@pytest.mark.parametrize(
    ("name", "spoil", "problem"),
    [
        ("openai", put("metadata", {}), "expected shape"),
        ("openai", put("messages.1.name", "ann"), "expected shape"),
        ("openai", put("messages.2.tool_calls.0.function.arguments", {}), "expected shape"),
        ("openai", put("tools", []), "0 tools"),
        ("openai", put("tools.0.function.description", "w" * 1_025), "1,025 characters"),
        ("trl", put("tools", "[]"), "tools is not"),
        ("trl", put("tools", []), "expected shape"),
        ("trl", put("messages.1.content", None), "no text"),
        ("trl", put("messages.2.tool_calls.0.function.arguments", "{}"), "no object"),
        ("trl", put("messages.2.tool_calls.0.function.name", "Other"), "not among the tools"),
        ("trl", put("messages.3.tool_call_id", "other"), "no open call"),
        ("sharegpt", put("conversations.1.from", "gpt2"), "expected shape"),
        ("sharegpt", put("conversations.1.from", "human"), "cannot stand here"),
        ("sharegpt", put("conversations.1.value", "ls"), "not a call"),
        ("sharegpt", put("conversations.1.value", '{"name":"X","arguments":{}}'), "not among"),
        ("sharegpt", put("conversations.1.value", '{"name":"Bash","arguments":"ls"}'), "not a call"),
        ("sharegpt", put("conversations", []), "even number"),
        ("sharegpt", put("tools", "Bash"), "expected shape"),
        ("reward", put("score", 6.0), "a score of 6"),
        ("reward", put("score", None), "expected shape"),
        ("reward", put("rubric_key", ""), "no rubric"),
    ],
)  # fmt: skip
def test_what_a_reader_would_stumble_over_is_named(
    name: str, spoil: Callable[[dict[str, Any]], None], problem: str
) -> None:
    (line,) = as_form(name, stored())
    spoil(line)
    found = list(FORMS[name].problems(json.dumps(line).encode()))
    assert any(problem in one for one in found), found


@pytest.mark.parametrize("name", ["trl", "sharegpt", "reward"])
def test_a_line_that_cannot_have_been_stored_is_not_converted(name: str) -> None:
    line = stored().replace(rb'"{\"command\":\"ls\"}"', b'"ls"', 1)
    convert = FORMS[name].convert
    assert convert is not None
    with pytest.raises(msgspec.DecodeError, match="arguments are no object"):
        list(convert(StoredLine(line), RUBRICS))


@pytest.mark.parametrize("name", list(FORMS))
@pytest.mark.parametrize("bad", [b"", b"{", b"[]", b"null"])
def test_what_is_no_line_is_said_to_be_none(name: str, bad: bytes) -> None:
    assert len(list(FORMS[name].problems(bad))) == 1


def test_a_form_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="messages, trl, openai"):
        form_named("alpaca")
