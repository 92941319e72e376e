"""What test, lint and type runs came to, from what they print."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.offline.check_results import checks_in
from debrief.sessions.model import ToolCall


def results(
    command: str, text: str | None, status: str = "ok", exit_code: int | None = None
) -> list[tuple[str, bool | None, int | None, int | None]]:
    call = ToolCall(
        id="c",
        name="Bash",
        input=json.dumps({"command": command}),
        result=text,
        status=status,  # type: ignore[arg-type]
        exit_code=exit_code,
    )
    return [(c.kind, c.passed, c.failures, c.total) for c in checks_in(call, command)]


@pytest.mark.parametrize(
    ("command", "text", "failures", "total"),
    [
        ("pytest", "F.\n==== 1 failed, 13 passed in 0.52s ====", 1, 14),
        ("pytest -q", "..\n14 passed, 2 skipped, 1 warning in 3.10s", 0, 14),
        ("pytest", "=== 3 errors in 0.52s ===", 3, 3),
        ("pytest", "\x1b[31m== \x1b[1m2 failed\x1b[0m, 1 passed in 61.02s (0:01:01) ==", 2, 3),
        ("python -m unittest", "Ran 8 tests in 0.01s\n\nOK", 0, 8),
        ("python -m unittest", "Ran 8 tests in 0.01s\n\nFAILED (failures=1, errors=2)", 3, 8),
        ("npx jest", "Tests:       2 failed, 1 skipped, 9 passed, 12 total", 2, 12),
        ("npx vitest run", " Test Files  1 passed (1)\n      Tests  7 passed (7)", 0, 7),
        ("npx mocha", "  9 passing (12ms)\n  2 failing", 2, 11),
        ("bun test", " 12 pass\n 1 fail\nRan 13 tests", 1, 13),
        ("node --test", "# tests 4\n# pass 3\n# fail 1", 1, 4),
        (
            "cargo test",
            "test result: ok. 3 passed; 0 failed; 0 ignored\n"
            "test result: FAILED. 4 passed; 2 failed; 0 ignored",
            2,
            9,
        ),
        ("go test ./...", "ok  \texample.org/a\t0.01s\nFAIL\texample.org/b\t0.02s\nFAIL", 1, None),
        ("go test ./...", "ok  \texample.org/a\t0.01s\nok  \texample.org/b\t(cached)", 0, None),
        ("go test -v", "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL", 1, 2),
        ("mix test", "2 doctests, 18 tests, 1 failure", 1, 18),
        ("rspec", "18 examples, 0 failures", 0, 18),
        ("mvn test", "Tests run: 20, Failures: 2, Errors: 0", 2, 20),
        ("make check", "ruff ok\n9 passed in 1.0s", 0, 9),
        ("dotnet test", "Failed:     1, Passed:     5, Skipped: 0", 1, 6),
    ],
)
def test_test_runs_are_counted(command: str, text: str, failures: int, total: int | None) -> None:
    assert results(command, text) == [("test", not failures, failures, total)]


@pytest.mark.parametrize(
    ("command", "text", "passed", "failures"),
    [
        ("ruff check", "a.py:1:1: F401 unused\nFound 3 errors.", False, 3),
        ("ruff check", "All checks passed!", True, 0),
        ("npx eslint .", "✖ 4 problems (3 errors, 1 warning)", False, 3),
        ("npx eslint .", "✖ 1 problem (0 errors, 1 warning)", True, 0),
        ("npx tsc", "a.ts(1,2): error TS2304: x\nb.ts(3,4): error TS2551: y", False, 2),
        ("mypy .", "Found 2 errors in 1 file (checked 9 source files)", False, 2),
        ("mypy .", "Success: no issues found in 9 source files", True, 0),
        ("pyright", "0 errors, 0 warnings, 0 informations", True, 0),
        ("golangci-lint run", "0 issues.", True, 0),
        ("golangci-lint run", "8 issues:\n* revive: 8", False, 8),
        ("cargo build", "error: could not compile `a` due to 2 previous errors", False, 2),
    ],
)
def test_findings_are_counted(command: str, text: str, passed: bool, failures: int) -> None:
    assert [row[1:3] for row in results(command, text)] == [(passed, failures)]


def test_a_failure_behind_a_pipe_is_seen_in_the_words() -> None:
    assert results("pytest | tail -3", "1 failed, 2 passed in 0.1s")[0][1] is False
    assert results("make test | tail -3", "make: *** [test] Error 2")[0][1] is False


def test_without_words_the_exit_status_decides() -> None:
    assert results("go build ./...", "")[0][1] is True
    assert results("go build ./...", "Exit code 1\na.go:3: undefined: x", "failed")[0][1] is False
    assert results("go build ./...", "a.go:3: undefined: x", exit_code=2)[0][1] is False
    # A run that says it passed, and exits with an error:
    assert results("pytest --cov", "Exit code 1\n3 passed in 0.1s", "failed")[0][1] is False


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Exit code 127\n/bin/bash: line 1: pytest: command not found", "failed"),
        ("Command running in background with ID: b1", "ok"),
        ("Wall time: 1.0 seconds\nProcess running with session ID 5\nOutput:\n", "ok"),
        ("Script running with cell ID 27\nWall time 11.0 seconds\nOutput:\n", "ok"),
        ("collected 0 items\n\nno tests ran in 0.01s", "failed"),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", "failed"),
        ("refused", "rejected"),
        (None, "unanswered"),
    ],
)
def test_a_check_that_never_ran_neither_passed_nor_failed(text: str | None, status: str) -> None:
    assert [row[1] for row in results("pytest", text, status)] == [None]


def test_what_a_script_tells_as_json_is_read_as_it_was_printed() -> None:
    told = [{"exit_code": 1, "output": "F.\n== 1 failed, 13 passed in 0.5s =="}, {"output": ""}]
    text = "\n".join(["Script completed", "Output:", *map(json.dumps, told), "{no json"])
    assert results("pytest", text, "failed", 1) == [("test", False, 1, 14)]


def test_several_checks_in_one_command_each_take_their_own_words() -> None:
    command = "ruff check . && mypy . && pytest -q"
    text = "All checks passed!\n14 passed in 0.5s"
    assert [row[:2] for row in results(command, text)] == [
        ("lint", True),
        ("types", True),
        ("test", True),
    ]
    failed = results("npm run build && npm test", "Tests:  1 failed, 3 total", "failed")
    assert ("test", False, 1, 3) in failed
    assert failed[0][1] is None


def test_a_search_that_finds_nothing_is_no_failed_check() -> None:
    assert results("go test ./... | grep FAIL", "Exit code 1", "failed")[0][1] is None


@given(st.text(max_size=300), st.sampled_from(["ok", "failed", "rejected", "unanswered"]))
def test_any_output_gives_one_consistent_result(text: str, status: str) -> None:
    ((_, passed, failures, total),) = results("pytest", text, status)
    assert passed in (True, False, None)
    if failures is not None and total is not None:
        assert 0 <= failures <= total


@pytest.mark.parametrize("text", [" \n" * 40_000, "a" * 400_000, "FAIL" * 60_000, "1 " * 100_000])
def test_hostile_output_is_read_in_no_time(text: str) -> None:
    began = time.process_time()
    results("pytest", text)
    results("make check", text)
    assert time.process_time() - began < 2.0
