"""Tasks out of sessions: a real repository, a real session file, the real sandbox."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import tarfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.errors import InputError
from debrief.execution.model import Check, ExecutedCheck, Execution, NoOutcome, SandboxRun
from debrief.execution.sandbox import SandboxLimits, find_sandbox, why_unavailable
from debrief.execution.store import put_executions
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.snapshots.clones import find_clones
from debrief.tasks.files import Image, dockerfile
from debrief.tasks.images import image_of
from debrief.tasks.proving import ProofPlace
from debrief.tasks.publishing import PublishedTasks, publish_tasks
from debrief.training.contamination import BenchmarkProblem, Problems
from tests.judging.repository import write
from tests.sessions.scenario import MONDAY, Log, hunk
from tests.training.lakes import lake_of

pytestmark = pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable())

HARBOR_NAME = r"[a-zA-Z0-9][a-zA-Z0-9._-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*"
KEY = "sk-ant-api03-" + "Zx9_kQ2vLm8Tn4Rb" * 5 + "AA"
PRICE = "echo 100\n"
TAXED = 'net=100\necho "$((net * 119 / 100))"\n'
OLD_TEST = 'test -n "$(sh price.sh)"\n'
NEW_TEST = 'test "$(sh price.sh)" = 119\n'


def commit(folder: Path, at: datetime, message: str) -> None:
    person = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), at.isoformat())
    for command in (["add", "--all"], [*person, "commit", "--quiet", "-m", message]):
        subprocess.run(["git", *command], cwd=folder, check=True, env={**os.environ, **dates})


def write_call(log: Log, id: str, path: str, content: str) -> None:
    log.calls(id, "Write", file_path=f"{log.cwd}/{path}", content=content)
    outcome = {
        "type": "create",
        "filePath": f"{log.cwd}/{path}",
        "content": content,
        "structuredPatch": [],
    }
    log.result(id, "File created", outcome)


def edit_price(log: Log) -> None:
    path = f"{log.cwd}/price.sh"
    log.calls("c1", "Edit", file_path=path, old_string=PRICE, new_string=TAXED)
    outcome = {
        "filePath": path,
        "oldString": PRICE,
        "newString": TAXED,
        "originalFile": PRICE,
        "structuredPatch": [
            hunk("-echo 100", *(f"+{line}" for line in TAXED.splitlines())),
        ],
    }
    log.result("c1", "The file has been updated", outcome)


def ran(code: int) -> tuple[SandboxRun, ...]:
    return (SandboxRun(exit_code=code, end="ended", seconds=0.1),) * 2


@dataclass
class Shop:
    """A clone, a lake, and what becomes of it all."""

    folder: Path
    sessions: list[Session] = field(default_factory=list)
    rows: list[Execution] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clone = self.folder / "clones" / "shop"
        self.clone.mkdir(parents=True)
        subprocess.run(["git", "init", "--quiet", "-b", "main"], cwd=self.clone, check=True)
        write(self.clone, {"price.sh": PRICE, "tests/test_old.sh": OLD_TEST, "LICENSE-MIT": "MIT"})
        write(self.clone, {"docs/example.md": f"export KEY={KEY}\n"})
        commit(self.clone, MONDAY - timedelta(days=1), "Begin")

    def session(self, log: Log) -> Session:
        """Keep a session of the shop."""
        read = replace(log.read(self.folder / "sessions"), repository="ann/shop", task="shop")
        self.sessions.append(read)
        return read

    def executed(
        self,
        session: Session,
        command: str,
        before: int = 1,
        after: int = 0,
        reason: NoOutcome | None = None,
    ) -> None:
        """Keep what running a check said of a session."""
        check = ExecutedCheck(
            check=Check(command=command, origin="session"), before=ran(before), after=ran(after)
        )
        value: Literal["yes", "no", ""] = "" if reason else "yes" if after == 0 else "no"
        self.rows.append(
            Execution(
                session_id=session.id,
                executed_at=MONDAY,
                key="k",
                checks=(check,),
                value=value,
                reason=reason or "",
            )
        )

    def filed(self) -> Lake:
        """Return a lake with all of it."""
        lake = lake_of(self.folder / "lake", self.sessions)
        put_executions(lake, week_of(MONDAY), self.rows)
        return lake

    def publish(
        self, problems: Problems | None = None, limits: SandboxLimits | None = None
    ) -> PublishedTasks:
        limits = limits or SandboxLimits()
        return publish_tasks(
            self.filed(),
            self.folder / "tasks",
            find_clones([self.folder / "clones"]),
            lambda source: ProofPlace(
                sandbox=find_sandbox(), image=Image(name="debian:12"), limits=limits
            ),
            lambda text: text,
            problems,
        )

    def reasons(self, problems: Problems | None = None) -> dict[str, str]:
        return {
            not_proven.session_id: not_proven.reason
            for not_proven in self.publish(problems).not_proven
        }


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def taxed(prompt: str, session: str = "taxed", *, later: str = "") -> Log:
    log = Log(prompt, session=session)
    edit_price(log)
    write_call(log, "c2", "tests/test_price.sh", NEW_TEST)
    if later:
        log.says("Done.")
        log.user(later)
        write_call(log, "c3", "tests/test_price.sh", NEW_TEST)
    log.says("Done.")
    return log


def files_below(folder: Path) -> Mapping[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def reward(task: Path, base: Path, command: str) -> bytes:
    """Return what the tests of a task give after a command of an agent."""
    logs = base.parent / "logs"
    logs.mkdir(exist_ok=True)
    made = find_sandbox().run(
        f"{command}; sh /tests/test.sh",
        copies={
            "/app": base,
            "/tests": task / "tests",
            "/solution": task / "solution",
            "/logs": logs,
        },
        hand_back=["/logs/verifier/reward.txt"],
    )
    return made.files["/logs/verifier/reward.txt"].strip()


def test_a_session_becomes_a_task_that_its_own_change_solves(shop: Shop, tmp_path: Path) -> None:
    diff = "Like this:\n\n```\n@@ -1 +1,2 @@\n-echo 100\n+net=100\n```"
    asked = taxed("Print the price with 19 % tax in /home/ann/shop/price.sh.", later=diff)
    shop.executed(shop.session(asked), "sh tests/test_price.sh")
    done = shop.publish()
    assert [task.name for task in done.tasks] == ["shop-taxed"]
    task = tmp_path / "tasks" / "shop-taxed"
    files = files_below(task)
    assert list(files) == [
        "environment/Dockerfile",
        "environment/repository.tar",
        "instruction.md",
        "solution/change.patch",
        "solution/solve.sh",
        "task.toml",
        "tests/check.sh",
        "tests/files/tests/test_old.sh",
        "tests/files/tests/test_price.sh",
        "tests/test.sh",
    ]
    instruction = files["instruction.md"].decode()
    assert instruction == (
        "Print the price with 19 % tax in /app/price.sh.\n\nThe repository is in `/app`.\n"
    )
    with tarfile.open(fileobj=io.BytesIO(files["environment/repository.tar"])) as archive:
        assert archive.getnames() == ["LICENSE-MIT", "price.sh", "tests/test_old.sh"]
        archive.extractall(tmp_path / "base", filter="data")
    told = tomllib.loads(files["task.toml"].decode())
    assert {name: list(told[name]) for name in told if name != "metadata"} == {
        "schema_version": list("1.4"),
        "task": ["name", "description", "keywords"],
        "verifier": ["timeout_sec"],
        "environment": ["build_timeout_sec", "workdir"],
    }
    assert re.fullmatch(HARBOR_NAME, told["task"]["name"])
    assert told["metadata"]["licence"] == "MIT"
    assert told["metadata"]["files_left_out"] == 1, "docs/example.md holds a key"
    assert told["metadata"]["base_source"] == "inferred"
    assert told["metadata"]["difficulty"] == "unknown"
    assert told["metadata"]["requests_left_out"] == 1
    assert told["metadata"]["proof"] == {"runs": 3, "empty_reward": 0.0, "solution_reward": 1.0}

    base = tmp_path / "base"
    assert reward(task, base, "true") == b"0"
    assert reward(task, base, "sh /solution/solve.sh") == b"1"
    cheating = "mkdir -p tests; echo 'exit 0' > tests/test_price.sh"
    assert reward(task, base, cheating) == b"0"

    no_time = SandboxLimits(seconds=0.001)
    again = shop.publish(limits=no_time)
    assert not again.changed, "it is not proven anew"
    assert files_below(task) == files


def test_what_is_not_proven_is_listed_with_its_reason(shop: Shop, tmp_path: Path) -> None:
    add = "Add the tax."
    passing, leaking, broken = (taxed(add, name) for name in ("passing", "leaking", "broken"))
    shop.executed(shop.session(passing), "sh tests/test_old.sh")
    answer = taxed('Write echo "$((net * 119 / 100))" into price.sh', "answered")
    shop.executed(shop.session(answer), "sh tests/test_price.sh")
    secret = f"Add the tax; the key is {KEY}"
    told = shop.session(leaking)
    shop.sessions[-1] = replace(told, turns=(replace(told.turns[0], prompt=secret),))
    shop.executed(told, "sh tests/test_price.sh")
    shop.executed(shop.session(broken), "sh tests/test_old.sh", before=0, after=1)
    shop.executed(shop.session(taxed(add, "wrong")), "sh tests/test_missing.sh")
    shop.executed(shop.session(taxed(add, "flaky")), "sh tests/test_price.sh", reason="flaky")
    shop.session(taxed(add, "idle"))
    bench = shop.session(taxed("Solve the well-known problem of the price.", "bench"))
    shop.executed(bench, "sh tests/test_price.sh")
    problem = BenchmarkProblem(benchmark="prices", text="solve the well known problem of the price")
    reasons = shop.reasons(Problems([problem]))
    assert reasons == {
        "passing": "passes_without_change",
        "answered": "answer_given",
        "leaking": "secret",
        "broken": "failed",
        "wrong": "fails_with_change",
        "flaky": "flaky",
        "idle": "not_executed",
        "bench": "benchmark",
    }
    lines = (tmp_path / "tasks" / "not_proven.jsonl").read_text().splitlines()
    kept = {line["session_id"]: line for line in map(json.loads, lines)}
    assert kept["leaking"]["detail"].startswith("instruction.md, line 1")
    assert sorted(path.name for path in (tmp_path / "tasks").iterdir()) == [
        ".debrief.json",
        "README.md",
        "not_proven.jsonl",
    ]


def test_a_lake_that_nobody_executed_says_what_to_do(shop: Shop) -> None:
    shop.session(taxed("Add the tax."))
    with pytest.raises(InputError, match="Run debrief execute first"):
        shop.publish()


def test_the_command_runs_nothing_that_nobody_agreed_to(shop: Shop, tmp_path: Path) -> None:
    shop.executed(shop.session(taxed("Add the tax.")), "sh tests/test_price.sh")
    shop.filed()
    options = ["--to", str(tmp_path / "out"), "--lake", str(tmp_path / "lake")]
    options += ["--repositories", str(tmp_path / "clones")]
    home = {"DEBRIEF_HOME": str(tmp_path / "home"), "COLUMNS": "120"}
    refused = CliRunner().invoke(app, ["tasks", *options], env=home)
    assert refused.exit_code == 1
    assert "sh tests/test_price.sh" in refused.stderr
    assert "Add --yes to go on" in refused.stderr
    assert not (tmp_path / "out").exists()
    done = CliRunner().invoke(app, ["tasks", *options, "--yes"], env=home)
    assert "1 proven task\n" in done.stdout
    dockerfile = (tmp_path / "out" / "shop-taxed" / "environment" / "Dockerfile").read_text()
    assert dockerfile.startswith("FROM buildpack-deps:bookworm\nWORKDIR /app\n")


@pytest.mark.parametrize(
    ("files", "command", "printed", "lines"),
    [
        (
            {"pyproject.toml": "", "package.json": "{}"},
            "pytest -q",
            {"--version": "Python 3.12.3", "metadata": "shop\npytest==9.0.1\n"},
            [
                "FROM python:3.12",
                "COPY requirements.txt /opt/requirements.txt",
                "RUN pip install --no-cache-dir --no-deps -r /opt/requirements.txt",
                "RUN pip install --no-cache-dir --no-deps -e /app",
                'ENV PYTHONPATH="/app:/app/src"',
            ],
        ),
        (
            {"package.json": "{}", "pnpm-lock.yaml": ""},
            "npm test",
            {"--version": "v22.4.0"},
            [
                "FROM node:22",
                "RUN cd /app && npm install -g pnpm",
                "RUN cd /app && pnpm install --frozen-lockfile",
                'ENV PATH="/app/node_modules/.bin:$PATH"',
            ],
        ),
        (
            {"go.mod": ""},
            "go test ./...",
            {"version": "go version go1.19.8 linux/amd64"},
            ["FROM golang:1.19", "RUN cd /app && go mod download"],
        ),
    ],
    ids=["python", "javascript", "go"],
)
def test_a_container_begins_as_what_the_proof_had(
    files: dict[str, str | bytes],
    command: str,
    printed: dict[str, str],
    lines: list[str],
    tmp_path: Path,
) -> None:
    write(tmp_path, files)
    image = image_of(
        tmp_path,
        [Check(command=command, origin="repository")],
        {"PYTHONPATH": "/app:/app/src"},
        lambda asked: next((text for part, text in printed.items() if part in asked), ""),
    )
    made = dockerfile(image).splitlines()
    assert [line for line in made if line in lines] == lines
