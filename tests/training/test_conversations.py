from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.sessions.model import Intervention, Message, Turn
from debrief.training.conversations import (
    NO_PROMPT,
    NO_RESULT,
    REJECTED,
    TURN_ENDED,
    ConversationBuilder,
    is_trained_on,
)
from debrief.training.model import ChatMessage
from debrief.training.samples import encode_line
from debrief.training.validation import validate_line
from tests.sessions.scenario import Log
from tests.training.scenario import MONDAY, call, line_of, says, session, turn


def talk(*turns: Turn, system: str = "") -> tuple[ChatMessage, ...]:
    conversation = ConversationBuilder(system)
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


def stopped(minute: int | None) -> Intervention:
    at = None if minute is None else MONDAY + timedelta(minutes=minute)
    return Intervention(kind="interruption", at=at)


@pytest.mark.parametrize(("minute", "weights"), [(3, [1, 0, 1]), (None, [1, 0, 1]), (1, [1, 1, 1])])
def test_what_the_person_interrupted_is_no_end_of_a_turn_to_be_trained_on(
    minute: int | None, weights: list[int]
) -> None:
    one = turn("Fix it.", said("Let me see:", 2), interventions=(stopped(minute),))
    messages = talk(turn("Hi.", says("Hello.")), one, turn("Not there.", said("Right.", 9)))
    assert [m.weight for m in messages if m.role == "assistant"] == weights


def test_a_call_that_was_interrupted_is_trained_on() -> None:
    one = turn("Fix it.", says("Let me see:", call()), interventions=(stopped(None),))
    assert [(m.content, m.weight) for m in talk(one) if m.role == "assistant"] == [
        ("Let me see:", UNSET),
        (TURN_ENDED, 0),
    ]


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


def remarked(text: str, minute: int | None) -> Intervention:
    at = None if minute is None else MONDAY + timedelta(minutes=minute)
    return Intervention(kind="remark", text=text, at=at)


def test_a_remark_stands_where_it_reached_the_model() -> None:
    first = replace(says("Looking.", call()), at=MONDAY + timedelta(minutes=1))
    one = turn("Fix it.", first, said("Fixed.", 3), interventions=(remarked("In b.py.", 2),))
    assert shape(talk(one)) == [
        ("user", "Fix it."),
        ("assistant", "Looking."),
        ("tool", "ok"),
        ("assistant", TURN_ENDED),
        ("user", "In b.py."),
        ("assistant", "Fixed."),
    ]


def test_remarks_and_the_command_that_was_taken_up_are_one_request() -> None:
    deeds = (typed("/clear", 2), remarked("In b.py.", 3), typed("/review", 4), remarked("All.", 5))
    one = turn("Fix it.", said("Fixed.", 1), said("Reviewed.", 6), interventions=deeds)
    assert shape(talk(one))[2:] == [
        ("user", "In b.py.\n\n/review\n\nAll."),
        ("assistant", "Reviewed."),
    ]


def test_a_remark_without_a_time_is_told_with_the_prompt() -> None:
    one = turn("Fix it.", says("Fixed."), interventions=(remarked("In b.py.", None),))
    assert shape(talk(one))[0] == ("user", "Fix it.\n\nIn b.py.")


def test_a_remark_that_was_not_answered_joins_the_next_prompt() -> None:
    one = turn("Fix it.", said("Fixed.", 1), interventions=(remarked("In b.py.", 2),))
    messages = talk(one, turn("Well?", said("There too.", 9)))
    assert shape(messages)[2:] == [("user", "In b.py.\n\nWell?"), ("assistant", "There too.")]


def noticed(one: Turn, *minutes: int) -> list[tuple[str, str, object]]:
    conversation = ConversationBuilder()
    conversation.add_turn(one, [MONDAY + timedelta(minutes=minute) for minute in minutes])
    return [(m.role, m.content, m.weight) for m in conversation.close()]


def test_what_was_said_on_a_notice_stands_apart_and_is_not_trained_on() -> None:
    one = turn("Review it.", said("Two reviewers run.", 1), said("One is done.", 5))
    assert noticed(one, 3, 4, 9) == [
        ("user", "Review it.", UNSET),
        ("assistant", "Two reviewers run.", 1),
        ("user", NO_PROMPT, UNSET),
        ("assistant", "One is done.", 0),
    ]


