"""What a person did in a Claude Code session: prompts, commands, refusals, answers."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.readers.content import deeds_of, prompts_of, told_in
from tests.sessions.scenario import Log

NOT_PROMPTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "a meta record": ("Do this", {"isMeta": True}),
    "a compaction's summary": ("Summary of what was", {"isCompactSummary": True}),
    "a record for the transcript only": ("Do this", {"isVisibleInTranscriptOnly": True}),
    "a subagent's prompt": ("Do this", {"isSidechain": True}),
    "an interruption": ("[Request interrupted by user]", {}),
    "an interruption in a block": ([{"type": "text", "text": "[Request interrupted by user]"}], {}),
    "a command's output": ("<local-command-stdout>ok</local-command-stdout>", {}),
    "a shell command's output": ("<bash-stdout>ok</bash-stdout><bash-stderr></bash-stderr>", {}),
    "a caveat": ("<local-command-caveat>Caveat: …</local-command-caveat>", {}),
    "a notification": ("<task-notification>\n<status>completed</status>", {}),
    "a teammate's message": ('<teammate-message teammate_id="bob">hi</teammate-message>', {}),
    "a reminder": ("<system-reminder>Be brief.</system-reminder>", {}),
    "a slash command": ("<command-name>/review</command-name>", {}),
    "an older slash command": (
        "<command-message>review</command-message>\n<command-name>/review</command-name>",
        {},
    ),
    "nothing": ("  \n", {}),
    "no content": (None, {}),
    "a tool's result": ([{"type": "tool_result", "tool_use_id": "c9", "content": "ok"}], {}),
}


@pytest.mark.parametrize("case", NOT_PROMPTS)
def test_what_no_person_asked_is_not_a_turn(tmp_path: Path, case: str) -> None:
    content, fields = NOT_PROMPTS[case]
    log = Log("The only prompt")
    log.user(content, **fields)
    assert prompts_of(log.read(tmp_path)) == ["The only prompt"]


def test_text_in_blocks_and_images_are_turns(tmp_path: Path) -> None:
    log = Log()
    log.user([{"type": "text", "text": "Look:"}, {"type": "image", "source": {}}])
    log.user([{"type": "image", "source": {}}, {"type": "image", "source": {}}])
    log.user("<ide_selection>x = 1</ide_selection> explain")
    turns = log.read(tmp_path).turns
    assert [(turn.number, turn.prompt, turn.images) for turn in turns] == [
        (1, "Look:", 1),
        (2, "", 2),
        (3, "<ide_selection>x = 1</ide_selection> explain", 0),
    ]


OPENED = "<ide_opened_file>The user opened the file a.py in the IDE.</ide_opened_file>"
REMINDED = "<system-reminder>\nBe brief.\n</system-reminder>"
PLAN = "Implement the following plan:\n\n# Retry\n\n1. Wait."
WHERE = (
    "\n\n\nIf you need specific details from before exiting plan mode (like error messages), "
    "read the full transcript at: /home/ann/.claude/projects/shop/a b.jsonl"
)
SELECTED = "<ide_selection>x = 1</ide_selection>"


@pytest.mark.parametrize(
    ("texts", "prompt"),
    [
        ([OPENED, "explain this"], "explain this"),
        ([f"{OPENED}\n{REMINDED}\nexplain this"], "explain this"),
        ([REMINDED, OPENED, "explain this"], "explain this"),
        ([OPENED, SELECTED, "explain this"], f"{SELECTED}\nexplain this"),
        ([OPENED], OPENED),
        (["<b>explain</b>", OPENED], "<b>explain</b>"),
        ([f"{PLAN}{WHERE}"], PLAN),
        ([f"{PLAN}{WHERE}\n\n## Notes"], f"{PLAN}{WHERE}\n\n## Notes"),
    ],
    ids=[
        "a block",
        "in one text",
        "several",
        "a selection",
        "nothing else",
        "behind",
        "an approved plan",
        "a plan that tells of one",
    ],
)
def test_what_the_program_tells_of_itself_is_no_part_of_a_prompt(
    tmp_path: Path, texts: list[str], prompt: str
) -> None:
    log = Log()
    log.user([{"type": "text", "text": text} for text in texts])
    assert prompts_of(log.read(tmp_path)) == [prompt]


def test_where_the_transcript_of_a_plan_is_was_told_behind_the_plan(tmp_path: Path) -> None:
    log = Log(f"{PLAN}{WHERE}")
    log.says("Going.")
    session = log.read(tmp_path)
    assert told_in(session) == [("program", WHERE.strip())]
    assert [each.is_behind for each in session.turns[0].messages[0].context] == [True]


def test_words_beside_a_result_are_a_remark(tmp_path: Path) -> None:
    log = Log("Go")
    log.calls("c1", "Bash", command="gh api user")
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": "ann"}
    record = log.user([answer, {"type": "text", "text": REMINDED + "\nmy name there is ann2"}])
    log.says("Thanks.")
    (turn,) = log.read(tmp_path).turns
    assert [call.result for call in turn.messages[0].calls] == ["ann"]
    (remark,) = turn.interventions
    assert (remark.kind, remark.text) == ("remark", "my name there is ann2")
    assert remark.at is not None
    assert record["timestamp"] == remark.at.isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (REMINDED, {}),
        ("[Request interrupted by user for tool use]", {}),
        ("Do this", {"isMeta": True}),
        ("Do this", {"isSidechain": True}),
    ],
)
def test_what_no_person_said_beside_a_result_is_no_remark(
    tmp_path: Path, text: str, fields: dict[str, Any]
) -> None:
    log = Log("Go")
    log.calls("c1", "Bash", command="ls")
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": "a.py"}
    log.user([answer, {"type": "text", "text": text}], **fields)
    (turn,) = log.read(tmp_path).turns
    assert (turn.prompt, turn.interventions) == ("Go", ())


NOTICE = "<task-notification>\n<status>completed</status>\n</task-notification>"


def test_notices_of_work_in_the_background_stand_before_the_answer_to_them(tmp_path: Path) -> None:
    log = Log("Go")
    log.says("Running.")
    first = log.user(NOTICE)
    log.user(NOTICE, isSidechain=True)
    attachment = {"type": "queued_command", "prompt": NOTICE, "commandMode": "task-notification"}
    log.add("attachment", attachment=attachment)
    log.says("Both are done.")
    log.user(NOTICE)
    session = log.read(tmp_path)
    assert prompts_of(session) == ["Go"]
    assert told_in(session) == [("task", NOTICE)] * 2
    context = session.turns[0].messages[1].context
    assert context[0].at == datetime.fromisoformat(first["timestamp"])


def ended(call: str, status: str, *, summary: str = "", result: str = "", task: str = "b1") -> str:
    parts = {"task-id": task, "tool-use-id": call, "status": status, "summary": summary}
    told = parts | {"result": result}
    inner = "\n".join(f"<{name}>{text}</{name}>" for name, text in told.items() if text)
    return f"<task-notification>\n{inner}\n</task-notification>"


@pytest.mark.parametrize(
    ("notice", "told"),
    [
        (ended("c1", "failed", result="API Error: 400"), ("failed", None, "API Error: 400")),
        (ended("c1", "completed", result="One function."), ("ok", None, "One function.")),
        (ended("", "failed", task="b7"), ("failed", None, "")),
        (ended("c1", "failed", summary="It failed with exit code 3"), ("failed", 3, "")),
        (ended("c1", "completed", summary="It completed (exit code 0)"), ("ok", 0, "")),
        (ended("c1", "killed"), ("ok", None, "")),
        (ended("c9", "failed"), ("ok", None, "")),
        ("<task-notification>failed</task-notification>", ("ok", None, "")),
    ],
    ids=[
        *("a subagent", "one that answers", "by its task", "a command", "one that passes"),
        *("one that was ended", "another's", "of no form"),
    ],
)
def test_a_notice_settles_the_call_that_began_the_work(
    tmp_path: Path, notice: str, told: tuple[Any, ...]
) -> None:
    log = Log("Count")
    log.calls("c1", "Agent", prompt="Count.")
    log.result("c1", "Async agent launched successfully.", outcome={"agentId": "b7"})
    log.user(notice, origin={"kind": "task-notification"})
    log.says("I see.")
    session = log.read(tmp_path)
    call = session.turns[0].messages[0].calls[0]
    assert (call.status, call.exit_code, call.late_result) == told
    assert call.result == "Async agent launched successfully."
    assert told_in(session) == [("task", notice)]


def test_what_a_command_of_the_persons_printed_stands_before_the_prompt_about_it(
    tmp_path: Path,
) -> None:
    asked, printed = "<bash-input>ls</bash-input>", "<bash-stdout>a.py</bash-stdout>"
    log = Log()
    log.user(asked)
    log.user(printed)
    log.user("<command-name>/model</command-name>")
    log.user("<local-command-stdout>Set model to opus</local-command-stdout>")
    log.user("please fix these")
    log.says("Which?")
    log.add("system", subtype="local_command", content="<local-command-stdout>5 %")
    log.user("all")
    log.says("Good.")
    session = log.read(tmp_path)
    assert prompts_of(session) == ["please fix these", "all"]
    model = "<command-name>/model</command-name>"
    set_to = "<local-command-stdout>Set model to opus</local-command-stdout>"
    texts = [asked, printed, model, set_to, "<local-command-stdout>5 %"]
    assert told_in(session) == [("command", text) for text in texts]


def test_what_a_skill_says_stands_behind_the_call_of_it(tmp_path: Path) -> None:
    log = Log("Use it")
    log.calls("c1", "Skill", skill="house")
    log.result("c1", "Launching skill: house")
    log.user("Base directory for this skill: /s\n\nAlways add.", isMeta=True)
    log.says("Added.")
    (turn,) = log.read(tmp_path).turns
    (given,) = turn.messages[1].context
    assert given.text.endswith("Always add.")


def reminder(text: str) -> str:
    return f"<system-reminder>\n{text}\n</system-reminder>"


ATTACHED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a hook's context": (
        {"type": "hook_additional_context", "hookName": "PostToolUse:Read", "content": ["Mind."]},
        "hook",
        "PostToolUse:Read hook additional context: Mind.",
    ),
    "a hook's output": (
        {
            **{"type": "hook_success", "hookName": "SessionStart:startup"},
            **{"hookEvent": "SessionStart", "content": "Hello.", "stdout": "Hello.\n"},
        },
        "hook",
        "SessionStart:startup hook success: Hello.",
    ),
    "skills": (
        {"type": "skill_listing", "content": "- house: Rules."},
        "program",
        "The following skills are available for use with the Skill tool:\n\n- house: Rules.",
    ),
    "agents": (
        {"type": "agent_listing_delta", "isInitial": True, "addedLines": ["- a: A.", "- b: B."]},
        "program",
        "Available agent types for the Agent tool:\n- a: A.\n- b: B.",
    ),
    "a date": (
        {"type": "date_change", "newDate": "2026-01-06"},
        "program",
        "The date has changed. Today's date is now 2026-01-06.",
    ),
}


@pytest.mark.parametrize("attached", ATTACHED.values(), ids=ATTACHED)
def test_what_is_attached_comes_first_in_the_words_of_the_request(
    tmp_path: Path, attached: tuple[dict[str, Any], str, str]
) -> None:
    attachment, who, text = attached
    log = Log()
    log.user("<bash-input>ls</bash-input>")
    log.user("Go")
    log.add("attachment", attachment=attachment)
    log.says("Going.")
    told = [(who, reminder(text)), ("command", "<bash-input>ls</bash-input>")]
    assert told_in(log.read(tmp_path)) == told


def test_a_note_of_an_edited_file_holds_what_changed(tmp_path: Path) -> None:
    note = {"type": "edited_text_file", "filename": "/a/b.py", "snippet": "1\tx = 2"}
    found = {"range": {"start": {"line": 4, "character": 8}}, "message": "undefined: fmt"}
    files = [{"uri": "/a/b.go", "diagnostics": [{**found, "severity": "Error", "source": "go"}]}]
    log = Log("Go")
    log.add("attachment", attachment=note)
    log.add("attachment", attachment={"type": "diagnostics", "files": files})
    log.says("Going.")
    (_, edited), (_, problems) = told_in(log.read(tmp_path))
    assert "Note: /a/b.py was modified" in edited
    assert "(shown with line numbers):\n1\tx = 2\n" in edited
    assert "b.go:\n  ✘ [Line 5:9] undefined: fmt (go)" in problems


@pytest.mark.parametrize(
    "attachment",
    [
        {"type": "hook_success", "hookEvent": "PostToolUse", "content": "Ran."},
        {"type": "hook_success", "hookEvent": "SessionStart", "content": ""},
        {"type": "task_reminder", "content": [], "itemCount": 0},
        {"type": "hook_additional_context", "content": 7},
        {"type": ["?"], "content": "x"},
        {"type": "diagnostics", "files": [{"uri": 7}]},
    ],
)
def test_what_no_request_held_or_no_file_holds_is_not_told(
    tmp_path: Path, attachment: dict[str, Any]
) -> None:
    log = Log("Go")
    log.add("attachment", attachment=attachment)
    log.says("Going.")
    session = log.read(tmp_path)
    assert (told_in(session), session.problems) == ([], ())


REFUSAL = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it "
    "was a file edit, the new_string was NOT written to the file). "
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (REFUSAL + "STOP what you are doing and wait for the user.", ""),
        (REFUSAL + "To tell you how to proceed, the user said:\nUse pnpm\nhere", "Use pnpm\nhere"),
        (
            REFUSAL + "The user provided the following reason for the rejection:  use pnpm",
            "use pnpm",
        ),
        (
            REFUSAL + "To tell you how to proceed, the user said:\nno\n\n"
            "Note: The user's next message may contain a correction.",
            "no",
        ),
        ("The user doesn't want to take this action right now. STOP what you are doing.", ""),
    ],
    ids=["without words", "with words", "with a reason", "with a note", "older wording"],
)
def test_a_rejected_call_is_an_intervention_with_its_words(
    tmp_path: Path, text: str, words: str
) -> None:
    log = Log("Go")
    log.calls("c1", "Bash", command="npm i")
    log.result("c1", text, outcome="User rejected tool use", error=True)
    log.user([{"type": "text", "text": "[Request interrupted by user for tool use]"}])
    log.says("What then?")
    session = log.read(tmp_path)
    (turn,) = session.turns
    assert turn.messages[0].calls[0].status == "rejected"
    assert deeds_of(turn) == [("rejection", words)]
    assert told_in(session) == [("program", "[Request interrupted by user for tool use]")]


def test_interruptions_and_answers_to_questions_are_interventions(tmp_path: Path) -> None:
    log = Log("Go")
    log.calls("c1", "AskUserQuestion", questions=[{"question": "Which?"}])
    log.result("c1", "User has answered …", outcome={"answers": {"Which?": "The second"}})
    log.says("Going")
    log.user([{"type": "text", "text": "[Request interrupted by user]"}])
    log.user("Stop there")
    log.says("Yes.")
    session = log.read(tmp_path)
    assert deeds_of(session.turns[0]) == [("answer", "Which?: The second"), ("interruption", "")]
    assert told_in(session) == [("program", "[Request interrupted by user]")]


def queued(log: Log, text: str) -> None:
    attachment = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
    log.add("attachment", attachment=attachment)


def test_a_prompt_that_exists_only_in_the_queue_is_a_turn(tmp_path: Path) -> None:
    log = Log("Go")
    queued(log, "And the tests, please")
    log.says("Both done.")
    session = log.read(tmp_path)
    found = [(turn.number, turn.origin, turn.prompt) for turn in session.turns]
    assert found == [(1, "prompt", "Go"), (2, "queued", "And the tests, please")]
    assert session.turns[1].messages[0].text == "Both done."


def test_a_queued_prompt_that_is_repeated_later_is_one_turn(tmp_path: Path) -> None:
    log = Log("Go")
    queued(log, "And the tests, please")
    log.says("Going on.")
    log.user("And the tests, please")
    session = log.read(tmp_path)
    assert [(turn.number, turn.origin) for turn in session.turns] == [(1, "prompt"), (2, "prompt")]
    assert session.turns[0].messages[0].text == "Going on."


@pytest.mark.parametrize(
    ("text", "said", "turns"),
    [
        (NOTICE, {"origin": {"kind": "human"}}, 2),
        ("[Request interrupted by user] is what I saw", {"promptSource": "typed"}, 2),
        ("Caveat: The messages below were mine", {"promptSource": "queued"}, 2),
        ("The build is done.", {"origin": {"kind": "task-notification"}}, 1),
        ("Look at my branch.", {"origin": {"kind": "peer"}}, 1),
        ("The build is done.", {"promptSource": "system"}, 1),
        ("Look at my branch.", {"origin": {"kind": "human"}, "promptSource": "typed"}, 2),
        ("Look at my branch.", {"origin": "?", "promptSource": 7}, 2),
        (NOTICE, {"promptSource": "sdk"}, 1),
    ],
)
def test_who_speaks_is_what_the_program_says_and_else_a_guess(
    tmp_path: Path, text: str, said: dict[str, Any], turns: int
) -> None:
    log = Log("Go")
    log.user(text, **said)
    log.says("I see.")
    session = log.read(tmp_path)
    assert prompts_of(session) == ["Go", text][:turns]
    assert [each for _, each in told_in(session)] == [text] * (turns == 1)


@pytest.mark.parametrize("kind", ["human", "peer"])
def test_a_queued_text_is_a_prompt_when_a_person_sent_it(tmp_path: Path, kind: str) -> None:
    attachment = {"type": "queued_command", "prompt": NOTICE, "commandMode": "prompt"}
    log = Log("Go")
    log.add("attachment", attachment={**attachment, "origin": {"kind": kind}})
    log.add("attachment", attachment={**attachment, "prompt": "Go on", "isMeta": True})
    assert prompts_of(log.read(tmp_path)) == ["Go", NOTICE][: 2 if kind == "human" else 1]


def refused(log: Log, *ids: str, **said: Any) -> None:
    blocks = [{"type": "tool_use", "id": id, "name": "Bash", "input": {}} for id in ids]
    log.says(*blocks, id="m1")
    for id in ids:
        log.result(id, REFUSAL, outcome="User rejected tool use", error=True, **said)


def test_escape_on_a_running_call_interrupts_and_refuses_nothing(tmp_path: Path) -> None:
    log = Log("Go")
    refused(log, "c1", "c2", toolDenialKind="user-rejected")
    notice = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
    log.user(notice, interruptedMessageId="m1")
    (turn,) = log.read(tmp_path).turns
    assert [call.status for call in turn.messages[0].calls] == ["failed", "failed"]
    assert deeds_of(turn) == [("interruption", "")]


@pytest.mark.parametrize(
    ("said", "status", "deeds"),
    [
        ({"userFeedback": "use pnpm"}, "rejected", [("rejection", "use pnpm")]),
        ({"toolDenialKind": "user-rejected"}, "rejected", [("rejection", "")]),
        ({"toolDenialKind": "interrupted"}, "failed", []),
        ({"toolDenialKind": "permission-rule"}, "failed", []),
    ],
)
def test_why_a_call_did_not_run_is_what_the_program_says(
    tmp_path: Path, said: dict[str, Any], status: str, deeds: list[tuple[str, str]]
) -> None:
    log = Log("Go")
    refused(log, "c1", **said)
    (turn,) = log.read(tmp_path).turns
    assert turn.messages[0].calls[0].status == status
    assert deeds_of(turn) == deeds


def test_a_slash_command_has_the_text_that_the_model_was_given_for_it(tmp_path: Path) -> None:
    log = Log("Go")
    log.user("<command-name>/fix</command-name>\n<command-args>12</command-args>")
    log.user([{"type": "text", "text": "Mend issue 12.\n"}], isMeta=True)
    log.user("<local-command-caveat>Caveat: …</local-command-caveat>", isMeta=True)
    log.user("<command-name>/clear</command-name>")
    log.user("<local-command-stdout></local-command-stdout>", isMeta=True)
    (turn,) = log.read(tmp_path).turns
    assert [(i.kind, i.text, i.expansion) for i in turn.interventions] == [
        ("slash_command", "/fix 12", "Mend issue 12."),
        ("slash_command", "/clear", ""),
    ]


def test_a_compactions_summary_is_what_the_next_message_was_given(tmp_path: Path) -> None:
    log = Log("Go")
    log.says("One.")
    log.add("system", subtype="compact_boundary", parentUuid=None)
    log.user("So far: one.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    log.says("Two.")
    log.says("Three.")
    session = log.read(tmp_path)
    (turn,) = session.turns
    assert [message.summary for message in turn.messages] == ["", "So far: one.", ""]
    assert (session.compactions, turn.compacted) == (1, True)


def test_what_was_sent_to_the_letter_is_kept_where_the_file_holds_it(tmp_path: Path) -> None:
    def sent(*content: Any, purpose: str = "repl_main_thread") -> None:
        message = {"role": "user", "content": list(content)}
        log.add("api-request-blob", message=message)
        log.add("api-request", querySource=purpose, shapeHash="-")

    def text(words: str) -> dict[str, str]:
        return {"type": "text", "text": words}

    hook = "SessionStart hook additional context: Hi."
    budget, skills = reminder("9 tokens left"), reminder("Newer words: - house: Rules.")
    prompts = reminder("As you answer:\n# claudeMd\nUse tabs.")
    log = Log("Go")
    log.add("attachment", attachment={"type": "skill_listing", "content": "- house: Rules."})
    listed = {"type": "hook_additional_context", "hookName": "SessionStart", "content": ["Hi."]}
    log.add("attachment", attachment=listed)
    sent(text("Name it."), text(reminder("Of a title.")), purpose="generate_session_title")
    sent(text(skills), text(f"{reminder(hook)}\n"), text(prompts), text(budget), text("Go"))
    log.calls("c1", "Bash", command="ls")
    log.result("c1", "a.py\t")
    sent({"type": "tool_result", "tool_use_id": "c1", "content": f"a.py\n\n{budget}"})
    log.says("Gone.")
    session = log.read(tmp_path)
    asked = [("program", skills), ("hook", reminder(hook)), ("program", budget)]
    assert told_in(session) == [*asked, ("program", budget)]
    assert session.turns[0].messages[0].calls[0].result == "a.py\t"
