"""Results by test, from what test programs write and print.

A program is asked for a report by an option at the end of its command, or by a variable where it
reads one, which also reaches it through ``make`` or ``npm``. Where no report came, its printed
words are read; where they do not tell tests apart, there are no results by test.

Names are the same from run to run. A name without ``::`` is of a whole file or package that could
not be loaded or built: it stands for each test in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from posixpath import relpath
from typing import Any
from xml.etree.ElementTree import Element, ParseError, fromstring

import orjson

from debrief.execution.model import TestStatus
from debrief.execution.sandbox import TREE
from debrief.signals.excerpts import ANSI
from debrief.signals.shell import check_of, commands_in

REPORTS = "/tmp/reports"
"""The folder of reports in the sandbox."""
_VARIABLES = {
    "PYTEST_ADDOPTS": f"-rap --junitxml={REPORTS}/pytest.xml -o junit_family=xunit2",
    "GOFLAGS": "-v",
}
"""What asks programs for a report that take no part of their command line from here."""
_NODE_OPTIONS = (
    "--test-reporter=spec --test-reporter-destination=stdout "
    f"--test-reporter=junit --test-reporter-destination={REPORTS}/node.xml"
)
_OPTIONS = {
    "jest": f"--json --outputFile={REPORTS}/jest.json",
    "bun test": f"--reporter=junit --reporter-outfile={REPORTS}/bun.xml",
    "vitest": f"--reporter=default --reporter=json --outputFile.json={REPORTS}/vitest.json",
}
_SCRIPT_RUNNERS = frozenset(["npm", "pnpm", "yarn", "bun"])
_PYTEST_LINE = re.compile(
    r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) ([^\s:]+\.py(?:::.*?)?)(?: - .*)?$"
)
_PYTEST_WORDS: dict[str, TestStatus] = {
    "PASSED": "passed",
    "XPASS": "passed",
    "FAILED": "failed",
    "ERROR": "failed",
    "SKIPPED": "skipped",
    "XFAIL": "skipped",
}
_GO_TEST = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+) \(")
_GO_PACKAGE = re.compile(r"^(ok|FAIL|\?)\s+(\S+)(?:\s+(.*))?$")
_GO_WORDS: dict[str, TestStatus] = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
_CARGO_TARGET = re.compile(r"^\s*(?:Running (?:unittests )?(\S+) \(|Doc-tests (\S+))")
_CARGO_TEST = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b")
_CARGO_WORDS: dict[str, TestStatus] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
_UNITTEST = re.compile(
    r"^(\w+) \(([\w.]+)\)(?:\n(?!\w+ \().*)?? \.\.\. (ok|FAIL|ERROR|skipped|expected failure)",
    re.MULTILINE,
)
_UNITTEST_WORDS: dict[str, TestStatus] = {
    "ok": "passed",
    "FAIL": "failed",
    "ERROR": "failed",
    "skipped": "skipped",
    "expected failure": "skipped",
}
_NO_REPORT = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What reading a file raises that a repository's own code wrote in a report's place."""
_RANK: dict[TestStatus, int] = {"skipped": 0, "passed": 1, "failed": 2}


