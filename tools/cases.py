"""Run a folder of small inputs, and print what each should give beside what it gives.

A case is a folder. Its text (``expect.txt``, ``README.md``) says what is right. Its transcripts are
read. A script in it (``check.py``, ``try.py`` or ``decide.py``, after ``make.py`` or ``make.sh``)
runs in a copy::

    python -m tools.cases ../shared/cases
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from debrief.sessions.model import Session, calls_of
from debrief.sessions.scanning import Scan
from debrief.sessions.sources import read_week, scan

_TEXTS = ("expect.txt", "README.md", "README.txt", "steps.txt")
_MAKERS, _SCRIPTS = ("make.sh", "make.py"), ("check.py", "try.py", "decide.py", "show.py")
_SECONDS = 120
_LONGEST = 160
_MOST_LINES = 14


def main() -> None:
    """Print each case below a folder."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="cases whose path holds this text")
    chosen = parser.parse_args()
    for case in cases_below(chosen.folder):
        if chosen.only in str(case):
            print(f"\n## {case.relative_to(chosen.folder)}")
            for line in (f"right: {text_of(case)}", *gives(case)):
                print(line)


def cases_below(folder: Path) -> Iterator[Path]:
    """Yield the folders that are cases."""
    for top in sorted(path for path in folder.iterdir() if path.is_dir()):
        inner = sorted(path for path in top.iterdir() if path.is_dir())
        own = any((top / name).is_file() for name in (*_TEXTS, *_MAKERS, *_SCRIPTS))
        yield from [top] if own and not inner else inner


def text_of(case: Path) -> str:
    """Return what a case says of itself."""
    found = next((case / name for name in _TEXTS if (case / name).is_file()), None)
    said = found.read_text(encoding="utf-8") if found else ""
    script = next((case / name for name in _SCRIPTS if (case / name).is_file()), None)
    if not said and script:
        said = script.read_text(encoding="utf-8").partition("\n")[0].strip('"# ')
    return " ".join(said.split()) or "(no text)"


def gives(case: Path) -> Iterator[str]:
    """Yield what a case gives, in lines."""
    names = [name for name in (*_MAKERS, *_SCRIPTS) if (case / name).is_file()]
    if any(name in _SCRIPTS for name in names):
        yield from _ran(case, names)
    else:
        yield from _read(case)


def _ran(case: Path, names: list[str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / case.name
        shutil.copytree(case, copy)
        for name in names:
            program = "sh" if name.endswith(".sh") else sys.executable
            done = subprocess.run(
                [program, name],
                cwd=copy,
                env={**os.environ, "DEBRIEF_HOME": folder, "PYTHONPATH": str(Path.cwd())},
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
            lines = (done.stdout + done.stderr).splitlines()
            yield f"gives: {name} ends with {done.returncode}"
            yield from (f"    {line[:_LONGEST]}" for line in lines[-_MOST_LINES:])


def _read(case: Path) -> Iterator[str]:
    found: Scan = scan([case])
    unread = [entry for entry in found.entries if entry.reason and not entry.expected]
    for week in found.weeks():
        for item in read_week(found, week, lambda session: session):
            if isinstance(item, Session):
                yield f"gives: {_session(item, week)}"
                for turn in item.turns[:_MOST_LINES]:
                    yield f"    [{turn.origin}] {' '.join(turn.prompt.split())[:_LONGEST]!r}"
                for call in list(calls_of(item))[:_MOST_LINES]:
                    given = call.command or call.path or ""
                    yield f"    {call.name} {call.status} {call.exit_code} {given[:_LONGEST]}"
                for problem in item.problems:
                    yield f"    problem: {problem.line}: {problem.reason}"
            elif not item.expected:
                yield f"gives: unread: {item.path}: {item.reason}"
    for entry in unread:
        yield f"gives: not read: {entry.path}: {entry.reason}"


def _session(session: Session, week: str) -> str:
    usage = session.usage
    counts = f"{usage.input} {usage.output} {usage.cache_write} {usage.cache_read}"
    of = f" of {session.relative_of}" if session.relative_of else ""
    return (
        f"{session.tool} {session.id[:12]}{of}, week {week}, started {session.started:%F %T}, "
        f"{len(session.turns)} turns, {len(list(calls_of(session)))} calls, tokens {counts}, "
        f"models {', '.join(session.models) or 'none'}"
    )


if __name__ == "__main__":
    main()
