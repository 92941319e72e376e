"""The files of a Harbor task, made of what is known of a session and its repository.

An agent works in a container that is built from ``environment/``; Harbor copies ``tests/`` and
``solution/`` into it when they are run, so the agent sees neither. See Harbor's documents on tasks:
https://www.harborframework.com/docs/tasks
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import tomlkit
from msgspec import Struct
from msgspec.structs import replace

from debrief.execution.model import Check
from debrief.keys import slugify
from debrief.tasks.archive import archive_of
from debrief.tasks.instruction import WORKDIR
from debrief.tasks.model import HarborTask, Proof

SCHEMA_VERSION = "1.4"
"""Of ``task.toml``, as Harbor 0.26 writes it."""
REWARD = "/logs/verifier/reward.txt"
_LEAST_TIME, _MARGIN = 600, 10
"""Seconds that a run of the tests gets at least, and how many times what its checks took here:
a container on another machine is slower."""

_FEWEST = 2


class Image(Struct, frozen=True, kw_only=True):
    """What a container begins as."""

    name: str
    """As ``FROM`` takes it."""
    steps: tuple[str, ...] = ()
    """Commands for ``RUN`` in the repository's folder, which install what its checks need."""
    environment: dict[str, str] = {}
    """Variables for ``ENV``."""
    files: dict[str, bytes] = {}
    """What the steps read, by name in ``/opt``."""
    is_pinned: bool = True
    """Its packages have the versions of the proof; without a lock file they are the newest."""


class TestFile(Struct, frozen=True):
    """A file that the tests bring with them."""

    content: bytes
    is_executable: bool = False


class TaskSource(Struct, frozen=True, kw_only=True):
    """All that a task is made of."""

    session_id: str
    repository: str
    base: str
    """The commit."""
    base_source: str
    exact: bool
    licence: str
    """As an SPDX expression; empty where it is not known."""
    tool: str
    started: str
    """When the session began, in ISO 8601."""
    instruction: str
    requests: tuple[str, ...]
    """The person's, that the instruction is made of."""
    share: float
    """Of the lines that the change adds, those that the instruction holds."""
    left_out: int
    """Later requests that give the answer away."""
    images: int
    """That the requests showed, and that the instruction lacks."""
    clone: Path
    """The repository's folder on this machine, whose packages its checks have."""
    base_folder: Path
    """With the base's files."""
    final_folder: Path
    """With those that the solution leaves."""
    lacking: int = 0
    """Files of the base that the task is without: the clone lacks them, or they hold a secret."""
    checks: tuple[Check, ...]
    """All of which have to end with 0."""
    tests: Mapping[str, TestFile]
    """Files that are put in place of the agent's, by path in the repository."""
    removed: tuple[str, ...] = ()
    """Test files that the change takes away."""
    patch: bytes
    seconds: float
    """That the checks took when they were executed."""
    executed: int = 0
    """Sessions of the same task that running says something of, this one among them."""
    failed: int = 0
    """Those of them that broke something."""


def task_name(repository: str, session_id: str) -> str:
    """Return the name of a task's folder."""
    return f"{slugify(repository.rpartition('/')[2])}-{slugify(session_id)}"


def task_of(source: TaskSource, image: Image) -> HarborTask:
    """Return the task of a session as it is to be proven: all but ``task.toml``."""
    files = {
        "instruction.md": source.instruction.encode(),
        "environment/Dockerfile": dockerfile(image).encode(),
        "environment/repository.tar": archive_of(source.base_folder),
        "tests/test.sh": _test_script(source).encode(),
        "tests/check.sh": _check_script(source.checks).encode(),
        "solution/solve.sh": _SOLVE.encode(),
        "solution/change.patch": source.patch,
    }
    files |= {f"environment/{name}": data for name, data in image.files.items()}
    files |= {f"tests/files/{path}": file.content for path, file in source.tests.items()}
    return HarborTask(name=task_name(source.repository, source.session_id), files=files)


