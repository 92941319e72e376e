"""Forks are sessions of their own; copies, resumptions and checkpoints are none."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.sessions.model import Session
from debrief.sessions.readers.forks import Branch, TurnMark, leaves_of
from debrief.sessions.sources import scan
from debrief.training.conversations import conversation_of
from tests.sessions.readers.content import prompts_of
from tests.sessions.scanned import sessions, written
from tests.sessions.scenario import MONDAY, Log, usage


def name(number: int) -> str:
    return f"0a1b2c3d-0000-4000-8000-{number:012d}"


def told(log: Log, *prompts: str) -> Log:
    """Add prompts, each with an answer that costs ten tokens."""
    for prompt in prompts:
        log.user(prompt)
        log.records.append({"type": "last-prompt", "sessionId": log.session})
        log.says(f"On {prompt}", id=f"{log.session[-2:]}-{prompt}", usage=usage(0, 10))
    return log


def copied(log: Log, number: int, minutes: int) -> Log:
    """Begin a copy as ``--fork-session`` does: the records keep all but the session's id."""
    made = Log(session=name(number), started=MONDAY + timedelta(minutes=minutes))
    made.records = copy.deepcopy(log.records)
    for record in made.records:
        record["sessionId"] = made.session
    made.last = log.last
    made.records = [record for record in made.records if "uuid" in record]
    return made


def family(folder: Path, *logs: Log) -> dict[str, Session]:
    """Return the sessions of transcripts, by the last two digits of their ids."""
    found = sessions(scan([written(folder, *logs)]))
    assert len({session.id for session in found}) == len(found)
    return {session.id[-2:]: session for session in found}


def origins_of(session: Session) -> dict[str, str]:
    return {turn.prompt: turn.origin for turn in session.turns}


def test_a_fork_and_what_its_original_went_on_to_never_saw_each_other(tmp_path: Path) -> None:
    original = told(Log(session=name(1)), "one", "two")
    fork = told(copied(original, 2, 60), "forked three")
    told(original, "here four")
    found = family(tmp_path, original, fork)
    assert prompts_of(found["01"]) == ["one", "two", "here four"]
    assert prompts_of(found["02"]) == ["one", "two", "forked three"]
    assert (found["01"].relative_of or "", found["02"].relative_of) == ("", name(1))


def test_what_a_fork_copied_counts_in_its_original_alone_and_is_context_in_its_line(
    tmp_path: Path,
) -> None:
    original = Log("one", session=name(1))
    original.calls("c1", "Write", file_path="/a.py", content="x\ny\n")
    made = {"type": "create", "filePath": "/a.py", "content": "x\ny\n", "structuredPatch": []}
    original.result("c1", "Created.", made)
    told(original, "two")
    fork = told(copied(original, 2, 60), "forked three")
    told(original, "here four")
    found = family(tmp_path, original, fork)
    counted = [(s.prompt_count, s.usage.output, s.api_calls, s.lines_added) for s in found.values()]
    assert counted == [(3, 20, 2, 2), (1, 10, 1, 0)]
    assert origins_of(found["02"]) == {
        "one": "inherited",
        "two": "inherited",
        "forked three": "prompt",
    }
    line = conversation_of(found["02"]).close()
    answers = [(said.content, said.weight) for said in line if said.role == "assistant"]
    assert [(text, weight == 0) for text, weight in answers] == [
        ("", True),
        ("(the turn ended here)", True),
        ("On two", True),
        ("On forked three", False),
    ]


def test_a_fork_of_a_fork_has_each_turn_from_whoever_took_it_first(tmp_path: Path) -> None:
    original = told(Log(session=name(1)), "one")
    fork = told(copied(original, 2, 60), "two")
    second = told(copied(fork, 3, 120), "three")
    told(original, "else")
    told(fork, "still")
    found = family(tmp_path, original, fork, second)
    assert {key: prompts_of(session) for key, session in found.items()} == {
        "01": ["one", "else"],
        "02": ["one", "two", "still"],
        "03": ["one", "two", "three"],
    }
    assert origins_of(found["03"]) == {"one": "inherited", "two": "inherited", "three": "prompt"}
    assert sum(session.usage.output for session in found.values()) == 50
    assert {session.relative_of for session in found.values() if session.relative_of} == {name(1)}


