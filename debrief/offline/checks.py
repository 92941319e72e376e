"""Checks of the work: which commands run tests, linters, type checkers, or build."""

from __future__ import annotations

import re
from typing import get_args

from debrief.offline.model import CheckKind


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _by_command(**commands: str) -> dict[str, CheckKind]:
    """Return the kind of each command, given the commands of each kind, commas between."""
    kinds = get_args(CheckKind)
    return {name: kind for kind in kinds for name in commands.get(kind, "").split(", ") if name}


_SCRIPT_RUNNERS = _set("npm pnpm yarn bun make just mise task rake composer invoke gmake")
_SCRIPT_WORDS: tuple[tuple[re.Pattern[str], CheckKind], ...] = (
    (re.compile(r"(^|[:_-])(unit|e2e|integration)?(tests?|specs?|e2e)($|[:_-])"), "test"),
    (re.compile(r"(^|[:_-])(type-?check|types|tsc|mypy|pyright)($|[:_-])"), "types"),
    (
        re.compile(r"(^|[:_-])(lint|eslint|ruff|clippy|vet|check|ci|verify|validate)($|[:_-])"),
        "lint",
    ),
    (re.compile(r"(^|[:_-])(build|compile)($|[:_-])"), "build"),
)
_PLAIN = _by_command(
    test=(
        "pytest, py.test, nose2, tox, nox, jest, vitest, mocha, ava, gotestsum, rspec, "
        "phpunit, ctest, bats, ginkgo, behave"
    ),
    lint=(
        "flake8, pylint, eslint, golangci-lint, staticcheck, rubocop, shellcheck, "
        "stylelint, ktlint, swiftlint, hadolint, oxlint, yamllint, markdownlint, "
        "actionlint"
    ),
    types="mypy, pyright, basedpyright, tsc, vue-tsc, svelte-check, pyre, srb",
    build="ninja, webpack, xcodebuild",
)
_WITH_WORD = _by_command(
    test=(
        "go test, cargo test, cargo nextest, mix test, dotnet test, swift test, deno "
        "test, bun test, node --test, flutter test, dart test, playwright test, cypress "
        "run, bazel test"
    ),
    lint=(
        "go vet, cargo clippy, mix credo, deno lint, next lint, ruff check, ruff format, "
        "biome check, biome lint, biome ci, prettier --check, black --check, isort "
        "--check, pre-commit run, terraform validate"
    ),
    build=(
        "go build, cargo check, cargo build, mix compile, dotnet build, swift build, zig "
        "build, bazel build, cmake --build, next build, vite build, docker build"
    ),
    types="mix dialyzer, deno check, ty check, tsgo --noEmit",
)
_JVM_GOALS = _by_command(
    test="test, check, verify",
    build="build, assemble, compile, package",
)
_WITH_WORD.update(
    {
        f"{program} {goal}": kind
        for program in ("mvn", "mvnw", "gradle", "gradlew", "sbt")
        for goal, kind in _JVM_GOALS.items()
    }
)
_MODULES = _by_command(
    test="pytest, unittest",
    types="mypy, pyright",
    lint="ruff, flake8, pylint",
    build="build, compileall, py_compile",
)
_MARKS_NO_RUN = _set(
    "--version -V --help -h --collect-only --markers --fixtures --listTests --list"
)


def check_of(words: tuple[str, ...]) -> tuple[CheckKind, str] | None:
    """Return kind and tool when a simple command checks the work: a test, lint or type run,
    or a build; None for all else."""
    program = words[0].rpartition("/")[2].partition("@")[0]
    rest = words[1:]
    if any(word in _MARKS_NO_RUN for word in rest):
        return None
    if program.startswith("python") and len(rest) >= 2 and rest[0] == "-m":
        module = rest[1].partition(".")[0]
        kind = _MODULES.get(module)
        return (kind, module) if kind else None
    if program in _PLAIN:
        return _PLAIN[program], program
    plain = [word for word in rest if not word.startswith("-")]
    for word in (*plain[:1], *rest[:3]):
        kind = _WITH_WORD.get(f"{program} {word}")
        if kind:
            return kind, f"{program} {word}".replace(" --", " ")
    if program in _SCRIPT_RUNNERS:
        return _script(program, plain)
    return None


def _script(program: str, plain: list[str]) -> tuple[CheckKind, str] | None:
    names = plain[1:] if plain and plain[0] in ("run", "run-script") else plain
    if not names:
        return ("build", program) if program in ("make", "gmake") else None
    if program == "composer" or "=" in names[0]:
        names = [name for name in names if "=" not in name] or [""]
    if names[0] in ("install", "add", "i", "exec", "create", "init", "x"):
        return None
    for pattern, kind in _SCRIPT_WORDS:
        if pattern.search(names[0].lower()):
            return kind, f"{program} {names[0]}"
    return None
