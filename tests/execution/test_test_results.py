"""Results by test, from reports and words of real programs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from debrief.execution.model import TestStatus
from debrief.execution.test_results import REPORTS, reporting, results_of

_PYTEST = """
import pytest
class TestSums:
    @pytest.mark.parametrize("n", [1, 2])
    def test_adds(self, n):
        assert n == 1
def test_skips():
    pytest.skip("later")
@pytest.mark.xfail
def test_expected():
    assert False
@pytest.fixture
def broken():
    raise ValueError
def test_setup(broken):
    pass
"""
_OF_PYTEST: dict[str, TestStatus] = {
    "tests.test_lost": "failed",
    "tests.test_sums.TestSums::test_adds[1]": "passed",
    "tests.test_sums.TestSums::test_adds[2]": "failed",
    "tests.test_sums::test_expected": "skipped",
    "tests.test_sums::test_setup": "failed",
    "tests.test_sums::test_skips": "skipped",
}


def _ran(
    command: str, folder: Path, scripts: Mapping[str, str] | None = None
) -> tuple[dict[str, bytes], str]:
    """Run a command as a check, with its reports in a folder of the test."""
    reports = folder / "reports"
    reports.mkdir()
    asked, variables = reporting(command, scripts or {})
    done = subprocess.run(
        asked.replace(REPORTS, str(reports)),
        shell=True,
        cwd=folder,
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **{name: value.replace(REPORTS, str(reports)) for name, value in variables.items()},
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return {str(path): path.read_bytes() for path in reports.iterdir()}, done.stdout


def test_pytest_reports_and_its_words_give_the_same_names(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_sums.py").write_text(_PYTEST)
    (tmp_path / "tests" / "test_lost.py").write_text("import nowhere_to_be_found\n")
    files, output = _ran("pytest -p no:cacheprovider --continue-on-collection-errors", tmp_path)
    assert results_of(files, output) == _OF_PYTEST
    from_words = results_of({}, output)
    # Its words name no test that was skipped, only the line.
    assert from_words == {
        name: status for name, status in _OF_PYTEST.items() if name != "tests.test_sums::test_skips"
    }


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no Node.js with npm")
def test_the_runner_of_node_reports_through_npm(tmp_path: Path) -> None:
    (tmp_path / "sums.test.mjs").write_text(
        "import {test, describe, it} from 'node:test'; import assert from 'node:assert';\n"
        "test('adds', () => {}); test('fails', () => assert.equal(1, 2));\n"
        "test('later', {skip: true}, () => {});\n"
        "describe('sums', () => { it('inside', () => {}) });\n"
    )
    (tmp_path / "package.json").write_text('{"scripts": {"test": "node --test"}}')
    files, output = _ran("npm test", tmp_path, {"test": "node --test"})
    assert results_of(files, output) == {
        "sums::inside": "passed",
        "test::adds": "passed",
        "test::fails": "failed",
        "test::later": "skipped",
    }


def test_unittest_says_each_test(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "import unittest\n"
        "class Sums(unittest.TestCase):\n"
        "    def test_adds(self):\n        'With words of its own.'\n"
        "    def test_fails(self): self.fail()\n"
        "    @unittest.skip('later')\n    def test_later(self): pass\n"
    )
    files, output = _ran(f"{shlex.quote(sys.executable)} -m unittest -v", tmp_path)
    assert results_of(files, output) == {
        "test_one.Sums::test_adds": "passed",
        "test_one.Sums::test_fails": "failed",
        "test_one.Sums::test_later": "skipped",
    }


# As printed by go 1.19, cargo 1.95 and jest 29.
_GO_TEXT = """\
# example.com/m/broken [example.com/m/broken.test]
broken/b.go:2:23: cannot use "x" (untyped string constant) as int value in return statement
FAIL\texample.com/m/broken [build failed]
=== RUN   TestAdd
--- PASS: TestAdd (0.00s)
=== RUN   TestBad
=== RUN   TestBad/sub_one
    a_test.go:4: bad
--- FAIL: TestBad (0.00s)
    --- FAIL: TestBad/sub_one (0.00s)
=== RUN   TestSkip
    a_test.go:5:
