"""Runs the recipes of docs/training-sets.md with the trainers, and tells what each of them loaded.

    python -m tools.trainers FOLDER [--trainers SFTTrainer,axolotl] [--lake LAKE] [--markdown FILE]

The trainers are installed below FOLDER at their pinned versions, each without what it asks for
beside: they want different versions of the same packages. The sets are the demo's, and for pairs
those of sessions that were made up; the models are tiny and random. Exit code 1 when a line was
lost or something else was trained on than what the model said.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from debrief.cli.shared import console
from debrief.markdown import table
from tools.trainers.recipes import Recipe, recipes

ROOT = Path(__file__).parents[2]
DEBRIEF = Path(sys.executable).parent / "debrief"
_HEADER = ("trainer", "version", "form", "lines loaded", "answers that the loss is over", "how")


def main() -> int:
    """Run the recipes that the command line names; all of them when it names none."""
    known = recipes()
    parser = argparse.ArgumentParser(
        prog="python -m tools.trainers",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )
    parser.add_argument("folder", type=Path, help="for packages, sets and what trainers write")
    parser.add_argument("--trainers", default=",".join(known), help="with commas between")
    parser.add_argument("--lake", default="", help="with other training sets than the demo's")
    parser.add_argument("--markdown", type=Path, help="the table is written there as well")
    options = parser.parse_args()
    folder: Path = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    python = _environment(folder)
    lakes = {"": options.lake or _demo(folder), "preference": options.lake or _pairs(folder)}
    _export("debrief export --form messages --to sets/messages --one-file", lakes[""], folder)
    rows, is_wrong = [], False
    for name in options.trainers.split(","):
        if name not in known:
            parser.error(f"no trainer {name}; there are {', '.join(known)}")
        print(f"{name} …", file=sys.stderr)
        recipe = known[name]
        _export(recipe.export, lakes.get(recipe.form, lakes[""]), folder)
        found = _run(python, recipe, folder)
        told = _told(folder, recipe, found)
        rows.append(_row(recipe, told, found))
        print(" | ".join(rows[-1]), file=sys.stderr)
        is_wrong |= found.get("loaded") != told or _loses(found)
    text = table(_HEADER, rows)
    if options.markdown:
        options.markdown.write_text(text + "\n", encoding="utf-8")
    console().print(text)
    return int(is_wrong)


def _environment(folder: Path) -> Path:
    """Return the interpreter of an environment with the trainers."""
    place, wanted = folder / "venv", Path(__file__).with_name("requirements.txt")
    python, done = place / "bin" / "python", place / "requirements.txt"
    if not done.exists() or done.read_bytes() != wanted.read_bytes():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        install = ["-m", "pip", "install", "--quiet", "--no-deps", "--requirement", str(wanted)]
        subprocess.run([str(python), *install], check=True)
        done.write_bytes(wanted.read_bytes())
    return python


def _demo(folder: Path) -> str:
    """Return a lake of the demo's sessions."""
    lake = folder / "lake"
    if not lake.exists():
        home = os.environ | {"DEBRIEF_HOME": str(folder / "home")}
        _debrief("demo", "--lake", str(lake), cwd=folder, env=home)
    return str(lake)


def _debrief(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> None:
    ran = subprocess.run([DEBRIEF, *arguments], cwd=cwd, env=env, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(ran.stderr)


def _pairs(folder: Path) -> str:
    """Return a lake of made-up sessions, of which two each began with the same words."""
    from debrief.lake import Lake
    from tests.benchmarks.training import fill
    from tests.training.lakes import stored

    place = folder / "pairs"
    if not place.exists():
        fill(40, 20, str(place))
        stored(Lake(str(place)))
    return str(place)


def _export(command: str, lake: str, folder: Path) -> None:
    _, *arguments = shlex.split(command)
    _debrief(*arguments, "--lake", lake, cwd=folder)


def _run(python: Path, recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Return what came of a recipe; how it failed, where it did."""
    log = folder / f"{recipe.trainer}.log"
    path = f"{ROOT}{os.pathsep}{ROOT / 'tools' / 'trainers' / 'stand_ins'}"
    offline = {"HF_HUB_OFFLINE": "1", "DISABLE_VERSION_CHECK": "1", "CUDA_VISIBLE_DEVICES": ""}
    with log.open("w", encoding="utf-8") as errors:
        ran = subprocess.run(
            [python, "-m", "tools.trainers.checks", recipe.trainer],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": path} | offline,
            input=recipe.text,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    if ran.returncode:
        *_, last = ["", *log.read_text(encoding="utf-8").strip().splitlines()]
        return {"how": f"failed with {ran.returncode}: {last} ({log})"}
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def _told(folder: Path, recipe: Recipe, found: dict[str, Any]) -> int:
    """Return how many lines an export has on the sides that a trainer was given."""
    sides = found.get("sides", ("train", "eval"))
    paths = [folder / "sets" / recipe.form / f"{side}.jsonl" for side in sides]
    return sum(len(path.read_bytes().splitlines()) for path in paths if path.exists())


def _loses(found: dict[str, Any]) -> bool:
    """Return whether something else is trained on than what the model said, by its own template."""
    same, _, total = str(found.get("exact", "")).partition(" of ")
    return same != total


def _row(recipe: Recipe, told: int, found: dict[str, Any]) -> tuple[str, ...]:
    return (
        recipe.trainer,
        found.get("version", ""),
        f"`{recipe.form}`",
        f"{found.get('loaded', 0)} of {told}",
        found.get("masks", ""),
        found["how"],
    )


if __name__ == "__main__":
    sys.exit(main())
