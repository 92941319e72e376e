"""Stored records as lines, and as folders of sets that load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.recorder.contracts import Record, Status
from debrief.recorder.encoding import encode_record
from debrief.recorder.exporting import (
    EXPORT_FORMS,
    lines_of,
    publish_as_records,
    publish_records,
    record_line,
    training_line,
)
from debrief.recorder.storage.rows import StoredRecord
from debrief.sessions.model import Session
from debrief.sessions.readers.recorder import NO_CONTENTS
from debrief.sessions.sources import read_week, scan
from debrief.training.formats import validate_line
from debrief.training.model import SampleLine
from debrief.training.options import TrainingOptions
from debrief.training.publishing.forms import RECORD_FORMS
from debrief.training.samples import SECRET_FOUND
from debrief.training.selection import NEAR_DUPLICATE
from debrief.training.splits import BY_WEEK
from tests.machine import files_below
from tests.recorder.records import as_json, build, without_contents
from tests.training.publishing.readers import problems

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def row(record: Record | bytes, status: Status = "ready", id: UUID | None = None) -> StoredRecord:
    text = record if isinstance(record, bytes) else encode_record(record)
    return StoredRecord(id or uuid4(), status, text)


def line(record: Record | bytes, form: str = "messages", status: Status = "ready") -> bytes:
    (made,) = lines_of(form, [row(record, status)])
    assert not made.withheld
    return made.line


def test_tools_are_described_as_the_record_itself_describes_them() -> None:
    made = {
        tool["function"]["name"]: tool["function"] for tool in orjson.loads(line(build()))["tools"]
    }
    assert made.keys() == {"repo_readFile", "apply_patch", "run_cmd"}
    own = {tool.function["name"]: tool.function for tool in build().tools}
    assert made["apply_patch"]["description"] == own["apply_patch"]["description"]
    parameters = own["apply_patch"]["parameters"]
    assert isinstance(parameters, dict)
    assert made["apply_patch"]["parameters"]["properties"] == parameters["properties"]


def test_the_conversation_is_the_records_to_the_letter() -> None:
    record = as_json(build())
    made = orjson.loads(line(build()))["messages"]
    calls = [call["function"] for m in made for call in m.get("tool_calls", ())]
    assert {call["name"] for call in calls} == {"repo_readFile", "apply_patch", "run_cmd"}
    assert [m["content"] for m in made] == [m["content"] for m in record["messages"]]
    assert [call["arguments"] for call in calls] == [
        c["function"]["arguments"] for m in record["messages"] for c in m.get("tool_calls", ())
    ]


def test_metadata_tells_where_a_line_is_from_and_that_nobody_scored_it() -> None:
    metadata = msgspec.json.decode(line(build(), status="draft"), type=SampleLine).metadata
    assert (metadata.task, metadata.repository, metadata.base_commit) == ("cart", "shop", "1" * 40)
    assert (metadata.status, metadata.tool) == ("draft", "recorder")
    assert (metadata.scoring_fingerprint, metadata.scoring_model) == ("", "")
    assert (metadata.verdict, metadata.verdict_ground, metadata.quality) == (
        "cannot_tell",
        "",
        None,
    )
    assert [(score.name, score.value, score.category) for score in metadata.scores] == [
        ("verdict", 0.0, "cannot_tell"),
        ("user_turn_efficiency", 9.0, ""),
    ]
    assert metadata.split == BY_WEEK.side_of("shop", build().meta.started_at)
    assert msgspec.json.decode(line(build()), type=SampleLine).metadata.status == "ready"


def test_records_that_were_searched_when_they_were_stored_are_not_searched_again() -> None:
    bad = row(build(after={"a.ts": f"const token = '{SECRET}';\n"}))
    (made,) = lines_of("record", [bad])
    assert made.line == bad.text + b"\n"
    (made,) = lines_of("trl", [bad])
    assert SECRET.encode() in made.line
    for refused in (record_line, training_line):
        with pytest.raises(InputError, match=SECRET_FOUND):
            refused(bad)


def test_what_gives_no_line_is_withheld_with_the_reason_and_costs_no_other() -> None:
    records = [row(without_contents()), row(b"{}"), row(build())]
    first, second, third = lines_of("trl", records)
    assert (first.line, first.withheld) == (b"", NO_CONTENTS)
    assert "is no record" in second.withheld
    assert third.line


def test_one_record_is_held_at_a_time() -> None:
    seen: list[int] = []

    def rows() -> Iterator[StoredRecord]:
        for number in range(3):
            seen.append(number)
            yield row(build())

    lines = lines_of("messages", rows())
    next(lines)
    assert seen == [0]


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
FILES = st.dictionaries(st.sampled_from(["a.ts", "b/c.ts", "d.md"]), TEXT.map(lambda t: t + "\n"))


@settings(max_examples=30)
@given(FILES, FILES, TEXT)
def test_whatever_was_changed_gives_a_valid_line_in_every_form(
    before: dict[str, str], after: dict[str, str], output: str
) -> None:
    text = encode_record(build(before, after, final=((["test"], output),)))
    for form in EXPORT_FORMS[1:]:
        (made,) = lines_of(form, [row(text)])
        assert made.withheld in ("", SECRET_FOUND)
        assert made.withheld or problems(form, made.line) == []


def test_lines_of_records_load_beside_those_of_the_pipeline(tmp_path: Path) -> None:
    import datasets

    from debrief.training.samples import encode_line
    from tests.training.scenario import line_of, session

    files = {
        "a.jsonl": line(build()) + line(build(earlier=())),
        "b.jsonl": encode_line(line_of(session())),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    loaded = datasets.load_dataset(
        "json",
        data_files=[str(tmp_path / name) for name in files],
        cache_dir=str(tmp_path / "cache"),
        split="train",
    )
    assert loaded.num_rows == 3
    assert validate_line(files["a.jsonl"].split(b"\n")[0]) == []


MONDAY = datetime(2026, 11, 2, 9, tzinfo=UTC)
WORDS = [
    *("amber", "birch", "cedar", "delta", "ember", "flint", "grove", "heath"),
    *("inlet", "jetty", "knoll", "larch", "maple", "north"),
]


def a_record(
    number: int, repository: str = "shop", week: int = 0, text: str = "", **meta: Any
) -> Record:
    """A session that resembles no other, unless its text does."""
    words = [
        WORDS[(number * 7 + place * (number + 3)) % len(WORDS)] + str(number) for place in range(60)
    ]
    content = text or "\n".join(" ".join(words[at : at + 6]) for at in range(0, 60, 6)) + "\n"
    started = MONDAY + timedelta(weeks=week, minutes=number)
    return build(
        {},
        {f"src/{WORDS[number % len(WORDS)]}.ts": content},
        session_id=UUID(int=number + 1),
        repo_name=repository,
        started_at=started,
        stopped_at=started + timedelta(minutes=1),
        **meta,
    )


def rows(records: Sequence[Record], status: Status = "ready") -> list[StoredRecord]:
    return [StoredRecord(r.meta.session_id, status, encode_record(r)) for r in records]


def sides(folder: Path) -> dict[str, str]:
    """The side that each session is on."""
    return {
        orjson.loads(line)["metadata"]["session_id"]: path.stem
        for path in folder.rglob("*.jsonl")
        for line in path.read_bytes().splitlines()
    }


MANY = [a_record(n, repository=f"repo{n % 6}", week=n % 4) for n in range(24)]


def test_a_repositorys_sessions_of_one_week_are_on_one_side(tmp_path: Path) -> None:
    publish_records(rows(MANY), str(tmp_path), "messages", TrainingOptions(eval_share=0.4))
    found = sides(tmp_path)
    assert len(found) == len(MANY)
    assert set(found.values()) == {"train", "eval"}
    places: dict[tuple[str, int], set[str]] = defaultdict(set)
    for record in MANY:
        meta = record.meta
        side = found[str(meta.session_id)]
        places[meta.repo_name, (meta.started_at - MONDAY).days // 7].add(side)
        assert side == BY_WEEK.side_of(meta.repo_name, meta.started_at, 0.4)
    assert all(len(on) == 1 for on in places.values())


def test_the_same_records_in_any_order_give_the_same_bytes(tmp_path: Path) -> None:
    first = publish_records(rows(MANY), str(tmp_path / "a"), "trl", TrainingOptions())
    publish_records(rows(MANY[::-1]), str(tmp_path / "b"), "trl", TrainingOptions())
    assert files_below(tmp_path / "a") == files_below(tmp_path / "b")
    again = publish_records(rows(MANY), str(tmp_path / "a"), "trl", TrainingOptions())
    assert (first.changed, again.changed) == (True, False)


def test_a_copy_of_a_session_is_left_out(tmp_path: Path) -> None:
    text = "\n".join(f"{word} and {word} again {place}" for place, word in enumerate(WORDS * 6))
    copy, original = (a_record(n, text=text, week=0) for n in (2, 1))
    done = publish_records(rows([copy, original]), str(tmp_path), "messages", TrainingOptions())
    assert done.left_out == {str(copy.meta.session_id): NEAR_DUPLICATE.reason}


@pytest.mark.parametrize("form", RECORD_FORMS)
def test_the_folder_loads_as_splits(tmp_path: Path, form: str) -> None:
    import datasets

    done = publish_records(
        rows(MANY), str(tmp_path / "sets"), form, TrainingOptions(eval_share=0.4)
    )
    loaded = datasets.load_dataset(str(tmp_path / "sets"), cache_dir=str(tmp_path / "cache"))
    assert done.published is not None
    (made,) = done.published.sets
    assert {side: loaded[side].num_rows for side in loaded} == made.lines
    for path in (tmp_path / "sets").rglob("*.jsonl"):
        for line in path.read_bytes().splitlines(keepends=True):
            assert problems(form, line) == []


def test_one_side_alone_can_be_had(tmp_path: Path) -> None:
    publish_records(rows(MANY), str(tmp_path), "messages", TrainingOptions(eval_share=0.4), "eval")
    assert set(sides(tmp_path).values()) == {"eval"}


def test_tasks_and_prompts_are_sets_of_their_own(tmp_path: Path) -> None:
    publish_records(
        rows([a_record(1), a_record(2, task_id="forms")]),
        str(tmp_path),
        "messages",
        TrainingOptions(),
    )
    tops = {str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("*.jsonl")}
    assert len(tops) == 2
    assert {Path(top).parts[0] for top in tops} == {"cart", "forms"}
    assert all(top.endswith("-unknown") for top in tops)
    card = next(tmp_path.rglob("card.md")).read_text()
    assert "1 recorded sessions" in card
    assert "Nobody has judged" in card


def test_of_two_records_with_one_id_the_later_counts(tmp_path: Path) -> None:
    record = a_record(1)
    twice = [*rows([record], "draft"), *rows([record], "ready")]
    publish_records(twice, str(tmp_path), "messages", TrainingOptions())
    (path,) = tmp_path.rglob("*.jsonl")
    (line,) = path.read_bytes().splitlines()
    assert orjson.loads(line)["metadata"]["status"] == "ready"


@pytest.mark.parametrize("form", ["record", "preference", "kto", "parquet"])
def test_a_form_that_sets_do_not_have_is_refused(tmp_path: Path, form: str) -> None:
    with pytest.raises(
        InputError, match="messages, trl, axolotl, swift, sharegpt, openai, mistral"
    ):
        publish_records([], str(tmp_path), form, TrainingOptions())


def test_records_as_they_are_can_be_read_as_sessions_again(tmp_path: Path) -> None:
    bad = StoredRecord(UUID(int=99), "draft", b"{}")
    done = publish_as_records([*rows(MANY), bad], str(tmp_path))
    assert done.files == {"cart.record.jsonl": len(MANY)}
    assert list(done.left_out) == [str(bad.id)]
    lines = (tmp_path / "cart.record.jsonl").read_bytes().splitlines()
    assert sorted(lines) == sorted(encode_record(record) for record in MANY)
    found = scan([tmp_path])
    sessions = [row for week in found.weeks() for row in read_week(found, week)]
    assert {row.id for row in sessions if isinstance(row, Session)} == {
        str(record.meta.session_id) for record in MANY
    }
