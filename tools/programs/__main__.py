"""Runs the real coding agents of npm against a scripted model, and compares what is read.

    python -m tools.programs FOLDER [--programs codex,pi] [--newest] [--read] [--markdown FILE]
    python -m tools.programs FOLDER --as-models [--programs claude] [--newest]

Each program is installed below FOLDER at its pinned version, runs the scripts in a home of its own
and asks no one but the model on loopback. Then its transcripts are read and compared with what the
model sent and what git says. With --as-models, those that answer as models score ten sessions
instead, in a run that is killed and goes on, and then meet what can go wrong. Exit code 1 when a
field is not as it was, or tokens or money are not what the model counted; 2 when nothing differs,
and a program could not be installed.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from debrief.cli.shared import console
from debrief.errors import DebriefError, InputError
from tools.programs.as_models import NAMES, ask_as_model, lines_of
from tools.programs.comparison import Comparison, compared, report
from tools.programs.definitions import Definitions, Program, load
from tools.programs.running import Stage, install, run_program


def main() -> int:
    """Run and compare the programs that the command line names; all of them when it names none."""
    known = load()
    parser = argparse.ArgumentParser(
        prog="python -m tools.programs",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )
    parser.add_argument("folder", type=Path, help="for packages, homes and transcripts")
    parser.add_argument("--programs", default=",".join(known.programs), help="with commas between")
    parser.add_argument("--newest", action="store_true", help="not the pinned versions")
    parser.add_argument("--read", action="store_true", help="what was run before; run nothing")
    parser.add_argument("--markdown", type=Path, help="the table is written there as well")
    parser.add_argument("--as-models", action="store_true", help="ask them as models are asked")
    options = parser.parse_args()
    if options.as_models:
        return _ask(options, known)
    results: list[Comparison] = []
    for name in options.programs.split(","):
        if name not in known.programs:
            parser.error(f"no program {name}; there are {', '.join(known.programs)}")
        stage = Stage(options.folder.resolve(), name)
        try:
            if not options.read:
                print(f"{name} …", file=sys.stderr)
                try:
                    version = _installed(stage, known, newest=options.newest)
                except InputError as error:
                    results.append(Comparison(program=name, version="", missing=str(error)))
                    continue
                run_program(stage, known.programs[name], version, known)
            results.append(compared(stage, known))
        except (DebriefError, OSError) as error:
            results.append(Comparison(program=name, version="", failure=str(error)))
    text = report(results, datetime.now(UTC).date())
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    console().print(text)
    if any(result.is_wrong for result in results):
        return 1
    return 2 if any(result.missing for result in results) else 0


def _ask(options: argparse.Namespace, known: Definitions) -> int:
    wrong = 0
    for name in sorted(NAMES.keys() & set(options.programs.split(","))):
        stage, program = Stage(options.folder.resolve(), name), known.programs[name]
        install(stage.node, "node", known.node)
        done = ask_as_model(stage, program, "latest" if options.newest else program.version)
        console().print(lines_of(done))
        wrong += done.is_wrong
    return int(wrong > 0)


def _installed(stage: Stage, known: Definitions, *, newest: bool) -> str:
    """Install a program and return its version; raises as ``install`` does."""
    program: Program = known.programs[stage.name]
    install(stage.node, "node", known.node)
    wanted = "latest" if newest and not program.pinned else program.version
    return install(stage.prefix, program.package, wanted)


if __name__ == "__main__":
    sys.exit(main())
