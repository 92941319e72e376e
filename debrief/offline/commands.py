"""Shell commands as they stand in transcripts, taken apart, and which of them check the work.

A command that only mentions a tool (``grep pytest``, a commit message, a here-document) must not
be taken for a run of it, which is why nothing is searched for in a command's plain text.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import Literal, get_args

import orjson

from debrief.sessions.model import ToolCall
from debrief.sessions.readers import READERS

CheckKind = Literal["test", "lint", "types", "build"]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SHELLS = READERS.tool_names("shell") | _set("local_shell_call run_command terminal")
"""The shell tools of the sources, and of traces."""
_SCRIPT = "exec"
"""A tool that runs a script, which calls the other tools."""
_IN_A_SCRIPT = re.compile(
    r"""\bcmd["']?\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)""", re.DOTALL
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}
_HEREDOC = re.compile(
    r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?(?:^[ \t]*\2[ \t]*$|\Z)", re.DOTALL | re.M
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_WRAPPERS = _set("sudo time env nice nohup command exec rtk npx bunx pnpx uvx xvfb-run")
_VALUED = _set("--with --group --extra --directory --project --package -C -n -k -s -p -u")
_PLACED = _set("git npm pnpm yarn bun make gmake just go cargo mix")
_PLACES = _set("-C --filter -F --prefix --cwd --dir --workspace --manifest-path --git-dir")
_KEYWORDS = _set("! { then do else if while")
_RUNNER_COMMANDS = (
    "uv run, uv tool, poetry run, pipenv run, pdm run, hatch run, rye run, pixi run, bundle exec, "
    "pnpm exec, pnpm dlx, npm exec, yarn exec, yarn dlx, mise exec, docker exec"
)
_RUNNERS = frozenset(_RUNNER_COMMANDS.split(", "))


def shell_command(call: ToolCall) -> str | None:
    """Return the command of a call of a shell tool; None when it is another tool's call.

    Of a script that calls tools, it is the shell commands in it, one a line.
    """
    tool = call.name.lower().rpartition("__")[2]
    if tool not in _SHELLS and tool != _SCRIPT:
        return None
    fields = arguments(call)
    script = fields.get("input")
    if tool == _SCRIPT and isinstance(script, str):
        return "\n".join(map(_literal, _IN_A_SCRIPT.findall(script))) or None
    command = fields.get("command", fields.get("cmd", fields.get("script")))
    if isinstance(command, str) and isinstance(fields.get("args"), list):
        command = [command, *fields["args"]]  # type: ignore[misc]
    if isinstance(command, list):
        words = [str(word) for word in command]
        if len(words) >= 3 and words[1] in ("-c", "-lc", "-ic"):
            return words[2]
        return shlex.join(words)
    return command if isinstance(command, str) else None


def _literal(quoted: str) -> str:
    return _ESCAPED.sub(lambda found: _LETTERS.get(found[1], found[1]), quoted[1:-1])


def arguments(call: ToolCall) -> dict[str, object]:
    """Return the arguments of a call; empty when its input is no JSON object."""
    return _decoded(call.input)


@lru_cache(maxsize=4096)
def _decoded(text: str) -> dict[str, object]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


@lru_cache(maxsize=4096)
def simple_commands(command: str) -> tuple[tuple[str, ...], ...]:
    """Take a shell command apart: the words of each simple command in it.

    Here-documents, redirections, leading assignments, wrappers such as ``sudo``, ``timeout 60``
    or ``uv run``, and options that only say where (``git -C folder``) are taken off. Text that
    no shell could read gives what can be had.
    """
    flat = _HEREDOC.sub(r"\3 ", command.replace("\\\n", " "))
    parts = (_placeless(_unwrapped(_words(part))) for part in _split(flat))
    return tuple(tuple(words) for words in parts if words)


def _split(command: str) -> list[str]:
    """Split at ``;``, ``&``, ``|``, line ends and brackets that stand outside quotes."""
    parts: list[str] = []
    current: list[str] = []
    quote, escaped = "", False
    for character in command:
        is_end = character in ";|\n()" or (character == "&" and current[-1:] != [">"])
        if is_end and not quote and not escaped:
            parts.append("".join(current))
            current = []
            continue
        current.append(character)
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
    parts.append("".join(current))
    return [part.strip() for part in parts if part.strip()]


def _words(part: str) -> list[str]:
    try:
        words = shlex.split(part, comments=True)
    except ValueError:
        words = part.split()
    kept, rest = [], iter(words)
    for word in rest:
        if re.fullmatch(r"\d*(>>?|<)(&\d|&-)?", word):
            if "&" not in word:
                next(rest, None)
        elif not re.match(r"\d*>|&>", word):
            kept.append(word)
    return kept


def _unwrapped(words: list[str]) -> list[str]:
    while words:
        if _ASSIGNMENT.match(words[0]) or words[0] in _KEYWORDS:
            words = words[1:]
        elif words[0] in _WRAPPERS and len(words) > 1:
            words = _past_options(words[1:])
        elif words[0] in ("timeout", "gtimeout"):
            words = _past_options(words[1:])[1:]
        elif " ".join(words[:2]) in _RUNNERS:
            words = _past_options(words[2:])
            words = words[1:] if words[:1] in (["--"], ["run"]) else words
        elif words[0] == "xargs":
            words = _past_options(words[1:])
        else:
            return words
    return words


def _placeless(words: list[str]) -> list[str]:
    """Take off options that only say where a program works, so that its first word leads."""
    if not words or words[0] not in _PLACED:
        return words
    kept, rest = words[:1], iter(words[1:])
    for word in rest:
        if word in _PLACES:
            next(rest, None)
        else:
            kept.append(word)
    return kept


def _past_options(words: list[str]) -> list[str]:
    while words and words[0].startswith("-") and words[0] != "--":
        words = words[2 if words[0] in _VALUED else 1 :]
    return words


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
