"""Results of checks: whether a test, lint or type run passed, from what it printed.

Exit codes alone do not tell: most commands in transcripts end in ``| tail``, which hides them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress

import orjson
from msgspec import Struct
from msgspec.structs import replace

from debrief.markdown import shorten
from debrief.offline.commands import CheckKind, check_of, simple_commands
from debrief.sessions.model import ToolCall

_LOOKED_AT = 40_000
_HEAD = 400
_QUOTE = 120
_STILL_RUNNING = re.compile(r"^(?:Process running with session|Script running with cell) ID", re.M)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_EXIT = re.compile(r"\A(?:Error: )?Exit code:? (\d+)|\bexited with (?:code|status) (\d+)", re.I)


class CheckRun(Struct, frozen=True, kw_only=True, gc=False):
    """A test, lint or type run, or a build, and what it came to."""

    turn: int = 0
    call: int = 0
    """Position among the calls of the session or part, from 0."""
    kind: CheckKind = "test"
    tool: str = ""
    passed: bool | None = None
    """None when nothing tells."""
    failures: int | None = None
    """Failing tests, or findings."""
    total: int | None = None
    """Tests that ran; None for other checks."""
    quote: str = ""
    """The line that tells."""

    @property
    def outcome(self) -> str:
        """In a few words what it came to, e.g. ``2 of 14 tests failed (pytest)``."""
        verb = "passed" if self.passed else "failed"
        if self.kind != "test":
            if self.failures:
                return f"{self.failures} finding{'s' * (self.failures > 1)} by {self.tool}"
            return f"{self.tool} {verb}"
        if not self.total:
            return f"tests {verb} ({self.tool})"
        some_failed = self.failures and self.failures < self.total
        every = "the only" if self.total == 1 else f"all {self.total}"
        which = f"{self.failures} of {self.total}" if some_failed else every
        return f"{which} test{'s' * (self.total > 1)} {verb} ({self.tool})"


_Reading = Callable[[str], CheckRun | None]


def checks_in(call: ToolCall, command: str, turn: int = 0, position: int = 0) -> list[CheckRun]:
    """Return the checks that a shell command ran, in order, one a tool.

    Where several commands share one output, each takes what reads as its own; the exit status
    counts only where it must be that of the check.
    """
    commands = simple_commands(command)
    found = list(dict.fromkeys(filter(None, map(check_of, commands))))
    if not found:
        return []
    text = _ANSI.sub("", _printed(call.result or "")[-_LOOKED_AT:])
    results = [CheckRun(kind=kind) for kind, _ in found]
    if not (
        call.result is None
        or call.status in ("rejected", "unanswered")
        or (call.exit_code is None and _STILL_RUNNING.search(call.result[:_HEAD]))
        or _NOT_RUN.search(text)
    ):
        readings = [_read(kind, text, alone=len(found) == 1) for kind, _ in found]
        failed, certain = _failed(call), _status_is_the_checks(commands)
        others_failed = any(other is not None and not other.passed for other in readings)
        for at, reading in enumerate(readings):
            doubted = failed and certain and len(found) == 1
            if reading is not None and not (reading.passed and doubted):
                results[at] = reading
            else:
                kind = reading.kind if reading is not None else found[at][0]
                results[at] = _by_status(kind, text, failed, certain, others_failed)
    return [
        replace(result, turn=turn, call=position, tool=tool)
        for (_, tool), result in zip(found, results, strict=True)
    ]


def _printed(result: str) -> str:
    """Return what commands printed: a script may wrap it in JSON, one object a line."""
    lines = result.split("\n") if result.startswith("Script ") else []
    for number, line in enumerate(lines):
        if line.startswith("{"):
            with suppress(orjson.JSONDecodeError):
                output = orjson.loads(line).get("output")
                lines[number] = output if isinstance(output, str) else line
    return "\n".join(lines) if lines else result


def _read(kind: CheckKind, text: str, alone: bool) -> CheckRun | None:
    """Read a check's own words; a lone script such as ``make check`` may have run tests."""
    readings = _TESTS if kind == "test" or alone else ()
    found = next((result for reading in readings if (result := reading(text)) is not None), None)
    return found if found is not None or kind == "test" else _findings(kind, text)


