"""Parse shell commands in transcripts: their parts, the files they write, the checks they run.

A command that only mentions a tool (``grep pytest``, a commit message, a here-document) must not
be taken for a run of it, which is why nothing is searched for in a command's plain text.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib import resources
from posixpath import join, normpath
from typing import Any, Literal, NamedTuple, get_args

import orjson

from debrief.sessions.model import ToolCall

CheckKind = Literal["test", "lint", "types", "build"]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_HEREDOC = re.compile(
    r"(?<![<\d])<<-?[ \t]*(['\"]?)([A-Za-z_]\w*+)\1([^\n]*)\n(.*?)(?:^[ \t]*\2[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_TOKEN = re.compile(
    r"(?P<space>[ \t]+|\\\n)|(?P<comment>(?<![^\s;|&()])#[^\n]*)"
    r"|(?P<redirect>&>>?|\d*(?:>>?\|?|<{1,3})(?P<to>&\d?-?)?)"
    r"|(?P<quoted>'[^']*(?:'|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z))"
    r"|(?P<end>[;\n()]|\|\|?|&&?)|\\(?P<escaped>.)|(?P<plain>[^\s'\"\\;|&()<>]+)|(?P<other>.)",
    re.DOTALL,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_WRAPPERS = _set("sudo time env nice nohup command exec rtk npx bunx pnpx uvx xvfb-run")
_VALUED = _set("--with --group --extra --directory --project --package -C -n -k -s -p -u")
_PLACED = _set("git npm pnpm yarn bun make gmake just go cargo mix")
_PLACES = _set("-C --filter -F --prefix --cwd --dir --workspace --manifest-path --git-dir")
_KEYWORDS = _set("! { then do else if while")
_BEFORE_SUBSHELL = _KEYWORDS | _set("elif until time")
_RUNNER_COMMANDS = (
    "uv run, uv tool, poetry run, pipenv run, pdm run, hatch run, rye run, pixi run, bundle exec, "
    "pnpm exec, pnpm dlx, npm exec, yarn exec, yarn dlx, mise exec, docker exec"
)
_RUNNERS = frozenset(_RUNNER_COMMANDS.split(", "))
_INTERPRETER = re.compile(
    r"(?:python[\d.]*|pypy3?|node|ruby|perl|php|bash|sh|zsh|Rscript|tsx|deno)$"
)
_SHELL = re.compile(r"(?:ba|z|da)?sh$")
_CONTAINERS = _set("docker docker-compose podman kubectl")
_TASK_RUNNERS = _set(
    "npm pnpm yarn bun make just mise task rake composer invoke gmake turbo nx lerna ng moon"
)
_OF_GOALS = _set("mvn mvnw gradle gradlew sbt bazel")
"""Programs that take several tasks at once."""
_RUNS_TOOLS = _set("pnpm yarn bun")
"""Task runners that run a tool by its name, too."""
_OF_ALL = _set("run run-script run-many affected")
_NO_RUN = _set("--version -V --help -h --markers --fixtures")
_DRY = _set("--dry-run --dryrun --no-run --collect-only --co --listTests --list-tests --list")
"""What has a check only say what it would do."""
_SYNTAX_ONLY = {"node": "--check", "bash": "-n", "sh": "-n", "zsh": "-n", "php": "-l", "ruby": "-c"}
_UNTESTED = ("-DskipTests", "-Dmaven.test.skip")
_CODE_WRITES = re.compile(
    r"open\(\s*[rf]?(?P<q>['\"])(?P<opened>[^'\"\n]+)(?P=q)\s*,\s*(?:mode=)?['\"][wax]"
    r"|open\(\s*(?P<name>\w+)\s*,\s*(?:mode=)?['\"][wax]"
    r"|Path\(\s*['\"](?P<path>[^'\"\n]+)['\"]\s*\)\.write_(?:text|bytes)\("
    r"|(?<!\w)(?P<owner>\w{1,40})\.write_(?:text|bytes)\("
    r"|writeFile(?:Sync)?\(\s*(?:['\"](?P<node>[^'\"\n]+)['\"]|(?P<variable>\w+)\b)"
    r"|\.write_text\(|\.write_bytes\(|\.to_csv\(|\.save\(|json\.dump\(|open\([^()]*,\s*['\"][wax]"
)
_ASSIGNED = re.compile(
    r"^[ \t]*(?:const |let |var )?(?P<name>\w+)[ \t]*=[ \t]*(?:[\w.]+\([ \t]*)?"
    r"['\"](?P<path>[^'\"\n]+)['\"]",
    re.MULTILINE,
)
_SCRATCH = re.compile(r"/dev/|/tmp/.*|.*\.(?:log|out|diff|patch)$|nohup\.out$")
_COPIES = _set("cp mv ln install rsync")
_LEAVES = _set(
    "rm rmdir mkdir touch chmod chown pip pip3 uv npm apt apt-get conda make gcc g++ clang cc "
    "rustc cargo javac curl wget tar unzip 7z gunzip docker systemctl service openssl ffmpeg "
    "convert useradd crontab ssh-keygen sqlite3 psql mysql nginx"
)
"""Programs that leave something behind, if no edit of a file."""
_GIT_WRITES = _set(
    "apply am checkout restore revert cherry-pick merge rebase stash pull reset commit clone init"
)


class Command(NamedTuple):
    """A simple command: its words, and the files that its output goes to."""

    words: tuple[str, ...]
    targets: tuple[str, ...] = ()


class Write(NamedTuple):
    """A file that a shell command wrote."""

    path: str
    is_edit: bool = True
    """False for what changes no file's content for good: scratch files, folders, removals."""


