"""What holds for every reader, whatever stands in the files."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.sessions.model import Session
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import BrokenTranscript, NoSession
from debrief.sessions.readers.files import walk
from tests.planting import EXAMPLES
from tests.sessions.readers.content import calls_of
from tests.training.strategies import JSON

RECORDS: dict[str, list[Any]] = {
    source: [json.loads(line) for line in path.read_text().splitlines()]
    for source, path in EXAMPLES.items()
}
LINES = [source for source, path in EXAMPLES.items() if path.suffix == ".jsonl"]
"""Sources whose transcripts are a record a line, and not one document."""


HOSTILE = {
    "@deep": "[" * 100_000 + "]" * 100_000,
    "@deeper than decoders": '{"text": ' * 990 + "1" + "}" * 990,
    "@deeper than encoders": "[" * 900 + "]" * 900,
    "@NUL": r'"a\u0000b"',
    "@lone surrogates": r'{"\ud800": "\udfff", "text": "\ud83d"}',
    "@huge": "9" * 5_000,
    "@beyond floats": "1e999",
    "@no number": "NaN",
    "@negative": "-5",
    "@year 0": '"0000-01-01T00:00:00Z"',
    "@year 1": '"0001-01-01T00:00:00+14:00"',
    "@year 9999": '"9999-12-31T23:59:59-14:00"',
    "@milliseconds of year 9999": "253402300799000",
    "@seconds before our era": "-62135596900",
}
"""What no program writes: the names stand in records for the JSON text behind them."""


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value within ``value``."""
    found = [at] if at else []
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for key, each in inner:
        found += places(each, (*at, key))
    return found


def write(folder: Path, source: str, records: list[Any]) -> None:
    text = "".join(json.dumps(record) + "\n" for record in records)
    for word, hostile in HOSTILE.items():
        text = text.replace(f'"{word}"', hostile)
    (folder / EXAMPLES[source].name).write_text(text)


def read(folder: Path, source: str) -> tuple[list[Session], list[InputError]]:
    """Return the sessions of a folder and the reasons why others could not be read."""
    reader = READERS[source]
    sessions: list[Session] = []
    refusals: list[InputError] = []
    for transcript in reader.find(walk(folder)):
        try:
            sessions.append(reader.read(transcript))
        except InputError as error:
            refusals.append(error)
    return sessions, refusals


@pytest.mark.parametrize("source", EXAMPLES)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_whatever_stands_in_a_field_a_session_or_a_reason_comes_out(
    source: str, data: st.DataObject
) -> None:
    records = json.loads(json.dumps(RECORDS[source]))
    for _ in range(data.draw(st.integers(1, 3))):
        way = data.draw(st.sampled_from(places(records)))
        target = records
        try:
            for key in way[:-1]:
                target = target[key]
            target[way[-1]] = data.draw(JSON | st.sampled_from(sorted(HOSTILE)))
        except (KeyError, IndexError, TypeError):
            continue
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), source, records)
        sessions, refusals = read(Path(name), source)
    assert all(error.reason for error in refusals)
    for session in sessions:
        assert msgspec.json.decode(msgspec.json.encode(session), type=Session) == session
        assert min(msgspec.structs.astuple(session.usage)) >= 0
        numbers = [turn.number for turn in session.turns if turn.number]
        assert numbers == list(range(1, len(numbers) + 1))
        assert session.prompt_count <= len(numbers)
        assert session.started <= session.ended


@pytest.mark.parametrize("source", EXAMPLES)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_a_file_cut_anywhere_keeps_what_stands_before_or_is_refused(
    source: str, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), source, RECORDS[source])
        (path,) = Path(name).iterdir()
        whole = path.read_bytes()
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
        _, refusals = read(Path(name), source)
    assert all(str(path) in str(error) for error in refusals)


def test_every_shared_transcript_is_claimed_by_one_reader_at_most() -> None:
    folder = Path(__file__).parents[3] / "../shared/sessions"
    claims: dict[str, set[str]] = {}
    for source, reader in READERS.items():
        for transcript in reader.find(walk(folder)) if folder.is_dir() else ():
            for path in (transcript.path, *transcript.companions):
                claims.setdefault(path, set()).add(source)
    assert [path for path, sources in claims.items() if len(sources) > 1] == []


