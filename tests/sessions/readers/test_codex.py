"""Codex rollouts: prompts, calls, cumulative tokens, patches, forks, both layouts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from debrief.sessions.model import Usage
from debrief.sessions.readers.codex import READER
from debrief.sessions.readers.codex.calls import TokenMeter
from debrief.sessions.readers.files import walk
from tests.sessions.readers.codex_scenario import (
    ID,
    asked,
    counted,
    event,
    meta,
    read_one,
    read_turn,
    record,
    said,
    write,
)
from tests.sessions.readers.content import (
    calls_of,
    deeds_of,
    prompts_of,
    read_all,
    texts_of,
    told_in,
)


@pytest.mark.parametrize(
    ("named", "commit"), [("a" * 40, "a" * 40), ("a" * 64, "a" * 64), ("main", UNSET), (7, UNSET)]
)
def test_the_commit_that_the_work_began_at_is_kept(
    tmp_path: Path, named: object, commit: object
) -> None:
    session = read_one(tmp_path, meta(git={"commit_hash": named}), *asked(1, "hello"))
    assert session.base_commit == commit


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


def test_what_another_agent_came_to_is_a_notice(tmp_path: Path) -> None:
    session = read_turn(
        tmp_path,
        said(2, "assistant", "It runs."),
        said(3, "user", "<subagent_notification>\n{}\n</subagent_notification>"),
        said(4, "assistant", "It is done."),
    )
    told = "<subagent_notification>\n{}\n</subagent_notification>"
    assert told_in(session) == [("task", told)]
    (turn,) = session.turns
    assert [each.text for each in turn.messages] == ["It runs.", "It is done."]


OPEN = "# Context from my IDE setup:\n\n## Active file: a.py\n\n"
TABS = "## Open tabs:\n- a.py: src/a.py\n\n"
DROPPED = "# Files mentioned by the user:\n\n## a.png: /tmp/a.png\n\n"
SELECTED = "## Active selection of the file:\nx = 1\n"
ASKED = "## My request for Codex:\nadd it"


@pytest.mark.parametrize(
    ("words", "prompt"),
    [
        (f"{OPEN}{TABS}{ASKED}\n", "add it"),
        (f"{OPEN}{TABS}## My request:\nadd it\n", "add it"),
        (f"{OPEN}{SELECTED}{TABS}{ASKED}\n", f"{SELECTED}{TABS}{ASKED}"),
        (f"{DROPPED}{ASKED}\n", f"{DROPPED}{ASKED}"),
        (f"{OPEN}{TABS}{DROPPED}{ASKED}\n", f"{DROPPED}{ASKED}"),
    ],
    ids=["open files", "a newer heading", "a selection", "dropped files", "both"],
)
def test_what_an_editor_has_open_is_taken_off_a_prompt_and_what_the_person_chose_is_not(
    tmp_path: Path, words: str, prompt: str
) -> None:
    session = read_one(
        tmp_path,
        meta(),
        said(1, "user", words),
        event(1, "user_message", message=words, images=[], local_images=["a.png"]),
    )
    (turn,) = session.turns
    assert (turn.prompt, turn.images) == (prompt, 1)


@pytest.mark.parametrize("is_event_first", [True, False])
def test_words_that_only_differ_in_the_notes_of_a_memory_are_said_once(
    tmp_path: Path, is_event_first: bool
) -> None:
    notes = "<oai-mem-citation>\n<citation_entries>\nMEMORY.md:1-2\n</citation_entries>\n"
    told = event(2, "agent_message", message="It is done.\n\n")
    whole = said(2, "assistant", f"It is done.\n\n{notes}</oai-mem-citation>")
    both = [told, whole] if is_event_first else [whole, told]
    session = read_one(tmp_path, meta(), *asked(1, "go"), *both)
    assert texts_of(session) == ["It is done."]


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
    assert deeds_of(session.turns[0]) == [("slash_command", "/review current changes")]


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
    session = read_turn(
        tmp_path,
        said(2, "assistant", "a"),
        counted(3, (1000, 0, 50), None),
        said(4, "assistant", "b"),
        counted(5, (300, 100, 10), None),
    )
    assert session.usage == Usage(1200, 60, 0, 100)


def test_an_interruption_and_a_compaction_are_noted_once(tmp_path: Path) -> None:
    session = read_turn(
        tmp_path,
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
    assert (session.id, session.relative_of) == (new, ID)
    assert prompts_of(session) == ["the parent's prompt", "another way"]
    assert [turn.origin for turn in session.turns] == ["inherited", "prompt"]
    assert (session.prompt_count, session.usage.output) == (1, 20)


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
    (session,) = read_all(READER, tmp_path)
    (subagent,) = session.subagents
    found = (subagent.id, subagent.type, subagent.description, subagent.prompt)
    assert found == ("kid", "worker", "Nash", "do this part")
    assert prompts_of(session) == ["go"]
    assert session.usage == Usage(9, 4)

    (tmp_path / f"rollout-{ID}.jsonl").unlink()
    (orphan,) = read_all(READER, tmp_path)
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


def test_a_look_at_a_rollout_with_long_instructions_agrees_with_the_whole(tmp_path: Path) -> None:
    write(tmp_path, [meta(base_instructions={"text": "x" * 2_000_000}), *asked(1, "go")])
    (transcript,) = READER.find(walk(tmp_path))
    peek, session = READER.peek(transcript), READER.read(transcript)
    assert peek is not None
    assert (peek.session_id, peek.started) == (session.id, session.started)


def test_a_record_that_is_written_twice_counts_once_and_is_told(tmp_path: Path) -> None:
    answer = said(2, "assistant", "one")
    session = read_turn(tmp_path, answer, answer, {**event(3, ""), "payload": 7})
    assert texts_of(session) == ["one"]
    assert [each.line for each in session.problems] == [5, 6]
