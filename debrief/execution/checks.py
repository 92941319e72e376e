"""Which commands show whether a session's work is right.

They come from the session itself, from its repository, from tests that the session wrote and from
tests of the future. Each is one simple command, run below the tree's top: what a session put around
it (``cd``, a virtual environment, ``uv run``, a pipe, a redirection, variables before it) is left
out, since none of it is there in the sandbox.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from posixpath import basename, dirname, join, normpath
from typing import Protocol

import orjson

from debrief.errors import InputError
from debrief.execution.model import Check, CheckOrigin
from debrief.git import git
from debrief.sessions.model import Session, calls_of
from debrief.signals.shell import Command, check_of, commands_in

_MOST_OWN, _MOST_OF_ORIGIN = 4, 2
_MOST_FUTURE_COMMITS, _MOST_FUTURE_FILES = 3, 5
_LARGEST = 1_000_000
"""Bytes of a test file that a check brings."""
_TEST_FILE = re.compile(
    r"(?:^|/)(?:test_[^/]*\.py|[^/]*_tests?\.py|tests?\.py|[^/]*_test\.go"
    r"|[^/]*[._-](?:test|spec)s?\.[cm]?[jt]sx?|(?:tests?|__tests__)/[^/]+\.(?:[cm]?[jt]sx?|rs))$"
)
_TEST_FOLDER = re.compile(r"(?:^|/)(?:tests?|__tests__|__snapshots__|testdata|fixtures)/")
_STEERING_FILE = re.compile(
    r"(?:^|/)(?:sitecustomize\.py|usercustomize\.py|[^/]+\.pth|\.?pytest\.(?:ini|toml)|tox\.ini"
    r"|(?:jest|vitest|vite|playwright|cypress|karma|ava|babel)\.conf(?:ig)?\.[^/]+|\.mocharc[^/]*)$"
)
_INSTALLED = re.compile(r"(?:^|/)(?:node_modules|site-packages|\.?venv|__pypackages__)/")
_TEST_PROGRAMS = {
    "pytest",
    "_pytest",
    "py",
    "pluggy",
    "iniconfig",
    "nose",
    "hypothesis",
    "coverage",
}
_REACHES_INTO_TESTS = re.compile(
    r"^\s*(?:from|import)\s+(?:unittest|doctest|pytest|_pytest|pluggy)\b|__import__\(", re.MULTILINE
)
_TOOLS_ELSEWHERE = {
    *("tox", "nox", "pre-commit run", "gh run watch", "gh pr checks"),
    *("playwright test", "cypress run"),
}
"""They make an environment over the network, or ask another machine."""
_IN_ENVIRONMENT = re.compile(
    r"(?:.*/)?(?:node_modules/\.bin|[^/]*env[^/]*/bin|/usr(?:/local)?/bin)/([^/]+)"
)
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?$")
_PLAIN = re.compile(r"[\w@%+=:,./*?\[\]-]+")
_PYTEST_SIGNS = ("pytest.ini", "conftest.py", "tests/conftest.py", "tox.ini")
_PYTHON_SIGNS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pytest.ini")
_MANIFESTS = {
    "python": _PYTHON_SIGNS,
    "javascript": ("package.json",),
    "go": ("go.mod",),
    "rust": ("Cargo.toml",),
}
_LANGUAGES = {
    **dict.fromkeys(("py", "pyi"), "python"),
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue"), "javascript"),
    "go": "go",
    "rs": "rust",
}
_MAKE_TEST = re.compile(r"^test\s*:(?!=)", re.MULTILINE)


def checks_of(
    session: Session,
    final: Path,
    changed: Sequence[str],
    future: Sequence[Check] = (),
) -> tuple[Check, ...]:
    """Return the checks of a session's work: a dozen at most, each command once.

    Args:
        session: what ran.
        final: a folder with the files that the session left behind.
        changed: the files that it changed, below the repository's top.
        future: of ``future_tests``.
    """
    found = [
        *own_checks(session, changed),
        *_of_written_tests(final, changed),
        *_of_repository(final, changed),
        *future,
    ]
    seen: dict[tuple[str, str, bool], Check] = {}
    for check in found:
        seen.setdefault((check.command, check.folder, bool(check.added)), check)
    return tuple(seen.values())


def own_checks(session: Session, changed: Sequence[str]) -> list[Check]:
    """Return the checks that a session ran itself, those that it ran last first.

    A check outside its repository is left out, and one that the sandbox cannot run as it is: it
    holds a variable, or a path that is elsewhere.
    """
    top = top_of(session, changed)
    found: dict[tuple[str, str], tuple[str, Check]] = {}
    for call in calls_of(session):
        if call.action != "run" or not call.command:
            continue
        for command, folder in _placed(call.command, session.cwd):
            if (below := _below(folder, top)) is None:
                continue
            kind = check_of(command.words)
            if kind is None or kind[0] == "build" or kind[1] in _TOOLS_ELSEWHERE:
                continue
            if words := _as_in_sandbox(command.words, top, below):
                check = Check(command=_joined(words), origin="session", folder=below)
                found.pop((check.command, below), None)
                found[check.command, below] = kind[0], check
    latest = list(reversed(found.values()))
    tests = [check for kind, check in latest if kind == "test"]
    others = [check for kind, check in latest if kind != "test"]
    return [*tests[:_MOST_OWN], *others[:_MOST_OF_ORIGIN]]


def top_of(session: Session, changed: Iterable[str]) -> str:
    """Return the repository's top folder as the session's paths name it.

    That is what goes before a changed file in the path of an edit; its working folder where no edit
    names a whole path.
    """
    paths = [call.path for call in calls_of(session) if call.path and call.path.startswith("/")]
    for file in changed:
        for path in paths:
            if path.endswith(f"/{file}"):
                return path.removesuffix(f"/{file}")
    return session.cwd


def is_test_file(path: str) -> bool:
    """Return whether a file is one of tests by its name, as test programs find them."""
    return _TEST_FILE.search(path) is not None


def is_of_tests(path: str) -> bool:
    """Return whether a file is a test, sets tests up, or lies in a folder of them."""
    in_folder = _TEST_FOLDER.search(path) is not None
    return is_test_file(path) or in_folder or basename(path) == "conftest.py"


def steers_tests(path: str, text: str = "") -> bool:
    """Return whether a changed file is loaded by a test program whatever the tests ask for.

    That is its settings, its own modules and what it imports before them, a module that takes the
    place of one of the standard library, installed packages, and code that reaches into it.

    Args:
        path: Below the repository's top.
        text: Of the file; empty where it is not known.

    >>> [steers_tests(path) for path in ("sitecustomize.py", "unittest/case.py", "app/types.py")]
    [True, True, False]
    """
    if _STEERING_FILE.search(path) or _INSTALLED.search(path):
        return True
    if not path.endswith((".py", ".pyi")):
        return False
    parts = path.split("/")
    top = parts[1:] if parts[0] in ("src", "lib") and len(parts) > 1 else parts
    if top[0].removesuffix(".py") in sys.stdlib_module_names | _TEST_PROGRAMS:
        return True
    return not is_of_tests(path) and _REACHES_INTO_TESTS.search(text) is not None


def future_tests(
    clone: Path, base: str, changed: Sequence[str], after: str = "HEAD"
) -> list[Check]:
    """Return checks by test files of later commits that touch what a session changed.

    Args:
        clone: the repository.
        base: the commit that the session began from.
        changed: the files that it changed.
        after: the later commit up to which is looked.

    Raises:
        InputError: git fails.
    """
    code = [path for path in changed if not is_test_file(path)]
    if not code:
        return []
    log = git(
        clone, "log", "--reverse", "--no-merges", "--format=%H", f"{base}..{after}", "--", *code
    )
    checks: list[Check] = []
    for commit in log.decode().split():
        names = git(
            clone, "diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--diff-filter=AM",
            commit,
        )  # fmt: skip
        tests = [path for path in _names(names) if is_test_file(path)]
        texts = {path: _text_at(clone, commit, path) for path in tests[:_MOST_FUTURE_FILES]}
        added = {path: text for path, text in texts.items() if text is not None}
        if not added:
            continue
        tree = git(clone, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
        files = _GitFiles(clone, commit, frozenset(_names(tree)))
        checks += _of_tests(files, added, "future")
        if len(checks) >= _MOST_FUTURE_COMMITS:
            break
    return checks[:_MOST_FUTURE_COMMITS]


def _names(output: bytes) -> list[str]:
    return output.decode("utf-8", "replace").split("\0")[:-1]


class _Files(Protocol):
    """What a tree holds."""

    def has(self, path: str) -> bool: ...

    def text(self, path: str) -> str:
        """Return a file's text; empty where it cannot be read."""
        ...


