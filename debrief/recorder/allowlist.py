"""The commands that a session may run: those of ``allowlist.json``, and those of the repository.

The table is data so that recorders in other languages, their buttons and the server read the very
same one. The owner of a repository adds commands in ``.debrief/recorder.toml``; the kinds of what
may vary in them are the table's, so that no file of rules can let anything else in. A command is
never handed to a shell; that shell characters are refused all the same is for those who will run a
recorded command some day.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

import msgspec
from msgspec import Struct
from pydantic import TypeAdapter, ValidationError

from debrief.errors import InputError
from debrief.recorder.contracts import CommandRule, CommandRules

RULES_FILE = ".debrief/recorder.toml"
_LARGEST = 65_536
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*(\.[A-Za-z0-9_+-]+)*")
_WORD = re.compile(r"[A-Za-z0-9@_+=:,./-]+")
_KIND = re.compile(r"<([a-z]+)>\+?")
_STARTERS = frozenset(
    {
        *("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish", "nu", "elvish"),
        *("xonsh", "busybox", "cmd", "powershell", "pwsh", "command", "eval", "exec", "source"),
        *("env", "xargs", "parallel", "find", "awk", "gawk", "sed", "sudo", "su", "doas", "ssh"),
        *("nohup", "setsid", "nice", "time", "timeout", "watch", "script", "expect", "socat"),
        *("nc", "ncat", "curl", "wget", "osascript", "start", "open"),
    }
)
"""Programs that start whatever their arguments say, or bring it in."""
_ABSOLUTE = re.compile(r"(^|[=:,])/")
_PARTS = re.compile(r"[/=:,]")


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """The allowlist as ``allowlist.json`` has it."""

    version: int
    program: str
    rule: str
    words: dict[str, str]
    """Regular expressions that read the same in every dialect, each for a whole argument."""
    longest_word: int
    """Characters of an argument or a working directory."""
    most_arguments: int
    validation: tuple[str, ...]
    """Words after which a command validates a change."""
    patterns: tuple[str, ...]


@cache
def table() -> Table:
    """Return the allowlist."""
    data = files("debrief.recorder").joinpath("allowlist.json").read_bytes()
    return msgspec.json.decode(data, type=Table)


@cache
def default_rules() -> tuple[CommandRule, ...]:
    """Return the allowlist's commands, which may be run in every repository."""
    allowed = table()
    return tuple(
        CommandRule(
            program=allowed.program,
            arguments=(words := pattern.split(" ")),
            check=words[-1] in allowed.validation,
        )
        for pattern in allowed.patterns
    )


def check_command(
    cmd: str, args: Sequence[str], cwd: str = ".", rules: CommandRules | None = None
) -> CommandRule:
    """Return the rule that a command is of, or refuse it.

    Args:
        cmd: the program.
        args: its arguments, as they are handed to it.
        cwd: the folder that it runs in, relative to the repository's top folder.
        rules: the repository's own.

    Raises:
        InputError: no rule has it; says what may be run.
    """
    rule = rule_of(cmd, args, rules)
    if (problem := command_problem(cmd, args, cwd, rules)) or rule is None:
        shown = " ".join([cmd, *args])
        culprit = repr(shown if len(shown) <= 200 else f"{shown[:200]}…")
        allowed = f"Allowed are, after {table().program}: {', '.join(table().patterns)}."
        if rules is not None:
            own = (" ".join([each.program, *each.arguments]) for each in rules.commands)
            allowed += f" And: {', '.join(own)}."
        raise InputError(culprit, problem, allowed).known_as("command-refused")
    return rule


def command_problem(
    cmd: str, args: Sequence[str], cwd: str = ".", rules: CommandRules | None = None
) -> str:
    """Return why no rule has a command; empty when one has it."""
    allowed = table()
    programs = {allowed.program: None, **({each.program: None for each in _own(rules)})}
    if cmd not in programs:
        return f"the program is not {' or '.join(programs)}"
    if len(args) > allowed.most_arguments:
        return f"over {allowed.most_arguments} arguments"
    if len(cwd) > allowed.longest_word or not re.fullmatch(allowed.words["folder"], cwd):
        return "the working directory is not a plain folder inside of the repository"
    for number, arg in enumerate(args, 1):
        if len(arg) > allowed.longest_word:
            return f"argument {number} is over {allowed.longest_word} characters long"
    if rule_of(cmd, args, rules) is None:
        return "no pattern of the allowlist has these arguments"
    return ""


