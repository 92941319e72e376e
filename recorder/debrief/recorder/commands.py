"""The commands of a session: which may be run, and how they are run.

``allowlist.json`` is data so that recorders in other languages, their buttons and the server read
the very same table. The owner of a repository adds commands in ``.debrief/recorder.toml``; the
kinds of what may vary in them are the table's, so that no file of rules can let anything else in.
A command is never handed to a shell; that shell characters are refused all the same is for those
who will run a recorded command some day. Its output is shown at once, and its end is certain.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import select
import signal
import subprocess
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from types import FrameType

import msgspec
from msgspec import Struct
from pydantic import TypeAdapter, ValidationError

from debrief.errors import ConfigurationError, InputError, first_problem
from debrief.recorder.contracts import CommandRule, CommandRules
from debrief.recorder.local_session import CommandEnd

RULES_FILE = ".debrief/recorder.toml"
_LARGEST = 65_536
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*(\.[A-Za-z0-9_+-]+)*")
_WORD = re.compile(r"[A-Za-z0-9@_+=:,./-]+")
_KIND = re.compile(r"<([a-z]+)>\+?")
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
            own = (" ".join([command.program, *command.arguments]) for command in rules.commands)
            allowed += f" And: {', '.join(own)}."
        raise InputError(culprit, problem, allowed).known_as("command-refused")
    return rule


def command_problem(
    cmd: str, args: Sequence[str], cwd: str = ".", rules: CommandRules | None = None
) -> str:
    """Return why no rule has a command; empty when one has it."""
    allowed = table()
    programs = {allowed.program: None, **({rule.program: None for rule in _own(rules)})}
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
    try:
        for each in (path.parent, path):
            if each.is_symlink():
                raise _invalid(each, "is a symbolic link")
        if not path.exists():
            return None
        if not path.is_file() or path.stat().st_size > _LARGEST:
            raise _invalid(path, f"is not a file of at most {_LARGEST:,} bytes")
        with open(path, "rb", opener=_open_plain) as file:
            document = tomllib.loads(file.read().decode())
        commands = TypeAdapter(list[CommandRule]).validate_python(document.pop("commands", []))
        if document:
            raise ValueError(f"{min(document)} is not known; there is [[commands]]")
        if not commands:
            return None
        rules = CommandRules(digest=digest_of(commands), commands=commands)
    except ValidationError as error:
        place, reason = first_problem(error)
        raise _invalid(path, f"commands.{place}: {reason}") from error
    except OSError as error:
        raise _invalid(path, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise _invalid(path, str(error)) from error
    if problem := next(rules_problems(rules), ""):
        raise _invalid(path, problem)
    return rules


def _open_plain(path: str, flags: int) -> int:
    """Open a file that may have become a link or a pipe by now: follow none, and never wait."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


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
    for word in rule.arguments:
        if kind := _KIND.fullmatch(word):
            if kind[1] not in table().words:
                return f"{word!r} is no kind of argument: there are {', '.join(table().words)}"
        elif not _WORD.fullmatch(word):
            return f"{word!r} has characters that a shell or a pattern could take for its own"
        elif word[:1] == "~" or _ABSOLUTE.search(word) or ".." in _PARTS.split(word):
            return f"{word!r} leads out of the repository"
    return ""


def _invalid(path: Path, reason: str) -> InputError:
    return InputError(str(path), reason, "Mend it, and commit that.").known_as("rules-invalid")


_POLL = 0.1
"""Seconds between two looks at a command that prints nothing."""
_LINGER = 1.0
"""Seconds in which the output of an ended command may still come, from processes it left behind."""
_PIECE = 65_536

Process = subprocess.Popen[bytes]


class NotStartedError(ConfigurationError):
    """A command could not be started."""


def execute(
    command: Sequence[str],
    folder: Path,
    *,
    time_limit: float,
    store: Callable[[bytes], object],
    keep: int,
    show: Callable[[bytes], None],
    grace: float,
) -> CommandEnd:
    """Run a command to its end, both of its outputs as one, and nothing to read.

    It runs in a process group of its own, which is ended as a whole at the time limit, first by
    request and then by force. What is typed to interrupt it is passed on to that group; a second
    time ends it by force.

    Args:
        command: an absolute path and its arguments.
        folder: where it runs.
        time_limit: seconds.
        store: is given output as it comes, so that it is there whatever ends this process.
        keep: bytes of output that it is given.
        show: is called with each piece as it comes.
        grace: seconds between request and force.

    Raises:
        NotStartedError: it cannot be started.
    """
    began = time.monotonic()
    size, timed_out = 0, False
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NotStartedError(command[0], f"cannot be started: {reason}") from error
    with _signals_passed_on(process) as received:
        try:
            for piece in _output(process):
                seconds = time.monotonic() - began
                if not timed_out and seconds >= time_limit and process.poll() is None:
                    timed_out = True
                    _signal_group(process, signal.SIGTERM)
                if (timed_out and seconds >= time_limit + grace) or len(received) > 1:
                    _signal_group(process, signal.SIGKILL)
                if piece:
                    if size < keep:
                        store(piece[: keep - size])
                    size += len(piece)
                    show(piece)
            if timed_out or received:
                _signal_group(process, signal.SIGKILL)
        except BaseException:
            _signal_group(process, signal.SIGKILL)
            process.wait()
            raise
    code = process.wait()
    return CommandEnd(
        exit_code=None if timed_out else code if code >= 0 else 128 - code,
        ending=f"(ended at its time limit of {time_limit:g} s)" if timed_out else "",
        duration_ms=int((time.monotonic() - began) * 1000),
        cut=size > keep,
    )


def _output(process: Process) -> Iterator[bytes]:
    """Yield output, and an empty piece every 0.1 s without any, until the command has ended.

    What it left behind in the background may go on writing for a second.
    """
    assert process.stdout is not None
    until = math.inf
    with process.stdout as pipe:
        is_open = True
        while time.monotonic() < until and (is_open or process.poll() is None):
            piece = b""
            if select.select([pipe] if is_open else [], [], [], _POLL)[0]:
                piece = os.read(pipe.fileno(), _PIECE)
                is_open = bool(piece)
            yield piece
            if process.poll() is not None:
                until = min(until, time.monotonic() + _LINGER)


def _signal_group(process: Process, number: int) -> None:
    """Send a signal to a process and all that it started, as far as they stayed together."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


@contextmanager
def _signals_passed_on(process: Process) -> Iterator[list[int]]:
    """Pass requests to end on to the process; yield those that were received."""
    received: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        received.append(number)
        _signal_group(process, number)

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
