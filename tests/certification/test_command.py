"""``debrief judges certify``: the same figures as on the page, in a terminal and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from debrief.cli.criteria import judges_app
from debrief.scoring.verdict import VerdictName
from tests.certification.scenario import REVIEWER, reviewed_lake, say

VERDICTS: dict[str, VerdictName] = {
    **{f"good{n}": "complete_verified" for n in range(20)},
    **{f"bad{n}": "failed" for n in range(30)},
}


def certify(*arguments: str) -> str:
    done = CliRunner().invoke(judges_app, ["certify", *arguments], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_lake_is_certified_as_labels_come(tmp_path: Path) -> None:
    lake = reviewed_lake(str(tmp_path / "lake"), VERDICTS)
    for n in range(20):
        say(lake, f"good{n}", "complete_verified" if n else "complete_unverified")
    for n in range(6):
        say(lake, f"bad{n}", "bad")
    text = certify("--lake", lake.url)
    assert f"{REVIEWER}: not certified: 8 more labels would tell." in text
    lines = {
        " ".join(part.split())
        for line in text.splitlines()
        for part in line.strip().split("  ")
        if part
    }
    assert lines >= {
        "26 of 50 reviewed sessions", "20 of 20 (100%, at least 86%)", "6 of 6 (100%, at least 61%)",
        "8 incomplete; about 35 sessions drawn by chance hold as many",
        "19 of 20 (95%, at least 78%)", "1 session; complete against incomplete: 0",
    }  # fmt: skip
    for n in range(6, 14):
        say(lake, f"bad{n}", "bad")
    (found,) = json.loads(certify("--lake", lake.url, "--json"))
    assert (found["is_certified"], found["missing"], found["sessions"]) == (True, 0, 34)
    assert found["complete_hit"] == {"count": 20, "of": 20}
    assert 0.8 < found["incomplete_low"] < 0.81
    assert found["corrected"]["low"] < 0.4 < found["corrected"]["high"]


def test_a_lake_without_reviews_says_what_to_do(tmp_path: Path) -> None:
    lake = reviewed_lake(str(tmp_path / "lake"), {})
    done = CliRunner().invoke(judges_app, ["certify", "--lake", lake.url])
    assert done.exit_code == 1
    assert "holds no LLM review" in str(done.exception)
