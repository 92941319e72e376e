from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.sessions.model import Intervention, Message, Turn
from debrief.training.conversations import (
    NO_PROMPT,
    NO_RESULT,
    REJECTED,
    TURN_ENDED,
    Conversation,
    is_trained_on,
)
from debrief.training.model import ChatMessage
from debrief.training.samples import encode_line
from debrief.training.validation import validate_line
from tests.sessions.scenario import Log
from tests.training.scenario import MONDAY, call, line_of, says, turn


def talk(*turns: Turn, system: str = "") -> tuple[ChatMessage, ...]:
    conversation = Conversation(system)
    for one in turns:
        conversation.add_turn(one)
    return conversation.close()


def shape(messages: tuple[ChatMessage, ...]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in messages]


def test_a_session_becomes_prompt_calls_results_and_answer() -> None:
    first = call("Read", {"file_path": "a.py"}, "text of a")
    second = call("Read", {"file_path": "b.py"}, "text of b")
    messages = talk(turn("Compare.", says("", first, second), says("Alike.")), system="Be brief.")
    assert shape(messages) == [
        ("system", "Be brief."),
        ("user", "Compare."),
        ("assistant", ""),
        ("tool", "text of a"),
        ("tool", "text of b"),
        ("assistant", "Alike."),
    ]
    calls = messages[2].tool_calls or ()
    assert [one.id for one in calls] == ["call00001", "call00002"]
    assert [one.function.arguments for one in calls] == [
        '{"file_path":"a.py"}',
        '{"file_path":"b.py"}',
    ]
    assert [message.tool_call_id for message in messages[3:5]] == ["call00001", "call00002"]


def test_a_call_without_a_result_says_so() -> None:
    lost = call(result=None)
    refused = call(result=None, status="rejected")
    messages = talk(turn("Go.", says("", lost, refused), says("Done.")))
    assert [m.content for m in messages if m.role == "tool"] == [NO_RESULT, REJECTED]


