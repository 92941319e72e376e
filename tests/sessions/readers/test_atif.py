"""Trajectories in ATIF, as the agents that write it really do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session, Usage
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import BrokenTranscript
from debrief.sessions.readers.files import walk
from debrief.sessions.sources import read_week, scan
from tests.sessions.readers.content import calls_of, prompts_of, read_all, texts_of

ID = "7f3c9a52-6c1e-4c58-9f0a-5b8f4a1f3c77"
PROMPT: dict[str, Any] = {"source": "user", "message": "Fix it."}


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    agent = {"name": "terminus-2", "version": "2.0.0", "model_name": "glm-5"}
    head = {"schema_version": "ATIF-v1.6", "session_id": ID, "agent": agent}
    return {**head, "steps": numbered, **more}


def said(text: str, *names: str, second: int = 1, **more: Any) -> dict[str, Any]:
    """Return a step of the agent's with calls, whose ids are their names."""
    calls = [{"tool_call_id": name, "function_name": name, "arguments": {}} for name in names]
    told = {"timestamp": f"2026-03-02T10:00:{second:02d}Z", "source": "agent", "message": text}
    return {**told, **({"tool_calls": calls} if calls else {}), **more}


def results(*contents: Any, **of_first: Any) -> dict[str, Any]:
    told = [{"content": content} for content in contents]
    told[0].update(of_first)
    return {"observation": {"results": told}}


def tokens(prompt: int, output: int, cached: int = 0, **extra: int) -> dict[str, Any]:
    counts = {"prompt_tokens": prompt, "completion_tokens": output, "cached_tokens": cached}
    return {"metrics": {**counts, "extra": extra}}


def read(folder: Path, *documents: dict[str, Any]) -> Session:
    for number, document in enumerate(documents):
        (folder / f"{number}.json").write_text(json.dumps(document, indent=1))
    (session,) = read_all(READERS["atif"], folder)
    return session


def test_prompt_tokens_have_the_cached_ones_unless_there_are_more_of_these(tmp_path: Path) -> None:
    session = read(tmp_path, trajectory(PROMPT, said("a", **tokens(900, 5, 700, **_WROTE))))
    assert session.usage == Usage(100, 5, 100, 700)
    apart = trajectory(
        PROMPT,
        said("a", **tokens(900, 5, 700, **_WROTE)),
        said("b", second=2, **tokens(20, 5, 1600)),
        final_metrics={"total_prompt_tokens": 920, "total_completion_tokens": 10}
        | {"total_cached_tokens": 2300},
    )
    session = read(tmp_path, apart)
    assert session.usage == session.reported_usage == Usage(920, 10, 100, 2300)
    assert session.problems == ()


_WROTE = {"cache_creation_input_tokens": 100}


def test_totals_count_where_steps_tell_no_tokens_and_are_held_against_those_that_do(
    tmp_path: Path,
) -> None:
    totals = {"total_prompt_tokens": 70, "total_completion_tokens": 9}
    session = read(tmp_path, trajectory(PROMPT, said("a"), final_metrics=totals))
    assert session.usage == Usage(70, 9)
    one = trajectory(PROMPT, said("a", **tokens(60, 9)), final_metrics=totals)
    session = read(tmp_path, one)
    assert session.usage == Usage(60, 9)
    assert "own total of its tokens is 70, 9, 0, 0" in session.problems[-1].reason


def test_a_step_that_was_recorded_twice_counts_once(tmp_path: Path) -> None:
    step = said("Look.", "exec", **tokens(10, 1))
    answer = {**said("(cut)", **results("(cut)")), "extra": {"tool_call_id": "exec"}}
    session = read(tmp_path, trajectory(PROMPT, step, answer, step, answer))
    assert (session.usage, session.api_calls) == (Usage(10, 1), 1)
    assert [call.result for call in calls_of(session)] == ["(cut)"]


def test_results_without_ids_answer_the_calls_in_their_order_and_a_screen_the_last(
    tmp_path: Path,
) -> None:
    session = read(
        tmp_path,
        trajectory(
            PROMPT,
            said("Both.", "one", "two", **results("1", "2")),
            said("Typed.", "keys", "more", second=2, **results("screen")),
            said("Later.", "slow", second=3),
            said("", second=4, **results("done")),
            said("More.", "some", second=5, **results("3", "4")),
            said("Lost.", second=6, **results("x", source_call_id="nobody")),
        ),
    )
    found = [(call.name, call.result, call.status) for call in calls_of(session)]
    assert found == [
        ("one", "1", "ok"),
        ("two", "2", "ok"),
        ("keys", None, "ok"),
        ("more", "screen", "ok"),
        ("slow", "done", "ok"),
        ("some", "3", "ok"),
        ("unknown", "4", "ok"),
    ]
    assert "1 tool results without their calls" in [each.reason for each in session.problems]


