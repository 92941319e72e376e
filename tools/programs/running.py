"""Installs the programs from npm and runs them on the scripts, each in a home of its own."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import termios
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
from msgspec import Struct

from debrief.errors import InputError
from tools.programs.definitions import Definitions, Program, filled
from tools.programs.server import Exchange, ModelServer, ScriptedModel

BRANCH: Final = "mend-add"
_LONGEST: Final = 120
"""Seconds for one run."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_QUIET: Final = 5.0
"""Seconds in which a program draws nothing on its terminal once it waits for keys."""
_UNANSWERED: Final = 15.0
"""Seconds that it may take to draw what a key does, which may be nothing."""
_WHERE, _THERE = b"\x1b[6n", b"\x1b[1;1R"
"""A terminal's question for the cursor's place, and the answer that it is at the beginning."""
NOTES = Path(__file__).with_name("notes_server.py")
_ON_LOOPBACK = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
"""Whoever asks for anything but the scripted model gets nowhere."""


class Run(Struct, frozen=True):
    """One script, as a program went through it."""

    script: str
    began: datetime
    ended: datetime
    code: int


class Truth(Struct, frozen=True, kw_only=True):
    """What really happened with a program, whatever its transcripts say."""

    program: str
    version: str
    repository: str
    growth: tuple[int, int] = (0, 0)
    """Lines added and removed, by git."""
    runs: tuple[Run, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    errors: tuple[str, ...] = ()
    """Requests that the scripted model did not understand."""


class Stage:
    """The folder of one program: its packages, its home, its repository, the truth about it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.prefix = folder / "packages" / name
        self.home = folder / name / "home"
        self.repository = folder / name / "calculator"
        self.truth = folder / name / "truth.json"
        self.node = folder / "packages" / "node"

    def read(self) -> Truth:
        """Return the truth of the last run."""
        return msgspec.json.decode(self.truth.read_bytes(), type=Truth)


def install(prefix: Path, package: str, version: str) -> str:
    """Install a package below a prefix unless it is there, and return its version.

    Raises:
        InputError: there is no npm, or it cannot install the package.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise InputError("npm", "not found", "Install Node.js, which brings npm.")
    manifest = prefix / "node_modules" / package / "package.json"
    if not (manifest.is_file() and _version(manifest) == version):
        prefix.mkdir(parents=True, exist_ok=True)
        quiet = ("--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(prefix))
        done = subprocess.run(
            [npm, "install", *quiet, f"{package}@{version}"], capture_output=True, text=True
        )
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if " error " in line]
            raise InputError(f"{package}@{version}", (said[1:2] or said or ["npm failed"])[0])
    return _version(manifest)


def _version(manifest: Path) -> str:
    return str(msgspec.json.decode(manifest.read_bytes())["version"])


def run_program(stage: Stage, program: Program, version: str, known: Definitions) -> Truth:
    """Run a program's scripts from an empty home and a fresh repository, and keep the truth."""
    for folder in (stage.home, stage.repository):
        shutil.rmtree(folder, ignore_errors=True)
    write_files(stage.repository, known.repository)
    for path, picture in known.pictures.items():
        (stage.repository / path).write_bytes(picture)
    for command in (("init", "-q", "-b", BRANCH), ("add", "-A"), ("commit", "-qm", "Start")):
        _git(stage.repository, *command)
    model = ScriptedModel(program, known.scripts, stage.repository)
    runs = []
    sessions: dict[str, str] = {}
    growth = (0, 0)
    with ModelServer(model) as server, ExitStack() as stack:
        stack.callback(_end_all_of, stage.home)
        values = {"url": server.url, "repository": str(stage.repository), "notes": str(NOTES)}
        write_files(stage.home, filled(program.files, values))
        environment = environment_of(stage) | filled(program.env, values)
        for name in program.scripts:
            script = known.scripts[name]
            session = sessions.get(script.resumes or script.forks, "")
            values |= {"prompt": script.typed or script.prompt, "session": session}
            values |= {"picture": str(stage.repository / script.shows), "aside": script.aside}
            commands = {
                bool(script.resumes): program.resume,
                bool(script.forks): program.fork,
                bool(script.shows): program.show,
            }
            arguments = filled(list(commands.get(True, program.start)), values)
            where = {"env": environment, "cwd": stage.repository}
            began = datetime.now(UTC)
            if script.keys:
                code = _type(_entered(*script.keys), program.terminal, **where)
            elif script.aside:
                keys = (*filled(list(program.aside), values), *_entered(script.prompt))
                code = _type(keys, program.terminal, **where)
            elif script.resumes and program.types:
                code = _type(_entered(values["prompt"]), arguments, **where)
            else:
                code = _run(arguments, stage.truth.with_name(f"{name}.log"), **where)
            sessions.setdefault(script.resumes or name, _session(stage, program))
            runs.append(Run(name, began, datetime.now(UTC), code))
            if not any(step.meanwhile for step in script.steps):
                growth = _growth(stage.repository)
    truth = Truth(
        program=stage.name,
        version=version,
        repository=str(stage.repository),
        growth=growth,
        runs=tuple(runs),
        exchanges=tuple(model.exchanges),
        errors=tuple(server.errors),
    )
    stage.truth.write_bytes(msgspec.json.encode(truth))
    return truth


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts below a folder, by path."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _git(repository: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")
    command = ["git", *who, "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _growth(repository: Path) -> tuple[int, int]:
    _git(repository, "add", "-AN")
    rows = [line.split("\t") for line in _git(repository, "diff", "--numstat").splitlines()]
    return sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows)


