from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OPEN = """
from debrief.settings import load_settings
from pipelines.instance import open_instance
with open_instance(load_settings()) as instance:
    print(instance.get_runs_count())
"""


def test_processes_that_open_a_new_storage_at_once_all_succeed(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "DEBRIEF_HOME": str(tmp_path / "home"),
        "DEBRIEF_LAKE": str(tmp_path / "lake"),
    }
    environment.pop("DAGSTER_HOME", None)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    ended = [(process.communicate(timeout=600), process.returncode) for process in started]
    assert [(out.strip(), code) for (out, _), code in ended] == [("0", 0)] * 2, ended
