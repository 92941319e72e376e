"""Sessions that really happen: seeded steps in a real repository, recorded as a transcript.

Git is the judge: what the signals say of a session is compared with what ``git`` says of the
repository that it left behind.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.signals.scenario import Story

ENVIRONMENT = {
    "HOME": "/nonexistent",
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": "ada@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    },
}
FOLDERS = ("", "src/", "docs/", "src/web/")
KINDS = ("py", "md", "toml", "ts")


class Repository:
    """A repository, and the session that works in it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.story = Story().turn("Work on it")
        self.made = 0
        self.moved: dict[str, str] = {}
        """The first names of files that were moved, by the present ones."""
        self.counted: list[int] = []
        """Files of each commit, by ``git show``."""
        self._do("git init -q -b main .")
        for at, place in enumerate(FOLDERS):
            for kind in KINDS:
                self._put(f"{place}old{at}.{kind}", "one\ntwo\nthree\n")
        self._do("git add -A && git commit -qm start && git tag start")

    def step(self) -> None:
        """Do one of the things that sessions do, at random."""
        files = self._tracked()
        name, other = self.random.choice(files), self.random.choice(files)
        self.made += 1
        new = f"{self.random.choice(FOLDERS)}new{self.made}.{self.random.choice(KINDS)}"
        deeds: dict[str, Callable[[], object]] = {
            "edit": lambda: self._edit(name),
            "write": lambda: self._write(new),
            "sed": lambda: self.run(f"sed -i 's/^/{self.made}/' {name}"),
            "append": lambda: self.run(f"echo {self.made} >> {name}"),
            "heredoc": lambda: self.run(f"cat > {new} <<'EOF'\nx = {self.made}\nEOF"),
            "copy": lambda: self.run(f"cp {name} {new}"),
            "python": lambda: self.run(
                f"python3 - <<'EOF'\np = '{name}'\ns = open(p).read()\n"
                f"open(p, 'w').write(s + '{self.made}')\nEOF"
            ),
            "move": lambda: self._move(f"git mv {name} {new}", name, new),
            "move plainly": lambda: self._move(f"mv {name} {new}", name, new),
            "move into": lambda: self._move(
                f"mkdir -p box{self.made} && mv {name} box{self.made}/",
                name,
                f"box{self.made}/{name.rpartition('/')[2]}",
            ),
            "remove": lambda: self.run(f"rm {name}"),
            "git rm": lambda: self.run(f"git rm -qf {name}"),
            "put back": lambda: self.run(f"git checkout -- {name} {other}"),
            "restore": lambda: self.run(f"git restore {name}"),
            "cd": lambda: self._in_folder(),
            "look": lambda: self.run(f"git status --short && grep -n one {name}"),
            "cache": lambda: self.run("mkdir -p __pycache__ && echo 1 > __pycache__/a.pyc"),
            "scratch": lambda: self.run(f"echo {self.made} > /tmp/signals-{os.getpid()}.txt"),
            "refused": lambda: self.story.call("Bash", "no", "rejected", command=f"rm {name}"),
            "commit": lambda: self.commit(),
        }
        deeds[self.random.choice(list(deeds))]()

    def commit(self) -> None:
        """Commit all that is there, and remember what git says of it."""
        self.run(f"git add -A -- . ':!*__pycache__*' && git commit -m 'Step {self.made}'")
        if self.story.last_status == "ok":
            names = self._do("git show --name-only --format= HEAD").split()
            self.counted.append(len(names))

    def run(self, command: str) -> None:
        """Run a command in the session."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        printed = (done.stdout + done.stderr).strip()
        text = printed if done.returncode == 0 else f"Exit code {done.returncode}\n{printed}"
        self.story.run(command, text, "ok" if done.returncode == 0 else "failed")

    def _move(self, command: str, name: str, to: str) -> None:
        self.run(command)
        if self.story.last_status == "ok":
            self.moved[to] = self.moved.pop(name, name)

    def truth(self) -> tuple[set[str], set[str]]:
        """Return the files that differ from the start, by git, and those that are gone and were
        not moved."""
        self._do("git add -A -- . ':!*__pycache__*'")
        told = self._do("git diff --cached --no-renames --name-status start").splitlines()
        moved = {old for new, old in self.moved.items() if (self.folder / new).exists()}
        changed = {line[2:] for line in told if line[0] != "D"}
        return changed, {line[2:] for line in told if line[0] == "D"} - moved

    def _edit(self, name: str) -> None:
        lines = (self.folder / name).read_text().split("\n")
        new = f"{lines[0]}-{self.made}"
        self._put(name, "\n".join([new, *lines[1:]]))
        self.story.edit(f"/home/ada/shop/{name}", lines[0], new)

    def _write(self, name: str) -> None:
        self._put(name, f"text {self.made}\n")
        self.story.write(f"/home/ada/shop/{name}", f"text {self.made}")

    def _in_folder(self) -> None:
        inside = [name for name in self._tracked() if name.startswith("src/")]
        if inside:
            name = self.random.choice(inside).removeprefix("src/")
            self.run(f"(cd src && sed -i 's/$/{self.made}/' {name})")

    def _put(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _tracked(self) -> list[str]:
        found = self._do("git ls-files -co --exclude='*.pyc'").splitlines()
        return sorted(name for name in found if (self.folder / name).is_file())

    def _do(self, command: str) -> str:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
