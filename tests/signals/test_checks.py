"""The last check of each target, and what it is worth."""

from __future__ import annotations

import pytest

from debrief.signals.checks import last_checks
from debrief.signals.extract import session_activity
from debrief.signals.schema import CheckSignal
from tests.signals.scenario import Story

RED, GREEN = (
    "FAILED tests/test_cart.py::test_sum - x\n1 failed, 4 passed in 0.2s",
    "5 passed in 0.2s",
)


def story() -> Story:
    return Story().turn("Fix the cart")


def checks_of(told: Story) -> tuple[CheckSignal, ...]:
    session = told.session()
    facts = session_activity(session)
    return last_checks(facts.checks, facts.edited, session.cwd)


def seen(told: Story) -> list[tuple[str, str, bool | None]]:
    return [(check.tool, check.target, check.passed) for check in checks_of(told)]


def only(told: Story) -> CheckSignal:
    (check,) = checks_of(told)
    return check


def edited(path: str = "cart.py") -> Story:
    return story().edit(path, "x = 1", "x = 2")


@pytest.mark.parametrize(
    ("command", "output", "worth", "counts"),
    [
        ("pytest -q", "4 passed, 1 skipped in 0.2s", "tests", (4, 0, 1)),
        ("pytest -q", "3 skipped in 0.1s", "nothing", (0, 0, 3)),
        ("python cart.py", "6", "program", (None, None, None)),
        ("python -c 'import cart\nassert cart.total() == 3'", "", "program", (None, None, None)),
        ("mypy .", "Success: no issues found in 5 source files", "static", (None, None, None)),
        ("ruff check .", "All checks passed!", "static", (None, None, None)),
        ("python -m compileall .", "Listing '.'", "build", (None, None, None)),
        ("pytest -q | tail", "", "nothing", (None, None, None)),
        ("python test_cart.py", "fine", "program", (None, None, None)),
        ("python test_cart.py", "Ran 3 tests in 0.1s\n\nOK", "tests", (3, 0, 0)),
        ("pytest --collect-only", "5 tests collected", "nothing", (None, None, None)),
    ],
)
def test_a_check_is_worth_what_it_shows(
    command: str, output: str, worth: str, counts: tuple[int | None, ...]
) -> None:
    check = only(edited().run(command, output))
    assert (check.worth, check.ran, check.failed, check.skipped) == (worth, *counts)
    assert check.passed is (None if worth == "nothing" else True)


@pytest.mark.parametrize("first", ["before", "after"])
def test_a_test_that_failed_and_passes_now_is_worth_most(first: str) -> None:
    told = story()
    if first == "before":
        told.run("pytest", RED, "failed").edit("cart.py", "x = 1", "x = 2")
    else:
        told.edit("cart.py", "x = 1", "x = 2").run("pytest", RED, "failed")
    assert only(told.run("pytest", GREEN)).worth == "fixed_test"
    assert only(told.run("pytest -q", GREEN)).worth == "fixed_test"


def test_a_build_of_a_library_does_not_hide_that_of_the_product() -> None:
    told = edited("app/Main.swift")
    told.run("swift build --package-path app | tail", "Main.swift:7:9: error: no type")
    told.run("swift build --package-path libs/x | tail -1", "Build complete! (3.43s)")
    assert seen(told) == [("swift build", "app", False), ("swift build", "libs/x", True)]
    assert [check.covers_change for check in checks_of(told)] == [True, False]


@pytest.mark.parametrize(
    "folder",
    ["cd app && swift build", "cd /home/ada/shop/app && swift build", "swift build --package-path app"],
)  # fmt: skip
def test_a_folder_is_one_however_it_is_named(folder: str) -> None:
    told = edited("app/a.swift").run("swift build --package-path app", "error: no", "failed")
    assert seen(told.run(folder, "Build complete!")) == [("swift build", "app", True)]


def test_an_unknown_outcome_replaces_nothing() -> None:
    told = edited().run("pytest", RED, "failed").run("pytest | grep -c x", "")
    assert seen(told) == [("pytest", "", False)]
    assert only(edited().run("pytest | grep -c x", "")).worth == "nothing"


