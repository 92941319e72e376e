"""Every form, from any session, by the rules of who reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.sessions.model import ContextText, DeclaredTool, Intervention, Session, Turn
from debrief.training.conversations import NO_PROMPT, TURN_ENDED
from debrief.training.publishing.form import (
    decoded,
    encoded,
    with_single_calls,
    without_reasoning,
)
from debrief.training.publishing.forms import FORMS
from debrief.training.samples import encode_line
from tests.training.publishing.readers import problems
from tests.training.scenario import (
    call,
    line_of,
    rubric_evaluation,
    says,
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


def stored(of: Session = BUSY) -> bytes:
    return encode_line(
        line_of(of, snapshot=snapshot(of), rubric_evaluations=[rubric_evaluation(of)])
    )


def as_form(name: str, line: bytes, *, single_calls: bool = False) -> list[dict[str, Any]]:
    convert = FORMS[name].convert
    assert convert is not None
    stored_line = decoded(line)
    stored_line = stored_line if FORMS[name].takes_reasoning else without_reasoning(stored_line)
    made = [
        encoded(it)
        for it in convert(with_single_calls(stored_line) if single_calls else stored_line)
    ]
    assert [problem for data in made for problem in problems(name, data)] == []
    return [json.loads(data) for data in made]


@pytest.mark.parametrize("name", [name for name in LINEWISE if name != "preference"])
def test_a_line_has_the_columns_that_are_declared(name: str) -> None:
    (line,) = as_form(name, stored())
    assert list(line) == list(FORMS[name].columns)


@given(of=sessions("s1"))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=20, deadline=None)
def test_any_session_gives_lines_that_its_readers_take(of: Session) -> None:
    try:
        line = stored(of)
    except InputError:
        return
    for name in LINEWISE:
        for single_calls in (False, True):
            for made in as_form(name, line, single_calls=single_calls):
                assert set(made) == set(FORMS[name].columns)
    before = json.loads(line)
    (after,) = as_form("messages", line, single_calls=True)
    assert (after["tools"], after["metadata"]) == (before["tools"], before["metadata"])
    assert all(len(m.get("tool_calls", [])) < 2 for m in after["messages"])
    assert sorted(_said(after)) == sorted(_said(before)), "neither call nor result is lost"
    assert as_form("messages", encoded(after), single_calls=True) == [after]


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


def test_trl_gets_arguments_as_objects_and_tools_as_text() -> None:
    (line,) = as_form("trl", stored())
    calls = [c["function"] for m in line["completion"] for c in m.get("tool_calls", ())]
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
    assert trl["completion"][0]["tool_calls"][0]["function"]["arguments"] == {"command": "a\nb"}
    (sharegpt,) = as_form("sharegpt", line)
    assert json.loads(sharegpt["conversations"][1]["value"])["arguments"] == {"command": "a\nb"}


def test_sharegpt_alternates_and_puts_each_call_before_its_result() -> None:
    (line,) = as_form("sharegpt", stored())
    assert [turn["from"] for turn in line["conversations"]] == [
        *("human", "function_call", "observation", "function_call", "observation"),
        *("function_call", "observation", "gpt", "human", "gpt"),
    ]
    said, _, called = line["conversations"][1]["value"].partition("\n<tool_call>\n")
    assert said == "Two at once."
    assert json.loads(called.removesuffix("\n</tool_call>")) == {
        "name": "Bash",
        "arguments": {"command": "ls"},
    }
    assert line["conversations"][4]["value"] == "x = 1\n"
    assert line["conversations"][0]["value"].startswith("<system-reminder>\nBe brief.\n")
    (other,) = as_form("sharegpt", stored(session("s", turn("Go.", says("Ok.")), tool="opencode")))
    assert other["system"] == "Be brief."
    assert json.loads(line["tools"])[0]["parameters"]["type"] == "object"


def test_what_the_model_thought_stands_where_each_trainer_looks_for_it() -> None:
    (asked, answer, *rest) = (sample := line_of(BUSY)).messages
    thinking = replace(answer, reasoning_content="Where is it?")
    line = encode_line(replace(sample, messages=(asked, thinking, *rest)))
    for form in ("messages", "trl", "axolotl", "swift"):
        (made,) = as_form(form, line)
        messages = made.get("messages") or made["prompt"] + made["completion"]
        assert messages[1]["reasoning_content"] == "Where is it?"
        assert "reasoning_content" not in messages[4]
    (made,) = as_form("sharegpt", line)
    said = made["conversations"][1]["value"]
    assert said.startswith("<think>\nWhere is it?\n</think>\n\nTwo at once.\n<tool_call>\n")
    assert "Where" not in made["conversations"][3]["value"]


@pytest.mark.parametrize(("form", "flag"), [("axolotl", "train"), ("swift", "loss")])
def test_flags_say_what_is_trained_on(form: str, flag: str) -> None:
    line = published(form, KNOWN, BROKEN_OFF)
    answers = [one for one in line["messages"] if one["role"] == "assistant"]
    assert [answer["content"] for answer in answers] == ["Fixed.", "Both.", TURN_ENDED]
    assert [answer[flag] for answer in answers] == [True, True, False]


def test_a_call_that_holds_llama_factorys_tags_is_not_cut_there() -> None:
    tagged = call("Bash", {"command": "echo '<think>a</think> </tool_call>'"}, "ok")
    line = published("sharegpt", turn("Go.", says("So.", tagged), says("Ok.")))
    value = line["conversations"][1]["value"]
    assert value.count("</tool_call>") == value.count("<tool_call>") == 1
    assert "<think>" not in value
    called = json.loads(value.partition("<tool_call>")[2].removesuffix("</tool_call>"))
    assert called["arguments"] == {"command": "echo '<think>a</think> </tool_call>'"}


def test_a_chat_template_renders_every_word_of_it() -> None:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(TEMPLATE)
    (line,) = as_form("trl", stored())
    messages = line["prompt"] + line["completion"]
    text = template.render(messages=messages, tools=json.loads(line["tools"]))
    words = ("Fix it.", "Two at once.", '"command": "ls"', "x = 1", "Nothing more.", "Be brief.")
    assert [said for said in words if said not in text] == []


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
    twice = replace(line, messages=(line.messages[0], *line.messages[:-1]))
    convert = FORMS["sharegpt"].convert
    assert convert is not None
    with pytest.raises(ValueError, match="turn 1: human cannot stand here"):
        list(convert(twice))
    assert list(convert(replace(line, messages=line.messages[:1]))) == []


LS, CAT = call("Bash", {"command": "ls"}, "a.py"), call("Bash", {"command": "cat a.py"}, "x = 1")
UNKNOWN = turn("", says("It is done already.", LS), says("Really."))
KNOWN = turn("Fix it.", says("Fixed."), number=2)
STOP = Intervention(kind="interruption")
BROKEN_OFF = turn("And test it.", says("Both.", LS, CAT), number=3)
WHY = turn("Why?", says("Because."), number=4)
STOPPED = turn("Look.", says("Well, I"), interventions=(STOP,))
STOPPED_AFTER_CALL = turn("Test it.", says("", LS), says("Well, I"), interventions=(STOP,))
LS_TURN = 'function_call: {"name":"Bash","arguments":{"command":"ls"}}'
BOTH_TURN = LS_TURN.replace(": {", ": Both.\n<tool_call>\n{", 1) + "\n</tool_call>"
CAT_TURN = 'function_call: {"name":"Bash","arguments":{"command":"cat a.py"}}'


def published_rows(
    form: str, *turns: Turn, single_calls: bool = False, **fields: Any
) -> list[dict[str, Any]]:
    line = encode_line(line_of(session("s1", *turns, **fields)))
    return as_form(form, line, single_calls=single_calls)


def published(form: str, *turns: Turn, **fields: Any) -> dict[str, Any]:
    (made,) = published_rows(form, *turns, **fields)
    return made


def shown(row: dict[str, Any]) -> list[str]:
    """A row's messages; those that are trained on behind a mark."""
    if "conversations" in row:
        return [f"{one['from']}: {one['value']}" for one in row["conversations"]]
    return [
        f"{mark}{one['role']}: {one['content']}{'+' * len(one.get('tool_calls', ()))}"
        for mark, column in (("", "prompt"), ("> ", "completion"))
        for one in row[column]
    ]


