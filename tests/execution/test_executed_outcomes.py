"""What rows of executed outcomes do in the product: labels, pages, samples, comparisons."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.execution.comparing import compared_tests
from debrief.execution.executing import ExecutionPlan, Executor
from debrief.execution.model import Check, Execution, SandboxRun, TestStatus
from debrief.execution.preparing import NotPrepared, Prepared
from debrief.execution.sandbox import Sandbox, SandboxLimits
from debrief.execution.store import (
    executed_labels,
    execution_of,
    outcome_shown,
    put_executions,
    results_before_and_after,
)
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.outcomes.store import Label, Labels, all_labels, put_labels, success_labels
from tests.execution.rows import ended, executed, ran
from tests.view.shown import MONDAY, fill, served, session_of, settings_of, words

WEEK = week_of(MONDAY)
FIXED = ran(ended(1, a="failed", b="passed"), ended(0, a="passed", b="passed"))
BROKEN = ran(ended(0, a="passed"), ended(1, a="failed"))


def test_it_decides_before_all_others_and_what_says_nothing_is_no_label(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    fill(lake, [(session_of(name), 0.9) for name in ("fixed", "broken", "silent")])
    put_executions(
        lake,
        WEEK,
        [
            executed("fixed", FIXED, value="yes"),
            executed("broken", BROKEN, value="no"),
            executed("silent", reason="no_check"),
        ],
    )
    merged = Label(session_id="broken", name="success", value="yes", source="pull-request")
    put_labels(lake, Labels(labels=(merged,)))
    put_labels(lake, executed_labels(lake))
    found = success_labels(lake)
    assert {name: success[:2] for name, success in found.items()} == {
        "fixed": (True, "execution"),
        "broken": (False, "execution"),
    }
    details = {label.session_id: label.detail for label in all_labels(lake, ["execution"])}
    assert details == {
        "fixed": "pytest -q: 1 test now passes",
        "broken": "pytest -q: 1 test now fails",
    }
    put_executions(lake, WEEK, [executed("broken", reason="flaky")])
    put_labels(lake, executed_labels(lake))
    assert success_labels(lake)["broken"][:2] == (True, "pull-request")
    kept = execution_of(lake, WEEK, "fixed")
    assert kept == executed("fixed", FIXED, value="yes"), "other sessions' rows stay"


def test_tests_are_compared_by_name_and_those_that_differ_between_equal_runs_say_so() -> None:
    check = ran(
        ended(1, a="passed", b="failed", c="passed", d="passed"),
        ended(1, a="failed", b="passed", c="passed", e="passed"),
        ended(1, a="failed", b="passed", c="failed", e="passed"),
    )
    assert [(test.name, test.before, test.after) for test in compared_tests(check)] == [
        ("a", "passed", "failed"),
        ("b", "failed", "passed"),
        ("c", "passed", "differs"),
        ("d", "passed", ""),
        ("e", "", "passed"),
    ]


def test_a_training_sample_has_the_results_before_and_after_both_trees() -> None:
    found = results_before_and_after(executed("s", FIXED, value="yes"))
    assert found is not None
    before, after = found
    assert before["tree"] == "1" * 40
    assert before["checks"][0]["tests"] == {"a": "failed", "b": "passed"}
    assert after["checks"][0]["exit_code"] == 0
    assert results_before_and_after(executed("s", reason="no_check")) is None


def test_a_page_shows_both_sides_by_test_with_command_base_and_reason(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    lake = Lake(settings.lake)
    many: dict[str, TestStatus] = {f"t{n:03}": "passed" for n in range(300)}
    rows: dict[str, Execution] = {
        "fixed": executed(
            "fixed",
            ran(ended(1, **many, a="failed"), ended(0, **many, a="passed")),
            value="yes",
        ),
        "flaky": executed(
            "flaky",
            ran(ended(0, x="passed"), ended(0, x="passed"), ended(1, x="failed"), command="<b>x"),
            reason="flaky",
            detail="<i>x",
        ),
        "gone": executed("gone", reason="base_gone", tree=None),
    }
    fill(lake, [(session_of(name), 0.9) for name in (*rows, "never")])
    put_executions(lake, WEEK, rows.values())
    with served(settings) as client:
        pages = {name: client.get(f"/sessions/{name}").text for name in (*rows, "never")}
    fixed, flaky = words(pages["fixed"]), words(pages["flaky"])
    assert "From commit bbbbbbbbbbbb, as the transcript has it" in fixed
    assert "its change is rebuilt exactly, as cccccccccccc shows" in fixed
    assert "pytest -q ran in the session · before: 300 passed, 1 failed; after: 301 passed" in fixed
    assert "a failed passed" in fixed
    assert "300 tests that ended as before" in fixed
    assert "Running says nothing: equal runs ended differently (&lt;i&gt;x)." in flaky
    assert "x passed differs" in flaky
    assert "<b>x" not in pages["flaky"]
    assert "the commit that it began from is not in the repository." in words(pages["gone"])
    assert "Run again" not in words(pages["never"])
    said = CliRunner().invoke(app, ["show", "fixed", "--lake", settings.lake])
    assert "a: failed → passed" in said.output, said.output


def test_a_comparison_on_executed_outcomes_leaves_all_others_without_a_verdict(
    tmp_path: Path,
) -> None:
    lake = Lake(str(tmp_path))
    made = [session_of(name) for name in ("ran", "not-run")]
    fill(lake, [(session, 0.9) for session in made])
    put_executions(lake, WEEK, [executed("ran", BROKEN, value="no")])
    put_labels(lake, executed_labels(lake))
    asked = ["leaderboard", "--outcomes", "execution", "--lake", lake.url]
    said = CliRunner().invoke(app, asked)
    assert said.exit_code == 0, said.output
    found = json.loads(CliRunner().invoke(app, [*asked, "--format", "json"]).output)
    counts = [(row["sessions"], row["reviewed"], row["complete"]) for row in found["models"]]
    assert counts == [(2, 1, 0)]
    wrong = CliRunner().invoke(app, ["leaderboard", "--outcomes", "commit", "--lake", lake.url])
    assert wrong.exit_code == 1
    assert "is no source that decides" in wrong.output


def test_a_file_that_could_not_be_loaded_stands_for_its_tests() -> None:
    before: dict[str, TestStatus] = {"tests.cart": "failed", "tests.till::test_b": "passed"}
    after: dict[str, TestStatus] = {"tests.cart::test_a": "passed", "tests.till::test_b": "passed"}
    check = ran(ended(1, **before), ended(0, **after))
    shown = {test.name: (test.before, test.after) for test in compared_tests(check)}
    assert shown["tests.cart::test_a"] == ("failed", "passed")
    assert shown["tests.till::test_b"] == ("passed", "passed")
    assert "tests.cart" not in shown
    row = executed("s", check, value="yes")
    assert outcome_shown(row) == "pytest -q: 1 test now passes"


def test_a_row_stands_until_more_time_or_packages_may_give_another(tmp_path: Path) -> None:
    tree = executed("s").tree
    assert tree is not None
    check = Check(command="pytest -q", origin="session")
    plan = ExecutionPlan(
        repository="shop", tree=tree, checks=(check,), packages=Prepared(key="packages")
    )

    def executor(seconds: float, *, network: bool = False) -> Executor:
        sandbox, limits = Sandbox(program=Path("bwrap")), SandboxLimits(seconds=seconds)
        return Executor(sandbox, tmp_path, tmp_path, limits, str, network=network)

    late = SandboxRun(exit_code=None, end="timed_out", limit="time", seconds=61.0)
    slow = executed("s", ran(late, late), key=plan.key, reason="timed_out")
    assert executor(60).holds(slow, plan)
    assert not executor(300).holds(slow, plan)
    lacking = executed("s", key=plan.key, reason="not_prepared")
    assert executor(300).holds(lacking, plan)
    assert not executor(300, network=True).holds(lacking, plan)
    for other in (
        replace(plan, packages=NotPrepared(missing="packages of uv.lock")),
        replace(plan, tree=replace(tree, final_tree="3" * 40)),
        replace(plan, checks=(replace(check, command="pytest"),)),
    ):
        assert not executor(60).holds(slow, other)
