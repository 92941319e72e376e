"""What the lake keeps of a week's sessions from one reading to the next."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.redaction.redactor import Redactor
from debrief.sessions.model import Session, ToolCall, UnreadTranscript, calls_of
from debrief.sessions.scanning import ScanEntry, with_digest
from debrief.sessions.store import (
    SCAN_PARTITION,
    SCAN_TABLE,
    SESSIONS_TABLE,
    UNREAD_TABLE,
    scan_into,
    session_in_folders,
    store_week,
)
from tests.redaction.synthetic import Maker
from tests.sessions.readers.content import write_records
from tests.sessions.scanned import blank
from tests.sessions.scenario import Log, usage

WEEK = "2026-09-07"
REDACTOR = Redactor(b"a key of thirty-two bytes, or so.")

CALL = ToolCall(id="c", name="Bash", input='{"command":"make"}')


def part(folder: Path, place: str, *moments: str, session: int = 0, prompt: str = "Go on") -> Path:
    """Write a transcript of a session with a prompt and an answer at each moment."""
    log = Log(session=f"00000000-0000-4000-8000-{session:012d}", cwd="/home/sam/shop")
    for at in moments:
        log.user(f"{prompt} at {at}", uuid=f"user{at}", timestamp=f"{at}:00Z")
        answer = {"uuid": f"assistant{at}", "timestamp": f"{at}:09Z"}
        log.says(f"Went on at {at}.", id=f"m{at}", usage=usage(9, 9), **answer)
    return log.write(folder / place / f"{log.session}.jsonl")


def transcript(folder: Path, number: int, prompt: str = "Make the retries stop") -> Path:
    """Write a transcript of one prompt and one answer."""
    moment = f"2026-09-{7 + number:02}T10:00"
    return part(folder, "-home-sam-shop", moment, session=number, prompt=prompt)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "projects"


def read_again(lake: Lake, folder: Path) -> list[Session]:
    store_week(lake, scan_into(lake, [folder], REDACTOR), WEEK, REDACTOR)
    return stored(lake)


def stored(lake: Lake) -> list[Session]:
    return list(lake.read(SESSIONS_TABLE, WEEK, Session))


def numbers(sessions: list[Session]) -> Iterator[int]:
    return (int(session.id[-12:]) for session in sessions)


def test_a_session_outlasts_its_transcript_in_its_place(lake: Lake, folder: Path) -> None:
    paths = [transcript(folder, number) for number in (0, 1, 2)]
    before = read_again(lake, folder)
    paths[1].unlink()
    transcript(folder, 3)
    after = read_again(lake, folder)
    assert list(numbers(after)) == [0, 1, 2, 3]
    assert after[:3] == before


def test_a_session_is_found_in_folders_by_the_beginning_of_its_id(folder: Path) -> None:
    for number in (1, 2):
        transcript(folder, number)
    first = "00000000-0000-4000-8000-000000000001"
    found = session_in_folders([folder], first, lambda session: session)
    assert found is not None
    assert (found.id, found.turns[0].prompt[:7]) == (first, "Make th")
    assert session_in_folders([folder], "11111111", lambda session: session) is None
    with pytest.raises(InputError, match="00000000"):
        session_in_folders([folder], first[:-1], lambda session: session)
    with pytest.raises(InputError, match="6 characters of a session's id are needed"):
        session_in_folders([folder], "0000", lambda session: session)
    assert session_in_folders([folder], "1111", lambda session: session) is None


def test_no_name_and_no_id_in_the_lake_shows_a_secret(lake: Lake, folder: Path) -> None:
    make = Maker(41)
    secrets = [make.github() for _ in range(3)]
    log = Log("Go", session=f"run-{secrets[0]}", started=datetime(2026, 9, 8, tzinfo=UTC))
    log.says("Gone.", id="m1", usage=usage(1, 2))
    path = log.write(folder / f"-home-sam-{secrets[1]}" / "s.jsonl")
    (folder / f"{secrets[2]}.jsonl").touch()
    os.utime(folder / f"{secrets[2]}.jsonl", (1788900000, 1788900000))
    before = read_again(lake, folder)
    assert [session.id for session in before] == [
        f"run-{REDACTOR.placeholder('github-token', secrets[0])}"
    ]
    unread = list(lake.read(UNREAD_TABLE, WEEK, UnreadTranscript))
    assert len(unread) == 1
    entries = list(lake.read(SCAN_TABLE, SCAN_PARTITION, ScanEntry))
    assert {entry.path for entry in entries} == {before[0].transcripts[0].path, unread[0].path}
    assert not [secret for secret in secrets if secret in str((before, unread, entries))]
    blank(folder)
    assert store_week(lake, scan_into(lake, [folder], REDACTOR), WEEK, REDACTOR)
    path.unlink()
    assert read_again(lake, folder) == before


def test_a_week_whose_transcripts_are_all_gone_keeps_its_rows(lake: Lake, folder: Path) -> None:
    transcript(folder, 0)
    before = read_again(lake, folder)
    digest = lake.stamp(SESSIONS_TABLE, WEEK)
    shutil.rmtree(folder)
    assert read_again(lake, folder) == before
    after = lake.stamp(SESSIONS_TABLE, WEEK)
    assert digest is not None
    assert after is not None
    assert after.digest == digest.digest


def test_a_row_of_an_older_form_says_what_its_calls_are_by_the_next_run(
    lake: Lake, folder: Path
) -> None:
    path = part(folder, "shop", TEN)
    (before,) = read_again(lake, folder)
    bare = replace(CALL, action="other", command="", paths=())
    said = replace(before.turns[0].messages[0], calls=(bare,))
    turns = (replace(before.turns[0], messages=(said,)), *before.turns[1:])
    lake.write(SESSIONS_TABLE, WEEK, [replace(before, turns=turns)], Session)
    path.unlink()
    transcript(folder, 3)
    after = read_again(lake, folder)[0]
    assert after.id == before.id
    assert [(call.action, call.command) for call in calls_of(after)] == [("run", "make")]
    assert after.digest == with_digest(after).digest != before.digest


def test_a_transcript_that_moved_is_the_same_session(lake: Lake, folder: Path) -> None:
    path = transcript(folder, 0)
    read_again(lake, folder)
    moved = folder / "-home-sam-store" / path.name
    moved.parent.mkdir()
    path.rename(moved)
    (session,) = read_again(lake, folder)
    assert session.transcripts[0].path == str(moved)


def test_a_transcript_that_can_no_longer_be_read_is_told_and_not_kept_twice(
    lake: Lake, folder: Path
) -> None:
    path = transcript(folder, 0)
    transcript(folder, 1)
    read_again(lake, folder)
    path.write_text("{}\n")
    assert list(numbers(read_again(lake, folder))) == [1]


TEN, ELEVEN, TWELVE, ONE = (f"2026-09-08T{hour}:00" for hour in (10, 11, 12, 13))


def moments(session: Session) -> list[str]:
    return [turn.prompt.removeprefix("Go on at ") for turn in session.turns]


def test_a_part_of_a_session_outlasts_its_transcript(lake: Lake, folder: Path) -> None:
    part(folder, "shop", TEN, ELEVEN)
    other = part(folder, "shop-worktree", TWELVE)
    before = read_again(lake, folder)
    assert moments(before[0]) == [TEN, ELEVEN, TWELVE]
    other.unlink()
    assert read_again(lake, folder) == before
    assert read_again(lake, folder) == before


def test_what_grows_after_a_part_is_gone_joins_what_was_read_of_it(
    lake: Lake, folder: Path
) -> None:
    part(folder, "shop", TEN, TWELVE)
    other = part(folder, "shop-worktree", ELEVEN)
    ((before,), gone) = (read_again(lake, folder), str(other))
    other.unlink()
    for grown in ([TEN, TWELVE, ONE], [TEN, TWELVE, ONE, "2026-09-08T14:00"]):
        path = part(folder, "shop", *grown)
        (after,) = read_again(lake, folder)
        assert moments(after) == sorted([*grown, ELEVEN])
        assert after.api_calls == after.usage.output // 9 == len(grown) + 1
        assert {ref.path for ref in after.transcripts} == {str(path), gone}
        assert [ref for ref in after.transcripts if ref.path == gone] == [
            ref for ref in before.transcripts if ref.path == gone
        ]


def test_a_session_stays_in_its_week_when_the_part_that_it_began_with_is_gone(
    lake: Lake, folder: Path
) -> None:
    first = part(folder, "shop", TEN)
    part(folder, "shop-worktree", "2026-09-15T10:00")
    before = read_again(lake, folder)
    first.unlink()
    for _ in range(2):
        found = scan_into(lake, [folder], REDACTOR)
        assert found.weeks() == [WEEK]
        store_week(lake, found, WEEK, REDACTOR)
        assert stored(lake) == before


def test_a_transcript_that_comes_back_is_read_again(lake: Lake, folder: Path) -> None:
    part(folder, "shop", TEN)
    other = part(folder, "shop-worktree", ELEVEN)
    before = read_again(lake, folder)
    other.unlink()
    read_again(lake, folder)
    part(folder, "shop-worktree", ELEVEN)
    assert read_again(lake, folder) == before


def test_a_copy_that_held_nothing_besides_is_gone_without_a_trace(lake: Lake, folder: Path) -> None:
    whole = part(folder, "shop", TEN, ELEVEN)
    copy = part(folder, "backup", TEN)
    read_again(lake, folder)
    copy.unlink()
    part(folder, "shop", TEN, ELEVEN, TWELVE)
    (after,) = read_again(lake, folder)
    assert moments(after) == [TEN, ELEVEN, TWELVE]
    assert [ref.path for ref in after.transcripts] == [str(whole)]


def test_a_session_all_of_whose_parts_are_gone_stays(lake: Lake, folder: Path) -> None:
    parts = [part(folder, "shop", TEN), part(folder, "shop-worktree", ELEVEN)]
    before = read_again(lake, folder)
    for path in parts:
        path.unlink()
        transcript(folder, 3)
        assert read_again(lake, folder)[0] == before[0]


def test_secrets_of_a_part_that_is_gone_stay_hidden_and_counted(lake: Lake, folder: Path) -> None:
    token = "ghp_" + "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0bC1dE2"
    part(folder, "shop", TEN)
    other = part(folder, "shop-worktree", ELEVEN, prompt=f"Use {token}")
    (before,) = read_again(lake, folder)
    other.unlink()
    part(folder, "shop", TEN, TWELVE)
    (after,) = read_again(lake, folder)
    assert token not in repr(after)
    assert "<secret:github-token:" in repr(after)
    assert after.redactions == before.redactions == 1


@pytest.mark.parametrize("parts", [1, 2])
def test_what_is_known_to_be_a_secret_by_now_leaves_rows_whose_transcripts_are_gone(
    lake: Lake, folder: Path, parts: int
) -> None:
    token = "ghp_" + "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0bC1dE2"
    files = [part(folder, f"shop-{number}", at) for number, at in enumerate((TEN, ELEVEN)[:parts])]
    (before,) = read_again(lake, folder)
    turns = (replace(before.turns[0], prompt=f"Use {token}"), *before.turns[1:])
    lake.write(SESSIONS_TABLE, WEEK, [replace(before, turns=turns)], Session)
    files[0].unlink()
    transcript(folder, 3)
    after = read_again(lake, folder)[0]
    assert after.id == before.id
    assert token not in repr(after)
    assert after.redactions == 1
    assert after.digest == with_digest(after).digest != before.digest


def test_a_subagent_outlasts_its_transcript(lake: Lake, folder: Path) -> None:
    path = part(folder, "shop", TEN)
    own = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    lines = [json.loads(line) for line in part(folder, "other", ELEVEN).read_text().splitlines()]
    marked = [{**line, "isSidechain": True, "agentId": "a1"} for line in lines]
    write_records(own, *marked)
    shutil.rmtree(folder / "other")
    before = read_again(lake, folder)
    assert [len(agent.messages) for agent in before[0].subagents] == [1]
    own.unlink()
    assert read_again(lake, folder) == before
