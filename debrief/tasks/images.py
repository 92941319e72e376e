"""Which container image a task begins from, and what is installed in it.

The image has the version of the language's program that the proof was run with; what is installed
is what the repository's own files name, so that the image needs nothing of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from debrief.execution.model import Check
from debrief.signals.check_commands import languages_of
from debrief.signals.shell import check_of, commands_in
from debrief.tasks.files import Image
from debrief.tasks.instruction import WORKDIR

Language = Literal["python", "javascript", "go", "rust"]
_MANIFESTS: dict[Language, tuple[str, ...]] = {
    "python": ("pyproject.toml", "setup.py", "requirements.txt"),
    "javascript": ("package.json",),
    "go": ("go.mod",),
    "rust": ("Cargo.toml",),
}
VERSIONS: dict[Language, str] = {
    "python": "python3 --version",
    "javascript": "node --version",
    "go": "go version",
    "rust": "rustc --version",
}
"""Commands that print the version of a language's program."""
_IMAGES: dict[Language, str] = {
    "python": "python",
    "javascript": "node",
    "go": "golang",
    "rust": "rust",
}
"""With git in them, which solutions are applied by."""
_NODE_LOCKS = {
    "package-lock.json": ("npm ci",),
    "pnpm-lock.yaml": ("npm install -g pnpm", "pnpm install --frozen-lockfile"),
    "yarn.lock": ("npm install -g yarn", "yarn install --frozen-lockfile"),
    "bun.lock": ("npm install -g bun", "bun install --frozen-lockfile"),
}
_DEPENDENCIES: dict[Language, tuple[str, ...]] = {
    "javascript": tuple(_NODE_LOCKS),
    "go": ("go.sum",),
    "rust": ("Cargo.lock",),
}
_INSTALLED = """python3 -c '
import importlib.metadata as metadata
for each in metadata.distributions():
    if not each.read_text("direct_url.json"):
        print(each.metadata["Name"] + "==" + each.version)
'"""
"""Prints the installed packages that are from a registry, one a line."""
_PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_-]*")
_VERSION = re.compile(r"(\d+)\.(\d+)")
PLAIN = Image(name="buildpack-deps:bookworm")
"""For checks that need no more than a shell and what Debian has for building."""


def language_of(tree: Path, checks: Sequence[Check]) -> Language | None:
    """Return the language that a tree's checks are of; None for shell alone.

    The program of the first check decides; where it serves any language, as ``make`` does, the
    manifest that is nearest to the check's folder.
    """
    for check in checks:
        named = [command for command in commands_in(check.command) if command.words]
        tools = [found[1] for command in named if (found := check_of(command.words))]
        for language in _MANIFESTS:
            if any(language in languages_of(tool) for tool in tools):
                return language
    for folder in (*(tree / check.folder for check in checks), tree):
        for language, names in _MANIFESTS.items():
            if any((folder / name).is_file() for name in names):
                return language
    return None


def changed_dependencies(base: Path, final: Path, checks: Sequence[Check]) -> str:
    """Return a file that names other packages after a change than before; empty for none.

    A container is built from the base. Python's packages are listed for it as the proof had them,
    so there it makes no difference.
    """
    language = language_of(final, checks)
    names = {
        f"{folder}/{name}".lstrip("/")
        for folder in {"", *(check.folder for check in checks)}
        for name in _DEPENDENCIES.get(language or "python", ())
    }
    return next((name for name in sorted(names) if _text(base / name) != _text(final / name)), "")


def _text(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def image_of(
    tree: Path,
    checks: Sequence[Check],
    environment: Mapping[str, str],
    ask: Callable[[str], str],
) -> Image:
    """Return the image for a tree's checks.

    Args:
        tree: the files that the solution leaves.
        checks: that the tests run.
        environment: variables of the proof.
        ask: returns what a command prints where the proof is run; empty where it fails.
    """
    language = language_of(tree, checks)
    if language is None:
        return PLAIN
    said = _VERSION.search(ask(VERSIONS[language]))
    if said is None:
        return PLAIN
    folder = next((check.folder for check in checks), "")
    top = PurePosixPath(WORKDIR, folder)
    version = said[1] if language == "javascript" else f"{said[1]}.{said[2]}"
    name = f"{_IMAGES[language]}:{version}"
    match language:
        case "python":
            paths = environment.get("PYTHONPATH", "")
            return _python(name, tree / folder, top, ask(_INSTALLED), paths)
        case "javascript":
            return Image(
                name=name,
                steps=tuple(f"cd {top} && {step}" for step in _node_steps(tree / folder)),
                environment={"PATH": f"{top}/node_modules/.bin:$PATH"},
                is_pinned=any((tree / folder / lock).is_file() for lock in _NODE_LOCKS),
            )
        case "go":
            return Image(name=name, steps=(f"cd {top} && go mod download",))
        case "rust":
            return Image(name=name, steps=(f"cd {top} && cargo fetch",))


def _python(name: str, folder: Path, top: PurePosixPath, installed: str, paths: str) -> Image:
    """Return an image with the packages that the proof had, in their versions."""
    packages = sorted(line for line in installed.splitlines() if _PINNED.fullmatch(line))
    steps = []
    if packages:
        steps.append("pip install --no-cache-dir --no-deps -r /opt/requirements.txt")
    if any((folder / each).is_file() for each in ("pyproject.toml", "setup.py")):
        steps.append(f"pip install --no-cache-dir --no-deps -e {top}")
    listed = "".join(f"{line}\n" for line in packages)
    files = {"requirements.txt": listed.encode()} if packages else {}
    variables = {"PYTHONPATH": paths} if paths else {}
    return Image(name=name, steps=tuple(steps), files=files, environment=variables)


def _node_steps(folder: Path) -> tuple[str, ...]:
    for lock, steps in _NODE_LOCKS.items():
        if (folder / lock).is_file():
            return steps
    return ("npm install",)
