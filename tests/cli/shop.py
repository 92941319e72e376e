"""A repository with a plan, its judges, and a model that answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from tests.judging.repository import PLAN_ID, make_repository, work, write
from tests.machine import keep_patterns
from tests.models.openai_server import Call, OpenAIServer, Reply, judged

SECRET = "sk-ant-api03-" + "Zx9_kQ2vLm8Tn4Rb" * 5 + "AA"
JUDGES = {
    "tidiness.md": "---\nweight: 3\nmodel: openai/tiny\n---\nYou judge tidiness alone.\n",
    "courage.md": "---\nweight: 1\nmodel: openai/tiny\n---\nYou judge courage alone.\n",
}


def answer(call: Call) -> Reply:
    tidy = "tidiness" in call.system
    score = 0.9 if tidy else 0.5
    return Reply(judged(score, "Tidy enough." if tidy else "Brave in part."))


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(answer) as running:
        yield running


class Shop:
    """A repository with a plan that was worked on, two judges, and a machine to judge it on."""

    def __init__(self, folder: Path, server: OpenAIServer) -> None:
        self.root = folder / "shop"
        self.worktree = make_repository(self.root)
        work(self.worktree)
        write(self.root / ".debrief" / "judges", dict(JUDGES))
        self.environment: dict[str, str | None] = {
            "DEBRIEF_HOME": str(folder / "home"),
            "DEBRIEF_MODEL_BASE_URL": server.url,
            "DEBRIEF_MODEL": None,
            "DEBRIEF_JUDGES": None,
            "OPENAI_API_KEY": "sk-test-0123456789",
            "OPENROUTER_API_KEY": None,
            "COLUMNS": "100",
        }
        keep_patterns(folder / "home")

    def run(self, *arguments: str, **environment: str | None) -> Result:
        """Run the command as if it had been typed here."""
        runner = CliRunner()
        variables: Mapping[str, str | None] = {**self.environment, **environment}
        return runner.invoke(app, [*arguments, "--repo", str(self.root)], env=variables)

    def eval(self, *options: str, **environment: str | None) -> Result:
        """Run eval on the plan."""
        return self.run("eval", PLAN_ID, "--yes", *options, **environment)


@pytest.fixture
def shop(tmp_path: Path, server: OpenAIServer) -> Shop:
    return Shop(tmp_path, server)