def test_calls_whose_ids_were_masked_to_one_word_keep_their_results(tmp_path: Path) -> None:
    masked = {"tool_call_id": "REDACTED", "function_name": "exec", "arguments": {}}
    told = [{"source_call_id": "REDACTED", "content": text} for text in "ab"]
    steps = [
        said("x", second=second, tool_calls=[masked, masked], observation={"results": told})
        for second in (1, 2)
    ]
    session = read(tmp_path, trajectory(PROMPT, *steps))
    assert [call.result for call in calls_of(session)] == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("told", "status", "code"),
    [
        (results("boom", extra={"exit_code": 3}), "failed", 3),
        ({**results("boom"), "extra": {"tool_result_is_error": True}}, "failed", None),
        ({**results("boom"), "extra": {"exec_status": "failed"}}, "failed", None),
        (results('{"stdout":"","exitCode":127,"command":"x"}'), "failed", 127),
        (results("<returncode>0</returncode>\n<output>"), "ok", 0),
        (results("it prints exitCode 1"), "ok", None),
    ],
)
def test_how_a_call_ended_is_read_where_agents_tell_it(
    told: dict[str, Any], status: str, code: int | None, tmp_path: Path
) -> None:
    (call,) = calls_of(read(tmp_path, trajectory(PROMPT, said("x", "exec", **told))))
    assert (call.status, call.exit_code) == (status, code)


def test_what_codex_puts_into_the_persons_name_is_no_prompt(tmp_path: Path) -> None:
    agents = "# AGENTS.md instructions for /app\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>"
    answer = said("x", "exec_command", **results("Exit code: 2\nOutput:\nno"))
    document = trajectory({"source": "user", "message": agents}, PROMPT, answer)
    document["agent"]["name"] = "codex"
    session = read(tmp_path, document)
    assert prompts_of(session) == ["Fix it."]
    assert [each.text for each in session.instructions or ()] == ["Use tabs."]
    assert (session.tool, calls_of(session)[0].exit_code) == ("codex", 2)


def test_steps_of_claude_codes_sidechains_are_a_subagents(tmp_path: Path) -> None:
    aside: dict[str, Any] = {"extra": {"is_sidechain": True, "agent_id": "a1"}}
    session = read(
        tmp_path,
        trajectory({**PROMPT, "message": "Look around.", **aside}, said("I did.", **aside), PROMPT),
    )
    assert prompts_of(session) == ["Fix it."]
    (agent,) = session.subagents
    assert (agent.id, agent.prompt, len(agent.messages)) == ("a1", "Look around.", 1)


def test_a_subagent_with_a_file_of_its_own_is_its_parents(tmp_path: Path) -> None:
    reference = {"session_id": "child", "trajectory_path": "1.json"}
    asked = said("Ask.", "delegate", **results("yes", subagent_trajectory_ref=[reference]))
    asked["observation"]["results"][0]["source_call_id"] = "delegate"
    child = trajectory({**PROMPT, "message": "Is it?"}, said("Yes."), session_id="child")
    child["agent"] = {"name": "asker", "version": "1", "extra": {"parent_session_id": ID}}
    session = read(tmp_path, trajectory(PROMPT, asked), child)
    (agent,) = session.subagents
    assert (agent.type, agent.prompt, agent.call_id) == ("asker", "Is it?", "delegate")
    (tmp_path / "0.json").unlink()
    (alone,) = read_all(READERS["atif"], tmp_path)
    assert [turn.number for turn in alone.turns] == [0]


def test_a_trajectory_that_goes_on_in_another_file_is_one_session(tmp_path: Path) -> None:
    copied = {**PROMPT, "is_copied_context": True}
    first = trajectory(
        {**PROMPT, "timestamp": "2026-03-02T10:00:00Z"},
        said("Begun.", **tokens(10, 1)),
        continued_trajectory_ref="b.json",
    )
    then = trajectory(copied, said("Ended.", second=9, **tokens(20, 2)))
    for name, document in (("a", first), ("b", then)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    found = scan([tmp_path])
    (session,) = read_week(found, found.weeks()[0])
    assert isinstance(session, Session)
    assert session.usage == Usage(30, 3)
    assert texts_of(session) == ["Begun.", "Ended."]


def test_subagents_within_subagents_however_deep_are_all_read(tmp_path: Path) -> None:
    document = trajectory(said("0"))
    for depth in range(1, 150):
        document = trajectory(
            said(str(depth)), trajectory_id=f"t{depth % 100}", subagent_trajectories=[document]
        )
    session = read(tmp_path, trajectory(PROMPT, subagent_trajectories=[document]))
    assert len(session.subagents) == 150


def test_a_document_that_only_holds_a_trajectory_is_not_claimed_and_a_false_one_refused(
    tmp_path: Path,
) -> None:
    (tmp_path / "row.json").write_text(json.dumps({"id": 1, "trajectory": trajectory(PROMPT)}))
    assert not list(READERS["atif"].find(walk(tmp_path)))
    (tmp_path / "row.json").write_text(json.dumps({"extra": {"schema_version": "ATIF-v1.6"}}))
    with pytest.raises(BrokenTranscript, match="no schema_version"):
        READERS["atif"].read(next(READERS["atif"].find(walk(tmp_path))))
