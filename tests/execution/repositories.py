"""Small repositories whose commits have times, and the work of sessions on them."""

from __future__ import annotations

import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

from debrief.sessions.actions import with_actions
from debrief.sessions.model import Session
from tests.sessions.scenario import MONDAY, Log


class Repo:
    """A repository; hours count from the moment when sessions begin."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, hours: float = 0.0) -> str:
        at = f"{int((MONDAY + timedelta(hours=hours)).timestamp())} +0000"
        who = {
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (("NAME", "Ann"), ("EMAIL", "ann@shop.invalid"), ("DATE", at))
        }
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_ALLOW_PROTOCOL": "file"}
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, capture_output=True, text=True, check=True,
            env={"PATH": os.environ["PATH"], **settings, **who},
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, hours: float, files: dict[str, str | None]) -> str:
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", "Work", hours=hours)
        return self.git("rev-parse", "HEAD")


class Work:
    """A session of Claude Code in a folder of another machine."""

    def __init__(self, cwd: str = "/home/ann/shop") -> None:
        self.log = Log("Let the shop retry", cwd=cwd)
        self.cwd = cwd

    def _call(self, name: str, given: dict[str, Any], content: str, outcome: Any = None) -> None:
        id = f"toolu_{len(self.log.records)}"
        self.log.calls(id, name, **given)
        self.log.result(id, content, outcome)

    def reads(self, path: str, text: str, first: int = 0) -> None:
        lines = text.removesuffix("\n").split("\n")
        shown = "\n".join(f"{n:6}→{line}" for n, line in enumerate(lines, first or 1))
        part = {"offset": first, "limit": len(lines)} if first else {}
        self._call("Read", {"file_path": f"{self.cwd}/{path}", **part}, shown)

    def writes(self, path: str, text: str) -> None:
        file = f"{self.cwd}/{path}"
        outcome = {"type": "create", "filePath": file, "content": text, "structuredPatch": []}
        self._call("Write", {"file_path": file, "content": text}, "File created", outcome)

    def edits(self, path: str, old: str, new: str, line: int = 1) -> None:
        """Replace whole lines, of which the first is number ``line``."""
        file = f"{self.cwd}/{path}"
        removed, added = (text.removesuffix("\n").split("\n") for text in (old, new))
        hunk = {
            "oldStart": line, "oldLines": len(removed), "newStart": line, "newLines": len(added),
            "lines": [*(f"-{each}" for each in removed), *(f"+{each}" for each in added)],
        }  # fmt: skip
        outcome = {"filePath": file, "oldString": old, "newString": new, "structuredPatch": [hunk]}
        given = {"file_path": file, "old_string": old, "new_string": new}
        self._call("Edit", given, "The file has been updated", outcome)

    def runs(self, command: str, output: str = "") -> None:
        self._call("Bash", {"command": command}, output, {"stdout": output, "stderr": ""})

    def session(self, folder: Path) -> Session:
        return with_actions(self.log.read(folder / "sessions"))
