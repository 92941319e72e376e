"""Results of checks: whether a test, lint or type run passed, from what it printed.

Exit codes alone do not tell: most commands in transcripts end in ``| tail``, which hides them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import orjson
from msgspec import Struct

from debrief.offline.checks import check_of
from debrief.offline.commands import simple_commands
from debrief.offline.model import CheckKind
from debrief.sessions.model import ToolCall

_LOOKED_AT = 40_000
_HEAD = 400
_STILL_RUNNING = re.compile(r"^(?:Process running with session|Script running with cell) ID", re.M)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_EXIT = re.compile(r"\A(?:Error: )?Exit code:? (\d+)|\bexited with (?:code|status) (\d+)", re.I)


class CheckResult(Struct, frozen=True, kw_only=True):
    """What a check came to."""

    passed: bool | None
    """None when nothing tells."""
    failures: int | None = None
    """Failing tests, or findings."""
    total: int | None = None
    """Tests that ran; None for other checks."""
    quote: str = ""
    """The line that tells."""
    tests: bool = False
    """The text is that of a test run, whatever the command was called."""


class Check(Struct, frozen=True, kw_only=True):
    """One check in a command, and what it came to."""

    kind: CheckKind
    tool: str
    result: CheckResult


_Reading = Callable[[str], CheckResult | None]


def checks_in(call: ToolCall, command: str) -> list[Check]:
    """Return the checks that a shell command ran, in order, one a tool.

    Where several commands share one output, each takes what reads as its own; the exit status
    counts only where it must be that of the check.
    """
    commands = simple_commands(command)
    found = list(dict.fromkeys(filter(None, map(check_of, commands))))
    if not found:
        return []
    text = _ANSI.sub("", _printed(call.result or "")[-_LOOKED_AT:])
    if (
        call.result is None
        or call.status in ("rejected", "unanswered")
        or (call.exit_code is None and _STILL_RUNNING.search(call.result[:_HEAD]))
        or _NOT_RUN.search(text)
    ):
        return [Check(kind=k, tool=t, result=CheckResult(passed=None)) for k, t in found]
    failed = _failed(call)
    readings = [_read(kind, text, alone=len(found) == 1) for kind, _ in found]
    certain = _status_is_the_checks(commands)
    results = []
    for reading in readings:
        if reading is not None and not (failed and certain and reading.passed and len(found) == 1):
            results.append(reading)
        else:
            tests = reading is not None and reading.tests
            others_failed = any(other is not None and not other.passed for other in readings)
            results.append(_by_status(text, failed, certain, tests, others_failed))
    return [
        Check(kind="test" if result.tests else kind, tool=tool, result=result)
        for (kind, tool), result in zip(found, results, strict=True)
    ]


def _printed(result: str) -> str:
    """Return what commands printed: a script may wrap it in JSON, one object a line."""
    if not result.startswith("Script "):
        return result
    return "\n".join(map(_out_of_json, result.split("\n")))


def _out_of_json(line: str) -> str:
    if not line.startswith("{"):
        return line
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    output = parsed.get("output")
    return output if isinstance(output, str) else line


def _read(kind: CheckKind, text: str, alone: bool) -> CheckResult | None:
    """Read a check's own words; a lone script such as ``make check`` may have run tests."""
    readings = _TESTS if kind == "test" else _FINDINGS
    if kind != "test" and alone:
        readings = (*_TESTS, *_FINDINGS)
    return next((result for reading in readings if (result := reading(text)) is not None), None)


def _by_status(
    text: str, failed: bool, certain: bool, tests: bool, others_failed: bool
) -> CheckResult:
    """Decide by the exit status, when the output's own words do not."""
    if failed:
        if not certain or others_failed:
            return CheckResult(passed=None, tests=tests)
        return CheckResult(passed=False, quote=_significant_line(text), tests=tests)
    if others_failed:
        return CheckResult(passed=None, tests=tests)
    broken = _BROKEN.search(text)
    if broken:
        return CheckResult(passed=False, quote=_line_at(text, broken), tests=tests)
    return CheckResult(passed=True, quote=_last_line(text), tests=tests)


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


def _pytest(text: str) -> CheckResult | None:
    lines = re.findall(
        r"^.*\b\d+ (?:passed|failed|errors?)\b[^\n]*\bin [\d.:]+ ?s?.*$", text, re.MULTILINE
    )
    if not lines:
        return None
    counts = {word.rstrip("s"): int(n) for n, word in re.findall(r"(\d+) ([a-z]+)", lines[-1])}
    failures = counts.get("failed", 0) + counts.get("error", 0)
    return _tested(counts.get("passed", 0) + failures, failures, lines[-1])


