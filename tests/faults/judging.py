"""One run of the judging stage over a week: ``python -m tests.faults.judging FOLDER``.

A machine of its own is below the folder: lake, home, and Dagster's storage.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from msgspec import structs

from debrief.judging.model import JudgeEvaluation
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.sessions.model import Message, Session, ToolCall, Turn
from tests.machine import clean_environment
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.scoring.scenario import answer

ROOT = Path(__file__).parents[2]
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
WEEK = week_of(START)
TABLE = "judge_evaluations"
CONCURRENCY = 4


def session_of(number: int) -> Session:
    """Return a session with four edits, about 6 kB of changes."""
    patch = "@@ -1,3 +1,43 @@\n import os\n" + "".join(
        f"+def helper_{number}_{line}(): return {line}\n" for line in range(40)
    )
    calls = tuple(
        ToolCall(
            id=f"c{at}", name="Edit", input="{}", result="done", status="ok",
            path=f"/home/ada/shop/module_{at}.py", patch=patch, added=40,
        )
        for at in range(4)
    )  # fmt: skip
    answer = Message(id="m1", model="m", text="Done.", calls=calls)
    prompt = f"Add helpers {number} to the shop. " + "Keep it short. " * 40
    return Session(
        id=f"s{number}", source="claude-code", tool="claude-code", task="shop",
        cwd="/home/ada/shop", started=START, ended=START, digest=f"digest {number}",
        turns=(Turn(number=1, prompt=prompt, messages=(answer,)),),
    )  # fmt: skip


def score_of(call: Call, latency: float = 0.0) -> Reply:
    """Give each session and judge a score of its own, always the same, in the one answer in which
    the judges' questions ride."""
    session = re.search(r"Add helpers (\d+)", call.user)
    judges = re.findall(r'<judge name="([^"]+)">', call.system)
    assert session
    assert judges
    said = {
        name: {
            "feedback": f"{name} of {session[1]}.",
            "score": round(hashlib.sha256(f"{session[1]} {name}".encode()).digest()[0] / 255, 3),
        }
        for name in judges
    }
    return Reply(json.dumps({**json.loads(answer()), "judges": said}), latency=latency)


class Machine:
    """Where runs happen, one process each."""

    def __init__(
        self,
        folder: Path,
        server: OpenAIServer | None = None,
        *,
        lake: str = "",
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.lake = Lake(lake or str(folder / "lake"))
        self._server = server
        self._more = dict(more or {})
        (folder / "dagster").mkdir(parents=True, exist_ok=True)
        configuration = "telemetry:\n  enabled: false\n"
        (folder / "dagster" / "dagster.yaml").write_text(configuration)

    def write_sessions(self, count: int) -> None:
        """Write raw sessions of one week."""
        rows = [session_of(number) for number in range(count)]
        self.lake.write("raw_sessions", WEEK, rows, Session)

    @property
    def environment(self) -> dict[str, str]:
        """Return what a process on this machine finds set."""
        return {
            **clean_environment(),
            "DEBRIEF_HOME": str(self.folder / "home"),
            "DEBRIEF_LAKE": self.lake.url,
            "DEBRIEF_CONCURRENCY": str(CONCURRENCY),
            "DEBRIEF_MODEL": "openai/tiny",
            "DEBRIEF_MODEL_BASE_URL": self._server.url if self._server is not None else "",
            "DEBRIEF_NO_MODEL": "" if self._server is not None else "1",
            "DEBRIEF_RETRY_PAUSE": "0.05",
            "DEBRIEF_TIMEOUT": "600",
            "OPENAI_API_KEY": "sk-loopback",
            **self._more,
        }

    def start(self) -> subprocess.Popen[str]:
        """Start a run."""
        return subprocess.Popen(
            [sys.executable, "-m", "tests.faults.judging", str(self.folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env=self.environment,
        )

    def run_here(self) -> None:
        """Carry out a run in this process."""
        with pytest.MonkeyPatch.context() as here:
            for name, value in self.environment.items():
                here.setenv(name, value)
            assert judge_week(self.folder)

    def rows(self) -> list[JudgeEvaluation]:
        """Return what was judged, what a call took left out."""
        return [
            structs.replace(row, input_tokens=0, output_tokens=0, cost_usd=None)
            for row in self.lake.read(TABLE, WEEK, JudgeEvaluation)
        ]


def judge_week(folder: Path) -> bool:
    """Be one run; return whether it succeeded."""
    from assets.evaluations import judge_evaluations
    from debrief.stages.configuration import EvaluatorChoice
    from tests.assets.running import resources

    with dg.DagsterInstance.from_config(str(folder / "dagster")) as instance:
        return dg.materialize(
            [judge_evaluations],
            instance=instance,
            partition_key=WEEK,
            resources=resources("", evaluator=EvaluatorChoice()),
            raise_on_error=False,
        ).success


if __name__ == "__main__":
    print("succeeded" if judge_week(Path(sys.argv[1])) else "failed", flush=True)