def reporting(command: str, scripts: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return a check's command so that it reports its results, and the variables for it.

    Args:
        command: one simple command.
        scripts: those of ``package.json`` in its folder, by name.
    """
    words = next((each.words for each in commands_in(command) if each.words), ())
    tool = _tool_of(words, scripts)
    variables = dict(_VARIABLES)
    if tool == "node test":
        variables["NODE_OPTIONS"] = _NODE_OPTIONS
    elif tool == "go test" and "-json" not in words and words[:2] == ("go", "test"):
        command = command.replace("go test", "go test -json", 1)
    elif options := _OPTIONS.get(tool):
        dashes = " --" if words[0] == "npm" and "--" not in words else ""
        command = f"{command}{dashes} {options}"
    return command, variables


def _tool_of(words: tuple[str, ...], scripts: Mapping[str, str]) -> str:
    """Return the test program that a simple command runs, or the last one of a script."""
    if words[:1] and words[0] in _SCRIPT_RUNNERS:
        names = [word for word in words[1:] if word not in ("run", "run-script")]
        last = [
            command.words for command in commands_in(scripts.get(names[0], "") if names else "")
        ]
        words = last[-1] if last else ()
    check = check_of(words)
    return check[1] if check else ""


def results_of(files: Mapping[str, bytes], output: str) -> dict[str, TestStatus]:
    """Return the results by test of one run.

    Args:
        files: its reports, by path.
        output: what it printed.
    """
    results: list[tuple[str, TestStatus]] = []
    for path, content in sorted(files.items()):
        read = from_junit if path.endswith(".xml") else from_jest
        with suppress(*_NO_REPORT):
            results += read(content)
    if not results:
        text = ANSI.sub("", output)
        for words in (from_pytest, from_go, from_cargo, from_unittest):
            results += words(text)
    return _worst(results)


def from_junit(content: bytes) -> list[tuple[str, TestStatus]]:
    """Read a report in the form that JUnit began and most test programs write.

    Raises:
        ValueError: it is none.
    """
    if b"<!" in content.replace(b"<!--", b"").replace(b"<![CDATA[", b""):
        raise ValueError("declares entities, as no report does")
    try:
        root = fromstring(content)
    except ParseError as error:
        raise ValueError("no XML") from error
    return list(_cases(root, ""))


def _cases(suite: Element, above: str) -> Iterator[tuple[str, TestStatus]]:
    for each in suite:
        if each.tag == "testsuite":
            yield from _cases(each, f"{above}{each.get('name', '')} > ")
        elif each.tag == "testcase":
            place = each.get("classname", "")
            if place == "test":  # Node.js says so of each
                place = above.removesuffix(" > ") or place
            tags = {child.tag for child in each}
            bad, skipped = not tags.isdisjoint(("failure", "error")), "skipped" in tags
            status: TestStatus = "failed" if bad else "skipped" if skipped else "passed"
            yield _named(place, each.get("name", "")), status


def _named(place: str, name: str) -> str:
    return f"{_in_tree(place)}::{name}" if place else _in_tree(name)


def from_jest(content: bytes) -> list[tuple[str, TestStatus]]:
    """Read the JSON report of jest or vitest.

    Raises:
        ValueError: it is none.
    """
    report = orjson.loads(content)
    if not isinstance(report, dict) or not isinstance(report.get("testResults"), list):
        raise ValueError("no report of jest or vitest")
    words: dict[object, TestStatus] = {"passed": "passed", "failed": "failed"}
    found: list[tuple[str, TestStatus]] = []
    for file in report["testResults"]:
        place = _in_tree(str(file.get("name", "")))
        tests = file.get("assertionResults") or []
        found += [
            (f"{place}::{test.get('fullName')}", words.get(test.get("status"), "skipped"))
            for test in tests
        ]
        if not tests and file.get("status") == "failed":
            found.append((place, "failed"))
    return found


def from_pytest(text: str) -> Iterable[tuple[str, TestStatus]]:
    """Read the summary that ``pytest -rap`` prints; names as in its JUnit reports."""
    for line in text.splitlines():
        if found := _PYTEST_LINE.match(line.rstrip()):
            path, *names = found[2].split("::")
            place = ".".join([path.removesuffix(".py").replace("/", "."), *names[:-1]])
            yield (f"{place}::{names[-1]}" if names else place), _PYTEST_WORDS[found[1]]


def from_go(text: str) -> list[tuple[str, TestStatus]]:
    """Read what ``go test`` prints, as JSON (``-json``) or as text (``-v``)."""
    found: list[tuple[str, TestStatus]] = []
    of_package: list[tuple[str, TestStatus]] = []
    failed: list[str] = []
    for line in text.splitlines():
        if event := _go_event(line):
            status = _GO_WORDS.get(str(event["Action"]).upper())
            if "Test" in event and status:
                found.append((f"{event['Package']}::{event['Test']}", status))
            elif status == "failed":
                failed.append(str(event["Package"]))
        elif test := _GO_TEST.match(line):
            of_package.append((test[2], _GO_WORDS[test[1]]))
        elif package := _GO_PACKAGE.match(line):
            found += [(f"{package[2]}::{name}", status) for name, status in of_package]
            of_package = []
            if package[1] == "FAIL":
                failed.append(package[2])
    with_failed = {name.partition("::")[0] for name, status in found if status == "failed"}
    return found + [(package, "failed") for package in failed if package not in with_failed]


def _go_event(line: str) -> dict[str, Any] | None:
    if not line.startswith('{"') or '"Action":' not in line:
        return None
    with suppress(ValueError):
        event = orjson.loads(line)
        if isinstance(event, dict) and "Action" in event and "Package" in event:
            return event
    return None


def from_cargo(text: str) -> Iterable[tuple[str, TestStatus]]:
    """Read what ``cargo test`` prints."""
    target = ""
    for line in text.splitlines():
        if begun := _CARGO_TARGET.match(line):
            target = begun[1] or f"doc {begun[2]}"
        elif test := _CARGO_TEST.match(line):
            name = re.sub(r" \(line \d+\)$", "", test[1]) if target.startswith("doc ") else test[1]
            yield f"{target}::{name}", _CARGO_WORDS[test[2]]


def from_unittest(text: str) -> Iterable[tuple[str, TestStatus]]:
    """Read what ``python -m unittest -v`` prints."""
    for name, place, word in _UNITTEST.findall(text):
        yield f"{place.removesuffix(f'.{name}')}::{name}", _UNITTEST_WORDS[word]


def _in_tree(path: str) -> str:
    """Return a path below the tree, where it is one of the sandbox."""
    return relpath(path, TREE) if path.startswith(f"{TREE}/") else path


def _worst(results: Iterable[tuple[str, TestStatus]]) -> dict[str, TestStatus]:
    """Return one result a name: of a test that ran more than once, the worst."""
    found: dict[str, TestStatus] = {}
    for name, status in results:
        former = found.get(name)
        if former is None or _RANK[status] > _RANK[former]:
            found[name] = status
    return dict(sorted(found.items()))
