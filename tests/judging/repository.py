"""A real repository with a plan and its worktree, for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

PLAN_ID = "retry-uploads"
UTIL = "def retry(times):\n    yield from range(times)\n"
UP = "import util\n\n\ndef upload(file):\n    return file.send()\n"
NEW_UP = "import util\n\n\ndef upload(file):\n    return any(file.send() for _ in util.retry(3))\n"
NEW_TEST = "from up import upload\n\n\ndef test_upload(file):\n    assert upload(file)\n"


def git(folder: Path, *arguments: str) -> str:
    """Run git as a made-up person; return what it said."""
    person = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    done = subprocess.run(
        ["git", *person, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    """Write files, their folders made."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def plan_text(sha: str = "") -> str:
    """Return the plan, made on a commit."""
    head = f"plan_id: {PLAN_ID}\n" + (f"git_sha: {sha}\n" if sha else "")
    return (
        f"---\n{head}status: coding\n---\n\n# Retry uploads\n\n- `upload` uses `retry`\n- a test\n"
    )


def make_repository(folder: Path, base_in_plan: bool = True) -> Path:
    """Make a repository with a plan and an untouched worktree; return the worktree."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    write(folder, {"util.py": UTIL, "up.py": UP, ".gitignore": ".debrief/\n*.log\n"})
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Begin")
    plan = plan_text(git(folder, "rev-parse", "HEAD") if base_in_plan else "")
    worktree = folder / ".debrief" / "worktrees" / PLAN_ID
    git(folder, "worktree", "add", "--quiet", "-b", PLAN_ID, str(worktree))
    write(folder, {f".debrief/plans/{PLAN_ID}.md": plan})
    write(worktree, {"plan.md": plan})
    return worktree


def work(worktree: Path) -> None:
    """Do what the plan asks for, and leave it uncommitted."""
    write(worktree, {"up.py": NEW_UP, "test_up.py": NEW_TEST})
