"""Codex's paginated rollouts: completed items in place of events, pages, records of the tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from debrief.sessions.model import Usage
from debrief.sessions.readers.codex import READER
from tests.sessions.readers.codex_scenario import (
    ID,
    PATCH,
    answered,
    asked,
    called,
    completed,
    counted,
    event,
    item,
    meta,
    numbered,
    prompted,
    read_one,
    read_turn,
    record,
    said,
    spent,
    write,
    wrote,
)
from tests.sessions.readers.content import (
    calls_of,
    deeds_of,
    prompts_of,
    read_all,
    texts_of,
    told_in,
)

REPEATED = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+x\n+y\n*** End Patch"
DIFF = {"/shop/a.py": {"type": "update", "unified_diff": "@@ -1,1 +1,2 @@\n x\n+y\n"}}
OTHER = "019a0000-0000-7000-8000-00000000000f"


def agent(second: float, words: str) -> list[dict[str, Any]]:
    """Return the model's words, as an item and as a response item."""
    content = [{"type": "Text", "text": words}]
    return [completed(second, "AgentMessage", content=content), said(second, "assistant", words)]


def ran(second: float, id: str, code: int, command: str = "make", **more: Any) -> dict[str, Any]:
    fields = {"command": ["bash", "-lc", command], "aggregated_output": "it ran", **more}
    return completed(second, "CommandExecution", id=id, exit_code=code, **fields)


def patched(second: float, id: str, status: str = "completed") -> dict[str, Any]:
    return completed(second, "FileChange", id=id, status=status, changes=DIFF, stdout="", stderr="")


def test_items_tell_what_was_said_how_calls_ended_and_which_lines_really_changed(
    tmp_path: Path,
) -> None:
    session = read_one(
        tmp_path,
        meta(),
        *prompted(1, "fix it"),
        *agent(2, "First the tests."),
        called(2, "exec_command", "c1", cmd="make"),
        ran(3, "c1", 2),
        answered(3, "c1", "Chunk ID: 1\nOutput:\nno"),
        item(4, "custom_tool_call", name="apply_patch", call_id="c2", input=REPEATED),
        patched(5, "c2"),
        item(5, "custom_tool_call_output", call_id="c2", output="Exit code: 0\nSuccess."),
        *agent(6, "Done."),
    )
    assert prompts_of(session) == ["fix it"]
    assert texts_of(session) == ["First the tests.", "", "Done."]
    test, edit = calls_of(session)
    assert (test.status, test.exit_code, test.result) == ("failed", 2, "Chunk ID: 1\nOutput:\nno")
    assert (edit.status, edit.path, edit.estimated) == ("ok", "/shop/a.py", False)
    assert (session.lines_added, session.lines_removed) == (1, 0)


def test_a_failure_that_only_the_item_tells_of_counts(tmp_path: Path) -> None:
    result = {"content": [{"type": "text", "text": "no"}], "isError": True}
    session = read_turn(
        tmp_path,
        called(2, "mcp__docs__search", "c1", q="x"),
        completed(3, "McpToolCall", id="c1", server="docs", tool="search", result=result),
        answered(3, "c1", [{"type": "input_text", "text": "Output:\nno"}]),
        called(4, "apply_patch", "c2", patch=PATCH),
        patched(5, "c2", status="failed"),
        called(6, "load", "c3"),
        completed(7, "DynamicToolCall", id="c3", tool="load", success=False, content_items=[]),
        answered(7, "c3", "away"),
    )
    assert [call.status for call in calls_of(session)] == ["failed", "failed", "ok"]
    assert session.growth == 0


SCRIPT = "await tools.exec_command(…); await tools.apply_patch(…)"


