"""Compressed rollouts: found, read as far as they go, once where they are there plain too."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tracemalloc
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.sessions.model import UnreadTranscript
from debrief.sessions.readers.codex import READER
from debrief.sessions.readers.files import head_of, opened, walk
from debrief.sessions.sources import read_week, scan
from tests.sessions.readers.codex_scenario import ID, asked, meta, said, write
from tests.sessions.readers.content import prompts_of, read_all, texts_of

CODEC = pyarrow.Codec("zstd")


def squeezed(content: bytes) -> bytes:
    packed: bytes = CODEC.compress(content, asbytes=True)
    return packed


def flushed(records: list[bytes]) -> bytes:
    """Compress records as a program does that writes out each at once."""
    sink = io.BytesIO()
    with pyarrow.CompressedOutputStream(pyarrow.PythonFile(sink, mode="w"), "zstd") as stream:
        for record in records:
            stream.write(record)
            stream.flush()
        stream.flush()
        return sink.getvalue()


def squeeze(path: Path) -> Path:
    """Put a compressed file in the place of a plain one, as Codex does."""
    packed = path.with_name(f"{path.name}.zst")
    packed.write_bytes(squeezed(path.read_bytes()))
    path.unlink()
    return packed


def test_a_compressed_rollout_reads_as_the_plain_one(tmp_path: Path) -> None:
    path = write(tmp_path, [meta(), *asked(1, "go"), said(2, "assistant", "done")])
    (plain,) = read_all(READER, tmp_path)
    packed = squeeze(path)
    (session,) = read_all(READER, tmp_path)
    assert (session.id, session.turns) == (plain.id, plain.turns)
    (reference,) = session.transcripts
    content = packed.read_bytes()
    assert (reference.path, reference.size) == (str(packed), len(content))
    assert reference.digest == hashlib.sha256(content).hexdigest()


def test_a_rollout_that_is_there_plain_and_compressed_is_one_session(tmp_path: Path) -> None:
    spawn = {"thread_spawn": {"parent_thread_id": ID}}
    records = [meta(5, id="kid", source={"subagent": spawn}), said(6, "assistant", "three")]
    paths = [
        write(tmp_path, [meta(), *asked(1, "go"), said(2, "assistant", "done")]),
        write(tmp_path, records, name="kid"),
    ]
    for path in paths:
        content = path.read_bytes()
        squeeze(path)
        path.write_bytes(content)
    seen = scan([tmp_path])
    (entry,) = seen.entries
    assert len(entry.companions) == 3
    (session,) = read_week(seen, entry.week)
    assert not isinstance(session, UnreadTranscript)
    assert (prompts_of(session), len(session.subagents)) == (["go"], 1)


def test_a_pair_of_agents_of_which_one_is_compressed_stays_a_pair(tmp_path: Path) -> None:
    spawn = {"thread_spawn": {"parent_thread_id": ID}}
    records = [meta(5, id="kid", source={"subagent": spawn}), said(6, "assistant", "three")]
    squeeze(write(tmp_path, records, name="kid"))
    write(tmp_path, [meta(), *asked(1, "go"), said(2, "assistant", "done")])
    (session,) = read_all(READER, tmp_path)
    assert [agent.id for agent in session.subagents] == ["kid"]


def test_of_a_rollout_cut_short_all_that_stands_before_the_cut_is_read(tmp_path: Path) -> None:
    words = [os.urandom(30).hex() for _ in range(300)]
    answers = [said(2 + place, "assistant", each) for place, each in enumerate(words)]
    records = [meta(), *asked(1, "go"), *answers]
    whole = flushed([json.dumps(record).encode() + b"\n" for record in records])
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(whole[: len(whole) // 2])
    (session,) = read_all(READER, tmp_path)
    known = texts_of(session)[0].split("\n\n")
    assert known == words[: len(known)]
    assert len(known) > 100
    assert "cut short" in session.problems[-1].reason


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(0, 10**6), st.integers(1, 999))
def test_whatever_is_cut_off_what_comes_out_is_the_beginning(
    pieces: list[bytes], cut: int, size: int
) -> None:
    content, packed = b"".join(pieces), flushed(pieces)
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"cut-{os.getpid()}.zst"
    path.write_bytes(packed[: cut % (len(packed) + 1)])
    with opened(str(path)) as file:
        blocks = list(iter(lambda: file.read(size), b""))
        fault = file.fault
    path.unlink()
    assert content.startswith(b"".join(blocks))
    assert fault or b"".join(blocks) == content or not cut % (len(packed) + 1)
    assert all(len(block) == size for block in blocks[:-1] if not fault)


@pytest.mark.parametrize("is_one_line", [True, False])
def test_a_bomb_costs_no_memory_and_nothing_of_what_stands_before_it(
    tmp_path: Path, is_one_line: bool
) -> None:
    begun = "".join(json.dumps(each) + "\n" for each in (meta(), *asked(1, "go")))
    end = b" " if is_one_line else b" " * 1000 + b"\n"
    bomb = squeezed(begun.encode()) + squeezed(end * (100_000_000 // len(end)))
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(bomb)
    tracemalloc.start()
    (session,) = read_all(READER, tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert prompts_of(session) == ["go"]
    assert "more than 200 times its size" in session.problems[-1].reason
    assert peak < 150_000_000


@pytest.mark.parametrize("content", [b"no such thing", squeezed(b"x" * 9)[:9], b"\x28\xb5\x2f\xfd"])
def test_a_file_that_nothing_can_be_had_of_is_told_with_the_reason(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(content)
    assert head_of(str(path)) == b""
    (entry,) = scan([tmp_path]).entries
    assert "compress" in entry.reason
    assert not entry.expected


def test_a_broken_first_record_is_a_reason_and_costs_no_other_rollout(tmp_path: Path) -> None:
    write(tmp_path, [meta(), *asked(1, "go")])
    path = write(tmp_path, [meta(id="other"), *asked(1, "lost")], name="other")
    packed = squeeze(path)
    begun = [
        json.dumps(meta(id="other")).encode() + b"\n",
        b'{"text": "' + os.urandom(900).hex().encode(),
    ]
    packed.write_bytes(flushed(begun) + b"garbage")
    sessions, reasons = [], []
    for transcript in READER.find(walk(tmp_path)):
        try:
            sessions.append(READER.read(transcript))
        except InputError as error:
            reasons.append(str(error))
    assert [session.id for session in sessions] == [ID]
    assert len(reasons) == 1
    assert "compression is damaged" in reasons[0]