def is_validation(cmd: str, args: Sequence[str], rules: CommandRules | None = None) -> bool:
    """Return whether a command lints, tests or builds."""
    rule = rule_of(cmd, args, rules)
    return rule is not None and rule.check


def rule_of(cmd: str, args: Sequence[str], rules: CommandRules | None = None) -> CommandRule | None:
    """Return the first rule that a command is of; the allowlist's come first."""
    line = "".join(f"{arg}\0" for arg in args)
    if line.count("\0") != len(args):
        return None
    for rule in (*default_rules(), *_own(rules)):
        if rule.program == cmd and _expression(tuple(rule.arguments)).fullmatch(line):
            return rule
    return None


def _own(rules: CommandRules | None) -> list[CommandRule]:
    return rules.commands if rules else []


@lru_cache(maxsize=512)
def _expression(arguments: tuple[str, ...]) -> re.Pattern[str]:
    """Return an expression for a rule's arguments, in which a NUL ends every word."""
    words = {f"<{name}>": rf"(?:{word})\0" for name, word in table().words.items()}
    words |= {f"{name}+": f"(?:{word})+" for name, word in words.items()}
    return re.compile("".join(words.get(word, rf"{re.escape(word)}\0") for word in arguments))


def read_rules(worktree: Path) -> CommandRules | None:
    """Return the commands that a repository adds; None without a file of rules.

    Raises:
        InputError: the file cannot be read, or a rule would let in what no rule may.
    """
    path = worktree / RULES_FILE
    data = _content(path)
    if data is None:
        return None
    try:
        document = tomllib.loads(data.decode())
        commands = TypeAdapter(list[CommandRule]).validate_python(document.pop("commands", []))
        if document:
            raise ValueError(f"{min(document)} is not known; there is [[commands]]")
        if not commands:
            return None
        rules = CommandRules(digest=digest_of(commands), commands=commands)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise _invalid(path, f"commands.{place}: {first['msg']}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValueError) as error:
        raise _invalid(path, str(error)) from error
    if problem := next(rules_problems(rules), ""):
        raise _invalid(path, problem)
    return rules


def rules_problems(rules: CommandRules) -> Iterator[str]:
    """Yield why no record may have these rules."""
    for number, rule in enumerate(rules.commands):
        if problem := _rule_problem(rule):
            yield f"commands[{number}]: {problem}"
    if rules.digest != digest_of(rules.commands):
        yield "the digest is not that of the commands"


def digest_of(commands: Sequence[CommandRule]) -> str:
    """Return the digest of rules, the same however their file is written."""
    plain = [rule.model_dump(mode="json", by_alias=True) for rule in commands]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _rule_problem(rule: CommandRule) -> str:
    if not _PROGRAM.fullmatch(rule.program):
        return f"{rule.program!r} is not the plain name of a program"
    if rule.program == table().program:
        return f"the commands of {rule.program} are those of the allowlist"
    for word in (rule.program, *rule.arguments):
        name = word.rpartition("/")[2].lower().removesuffix(".exe")
        if name in _STARTERS:
            return f"{word!r} starts other programs"
        if kind := _KIND.fullmatch(word):
            if kind[1] not in table().words:
                return f"{word!r} is no kind of argument: there are {', '.join(table().words)}"
        elif not _WORD.fullmatch(word):
            return f"{word!r} has characters that a shell or a pattern could take for its own"
        elif (
            word.startswith(("/", "~"))
            or "=/" in word
            or ":/" in word
            or ",/" in word
            or ".." in _PARTS.split(word)
        ):
            return f"{word!r} leads out of the repository"
    return ""


def _content(path: Path) -> bytes | None:
    """Return the bytes of a file that is a plain one, in a plain folder; None without one."""
    for each in (path.parent, path):
        if each.is_symlink():
            raise _invalid(each, "is a symbolic link")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _invalid(path, f"cannot be read: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            raise _invalid(path, f"is not a file of at most {_LARGEST:,} bytes")
        return os.read(descriptor, _LARGEST)
    finally:
        os.close(descriptor)


def _invalid(path: Path, reason: str) -> InputError:
    return InputError(str(path), reason, "Mend it, and commit that.").known_as("rules-invalid")
