"""What a check found: the tests that failed, the rules that were broken, a compiler's messages."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cache

from debrief.signals.excerpts import ANSI
from debrief.signals.shell import bare_words, check_of, commands_in
from debrief.troubles.model import TroubleReason
from debrief.troubles.naming import is_warning, pattern, plain_error, tables, without_diffs

_MOST = 6
_MOCHA = re.compile(r"^ +[1-9]\d* failing$", re.MULTILINE)
_RAN = re.compile(
    r"\b\d+ (?:pass|fail|error|warning|problem|test|example|spec)|^(?:FAIL|PASS|ok|---)\b", re.M
)
"""What a check prints that did its work."""


def is_check(words: Sequence[str]) -> bool:
    """Return whether a simple command, as typed, checks the work."""
    return check_of(bare_words(words)) is not None


def runs_check(command: str) -> bool:
    """Return whether a command line checks the work."""
    return bool(command) and any(
        check_of(each.words) is not None for each in commands_in(command) if each.words
    )


def did_its_work(result: str) -> bool:
    """Return whether a check that failed came as far as finding something."""
    return _RAN.search(result) is not None


def found_by_check(result: str) -> dict[str, TroubleReason]:
    """Return what a check found, each without its place, and what that is: a test, a rule, a
    diagnostic, a message, or files that are not formatted.

    The first six; empty where it does not say it in a form that is known.
    """
    found: dict[str, TroubleReason] = {}
    if pattern("findings", "unformatted").search(result):
        found["not formatted"] = "not_formatted"
    unsaid = pattern("findings", "unsaid")
    text = ANSI.sub("", result)
    if failing := _MOCHA.search(text):
        blocks = pattern("findings", "blocks").finditer(text[failing.end() :][:20_000])
        for block in itertools.islice(blocks, _MOST):
            found[plain_error(block["it"])] = "test"
    for line in without_diffs(text)[-20_000:].split("\n"):
        if len(line) > 400 or unsaid.search(line) or is_warning(line):
            continue
        for form, reason, is_of_tests_too in _finding_forms():
            if is_of_tests_too and "test" in found.values():
                continue
            if (match := form.search(line.strip())) and (what := _plain_finding(match["it"])):
                found[what] = reason
                break
        if len(found) >= _MOST:
            break
    return found


@cache
def _finding_forms() -> tuple[tuple[re.Pattern[str], TroubleReason, bool], ...]:
    """Return the forms of what a check found, what each is, and whether tests print such lines."""
    lists: tuple[tuple[str, TroubleReason], ...] = (
        ("tests", "test"),
        ("rules", "rule"),
        ("messages", "message"),
        ("places", "diagnostic"),
    )
    table = tables()["findings"]
    return tuple(
        (re.compile(form), reason, name == "places")
        for name, reason in lists
        for form in table[name]
    )


def _plain_finding(text: str) -> str:
    """Return what a check found without its place; of a file of tests alone, that file's name."""
    plain = plain_error(text)
    return plain if plain not in ("<path>", "<file>") else text.rpartition("/")[2]
