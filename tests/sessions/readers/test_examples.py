"""Readers by example: files as a tool lays them, and the sessions that come out of them.

A folder ``examples/<source>/<what it shows>`` holds ``input``, a folder of transcripts, and
``expected.json``: the normal form of each session by its path, or the reason why there is none.
What stands at its default is left out, as are sizes and digests. A database is SQL text, in a file
with ``.sql`` behind its name. ``pytest tests/sessions/readers/test_examples.py --rewrite`` writes
what is read now into ``expected.json``: look at the difference.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from debrief.errors import InputError
from debrief.sessions.actions import with_actions
from debrief.sessions.model import Session, TranscriptRef
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import claims_of
from debrief.sessions.readers.files import walk
from debrief.sessions.readers.values import NO_TIME
from debrief.sessions.sources import read_week, scan
from tests.sessions.readers.content import lay
from tools.programs.comparison import misfiled

CASES = sorted(path.parent for path in Path(__file__).parent.glob("examples/*/*/input"))
SHARED = Path(__file__).parents[4] / "shared" / "sessions"
WIDTH = 120


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_an_example_is_read_as_expected(
    case: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    lay(case / "input", tmp_path)
    made = page(read(tmp_path)) + "\n"
    expected = case / "expected.json"
    if request.config.getoption("rewrite"):
        expected.write_text(made)
    assert made == expected.read_text()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_a_scan_files_an_example_under_the_week_that_it_began_in(
    case: Path, tmp_path: Path
) -> None:
    lay(case / "input", tmp_path)
    assert_filed_where_they_began(tmp_path)


def test_a_scan_files_the_shared_sessions_under_the_weeks_that_they_began_in() -> None:
    if SHARED.is_dir():
        assert_filed_where_they_began(SHARED)


def assert_filed_where_they_began(folder: Path) -> None:
    """A session without a time says so, and no other is in the week that stands for none."""
    found = scan([folder])
    read = {week: list(read_week(found, week)) for week in found.weeks()}
    assert list(misfiled(read)) == []
    for session in (each for listed in read.values() for each in listed):
        if isinstance(session, Session):
            reasons = [problem.reason for problem in session.problems]
            says_so = any(reason.startswith("no record tells its time") for reason in reasons)
            assert (session.started == NO_TIME) <= says_so, session.id


def read(folder: Path) -> dict[str, Any]:
    """Return, by path, what each transcript is read as; no two readers claim the same one."""
    found = walk(folder)
    claims = claims_of(found, READERS.values())
    told: dict[str, Any] = {}
    for reader in READERS.values():
        for transcript in reader.transcripts(found, claims):
            assert transcript.path not in told
            try:
                session = with_actions(reader.read(transcript))
            except InputError as error:
                told[transcript.path] = {type(error).__name__: error.reason}
                continue
            peek = reader.peek(transcript)
            assert peek is not None
            assert peek.session_id == session.id
            assert msgspec.json.decode(msgspec.json.encode(session), type=Session) == session
            told[transcript.path] = shown(session)
    return dict(json.loads(json.dumps(told).replace(f"{folder}/", "")))


def shown(value: Any) -> Any:
    """Return a value as JSON has it, without what stands at its default."""
    if isinstance(value, msgspec.Struct):
        left_out = ("digest", "size") if isinstance(value, TranscriptRef) else ()
        return {
            field.name: shown(inner)
            for field in msgspec.structs.fields(value)
            if (inner := getattr(value, field.name)) != field.default and field.name not in left_out
        }
    if isinstance(value, tuple):
        return [shown(inner) for inner in value]
    return msgspec.to_builtins(value) if isinstance(value, datetime) else value


def page(value: Any, indent: str = "") -> str:
    """Return JSON with all that fits on a line on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not value or not isinstance(value, dict | list):
        return line
    inner = f"{indent}  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {page(each, inner)}" for name, each in value.items()]
        parts = together(parts, WIDTH - len(inner))
        return f"{{\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}}}"
    return f"[\n{inner}" + f",\n{inner}".join(page(each, inner) for each in value) + f"\n{indent}]"


def together(parts: list[str], width: int) -> list[str]:
    """Return lines with as many short parts each as fit."""
    lines = parts[:1]
    for part in parts[1:]:
        joined = f"{lines[-1]}, {part}"
        if "\n" in joined or len(joined) > width:
            lines.append(part)
        else:
            lines[-1] = joined
    return lines
