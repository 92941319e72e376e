"""Repositories and a coding agent as these tests need them: real git, and a program of ours."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from debrief.sessions.model import SessionHead

MONDAY = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
PROMPTS = {
    "CLAUDE.md": "Test first.\n",
    ".claude/agents/reviewer.md": "Review it.\n",
    ".claude/agents/tester.md": "Prüfe es.\n",
}

AGENT = """
import json, os, pathlib, re, sys, uuid
mode = sys.argv[1]
cwd = os.getcwd()
pathlib.Path(os.environ["SEEN"]).write_text(json.dumps({
    "arguments": sys.argv[2:],
    "cwd": cwd,
    "plan": pathlib.Path("plan.md").read_text(),
    "capture": os.environ.get("DEBRIEF_CAPTURE"),
    "metadata": json.loads(pathlib.Path(os.environ["DEBRIEF_CAPTURE"], "metadata.json").read_text()),
}))
pathlib.Path("CLAUDE.md").write_text("Changed while it ran.")
if mode == "silent":
    sys.exit(3)
id = os.environ.get("SESSION") or str(uuid.uuid4())
slug = re.sub("[^A-Za-z0-9]", "-", cwd)
def line(type, **message):
    return json.dumps({"type": type, "uuid": str(uuid.uuid4()), "parentUuid": None,
        "isSidechain": False, "sessionId": id, "cwd": cwd, "version": "2.1.40",
        "timestamp": "2026-01-05T09:00:00Z", "message": message})
place = pathlib.Path.home() / ".claude" / "projects" / slug
place.mkdir(parents=True, exist_ok=True)
with open(place / f"{id}.jsonl", "a") as file:
    print(line("user", role="user", content=sys.argv[-1]), file=file)
    print(line("assistant", id="msg_1", role="assistant", model="claude-opus-4-5",
        content=[{"type": "text", "text": "Done."}],
        usage={"input_tokens": 1, "output_tokens": 2}), file=file)
if mode == "helped":
    agents = place / id / "subagents"
    agents.mkdir(parents=True)
    record = json.loads(line("user", role="user", content="Look at it."))
    record |= {"isSidechain": True, "agentId": "a1"}
    (agents / "agent-a1.jsonl").write_text(json.dumps(record) + "\\n")
if mode == "killed":
    os.kill(os.getpid(), 15)
"""


def git(folder: Path, *arguments: str, date: datetime = MONDAY) -> str:
    stamp = date.isoformat()
    known = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *arguments],
        cwd=folder,
        env=known | {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def commit(folder: Path, files: Mapping[str, str | bytes], date: datetime = MONDAY) -> str:
    write(folder, files)
    git(folder, "add", "--all", "--force", *files)
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "work", date=date)
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path, files: Mapping[str, str | bytes] = PROMPTS) -> Path:
    """Return a repository with one commit, copied from one that was made before."""
    shutil.copytree(_made(tuple(files.items())), folder, symlinks=True)
    return folder


@cache
def _made(files: tuple[tuple[str, str | bytes], ...]) -> Path:
    folder = Path(_TEMPLATES.name, str(len(list(Path(_TEMPLATES.name).iterdir()))))
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, dict(files))
    return folder


_TEMPLATES = TemporaryDirectory()


def agent_command(folder: Path, mode: str = "works") -> str:
    """Return the command of a coding agent that leaves a transcript of Claude Code."""
    program = folder / "agent.py"
    program.write_text(AGENT)
    return shlex.join([sys.executable, str(program), mode])


def hook_input(
    folder: Path, session: str = "0a1b2c3d-0000-4000-8000-000000000001", **more: object
) -> bytes:
    return json.dumps(
        {
            "session_id": session,
            "transcript_path": f"/home/ann/.claude/projects/x/{session}.jsonl",
            "cwd": str(folder),
            "permission_mode": "default",
            "hook_event_name": "SessionStart",
            "source": "startup",
            "model": "claude-opus-4-5",
            **more,
        }
    ).encode()


def head(id: str = "s1", cwd: str = "/home/ann/shop", **fields: object) -> SessionHead:
    given = {
        "source": "claude-code",
        "tool": "claude-code",
        "task": "shop",
        "started": MONDAY,
        "ended": MONDAY,
        **fields,
    }
    return SessionHead(id=id, cwd=cwd, **given)  # type: ignore[arg-type]
