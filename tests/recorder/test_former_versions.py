"""Records of the versions before, as those recorders wrote them, are read like today's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from debrief.recorder.checks import ReadyRule, is_validated, problems_of, readiness
from debrief.recorder.encoding import decode_record, encode_record
from debrief.recorder.messages import changes_of
from debrief.sessions.readers.recorder import session_of
from tests.recorder.records import FORMER

RULE = ReadyRule(passed=True, on_final_tree=True)


@pytest.mark.parametrize("former", FORMER, ids=lambda path: path.name)
def test_what_an_earlier_version_said_twice_is_read_once(former: Path) -> None:
    data = former.read_bytes()
    record = decode_record(data)
    assert problems_of(record) == []
    assert encode_record(record, only_set=True) == data
    said = json.loads(data)["meta"]["changes"]
    assert [change.path for change in changes_of(record)] == [each["path"] for each in said]
    assert [change.kind for change in changes_of(record)] == ["update", "create", "delete"]
    assert is_validated(record)
    is_full = record.meta.contents == "full"
    lacks = [] if is_full else ["it was recorded without the contents of files"]
    assert readiness(record, RULE) == lacks
    session = session_of(data, former.name)
    lines = [(change.added, change.removed) for change in changes_of(record)]
    assert (session.lines_added, session.lines_removed) == tuple(map(sum, zip(*lines, strict=True)))
    calls = [call for message in session.turns[0].messages for call in message.calls]
    assert [call.exit_code for call in calls if call.name == "run_cmd"] == [3, 0]