class _FolderFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, path: str) -> bool:
        return (self.folder / path).is_file()

    def text(self, path: str) -> str:
        with suppress(OSError, UnicodeDecodeError):
            file = self.folder / path
            if file.resolve().is_relative_to(self.folder.resolve()):
                return file.read_text()
        return ""


class _GitFiles:
    def __init__(self, clone: Path, commit: str, names: frozenset[str]) -> None:
        self.clone, self.commit, self.names = clone, commit, names

    def has(self, path: str) -> bool:
        return path in self.names

    def text(self, path: str) -> str:
        return _text_at(self.clone, self.commit, path) or ""


def _text_at(clone: Path, commit: str, path: str) -> str | None:
    with suppress(InputError, UnicodeDecodeError):
        blob = git(clone, "cat-file", "blob", f"{commit}:{path}")
        return blob.decode() if len(blob) <= _LARGEST else None
    return None


def _of_written_tests(final: Path, changed: Sequence[str]) -> list[Check]:
    """Return checks by the tests that the session wrote, put into both trees with what else of
    the folders of tests it changed."""
    files = _FolderFiles(final)
    texts = {path: files.text(path) for path in changed if is_of_tests(path) and files.has(path)}
    return _of_tests(files, {path: text for path, text in texts.items() if text}, "written")


