"""Codex rollouts: prompts, calls, cumulative tokens, patches, forks, both layouts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.sessions.model import Session, ToolCall, Usage
from debrief.sessions.readers.base import NoSession
from debrief.sessions.readers.codex import READER
from debrief.sessions.readers.codex.tokens import TokenMeter

ID = "019a0000-0000-7000-8000-000000000001"
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"


def record(second: float, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    at = datetime.fromisoformat("2026-03-02T10:00:00+00:00").timestamp() + second
    stamp = datetime.fromtimestamp(at).astimezone().isoformat()
    return {"timestamp": stamp, "type": kind, "payload": payload}


def meta(second: float = 0, **more: Any) -> dict[str, Any]:
    facts = {
        "id": ID,
        "cwd": "/home/ann/shop",
        "cli_version": "0.140.0",
        "source": "cli",
        "git": {"branch": "main", "repository_url": "git@host:ann/shop.git"},
    }
    return record(second, "session_meta", {**facts, **more})


def context(second: float, model: str, **more: Any) -> dict[str, Any]:
    return record(second, "turn_context", {"model": model, "cwd": "/home/ann/shop", **more})


def event(second: float, kind: str, **more: Any) -> dict[str, Any]:
    return record(second, "event_msg", {"type": kind, **more})


def item(second: float, kind: str, **more: Any) -> dict[str, Any]:
    return record(second, "response_item", {"type": kind, **more})


def said(second: float, role: str, words: str) -> dict[str, Any]:
    block = {"type": "output_text" if role == "assistant" else "input_text", "text": words}
    return item(second, "message", role=role, content=[block])


def asked(second: float, words: str) -> list[dict[str, Any]]:
    return [said(second, "user", words), event(second, "user_message", message=words)]


def called(second: float, name: str, call: str, **arguments: Any) -> dict[str, Any]:
    return item(second, "function_call", name=name, call_id=call, arguments=json.dumps(arguments))


def answered(second: float, call: str, output: Any) -> dict[str, Any]:
    return item(second, "function_call_output", call_id=call, output=output)


def counted(second: float, total: tuple[int, int, int], last: tuple[int, int, int] | None) -> Any:
    fields = ("input_tokens", "cached_input_tokens", "output_tokens")
    info: dict[str, Any] = {"total_token_usage": dict(zip(fields, total, strict=True))}
    if last is not None:
        info["last_token_usage"] = dict(zip(fields, last, strict=True))
    return event(second, "token_count", info=info)


def write(folder: Path, records: Iterable[Any], name: str = f"rollout-{ID}") -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


def read_all(folder: Path) -> list[Session]:
    return [READER.read(transcript) for transcript in READER.find(folder)]


def read_one(folder: Path, *records: Any) -> Session:
    write(folder, records)
    (session,) = read_all(folder)
    return session


def calls_of(session: Session) -> list[ToolCall]:
    return [call for turn in session.turns for each in turn.messages for call in each.calls]


def prompts_of(session: Session) -> list[str]:
    return [turn.prompt for turn in session.turns if turn.number]


def test_a_rollout_tells_its_facts_once_though_it_repeats_them(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        meta(),
        context(1, "gpt-5"),
        *asked(2, "hello"),
        event(3, "agent_message", message="hi"),
        said(3, "assistant", "hi"),
        meta(4, cli_version="0.999"),
        context(5, "gpt-5"),
        *asked(6, "again"),
        said(7, "assistant", "yes"),
        event(7, "agent_message", message="yes"),
        event(8, "thread_name_updated", thread_name="Greetings"),
    )
    assert (session.id, session.tool_version, session.branch) == (ID, "0.140.0", "main")
    assert (session.repository, session.task, session.title) == ("shop", "shop", "Greetings")
    assert session.models == ("gpt-5",)
    assert prompts_of(session) == ["hello", "again"]
    assert [each.text for turn in session.turns for each in turn.messages] == ["hi", "yes"]


def test_context_that_stands_as_a_users_message_is_no_prompt(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        meta(),
        said(1, "user", "# AGENTS.md instructions for /home/ann/shop\n\nbe brief"),
        said(1, "user", "<environment_context>\n  <cwd>/home/ann</cwd>\n</environment_context>"),
        said(1, "user", "A notice that nobody typed"),
        *asked(2, "fix it"),
        said(3, "assistant", "done"),
    )
    assert prompts_of(session) == ["fix it"]


def test_without_prompt_events_the_users_items_are_the_prompts(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        meta(),
        said(1, "user", "<environment_context></environment_context>"),
        said(2, "user", "fix it"),
        said(3, "assistant", "done"),
        said(4, "user", "thanks"),
    )
    assert prompts_of(session) == ["fix it", "thanks"]
    assert [turn.number for turn in session.turns] == [1, 2]


def test_an_editors_context_is_taken_off_the_prompt_and_images_are_counted(tmp_path: Path) -> None:
    words = "# Files mentioned by the user:\n\n## a.png\n\n## My request for Codex:\nadd it\n"
    session = read_one(
        tmp_path,
        meta(),
        said(1, "user", words),
        event(1, "user_message", message=words, images=[], local_images=["a.png"]),
    )
    (turn,) = session.turns
    assert (turn.prompt, turn.images) == ("add it", 1)


def test_a_review_is_a_slash_command_and_its_own_prompt_is_nobodys(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        meta(),
        *asked(1, "write it"),
        said(2, "assistant", "written"),
        event(3, "entered_review_mode", user_facing_hint="current changes"),
        event(4, "user_message", message="Review the current code changes"),
        event(4.1, "user_message", message="Review the current code changes"),
        event(5, "exited_review_mode"),
        *asked(6, "fix the findings"),
    )
    assert prompts_of(session) == ["write it", "fix the findings"]
    assert session.slash_commands == 1
    assert [(each.kind, each.text) for each in session.turns[0].interventions] == [
        ("slash_command", "/review current changes")
    ]


def test_tokens_are_the_last_usage_of_every_changed_total(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        meta(),
        *asked(1, "go"),
        event(1, "token_count", info=None),
        called(2, "exec_command", "c1", cmd="ls"),
        counted(3, (1000, 600, 50), (1000, 600, 50)),
        answered(4, "c1", "a.py"),
        counted(5, (1000, 600, 50), (1000, 600, 50)),
        said(6, "assistant", "one file"),
        counted(7, (2500, 1600, 80), (1500, 1000, 30)),
    )
    assert session.usage == Usage(input=900, output=80, cache_write=0, cache_read=1600)
    assert session.api_calls == 2
    assert [each.usage.output for turn in session.turns for each in turn.messages] == [50, 30]


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 10**6), st.integers(0, 10**6)), max_size=20
    ),
    st.booleans(),
)
def test_whatever_repeats_the_sum_is_the_total(
    calls: list[tuple[int, int, int]], tells_last: bool
) -> None:
    meter = TokenMeter()
    total = [0, 0, 0]
    spent = Usage()
    for repeats, fresh, output in calls:
        last = (fresh, fresh // 2, output)
        total = [a + b for a, b in zip(total, last, strict=True)]
        payload = counted(0, (total[0], total[1], total[2]), last if tells_last else None)
        for _ in range(repeats + 1):
            spent += meter.read(payload["payload"]) or Usage()
    assert spent.input + spent.cache_read == total[0]
    assert (spent.cache_read, spent.output) == (total[1], total[2])
    assert meter.calls == len(calls)


def test_a_total_that_begins_anew_is_counted_from_there(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        meta(),
        *asked(1, "go"),
        said(2, "assistant", "a"),
        counted(3, (1000, 0, 50), None),
        said(4, "assistant", "b"),
        counted(5, (300, 100, 10), None),
    )
    assert session.usage == Usage(1200, 60, 0, 100)


@pytest.mark.parametrize(
    ("output", "status", "code"),
    [
        ("Chunk ID: 1\nWall time: 0.1 s\nProcess exited with code 0\nOutput:\nok", "ok", 0),
        ("Wall time: 0.1 s\nProcess exited with code 2\nOutput:\nno", "failed", 2),
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\n", "failed", 1),
        ('{"output":"ok","metadata":{"exit_code":0}}', "ok", 0),
        ('{"output":"no","metadata":{"exit_code":3}}', "failed", 3),
        ([{"type": "input_text", "text": "Script completed\n"}], "ok", None),
        ([{"type": "input_text", "text": "Script failed\nboom"}], "failed", None),
        ({"content": "no", "success": False}, "failed", None),
        ("exec command rejected by user", "rejected", None),
        ("aborted by user after 2.0s", "failed", None),
        ("plain text", "ok", None),
    ],
)
def test_an_output_tells_how_the_call_ended(
    tmp_path: Path, output: Any, status: str, code: int | None
) -> None:
    session = read_one(
        tmp_path,
        meta(),
        *asked(1, "go"),
        called(2, "exec_command", "c1", cmd="make"),
        answered(3, "c1", output),
    )
    (call,) = calls_of(session)
    assert (call.name, call.status, call.exit_code) == ("exec_command", status, code)
    assert json.loads(call.input) == {"cmd": "make"}


def test_an_event_answers_a_call_whose_own_output_never_came(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        meta(),
        *asked(1, "go"),
        called(2, "shell", "c1", command=["make"]),
        event(3, "exec_command_end", call_id="c1", exit_code=2, aggregated_output="no rule"),
        called(4, "shell", "c2", command=["make", "all"]),
    )
    first, second = calls_of(session)
    assert (first.status, first.exit_code, first.result) == ("failed", 2, "no rule")
    assert (second.status, second.result) == ("unanswered", None)


def test_a_command_that_goes_on_after_its_first_output_ends_as_its_event_says(
    tmp_path: Path,
) -> None:
    session = read_one(
        tmp_path,
        meta(),
        *asked(1, "go"),
        called(2, "exec_command", "c1", cmd="make"),
        answered(3, "c1", "Wall time: 1 s\nProcess running with session ID 7\nOutput:\n"),
        event(9, "exec_command_end", call_id="c1", exit_code=2, aggregated_output="no rule"),
    )
    (call,) = calls_of(session)
    assert (call.status, call.exit_code) == ("failed", 2)


def changes(**files: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): change for name, change in files.items()}


def test_a_patch_counts_as_its_event_tells_it_file_by_file(tmp_path: Path) -> None:
    applied = changes(
        a_py={"type": "update", "unified_diff": "@@ -3,2 +3,3 @@\n x\n-y\n+z\n+++ w\n"},
        b_py={"type": "add", "content": "one\ntwo\n"},
        c_py={"type": "delete", "content": "gone\n"},
    )
    session = read_one(
        tmp_path,
        meta(),
        *asked(1, "go"),
        item(2, "custom_tool_call", name="apply_patch", call_id="c1", input=PATCH),
        event(3, "patch_apply_end", call_id="c1", success=True, changes=applied),
        item(3, "custom_tool_call_output", call_id="c1", output="Success."),
    )
    (call,) = calls_of(session)
    assert (call.path, call.added, call.removed, call.status) == ("a.py", 4, 2, "ok")
    assert call.patch.startswith("@@ -3,2 +3,3 @@\n x\n-y\n+z\n+++ w\n--- b.py\n+++ b.py\n@@")
    assert (session.lines_added, session.lines_removed) == (4, 2)
    assert not call.estimated


@pytest.mark.parametrize(
    ("output", "added"),
    [("Success. Updated the following files:\nM a.py", 1), ("apply_patch verification failed", 0)],
)
def test_without_an_event_the_patch_itself_counts_when_it_succeeded(
    tmp_path: Path, output: str, added: int
) -> None:
    session = read_one(
        tmp_path,
        meta(),
        *asked(1, "go"),
        called(2, "apply_patch", "c1", patch=PATCH),
        answered(3, "c1", output),
    )
    (call,) = calls_of(session)
    assert (call.added, call.removed, call.estimated) == (added, added, bool(added))


def test_a_patch_that_failed_adds_nothing(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        meta(),
        *asked(1, "go"),
        item(2, "custom_tool_call", name="apply_patch", call_id="c1", input=PATCH),
        event(3, "patch_apply_end", call_id="c1", success=False, stderr="no match", changes={}),
    )
    (call,) = calls_of(session)
    assert (call.status, call.result, call.added) == ("failed", "no match", 0)


def test_patches_within_a_script_belong_to_the_script(tmp_path: Path) -> None:
    one = changes(a_py={"type": "add", "content": "x\n"})
    two = changes(b_py={"type": "add", "content": "y\nz\n"})
    session = read_one(
        tmp_path,
        meta(),
        *asked(1, "go"),
        item(2, "custom_tool_call", name="exec", call_id="c1", input="await tools.apply_patch(…)"),
        event(3, "patch_apply_end", call_id="exec-1", success=True, changes=one),
        event(3.5, "patch_apply_end", call_id="exec-2", success=True, changes=two),
        item(4, "custom_tool_call_output", call_id="c1", output=[]),
        event(5, "patch_apply_end", call_id="alone", success=True, changes=one, stdout="ok"),
    )
    script, alone = calls_of(session)
    assert (script.name, script.path, script.added) == ("exec", "a.py", 3)
    assert (alone.name, alone.status, alone.added) == ("apply_patch", "ok", 1)


def test_other_tools_answers_are_taken_from_their_events(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        meta(),
        *asked(1, "go"),
        item(2, "web_search_call", status="completed", action={"query": "retry"}),
        event(
            3,
            "mcp_tool_call_end",
            call_id="m1",
            invocation={"server": "docs", "tool": "search", "arguments": {"q": "x"}},
            result={"Err": {"message": "away"}},
        ),
        event(4, "dynamic_tool_call_response", call_id="d1", tool="load", success=True),
    )
    assert [(call.name, call.status) for call in calls_of(session)] == [
        ("web_search", "ok"),
        ("docs__search", "failed"),
        ("load", "ok"),
    ]


def test_an_interruption_and_a_compaction_are_noted_once(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        meta(),
        *asked(1, "go"),
        said(2, "assistant", "working"),
        said(3, "user", "<turn_aborted>\nThe user interrupted the turn.\n</turn_aborted>"),
        event(3, "turn_aborted", reason="interrupted"),
        record(4, "compacted", {"message": "", "replacement_history": [{"role": "user"}]}),
        event(4, "context_compacted"),
        said(5, "assistant", "on with it"),
    )
    (turn,) = session.turns
    assert [each.kind for each in turn.interventions] == ["interruption"]
    assert (session.compactions, turn.compacted) == (1, True)


def test_a_forks_copied_history_is_not_counted_again(tmp_path: Path) -> None:
    old = "018f0000-0000-7000-8000-00000000000a"
    new = "01ffffff-0000-7000-8000-00000000000b"
    session = read_one(
        tmp_path,
        meta(0, id=new, forked_from_id=ID),
        meta(0.01),
        event(0.02, "task_started", turn_id=old),
        *asked(0.03, "the parent's prompt"),
        said(0.04, "assistant", "the parent's answer"),
        counted(0.05, (1000, 0, 500), (1000, 0, 500)),
        event(30, "task_started", turn_id=new),
        *asked(31, "another way"),
        said(32, "assistant", "yes"),
        counted(33, (1100, 0, 520), (100, 0, 20)),
    )
    assert session.id == new
    assert prompts_of(session) == ["another way"]
    assert session.usage.output == 20


def test_a_spawned_agents_rollout_belongs_to_the_session_that_spawned_it(tmp_path: Path) -> None:
    spawn = {"thread_spawn": {"parent_thread_id": ID, "depth": 1}}
    child = meta(
        5, id="kid", source={"subagent": spawn}, agent_nickname="Nash", agent_role="worker"
    )
    write(tmp_path, [meta(), *asked(1, "go"), said(2, "assistant", "spawning")])
    write(
        tmp_path,
        [
            child,
            *asked(6, "do this part"),
            said(7, "assistant", "done"),
            counted(8, (9, 0, 4), None),
        ],
        name="kid",
    )
    (session,) = read_all(tmp_path)
    (subagent,) = session.subagents
    assert (subagent.id, subagent.type, subagent.description, subagent.prompt) == (
        "kid",
        "worker",
        "Nash",
        "do this part",
    )
    assert prompts_of(session) == ["go"]
    assert session.usage == Usage(9, 4)

    (tmp_path / f"rollout-{ID}.jsonl").unlink()
    (orphan,) = read_all(tmp_path)
    assert (orphan.id, orphan.prompt_count) == ("kid", 0)


def test_the_older_layout_without_envelopes_is_read(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        {"id": ID, "timestamp": "2025-05-05T10:00:00Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": '{"command":[]}'},
        {"type": "function_call_output", "call_id": "c1", "output": '{"output":"x","metadata":{}}'},
        {"type": "message", "role": "assistant", "content": [{"text": "done"}]},
    )
    assert session.id == ID
    assert session.started.isoformat() == "2025-05-05T10:00:00+00:00"
    assert prompts_of(session) == ["go"]
    assert [call.status for call in calls_of(session)] == ["ok"]


def test_a_rollout_without_times_says_so_and_takes_its_files(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        {"type": "session_meta", "payload": {"id": "bare"}},
        {
            "type": "response_item",
            "payload": {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
        },
    )
    assert prompts_of(session) == ["go"]
    assert any("time" in each.reason for each in session.problems)


def test_a_doubled_record_is_counted_once_and_broken_lines_cost_only_themselves(
    tmp_path: Path,
) -> None:
    lines = [json.dumps(each) for each in (meta(), *asked(1, "one"), *asked(2, "two"))]
    answer = json.dumps(said(3, "assistant", "caf\u00e9"), ensure_ascii=False)
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(
        b"\n".join(
            [
                lines[0].encode(),
                (lines[1] + lines[2]).encode(),
                lines[3].encode(),
                lines[4].encode(),
                lines[4].encode(),
                answer.encode("latin-1"),
                b'{"timestamp":"2026-03-02T10:00:09Z","type":"hologram","payload":{}}',
                b'{"timestamp":"2026-03-02T10:00:09Z","type":"event_msg","payload":7}',
                b'{"a":' * 100_000,
                lines[4].encode()[:40],
            ]
        )
    )
    (session,) = read_all(tmp_path)
    assert prompts_of(session) == ["one", "two"]
    assert [each.text for turn in session.turns for each in turn.messages] == ["caf\ufffd"]
    assert {each.line for each in session.problems} >= {5, 6, 8, 9, 10}


def test_a_rollout_that_holds_only_its_start_is_no_session(tmp_path: Path) -> None:
    write(tmp_path, [meta(), context(1, "gpt-5")])
    (transcript,) = READER.find(tmp_path)
    assert READER.peek(transcript) is None
    with pytest.raises(NoSession):
        READER.read(transcript)


def test_a_rollout_of_broken_lines_is_refused_with_line_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_text(json.dumps(meta()) + '\n{"timestamp": "2026')
    (transcript,) = READER.find(tmp_path)
    with pytest.raises(InputError, match="cut short"):
        READER.read(transcript)


def test_a_look_at_a_rollout_with_long_instructions_agrees_with_the_whole(tmp_path: Path) -> None:
    write(tmp_path, [meta(base_instructions={"text": "x" * 2_000_000}), *asked(1, "go")])
    (transcript,) = READER.find(tmp_path)
    peek, session = READER.peek(transcript), READER.read(transcript)
    assert peek is not None
    assert (peek.session_id, peek.started) == (session.id, session.started)
