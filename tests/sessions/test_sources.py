"""Discovery finds every transcript once, opens only what changed, and loses nothing."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from debrief.cli.sources import scan_stats
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.opening import OPENING, opened
from debrief.sessions import readers, sources
from debrief.sessions.model import Session, UnreadTranscript
from debrief.sessions.readers import READERS
from debrief.sessions.scanning import ScanEntry
from debrief.sessions.sources import OWN_QUESTION, read_week, scan
from tests.sessions.readers.content import prompts_of, write_records
from tests.sessions.scanned import WEEK, blank, session, sessions, written
from tests.sessions.scenario import MONDAY, SESSION, Log, usage
from tests.waiting import is_done_within


def test_sessions_come_by_week_sorted_by_start_and_id(tmp_path: Path) -> None:
    written(tmp_path, session(3, 1), session(1, 2), session(2, 1), session(4, 8))
    found = scan([tmp_path])
    assert found.weeks() == [WEEK, "2026-01-12"]
    ids = [item.id[-1] for item in read_week(found, WEEK) if isinstance(item, Session)]
    assert ids == ["2", "3", "1"]


def test_every_session_has_the_digest_of_its_redacted_form(tmp_path: Path) -> None:
    written(tmp_path, session(prompt="my password is swordfish"))
    found = scan([tmp_path])

    def redact(item: Session) -> Session:
        turns = [
            msgspec.structs.replace(t, prompt=t.prompt.replace("swordfish", "*"))
            for t in item.turns
        ]
        return msgspec.structs.replace(item, turns=tuple(turns))

    (plain,) = read_week(found, WEEK)
    (redacted,) = read_week(found, WEEK, redact)
    assert isinstance(plain, Session)
    assert isinstance(redacted, Session)
    assert redacted.turns[0].prompt == "my password is *"
    assert redacted.digest == digest_of(msgspec.structs.replace(redacted, digest=""))
    assert redacted.digest != plain.digest


def test_only_what_changed_is_opened(tmp_path: Path) -> None:
    log = session(1)
    written(tmp_path, log, session(2))
    (tmp_path / "notes.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "package.json").write_text("{}")
    first = scan([tmp_path])
    blank(tmp_path)
    assert scan([tmp_path], first.entries).entries == first.entries
    log.user("More")
    written(tmp_path, log, session(3))
    changed = scan([tmp_path], first.entries)
    assert {entry.own_id[-1:] for entry in changed.entries if entry.source} == {"1", "2", "3"}
    assert [item.prompt_count for item in sessions(changed)] == [2, 1]


def test_a_changed_subagents_file_means_reading_its_session_again(tmp_path: Path) -> None:
    log = session(1)
    written(tmp_path, log)
    agent = Log(log.session)
    agent.user("Look", isSidechain=True, agentId="a1")
    path = agent.write(tmp_path / log.session / "subagents" / "agent-a1.jsonl")
    first = scan([tmp_path])
    agent.says("Found", isSidechain=True, agentId="a1")
    agent.write(path)
    again = scan([tmp_path], first.entries)
    assert first.digest(WEEK) != again.digest(WEEK)


def test_a_file_that_no_reader_claimed_is_asked_again_when_there_are_new_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, session(1))
    with monkeypatch.context() as patch:
        patch.setattr(sources, "READERS", {})
        known = scan([tmp_path])
    assert [entry.source for entry in known.entries] == [""]
    assert [entry.source for entry in scan([tmp_path], known.entries).entries] == ["claude-code"]


def test_ten_thousand_unchanged_files_would_take_at_most_two_seconds(tmp_path: Path) -> None:
    line = session(1).lines()[0]
    for number in range(2_000):
        folder = tmp_path / f"project-{number % 100}"
        folder.mkdir(exist_ok=True)
        id = f"{uuid4()}"
        (folder / f"{id}.jsonl").write_bytes(line.replace(SESSION.encode(), id.encode()))
    first = scan([tmp_path])
    assert len(scan([tmp_path], first.entries).entries) == 2_000
    assert is_done_within(2 / 5, lambda: scan([tmp_path], first.entries))


def test_what_a_scan_remembers_can_be_stored_in_the_lake(tmp_path: Path) -> None:
    written(tmp_path / "logs", session(1))
    (tmp_path / "logs" / "empty.jsonl").touch()
    first = scan([tmp_path / "logs", tmp_path / "nowhere"])
    lake = Lake(str(tmp_path / "lake"))
    lake.write("scan", "transcripts", first.entries, ScanEntry)
    remembered = list(lake.read("scan", "transcripts", ScanEntry))
    assert tuple(remembered) == first.entries


def test_copies_in_other_folders_and_under_other_names_are_the_same_session(tmp_path: Path) -> None:
    log = session(1)
    written(tmp_path / "a", log)
    log.write(tmp_path / "checkpoints" / "7" / "full.jsonl")
    log.user("And more")
    written(tmp_path / "b", log)
    (only,) = sessions(scan([tmp_path]))
    assert (only.id, prompts_of(only)) == (log.session, ["Go", "And more"])
    assert (only.usage.output, only.api_calls, only.lines_added) == (2, 1, 0)
    assert len(only.transcripts) == 3


def test_a_resumption_under_another_id_is_the_same_session(tmp_path: Path) -> None:
    log = session(1)
    written(tmp_path, log)
    resumed = session(1)
    resumed.user("Go on")
    resumed.session = session(2).session
    for record in resumed.records:
        record["sessionId"] = resumed.session
    written(tmp_path, resumed)
    (only,) = sessions(scan([tmp_path]))
    assert only.id == log.session
    assert (only.prompt_count, only.api_calls) == (2, 1)


def test_ids_that_no_tool_would_give_do_not_unite_strangers(tmp_path: Path) -> None:
    for number in (1, 2):
        log = session(number, prompt=f"Prompt {number}")
        for record in log.records:
            record["sessionId"] = "test"
        log.write(tmp_path / f"{number}" / "test.jsonl")
    found = sessions(scan([tmp_path]))
    assert [item.turns[0].prompt for item in found] == ["Prompt 1", "Prompt 2"]
    assert len({item.id for item in found}) == 2


def test_an_orphaned_subagents_file_elsewhere_joins_its_session(tmp_path: Path) -> None:
    log = session(1)
    written(tmp_path / "a", log)
    agent = Log(session=log.session, started=MONDAY + timedelta(hours=1))
    agent.user("Look", isSidechain=True, agentId="a1", uuid="x1")
    agent.says("Found", isSidechain=True, agentId="a1", uuid="x2", usage=usage(3, 3), id="am")
    agent.write(tmp_path / "b" / "agent-a1.jsonl")
    (only,) = sessions(scan([tmp_path]))
    assert [agent.id for agent in only.subagents] == ["a1"]
    assert (only.usage.input, only.api_calls) == (4, 2)


def test_sources_are_registered_by_being_there() -> None:
    assert "claude-code" in READERS
    assert all(READERS[source].source == source for source in READERS)
    assert list(READERS) == sorted(READERS)


def test_the_source_of_the_documentation_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
    source = page.split("```python\n")[1].split("```")[0]
    (tmp_path / "notes.py").write_text(source)
    monkeypatch.setattr(readers, "__path__", [*readers.__path__, str(tmp_path)])
    notes = [
        {"who": "person", "text": "go", "timestamp": "2026-01-05T12:00:00Z"},
        {"who": "agent", "text": "done", "tool": "edit", "result": "ok", "model": "m"}
        | {"input": {"path": "a.py", "old_str": "x", "new_str": "y"}}
        | {"tokens": {"in": 50, "out": 2, "cached": 7}},
    ]
    write_records(tmp_path / "n1.jsonl", *notes)
    registry = readers.Registry()
    assert registry.actions["run_terminal_cmd"] == "run"
    monkeypatch.setattr(sources, "READERS", registry)
    (session,) = sessions(scan([tmp_path]))
    assert (session.id, session.prompt_count, session.models) == ("n1", 1, ("m",))
    assert (session.lines_added, session.lines_removed) == (1, 1)
    assert (session.usage.input, session.usage.output) == (50, 2)
    assert session.usage.cache_read == 7


def test_finding_and_reading_need_no_heavy_module() -> None:
    program = (
        "import sys\n"
        "from debrief.sessions.sources import READERS\n"
        "assert len(READERS) > 1\n"
        "print(sorted({'pyarrow', 'pandas', 'dagster', 'pydantic', 'litellm'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_what_a_program_kept_of_our_own_questions_is_no_session(tmp_path: Path) -> None:
    written(
        tmp_path,
        session(1, prompt=f"{opened('Score this session.')}\nWhat the task is: mend add()"),
        session(2, prompt="Debrief asks (v7)\n\nOf another version."),
        session(3, prompt=f"Why does a prompt open with '{OPENING}'?"),
    )
    found = scan([tmp_path])
    assert [item.id[-1] for item in sessions(found)] == ["3"]
    own = [item for item in read_week(found, WEEK) if isinstance(item, UnreadTranscript)]
    assert [(item.expected, item.reason) for item in own] == [(True, OWN_QUESTION)] * 2
    assert scan([tmp_path], found.entries).entries == found.entries
    stats = scan_stats(found)["claude-code"]
    assert (stats.sessions, stats.empty[OWN_QUESTION], stats.unread.total()) == (1, 2, 0)
