"""Sessions that another program keeps second-hand, beside their own files."""

from __future__ import annotations

import json
from pathlib import Path

from debrief.sessions.sources import scan
from tests.planting import EXAMPLES
from tests.sessions.readers.content import write_records

ID = "1031d227-0c67-4e17-8954-0b6e2b3322f0"


def test_a_session_whose_own_file_is_here_is_read_from_that_alone(tmp_path: Path) -> None:
    kept = tmp_path / "entire" / "ab" / "0"
    records = [json.loads(line) for line in EXAMPLES["entire"].read_text().splitlines()]
    write_records(kept / "transcript.jsonl", *records)
    (kept / "metadata.json").write_text(json.dumps({"session_id": ID}))
    alone = scan([tmp_path])
    (entry,) = (entry for entry in alone.entries if entry.session_id)
    assert (entry.source, entry.own_id) == ("entire", ID)

    own = tmp_path / "projects" / "p" / "agent-transcripts" / ID
    blocks = [{"type": "text", "text": "<user_query>\nGo.\n</user_query>"}]
    write_records(own / f"{ID}.jsonl", {"role": "user", "message": {"content": blocks}})
    both = scan([tmp_path], alone.entries)
    (entry,) = (entry for entry in both.entries if entry.session_id)
    assert (entry.source, entry.session_id) == ("cursor", ID)
    (reason,) = (entry.reason for entry in both.entries if entry.source == "entire")
    assert reason == "its session's own file is here, which says more"

    (own / f"{ID}.jsonl").unlink()
    again = scan([tmp_path], both.entries)
    (entry,) = (entry for entry in again.entries if entry.session_id)
    assert (entry.source, entry.own_id) == ("entire", ID)