@cache
def tables() -> dict[str, Any]:
    """Return which commands check the work, and what checks print."""
    text = (resources.files("debrief.signals") / "checks.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def pattern(section: str, name: str) -> re.Pattern[str]:
    """Return the patterns of a list as one."""
    listed = tables()[section][name]
    joined = listed if isinstance(listed, str) else "|".join(listed)
    return re.compile(joined, re.IGNORECASE | re.MULTILINE)


@cache
def _runs() -> dict[str, CheckKind]:
    """Return the kind of check by program, or by program and first word."""
    table = tables()["checks"]
    return {name.strip(): kind for kind in get_args(CheckKind) for name in table[kind].split(",")}


def arguments(call: ToolCall) -> dict[str, object]:
    """Return the arguments of a call; empty when its input is no JSON object."""
    return _decoded(call.input)


@lru_cache(maxsize=512)
def _decoded(text: str) -> dict[str, object]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def simple_commands(command: str) -> tuple[tuple[str, ...], ...]:
    """Take a shell command apart: the words of each simple command in it."""
    return tuple(each.words for each in commands_in(command) if each.words)


@lru_cache(maxsize=512)
def commands_in(command: str) -> tuple[Command, ...]:
    """Take a shell command apart.

    Here-documents, leading assignments, wrappers such as ``sudo``, ``timeout 60`` or ``uv run``,
    and options that only say where (``git -C folder``) are taken off. Text that no shell could
    read gives what can be had.
    """
    return tuple(Command(bare_words(each.words), tuple(each.targets)) for each in _typed(command))


@lru_cache(maxsize=512)
def joints_in(command: str) -> tuple[str, ...]:
    """Return what follows each command of ``commands_in``: ``|``, ``&&``, ``||``, ``;`` or ``&``;
    a line break is ``;``, and empty is the end."""
    return tuple(each.joint for each in _typed(command))


@lru_cache(maxsize=512)
def raw_commands(command: str) -> tuple[tuple[str, ...], ...]:
    """Take a shell command apart as it was typed: wrappers and all, leading assignments and
    keywords off."""
    return tuple(
        tuple(itertools.dropwhile(_is_before_program, each.words)) for each in _typed(command)
    )


def unwrapped(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a simple command without wrappers such as ``sudo`` or ``uv run``."""
    return tuple(_unwrapped(list(words)))


def bare_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return a simple command as ``commands_in`` has it, from its words as they were typed."""
    return tuple(_placeless(_unwrapped(list(words))))


def _is_before_program(word: str) -> bool:
    return bool(_ASSIGNMENT.match(word)) or word in _KEYWORDS


class _Typed(NamedTuple):
    """A simple command as it was typed."""

    words: list[str]
    targets: list[str]
    joint: str


@lru_cache(maxsize=512)
def _typed(command: str) -> list[_Typed]:
    """Return the words of each simple command, the files that its output goes to, and what
    follows it."""
    flat = _HEREDOC.sub(r"\3 ", f"{command}\n") if "<<" in command else command
    found: list[_Typed] = []
    words: list[str] = []
    targets: list[str] = []
    into: list[str] = words
    word: str | None = None
    within = 0
    """Parentheses that are open in a word, such as a path's that nobody quoted."""
    for token in _TOKEN.finditer(f"{flat}\n"):
        kind, text = token.lastgroup, token[0]
        is_subshell = not word or word[-1] in "$=" or word in _BEFORE_SUBSHELL
        if text == "(" and not is_subshell and not flat.startswith(")", token.end()):
            kind, within = "other", within + 1
        elif text == ")" and word and within:
            kind, within = "other", within - 1
        if kind in ("quoted", "escaped", "plain", "other"):
            word = (word or "") + _bare(kind, text)
            continue
        if word is not None:
            into.append(word)
            into, word = words, None
        if kind in ("redirect", "to") and not token["to"]:
            into = targets if ">" in text else []
        elif kind == "end":
            joint = (
                ";" if text in "\n()" and token.end() < len(flat.rstrip()) else text.strip("\n()")
            )
            if words or targets:
                found.append(_Typed(words, targets, joint))
            elif found and found[-1].joint in ("", ";") and joint:  # what follows a subshell
                found[-1] = found[-1]._replace(joint=joint)
            words, targets = [], []
            into = words
    return found


def _bare(kind: str | None, text: str) -> str:
    if kind == "escaped":
        return text[1:]
    if kind != "quoted":
        return text
    inner = text[1:-1] if len(text) > 1 and text[-1] == text[0] else text[1:]
    return re.sub(r'\\(["\\$`\n])', r"\1", inner) if text[0] == '"' else inner


def _unwrapped(words: list[str]) -> list[str]:
    at = 0
    while at < len(words):
        if _ASSIGNMENT.match(words[at]) or words[at] in _KEYWORDS:
            at += 1
        elif words[at : at + 2] in (["command", "-v"], ["command", "-V"]):
            break
        elif words[at] == "xargs" or (words[at] in _WRAPPERS and at + 1 < len(words)):
            at = _past_options(words, at + 1)
        elif words[at] in ("timeout", "gtimeout"):
            at = _past_options(words, at + 1) + 1
        elif " ".join(words[at : at + 2]) in _RUNNERS:
            at = _past_options(words, at + 2)
            at += words[at : at + 1] in (["--"], ["run"])
        else:
            break
    return words[at:]


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


def _past_options(words: list[str], at: int) -> int:
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        at += 2 if words[at] in _VALUED else 1
    return at


def check_of(words: tuple[str, ...]) -> tuple[CheckKind, str] | None:
    """Return kind and tool when a simple command checks the work: a test, lint or type run, or a
    build, by a known program, a task or a script of that name; None for all else."""
    if not words or not _NO_RUN.isdisjoint(words[1:]):
        return None
    if name := _formatter(words):
        tool = "git diff --check" if name == "git diff" else name
        return ("lint", tool) if _is_read_only(name, words) else None
    if not _DRY.isdisjoint(words):
        return None
    program, rest = _program(words[0]), words[1:]
    plain = [word for word in rest if not word.startswith("-")]
    if program in _CONTAINERS and not {"exec", "run"}.isdisjoint(rest[:2]):
        inner = (check_of(words[at:]) for at in range(2, min(len(words), 12)))
        return next(filter(None, inner), None)
    if _SHELL.match(program) and len(rest) > 1 and re.match(r"-[a-z]*c$", rest[0]):
        inside = (check_of(each) for each in simple_commands(rest[1]))
        return next(filter(None, inside), None)
    if _INTERPRETER.match(program):
        if rest[:1] == (_SYNTAX_ONLY.get(program),):
            return "build", f"{program} {rest[0]}"
        if rest[:1] == ("-m",) and len(rest) > 1:
            program, rest = rest[1].partition(".")[0], rest[2:]
        elif rest[:1] != ("-c",) and plain and not _runs_word(program, (*rest[:2], *plain[:1])):
            script = None if _INTERPRETER.match(_program(plain[0])) else check_of(tuple(plain))
            return script or _named(plain[0], plain[0])
    if program == "xcodebuild":
        return ("test" if any(word.startswith("test") for word in plain) else "build"), program
    kind = _runs().get(program)
    if kind:
        return kind, program
    plain = [word for word in plain if not word.startswith("+")]
    if program.startswith("gradle"):
        plain = [word.rpartition(":")[2] for word in plain]
    goals = plain if program in _OF_GOALS else plain[:1]
    options = [word for word in rest if word.startswith("--")]
    if word := _runs_word(program, (" ".join(plain[:2]), *goals, *options)):
        kind = _runs()[f"{program} {word}"]
        is_built = any(each.startswith(_UNTESTED) for each in rest) or (
            program == "go" and "-c" in rest
        )
        return ("build" if is_built else kind), f"{program} {word}".replace(" --", " ")
    if program in _TASK_RUNNERS:
        names = plain[1:] if plain and plain[0] in _OF_ALL else plain
        names = [name for name in names if "=" not in name]
        if not names:
            return ("build", program) if program in ("make", "gmake") and not plain else None
        if names[0] in ("install", "add", "i", "exec", "create", "init", "x"):
            return None
        task = _named(names[0], f"{program} {names[0]}")
        is_tool = not task and program in _RUNS_TOOLS and names[0] in rest
        return check_of(rest[rest.index(names[0]) :]) if is_tool else task
    return _named(words[0], words[0]) if "/" in words[0] or "." in program else None


def dry_check_of(words: tuple[str, ...]) -> tuple[CheckKind, str] | None:
    """Return the check that a simple command only says it would run; None for all else."""
    if _DRY.isdisjoint(words) or check_of(words):
        return None
    return check_of(tuple(word for word in words if word not in _DRY))


def _runs_word(program: str, words: Sequence[str]) -> str:
    """Return the first word that makes a check of a program; empty for none."""
    return next((word for word in words if f"{program} {word}" in _runs()), "")


def _formatter(words: tuple[str, ...]) -> str:
    """Return the name of a program that rewrites files unless an option forbids it; empty for
    other commands."""
    program = _program(words[0])
    names = (" ".join([program, *words[1:2]]), program)
    return next((name for name in names if name in tables()["formatters"]), "")


def _is_read_only(formatter: str, words: tuple[str, ...]) -> bool:
    options = tuple(tables()["formatters"][formatter].split())
    return "-w" not in words and any(word.startswith(options) for word in words[1:])


def _program(word: str) -> str:
    return word.rpartition("/")[2].partition("@")[0]


def _named(script: str, tool: str) -> tuple[CheckKind, str] | None:
    name = script.lower().rpartition("/")[2]
    for kind in get_args(CheckKind):
        if pattern("scripts", kind).search(name):
            return kind, tool
    return None


def script_of(words: tuple[str, ...]) -> str | None:
    """Return the script file that a simple command runs; None when it runs none."""
    if not words:
        return None
    if _INTERPRETER.match(words[0].rpartition("/")[2]):
        return next((word for word in words[1:] if not word.startswith("-")), None)
    return words[0] if "/" in words[0] else None


def code_in(command: str) -> str:
    """Return the code that a command hands to an interpreter: ``-c``, ``-e`` or a here-document."""
    parts = [
        each.words[at + 1]
        for each in commands_in(command)
        for at, word in enumerate(each.words[:-1])
        if word in ("-c", "-e") and _INTERPRETER.match(each.words[0].rpartition("/")[2])
    ]
    for found in _HEREDOC.finditer(f"{command}\n") if "<<" in command else ():
        line = command[command.rfind("\n", 0, found.start()) + 1 : found.start()]
        if any(_INTERPRETER.match(each.rpartition("/")[2]) for each in re.split(r"[\s;|&]+", line)):
            parts.append(found[4])
    return "\n".join(parts)


def writes_of(command: str) -> Iterator[Write]:
    """Yield the files that a shell command writes, as far as its words say.

    Paths are as they are written, behind the folder that the command changed to before.
    """
    for (words, targets), folder in placed_commands(command):
        for write in writes_in(Command(words, targets)):
            yield Write(place_below(folder, write.path), write.is_edit) if folder else write
    yield from (_write(path or "a file, by code") for path in files_by_code(command))


def files_by_code(command: str) -> Iterator[str]:
    """Yield the files that code in a command writes; an empty one for each not named."""
    code = code_in(command)
    found = list(_CODE_WRITES.finditer(code))
    named = {each["name"]: each["path"] for each in _ASSIGNED.finditer(code)} if found else {}
    for each in found:
        variable = each["name"] or each["owner"] or each["variable"] or ""
        path = each["opened"] or each["path"] or each["node"] or named.get(variable, "")
        yield "" if "{" in path else path


def writes_in_code(code: str) -> bool:
    """Return whether code that an interpreter is handed writes a file."""
    return bool(_CODE_WRITES.search(code))


def is_task(words: Sequence[str]) -> bool:
    """Return whether a simple command runs a task of a task runner."""
    return bool(words) and _program(words[0]) in _TASK_RUNNERS


def _edited_in_place(words: Sequence[str]) -> list[str]:
    """Return the files that ``sed -i`` and the like change, without the script; none where another
    command names them."""
    plain: list[str] = []
    has_script, rest = False, iter(words[1:])
    for word in rest:
        if word in ("-e", "-f", "--expression", "--file") or re.match(r"-[a-zA-Z]*e$", word):
            has_script = True
            next(rest, None)
        elif word.startswith(("--expression=", "--file=")):
            has_script = True
        elif word and not word.startswith("-"):
            plain.append(word)
    return plain if has_script else plain[1:]


def folder_of(command: str) -> str:
    """Return the folder that a command works in at its end; empty where it changes to none."""
    return next((folder for _, folder in reversed(list(placed_commands(command)))), "")


def placed_commands(command: str, folder: str = "") -> Iterator[tuple[Command, str]]:
    """Yield the simple commands, each with the folder that ``cd`` or ``git -C`` changed to.

    Args:
        command: as it was typed.
        folder: that it begins in, where that is not the session's.
    """
    typed = _typed(command)
    for each, (words, *_) in zip(commands_in(command), typed, strict=True):
        if each.words[:1] == ("cd",) and len(each.words) == 2 and each.words[1] != "-":
            folder = place_below(folder, each.words[1])
        at = words.index("-C") + 1 if each.words[:1] == ("git",) and "-C" in words else 0
        yield each, place_below(folder, words[at]) if 0 < at < len(words) else folder


def place_below(folder: str, path: str) -> str:
    """Return a path as seen from where a folder is named; a whole path stays as it is."""
    whole = not folder or path.startswith(("/", "~", "$")) or " " in path
    return path if whole else normpath(join(folder, path))


def writes_in(command: Command) -> Iterator[Write]:
    """Yield the files that a simple command writes, as it names them."""
    words, targets = command
    program = words[0].rpartition("/")[2] if words else ""
    plain = [word for word in words[1:] if not word.startswith("-")]
    shows = program == "git" and bool(plain) and plain[0] in ("diff", "log", "show", "status")
    yield from (_write(target, not shows) for target in targets)
    if program == "tee":
        yield from map(_write, plain)
    elif program in ("sed", "perl", "gsed", "ruby"):
        if any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in words[1:]):
            yield from map(_write, _edited_in_place(words) or [f"files, by {program}"])
    elif program in ("patch", "apply_patch"):
        yield Write(program)
    elif program == "git" and plain and plain[0] in _GIT_WRITES:
        yield Write(" ".join(words[:2]), plain[0] in ("apply", "am", "cherry-pick", "revert"))
    elif program == "git" and len(plain) > 1 and plain[0] in ("rm", "mv"):
        yield from map(_write, plain[1:])
    elif program in _COPIES and plain:
        yield _write(plain[-1])
    elif program in _LEAVES and plain:
        yield Write(plain[-1], is_edit=False)
    elif program == "dd":
        yield from (_write(word[3:]) for word in plain if word.startswith("of="))


def _write(path: str, is_edit: bool = True) -> Write:
    return Write(path, is_edit and not _SCRATCH.match(path))
