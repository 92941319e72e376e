"""Run checks on a session's base and final tree, and derive an outcome from the difference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import orjson
from msgspec import Struct
from msgspec.structs import replace

from debrief.execution.checks import is_of_tests, steers_tests
from debrief.execution.comparing import Results, completed, status_in
from debrief.execution.model import Check, ExecutedCheck, NoOutcome, SandboxRun
from debrief.execution.preparing import Prepared
from debrief.execution.sandbox import TREE, Sandbox, SandboxLimits
from debrief.execution.test_results import REPORTS, reporting, results_of
from debrief.signals.shell import check_of, commands_in, pattern

_KEPT = 20_000
_NOT_FOUND = frozenset([97, 126, 127])
"""Exit codes of a shell that found no folder, or could not start the program."""
_UNTESTED_BY_PYTEST = frozenset([2, 3, 4, 5])
"""Exit codes of pytest: interrupted, failed within, called wrongly, no tests."""


class Decision(Struct, frozen=True, kw_only=True):
    """What running says of a session's work, or why it says nothing."""

    value: Literal["yes", "no", ""] = ""
    reason: NoOutcome | Literal[""] = ""
    """Why there is no value; empty with one."""
    detail: str = ""
    """What it is about: a test, or a command."""


def run_check(
    tree: Path,
    check: Check,
    prepared: Prepared,
    sandbox: Sandbox,
    redact: Callable[[str], str],
    limits: SandboxLimits | None = None,
) -> SandboxRun:
    """Run a check on a tree.

    Args:
        tree: a folder, which is copied.
        check: its command and what it brings.
        prepared: what it needs of packages.
        sandbox: where it runs.
        redact: takes the secrets out of what it printed.
        limits: what it may use.

    Raises:
        ConfigurationError: the sandbox does not work.
    """
    command, variables = reporting(check.command, _scripts(tree / check.folder))
    added = {f"{TREE}/{path}": text for path, text in check.added.items()}
    ran = sandbox.run(
        command,
        copies={TREE: tree},
        folder=f"{TREE}/{check.folder}".rstrip("/"),
        added={**added, f"{REPORTS}/.here": ""},
        mounts=prepared.mounts,
        environment={**prepared.environment, **variables},
        path=[*prepared.path, f"{TREE}/{check.folder}".rstrip("/") + "/node_modules/.bin"],
        hand_back=[REPORTS],
        limits=limits,
    )
    files = {path: content for path, content in ran.files.items() if not path.endswith("/.here")}
    return SandboxRun(
        exit_code=ran.exit_code,
        end=ran.end,
        limit=ran.limit,
        seconds=ran.seconds,
        tests=results_of(files, ran.output),
        output=redact(ran.output[-4 * _KEPT :])[-_KEPT:],  # no secret is cut in two
    )


def execute_check(
    base: Path,
    final: Path,
    check: Check,
    prepared: Prepared,
    sandbox: Sandbox,
    redact: Callable[[str], str],
    limits: SandboxLimits | None = None,
) -> ExecutedCheck:
    """Run a check twice on both trees; once, where a run already says that it cannot tell."""

    def run(tree: Path) -> SandboxRun:
        return run_check(tree, check, prepared, sandbox, redact, limits)

    before, after = [run(base)], [run(final)]
    if not any(
        sandbox_run.end != "ended" or _is_untested(check, sandbox_run)
        for sandbox_run in (*before, *after)
    ):
        before.append(run(base))
        after.append(run(final))
    return ExecutedCheck(check=check, before=tuple(before), after=tuple(after))


def decided_by(
    checks: Sequence[ExecutedCheck], changed: Sequence[str] = (), final: Path | None = None
) -> Decision:
    """Return what all checks of a session say together.

    One that says that something broke decides; then one that says that something works now;
    otherwise the first one's reason that is more than that the trees do not differ.

    Where the session changed tests, that a test passes now may be a change of the test: only checks
    that bring their tests to both trees can say ``yes``. Where it changed what the test program
    itself loads (``steers_tests``), none can. A test that fails now and passes as
    a later commit has it was out of date: the session changed what it asks for.

    Args:
        checks: with their runs.
        changed: the files that the session changed.
        final: the folder that has them.
    """
    renewed = _passing_later(checks)
    decisions = [decided(check.check, check.before, check.after, renewed) for check in checks]
    steered = any(steers_tests(path, _text_below(final, path)) for path in changed)
    if steered or any(map(is_of_tests, changed)):
        judged = Decision(reason="tests_changed")
        decisions = [
            replace(judged, detail=check.check.command)
            if said.value == "yes" and (steered or not check.check.added)
            else said
            for check, said in zip(checks, decisions, strict=True)
        ]
    for value in ("no", "yes"):
        for decision in decisions:
            if decision.value == value:
                return decision
    other = [decision for decision in decisions if decision.reason != "same_before"]
    found = [*decisions[:1], Decision(reason="no_check")]
    changed_tests = [decision for decision in decisions if decision.reason == "tests_changed"]
    same = [decision for decision in decisions if decision.reason == "same_before"]
    return (changed_tests or same or other or found)[0]