--- SKIP: TestSkip (0.00s)
FAIL
FAIL\texample.com/m/pkg\t0.003s
?   \texample.com/m/none\t[no test files]
FAIL
"""
_GO_JSON = """\
FAIL\texample.com/m/broken [build failed]
{"Time":"2026-11-27T05:22:31.65Z","Action":"run","Package":"example.com/m/pkg","Test":"TestAdd"}
{"Time":"2026-11-27T05:22:31.65Z","Action":"output","Package":"example.com/m/pkg","Test":"TestAdd","Output":"--- PASS: TestAdd (0.00s)\\n"}
{"Time":"2026-11-27T05:22:31.65Z","Action":"pass","Package":"example.com/m/pkg","Test":"TestAdd","Elapsed":0}
{"Time":"2026-11-27T05:22:31.65Z","Action":"fail","Package":"example.com/m/pkg","Test":"TestBad/sub_one","Elapsed":0}
{"Time":"2026-11-27T05:22:31.65Z","Action":"fail","Package":"example.com/m/pkg","Test":"TestBad","Elapsed":0}
{"Time":"2026-11-27T05:22:31.65Z","Action":"skip","Package":"example.com/m/pkg","Test":"TestSkip","Elapsed":0}
{"Time":"2026-11-27T05:22:31.65Z","Action":"output","Package":"example.com/m/pkg","Output":"FAIL\\texample.com/m/pkg\\t0.003s\\n"}
{"Time":"2026-11-27T05:22:31.65Z","Action":"fail","Package":"example.com/m/pkg","Elapsed":0.003}
"""
_OF_GO = {
    "example.com/m/broken": "failed",
    "example.com/m/pkg::TestAdd": "passed",
    "example.com/m/pkg::TestBad": "failed",
    "example.com/m/pkg::TestBad/sub_one": "failed",
    "example.com/m/pkg::TestSkip": "skipped",
}
_CARGO = """\
     Running unittests src/lib.rs (target/debug/deps/demo-5e2d1c7f0b2f8a11)

running 4 tests
test tests::later ... ignored
test tests::adds ... ok
test tests::panics - should panic ... ok
test tests::fails ... FAILED

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.32s

error: test failed, to rerun pass `--lib`
     Running tests/whole.rs (target/debug/deps/whole-e9be729b3f2bc181)

running 1 test
test outside ... ok

   Doc-tests demo

running 1 test
test src/lib.rs - add (line 1) ... ok
"""
_OF_CARGO = {
    "doc demo::src/lib.rs - add": "passed",
    "src/lib.rs::tests::adds": "passed",
    "src/lib.rs::tests::fails": "failed",
    "src/lib.rs::tests::later": "skipped",
    "src/lib.rs::tests::panics": "passed",
    "tests/whole.rs::outside": "passed",
}


@pytest.mark.parametrize(
    ("output", "results"),
    [
        pytest.param(_GO_TEXT, _OF_GO, id="go-text"),
        pytest.param(_GO_JSON, _OF_GO, id="go-json"),
        pytest.param(_CARGO, _OF_CARGO, id="cargo"),
        pytest.param("All fine: 12 passed\n", {}, id="words-that-name-no-test"),
    ],
)
def test_programs_words_give_results(output: str, results: dict[str, TestStatus]) -> None:
    assert results_of({}, output) == results


def test_jest_reports_files_that_could_not_be_loaded() -> None:
    report = (
        b'{"testResults": [{"name": "/app/src/b.test.js", "status": "failed", "assertionResults": ['
        b'{"fullName": "sums adds", "status": "passed"}, {"fullName": "sums fails", "status": "failed"},'
        b'{"fullName": "sums later", "status": "pending"}]},'
        b'{"name": "/app/src/c.test.js", "status": "failed", "assertionResults": []}]}'
    )
    assert results_of({f"{REPORTS}/jest.json": report}, "") == {
        "src/b.test.js::sums adds": "passed",
        "src/b.test.js::sums fails": "failed",
        "src/b.test.js::sums later": "skipped",
        "src/c.test.js": "failed",
    }


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"<html/>", b'{"a": 1}', b"[]", b"\xff\xfe", b"<testsuite>"),
        pytest.param(b"<testsuite>" * 9_999 + b"</testsuite>" * 9_999, id="deep"),
        b"<?xml version='1.0' encoding='none-such'?><a/>",
        *(b'{"testResults": [1]}', b'{"testResults": [{"assertionResults": [{"status": []}]}]}'),
    ],
)
def test_a_file_that_is_no_report_gives_nothing(content: bytes) -> None:
    assert results_of({f"{REPORTS}/a.xml": content, f"{REPORTS}/b.json": content}, "") == {}


@pytest.mark.parametrize(
    ("command", "scripts", "asked"),
    [
        ("vitest run src", {}, "vitest run src --reporter="),
        ("npm test", {"test": "tsc && vitest run"}, "npm test -- --reporter="),
        ("pnpm run unit", {"unit": "jest"}, "pnpm run unit --json"),
        ("go test ./pkg", {}, "go test -json ./pkg"),
        ("npm test", {"test": "jest && eslint ."}, "npm test"),
        ("make test", {}, "make test"),
    ],
)
def test_a_program_is_asked_for_a_report_where_that_reaches_it(
    command: str, scripts: dict[str, str], asked: str
) -> None:
    said, _ = reporting(command, scripts)
    assert said.startswith(asked)
    assert (said == command) == (asked == command)