def _unittest(text: str) -> CheckResult | None:
    ran = re.findall(r"^Ran (\d+) tests? in .*$", text, re.MULTILINE)
    if not ran:
        return None
    bad = re.search(r"^FAILED \((.*)\)", text, re.MULTILINE)
    failures = sum(int(n) for n in re.findall(r"(?:failures|errors)=(\d+)", bad[1])) if bad else 0
    return _tested(int(ran[-1]), failures, bad[0] if bad else f"Ran {ran[-1]} tests, OK")


def _jest(text: str) -> CheckResult | None:
    lines = re.findall(r"^[ \t]*Tests:?\s+.*\b\d+ (?:passed|failed|total).*$", text, re.MULTILINE)
    if not lines:
        return None
    counts = {word: int(n) for n, word in re.findall(r"(\d+) ([a-z]+)", lines[-1])}
    failures = counts.get("failed", 0)
    total = counts.get("total", counts.get("passed", 0) + failures)
    return _tested(total, failures, lines[-1])


def _cargo(text: str) -> CheckResult | None:
    runs = re.findall(r"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed.*$", text, re.M)
    if not runs:
        return None
    failures = sum(int(failed) for _, failed in runs)
    total = sum(int(passed) for passed, _ in runs) + failures
    return _tested(total, failures, f"test result: {failures} of {total} failed")


def _go(text: str) -> CheckResult | None:
    failing = re.findall(r"^--- FAIL: \S+", text, re.MULTILINE)
    packages = re.findall(r"^FAIL[ \t]+\S+.*$", text, re.MULTILINE)
    passing = re.findall(r"^--- PASS: \S+", text, re.MULTILINE)
    fine = re.findall(r"^ok\s+\S+\s+(?:\(cached\)|[\d.]+s).*$", text, re.MULTILINE)
    if failing or packages:
        total = len(failing) + len(passing) if passing else None
        line = (failing or packages)[0]
        count = len(failing) or len(packages)
        return CheckResult(passed=False, failures=count, total=total, quote=line, tests=True)
    if fine:
        return CheckResult(
            passed=True, failures=0, total=len(passing) or None, quote=fine[-1], tests=True
        )
    return None


def _counted(pattern: str) -> _Reading:
    """Return a reading for one line that holds ``total`` and ``failed``, or ``passed``."""
    compiled = re.compile(pattern, re.MULTILINE)

    def read(text: str) -> CheckResult | None:
        found = list(compiled.finditer(text))
        if not found:
            return None
        groups = found[-1].groupdict()
        failures = int(groups.get("failed") or 0)
        total = groups.get("total")
        passed = int(groups.get("passed") or 0)
        return _tested(int(total) if total else passed + failures, failures, found[-1][0])

    return read


def _findings(text: str) -> CheckResult | None:
    for pattern in _FINDING_COUNTS:
        found = pattern.search(text)
        if found:
            count = int(found[1])
            return CheckResult(passed=count == 0, failures=count, quote=_line_at(text, found))
    typescript = re.findall(r"^.*\berror TS\d+:.*$", text, re.MULTILINE)
    if typescript:
        return CheckResult(passed=False, failures=len(typescript), quote=_short(typescript[0]))
    fine = _FINE.search(text)
    if fine:
        return CheckResult(passed=True, failures=0, quote=_line_at(text, fine))
    return None


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
    _pytest,
    _unittest,
    _jest,
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
_FINDINGS: tuple[_Reading, ...] = (_findings,)


def _tested(total: int, failures: int, line: str) -> CheckResult:
    return CheckResult(
        passed=failures == 0,
        failures=failures,
        total=max(total, failures),
        quote=_short(line),
        tests=True,
    )


def _significant_line(text: str) -> str:
    found = _BROKEN.search(text) or _ERRORISH.search(text)
    return _line_at(text, found) if found else _last_line(text)


def _line_at(text: str, found: re.Match[str]) -> str:
    end = text.find("\n", found.start() + 1)
    line = text[found.start() : end if end >= 0 else len(text)].strip()
    return _short(line or found[0])


def _last_line(text: str) -> str:
    lines = text.strip().rsplit("\n", 1)
    return _short(lines[-1]) if lines else ""


def _short(line: str) -> str:
    line = " ".join(line.strip().strip("=").split())
    return line if len(line) <= 120 else line[:119] + "…"