def _session(stage: Stage, program: Program) -> str:
    found = list(stage.home.glob(program.sessions)) if program.sessions else []
    name = max(found, key=lambda path: path.stat().st_mtime).stem if found else ""
    return match[0] if (match := _UUID.search(name)) else name


def environment_of(stage: Stage) -> dict[str, str]:
    """Return the environment of a program: its own home, and no network beyond loopback."""
    binaries = [str(prefix / "node_modules" / ".bin") for prefix in (stage.node, stage.prefix)]
    proxies = {**_ON_LOOPBACK, **{key.upper(): value for key, value in _ON_LOOPBACK.items()}}
    return {
        "HOME": str(stage.home),
        "PATH": ":".join([*binaries, "/usr/local/bin", "/usr/bin", "/bin"]),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        **proxies,
    }


def _end_all_of(home: Path) -> None:
    """End what still runs from a program's home, such as a daemon in a session of its own."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("HOME") == str(home):
                process.kill()


def _run(arguments: Sequence[str], log: Path, **where: Any) -> int:
    with (
        log.open("wb") as output,
        _started(arguments, stdin=subprocess.DEVNULL, stdout=output, **where) as process,
        suppress(subprocess.TimeoutExpired),
    ):
        return process.wait(_LONGEST)
    return -1


def _entered(*texts: str) -> tuple[str, ...]:
    """Return the keys that type texts, each with the enter key behind it."""
    return tuple(keys for text in texts if text for keys in (text, "\r"))


def _type(keys: Iterable[str], arguments: Sequence[str], **where: Any) -> int:
    """Run a program on a terminal, type keys, and leave when nothing more is drawn."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 120))
    with _started(arguments, stdin=theirs, stdout=theirs, **where):
        os.close(theirs)
        _watch(ours, _LONGEST)
        for typed in keys:
            os.write(ours, typed.encode())
            _watch(ours, _UNANSWERED)
    os.close(ours)
    return 0


def _watch(terminal: int, patience: float) -> None:
    """Take what a program draws off a terminal, from when it begins to until it waits for keys,
    and tell it where the cursor is when it asks.

    Args:
        terminal: that it draws on.
        patience: how long it may take to begin, in seconds.
    """
    end = time.monotonic() + _LONGEST
    with suppress(OSError):  # it closed the terminal
        while time.monotonic() < end and select.select([terminal], [], [], patience)[0]:
            if _WHERE in os.read(terminal, 65536):
                os.write(terminal, _THERE)
            patience = _QUIET


@contextmanager
def _started(
    arguments: Sequence[str], *, env: Mapping[str, str], **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program and, in the end, end it with all that it started."""
    process = subprocess.Popen(
        arguments,
        executable=shutil.which(arguments[0], path=env["PATH"]),
        env=env,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        **options,
    )
    try:
        yield process
    finally:
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
