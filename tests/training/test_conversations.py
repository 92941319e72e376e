from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from debrief.sessions.model import ContextText, Intervention, Message, Turn
from debrief.training.conversations import (
    NO_PROMPT,
    NO_RESULT,
    REJECTED,
    TURN_ENDED,
    ConversationBuilder,
    conversation_of,
    is_trained_on,
    persons_words,
)
from debrief.training.formats import validate_line
from debrief.training.given import without_reminder
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
    assert [chat_call.id for chat_call in calls] == ["call00001", "call00002"]
    assert [chat_call.function.arguments for chat_call in calls] == [
        '{"file_path":"a.py"}',
        '{"file_path":"b.py"}',
    ]
    assert [message.tool_call_id for message in messages[3:5]] == ["call00001", "call00002"]


def test_what_the_model_thought_stands_beside_what_it_said() -> None:
    thinking = replace(says("", call()), thinking="Look first.")
    written = says("<think>It counts one too many.</think>\n\nFixed.")
    talk = session("s", turn("Fix it.", thinking, written, replace(says("Done."), thinking="So.")))
    messages = conversation_of(talk).close()
    assert [
        (message.content, message.reasoning_content)
        for message in messages
        if message.role != "tool"
    ] == [
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
    assert answered == [tool_call.id for tool_call in messages[1].tool_calls or ()]
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


NEWS = ContextText(said_by="task", text="<task-notification>\nfailed\n</task-notification>")
UNTOLD = ContextText(said_by="task", text="")
HOOK = ContextText(said_by="hook", text="<system-reminder>\nMind.\n</system-reminder>")
PRINTED = ContextText(said_by="command", text="<bash-stdout>2 errors</bash-stdout>")
REST = ContextText(said_by="program", text="If you need details, read it.", is_behind=True)


def given(answer: Message, *context: ContextText) -> Message:
    return replace(answer, context=context)


def worked(text: str) -> Message:
    return says(text, call())


@pytest.mark.parametrize(
    ("turns", "told"),
    [
        pytest.param([turn("Fix these.", given(says("Done."), PRINTED))], "[P]|Fix these. Done.", id="output of a command before the prompt"),
        pytest.param([turn("Fix these.", given(says("Done."), PRINTED, REST))], "[P]|Fix these.|[R] Done.", id="behind the prompt"),
        pytest.param([turn("Go.", worked("A."), given(worked("B."), REST, NEWS), says("C."))], "Go. A. ok|[R]|[N] B. ok C.", id="behind no prompt"),
        pytest.param([turn("Go.", says("It runs."), given(says("It failed."), NEWS))], "Go. It runs. [N] It failed.", id="a notice when the model was at its end"),
        pytest.param([turn("Go.", says("It runs."), given(says("I see."), UNTOLD))], f"Go. It runs. {NO_PROMPT} I see. -", id="one that is not told"),
        pytest.param([turn("Go.", worked("A."), given(worked("B."), HOOK, NEWS), says("C."))], "Go. A. ok|[H]|[N] B. ok C.", id="while it works, behind the result"),
        pytest.param([turn("Go.", worked("A."), given(worked("B."), UNTOLD), says("C."))], "Go. A. ok B. - ok C.", id="not told while it works"),
        pytest.param([turn("Go.", says(""), given(says(""), HOOK), given(says("Done."), PRINTED))], "[H]|[P]|Go. Done.", id="what came before a message without words"),
        pytest.param([turn("", given(says("Hello."), HOOK), number=0)], f"[H]|{NO_PROMPT} Hello. -", id="a hook alone asks nothing"),
        pytest.param([turn("", given(says("I see."), NEWS), number=0)], "[N] I see.", id="a notice alone is answered"),
        pytest.param([turn("Go."), turn("Well?", given(says("Yes."), HOOK))], "Go.|[H]|Well? Yes.", id="behind an unanswered prompt"),
    ],
)  # fmt: skip
def test_what_no_person_wrote_stands_where_the_model_was_given_it(
    turns: list[Turn], told: str
) -> None:
    messages = talk(*turns)
    short = {
        text.text: f"[{name}]"
        for text, name in ((NEWS, "N"), (HOOK, "H"), (PRINTED, "P"), (REST, "R"))
    }
    words = " ".join(m.content + " -" * (m.weight == 0) for m in messages).replace("\n\n", "|")
    for text, name in short.items():
        words = words.replace(text, name)
    assert words == told
    marked = [m.content[start:end] for m in messages for start, end in m.machine]
    context = [text.text for one in turns for m in one.messages for text in m.context]
    assert marked == list(filter(None, context))


def test_the_persons_words_are_what_is_left_of_a_request() -> None:
    reminder = "<system-reminder>\nUse tabs.\n</system-reminder>\n\n"
    conversation = ConversationBuilder(reminder=reminder)
    conversation.add_turn(turn("Fix it,\n\nplease.", given(says("Ok."), PRINTED, HOOK, REST)))
    asked, _ = conversation.close()
    assert asked.content == (
        f"{reminder}{PRINTED.text}\n\n{HOOK.text}\n\nFix it,\n\nplease.\n\n{REST.text}"
    )
    assert [asked.content[slice(*span)] for span in asked.machine] == [
        *(PRINTED.text, HOOK.text, REST.text)
    ]
    assert without_reminder(persons_words(asked)) == "Fix it,\n\nplease."


def test_a_line_counts_what_no_person_wrote_and_is_valid() -> None:
    line = line_of(session("s1", turn("Go.", worked("A."), given(says("B."), HOOK, NEWS))))
    assert line.metadata.machine_texts == 2
    assert validate_line(encode_line(line)) == []
    assert [m.weight for m in line.messages if m.role == "assistant"] == [UNSET, UNSET]


def test_reminders_stay_in_the_results_that_came_with_them() -> None:
    result = "1 x = 1\n\n<system-reminder>\nTake care.\n</system-reminder>\n"
    messages = talk(turn("Read it.", says("", call("Read", {"file_path": "a"}, result))))
    assert messages[2].content == result
