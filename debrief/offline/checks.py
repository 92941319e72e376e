"""Checks of the work: which commands run tests, linters, type checkers, or build."""

from __future__ import annotations

import re

from debrief.offline.model import CheckKind


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


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
_PLAIN: dict[str, CheckKind] = {
    **dict.fromkeys(
        _set(
            "pytest py.test nose2 tox nox jest vitest mocha ava gotestsum rspec phpunit ctest bats "
            "ginkgo behave"
        ),
        "test",
    ),
    **dict.fromkeys(
        _set(
            "flake8 pylint eslint golangci-lint staticcheck rubocop shellcheck stylelint ktlint "
            "swiftlint hadolint oxlint yamllint markdownlint actionlint"
        ),
        "lint",
    ),
    **dict.fromkeys(_set("mypy pyright basedpyright tsc vue-tsc svelte-check pyre srb"), "types"),
    **dict.fromkeys(_set("ninja webpack xcodebuild"), "build"),
}
_WITH_WORD: dict[tuple[str, str], CheckKind] = {
    ("go", "test"): "test",
    ("go", "vet"): "lint",
    ("go", "build"): "build",
    ("cargo", "test"): "test",
    ("cargo", "nextest"): "test",
    ("cargo", "clippy"): "lint",
    ("cargo", "check"): "build",
    ("cargo", "build"): "build",
    ("mix", "test"): "test",
    ("mix", "credo"): "lint",
    ("mix", "dialyzer"): "types",
    ("mix", "compile"): "build",
    ("dotnet", "test"): "test",
    ("dotnet", "build"): "build",
    ("swift", "test"): "test",
    ("swift", "build"): "build",
    ("zig", "build"): "build",
    ("deno", "test"): "test",
    ("deno", "lint"): "lint",
    ("deno", "check"): "types",
    ("bun", "test"): "test",
    ("node", "--test"): "test",
    ("flutter", "test"): "test",
    ("dart", "test"): "test",
    ("playwright", "test"): "test",
    ("cypress", "run"): "test",
    ("bazel", "test"): "test",
    ("bazel", "build"): "build",
    ("cmake", "--build"): "build",
    ("next", "build"): "build",
    ("next", "lint"): "lint",
    ("vite", "build"): "build",
    ("docker", "build"): "build",
    ("ruff", "check"): "lint",
    ("ruff", "format"): "lint",
    ("biome", "check"): "lint",
    ("biome", "lint"): "lint",
    ("biome", "ci"): "lint",
    ("prettier", "--check"): "lint",
    ("black", "--check"): "lint",
    ("isort", "--check"): "lint",
    ("pre-commit", "run"): "lint",
    ("ty", "check"): "types",
    ("tsgo", "--noEmit"): "types",
    ("terraform", "validate"): "lint",
}
_JVM_GOALS: dict[str, CheckKind] = {
    "test": "test",
    "check": "test",
    "verify": "test",
    "build": "build",
    "assemble": "build",
    "compile": "build",
    "package": "build",
}
_WITH_WORD.update(
    {
        (program, goal): kind
        for program in ("mvn", "mvnw", "gradle", "gradlew", "sbt")
        for goal, kind in _JVM_GOALS.items()
    }
)
_MODULES: dict[str, CheckKind] = {
    "pytest": "test",
    "unittest": "test",
    "mypy": "types",
    "pyright": "types",
    "ruff": "lint",
    "flake8": "lint",
    "pylint": "lint",
    "build": "build",
    "compileall": "build",
    "py_compile": "build",
}
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
        kind = _WITH_WORD.get((program, word))
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
