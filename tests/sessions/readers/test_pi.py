"""Forks of Pi's sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from debrief.sessions.sources import scan
from tests.sessions.readers.content import prompts_of
from tests.sessions.readers.content import write_records as write
from tests.sessions.scanned import sessions

ID = "0d6f6d0e-0000-7000-8000-00000000a001"


def header(**more: Any) -> dict[str, Any]:
    at = "2026-03-02T10:00:00Z"
    return {"type": "session", "version": 3, "id": ID, "timestamp": at, "cwd": "/w/shop", **more}


def entry(number: int, parent: int | None, kind: str = "message", **more: Any) -> dict[str, Any]:
    above = None if parent is None else f"e{parent}"
    at = f"2026-03-02T10:00:{number:02d}Z"
    return {"type": kind, "id": f"e{number}", "parentId": above, "timestamp": at, **more}


def user(number: int, parent: int | None, text: Any) -> dict[str, Any]:
    return entry(number, parent, message={"role": "user", "content": text})


def answer(number: int, parent: int, *blocks: Any, **more: Any) -> dict[str, Any]:
    usage = {"input": number, "output": 2, "cacheRead": 3, "cacheWrite": 4}
    content = [{"type": "text", "text": f"answer {number}"}, *blocks]
    message = {"role": "assistant", "content": content, "model": "m", "usage": usage, **more}
    return entry(number, parent, message=message)


def test_a_fork_is_a_session_of_its_own_with_the_history_that_it_copied(tmp_path: Path) -> None:
    shared = [user(1, None, "one"), answer(2, 1)]
    write(tmp_path / "a.jsonl", header(), *shared, user(3, 2, "two"), answer(4, 3))
    fork = header(id=ID.replace("a001", "a002"), timestamp="2026-03-09T10:00:00Z")
    write(tmp_path / "b.jsonl", fork, *shared, user(5, 2, "another two"), answer(6, 5))
    original, forked = sessions(scan([tmp_path]))
    assert (original.id, prompts_of(original)) == (ID, ["one", "two"])
    assert (forked.id, prompts_of(forked)) == (fork["id"], ["one", "another two"])
    assert [turn.origin for turn in forked.turns] == ["inherited", "prompt"]
    assert (original.usage.input, forked.usage.input) == (2 + 4, 6)
    assert forked.relative_of == ID


def test_an_original_keeps_its_name_and_its_checkpoints_beside_a_fork_that_stands_before_it(
    tmp_path: Path,
) -> None:
    shared = [user(1, None, "one"), answer(2, 1)]
    own = [user(3, 2, "two"), answer(4, 3)]
    fork = header(id=ID.replace("a001", "a002"), timestamp="2026-03-02T10:01:00Z")
    write(tmp_path / "0" / "full.jsonl", fork, *shared, user(5, 2, "task"), answer(6, 5))
    write(tmp_path / "1" / "full.jsonl", header(), *shared)
    write(tmp_path / "2" / "full.jsonl", header(), *shared, *own)
    original, forked = sessions(scan([tmp_path]))
    assert (original.id, prompts_of(original)) == (ID, ["one", "two"])
    assert (forked.id, prompts_of(forked)) == (fork["id"], ["one", "task"])
    assert (original.relative_of or "", forked.relative_of) == ("", ID)
    assert (original.usage.input, forked.usage.input) == (2 + 4, 6)
    places = [[Path(ref.path).parent.name for ref in s.transcripts] for s in (original, forked)]
    assert sorted(map(sorted, places)) == [["0"], ["1", "2"]]


def test_an_original_that_a_lake_took_for_its_own_forks_fork_is_none_when_a_file_changes(
    tmp_path: Path,
) -> None:
    shared = [user(1, None, "one"), answer(2, 1)]
    own = [user(3, 2, "two"), answer(4, 3)]
    fork = header(id=ID.replace("a001", "a002"), timestamp="2026-03-02T10:01:00Z")
    forked_file = write(tmp_path / "0.jsonl", fork, *shared, user(5, 2, "task"), answer(6, 5))
    own_file = write(tmp_path / "1.jsonl", header(), *shared, *own)
    wrong = [
        replace(e, session_id=ID, relative_of="", own_from="", is_copy=False)
        if e.path == str(forked_file)
        else replace(e, session_id=f"{ID}-0", relative_of=ID, own_from="0123456789abcdef")
        for e in scan([tmp_path]).entries
    ]
    write(own_file, header(), *shared, *own, user(7, 4, "three"), answer(8, 7))
    original, forked = sessions(scan([tmp_path], wrong))
    assert (original.id, original.relative_of or "") == (ID, "")
    assert (forked.id, forked.relative_of) == (fork["id"], ID)
    assert original.usage.input == 2 + 4 + 8