def with_proof(task: HarborTask, source: TaskSource, image: Image, proof: Proof) -> HarborTask:
    """Return a task with its ``task.toml``, which says how it was proven."""
    text = tomlkit.dumps(_configuration(task.name, source, image, proof))
    return replace(task, files={"task.toml": text.encode(), **task.files})


def _configuration(name: str, source: TaskSource, image: Image, proof: Proof) -> dict[str, Any]:
    repository = source.repository.rpartition("/")[2]
    metadata = {
        "difficulty": _difficulty(source),
        "sessions_executed": source.executed,
        "sessions_failed": source.failed,
        "session": source.session_id,
        "program": source.tool,
        "began": source.started,
        "repository": source.repository,
        "base": source.base,
        "base_source": source.base_source,
        "rebuilt": "exact" if source.exact else "partial",
        "licence": source.licence or "unknown",
        "packages_pinned": image.is_pinned,
        "requests": len(source.requests),
        "requests_left_out": source.left_out,
        "share_of_change_in_requests": round(source.share, 3),
        "images_left_out": source.images,
        "files_left_out": source.lacking,
        "checks": [{"command": check.command, "origin": check.origin} for check in source.checks],
        "proof": {
            "runs": proof.runs,
            "empty_reward": proof.empty_reward,
            "solution_reward": proof.solution_reward,
        },
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "task": {
            "name": f"debrief/{name}",
            "description": f"A change that a person asked a coding agent for in {repository}.",
            "keywords": ["coding-agent", "session"],
        },
        "metadata": metadata,
        "verifier": {"timeout_sec": float(max(_LEAST_TIME, _MARGIN * round(source.seconds)))},
        "environment": {"build_timeout_sec": 1800.0, "workdir": WORKDIR},
    }


def _difficulty(source: TaskSource) -> str:
    """Return the share of sessions that failed; one session alone says nothing of its task."""
    is_known = source.executed >= _FEWEST
    return f"{source.failed / source.executed:.2f}" if is_known else "unknown"


def dockerfile(image: Image) -> str:
    """Return how the container is built: the base's files, as the only commit of a repository."""
    commit = "git -c user.name=base -c user.email=base@localhost commit --quiet --message base"
    lines = [
        f"FROM {image.name}",
        f"WORKDIR {WORKDIR}",
        f"ADD repository.tar {WORKDIR}/",
        f"RUN git init --quiet && git add --all --force && {commit}",
        *(f"COPY {name} /opt/{name}" for name in image.files),
        *(f"RUN {step}" for step in image.steps),
        *(f'ENV {name}="{value}"' for name, value in image.environment.items()),
    ]
    return "\n".join(lines) + "\n"


def _test_script(source: TaskSource) -> str:
    """Return the script that gives the reward: 1 if every check ends with 0.

    The tests' own files go over the agent's first, so that a changed or deleted test wins nothing.
    """
    removed = shlex.join(f"{WORKDIR}/{path}" for path in source.removed)
    executable = shlex.join(
        f"{WORKDIR}/{path}" for path, file in sorted(source.tests.items()) if file.is_executable
    )
    lines = [
        "#!/bin/sh",
        "mkdir -p /logs/verifier",
        f"echo 0 > {REWARD}",
        *([f"rm -f -- {removed}"] if removed else []),
        *([f"cp -R /tests/files/. {WORKDIR}/ || exit 0"] if source.tests else []),
        *([f"chmod +x {executable}"] if executable else []),
        "if sh /tests/check.sh; then",
        f"  echo 1 > {REWARD}",
        "fi",
        "exit 0",
    ]
    return "\n".join(lines) + "\n"


def _check_script(checks: Sequence[Check]) -> str:
    lines = ["#!/bin/sh", "# Each command in a shell of its own, as it was run in the proof."]
    for check in checks:
        folder = PurePosixPath(WORKDIR, check.folder)
        lines.append(
            f"(cd {shlex.quote(str(folder))} && sh -c {shlex.quote(check.command)}) || exit 1"
        )
    return "\n".join(lines) + "\n"


_SOLVE = f"""\
#!/bin/sh
set -e
cd {WORKDIR}
git apply --whitespace=nowarn /solution/change.patch
"""