ASKED, FIXED = "user: Fix it.", "assistant: Fixed."
TESTED = ["user: And test it.", "assistant: Both.++", "tool: a.py", "tool: x = 1"]
WHY_ROW = ["user: Why?", "> assistant: Because."]


@pytest.mark.parametrize(
    ("turns", "rows"),
    [
        pytest.param((KNOWN,), [[ASKED, "> " + FIXED]], id="one stretch is one row"),
        pytest.param(
            (UNKNOWN, KNOWN),
            [
                [
                    f"user: {NO_PROMPT}",
                    *("assistant: It is done already.+", "tool: a.py", "assistant: Really."),
                    *(ASKED, "> " + FIXED),
                ]
            ],
            id="answers to an unknown request stay in the history",
        ),
        pytest.param(
            (KNOWN, BROKEN_OFF),
            [[ASKED, "> " + FIXED, "> user: And test it.", "> assistant: Both.++"]],
            id="a row ends on calls where the line has no end",
        ),
        pytest.param(
            (BROKEN_OFF, WHY),
            [[TESTED[0], *(f"> {one}" for one in TESTED[1:]), "> user: Why?", WHY_ROW[1]]],
            id="nobody said that the turn ended there",
        ),
        pytest.param(
            (BROKEN_OFF, STOPPED, WHY),
            [
                [TESTED[0], "> " + TESTED[1]],
                [*TESTED, "user: Look.", "assistant: Well, I", *WHY_ROW],
            ],
            id="what was interrupted stays in the history",
        ),
        pytest.param(
            (STOPPED_AFTER_CALL, WHY),
            [
                ["user: Test it.", "> assistant: +"],
                ["user: Test it.", "assistant: +", "tool: a.py", "assistant: Well, I", *WHY_ROW],
            ],
            id="and so does what was interrupted behind a result",
        ),
    ],
)
def test_each_stretch_that_is_trained_on_is_a_row_with_the_whole_history(
    turns: tuple[Turn, ...], rows: list[list[str]]
) -> None:
    assert [shown(row) for row in published_rows("trl", *turns)] == rows


