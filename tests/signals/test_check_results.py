"""What test runners and linters print, and what it counts for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.signals.check_commands import CheckRun, checks_in
from debrief.signals.check_results import clean, read_test_result
from tests.signals.scenario import Story

Counts = tuple[bool | None, int | None, int | None, int | None]
"""Passed, ran, failed, skipped."""

RUNNERS: dict[str, tuple[str, Counts]] = {
    "pytest": ("==== 1 failed, 4 passed, 2 skipped, 3 warnings in 0.18s ====", (False, 5, 1, 2)),
    "pytest, quiet": ("....  [100%]\n4 passed in 0.10s", (True, 4, 0, 0)),
    "pytest, an error in a fixture": ("==== 2 passed, 1 error in 0.30s ====", (False, 3, 1, 0)),
    "pytest, no import": (
        "collected 0 items / 1 error\nERROR test_a.py\n!!!! Interrupted: 1 error during collection !!!!\n"
        "==== 1 error in 0.30s ====",
        (False, 1, 1, 0),
    ),
    "pytest, skipped": ("==== 1 skipped, 3 deselected in 0.12s ====", (None, 0, 0, 1)),
    "pytest, deselected": ("==== 35 deselected in 0.24s ====", (None, None, None, None)),
    "pytest, nothing": (
        "collected 0 items\n\n==== no tests ran in 0.01s ====",
        (None, None, None, None),
    ),
    "pytest, expected failures": ("=== 1 xfailed, 2 xpassed in 0.1s ===", (True, 2, 0, 1)),
    "pytest, coverage too low": (
        "TOTAL 100 22 78%\nFAIL Required test coverage of 80% not reached. Total coverage: 78%\n"
        "5 passed in 0.1s",
        (False, 5, 0, 0),
    ),
    "unittest": (
        ".sFx\nFAIL: test_c (ut.T.test_c)\nRan 4 tests in 0.0s\n\n"
        "FAILED (failures=1, skipped=1, expected failures=1)",
        (False, 2, 1, 2),
    ),
    "unittest, passing": ("Ran 3 tests in 0.001s\n\nOK", (True, 3, 0, 0)),
    "unittest, skipped": ("s\nRan 1 test in 0.000s\n\nOK (skipped=1)", (None, 0, 0, 1)),
    "unittest, nothing": ("Ran 0 tests in 0.000s\n\nNO TESTS RAN", (None, 0, 0, 0)),
    "unittest, nothing, before 3.12": ("Ran 0 tests in 0.000s\n\nOK", (None, 0, 0, 0)),
    "cargo": (
        "test tests::b ... FAILED\n\n"
        "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\n"
        "error: test failed, to rerun pass `--lib`",
        (False, 2, 1, 1),
    ),
    "cargo, several targets": (
        "test result: ok. 141 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out\n"
        "   Doc-tests shop\nrunning 0 tests\n"
        "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        (True, 141, 0, 2),
    ),
    "cargo, a target of several fails": (
        "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n"
        "test result: ok. 9 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        (False, 13, 1, 0),
    ),
    "cargo, filtered out": (
        "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 35 filtered out",
        (None, 0, 0, 0),
    ),
    "cargo, does not compile": (
        "error[E0425]: cannot find value `x`\nerror: could not compile `shop` (lib test)",
        (False, None, None, None),
    ),
    "nextest": (
        "     Summary [   0.134s] 3 tests run: 2 passed, 1 failed, 4 skipped",
        (False, 3, 1, 4),
    ),
    "go": ("ok  \tshop/cart\t0.1s\n?   \tshop/cmd\t[no test files]", (True, None, None, None)),
    "go, failing": (
        "--- FAIL: TestTotal (0.00s)\n    sum_test.go:9: 1 != 2\nFAIL\nFAIL\tshop/cart\t0.1s\n"
        "ok  \tshop/user\t0.2s",
        (False, None, 1, None),
    ),
    "go, does not build": (
        "# shop/cart\n./sum.go:3:1: undefined: x\nFAIL\tshop/cart [build failed]",
        (False, None, None, None),
    ),
    "go -v": (
        "=== RUN   TestA\n=== RUN   TestA/one\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/one (0.00s)\n"
        "    --- SKIP: TestA/two (0.00s)\n--- PASS: TestB (0.00s)\nPASS\nok  \tshop\t0.1s",
        (True, 2, 0, 1),
    ),
    "go -v, skipped": (
        "=== RUN   TestLogin\n--- SKIP: TestLogin (0.00s)\nPASS\nok  \tshop/e2e\t0.31s",
        (None, 0, 0, 1),
    ),
    "go -v, all below skipped": (
        "=== RUN   TestLogin\n--- PASS: TestLogin (0.00s)\n    --- SKIP: TestLogin/chrome (0.00s)\nPASS\n"
        "ok  \tshop/e2e\t0.31s",
        (None, 0, 0, 1),
    ),
    "go, nothing to run": (
        "testing: warning: no tests to run\nPASS\nok  \tshop\t0.1s [no tests to run]",
        (None, None, None, None),
    ),
    "go, no files": ("?   \tshop/cmd\t[no test files]", (None, None, None, None)),
    "go -json": (
        '{"Action":"pass","Package":"shop","Test":"TestA"}\n'
        '{"Action":"fail","Package":"shop","Test":"TestB"}\n{"Action":"fail","Package":"shop"}',
        (False, 2, 1, 0),
    ),
    "gotestsum": ("DONE 12 tests, 1 skipped, 2 failures in 0.5s", (False, 11, 2, 1)),
    "gotestsum, passing": ("DONE 12 tests in 0.5s", (True, 12, 0, 0)),
    "jest": (
        "Test Suites: 1 failed, 2 passed, 3 total\nTests:       1 failed, 2 skipped, 4 passed, 7 total\n"
        "Snapshots:   0 total\nTime:        1.5 s",
        (False, 5, 1, 2),
    ),
    "jest, a file that does not load": (
        "Test Suites: 1 failed, 2 passed, 3 total\nTests:       12 passed, 12 total",
        (False, 12, 0, 0),
    ),
    "jest, nothing": ("No tests found, exiting with code 1", (None, None, None, None)),
    "vitest": (
        " Test Files  2 passed (2)\n      Tests  224 passed | 1 skipped (225)\n   Duration  1.2s",
        (True, 224, 0, 1),
    ),
    "vitest, failing": (
        " FAIL  src/a.test.ts > sum\n Test Files  1 failed (1)\n      Tests  1 failed | 3 passed (4)",
        (False, 4, 1, 0),
    ),
    "vitest, nothing": ("No test files found, exiting with code 1", (None, None, None, None)),
    "vitest, in a workspace": (
        "web:test:  Test Files  2 passed (2)\nweb:test:       Tests  7 passed (7)\n"
        "api:test:       Tests  1 failed | 2 passed (3)",
        (False, 10, 1, 0),
    ),
    "mocha": ("  4 passing (12ms)\n  2 pending\n  1 failing\n\n  1) sum", (False, 5, 1, 2)),
    "mocha, skipped": ("  0 passing (2ms)\n  2 pending", (None, 0, 0, 2)),
    "node": (
        "# tests 4\n# suites 0\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 1\n# todo 1\n# duration_ms 315.3",
        (False, 2, 1, 2),
    ),
    "node, spec": ("ℹ tests 2\nℹ pass 2\nℹ fail 0\nℹ skipped 0\nℹ todo 0", (True, 2, 0, 0)),
    "node, filtered": ("# tests 4\n# pass 0\n# fail 0\n# skipped 4\n# todo 0", (None, 0, 0, 4)),
    "bun": (
        " 1226 pass\n 3 skip\n 0 fail\nRan 1229 tests across 56 files. [751.00ms]",
        (True, 1226, 0, 3),
    ),
    "bun, failing": (" 1392 pass\n 6 fail\nRan 1398 tests across 56 files.", (False, 1398, 6, 0)),
    "deno": ("ok | 5 passed (2 steps) | 0 failed | 1 ignored (10ms)", (True, 5, 0, 1)),
    "deno, failing": ("FAILED | 2 passed | 1 failed (10ms)", (False, 3, 1, 0)),
    "rspec": ("6 examples, 1 failure, 2 pending", (False, 4, 1, 2)),
    "rspec, nothing": ("0 examples, 0 failures", (None, 0, 0, 0)),
    "minitest": ("6 runs, 12 assertions, 1 failures, 1 errors, 2 skips", (False, 4, 2, 2)),
    "phpunit": ("OK (12 tests, 30 assertions)", (True, 12, 0, 0)),
    "phpunit, failing": (
        "FAILURES!\nTests: 5, Assertions: 6, Failures: 1, Skipped: 1.",
        (False, 4, 1, 1),
    ),
    "phpunit, nothing": ("No tests executed!", (None, None, None, None)),
    "pest": ("  Tests:    1 failed, 2 skipped, 5 passed (7 assertions)", (False, 6, 1, 2)),
    "maven": (
        "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in ATest\n"
        "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 1, Time elapsed: 0.1 s -- in BTest\n"
        "[ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 1\n[INFO] BUILD FAILURE",
        (False, 4, 1, 1),
    ),
    "maven, passing": (
        "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS",
        (True, 5, 0, 0),
    ),
    "maven, skipped": ("[INFO] Tests are skipped.\n[INFO] BUILD SUCCESS", (None, None, None, None)),
    "gradle": ("BUILD SUCCESSFUL in 3s\n3 actionable tasks: 3 executed", (True, None, None, None)),
    "gradle, failing": (
        "CartTest > total FAILED\n\n5 tests completed, 1 failed, 1 skipped\n\nBUILD FAILED in 3s",
        (False, 4, 1, 1),
    ),
    "dotnet": (
        "Passed!  - Failed:     0, Passed:     5, Skipped:     1, Total:     6, Duration: 12 ms - a.dll",
        (True, 5, 0, 1),
    ),
    "dotnet, two assemblies": (
        "Failed!  - Failed:     2, Passed:     5, Skipped:     0, Total:     7, Duration: 1 s - a.dll\n"
        "Passed!  - Failed:     0, Passed:     9, Skipped:     0, Total:     9, Duration: 1 s - b.dll",
        (False, 16, 2, 0),
    ),
    "dotnet 9": (
        "Test summary: total: 5, failed: 0, succeeded: 4, skipped: 1, duration: 1.2s",
        (True, 4, 0, 1),
    ),
    "swift": (
        "Executed 5 tests, with 0 failures (0 unexpected) in 0.1 (0.1) seconds\n"
        "Executed 1604 tests, with 2 tests skipped and 1 failure (0 unexpected) in 7.7 (7.8) seconds",
        (False, 1602, 1, 2),
    ),
    "swift testing": (
        "Executed 0 tests, with 0 failures (0 unexpected) in 0.0 (0.0) seconds\n"
        "✔ Test run with 5 tests in 2 suites passed after 0.1 seconds.",
        (True, 5, 0, 0),
    ),
    "swift testing, failing": (
        "✘ Test run with 5 tests failed after 0.1 seconds with 1 issue.",
        (False, 5, 1, 0),
    ),
    "xcodebuild": (
        "Executed 3 tests, with 0 failures (0 unexpected) in 0.1 (0.1) seconds\n** TEST SUCCEEDED **",
        (True, 3, 0, 0),
    ),
    "xcodebuild, failing": ("** TEST FAILED **", (False, None, None, None)),
    "ctest": ("92% tests passed, 1 tests failed out of 12", (False, 12, 1, 0)),
    "ctest, nothing": ("No tests were found!!!", (None, None, None, None)),
    "bats": ("3 tests, 1 failure, 1 skipped", (False, 2, 1, 1)),
    "tap": ("1..3\nok 1 a\nnot ok 2 b\nok 3 c # skip no net", (False, 2, 1, 1)),
    "prove": ("All tests successful.\nFiles=3, Tests=12,  0 wallclock secs\nResult: PASS", (True, 12, 0, 0)),
    "mix": ("2 doctests, 5 tests, 0 failures, 1 skipped", (True, 6, 0, 1)),
    "mix, nothing": ("There are no tests to run", (None, None, None, None)),
    "flutter": ("00:01 +3: a\n00:02 +11 ~1 -2: Some tests failed.", (False, 13, 2, 1)),
    "flutter, passing": ("00:01 +1: a\n00:02 +5: All tests passed!", (True, 5, 0, 0)),
    "playwright": ("  2 skipped\n  3 passed (5.2s)", (True, 3, 0, 2)),
    "ginkgo": (
        "Ran 5 of 6 Specs in 0.001 seconds\nSUCCESS! -- 5 Passed | 0 Failed | 0 Pending | 1 Skipped",
        (True, 5, 0, 1),
    ),
    "behave": (
        "1 feature passed, 0 failed, 0 skipped\n3 scenarios passed, 1 failed, 0 skipped\n"
        "10 steps passed, 1 failed, 0 skipped",
        (False, 4, 1, 0),
    ),
    "ScalaTest": (
        "[info] Tests: succeeded 5, failed 0, canceled 0, ignored 1, pending 0",
        (True, 5, 0, 1),
    ),
    "JUnit console": (
        "[         5 tests found           ]\n[         1 tests skipped         ]\n"
        "[         4 tests successful      ]\n[         0 tests failed          ]",
        (True, 4, 0, 1),
    ),
    "a script of its own": ("12/12 tests passed", (True, 12, 0, 0)),
    "a script of its own, failing": ("Passed: 11\nFailed: 1", (False, 12, 1, 0)),
    "a task behind its tests": (
        "5 passed in 0.1s\nmake: *** [Makefile:3: test] Error 1",
        (False, 5, 0, 0),
    ),
    "checks elsewhere": ("Lint\tpass\t11s\turl\nTest\tfail\t2m\turl", (False, None, None, None)),
    "checks elsewhere, waited for": (
        "Test\tpending\t0\turl\nLint\tpass\t11s\turl\nLint\tpass\t11s\turl\nTest\tpass\t2m\turl",
        (True, None, None, None),
    ),
    "checks elsewhere, that run": ("Lint\tpass\t1s\turl\nTest\tpending\t0\turl", (None, None, None, None)),
    "a task runner's labels": (
        "[test:ci] ok  \tshop/cart\t0.1s\n[test:ci] Finished in 2s",
        (True, None, None, None),
    ),
    "a runner that is not there": ("bash: pytest: command not found", (None, None, None, None)),
}  # fmt: skip


@pytest.mark.parametrize(("output", "expected"), RUNNERS.values(), ids=RUNNERS)
def test_a_runner_says_what_ran_failed_and_was_skipped(output: str, expected: Counts) -> None:
    result = read_test_result(clean(output), None)
    assert (result.passed, result.ran, result.failed, result.skipped) == expected


@pytest.mark.parametrize(("output", "expected"), RUNNERS.values(), ids=RUNNERS)
def test_an_exit_status_of_success_hides_no_count(output: str, expected: Counts) -> None:
    assert read_test_result(clean(output), True).passed is expected[0]


PASSING = [output for output, (passed, *_) in RUNNERS.values() if passed]
FAILING = [output for output, (passed, *_) in RUNNERS.values() if passed is False]
EMPTY = [output for output, (passed, ran, *_) in RUNNERS.values() if passed is None and ran == 0]
statuses = st.sampled_from([True, None])


@given(
    st.lists(st.sampled_from(PASSING + EMPTY)),
    st.sampled_from(FAILING),
    st.lists(st.sampled_from(PASSING + EMPTY)),
    statuses,
)
def test_a_failing_count_is_never_hidden(
    before: list[str], failing: str, after: list[str], status: bool | None
) -> None:
    output = "\n\n".join([*before, failing, *after])
    assert read_test_result(clean(output), status).passed is False


@given(st.lists(st.sampled_from(EMPTY), min_size=1), statuses)
def test_what_ran_no_test_never_passes(empty: list[str], status: bool | None) -> None:
    assert read_test_result(clean("\n\n".join(empty)), status).passed is None


@pytest.mark.parametrize(
    ("output", "quote"),
    [
        (RUNNERS["cargo, several targets"][0], "test result: ok. 141 passed"),
        ("Executed 9 tests, with 0 failures (0 unexpected)\nfatal: no such path", "fatal: no such"),
        (" 1392 pass\n 6 fail\n}", "6 fail"),
        ("5 passed in 0.1s\n]\n", "5 passed in 0.1s"),
        ("ok  \tshop/cart\t0.1s\n?   \tshop/cmd\t[no test files]", "ok shop/cart 0.1s"),
    ],
)
def test_the_line_that_tells_is_quoted(output: str, quote: str) -> None:
    assert read_test_result(clean(output), None).quote.startswith(quote)


def check(command: str, output: str = "", status: str = "ok") -> CheckRun:
    call = Story().turn("Fix it").make("Bash", output, status, command=command)
    found = checks_in(call, turn=1, place=0, failed=status == "failed", changed=(), known=())
    (run,) = found
    return run


@pytest.mark.parametrize(
    ("command", "output", "status", "passed"),
    [
        ("gofmt -l .", "", "ok", True),
        ("gofmt -l .", "cart/sum.go", "ok", False),
        ("gofmt -l . | head", "", "ok", True),
        ("gofmt -w sum.go && gofmt -l sum.go && echo clean", "clean", "ok", True),
        ("npx prettier --check src", "Checking formatting...\n[warn] src/a.ts\n[warn] Code style issues", "ok", False),
        ("npx prettier --check .", "All matched files use Prettier code style!", "ok", True),
        ("black --check .", "would reformat a.py\n1 file would be reformatted.", "failed", False),
        ("black --check . 2>&1 | tail -1", "1 file would be reformatted.", "ok", False),
        ("black --check .", "All done!\n3 files would be left unchanged.", "ok", True),
        ("git diff --check", "", "ok", True),
        ("git diff --check | cat", "a.txt:3: trailing whitespace.", "ok", False),
        ("npx tsc --noEmit", "", "ok", True),
        ("npx tsc --noEmit | head -20", "", "ok", True),
        ("npx tsc --noEmit | grep cart", "", "ok", None),
        ("npx tsc --noEmit | head", "src/a.ts(3,1): error TS2322: no", "ok", False),
        ("bun run typecheck | tail -5", "$ tsc --noEmit", "ok", True),
        ("cd a && python3 b_test.py", "Command: cd a\nOutput: fine\nError: (none)\nExit Code: 0", "ok", True),
        ("go vet ./...", "", "ok", True),
        ("go build ./... | head", "", "ok", None),
        ("go build ./... | head", "./sum.go:3:1: undefined: x", "ok", False),
        ("swift build 2>&1 | tail -3", "Main.swift:7:9: error: no type\nerror: emit failed", "ok", False),
        ("swift build | tail -1", "Build complete! (3.43s)", "ok", True),
        ("git fetch | cat && make | tail", "fatal: no such path", "ok", False),
        ("mise run lint | tail -9", "[fmt] $ gofmt\n1 issues:\n[lint:go] ERROR task failed", "ok", False),
        ("mise run lint", "[lint:go] ERROR task failed", "ok", False),
        ("golangci-lint run", "0 issues.", "ok", True),
        ("ruff check --fix . | tail", "Found 3 errors (3 fixed, 0 remaining).", "ok", None),
        ("flake8 | head", "a.py:1:1: F401 'os' imported but unused", "ok", False),
        ("npm run lint", "  3:1  error  'a' is unused\n\n1 problem", "ok", False),
        ("npx eslint . | tail -2", "2 problems (0 errors, 2 warnings)", "ok", True),
        ("cargo clippy 2>&1 | tail -3", "    Finished `dev` profile in 0.5s", "ok", True),
        ("mypy . ; echo exit: $?", "exit: 1", "ok", False),
        ("mypy . ; echo \"exit=$?\"", "exit=0", "ok", True),
        ("tsc -p . | tail; echo ${PIPESTATUS[0]}", "2", "ok", False),
        ("npm run build && echo DONE || echo BROKEN", "BROKEN", "ok", False),
        ("npm run build || true", "", "ok", None),
        ("npm run build; ls", "", "ok", None),
        ("npm run build", "x", "failed", False),
        ("bun run test | head -40", "[Limiter] Task 2 failed: 101 | });", "ok", None),
        ("bun run test | head -40", "(fail) cart > sum [0.1ms]", "ok", False),
        ("cd cart && go test", "bash: line 1: cd: cart: No such file or directory", "failed", None),
        ("pytest -q", "Command timed out after 2m", "failed", None),
    ],
)  # fmt: skip
def test_checks_that_say_nothing_and_checks_behind_pipes(
    command: str, output: str, status: str, passed: bool | None
) -> None:
    assert check(command, output, status).passed is passed


@pytest.mark.parametrize(
    "command",
    ["pytest --collect-only -q", "npx jest --listTests", "cargo test --no-run", "npm test -- --dry-run"],
)  # fmt: skip
def test_a_dry_run_is_no_pass(command: str) -> None:
    assert check(command, "5 tests").passed is None


def test_a_task_that_runs_tests_is_a_test() -> None:
    run = check("make check", "ruff ok\n5 passed in 0.1s")
    assert (run.kind, run.ran) == ("test", 5)


def test_lines_left_out_by_a_pipe_leave_no_count() -> None:
    output = "--- PASS: TestZ (0.00s)\nPASS\nok  \tshop\t0.1s"
    run = check("go test -v ./... | tail -3", output)
    assert (run.passed, run.ran) == (True, None)


def test_a_commit_that_a_hook_refused_is_a_failed_check() -> None:
    output = "FAILED: git commit\n$ bun test src/\n 1392 pass\n 6 fail\npre-commit script failed (code 1)"
    run = check("wrap git commit -m logo", output)
    assert (run.tool, run.passed, run.ran, run.failed) == ("git commit", False, 1398, 6)
    assert check("git commit -m x", "[main 1a2b3c4] x\n 1 file changed").passed
