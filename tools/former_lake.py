"""A small lake made by an earlier version, from which upgrades are tested.

    python -m tools.former_lake COMMIT FOLDER

The commit's wheel is built and installed with its own locked packages below FOLDER, which takes
a registry and a minute or two. It reads one of its made-up samples of each task, and the lake, the
transcripts and the key go to ``tests/pipelines/lakes/<commit>.zip``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAKES = ROOT / "tests" / "pipelines" / "lakes"
KEPT = ("sessions", "lake", ".debrief/redaction.key")
"""What a machine of the earlier version leaves to the next one, relative to its home."""
_SMALLEST = 10_000
"""Bytes of a transcript that is more than a greeting."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UV = Path(sys.executable).with_name("uv")


def main() -> int:
    """Make the lake of the commit that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.former_lake",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )
    parser.add_argument("commit")
    parser.add_argument("folder", type=Path, help="for the wheel and its packages")
    given = parser.parse_args()
    named = ["git", "rev-parse", "--short=7", given.commit]
    commit = subprocess.run(named, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    folder = given.folder.absolute() / commit.strip()
    shutil.rmtree(folder, ignore_errors=True)
    source, home = folder / "source", folder / "home"
    source.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", commit.strip()], cwd=ROOT, check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "--extract"], cwd=source, input=archive, check=True)
    debrief = _install(source, folder)
    for project in sorted((source / "debrief/samples/data/claude/projects").iterdir()):
        sized = sorted((path.stat().st_size, path) for path in project.glob("*.jsonl"))
        path = next(path for size, path in sized if size > _SMALLEST)
        target = home / "sessions" / "projects" / project.name / path.name
        target.parent.mkdir(parents=True)
        shutil.copyfile(path, target)
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("DEBRIEF_", "DAGSTER_"))},
        "HOME": str(home),
        "DEBRIEF_HOME": str(home / ".debrief"),
    }
    options = ("--no-model", "--lake", str(home / "lake"), "--sessions", str(home / "sessions"))
    subprocess.run([debrief, "run", *options], cwd=folder, env=environment, check=True)
    LAKES.mkdir(exist_ok=True)
    _pack(home, LAKES / f"{commit.strip()}.zip")
    return 0


def _install(source: Path, folder: Path) -> Path:
    """Install a checkout as users have it; return its command."""
    environment = {**os.environ, "VIRTUAL_ENV": str(folder / "venv")}
    build = ("build", "--quiet", "--wheel", "--no-build-isolation", "--python", sys.executable)
    venv = [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")]
    own = [
        source / name for name in ("recorder", ".") if (source / name / "pyproject.toml").is_file()
    ]
    for project in own:  # versions up to 0.1.0 are one distribution
        subprocess.run([_UV, *build, "--out-dir", folder, project], check=True)
    subprocess.run(venv, check=True)
    packages = ["--require-hashes", "-r", str(source / "deploy" / "locks" / "run.lock")]
    wheel = ["--no-deps", *map(str, folder.glob("*.whl"))]
    for arguments in (packages, wheel):
        install = [str(_UV), "pip", "install", "--quiet", *arguments]
        subprocess.run(install, env=environment, check=True)
    return folder / "venv" / "bin" / "debrief"


def _pack(home: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for place in KEPT:
            top = home / place
            for path in sorted([top] if top.is_file() else top.rglob("*")):
                left_out = ".dagster" in path.parts or path.suffix == ".png"
                if path.is_file() and not left_out:
                    entry = zipfile.ZipInfo(str(path.relative_to(home)), _EPOCH)
                    packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    sys.exit(main())