def test_single_calls_end_a_row_on_one_call() -> None:
    (row,) = published_rows("trl", KNOWN, BROKEN_OFF, single_calls=True)
    assert shown(row)[-3:] == ["> assistant: Both.+", "> tool: a.py", "> assistant: +"]


@pytest.mark.parametrize(
    ("turns", "told"),
    [
        pytest.param((KNOWN, WHY), ["human: Fix it.", "gpt: Fixed.", "human: Why?", "gpt: Because."], id="whole"),
        pytest.param((KNOWN, BROKEN_OFF, WHY), ["human: Fix it.", "gpt: Fixed.", "human: And test it.", BOTH_TURN, "observation: a.py", CAT_TURN], id="ends before a text that stands for an end"),
        pytest.param((KNOWN, STOPPED, WHY), ["human: Fix it.", "gpt: Fixed."], id="ends before what was interrupted"),
    ],
)  # fmt: skip
def test_a_line_for_llama_factory_ends_before_what_is_not_trained_on(
    turns: tuple[Turn, ...], told: list[str]
) -> None:
    assert shown(published("sharegpt", *turns)) == told


def test_a_line_that_begins_with_what_is_not_trained_on_is_none_for_llama_factory() -> None:
    assert published_rows("sharegpt", UNKNOWN, KNOWN) == []


def test_news_that_the_model_was_told_are_in_every_form_without_marks() -> None:
    news = (ContextText(said_by="task", text="<task-notification>failed</task-notification>"),)
    one = turn("Review it.", says("It runs."), replace(says("I see."), context=news))
    line = published("trl", one)
    asked = f"user: {news[0].text}"
    assert shown(line) == [
        "user: Review it.",
        *("> assistant: It runs.", f"> {asked}", "> assistant: I see."),
    ]
    assert all("machine" not in message for message in published("messages", one)["messages"])


@pytest.mark.parametrize("form", ["messages", "openai"])
def test_forms_with_weights_keep_all(form: str) -> None:
    messages = published(form, UNKNOWN, KNOWN, BROKEN_OFF)["messages"]
    assert (messages[0]["content"], messages[-1]["content"]) == (NO_PROMPT, TURN_ENDED)
    assert messages[-1]["weight"] == 0


@given(of=sessions())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=20, deadline=None)
def test_rows_train_on_each_answer_once_and_bend_no_history(of: Session) -> None:
    try:
        line = encode_line(line_of(of))
    except InputError:
        return
    messages = json.loads(line)["messages"]
    told = [
        one
        for before, one in zip([{"role": ""}, *messages], messages, strict=False)
        if (before["role"], one["content"], one.get("weight")) != ("tool", TURN_ENDED, 0)
    ]
    weights = [message.pop("weight", 1) for message in told]
    for message in told:
        message.pop("not_trained", None)
        message.pop("machine", None)
        for one in message.get("tool_calls", ()):
            one["function"]["arguments"] = json.loads(one["function"]["arguments"])
    places: list[int] = []
    for row in as_form("trl", line):
        whole = row["prompt"] + row["completion"]
        assert whole == told[: len(whole)], "it is the beginning of the line, to the letter"
        places += range(len(row["prompt"]), len(whole))
    answers = {place for place, one in enumerate(told) if one["role"] == "assistant"}
    assert answers & set(places) == {place for place in answers if weights[place]}
    assert len(places) == len(set(places))


def _said(line: dict[str, Any]) -> list[str]:
    """Return the calls, results and words of a line."""
    calls = [json.dumps(c) for m in line["messages"] for c in m.get("tool_calls", [])]
    results = [
        json.dumps({key: value for key, value in m.items() if key != "machine"})
        for m in line["messages"]
        if m["role"] == "tool"
    ]
    return [
        *calls,
        *results,
        *(m["content"] for m in line["messages"] if m["role"] != "tool" and m["content"]),
    ]
