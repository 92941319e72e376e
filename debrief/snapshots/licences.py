"""The licence of a repository at a commit, as its own files state it in SPDX's terms.

Taken are an ``SPDX-License-Identifier`` in a licence file, what a package manifest states, and a
licence file's name (``LICENSE-MIT``, ``LICENSES/MIT.txt``). The words of a licence are not read:
two that begin alike may differ in a clause, and a guess would be published as a fact. What is found
is a hint for a person who publishes, not legal advice.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import orjson
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from debrief.errors import InputError
from debrief.git import git

_FILES = re.compile(r"(?:licen[cs]e|copying|unlicense)(?:[.-](.*))?\Z", re.IGNORECASE)
_FOLDER = "LICENSES"
"""Where REUSE has the texts, each named by its identifier."""
_MANIFESTS = ("pyproject.toml", "package.json", "Cargo.toml")
_LONGEST = 4_000
_TAG = re.compile(r"SPDX-License-Identifier:\s*([A-Za-z0-9.+() -]+)")


@lru_cache(maxsize=256)
def licence_at(repository: Path, commit: str) -> str:
    """Return the licence of a repository at a commit, as an SPDX expression.

    Empty when its files state none, or several: which of them holds for what was worked on is not
    known.

    Args:
        repository: a folder inside the repository's work tree.
        commit: as git names it.
    """
    with suppress(InputError):
        listing = git(
            repository, "ls-tree", "-z", "--full-tree", "--name-only", commit, ".", f"{_FOLDER}/"
        )
        names = [name.decode("utf-8", "replace") for name in listing.split(b"\0") if name]
        stated = set(_stated(repository, commit, names)) or set(_named(names))
        return stated.pop() if len(stated) == 1 else ""
    return ""


def _stated(repository: Path, commit: str, names: list[str]) -> Iterator[str]:
    """Yield what tags in licence files and manifests state."""
    for name in filter(_FILES.match, names):
        if tag := _TAG.search(_text(repository, commit, name)[:_LONGEST]):
            yield from _expression(tag[1])
    for name in _MANIFESTS:
        if name in names:
            yield from _expression(_of_manifest(name, _text(repository, commit, name)))


def _named(names: list[str]) -> Iterator[str]:
    """Yield the licences that files are named by, empty for one whose name does not tell."""
    for name in names:
        path = PurePosixPath(name)
        file = _FILES.match(name)
        if path.parent.name == _FOLDER:
            yield next(_expression(path.stem), "")
        elif file and path.name.lower().startswith("unlicense"):
            yield "Unlicense"
        elif file:
            ending = re.sub(r"\.(?:txt|md|rst)\Z", "", file[1] or "", flags=re.IGNORECASE)
            yield next(_expression(ending), "")


def _expression(text: str) -> Iterator[str]:
    """Yield a text as an SPDX expression in its usual spelling, where it is one."""
    with suppress(InvalidLicenseExpression):
        yield canonicalize_license_expression(text.strip().replace("/", " OR "))


def _of_manifest(name: str, text: str) -> str:
    try:
        manifest: Any = orjson.loads(text) if name.endswith(".json") else tomllib.loads(text)
        if name != "package.json":
            manifest = manifest.get("project" if name == "pyproject.toml" else "package", {})
        stated = manifest.get("license")
    except (ValueError, AttributeError):
        return ""
    if isinstance(stated, dict):
        stated = stated.get("type") or stated.get("text")
    return stated if isinstance(stated, str) else ""


def _text(repository: Path, commit: str, name: str) -> str:
    """Return a file's text; empty for a folder of a file's name."""
    with suppress(InputError):
        return git(repository, "cat-file", "blob", f"{commit}:{name}").decode("utf-8", "replace")
    return ""
