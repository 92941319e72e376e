"""Stored records as lines: as they are, or as messages with legal names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import orjson

from debrief.recorder.contracts import Record, Status
from debrief.recorder.encoding import encode_record
from debrief.recorder.exporting import Form, lines_of
from debrief.recorder.storage.rows import StoredRecord
from debrief.recorder.stored import NO_CONTENTS
from debrief.sessions.model import Session
from debrief.sessions.sources import read_week, scan
from tests.recorder.records import as_json, build, without_contents


def row(record: Record | bytes, status: Status = "ready", id: UUID | None = None) -> StoredRecord:
    text = record if isinstance(record, bytes) else encode_record(record)
    return StoredRecord(id or uuid4(), status, text)


def line(record: Record | bytes, form: Form = "messages", status: Status = "ready") -> bytes:
    (made,) = lines_of(form, [row(record, status)])
    assert not made.withheld
    return made.line


def test_messages_are_the_records_to_the_letter_but_for_a_name_with_a_dot() -> None:
    record, made = as_json(build()), orjson.loads(line(build()))
    text = orjson.dumps([record["messages"], record["tools"]])
    renamed = orjson.loads(text.replace(b'"name":"repo.readFile"', b'"name":"repo_readFile"'))
    assert [made["messages"], made["tools"]] == renamed
    assert [tool["function"]["name"] for tool in made["tools"]] == [
        "repo_readFile",
        "apply_patch",
        "run_cmd",
    ]


def test_metadata_tells_where_a_line_is_from() -> None:
    assert orjson.loads(line(build(), status="draft"))["metadata"] == {
        "session_id": str(build().meta.session_id),
        "task": "cart",
        "repository": "shop",
        "base_commit": "1" * 40,
        "status": "draft",
    }


def test_what_gives_no_line_is_withheld_with_the_reason_and_costs_no_other() -> None:
    empty = row(b'{"messages":[],"tools":[],"meta":{}}')
    records = [row(without_contents()), row(b"{}"), empty, row(build())]
    first, second, third, last = lines_of("messages", records)
    assert (first.line, first.withheld) == (b"", NO_CONTENTS)
    assert "is no record" in second.withheld
    assert "is no record" in third.withheld
    assert last.line


def test_one_record_is_held_at_a_time() -> None:
    seen: list[int] = []

    def rows() -> Iterator[StoredRecord]:
        for number in range(3):
            seen.append(number)
            yield row(build())

    next(lines_of("messages", rows()))
    assert seen == [0]


def test_a_file_of_records_is_read_as_sessions_by_the_pipeline(tmp_path: Path) -> None:
    ids = {uuid4(), uuid4()}
    lines = [line(build(session_id=id), "record") for id in sorted(ids)]
    (tmp_path / "cart.record.jsonl").write_bytes(b"".join(lines))
    found = scan([tmp_path])
    sessions = [row for week in found.weeks() for row in read_week(found, week)]
    assert {row.id for row in sessions if isinstance(row, Session)} == set(map(str, ids))


def test_lines_load_with_datasets(tmp_path: Path) -> None:
    import datasets

    (tmp_path / "a.jsonl").write_bytes(line(build()) + line(build(earlier=())))
    loaded = datasets.load_dataset(
        "json",
        data_files=str(tmp_path / "a.jsonl"),
        cache_dir=str(tmp_path / "cache"),
        split="train",
    )
    assert loaded.num_rows == 2
