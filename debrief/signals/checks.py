"""Fold the checks of a session into the last one of each target, with its worth.

A failing check stands until the same one, a wider one, or one that names what failed has passed.
An unknown outcome replaces nothing. A check covers a change only if it could have failed because of
it: it ran after the last edit of what it looks at. A type check of another language and 1,319 green
tests for a README do not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from debrief.signals.check_commands import ANY, COMMIT, CheckRun, language_of
from debrief.signals.check_targets import (
    includes,
    names_failure,
    relative,
    shown,
    tested_folder,
)
from debrief.signals.schema import CheckSignal, Worth

_DOCUMENT = re.compile(
    r"\.(?:md|mdx|markdown|txt|rst|adoc|log|org)$|(?:^|/)(?:LICENSE|CHANGELOG)$", re.I
)
_NODE = frozenset(["npm", "pnpm", "yarn", "bun", "npx", "turbo", "nx", "lerna", "ng"])
_WHOLE_TASK = re.compile(
    r"(?:^|[ /_-])(?:tests?|check|lint|ci|all|verify|validate|types?|type-?check|build)(?:\.sh)?$"
)
_OF_FILE = re.compile(r"(?:FAIL(?:ED)?|ERROR)\s|.*[A-Za-z_][/.][A-Za-z]")
"""A line about a failing file or package; others are about single tests."""
_WORTHS: dict[str, Worth] = {
    "test": "tests",
    "run": "program",
    "lint": "static",
    "types": "static",
    "build": "build",
}


class _Standing(Struct):
    """A check that nothing has replaced so far."""

    run: CheckRun
    is_fixed: bool = False
    """It failed before."""
    mended: frozenset[str] = frozenset()
    """Lines of its failures whose tests have passed since."""


def last_checks(
    runs: Sequence[CheckRun], edits: Mapping[str, int], cwd: str = ""
) -> tuple[CheckSignal, ...]:
    """Return the last check of each kind, tool and target, in the order in which they ran.

    Args:
        runs: the checks of a session, in order.
        edits: position of the last edit by file.
        cwd: the session's folder.
    """
    standing: list[_Standing] = []
    for run in runs:
        here = replace(
            run,
            units=tuple(relative(unit, cwd) for unit in run.units),
            folder=relative(run.folder, cwd),
        )
        standing = _with(standing, here)
    files = {relative(path, cwd): at for path, at in edits.items()}
    kept = [
        each for each in standing if each.run.tool != COMMIT or not each.run.passed or each.is_fixed
    ]
    return tuple(_signal(each, files) for each in sorted(kept, key=lambda each: each.run.place))


def _with(standing: list[_Standing], run: CheckRun) -> list[_Standing]:
    """Return the standing checks after one more."""
    if run.passed is None:
        if any(_is_same(each.run, run) for each in standing):
            return standing
        return [*standing, _Standing(run)]
    kept: list[_Standing] = []
    is_fixed = False
    for each in standing:
        if _is_same(each.run, run) or (run.passed and _is_wider(run, each.run)):
            is_fixed |= bool(run.passed) and (each.run.passed is False or each.is_fixed)
            continue
        if run.passed and each.run.passed is False and _is_kin(run, each.run):
            now = {line for line in each.run.failures if names_failure(run.units, line)}
            is_fixed |= bool(now)
            each = _Standing(each.run, each.is_fixed, each.mended | now)
            if _is_mended(each):
                continue
        kept.append(each)
    return [*kept, _Standing(run, is_fixed)]


def _is_same(one: CheckRun, other: CheckRun) -> bool:
    is_one = _tool(one) == _tool(other) and one.units == other.units
    return is_one and (one.kind == other.kind or one.tool == COMMIT)


def _tool(run: CheckRun) -> str:
    """Return a check's tool; one that repairs what it finds is the same."""
    return re.sub(r"[:-]fix$", "", run.tool)


def _is_wider(run: CheckRun, before: CheckRun) -> bool:
    """Return whether a check looks at all that another looked at."""
    if not includes(run.units, before.units) or not _is_kin(run, before):
        return False
    fewer = run.ran is not None and before.ran is not None and run.ran < before.ran
    return _tool(run) == _tool(before) or not fewer


def _is_kin(run: CheckRun, before: CheckRun) -> bool:
    """Return whether two are the same check by the same tool, or by a task that runs it."""
    if run.kind != before.kind or COMMIT in (run.tool, before.tool):
        return False
    if _tool(run) == _tool(before):
        return True
    tasks = [each for each in (run, before) if ANY in each.languages]
    if run.kind == "run" or len(tasks) != 1 or not _WHOLE_TASK.search(tasks[0].tool):
        return False
    (tool,) = (each for each in (run, before) if each is not tasks[0])
    is_of_node = tasks[0].tool.partition(" ")[0] in _NODE
    return not is_of_node or "javascript" in tool.languages


def _is_mended(each: _Standing) -> bool:
    """Return whether all that failed has passed since, by files or by tests."""
    files = {line for line in each.run.failures if _OF_FILE.match(line)}
    tests = set(each.run.failures) - files
    return any(bool(group) and group <= each.mended for group in (files, tests))


def _signal(each: _Standing, files: Mapping[str, int]) -> CheckSignal:
    run = each.run
    return CheckSignal(
        kind=run.kind,
        tool=run.tool,
        target=shown(run.units),
        worth=_worth(each),
        passed=run.passed,
        ran=run.ran,
        failed=run.failed,
        skipped=run.skipped,
        covers_change=_covers_change(run, files),
        evidence=run.evidence,
    )


def _worth(each: _Standing) -> Worth:
    run = each.run
    if run.passed is None:
        return "nothing"
    return "fixed_test" if each.is_fixed and run.kind == "test" else _WORTHS[run.kind]


def _covers_change(run: CheckRun, files: Mapping[str, int]) -> bool:
    """Return whether a check ran after the last edit of what it looks at.

    Where code was changed, later edits of notes and settings do not count; documents never do.
    """
    code = {path: at for path, at in files.items() if language_of(path)}
    chosen = code or {path: at for path, at in files.items() if not _DOCUMENT.search(path)}
    looked = [at for path, at in chosen.items() if _can_fail_for(run, path, chosen)]
    if not looked:
        return False
    last = max(looked)
    return run.place > last or (run.place == last and not run.is_edited_after)


def _can_fail_for(run: CheckRun, path: str, files: Mapping[str, int]) -> bool:
    """Return whether a check could fail because of a change of a file."""
    language = language_of(path)
    if language and run.kind != "run" and run.languages.isdisjoint((ANY, language)):
        return False
    if run.kind == "lint" and run.tool != COMMIT and any("." in unit for unit in run.units):
        return includes(run.units, [path])
    package = next((unit.partition("@")[2] for unit in run.units if "@" in unit), "")
    package = package.rpartition("/")[2].partition("?")[0]
    if package and any(f"/{package}/" in f"/{each}" for each in files):
        return f"/{package}/" in f"/{path}"
    return run.kind == "run" or includes([tested_folder(_folder(run))], [path])


def _folder(run: CheckRun) -> str:
    """Return the folder that a check works in: of builds and lints, the one that it names."""
    if len(run.units) != 1:
        return run.folder
    unit = run.units[0].partition("?")[0].partition("@")[0].rstrip("/")
    return run.folder if "." in unit.rpartition("/")[2] or unit.startswith("..") else unit
