"""Say what a check looks at, so that one of another target does not count in its place.

A target is a set of units: ``libs/x`` (a folder or file), ``@core`` (a package below it),
``?name`` (tests of that name below it); empty is the whole folder of the session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from posixpath import dirname, join, normpath

from debrief.signals.shell import tables

_DEFINED = re.compile(r"-D(?:it\.)?test=(.+)")
_OUTPUTS = frozenset(
    [
        *("-o", "--output", "--out", "--outDir", "--outdir", "--out-dir", "--outfile"),
        *("--config", "-c", "--junitxml"),
    ]
)
"""Options whose value is a file that is no target."""
_INTERPRETED = re.compile(r"python[\d.]*$")
_BY_NAME = frozenset(["cargo", "jest", "vitest", "bun", "mocha", "mix", "nextest", "busted", "ava"])
"""Programs whose bare arguments choose tests."""
_TEST_FOLDER = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__|e2e)(?=/|$).*")


def units_of(raw: Sequence[str], words: Sequence[str], folder: str, tool: str) -> tuple[str, ...]:
    """Return the units that a check looks at.

    Args:
        raw: the simple command as it was typed.
        words: the same, without wrappers and options that say where.
        folder: that the command changed to before.
        tool: the check's.
    """
    program = tool.partition(" ")[0].rpartition("/")[2]
    places: list[str] = []
    packages: list[str] = []
    names: list[str] = []
    for meaning, value in _arguments(raw, words, program, tool):
        if meaning == "folder":
            folder = _below(folder, value)
        elif meaning == "file":
            folder = _below(folder, dirname(value) if "." in value else value)
        elif meaning == "package":
            is_path = value.startswith(("./", "../", "/"))
            packages.append(_below("", value) if is_path else f"@{value}")
        elif meaning == "name":
            names.append(value)
        else:
            places.append(value)
    bases = [_below(folder, place) for place in dict.fromkeys(places)] or [_below(folder, "")]
    if packages:
        bases = [_joined(base, package) for base in bases for package in packages]
    chosen = f"?{' '.join(names)}" if names else ""
    return tuple(sorted({_joined(base, chosen) for base in bases}))


def _arguments(
    raw: Sequence[str], words: Sequence[str], program: str, tool: str
) -> Iterator[tuple[str, str]]:
    """Yield what each argument means, and its value; ``place`` for a file or folder."""
    own = tables()["options"].get(program, {})
    named = set(tool.split()) | set(words[:1]) | {"run", "test", "check", "build", "exec", "--"}
    script = tool.rpartition(" ")[2]
    begun = list(raw).index(words[0]) if words[0] in raw else 0
    for option, value in pairwise(raw[:begun]):
        if option in _listed("folder"):
            yield "folder", value
    rest = list(raw[begun:])
    if "-m" in rest[:3] and _INTERPRETED.match(rest[0].rpartition("/")[2]):
        rest = rest[rest.index("-m") + 2 :]
    is_value = False
    at = -1
    while (at := at + 1) < len(rest):
        word = rest[at]
        option, _, value = word.partition("=")
        if is_value:
            is_value = False
            continue
        if found := _DEFINED.match(word):
            yield "name", found[1]
        elif option in _OUTPUTS:
            is_value = not value
        elif word in _listed("flags"):
            yield "name", word
        elif word.startswith("-"):
            meaning = own.get(option, _meaning(option))
            if meaning == "flag":
                continue
            if not value and at + 1 < len(rest) and not rest[at + 1].startswith("-"):
                if meaning:
                    value, at = rest[at + 1], at + 1
                else:
                    is_value = option in _listed("value") or not option.startswith("--")
                    is_value = is_value and not _is_path(rest[at + 1])
            if meaning and value and value != "^$":
                yield meaning, value
        elif word in named or word == script or _is_program(word, words):
            continue
        elif word.startswith(":") and program.startswith("gradle"):
            yield "package", word.rpartition(":")[0].lstrip(":")
        elif _is_path(word):
            if word.rstrip("/") and word not in _listed("whole"):
                yield "place", word
        elif program in _BY_NAME and word.replace("_", "").isalnum() and not word.isdigit():
            yield ("" if word in _listed("whole") else "name"), word


@cache
def _listed(name: str) -> frozenset[str]:
    return frozenset(tables()["targets"][name].split())


def _meaning(option: str) -> str:
    kinds = ("folder", "file", "package", "name")
    return next((kind for kind in kinds if option in _listed(kind)), "")


def _is_path(word: str) -> bool:
    return bool(re.search(r"[/.:]", word)) and not re.search(
        r"://|[\s$={}]|^\d|\w\.\.|^\.\w+$", word
    )


def _is_program(word: str, words: Sequence[str]) -> bool:
    return word == words[0] or word.endswith("/bin/python") or word in ("./gradlew", "./mvnw")


def _below(folder: str, path: str) -> str:
    path = path.removesuffix("/...").removesuffix("/**")
    whole = path if path.startswith(("/", "~", "$")) else join(folder, path)
    whole = normpath(whole) if whole else ""
    return "" if whole == "." else whole


def _joined(base: str, part: str) -> str:
    return "/".join(filter(None, (base, part)))


def includes(units: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether a check of some units looks at all of others, too."""
    return all(any(_is_within(other, unit) for unit in units) for other in others)


def _is_within(unit: str, whole: str) -> bool:
    if not whole or unit == whole or unit.startswith((f"{whole}/", f"{whole}::")):
        return True
    base, _, chosen = unit.partition("?")
    wider, _, some = whole.partition("?")
    if not some or not chosen or (wider and not base.startswith(wider)):
        return False
    parts = [part.strip("^$") for part in some.split("|")]
    return all(any(part in name for part in parts) for name in chosen.split("|"))


def names_failure(units: Sequence[str], line: str) -> bool:
    """Return whether a line about a failure is about one of the units."""
    for unit in units:
        path, _, chosen = unit.partition("?")
        words = [
            path.rstrip("/").rpartition("/")[2].partition("::")[0].lstrip("@"),
            *chosen.split(),
        ]
        node = unit.partition("::")[2].split("::")[-1]
        required = [word for word in ([node] if node else words[-1:]) if len(word) > 2]
        if required and all(word.strip("^$'\"") in line for word in required):
            return True
    return False


def relative(unit: str, cwd: str) -> str:
    """Return a unit as seen from the session's folder."""
    home = cwd.rstrip("/")
    return "" if home and unit == home else unit.removeprefix(f"{home}/") if home else unit


def shown(units: Sequence[str]) -> str:
    """Return units in words."""
    return ", ".join(unit.replace("/?", " ").replace("?", "").replace("@", "") for unit in units)


def tested_folder(folder: str) -> str:
    """Return the folder whose files tests in a folder are about."""
    return _TEST_FOLDER.sub("", folder)