def test_a_narrower_run_replaces_a_failure_only_where_it_names_it() -> None:
    told = edited().run("pytest", RED, "failed")
    other = told.run("pytest tests/test_user.py", "3 passed in 0.1s")
    assert seen(other) == [("pytest", "", False), ("pytest", "tests/test_user.py", True)]
    named = other.run("pytest tests/test_cart.py", "2 passed in 0.1s")
    assert [check.passed for check in checks_of(named)] == [True, True]
    assert checks_of(named)[-1].worth == "fixed_test"


def test_several_narrower_runs_together_replace_a_failure() -> None:
    failures = "--- FAIL: TestSum (0.0s)\n--- FAIL: TestTax (0.0s)\nFAIL\tshop\t0.1s"
    told = edited("cart.go").run("go test ./...", failures, "failed")
    told.run("go test ./... -run TestSum", "ok  \tshop\t0.1s")
    assert ("go test", "", False) in seen(told)
    told.run("go test ./... -run TestTax", "ok  \tshop\t0.1s")
    assert all(check.passed for check in checks_of(told))


def test_a_wider_run_replaces_narrower_failures() -> None:
    told = edited().run("pytest tests/test_cart.py -k sum", RED, "failed")
    told.run("cd tests && pytest test_user.py", RED, "failed")
    check = only(told.run("pytest", GREEN))
    assert (check.target, check.passed, check.worth) == ("", True, "fixed_test")


def test_a_task_that_passes_replaces_the_failure_of_the_tool_that_it_runs() -> None:
    told = edited("cart.ts").run("npx vitest run cart.test.ts", " Tests  1 failed (1)", "failed")
    assert seen(told.run("npm test", " Tests  9 passed (9)")) == [("npm test", "", True)]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("npm test", " Tests  9 passed (9)"),
        ("make test", "2 passed in 0.1s"),
        ("make test-docs", "9 passed in 0.1s"),
        ("cd api && pytest", "9 passed in 0.1s"),
        ("pytest tests/test_user.py", "9 passed in 0.1s"),
        ("mypy .", "Success: no issues found"),
    ],
)
def test_another_check_hides_no_failure(command: str, output: str) -> None:
    told = edited().run("pytest", RED, "failed").run(command, output)
    assert seen(told)[0] == ("pytest", "", False)


def test_a_check_before_the_last_edit_does_not_cover_it() -> None:
    told = edited().run("pytest", GREEN)
    assert only(told).covers_change
    assert only(told.edit("plan.md", "a", "b").run("echo x > notes.txt")).covers_change
    assert not only(told.edit("cart.py", "x = 2", "x = 3")).covers_change


def test_a_test_in_the_call_of_the_edit_covers_what_was_edited_before_it() -> None:
    told = story().run("sed -i s/1/2/ cart.py && pytest -q", GREEN)
    assert only(told).covers_change
    assert not only(story().run("pytest -q; sed -i s/1/2/ cart.py", GREEN)).covers_change
    assert only(edited().run("pytest -q | tee out.txt", GREEN)).covers_change