def _by_status(
    kind: CheckKind, text: str, failed: bool, certain: bool, others_failed: bool
) -> CheckRun:
    """Decide by the exit status, when the output's own words do not."""
    if others_failed or (failed and not certain):
        return CheckRun(kind=kind)
    broken = _BROKEN.search(text) or (_ERRORISH.search(text) if failed else None)
    last = shorten(text.strip().rpartition("\n")[2].strip().strip("="), _QUOTE)
    quote = _line_at(text, broken) if broken else last
    return CheckRun(kind=kind, passed=not (failed or broken), quote=quote)


def _failed(call: ToolCall) -> bool:
    code = call.exit_code
    if code is None and (found := _EXIT.search((call.result or "")[:200])):
        code = int(found[1] or found[2])
    return call.status == "failed" or bool(code)


def _status_is_the_checks(commands: tuple[tuple[str, ...], ...]) -> bool:
    """Return whether a failure of the whole command must be that of its checks."""
    return all(
        check_of(words) is not None or words[0].rpartition("/")[2] in _NEVER_FAIL
        for words in commands
    )


_NEVER_FAIL = frozenset(
    ["cd", "echo", "export", "set", "source", "true", "tail", "head", "tee", "sort", "wc", "sleep"]
)
_NOT_RUN = re.compile(
    r"^[ \t]*(?:<tool_use_error>|error: unrecognized subcommand|Command running in background"
    r"|(?:/\S+: )?(?:line \d+: )?\S+: (?:command )?not found$|no tests ran in "
    r"|(?:\d+ deselected(?:, )?)+ in [\d.]+s|npm (?:ERR!|error) Missing script"
    r"|error: Script not found|.*No such file or directory \(os error 2\)$)",
    re.MULTILINE,
)
_ERRORISH = re.compile(r"^.*\b(?:error|failed|failure|undefined|cannot|panic)\b.*$", re.I | re.M)
_BROKEN = re.compile(
    r"^[ \t]*(?:npm ERR!|make(?:\[\d+\])?: \*\*\* |error\[E\d+\]: |== Compilation error"
    r"|FAIL(?:ED)?\b(?!\s*0)|fatal: "
    r"|.*\berror TS\d+:|Traceback \(most recent|panic: |.*BUILD FAILED|.*Build failed"
    r"|.*\bERROR\b.*\b(?:task failed|exited)|SyntaxError: )",
    re.MULTILINE,
)


def _tested(total: int, failures: int, line: str) -> CheckRun:
    return CheckRun(
        passed=failures == 0,
        failures=failures,
        total=max(total, failures),
        quote=shorten(line.strip().strip("="), _QUOTE),
    )


def _unittest(text: str) -> CheckRun | None:
    ran = re.findall(r"^Ran (\d+) tests? in .*$", text, re.MULTILINE)
    if not ran:
        return None
    bad = re.search(r"^FAILED \((.*)\)", text, re.MULTILINE)
    failures = _sum(re.findall(r"(?:failures|errors)=(\d+)", bad[1])) if bad else 0
    return _tested(int(ran[-1]), failures, bad[0] if bad else f"Ran {ran[-1]} tests, OK")


def _cargo(text: str) -> CheckRun | None:
    runs = re.findall(r"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed.*$", text, re.M)
    if not runs:
        return None
    passed, failed = map(_sum, zip(*runs, strict=True))
    total = passed + failed
    return _tested(total, failed, f"test result: {failed} of {total} failed")


def _go(text: str) -> CheckRun | None:
    failing = re.findall(r"^--- FAIL: \S+", text, re.MULTILINE)
    packages = re.findall(r"^FAIL[ \t]+\S+.*$", text, re.MULTILINE)
    passing = re.findall(r"^--- PASS: \S+", text, re.MULTILINE)
    fine = re.findall(r"^ok\s+\S+\s+(?:\(cached\)|[\d.]+s).*$", text, re.MULTILINE)
    bad = failing or packages
    if not bad and not fine:
        return None
    total = len(failing) + len(passing) if passing else None
    quote = bad[0] if bad else fine[-1]
    return CheckRun(passed=not bad, failures=len(bad), total=total, quote=quote)


def _worded(pattern: str) -> _Reading:
    """Return a reading for the last line that counts in words: ``1 failed, 2 passed``."""
    compiled = re.compile(pattern, re.MULTILINE)

    def read(text: str) -> CheckRun | None:
        lines = compiled.findall(text)
        if not lines:
            return None
        counts = {word.rstrip("s"): int(n) for n, word in re.findall(r"(\d+) ([a-z]+)", lines[-1])}
        failures = counts.get("failed", 0) + counts.get("error", 0)
        return _tested(counts.get("total", counts.get("passed", 0) + failures), failures, lines[-1])

    return read