def _of_tests(files: _Files, added: Mapping[str, str], origin: CheckOrigin) -> list[Check]:
    """Return the checks that run some test files, one for each place of a manifest."""
    groups: dict[tuple[str, str], list[str]] = {}
    for path in filter(is_test_file, added):
        language = _language(path)
        folder = _home_of(files, path, language)
        if language and folder is not None:
            groups.setdefault((language, folder), []).append(path)
    checks = []
    for (language, folder), paths in groups.items():
        inside = sorted(normpath(path[len(folder) :].lstrip("/")) for path in paths)
        if words := _words_for(files, language, folder, inside):
            checks.append(
                Check(command=_joined(words), origin=origin, folder=folder, added=dict(added))
            )
    return checks[:_MOST_OF_ORIGIN]


def _words_for(
    files: _Files, language: str, folder: str, tests: Sequence[str]
) -> Sequence[str] | None:
    """Return the command that runs test files in a folder; None where none is known."""
    if language == "python":
        return ["pytest", *tests]
    if language == "go":
        return ["go", "test", *sorted({f"./{dirname(path)}".rstrip("/") for path in tests})]
    if language == "rust":
        return ["cargo", "test"]
    package = _package(files, folder)
    if runner := _runner(package):
        return [*runner, *tests]
    return None


def _runner(package: Mapping[str, object]) -> Sequence[str]:
    """Return the program that runs a package's tests, by what it says of itself."""
    names: set[str] = set()
    for key in ("dependencies", "devDependencies"):
        table = package.get(key)
        names |= set(table) if isinstance(table, dict) else set()
    scripts = package.get("scripts")
    text = str(scripts.get("test", "")) if isinstance(scripts, dict) else ""
    if "vitest" in names or "vitest" in text:
        return ["vitest", "run"]
    if "jest" in names or "jest" in text:
        return ["jest"]
    if "mocha" in names:
        return ["mocha"]
    return next((each.split() for each in ("node --test", "bun test") if each in text), [])


