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
"""


def test_the_stage_of_the_page_is_an_asset_a_table_and_up_to_date_after_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (TOP / "docs" / "extending.md").read_text()
    (module,) = re.findall(r"`debrief/stages/lengths.py`:\n\n```python\n(.*?)```", page, re.DOTALL)
    for name in PACKAGES:
        shutil.copytree(TOP / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "debrief" / "stages" / "lengths.py").write_text(module)
    lake, samples = tmp_path / "lake", TOP / "debrief" / "samples" / "sessions"
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
    folder = samples if samples.is_dir() else TOP / "debrief" / "samples"
    first = python(*run, "--sessions", str(folder))
    assert "session_lengths " in first
    assert python("-c", SEEN, str(lake)).splitlines() == [
        "['raw_sessions'] signals How many turns each session has.",
        "['session_id', 'turns']",
        "True",
        "True",
    ]
    assert "session_lengths " not in python(*run, "--sessions", str(folder)), "nothing is due"