def test_a_fork_of_what_was_taken_back_later_is_of_the_same_family(tmp_path: Path) -> None:
    original = told(Log(session=name(1)), "one")
    branching = original.last
    told(original, "two")
    fork = told(copied(original, 2, 60), "forked three")
    original.last = branching
    told(original, "instead")
    found = family(tmp_path, original, fork)
    rewound = [turn.prompt for turn in found["01"].turns if turn.rewound]
    assert (prompts_of(found["01"]), rewound) == (["one", "two", "instead"], ["two"])
    assert prompts_of(found["02"]) == ["one", "two", "forked three"]
    assert found["02"].usage.output == 10


def test_a_rewind_is_found_behind_what_the_program_puts_between(tmp_path: Path) -> None:
    log = told(Log(session=name(1)), "one")
    branching = log.last
    log.add("attachment", attachment={"type": "prompt_snapshot"})
    told(log, "two")
    log.last = branching
    told(log, "instead")
    (session,) = family(tmp_path, log).values()
    assert [turn.rewound for turn in session.turns] == [False, True, False]


def test_checkpoints_of_a_fork_are_states_of_the_fork(tmp_path: Path) -> None:
    original = told(Log(session=name(1)), "one")
    fork = told(copied(original, 2, 60), "two")
    fork.write(tmp_path / "checkpoints" / "1.jsonl")
    told(fork, "three")
    told(original, "else")
    found = family(tmp_path, original, fork)
    assert prompts_of(found["02"]) == ["one", "two", "three"]
    assert (len(found["02"].transcripts), found["02"].usage.output) == (2, 20)


def test_two_that_went_different_ways_under_one_id_are_two_sessions(tmp_path: Path) -> None:
    log = told(Log(session=name(1)), "one")
    other = copy.deepcopy(log)
    told(log, "here")
    for record in other.records:
        record["cwd"] = "/home/ann/copy"
    other.user("there", uuid="0a1b2c3d-0000-4000-8000-00000000beef")
    other.says("On there", id="there", usage=usage(0, 10))
    log.write(tmp_path / "a" / f"{log.session}.jsonl")
    other.write(tmp_path / "b" / f"{log.session}.jsonl")
    first, second = sorted(sessions(scan([tmp_path])), key=lambda session: len(session.id))
    assert (first.id, prompts_of(first)) == (name(1), ["one", "here"])
    assert (second.id[: len(name(1))], prompts_of(second)) == (name(1), ["one", "there"])
    assert second.relative_of == name(1)


def test_a_resumption_or_a_fork_that_goes_on_alone_keeps_the_name_of_its_original(
    tmp_path: Path,
) -> None:
    original = told(Log(session=name(2)), "one")
    fork = told(copied(original, 1, 60), "two")
    (only,) = family(tmp_path, original, fork).values()
    assert (only.id, prompts_of(only)) == (name(2), ["one", "two"])
    assert not only.relative_of


def test_parts_of_one_session_in_two_files_are_joined_record_by_record(tmp_path: Path) -> None:
    log = Log("one", session=name(1))
    log.calls("c1", "Bash", command="make")
    log.result("c1", "made")
    told(log, "two")
    first, second = copy.deepcopy(log), copy.deepcopy(log)
    first.records, second.records = log.records[:2], log.records[2:]
    first.write(tmp_path / "a" / f"{log.session}.jsonl")
    second.write(tmp_path / "b" / f"{log.session}.jsonl")
    (session,) = sessions(scan([tmp_path]))
    assert prompts_of(session) == ["one", "two"]
    assert [call.result for call in session.turns[0].messages[0].calls] == ["made"]
    assert not session.problems


