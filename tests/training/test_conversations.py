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
    conversation_of,
    is_trained_on,
)
from debrief.training.formats import validate_line
from debrief.training.model import ChatMessage, NotTrained, not_trained_in
from debrief.training.samples import encode_line
from tests.sessions.scenario import Log
from tests.training.scenario import MONDAY, call, line_of, says, session, talk, turn


def shape(messages: tuple[ChatMessage, ...]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in messages]


def said(text: str, minute: int) -> Message:
    return replace(says(text), at=MONDAY + timedelta(minutes=minute))


def typed(text: str, minute: int | None) -> Intervention:
    at = None if minute is None else MONDAY + timedelta(minutes=minute)
    return Intervention(kind="slash_command", text=text, at=at)


def remarked(text: str, minute: int | None) -> Intervention:
    return replace(typed(text, minute), kind="remark")


def fix(*done: Intervention) -> Turn:
    return turn("Fix it.", said("Looking.", 2), said("Fixed.", 4), interventions=done)


def review(text: str = "", *done: Intervention) -> Turn:
    return turn(text, said("Looking.", 3), said("Fine.", 5), number=0, interventions=done)


@pytest.mark.parametrize(
    ("turns", "told"),
    [
        pytest.param([turn("Go.", says("On it.", call())), turn("Well?", says("Yes."))], f"u:Go. a:On it. t:ok a:{TURN_ENDED} u:Well? a:Yes.", id="a turn that stops after results is closed"),
        pytest.param([turn("Go.", says("", call()))], f"u:Go. a: t:ok a:{TURN_ENDED}", id="so is a conversation"),
        pytest.param([turn("Wait."), turn("Use tabs.", says("Ok."))], "u:Wait.|Use tabs. a:Ok.", id="an unanswered prompt joins the next"),
        pytest.param([turn("Go.", says("Done.")), turn("And now?")], "u:Go. a:Done.", id="a last prompt without an answer goes"),
        pytest.param([turn("Go.", says("One."), says("Two.", call()), says("Done."))], "u:Go. a:One.|Two. t:ok a:Done.", id="answers in a row are one message"),
        pytest.param([turn("Go.", says("One.", call())), turn("", says("Done."), number=0)], "u:Go. a:One. t:ok a:Done.", id="work without a prompt belongs to the one before"),
        pytest.param([review("", typed("/clear", 1), typed("/review b", 2))], "u:/review b a:Looking.|Fine.", id="a command asks where there is no prompt"),
        pytest.param([fix(typed("commit", 3), typed("/exit", 5))], "u:Fix it. a:Looking. u:/commit a:Fixed.", id="a command stands before what came of it"),
        pytest.param([fix(typed("/model", 9))], "u:Fix it. a:Looking.|Fixed.", id="nothing came of a command"),
        pytest.param([fix(typed("/review", 1))], "u:Fix it. a:Looking.|Fixed.", id="the prompt came of a command"),
        pytest.param([fix(typed("  ", 3))], "u:Fix it. a:Looking.|Fixed.", id="no command"),
        pytest.param([turn("", says("On it.", call()), says("Done."), number=0, interventions=(typed("/init", None),))], "u:/init a:On it. t:ok a:Done.", id="a command without a time comes first"),
        pytest.param([turn("Fix it.", replace(says("Looking.", call()), at=MONDAY + timedelta(minutes=1)), said("Fixed.", 3), interventions=(remarked("In b.py.", 2),))], f"u:Fix it. a:Looking. t:ok a:{TURN_ENDED} u:In b.py. a:Fixed.", id="a remark stands where it reached the model"),
        pytest.param([turn("Fix it.", said("Fixed.", 1), said("Fine.", 6), interventions=(typed("/clear", 2), remarked("In b.py.", 3), typed("/review", 4), remarked("All.", 5)))], "u:Fix it. a:Fixed. u:In b.py.|/review|All. a:Fine.", id="remarks and a command are one request"),
        pytest.param([fix(remarked("In b.py.", None))], "u:Fix it.|In b.py. a:Looking.|Fixed.", id="a remark without a time joins the prompt"),
        pytest.param([fix(remarked("In b.py.", 5)), turn("Well?", said("There too.", 9))], "u:Fix it. a:Looking.|Fixed. u:In b.py.|Well? a:There too.", id="an unanswered remark joins the next prompt"),
        pytest.param([turn("", says("A cat."), images=1)], "u:(1 image) a:A cat.", id="an image alone"),
        pytest.param([turn("", says("Cats."), images=2)], "u:(2 images) a:Cats.", id="two images"),
        pytest.param([turn("Who?", says("A cat."), images=1)], "u:Who?|(1 image) a:A cat.", id="an image that the words do not mark"),
        pytest.param([turn("[Image #1] Who?", says("A cat."), images=1)], "u:[Image #1] Who? a:A cat.", id="an image that they mark"),
        pytest.param([turn("Who?", says("<thinking>\nA cat?\n</thinking>\n\nA cat."))], "u:Who? a:A cat.", id="thoughts before the words"),
        pytest.param([turn("Who?", says("<think>A cat?</think>A cat."))], "u:Who? a:A cat.", id="thoughts of another model"),
        pytest.param([turn("Who?", says("It prints <think>x</think>."))], "u:Who? a:It prints <think>x</think>.", id="thoughts in the words"),
        pytest.param([turn("Who?", says("<think>A cat."))], "u:Who? a:<think>A cat.", id="unclosed thoughts"),
        pytest.param([turn("Who?", says("<think>A cat.</thinking>"))], "u:Who? a:<think>A cat.</thinking>", id="mixed up thoughts"),
        pytest.param([turn("Who?", says("<think>A cat?</think>"), says("A cat."))], "u:Who? a:A cat.", id="a message of thoughts alone"),
        pytest.param([turn("Go.", says("  "), says("Done."))], "u:Go. a:Done.", id="a message of nothing"),
    ],
)  # fmt: skip
def test_turns_become_messages(turns: list[Turn], told: str) -> None:
    messages = talk(*turns)
    assert " ".join(f"{m.role[0]}:{m.content}" for m in messages).replace("\n\n", "|") == told
    assert all(m.weight == 0 for m in messages if m.content == TURN_ENDED)
    if not any(m.tool_calls for m in messages):
        assert {m.weight for m in messages if m.role == "assistant"} == {1}


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