def _counted(pattern: str) -> _Reading:
    """Return a reading for the last place that has ``total`` and ``failed``, or ``passed``."""
    compiled = re.compile(pattern, re.MULTILINE)

    def read(text: str) -> CheckRun | None:
        found = list(compiled.finditer(text))
        if not found:
            return None
        counts = {name: int(count or 0) for name, count in found[-1].groupdict().items()}
        failures = counts.get("failed", 0)
        total = counts.get("total") or counts.get("passed", 0) + failures
        return _tested(total, failures, found[-1][0])

    return read


def _findings(kind: CheckKind, text: str) -> CheckRun | None:
    """Read what a linter, a type checker or a build found."""
    counted = next((found for p in _FINDING_COUNTS if (found := p.search(text))), None)
    typescript = re.findall(r"^.*\berror TS\d+:.*$", text, re.MULTILINE)
    if counted:
        count, quote = int(counted[1]), _line_at(text, counted)
    elif typescript:
        count, quote = len(typescript), shorten(typescript[0].strip().strip("="), _QUOTE)
    elif fine := _FINE.search(text):
        count, quote = 0, _line_at(text, fine)
    else:
        return None
    return CheckRun(kind=kind, passed=count == 0, failures=count, quote=quote)


def _line_at(text: str, found: re.Match[str]) -> str:
    end = text.find("\n", found.start() + 1)
    line = text[found.start() : end if end >= 0 else len(text)].strip()
    return shorten((line or found[0]).strip().strip("="), _QUOTE)


def _sum(counts: Iterable[str]) -> int:
    return sum(map(int, counts))


_FINDING_COUNTS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"✖ \d+ problems? \((\d+) errors?",
        r"^Found (\d+) errors?\b",
        r"^(\d+) errors?, \d+ warnings?",
        r"^(\d+) issues?[:.]",
        r"^Found (\d+) diagnostics?",
        r"\bfound (\d+) (?:refactoring|warnings?|consistency|design|readability|software)",
        r"^Total errors: (\d+)",
        r"could not compile .* due to (\d+) (?:previous )?errors?",
    )
)
_FINE = re.compile(
    r"^All checks passed!|^Success: no issues found|^0 issues\.|(?:No|found no) issues"
    r"|no errors found"
    r"|done \(passed successfully\)"
    r"|^Checked \d+ files? in .*No fixes applied|^BUILD SUCCESS|Compiled successfully"
    r"|All matched files use Prettier",
    re.MULTILINE,
)
_TESTS: tuple[_Reading, ...] = (
    _worded(r"^.*\b\d+ (?:passed|failed|errors?)\b[^\n]*\bin [\d.:]+ ?s?.*$"),
    _unittest,
    _worded(r"^[ \t]*Tests:?\s+.*\b\d+ (?:passed|failed|total).*$"),
    _cargo,
    _go,
    _counted(
        r"^(?P<total>\d+) (?:tests?|examples?)(?:, \d+ assertions?)?, (?P<failed>\d+) failures?"
    ),
    _counted(r"^[ \t]*(?:\d+ doctests?, )?(?P<total>\d+) tests?, (?P<failed>\d+) failures?"),
    _counted(r"Tests run: (?P<total>\d+), Failures: (?P<failed>\d+)"),
    _counted(
        r"^[ \t]*(?P<passed>\d+) passing\b"
        r"(?:[^\n]*\n\s*(?:\d+ pending[^\n]*\n\s*)?(?P<failed>\d+) failing)?"
    ),
    _counted(r"^[ \t]*(?P<passed>\d+) pass\n(?:\s*\d+ (?:skip|todo)\n)*\s*(?P<failed>\d+) fail$"),
    _counted(r"^(?:# |ℹ )pass (?P<passed>\d+)\n(?:# |ℹ )fail (?P<failed>\d+)"),
    _counted(r"^DONE (?P<total>\d+) tests?(?:, \d+ skipped)?(?:, (?P<failed>\d+) failures?)?"),
    _counted(r"Passed:\s+(?P<passed>\d+).*?Failed:\s+(?P<failed>\d+)"),
    _counted(r"Failed:\s+(?P<failed>\d+), Passed:\s+(?P<passed>\d+)"),
)