def _text_below(folder: Path | None, path: str) -> str:
    """Return the text of a file in a folder; empty where it cannot be read."""
    if folder is None or (folder / path).is_symlink():
        return ""
    with suppress(OSError, UnicodeDecodeError):
        return (folder / path).read_text()
    return ""


def _passing_later(checks: Sequence[ExecutedCheck]) -> frozenset[str]:
    """Return the tests that pass on the final tree as later commits have them."""
    runs = [check.after for check in checks if check.check.origin == "future"]
    names = {name for after in runs for run in after for name in run.tests}
    return frozenset(
        name
        for name in names
        if any(status_in([run.tests for run in after], name) == "passed" for after in runs)
    )


def decided(
    check: Check,
    before: Sequence[SandboxRun],
    after: Sequence[SandboxRun],
    renewed: Collection[str] = (),
) -> Decision:
    """Return what a check's runs say.

    ``yes``: a test failed in each run on the base and passes in each on the final tree, and none
    that passed in each fails now. ``no``: one that passed fails now. One that is gone is neither.
    Where tests have no names, the exit code stands for all of them together; where they had names
    before the change and have none after it, that it is 0 shows no work. A linter, a
    type checker or a build can say ``no`` alone: that it is content shows no work.

    Args:
        check: that was run.
        before: its runs on the base.
        after: and on the final tree.
        renewed: tests that say nothing where they fail now.
    """
    runs = (*before, *after)
    for end, reason in _ENDS.items():
        if stopped := next((run for run in runs if run.end == end), None):
            return Decision(reason=reason, detail=f"{check.command} ({stopped.limit})")
    if any(_is_untested(check, run) for run in runs):
        return Decision(reason="not_runnable", detail=check.command)
    old, new = [_results(run) for run in before], [_results(run) for run in after]
    lost = any(map(_by_name, old)) and not all(map(_by_name, new))
    if not all(map(_by_name, old)) or not all(map(_by_name, new)):
        old, new = [_exit(run) for run in before], [_exit(run) for run in after]
    loaded = _loads_now(check, before, after)
    old, new = completed(old, new), completed(new, old)
    names = sorted({name for run in (*old, *new) for name in run})
    was, now = ({name: status_in(runs, name) for name in names} for runs in (old, new))
    failing = [name for name in names if was[name] == "passed" and now[name] == "failed"]
    if broken := [name for name in failing if name not in renewed]:
        return Decision(value="no", detail=broken[0] or check.command)
    shaken = [name for name in names if was[name] == "passed" and now[name] == "differs"]
    fixed = [name for name in names if was[name] == "failed" and now[name] == "passed"]
    if (fixed or loaded) and not shaken and not lost and _tests(check):
        return Decision(value="yes", detail=(fixed or loaded)[0] or check.command)
    if flaky := [name for name in names if "differs" in (was[name], now[name])]:
        return Decision(reason="flaky", detail=(shaken or flaky)[0] or check.command)
    return Decision(reason="same_before", detail=check.command)


def _loads_now(
    check: Check, before: Sequence[SandboxRun], after: Sequence[SandboxRun]
) -> list[str]:
    """Return the tests of files that a check brings to both trees, where they pass on the final
    tree and could not even be loaded on the base: each run there failed, and none names them."""
    if not check.added or not all(run.exit_code for run in before):
        return []
    if any(run.exit_code != 0 for run in after):
        return []
    known = {name for run in before for name in run.tests}
    found = [{name for name, status in run.tests.items() if status == "passed"} for run in after]
    return sorted(set.intersection(*found) - known) if found else []


_ENDS: dict[str, NoOutcome] = {"timed_out": "timed_out", "killed": "killed"}


def _results(run: SandboxRun) -> Results:
    return run.tests


def _by_name(results: Results) -> bool:
    return bool(results)


def _exit(run: SandboxRun) -> Results:
    return {"": "passed" if run.exit_code == 0 else "failed"}


def _is_untested(check: Check, run: SandboxRun) -> bool:
    """Return whether a run ended before it tested anything."""
    if run.tests or not run.exit_code:
        return False
    words = next((command.words for command in commands_in(check.command) if command.words), ())
    if check_of(words) == ("test", "pytest") and run.exit_code in _UNTESTED_BY_PYTEST:
        return True
    nothing = pattern("outcomes", "none").search(run.output) is not None
    return run.exit_code in _NOT_FOUND or nothing


def _tests(check: Check) -> bool:
    return kind_of(check.command) == "test"


def kind_of(command: str) -> str:
    """Return what a check's command does: ``test``, ``lint``, ``types``, ``build``, or empty."""
    found = [check_of(each.words) for each in commands_in(command) if each.words]
    kinds = [each[0] for each in found if each]
    return kinds[-1] if kinds else ""


def _scripts(folder: Path) -> dict[str, str]:
    """Return the scripts of a folder's ``package.json``, by name."""
    with suppress(OSError, ValueError, AttributeError):
        scripts = orjson.loads((folder / "package.json").read_bytes()).get("scripts")
        return {str(name): str(text) for name, text in scripts.items()}
    return {}
