"""Shell commands as they stand in transcripts, taken apart.

A command that only mentions a tool (``grep pytest``, a commit message, a here-document) must not
be taken for a run of it, which is why nothing is searched for in a command's plain text.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache

import orjson

from debrief.sessions.model import ToolCall
from debrief.sessions.readers import READERS


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


@lru_cache(maxsize=4096)
def _decoded(text: str) -> dict[str, object]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def arguments(call: ToolCall) -> dict[str, object]:
    """Return the arguments of a call; empty when its input is no JSON object."""
    return _decoded(call.input)


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
    parts, current, quote, escaped = [], [], "", False
    for character in command:
        if escaped:
            escaped = False
            current.append(character)
        elif character == "\\" and quote != "'":
            escaped = True
            current.append(character)
        elif quote:
            quote = "" if character == quote else quote
            current.append(character)
        elif character in "'\"":
            quote = character
            current.append(character)
        elif character in ";|\n()" or (character == "&" and current[-1:] != [">"]):
            parts.append("".join(current))
            current = []
        else:
            current.append(character)
    parts.append("".join(current))
    return [part.strip() for part in parts if part.strip()]


def _words(part: str) -> list[str]:
    try:
        words = shlex.split(part, comments=True)
    except ValueError:
        words = part.split()
    kept = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif re.fullmatch(r"\d*(>>?|<)(&\d|&-)?", word):
            skip = "&" not in word
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
    kept, at = words[:1], 1
    while at < len(words):
        if words[at] in _PLACES:
            at += 2
            continue
        kept.append(words[at])
        at += 1
    return kept


def _past_options(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        takes = words[at] in _VALUED
        at += 2 if takes else 1
    return words[at:]