def test_a_fork_stays_one_when_its_original_is_gone(tmp_path: Path) -> None:
    original = told(Log(session=name(1)), "one")
    fork = told(copied(original, 2, 60), "two")
    told(original, "else")
    before = scan([written(tmp_path, original, fork)])
    assert scan([tmp_path], before.entries).entries == before.entries
    (tmp_path / f"{original.session}.jsonl").unlink()
    told(fork, "three")
    (only,) = sessions(scan([written(tmp_path, fork)], before.entries))
    assert (only.id, only.relative_of, only.usage.output) == (name(2), name(1), 20)


def test_a_lakes_scan_by_a_version_that_knew_no_forks_is_looked_at_again(tmp_path: Path) -> None:
    original = told(Log(session=name(1)), "one")
    fork = told(copied(original, 2, 60), "two")
    told(original, "else")
    found = scan([written(tmp_path, original, fork)])
    old = [
        replace(entry, session_id=name(1), relative_of="", own_from="", is_placed=False)
        for entry in found.entries
    ]
    assert scan([tmp_path], old).entries == found.entries


TREES = st.lists(st.integers(0, 20), min_size=1, max_size=12)
"""For each prompt but the first, which of those before it it follows, counted round."""


def ways_of(tree: Sequence[int]) -> list[list[int]]:
    """Return the prompts on the way to each leaf."""
    parents = {0: -1} | {number: parent % number for number, parent in enumerate(tree, 1)}
    ways = []
    for leaf in parents.keys() - set(parents.values()):
        way = [leaf]
        while way[0]:
            way.insert(0, parents[way[0]])
        ways.append(way)
    return ways


def branch(way: Sequence[int]) -> Branch:
    marks = (
        TurnMark(prompt=f"p{number}", place=f"at{number}", messages=frozenset({f"m{number}"}))
        for number in way
    )
    return Branch(tuple(marks))


@given(TREES, st.data())
def test_every_leaf_of_any_tree_is_a_session_and_every_state_of_it_is_none(
    tree: list[int], data: st.DataObject
) -> None:
    ways = data.draw(st.permutations(ways_of(tree)))
    cuts = [way[: data.draw(st.integers(1, len(way)))] for way in ways]
    files = data.draw(st.permutations([*ways, *cuts]))
    leaves = leaves_of([branch(way) for way in files], [""] * len(files))
    assert sorted(files[leaf.members[0]] for leaf in leaves) == sorted(ways)
    assert sorted(number for leaf in leaves for number in leaf.members) == [*range(len(files))]
    for leaf in leaves:
        end = files[leaf.members[0]]
        assert all(files[member] == end[: len(files[member])] for member in leaf.members)


@given(TREES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
def test_whatever_was_forked_each_session_holds_its_way_and_each_answer_counts_once(
    tmp_path_factory: pytest.TempPathFactory, tree: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("family")
    ways = ways_of(tree)
    for number, way in enumerate(ways, 1):
        log = Log(session=name(number), started=MONDAY)
        previous = None
        for prompt in way:
            at = {"timestamp": f"2026-01-05T10:{prompt:02}:00Z"}
            asked, said = (f"{name(prompt)[:24]}{kind}{prompt:011}" for kind in "ab")
            log.user(f"{prompt}", uuid=asked, parentUuid=previous, **at)
            log.says(f"On {prompt}", id=f"m{prompt}", usage=usage(0, 1), uuid=said, **at)
            previous = said
        log.write(folder / f"{log.session}.jsonl")
    found = sessions(scan([folder]))
    assert sorted(prompts_of(session) for session in found) == sorted(
        [*map(str, way)] for way in ways
    )
    assert sum(session.usage.output for session in found) == len(tree) + 1
    assert sum(session.prompt_count for session in found) == len(tree) + 1
