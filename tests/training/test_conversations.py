from __future__ import annotations

from pathlib import Path

from debrief.sessions.model import Turn
from debrief.training.conversations import NO_PROMPT, NO_RESULT, REJECTED, TURN_ENDED, Conversation
from debrief.training.model import ChatMessage
from debrief.training.samples import encode_line
from debrief.training.validation import validate_line
from tests.sessions.scenario import Log
from tests.training.scenario import call, line_of, says, turn


def talk(*turns: Turn, system: str = "") -> tuple[ChatMessage, ...]:
    conversation = Conversation(system)
    for one in turns:
        conversation.add_turn(one.prompt, one.images, one.messages)
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


def test_work_before_the_first_prompt_has_a_stand_in_for_it() -> None:
    messages = talk(turn("", says("Continuing."), number=0), turn("Good.", says("Thanks.")))
    assert shape(messages)[0] == ("user", NO_PROMPT)


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
    conversation.add_turn("", 0, [says("", call(result=None))])
    conversation.close()
    assert conversation.stand_ins == 3