def masked(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: masked(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [masked(inner, key) for inner in value]
    is_id = key.lower().endswith(("id", "uuid")) and key not in ("toolId", "modelId", "modelID")
    return "MASKED" if isinstance(value, str) and is_id else value


@pytest.mark.parametrize("source", sorted(set(EXAMPLES) - {"codex"}))  # has calls by events alone
def test_ids_that_are_masked_to_one_word_cost_no_call_and_no_token(
    source: str, tmp_path: Path
) -> None:
    write(tmp_path, source, RECORDS[source])
    ((true,), _) = read(tmp_path, source)
    write(tmp_path, source, masked(RECORDS[source]))
    ((hidden,), _) = read(tmp_path, source)
    assert hidden.usage == true.usage
    assert [call.name for call in calls_of(hidden)] == [call.name for call in calls_of(true)]


@pytest.mark.parametrize("source", EXAMPLES)
def test_a_file_that_grows_while_it_is_read_is_read_as_far_as_it_stands(
    source: str, tmp_path: Path
) -> None:
    write(tmp_path, source, RECORDS[source])
    (path,) = tmp_path.iterdir()
    ((whole,), _) = read(tmp_path, source)
    text, stopped = path.read_bytes(), threading.Event()

    def grow() -> None:
        while not stopped.is_set():
            with path.open("wb", buffering=0) as file:
                for start in range(0, len(text), 500):
                    file.write(text[start : start + 500])

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        for _ in range(50):
            sessions, refusals = read(tmp_path, source)
            assert all(error.reason for error in refusals)
            for session in sessions:
                assert len(session.turns) <= len(whole.turns)
                assert session.usage.output <= whole.usage.output
    finally:
        stopped.set()
        writer.join()
    assert read(tmp_path, source) == ([whole], [])


@pytest.mark.parametrize("source", EXAMPLES)
def test_what_is_no_file_beside_a_transcript_costs_nothing(source: str, tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "chatSessions"
    folder.mkdir(parents=True)
    write(folder, source, RECORDS[source])
    ((alone,), _) = read(tmp_path, source)
    (path,) = folder.iterdir()
    for name in ("workspace.json", "state.json", "a.meta.json", "a.json", "ui_messages.json"):
        for place in {folder, folder.parent}:
            if place / name != path:
                os.mkfifo(place / name)
    ending = path.name.removeprefix("a")
    os.mkfifo(folder / f"pipe{ending}")
    (folder / f"folder{ending}").mkdir()
    (folder / f"loop{ending}").symlink_to(folder / f"loop{ending}")
    (folder / f"round{ending}").symlink_to(tmp_path)
    (folder / f"nowhere{ending}").symlink_to(tmp_path / "nowhere")
    assert read(tmp_path, source) == ([alone], [])
    found = walk(tmp_path)
    names = {Path(problem.path).name.partition(".")[0] for problem in found.unreachable}
    assert names == {"loop", "nowhere"}


@pytest.mark.parametrize("source", LINES)
def test_a_line_beyond_the_longest_costs_nothing_but_itself(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, source, RECORDS[source])
    ((whole,), _) = read(tmp_path, source)
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write(json.dumps({"type": "user", "text": "x" * (9 << 20)}) + "\n")
    monkeypatch.setattr("debrief.sessions.readers.documents._LONGEST_LINE", 1 << 22)
    ((session,), _) = read(tmp_path, source)
    assert (session.turns, session.usage) == (whole.turns, whole.usage)
    assert any("a line of 9 MB is left out" in problem.reason for problem in session.problems)


@pytest.mark.parametrize("source", LINES)
@pytest.mark.parametrize("bad", [b"[" * 100_000, b'{"type": "mess', b"\xff\xfe", b"[1]"])
def test_a_broken_line_costs_nothing_but_itself(source: str, bad: bytes, tmp_path: Path) -> None:
    write(tmp_path, source, RECORDS[source])
    ((whole,), _) = read(tmp_path, source)
    first, *rest = (tmp_path / "a.jsonl").read_bytes().splitlines()
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([first, bad, *rest]))
    ((session,), _) = read(tmp_path, source)
    assert (session.turns, session.usage) == (whole.turns, whole.usage)
    assert 2 in {problem.line for problem in session.problems}


@pytest.mark.parametrize("source", EXAMPLES)
def test_a_look_at_the_beginning_agrees_with_the_whole(source: str, tmp_path: Path) -> None:
    write(tmp_path, source, RECORDS[source])
    (transcript,) = READERS[source].find(walk(tmp_path))
    peek, session = READERS[source].peek(transcript), READERS[source].read(transcript)
    assert peek is not None
    assert peek.session_id == session.id
    Path(transcript.path).unlink()
    with pytest.raises(InputError, match="cannot be read"):
        READERS[source].read(transcript)


@pytest.mark.parametrize("source", LINES)
@pytest.mark.parametrize(("end", "kind"), [(b"\n", NoSession), (b'\n{"ty', BrokenTranscript)])
def test_a_start_alone_is_no_session_and_a_broken_one_is_refused(
    source: str, end: bytes, kind: type[InputError], tmp_path: Path
) -> None:
    write(tmp_path, source, RECORDS[source][:1])
    path = tmp_path / "a.jsonl"
    path.write_bytes(path.read_bytes().rstrip() + end)
    (_, (refusal,)) = read(tmp_path, source)
    assert type(refusal) is kind
    assert str(path) in str(refusal)