def test_a_sessions_notices_count_in_its_line() -> None:
    review = turn("Review it.", said("It runs.", 1), said("It is done.", 3))
    line = line_of(session("s1", review, notices=(MONDAY + timedelta(minutes=2),)))
    assert [m.weight for m in line.messages if m.role == "assistant"] == [1, 0]
    with pytest.raises(InputError, match="a request that is known"):
        line_of(session("s1", turn("", *review.messages, number=0)))


def test_a_request_after_a_notice_is_trained_on_again() -> None:
    conversation = ConversationBuilder()
    notice = [MONDAY + timedelta(minutes=2)]
    conversation.add_turn(turn("Review it.", said("Running.", 1), said("Done.", 3)), notice)
    late = replace(turn("Fix it.", said("Fixed.", 8)), at=MONDAY + timedelta(minutes=7))
    conversation.add_turn(late, notice)
    assert [m.weight for m in conversation.close() if m.role == "assistant"] == [1, 0, 1]


def test_what_follows_a_notice_while_the_model_works_is_not_trained_on() -> None:
    first, second, third = (
        replace(says(text, call()), at=MONDAY + timedelta(minutes=minute))
        for text, minute in (("Looking.", 1), ("One is done.", 3), ("Fine.", 5))
    )
    one = turn("Review it.", first, second, third, said("All of it.", 6))
    assert [(text, weight) for role, text, weight in noticed(one, 2) if role == "assistant"] == [
        ("Looking.", UNSET),
        ("One is done.", 0),
        ("Fine.", UNSET),
        ("All of it.", UNSET),
    ]


@pytest.mark.parametrize("minute", [0, 9], ids=["before the prompt's answer", "after all"])
def test_a_notice_on_which_nothing_was_said_changes_nothing(minute: int) -> None:
    one = turn("Review it.", said("Fine.", 1), said("All of it.", 2))
    assert noticed(one, minute) == noticed(one)


def test_a_remark_beside_a_notice_is_what_was_asked() -> None:
    one = turn(
        "Go.", said("Running.", 1), said("Right.", 4), interventions=(remarked("Stop it.", 3),)
    )
    assert noticed(one, 2)[2:] == [("user", "Stop it.", UNSET), ("assistant", "Right.", 1)]


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


def test_images_that_a_prompts_words_do_not_mark_are_told_behind_them() -> None:
    bare, marked = turn("Who?", says("A cat."), images=1), turn("[Image #1] Who?", images=1)
    assert shape(talk(bare))[0] == ("user", "Who?\n\n(1 image)")
    assert shape(talk(marked, turn("Well?", says("A cat."))))[0][1] == "[Image #1] Who?\n\nWell?"


def test_without_calls_the_answers_carry_their_weight() -> None:
    assert [message.weight for message in talk(turn("Why?", says("Because.")))][1] == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<thinking>\nA cat?\n</thinking>\n\nA cat.", "A cat."),
        ("<think>A cat?</think>A cat.", "A cat."),
        ("It prints <think>x</think>.", "It prints <think>x</think>."),
        ("<think>A cat.", "<think>A cat."),
        ("<think>A cat.</thinking>", "<think>A cat.</thinking>"),
    ],
    ids=["before the words", "of another model", "in the words", "unclosed", "mixed up"],
)
def test_thoughts_that_the_model_wrote_out_are_left_out(text: str, told: str) -> None:
    assert shape(talk(turn("Who?", says(text)))) == [("user", "Who?"), ("assistant", told)]


def test_a_message_of_thoughts_alone_is_passed_over() -> None:
    messages = talk(turn("Who?", says("<think>A cat?</think>"), says("A cat.")))
    assert shape(messages) == [("user", "Who?"), ("assistant", "A cat.")]


def test_messages_of_nothing_are_passed_over() -> None:
    assert shape(talk(turn("Go.", says("  "), says("Done.")))) == [
        ("user", "Go."),
        ("assistant", "Done."),
    ]


def test_stand_ins_are_counted() -> None:
    conversation = ConversationBuilder()
    conversation.add_turn(turn("", says("", call(result=None)), number=0))
    conversation.close()
    assert conversation.stand_ins == 3
