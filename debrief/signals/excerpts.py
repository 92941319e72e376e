"""Short quotations of calls, results and texts, as evidence: lines that say something."""

from __future__ import annotations

import re

from debrief.markdown import shorten
from debrief.sessions.model import ToolCall

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What programs print to colour and move."""
_QUOTE = 120
ENVELOPE = re.compile(
    r"(?:</?\w+>\W*\d*)+\Z|(?i:exit code)|Chunk ID: |Wall time|Original token count: |Output:$"
    r"|(?:Process|Command) exited with code |Script (?:completed|failed)$"
    r"|(?:Command|Directory|Signal|Background PIDs|Process Group PGID): |Error: \(none\)$"
    r"|Shell cwd was reset to |\((?:Bash completed with )?no output\)$"
)
"""Lines that a program puts around what a command printed."""
_MARKED = re.compile(r"</?tool_use_error>")
_EMPTY = re.compile(
    r"\A(?:[\W_]*|(?:done|finished|ok|real|user|sys)\b[^a-zA-Z]*(?:in\b)?[^a-zA-Z]*(?:ms|s|m)?[^a-zA-Z]*s?"
    r"|(?:\[[\w:.-]+\] )?[>$] .*|=+ test session starts =+"
    r"|(?:Command|Process) running (?:in background|with session ID).*|npm (?:notice|warn)\b.*)\Z",
    re.IGNORECASE,
)
"""Lines that say nothing: signs, a time taken, the command once more."""
_FATAL = re.compile(
    r"^\W*(?:fatal|error|FAILED|panic|npm ERR!|\w*(?:Error|Exception))\b(?:\[\w+\])?: ?\S"
    r"|^remote: error|: (?:command not found|No such file or directory|Permission denied)"
    r"|^(?:error|fatal)\b(?! ?[:=]? ?0\b)"
)
_NONE_FAILED = re.compile(r"\b(?:0|no|without|zero) (?:failures?|errors?|failed|failing)\b", re.I)


def label(call: ToolCall) -> str:
    """Return a call in a few words: its command, or its tool and file."""
    if call.command:
        return shorten(call.command, 60)
    path = call.path or next(iter(call.paths), "")
    return f"{call.name} {tail(path)}" if path else call.name


def tail(path: str) -> str:
    """Return a file's name and folder."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])


def line_at(text: str, found: re.Match[str]) -> str:
    """Return the line around what was found, short."""
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.end())
    line = text[start : end if end >= 0 else len(text)].strip()
    return line if len(line) <= _QUOTE else shorten(text[max(start, found.start() - 40) :], _QUOTE)


def quote_line(text: str) -> str:
    """Return a text as a quotation: on one line, short."""
    return shorten(" ".join(text.split()), _QUOTE)


def first_line(text: str) -> str:
    """Return the first line that says something, short."""
    lines = printed_lines(text[:2_000])
    return shorten(next((line for line in lines if says_something(line)), *lines[:1] or [""]), 100)


def failing_line(text: str, failed: re.Pattern[str]) -> str:
    """Return the line of a failed call's result that says why, short.

    Args:
        text: of the result.
        failed: what lines of a failure hold.
    """
    lines = [line for line in printed_lines(ANSI.sub("", text)) if says_something(line)]
    failures = [line for line in lines if not _NONE_FAILED.search(line)]
    line = next((line for line in failures if _FATAL.search(line)), "")
    line = line or next((line for line in failures if failed.search(line)), "")
    return shorten(line, 100) if line else first_line(text)


def says_something(line: str) -> bool:
    """Return whether a line says more than a sign, a time or a prompt.

    >>> says_something("2 tests failed"), says_something("Done in 310ms."), says_something('"}')
    (True, False, False)
    """
    return not _EMPTY.match(line.strip())


def printed_lines(text: str) -> list[str]:
    """Return the lines that a command printed, without what its program put around them."""
    lines = (line.strip() for line in _MARKED.sub("", text).replace("\r", "\n").split("\n"))
    return [line for line in lines if line and not ENVELOPE.match(line)]


def without_envelope(text: str) -> str:
    """Return what a call printed without the lines that an agent's program put around it."""
    return "\n".join(line for line in text.split("\n") if not ENVELOPE.match(line.strip()))