@pytest.mark.parametrize(
    ("codes", "output", "status", "code"),
    [
        ([1, 0], "Script completed\nOutput:\n1 passed", "ok", 0),
        ([0, 1], "Script completed\nOutput:\n1 failed", "failed", 1),
        ([1], "Script failed\nOutput:\nError: no", "failed", 1),
    ],
    ids=["red, then green", "green, then red", "thrown"],
)
def test_what_a_script_ran_and_changed_is_the_scripts_own(
    tmp_path: Path, codes: list[int], output: str, status: str, code: int
) -> None:
    session = read_turn(
        tmp_path,
        item(2, "custom_tool_call", name="exec", call_id="c1", input=SCRIPT),
        patched(3, "exec-1"),
        ran(3, "mine", 9, command="typed by the person", source="user_shell"),
        *(ran(4 + place, f"exec-{place}", each) for place, each in enumerate(codes)),
        item(8, "custom_tool_call_output", call_id="c1", output=output),
    )
    (script,) = calls_of(session)
    assert (script.status, script.exit_code, script.result) == (status, code, output)
    assert (script.path, script.added, session.lines_added) == ("/shop/a.py", 1, 1)


CONTEXTS = [
    "# AGENTS.md instructions for /home/ann/shop\n\n<INSTRUCTIONS>\nbe brief\n</INSTRUCTIONS>",
    "<environment_context>\n  <cwd>/home/ann</cwd>\n</environment_context>",
    "<recommended_plugins>\nHere is a list.\n</recommended_plugins>",
    '<codex_internal_context source="goal">\nContinue.\n</codex_internal_context>',
    '<hook_prompt hook_run_id="stop:0:hooks.json">Once more.</hook_prompt>',
    "<turn_aborted>\nThe user interrupted.\n</turn_aborted>",
    "<user_shell_command>\n<command>\nls\n</command>\n</user_shell_command>",
    "<skill>\n<name>plans</name>\n</skill>",
]


@pytest.mark.parametrize("text", CONTEXTS)
def test_what_codex_itself_says_in_the_users_name_is_no_prompt(tmp_path: Path, text: str) -> None:
    known_by_words = [said(1, "user", text), said(2, "user", "fix it")]
    told = [wrote(1, text, kinds=("generic.context",)), wrote(2, "<skill> is what I call it")]
    for records, prompt in ((known_by_words, "fix it"), (told, "<skill> is what I call it")):
        session = read_one(tmp_path, meta(), *records, said(3, "assistant", "done"))
        assert prompts_of(session) == [prompt]


def test_words_that_the_record_says_are_a_persons_need_no_item(tmp_path: Path) -> None:
    around = '<image name=[Image #1] path="/tmp/a.png">', "", "</image>"
    kinds = ("user.text", "user.image", "user.text", "user.text")
    local = [{"type": "local_image", "path": "/tmp/a.png"}, {"type": "text", "text": "and this?"}]
    session = read_one(
        tmp_path,
        meta(),
        *prompted(1, "go"),
        *agent(2, "ok"),
        wrote(3, *around, "[Image #1] see", kinds=kinds),
        *agent(4, "seen"),
        wrote(5, *around, "[Image #1] and this?", kinds=kinds),
        completed(5, "UserMessage", content=local),
    )
    assert [(turn.prompt, turn.images) for turn in session.turns] == [
        ("go", 0),
        ("[Image #1] see", 1),
        ("and this?", 1),
    ]


def test_an_answer_to_a_question_is_no_prompt_and_counts_once(tmp_path: Path) -> None:
    words = '<send_user_message_question_reply>\n[{"answer":"blue","question":"Which?"}]'
    session = read_turn(tmp_path, said(2, "assistant", "Which?"), *prompted(3, words))
    assert prompts_of(session) == ["go"]
    (deed,) = session.turns[0].interventions
    assert (deed.kind, deed.text) == ("answer", '[{"answer":"blue","question":"Which?"}]')