def test_results_that_came_out_of_order_follow_their_calls_in_order(tmp_path: Path) -> None:
    log = Log()
    log.user("Compare a, b and c.")
    for name in ("a", "b", "c"):
        block = {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": name}}
        log.says(block, id="msg_1")
    for name in ("c", "a", "nobody", "b"):
        log.result(name, f"text of {name}")
    log.says("Alike.")
    of = log.read(tmp_path)
    messages = talk(*of.turns)
    assert shape(messages)[1:] == [
        ("assistant", ""),
        *(("tool", f"text of {name}") for name in ("a", "b", "c")),
        ("assistant", "Alike."),
    ]
    answered = [message.tool_call_id for message in messages[2:5]]
    assert answered == [one.id for one in messages[1].tool_calls or ()]
    assert validate_line(encode_line(line_of(of))) == []


def test_a_turn_that_stops_after_results_is_closed_and_the_closing_is_not_trained_on() -> None:
    messages = talk(turn("Go.", says("On it.", call())), turn("Still there?", says("Yes.")))
    assert shape(messages)[3:] == [
        ("assistant", TURN_ENDED),
        ("user", "Still there?"),
        ("assistant", "Yes."),
    ]
    assert messages[3].weight == 0


def test_a_conversation_never_ends_on_a_result() -> None:
    assert shape(talk(turn("Go.", says("", call()))))[-1] == ("assistant", TURN_ENDED)


def test_a_prompt_that_nobody_answered_joins_the_next_one() -> None:
    messages = talk(turn("Wait."), turn("Use tabs.", says("Tabs it is.")))
    assert shape(messages) == [("user", "Wait.\n\nUse tabs."), ("assistant", "Tabs it is.")]


def test_a_last_prompt_without_an_answer_is_taken_off() -> None:
    messages = talk(turn("Go.", says("Done.")), turn("And now?"))
    assert shape(messages) == [("user", "Go."), ("assistant", "Done.")]


def test_answers_in_a_row_are_one_message() -> None:
    messages = talk(turn("Go.", says("First."), says("Second.", call()), says("Done.")))
    assert shape(messages)[1] == ("assistant", "First.\n\nSecond.")
    assert messages[1].tool_calls


def test_work_before_the_first_prompt_has_a_stand_in_for_it_and_is_not_trained_on() -> None:
    messages = talk(turn("", says("Continuing."), number=0), turn("Good.", says("Thanks.")))
    assert shape(messages)[0] == ("user", NO_PROMPT)
    assert [m.weight for m in messages if m.role == "assistant"] == [0, 1]
    assert is_trained_on(messages)
    assert not is_trained_on(messages[:2])


def test_work_that_goes_on_without_a_prompt_belongs_to_the_one_before() -> None:
    messages = talk(turn("Go.", says("First.", call())), turn("", says("Done."), number=0))
    assert shape(messages) == [
        ("user", "Go."),
        ("assistant", "First."),
        ("tool", "ok"),
        ("assistant", "Done."),
    ]


def typed(text: str, minute: int) -> Intervention:
    return Intervention(kind="slash_command", text=text, at=MONDAY + timedelta(minutes=minute))


def said(text: str, minute: int) -> Message:
    return replace(says(text), at=MONDAY + timedelta(minutes=minute))


def test_a_command_is_what_was_asked_where_there_is_no_prompt() -> None:
    commands = (typed("/clear", 1), typed("/review the retry loop", 2))
    one = turn("", said("Looking.", 3), said("Fine.", 4), number=0, interventions=commands)
    messages = talk(one)
    assert shape(messages) == [
        ("user", "/review the retry loop"),
        ("assistant", "Looking.\n\nFine."),
    ]
    assert messages[1].weight == 1


def test_a_command_in_a_turn_stands_before_what_the_model_did_on_it() -> None:
    commands = (typed("commit", 3), typed("/exit", 5))
    one = turn("Fix it.", said("Fixed.", 2), said("Committed.", 4), interventions=commands)
    assert shape(talk(one)) == [
        ("user", "Fix it."),
        ("assistant", "Fixed."),
        ("user", "/commit"),
        ("assistant", "Committed."),
    ]


@pytest.mark.parametrize(
    "commands",
    [(typed("/model", 9),), (typed("/review", 1),), (typed("  ", 3),)],
    ids=["nothing came of it", "the prompt is what came of it", "no command"],
)
def test_a_command_that_is_no_request_of_its_own_is_left_out(
    commands: tuple[Intervention, ...],
) -> None:
    one = turn("Fix it.", said("Looking.", 2), said("Fixed.", 4), interventions=commands)
    assert [role for role, _ in shape(talk(one))] == ["user", "assistant"]


def test_without_times_a_command_comes_before_all_work() -> None:
    command = Intervention(kind="slash_command", text="/init")
    one = turn("", says("On it.", call()), says("Done."), number=0, interventions=(command,))
    assert shape(talk(one))[0] == ("user", "/init")


REMINDER = "<system-reminder>\nTake care.\n</system-reminder>\n"


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (f"1 x = 1\n\n{REMINDER}", "1 x = 1"),
        (f"1 x = 1\n\n{REMINDER}\n{REMINDER}", "1 x = 1"),
        (REMINDER, REMINDER),
        (f"{REMINDER}1 x = 1", f"{REMINDER}1 x = 1"),
        (f"9 tag = '{REMINDER.strip()}", f"9 tag = '{REMINDER.strip()}"),
        ("9 </system-reminder>", "9 </system-reminder>"),
    ],
    ids=["behind", "two behind", "alone", "in front", "in a line of the file", "half of one"],
)
def test_reminders_to_the_agent_are_no_part_of_a_result(result: str, told: str) -> None:
    messages = talk(turn("Read it.", says("", call("Read", {"file_path": "a"}, result))))
    assert messages[2].content == told


def test_a_prompt_of_images_alone_says_how_many() -> None:
    assert shape(talk(turn("", says("A cat."), images=1)))[0] == ("user", "(1 image)")
    assert shape(talk(turn("", says("Cats."), images=2)))[0] == ("user", "(2 images)")


def test_without_calls_the_answers_carry_their_weight() -> None:
    assert [message.weight for message in talk(turn("Why?", says("Because.")))][1] == 1


def test_messages_of_nothing_are_passed_over() -> None:
    assert shape(talk(turn("Go.", says("  "), says("Done.")))) == [
        ("user", "Go."),
        ("assistant", "Done."),
    ]


def test_stand_ins_are_counted() -> None:
    conversation = Conversation()
    conversation.add_turn(turn("", says("", call(result=None)), number=0))
    conversation.close()
    assert conversation.stand_ins == 3
