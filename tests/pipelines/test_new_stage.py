"""A stage that somebody adds takes one module: the page that teaches it is tried as it stands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PACKAGES = (
    "assets",
    "debrief",
    "deploy",
    "judges",
    "pipelines",
    "prompts",
    "recorder",
    "resources",
)
SEEN = """
import sys
from datetime import UTC, datetime
from pipelines.definitions import defs
import dagster as dg
from debrief.lake import Lake
from debrief.tables import TABLES
graph = defs.resolve_asset_graph()
node = graph.get(dg.AssetKey("session_lengths"))
print([key.to_user_string() for key in node.parent_keys], node.group_name, node.description)
print([column.name for column in node.metadata["dagster/column_schema"].columns])
print(TABLES["session_lengths"].weekly)
print(Lake(sys.argv[1]).frame("session_lengths").turns.sum() > 0)
tick = dg.build_schedule_context(scheduled_execution_time=datetime(2026, 11, 5, 6, tzinfo=UTC))
assert defs.resolve_schedule_def("daily_digest").job_name == "digest"
from pipelines.digest import daily_digest
print(daily_digest(tick).partition_key)
"""


def code_of(*headings: str) -> list[str]:
    """Return the Python of some headings of the page that says how to extend the project."""
    page = (TOP / "docs" / "extending.md").read_text()
    parts = {part.partition("\n")[0]: part for part in page.split("\n## ")}
    return [
        block
        for heading in headings
        for block in re.findall(r"```python\n(.*?)```", parts[heading], re.DOTALL)
    ]


def test_what_the_page_adds_is_there_and_up_to_date_after_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PACKAGES:
        shutil.copytree(TOP / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    blocks = code_of("A stage", "A job or a schedule", "A resource")
    places = "debrief/stages/lengths", "pipelines/digest", "resources/clock", "assets/lengths"
    for place, block in zip(places, blocks, strict=True):
        (tmp_path / f"{place}.py").write_text(block)
    definitions = tmp_path / "pipelines" / "definitions.py"
    listed = definitions.read_text().replace("jobs=[*JOBS", "jobs=[digest, *JOBS")
    listed = listed.replace("schedules=[", "schedules=[daily_digest, ")
    listed = listed.replace(
        "RESOURCES: dict[str, Any] = {", 'RESOURCES: dict[str, Any] = {"clock": Clock(),'
    )
    imports = (
        "from pipelines.digest import daily_digest, digest\nfrom resources.clock import Clock\n"
    )
    definitions.write_text(listed.replace("import assets\n", f"import assets\n{imports}"))
    lake, folder = tmp_path / "lake", TOP / "debrief" / "samples" / "data"
    environment = {
        **os.environ,
        "DEBRIEF_HOME": str(tmp_path / "home"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(tmp_path / "recorder")]),
    }

    def python(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    run = ("-m", "pipelines.command", "run", "--no-model", "--lake", str(lake))
    first = python(*run, "--sessions", str(folder))
    assert "session_lengths " in first
    assert python("-c", SEEN, str(lake)).splitlines() == [
        "['raw_sessions'] signals How many turns each session has.",
        "['session_id', 'turns']",
        "True",
        "True",
        "2026-11-02",
    ]
    assert "session_lengths " not in python(*run, "--sessions", str(folder)), "nothing is due"