def test_a_goal_is_the_persons_and_going_on_with_it_is_not(tmp_path: Path) -> None:
    aimed = event(3, "thread_goal_updated", goal={"objective": "all green"})
    session = read_turn(
        tmp_path,
        *agent(2, "ok"),
        aimed,
        item(4, "function_call_output", name="goal_objective", output="all green"),
        wrote(4, CONTEXTS[3], kinds=("goal.internal_context",)),
        *agent(5, "on it"),
        {**aimed, "timestamp": "2026-03-02T10:00:06Z"},
        called(7, "create_goal", "c1", objective="all blue"),
        event(8, "thread_goal_updated", goal={"objective": "all blue"}),
    )
    (turn,) = session.turns
    assert deeds_of(turn) == [("slash_command", "/goal all green")]
    assert (texts_of(session), told_in(session)) == (["ok", "on it"], [("program", CONTEXTS[3])])
    assert session.problems == ()


def test_what_a_reviewer_did_is_told_by_its_own_rollout(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "Review the current code changes"}]
    write(
        tmp_path,
        [
            meta(),
            *prompted(1, "write it"),
            called(2, "exec_command", "c1", cmd="make"),
            completed(3, "EnteredReviewMode", user_facing_hint="current changes"),
            completed(4, "UserMessage", OTHER, content=content),
            completed(4, "FileChange", OTHER, id="c1", status="completed", changes=DIFF),
            completed(5, "ExitedReviewMode"),
            *prompted(6, "fix the findings"),
        ],
    )
    reviewer = meta(3, id=OTHER, parent_thread_id=ID, source={"subagent": "review"})
    write(tmp_path, [reviewer, *agent(4, "looks fine")], name="reviewer")
    (session,) = read_all(READER, tmp_path)
    assert prompts_of(session) == ["write it", "fix the findings"]
    assert (session.growth, session.slash_commands) == (0, 1)
    assert [(each.id, each.type) for each in session.subagents] == [(OTHER, "review")]


