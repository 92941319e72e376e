"""Checks on a base and a final tree: what the difference says, and when it says nothing."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from debrief.execution.model import Check, ExecutedCheck, RunEnd, SandboxRun, TestStatus
from debrief.execution.preparing import Prepared
from debrief.execution.running import decided, decided_by, execute_check
from debrief.execution.sandbox import Mount, SandboxLimits
from tests.execution.sandboxes import sandbox_or_skip

PYTEST = Prepared(
    key="the tests' own pytest",
    mounts=(Mount(source=Path(sysconfig.get_path("purelib")), target="/deps/site"),),
    environment={"PYTHONPATH": "/deps/site", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
)
CHECK = Check(command="python3 -m pytest", origin="session")
_TESTS = """
from sums import add
def test_adds():
    assert add(1, 2) == 3
def test_zero():
    assert add(0, 0) == 0
"""


def _tree(folder: Path, code: str) -> Path:
    folder.mkdir()
    (folder / "sums.py").write_text(code)
    (folder / "test_sums.py").write_text(_TESTS)
    return folder


def test_a_session_that_mends_a_function_is_seen_by_its_tests(tmp_path: Path) -> None:
    sandbox = sandbox_or_skip()
    base = _tree(tmp_path / "base", "def add(a, b):\n    return a - b\n")
    final = _tree(tmp_path / "final", "def add(a, b):\n    return a + b\n")
    written = Check(
        command="python3 -m pytest test_more.py",
        origin="written",
        added={
            "test_more.py": "from sums import add, double\n\ndef test_double(): assert double(2) == 4\n"
        },
    )

    def executed(check: Check, old: Path, new: Path) -> ExecutedCheck:
        limits = SandboxLimits(seconds=60)
        return execute_check(old, new, check, PYTEST, sandbox, lambda text: text.upper(), limits)

    mended = executed(CHECK, base, final)
    assert [run.tests for run in mended.before] == [
        {"test_sums::test_adds": "failed", "test_sums::test_zero": "passed"}
    ] * 2
    said = decided(mended.check, mended.before, mended.after)
    assert (said.value, said.detail) == ("yes", "test_sums::test_adds")
    assert "1 FAILED, 1 PASSED" in mended.before[0].output

    broken = executed(CHECK, final, base)
    assert decided(broken.check, broken.before, broken.after).value == "no"

    # Neither tree has what this test imports: it cannot tell them apart.
    lost = executed(written, base, final)
    assert lost.after[0].tests == {"test_more": "failed"}
    assert decided(lost.check, lost.before, lost.after).reason == "same_before"
    (final / "sums.py").write_text("def add(a, b): return a + b\ndef double(a): return 2 * a\n")
    found = executed(written, base, final)
    assert decided(found.check, found.before, found.after).value == "yes"

    missing = executed(Check(command="nowhere-to-be-found", origin="session"), base, final)
    assert len(missing.before) == len(missing.after) == 1
    assert decided_by([missing]).reason == "not_runnable"
    assert decided_by([missing, mended]).value == "yes"
    assert decided_by([mended, broken]).value == "no"
    assert decided_by([]).reason == "no_check"
    assert not (base / ".pytest_cache").exists()


def _run(
    exit_code: int | None = 0,
    end: RunEnd = "ended",
    output: str = "",
    **tests: TestStatus,
) -> SandboxRun:
    named = {f"t::{name}": status for name, status in tests.items()}
    return SandboxRun(exit_code=exit_code, end=end, seconds=1.0, tests=named, output=output)


_OK, _BAD = _run(a="passed", b="passed"), _run(1, a="passed", b="failed")
_LOST = SandboxRun(exit_code=2, end="ended", seconds=1.0, tests={"t": "failed"})


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        pytest.param((_BAD, _BAD), (_OK, _OK), "yes", id="one-failed-and-passes"),
        pytest.param((_OK, _OK), (_BAD, _BAD), "no", id="one-passed-and-fails"),
        pytest.param(
            (_BAD, _BAD),
            (_run(1, a="failed", b="passed"),) * 2,
            "no",
            id="one-works-and-another-broke",
        ),
        pytest.param((_OK, _OK), (_OK, _OK), "same_before", id="passes-on-both"),
        pytest.param((_BAD, _BAD), (_BAD, _BAD), "same_before", id="fails-on-both"),
        pytest.param((_BAD, _BAD), (_run(0),) * 2, "same_before", id="the-tests-are-gone"),
        pytest.param((_OK, _OK), (_run(1),) * 2, "no", id="the-tests-do-not-start"),
        pytest.param((_run(1),) * 2, (_OK, _OK), "yes", id="the-tests-start-now"),
        pytest.param((_BAD, _OK), (_OK, _OK), "flaky", id="differs-on-the-base"),
        pytest.param((_OK, _OK), (_BAD, _OK), "flaky", id="differs-on-the-final-tree"),
        pytest.param(
            (_run(1, a="failed", b="passed"),) * 2,
            (_run(a="passed", b="passed"), _run(1, a="passed", b="failed")),
            "flaky",
            id="one-works-and-another-is-shaken",
        ),
        pytest.param((_LOST, _LOST), (_OK, _OK), "yes", id="file-that-could-not-be-loaded"),
        pytest.param((_OK, _OK), (_LOST, _LOST), "no", id="file-that-cannot-be-loaded-now"),
        pytest.param((_OK, _OK), (_run(a="passed"),) * 2, "same_before", id="one-is-gone"),
        pytest.param(
            (_run(a="passed"),) * 2, (_OK, _OK), "same_before", id="a-new-one-shows-nothing-new"
        ),
        pytest.param((_run(1),) * 2, (_run(0),) * 2, "yes", id="exit-codes-alone"),
        pytest.param((_run(0),) * 2, (_run(1),) * 2, "no", id="exit-codes-alone-broke"),
        pytest.param((_run(1), _run(0)), (_run(0),) * 2, "flaky", id="exit-codes-that-differ"),
        pytest.param((_run(127),), (_run(0),), "not_runnable", id="program-not-found"),
        pytest.param((_run(5),), (_run(5),), "not_runnable", id="pytest-found-no-tests"),
        pytest.param((_run(None, "timed_out"),), (_OK,), "timed_out", id="time-is-over"),
        pytest.param((_OK,), (_run(None, "killed"),), "killed", id="killed"),
    ],
)
def test_two_runs_of_each_tree_decide(
    before: tuple[SandboxRun, ...], after: tuple[SandboxRun, ...], said: str
) -> None:
    decision = decided(Check(command="pytest", origin="session"), before, after)
    assert (decision.value or decision.reason) == said


@pytest.mark.parametrize("command", ["ruff check .", "mypy src", "npm run lint"])
def test_a_linter_shows_what_broke_and_never_that_work_is_done(command: str) -> None:
    check = Check(command=command, origin="session")
    clean, unclean = (_run(0),) * 2, (_run(1),) * 2
    assert decided(check, clean, unclean).value == "no"
    assert decided(check, unclean, clean).reason == "same_before"


@pytest.mark.parametrize(
    ("changed", "said"),
    [("sums.py", "yes"), ("tests/test_sums.py", "tests_changed"), ("conftest.py", "tests_changed")],
)
def test_a_session_that_changes_a_test_until_it_passes_has_done_nothing(
    changed: str, said: str
) -> None:
    mended = ExecutedCheck(check=CHECK, before=(_BAD, _BAD), after=(_OK, _OK))
    over_both = Check(command="pytest", origin="written", added={changed: "def test_a(): ..."})
    same = ExecutedCheck(check=over_both, before=(_OK, _OK), after=(_OK, _OK))
    decision = decided_by([mended, same], [changed])
    assert (decision.value or decision.reason) == said
    works = ExecutedCheck(check=over_both, before=(_BAD, _BAD), after=(_OK, _OK))
    assert decided_by([mended, works], [changed]).value == "yes"


@pytest.mark.parametrize(
    "changed",
    [
        *("sitecustomize.py", "a.pth", "pytest.ini", "unittest/__main__.py", "random.py"),
        *("src/json/__init__.py", "_pytest/x.py", "node_modules/.bin/df", "jest.config.js"),
        *("web/node_modules/jest/x.js", "calc.py"),
    ],
)
def test_what_a_test_program_loads_shows_no_work_even_by_tests_put_over_both_trees(
    tmp_path: Path, changed: str
) -> None:
    (tmp_path / "calc.py").write_text("import unittest\nunittest.TestCase.assertEqual = print\n")
    over_both = Check(command="pytest", origin="written", added={"test_a.py": ""})
    works = ExecutedCheck(check=over_both, before=(_BAD, _BAD), after=(_OK, _OK))
    assert decided_by([works], [changed], tmp_path).reason == "tests_changed"
    broken = ExecutedCheck(check=over_both, before=(_OK, _OK), after=(_BAD, _BAD))
    assert decided_by([broken], [changed], tmp_path).value == "no"


@pytest.mark.parametrize("changed", ["sums.py", "pkg/types.py", "docs/pytest.md", "web/random.ts"])
def test_other_changes_are_judged_by_their_tests(tmp_path: Path, changed: str) -> None:
    (tmp_path / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    works = ExecutedCheck(check=CHECK, before=(_BAD, _BAD), after=(_OK, _OK))
    assert decided_by([works], [changed], tmp_path).value == "yes"


def test_tests_that_cannot_be_loaded_before_the_change_fail_there() -> None:
    brought = Check(command="pytest", origin="written", added={"t.py": "from sums import new"})
    unloaded, whole = _run(1, a="passed"), _run(0, a="passed", b="passed")
    assert decided(brought, (unloaded,) * 2, (whole,) * 2).value == "yes"
    own = Check(command="pytest", origin="session")
    assert decided(own, (unloaded,) * 2, (whole,) * 2).reason == "same_before"
    half = _run(1, a="passed", b="passed")
    assert decided(brought, (unloaded,) * 2, (half,) * 2).reason == "same_before"


def test_a_test_that_a_later_commit_adapts_to_the_change_is_not_broken() -> None:
    """As when the shown times get seconds, and the test of the old times is mended afterwards."""
    old = ExecutedCheck(check=CHECK, before=(_OK, _OK), after=(_BAD, _BAD))
    assert decided_by([old]).value == "no"
    later = Check(command="pytest t.py", origin="future", added={"t.py": "def test_b(): ..."})
    adapted = ExecutedCheck(check=later, before=(_BAD, _BAD), after=(_OK, _OK))
    assert decided_by([old, adapted]).value == "yes"
    still = ExecutedCheck(check=later, before=(_BAD, _BAD), after=(_BAD, _BAD))
    assert decided_by([old, still]).value == "no"
    more = ExecutedCheck(
        check=CHECK, before=(_run(c="passed"),) * 2, after=(_run(1, c="failed"),) * 2
    )
    assert decided_by([old, adapted, more]).value == "no"