def test_what_the_model_thought_stands_beside_what_it_said() -> None:
    thinking = replace(says("", call()), thinking="Look first.")
    written = says("<think>It counts one too many.</think>\n\nFixed.")
    talk = session("s", turn("Fix it.", thinking, written, replace(says("Done."), thinking="So.")))
    messages = conversation_of(talk).close()
    assert [(one.content, one.reasoning_content) for one in messages if one.role != "tool"] == [
        ("Fix it.", ""),
        ("", "Look first."),
        ("Fixed.\n\nDone.", "It counts one too many.\n\nSo."),
    ]


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


@pytest.mark.parametrize(
    ("after", "weights", "reasons"),
    [
        (turn("That's wrong! Undo all of it.", says("Undone.")), [0, 0, 1], 1),
        (turn("Thanks, now the docs.", says("Done.")), [1, 1, 1], 0),
        (turn("Falsch, mach das rückgängig.", says("Gut.")), [0, 0, 1], 1),
    ],
    ids=["corrected", "accepted", "another language"],
)
def test_work_that_the_person_then_corrects_is_not_trained_on(
    after: Turn, weights: list[int], reasons: int
) -> None:
    conversation = ConversationBuilder()
    for one in (turn("Fix it.", says("Looking.", call()), says("Fixed.")), after):
        conversation.add_turn(one)
    messages = conversation.close()
    assert [m.weight != 0 for m in messages if m.role == "assistant"] == list(map(bool, weights))
    found = not_trained_in(messages)
    assert len(found) == reasons
    assert all(why.turn == 1 and why.reason == "corrected" and why.sign for why in found)


def test_a_call_without_a_result_says_so_and_its_answer_is_not_trained_on() -> None:
    conversation = ConversationBuilder()
    refused = says("Shall I?", call(result=None, status="rejected"))
    lost = says("And this.", call(result=None))
    conversation.add_turn(turn("Fix it.", says("Looking.", call()), refused, lost, says("Ok.")))
    messages = conversation.close()
    assert [m.content for m in messages if m.role == "tool"] == ["ok", REJECTED, NO_RESULT]
    assert [m.weight for m in messages if m.role == "assistant"] == [UNSET, 0, 0, UNSET]
    assert not_trained_in(messages) == (
        NotTrained(turn=1, reason="refused"),
        NotTrained(turn=1, reason="no_result"),
    )
    assert conversation.stand_ins == 2


def test_a_call_that_was_interrupted_is_trained_on() -> None:
    one = turn("Fix it.", says("Let me see:", call()), interventions=(stopped(None),))
    assert [(m.content, m.weight) for m in talk(one) if m.role == "assistant"] == [
        ("Let me see:", UNSET),
        (TURN_ENDED, 0),
    ]


def worked(text: str, minute: int) -> Message:
    return replace(says(text, call()), at=MONDAY + timedelta(minutes=minute))


REVIEW = turn("Review it.", said("They run.", 1), said("One is done.", 5))
WORK = turn("Review it.", worked("A.", 1), worked("B.", 3), worked("C.", 5), said("D.", 6))
STOP = turn("Go.", said("They run.", 1), said("Right.", 4), interventions=(remarked("Stop.", 3),))
LATER = replace(turn("Fix it.", said("Fixed.", 8)), at=MONDAY + timedelta(minutes=7))


@pytest.mark.parametrize(
    ("turns", "minutes", "told"),
    [
        pytest.param([REVIEW], [0, 9], "Review it. They run.|One is done.", id="nothing was said on it"),
        pytest.param([REVIEW], [3, 4], f"Review it. They run. {NO_PROMPT} One is done. -", id="on one at an end"),
        pytest.param([REVIEW, LATER], [3], f"Review it. They run. {NO_PROMPT} One is done. - Fix it. Fixed.", id="a request after one"),
        pytest.param([WORK], [2], "Review it. A. ok B. - ok C. ok D.", id="while the model works"),
        pytest.param([STOP], [2], "Go. They run. Stop. Right.", id="a remark beside one"),
    ],
)  # fmt: skip
def test_what_was_said_on_a_notice_stands_apart_and_is_not_trained_on(
    turns: list[Turn], minutes: list[int], told: str
) -> None:
    conversation = ConversationBuilder()
    for one in turns:
        conversation.add_turn(one, [MONDAY + timedelta(minutes=minute) for minute in minutes])
    words = (m.content + " -" * (m.weight == 0) for m in conversation.close())
    assert " ".join(words).replace("\n\n", "|") == told


def test_a_sessions_notices_count_in_its_line() -> None:
    review = turn("Review it.", said("It runs.", 1), said("It is done.", 3))
    line = line_of(session("s1", review, notices=(MONDAY + timedelta(minutes=2),)))
    assert [m.weight for m in line.messages if m.role == "assistant"] == [1, 0]
    with pytest.raises(InputError, match="a request that is known"):
        line_of(session("s1", turn("", *review.messages, number=0)))


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