def test_ids_that_were_masked_to_one_word_lose_no_call_and_no_token(tmp_path: Path) -> None:
    def round_of(second: int, id: str, thread: str) -> list[dict[str, Any]]:
        total, last = (second * 50, 0, 0, second), (100, 0, 0, 2)
        return [
            called(second, "exec_command", id, cmd=f"make {second}"),
            *spent(second, total, last),
            completed(second, "CommandExecution", thread, id=id, exit_code=second // 4),
            answered(second + 1, id, f"Output:\n{second}"),
        ]

    for name, masked in (("plain", False), ("masked", True)):
        rounds = [
            round_of(each, "X" if masked else str(each), "X" if masked else ID)
            for each in (2, 4, 6)
        ]
        folder = tmp_path / name
        folder.mkdir()
        session = read_turn(folder, *rounds[0], *rounds[1], *rounds[2])
        found = [(call.exit_code, call.result) for call in calls_of(session)]
        assert found == [(0, "Output:\n2"), (1, "Output:\n4"), (1, "Output:\n6")]
        assert (session.usage, session.api_calls) == (Usage(300, 6), 3)


def test_tokens_are_counted_by_call_whichever_records_tell_of_them(tmp_path: Path) -> None:
    session = read_turn(
        tmp_path,
        *agent(2, "a"),
        counted(3, (100, 60, 10), (100, 60, 10)),
        *agent(4, "b"),
        *spent(5, (300, 150, 20, 40), (200, 90, 20, 30)),
    )
    assert session.usage == Usage(130, 40, 20, 150)
    assert (session.api_calls, session.reported_usage) == (2, session.usage)
    assert [each.usage.cache_write for each in session.turns[0].messages] == [0, 20]


def test_a_total_that_grew_by_more_than_was_told_is_a_problem(tmp_path: Path) -> None:
    session = read_turn(
        tmp_path,
        *agent(2, "a"),
        counted(3, (100, 0, 10), (100, 0, 10)),
        *agent(4, "b"),
        counted(5, (900, 0, 90), (300, 0, 30)),
    )
    assert (session.usage, session.reported_usage) == (Usage(400, 40), Usage(900, 90))
    assert "own total" in session.problems[0].reason


@pytest.mark.parametrize("is_copied", [True, False])
def test_a_fork_counts_no_call_of_the_history_it_begins_with(
    tmp_path: Path, is_copied: bool
) -> None:
    base = {"thread_id": ID, "end_ordinal_exclusive": 4, "end_byte_offset": 9}
    fork = meta(0, id=OTHER, forked_from_id=ID, history_base=None if is_copied else base)
    copy = [
        meta(0.01),
        *asked(0.02, "the parent's prompt"),
        said(0.03, "assistant", "the parent's answer"),
        counted(0.04, (1000, 0, 500), (400, 0, 200)),
    ]
    session = read_one(
        tmp_path,
        fork,
        *(copy if is_copied else []),
        *asked(31, "another way"),
        counted(32, (1000, 0, 500), (400, 0, 200)) if is_copied else event(32, "task_started"),
        said(33, "assistant", "yes"),
        counted(34, (1100, 0, 520), (100, 0, 20)),
    )
    copied = ["the parent's prompt"] * is_copied
    assert (session.id, prompts_of(session)) == (OTHER, [*copied, "another way"])
    assert (session.relative_of, session.prompt_count) == (ID, 1)
    assert (session.usage, session.api_calls) == (Usage(100, 20), 1)
    assert session.reported_usage == session.usage


def test_a_fork_has_the_history_that_only_its_originals_rollout_holds(tmp_path: Path) -> None:
    house = "# AGENTS.md instructions for /shop\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>"
    records = [meta(), said(1, "user", house), *prompted(1, "one"), *agent(2, "a")]
    until = len(records)
    records += [*prompted(3, "left by the fork"), *agent(4, "b")]
    base = {"thread_id": ID, "end_ordinal_exclusive": until, "end_byte_offset": 900}
    fork = meta(60, id=OTHER, forked_from_id=ID, history_base=base)
    days = [tmp_path / "2026/03/02", tmp_path / "2026/03/03"]
    original = write(days[0], numbered(records))
    own = [fork, *prompted(61, "another way"), *agent(62, "c")]
    write(days[1], numbered(own, until), f"rollout-{OTHER}")
    _, session = read_all(READER, tmp_path)
    assert prompts_of(session) == ["one", "another way"]
    assert texts_of(session) == ["a", "c"]
    assert [turn.origin for turn in session.turns] == ["inherited", "prompt"]
    assert [given.text for given in session.instructions or ()] == ["Be brief."]
    assert (session.relative_of, session.problems) == (ID, ())

    original.unlink()
    (alone,) = read_all(READER, tmp_path)
    assert (alone.relative_of, prompts_of(alone)) == (ID, ["another way"])
    assert f"forked from, {ID}, is not here" in alone.problems[0].reason


def test_a_subagent_that_was_given_the_history_begins_where_its_rollout_says(
    tmp_path: Path,
) -> None:
    spawn = {"thread_spawn": {"parent_thread_id": ID}}
    child = meta(5, id="kid", source={"subagent": spawn}, subagent_history_start_ordinal=4)
    task = [{"type": "input_text", "text": "Message Type: NEW_TASK\nPayload:\ncount them"}]
    own = [
        item(5, "agent_message", content=task),
        *agent(5, "three"),
        *spent(6, *[(9, 0, 0, 4)] * 2),
    ]
    write(tmp_path, numbered([child, meta(5), *prompted(5, "go"), *own]), name="kid")
    write(
        tmp_path,
        [
            meta(),
            *prompted(1, "go"),
            called(2, "collaboration__spawn_agent", "c1", task_name="counter"),
            completed(3, "SubAgentActivity", id="c1", agent_thread_id="kid"),
            *spent(4, *[(20, 0, 0, 8)] * 2),
        ],
    )
    (session,) = read_all(READER, tmp_path)
    (subagent,) = session.subagents
    assert (subagent.prompt, subagent.call_id) == ("count them", "c1")
    assert [message.text for message in subagent.messages] == ["three"]
    assert (session.usage, session.reported_usage) == (Usage(29, 12), Usage(29, 12))


def page(first: int) -> dict[str, Any]:
    base = {"thread_id": ID, "end_ordinal_exclusive": first, "end_byte_offset": 9}
    return meta(10, history_base=base)


def test_a_thread_that_was_taken_back_and_went_on_in_another_file_is_one_session(
    tmp_path: Path,
) -> None:
    begun = [meta(), *prompted(1, "one"), *agent(2, "a"), *spent(2, *[(100, 0, 0, 10)] * 2)]
    cut = len(begun)
    more = [*prompted(3, "two"), *agent(4, "b"), *spent(4, (220, 0, 0, 30), (120, 0, 0, 20))]
    write(tmp_path, numbered([*begun, *more]))
    again = [*prompted(11, "three"), *agent(12, "c"), *spent(12, (230, 0, 0, 40), (130, 0, 0, 30))]
    later = write(tmp_path, numbered([page(cut), *again], cut), name=f"rollout-{ID}_{OTHER}")
    (session,) = read_all(READER, tmp_path)
    found = [(turn.prompt, turn.rewound) for turn in session.turns]
    assert found == [("one", False), ("two", True), ("three", False)]
    assert (session.usage, session.reported_usage) == (Usage(350, 60), Usage(350, 60))
    assert [Path(each.path) for each in session.transcripts][1:] == [later]

    (tmp_path / f"rollout-{ID}.jsonl").unlink()
    (alone,) = read_all(READER, tmp_path)
    assert (alone.id, prompts_of(alone)) == (f"{ID}@{cut}", ["three"])


def test_turns_that_were_rolled_back_are_told(tmp_path: Path) -> None:
    turns = [each for second, words in enumerate("abc", 1) for each in asked(second, words)]
    rolled = event(5, "thread_rolled_back", num_turns=2)
    session = read_one(tmp_path, meta(), *turns, rolled, *asked(6, "d"))
    assert [turn.rewound for turn in session.turns] == [False, True, True, False]


def test_a_compactions_summary_is_what_the_next_message_was_given_and_no_answer(
    tmp_path: Path,
) -> None:
    session = read_turn(
        tmp_path,
        *agent(2, "done"),
        *spent(3, *[(100, 0, 0, 10)] * 2),
        said(4, "assistant", "The shop is fixed."),
        *spent(5, (300, 0, 0, 40), (200, 0, 0, 30)),
        record(6, "compacted", {"message": "Another model began:\nThe shop is fixed."}),
        *prompted(7, "and now?"),
        *agent(8, "on"),
    )
    assert texts_of(session) == ["done", "on"]
    (message,) = session.turns[1].messages
    assert message.summary == "Another model began:\nThe shop is fixed."
    assert (session.usage, session.compactions) == (Usage(300, 40), 1)


def test_what_the_model_was_sent_is_kept(tmp_path: Path) -> None:
    sent = "# AGENTS.md instructions for /shop\n\n<INSTRUCTIONS>\nbe brief\n</INSTRUCTIONS>"
    tool = {"type": "function", "name": "look", "parameters": {"type": "object"}}
    session = read_one(
        tmp_path,
        meta(base_instructions={"text": "You are an agent."}),
        wrote(1, sent, kinds=("agents_md.instructions",)),
        item(1, "additional_tools", tools=[tool]),
        *prompted(2, "go"),
        wrote(3, sent, kinds=("agents_md.instructions",)),
        said(3, "user", "<user_instructions>\n\nbe kind\n\n</user_instructions>"),
    )
    assert session.system_prompt == "You are an agent."
    assert [(each.path, each.text, each.place) for each in session.instructions or ()] == [
        ("/shop/AGENTS.md", "be brief", "message"),
        ("AGENTS.md", "be kind", "message"),
    ]
    assert [each.name for each in session.declared_tools or ()] == ["look"]
    assert read_turn(tmp_path).system_prompt is UNSET
