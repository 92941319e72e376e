"""What the test runners of the made-up code bases print."""

from __future__ import annotations

from msgspec import Struct

from debrief.errors import InputError


class Failure(Struct, frozen=True):
    """A test that failed."""

    file: str
    name: str
    detail: str


class TestRun(Struct, frozen=True):
    """The outcome of one run."""

    __test__ = False

    passed: dict[str, int]
    """Passing tests by file, in the order in which they ran."""
    failures: tuple[Failure, ...]

    @property
    def exit_code(self) -> int:
        """1 when a test failed."""
        return int(bool(self.failures))


def parse_run(body: str) -> TestRun:
    """Read the body of a ``tests`` step.

    ``ok FILE COUNT`` says how many tests of a file pass; ``bad FILE::NAME`` opens a failure,
    and the lines up to the next of these two are what the runner shows of it.
    """
    passed: dict[str, int] = {}
    failures: list[Failure] = []
    shown: list[str] = []
    for line in body.split("\n"):
        word, _, rest = line.partition(" ")
        if word == "ok":
            file, _, count = rest.rpartition(" ")
            passed[file] = int(count)
        elif word == "bad":
            file, _, name = rest.partition("::")
            passed.setdefault(file, 0)
            shown = []
            failures.append(Failure(file, name, ""))
        elif failures:
            shown.append(line)
            last = failures[-1]
            failures[-1] = Failure(last.file, last.name, "\n".join(shown).strip("\n"))
        elif line.strip():
            raise InputError(line, "a test run is told in lines 'ok FILE COUNT' and 'bad ID'")
    return TestRun(passed, tuple(failures))


def print_run(command: str, run: TestRun, root: str, seconds: float) -> str:
    """Return what the runner that ``command`` names prints for ``run``."""
    vitest = "vitest" in command or command.startswith("npm ")
    return _vitest(run, root, seconds) if vitest else _pytest(command, run, root, seconds)


def _pytest(command: str, run: TestRun, root: str, seconds: float) -> str:
    quiet = " -q" in command
    total = sum(run.passed.values()) + len(run.failures)
    lines: list[str] = []
    if not quiet:
        lines += [
            " test session starts ".center(80, "="),
            "platform linux -- Python 3.12.7, pytest-8.4.2, pluggy-1.6.0",
            f"rootdir: {root}",
            "configfile: pyproject.toml",
            f"collected {total} item{'s' if total != 1 else ''}",
            "",
        ]
    done = 0
    for file, good in run.passed.items():
        bad = sum(failure.file == file for failure in run.failures)
        done += good + bad
        marks = ("." * good)[: good // 2] + "F" * bad + "." * (good - good // 2)
        progress = f"[{100 * done // total:3d}%]"
        label = marks if quiet else f"{file} {marks}"
        lines.append(f"{label}{progress:>{max(7, 80 - len(label))}}")
    if run.failures:
        lines += ["", " FAILURES ".center(80, "=")]
        for failure in run.failures:
            lines += [f" {failure.name} ".center(80, "_"), "", failure.detail, ""]
        lines.append(" short test summary info ".center(80, "="))
        lines += [
            f"FAILED {failure.file}::{failure.name} - {_first_error(failure.detail)}"
            for failure in run.failures
        ]
    good = total - len(run.failures)
    parts = [f"{len(run.failures)} failed"] if run.failures else []
    parts += [f"{good} passed"] if good else []
    summary = f"{', '.join(parts)} in {seconds:.2f}s"
    lines += [summary] if quiet else [f" {summary} ".center(80, "=")]
    return "\n".join(lines)


def _vitest(run: TestRun, root: str, seconds: float) -> str:
    lines = ["", f" RUN  v3.2.4 {root}", ""]
    for file, good in run.passed.items():
        bad = [failure for failure in run.failures if failure.file == file]
        took = 4 + 3 * (good + len(bad))
        if not bad:
            lines.append(f" ✓ {file} ({good} test{'s' if good != 1 else ''}) {took}ms")
            continue
        lines.append(f" ❯ {file} ({good + len(bad)} tests | {len(bad)} failed) {took}ms")
        for failure in bad:
            lines.append(f"   × {failure.name} {5 + len(failure.name) % 9}ms")
            lines.append(f"     → {_first_error(failure.detail).removeprefix('AssertionError: ')}")
    if run.failures:
        lines += ["", f"⎯⎯⎯⎯⎯⎯⎯ Failed Tests {len(run.failures)} ⎯⎯⎯⎯⎯⎯⎯", ""]
        for failure in run.failures:
            lines += [f" FAIL  {failure.file} > {failure.name}", failure.detail, ""]
    broken = {failure.file for failure in run.failures}
    bad_files = f"{len(broken)} failed | " if broken else ""
    bad_tests = f"{len(run.failures)} failed | " if run.failures else ""
    good_files = len(run.passed) - len(broken)
    good = sum(run.passed.values())
    lines += [
        "",
        f" Test Files  {bad_files}{good_files} passed ({len(run.passed)})",
        f"      Tests  {bad_tests}{good} passed ({good + len(run.failures)})",
        f"   Duration  {seconds:.2f}s",
        "",
    ]
    return "\n".join(lines)


def _first_error(detail: str) -> str:
    """Return the line of a failure that says what went wrong, without its marker."""
    for line in detail.split("\n"):
        if line.startswith("E  "):
            return line[1:].strip()
        if "Error:" in line:
            return line.strip()
    return detail.split("\n", 1)[0].strip()
