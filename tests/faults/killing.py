"""Commands that end with SIGKILL: before their n-th change of the disk, or by the clock.

``python -m tests.faults.killing`` is a process that has imported all commands and forks one for
each line on its standard input, so that a command costs what it does and not what it imports.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from msgspec import Struct, structs

from tests.machine import clean_environment, keep_patterns

ROOT = Path(__file__).parents[2]
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate")
"""Events of Python's audit that are a change of the disk, beside files opened to be written."""
_IMPORTED = (
    *("debrief.outcomes.gathering", "debrief.training.publishing.publish", "debrief.view.app"),
    *("pipelines.forgetting", "pandas", "pyarrow.json", "pyarrow.parquet"),
)
"""What commands import when they need it."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Moment(Struct, frozen=True):
    """When a command is killed."""

    change: int = 0
    """Before this one, from 1; 0: before none."""
    seconds: float = 0.0
    """After so many; 0: never."""


class Ended(Struct, frozen=True):
    """How a command ended."""

    code: int
    """Its exit code; below 0 the signal that ended it."""
    changes: int
    """Of files and folders, up to there."""
    seconds: float
    said: str

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL


class Commands:
    """Commands that can be killed; a context."""

    def __init__(self) -> None:
        environment = clean_environment(DEBRIEF_LANGFUSE="off", DEBRIEF_REDACTION_KEY="5a" * 32)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.killing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )

    def __enter__(self) -> Commands:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def run(
        self,
        machine: Path,
        *words: str,
        at: Moment | None = None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> Ended:
        """Carry out a command.

        Args:
            machine: the home of its person; changes below it alone are counted.
            words: behind ``debrief``.
            at: when it is killed; None: it is not.
            meanwhile: is called while it runs.
        """
        keep_patterns(machine / ".debrief")
        when = structs.asdict(at or Moment())
        asked = json.dumps({"machine": str(machine), "words": words, **when})
        told, heard = self._process.stdin, self._process.stdout
        assert told is not None
        assert heard is not None
        told.write(f"{asked}\n")
        told.flush()
        meanwhile()
        return Ended(**json.loads(heard.readline()))


def _serve() -> None:
    """Carry out what is asked for, one command after the other."""
    for name in _IMPORTED:
        import_module(name)
    from pipelines.command import main

    for line in sys.stdin:
        asked = json.loads(line)
        shared = mmap.mmap(-1, 8)
        with tempfile.TemporaryFile() as output:
            began = time.monotonic()
            child = os.fork()
            if not child:
                _be(main, asked, shared, output)
            if asked["seconds"]:
                time.sleep(asked["seconds"])
                os.kill(child, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            seconds = time.monotonic() - began
            output.seek(0)
            said = output.read().decode()
        changes = struct.unpack("q", shared[:])[0]
        ended = {"code": code, "changes": changes, "seconds": seconds, "said": said}
        print(json.dumps(ended), flush=True)


def _be(
    main: Callable[[], None], asked: dict[str, Any], shared: mmap.mmap, output: IO[bytes]
) -> None:
    """Be the command, in the process that was forked for it."""
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    home, changes = asked["machine"], 0
    os.environ |= {"HOME": home, "DEBRIEF_HOME": f"{home}/.debrief"}

    def count(event: str, given: tuple[Any, ...]) -> None:
        nonlocal changes
        is_change = event in _CHANGES or (event == "open" and given[2] & _WRITES)
        if is_change and str(given[0]).startswith(f"{home}/"):
            changes += 1
            if changes == asked["change"]:
                os.kill(os.getpid(), signal.SIGKILL)
            shared[:] = struct.pack("q", changes)

    sys.addaudithook(count)
    sys.argv = ["debrief", *asked["words"]]
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()
