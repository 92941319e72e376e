"""Which changes a record leaves out because they are made by tools, or because a person says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pathspec import GitIgnoreSpec

from debrief.errors import InputError

GENERATED = (
    ".agent-dataset/",
    ".debrief/",
    "node_modules/",
    ".pnpm-store/",
    ".next/",
    ".nuxt/",
    ".turbo/",
    ".cache/",
    ".parcel-cache/",
    ".svelte-kit/",
    "__pycache__/",
    ".pytest_cache/",
    ".mypy_cache/",
    ".venv/",
    "dist/",
    "build/",
    "out/",
    "target/",
    "coverage/",
    "*.tsbuildinfo",
    ".DS_Store",
)
"""What tools make, in the syntax of gitignore. As in git, files that the baseline has are not
ignored by it."""

_BACKEND: Literal["simple"] = "simple"
"""The engines for many paths take longer to start than a session's paths to be looked at."""


class Ignoring:
    """Tells which paths are ignored.

    Args:
        patterns: a person's own, in the syntax of gitignore. They hold for files of the baseline
            too, and come after ``GENERATED``, so that ``!dist/`` takes ``dist/`` in again.

    Raises:
        InputError: a pattern cannot be read.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        try:
            self._own = GitIgnoreSpec.from_lines(patterns, backend=_BACKEND)
            self._all = GitIgnoreSpec.from_lines([*GENERATED, *patterns], backend=_BACKEND)
        except ValueError as error:
            raise InputError("ignore patterns", str(error), "Use gitignore's syntax.") from error
        self._folders: dict[tuple[str, bool], str] = {}

    def place(self, path: str, *, in_baseline: bool) -> str:
        """Return what is ignored: the path, the topmost ignored folder it lies in, or ``""``.

        A folder ends in a slash.
        """
        spec = self._own if in_baseline else self._all
        folder, _, _ = path.rpartition("/")
        found = self._folder(spec, folder, in_baseline) if folder else ""
        return found or (path if spec.match_file(path) else "")

    def _folder(self, spec: GitIgnoreSpec, folder: str, in_baseline: bool) -> str:
        key = (folder, in_baseline)
        if key not in self._folders:
            above, _, _ = folder.rpartition("/")
            found = self._folder(spec, above, in_baseline) if above else ""
            own = f"{folder}/" if spec.match_file(f"{folder}/") else ""
            self._folders[key] = found or own
        return self._folders[key]


def check_globs(patterns: Sequence[str]) -> None:
    """Refuse patterns that cannot be read.

    Raises:
        InputError: says which, and why.
    """
    Ignoring(patterns)