@pytest.mark.parametrize(
    ("path", "command", "covers"),
    [
        ("README.md", "pytest", False),
        ("cart.py", "cargo check", False),
        ("web/logo.tsx", "cd api && npm test", False),
        ("web/logo.tsx", "cd web && npm test", True),
        ("api/cart.py", "cd api/tests && pytest", True),
        ("crates/core/a.rs", "cargo test -p core", True),
        ("settings.toml", "pytest", True),
        ("cart/sum.go", "gofmt -l cart/sum.go", True),
        ("cart/tax.go", "gofmt -l cart/sum.go", False),
        ("/home/ada/shop/web/a.ts", "cd web && npx tsc", True),
    ],
)
def test_a_check_covers_only_what_it_looks_at(path: str, command: str, covers: bool) -> None:
    assert only(edited(path).run(command)).covers_change is covers


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("pytest -n 4 --tb=short -q tests", ""),
        ("python3 -m pytest tests/a.py -v", "tests/a.py"),
        ("uv run --directory api pytest -k 'sum or tax'", "api sum or tax"),
        ("cd api && pytest ../web/tests/a.py::test_sum", "web/tests/a.py::test_sum"),
        ("cargo test -p core retry -- --nocapture", "core retry"),
        ("cargo test --manifest-path libs/x/Cargo.toml", "libs/x"),
        ("cargo test --workspace", ""),
        ("npm --prefix web test", "web"),
        ("npm test --workspace=packages/a", "packages/a"),
        ("pnpm --filter web test", "web"),
        ("npx vitest run src/a.test.ts -t sum", "src/a.test.ts sum"),
        ("npx vitest run --reporter verbose", ""),
        ("npx tsc -p web/tsconfig.json --noEmit", "web"),
        ("go test ./cart/... -run TestTotal -count=1", "cart TestTotal"),
        ("go build -o bin/shop ./cmd/shop", "cmd/shop"),
        ("make -C docs build", "docs"),
        ("mvn -pl core test -Dtest=ATest", "core ATest"),
        ("./gradlew :app:test --tests shop.ATest", "app shop.ATest"),
        ("swift test --package-path libs/x --filter Map", "libs/x Map"),
        ("npx eslint src --ext .ts", ""),
        ("git diff --check main...HEAD", ""),
    ],
)
def test_a_target_is_what_a_command_names(command: str, target: str) -> None:
    assert only(story().run(command)).target == target


def test_where_nothing_was_changed_no_check_covers_it() -> None:
    assert not only(story().run("pytest", GREEN)).covers_change


def test_of_a_chain_the_check_that_failed_is_told_and_the_others_did_not_run() -> None:
    output = "[lint:go] 2 issues:\n[lint:go] ERROR task failed"
    told = edited("cart.go").run("mise run lint && mise run test", output, "failed")
    assert seen(told) == [("mise lint", "", False), ("mise test", "", None)]
    second = edited("cart.go").run(
        "mise run test && mise run lint", "ok  \tshop\t0.1s\n7 issues:", "failed"
    )
    assert seen(second) == [("mise test", "", True), ("mise lint", "", False)]
    reached = edited("cart.go").run(
        "go build ./... && go test ./...", "--- FAIL: TestA\nFAIL", "failed"
    )
    assert seen(reached) == [("go build", "", True), ("go test", "", False)]


def test_what_stands_between_marks_is_of_its_own_check() -> None:
    command = "echo '== fmt' && gofmt -l . | head && echo '== test' && go test ./... | tail -2"
    told = edited("cart.go").run(command, "== fmt\ncart.go\n== test\nok  \tshop\t0.1s")
    assert seen(told) == [("gofmt", "", False), ("go test", "", True)]


def test_a_refused_commit_stands_until_one_goes_well() -> None:
    told = edited().run("git commit -am x", "FAILED: git commit\n 6 fail\n 3 pass")
    assert seen(told) == [("git commit", "", False)]
    assert seen(told.run("git commit -am x", "[main 1a2b3c4] x")) == [("git commit", "", True)]
    assert seen(edited().run("git commit -am x", "[main 1a2b3c4] x")) == []


def test_a_filter_that_takes_in_another_replaces_its_failure() -> None:
    told = edited("cart.go").run(
        "go test ./a -run '^TestCartSum$'", "--- FAIL: TestCartSum", "failed"
    )
    assert seen(told.run("go test ./a -run 'TestCart|TestTax'", "ok  \tshop/a\t0.1s"))[0][2]


def test_a_lint_that_mends_what_it_finds_replaces_the_failing_one() -> None:
    told = edited("cart.ts").run("bun run lint", "Found 1 error.", "failed")
    told.run(
        "bun run lint:fix | tail -5",
        "$ biome check --write\nChecked 286 files in 1ms. Fixed 1 file.",
    )
    assert seen(told) == [("bun lint:fix", "", True)]