def _of_repository(final: Path, changed: Sequence[str]) -> list[Check]:
    """Return the repository's own test commands, for the places that the session changed."""
    files = _FolderFiles(final)
    places = dict.fromkeys(
        (language, folder)
        for path in changed
        if (language := _language(path)) and (folder := _home_of(files, path, language)) is not None
    )
    checks = [
        Check(command=command, origin="repository", folder=folder)
        for language, folder in places
        if (command := _own_command(files, language, folder))
    ]
    if not checks and _MAKE_TEST.search(files.text("Makefile")):
        checks = [Check(command="make test", origin="repository")]
    return checks[:_MOST_OF_ORIGIN]


def _own_command(files: _FolderFiles, language: str, folder: str) -> str:
    if language == "python":
        return "pytest" if _uses_pytest(files, folder) else ""
    if language == "go":
        return "go test ./..."
    if language == "rust":
        return "cargo test"
    scripts = _package(files, folder).get("scripts")
    test = str(scripts.get("test", "")) if isinstance(scripts, dict) else ""
    return "npm test" if test and "no test specified" not in test else ""


def _uses_pytest(files: _FolderFiles, folder: str) -> bool:
    if any(files.has(join(folder, sign)) for sign in _PYTEST_SIGNS):
        return True
    with suppress(tomllib.TOMLDecodeError, RecursionError):
        tools = tomllib.loads(files.text(join(folder, "pyproject.toml"))).get("tool")
        if isinstance(tools, dict) and "pytest" in tools:
            return True
    where = files.folder / folder
    return any(True for name in ("tests", "test", ".") for _ in (where / name).glob("test_*.py"))


def _package(files: _Files, folder: str) -> Mapping[str, object]:
    with suppress(ValueError):
        package = orjson.loads(files.text(join(folder, "package.json")))
        return package if isinstance(package, dict) else {}
    return {}


def _language(path: str) -> str:
    return _LANGUAGES.get(basename(path).rpartition(".")[2], "")


def _home_of(files: _Files, path: str, language: str) -> str | None:
    """Return the nearest folder above a file that is a project of its language; for Python the
    top, where none is; None for others."""
    folder = dirname(path)
    while True:
        if any(files.has(join(folder, name)) for name in _MANIFESTS.get(language, ())):
            return folder
        if not folder:
            return "" if language == "python" else None
        folder = dirname(folder)


def _placed(command: str, cwd: str) -> Iterator[tuple[Command, str]]:
    """Yield the simple commands of a call, each with the folder that it ran in."""
    folder = cwd
    for each in commands_in(command):
        if each.words[:1] in (("cd",), ("pushd",)) and len(each.words) == 2:
            folder = normpath(join(folder, each.words[1]))
        elif each.words:
            yield each, folder


def _below(folder: str, top: str) -> str | None:
    """Return a folder's path below another; None where it is not in it."""
    if folder == top:
        return ""
    return folder[len(top) + 1 :] if top and folder.startswith(f"{top}/") else None


def _as_in_sandbox(words: Sequence[str], top: str, below: str) -> Sequence[str]:
    """Return a command's words as the sandbox can run them; none where it cannot: it has no
    variables, and no paths outside the tree."""
    program = _IN_ENVIRONMENT.sub(r"\1", words[0])
    if _PYTHON.match(basename(program)):
        program = "python3"
    up = "../" * (below.count("/") + 1 if below else 0)
    moved = [program, *(word.replace(f"{top}/", up) if top else word for word in words[1:])]
    return [] if any(_leaves(word, below) for word in moved) else moved


def _leaves(word: str, below: str) -> bool:
    for part in (word, word.partition("=")[2]):
        if part.startswith(("/", "~")) or "$" in part or "`" in part:
            return True
        if ".." in part.split("/") and normpath(join(below, part)).startswith(".."):
            return True
    return False


def _joined(words: Iterable[str]) -> str:
    """Return words as a command. Patterns of files are left to the shell, as they were."""
    return " ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in words)
