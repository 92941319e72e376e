"""Read what a check printed: whether it passed, and how many tests ran, failed and were skipped.

A runner's own count decides. Skipped tests and filters that match nothing are no pass, and one
failing count among several makes the whole fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from debrief.markdown import shorten
from debrief.signals.excerpts import ANSI, ENVELOPE, printed_lines
from debrief.signals.shell import check_of, pattern, simple_commands, tables

_PRINTED = 30_000
"""Characters of a check's output, from its end, that are read."""
_STRONG = ("names", "found", "ended")
_LINE = 2_000
"""Characters of a line that are read."""
_QUOTE = 120
_LAST = 15
"""Lines at the end of an output in which a program that ended with 0 may say that it failed."""
_NAMES = 50
"""Failing lines that are kept, at most."""

_PREFIX = (
    r"(?:\[\w+\] +)?(?:[@\w./-]+(?:(?::[\w-]+)+| [\w-]+)?: +(?=[^\d\s]|\d+ (?:pass|fail|test)))?"
)
"""What workspace tools put before each line: a level, or the name of a package."""
_LABEL = (
    r"(?:=+ |[#ℹ✓✔✗✘✖×❌✅•>*-]+ |\[ +(?=\d)|test result: \w+\. |tests?:? +"
    r"|summary \[[^\]]*\] +\d+(?:/\d+)? tests? run: |(?:ok|failed) \| |(?:success|fail)! -- "
    r"|done |ok \(|all |finished in [\d.]+s?,? *|executed \d+ out of \d+ tests?: "
    r"|\d+ scenarios? \(|result: )?"
)
_PAIR = r"\d+ [a-z]+(?: [a-z]+)*(?: \([^()\n]*\))?"
_COUNTED = re.compile(
    rf"^[ \t]*{_PREFIX}{_LABEL}(?P<pairs>{_PAIR}(?: ?[,;|/:] ?{_PAIR})*)"
    r"(?P<rest>| *[.)\]]| ?[,;:(=|\[].*| +(?:in|out of|after|across) .*)$",
    re.IGNORECASE,
)
"""``4 passed, 1 failed in 0.2s`` and its like: numbers before words."""
_WORD = r"(?:tests? run|[a-z]+)"
_NAMED = re.compile(
    rf"^[ \t]*{_PREFIX}(?:[#ℹ*>•-] |\[ |tests:? +(?!run)|test summary: |ok(?:,.*)? "
    rf"|(?:passed|failed|skipped)! +- |passed: |results?:? +)?"
    rf"(?P<pairs>{_WORD} ?[:=]? *\d+(?: ?[,;|] ?{_WORD} ?[:=]? *\d+)*)"
    r"(?P<rest>|[.)]|,? ?[-\]|,(].*)$",
    re.IGNORECASE,
)
"""``Failed: 0, Passed: 5`` and its like: words before numbers."""
_NUMBER_FIRST = re.compile(r"(\d+) ([a-z][a-z ]*)", re.IGNORECASE)
_WORD_FIRST = re.compile(r"(tests? run|[a-z]+) ?[:=]? *(\d+)", re.IGNORECASE)
_KINDS = {
    "other": re.compile(r"\bsubtests? passed\b"),
    "skipped": re.compile(
        r"skip|pending|ignored|todo|xfailed|disabled|omissions|omitted|incomplete"
    ),
    "failed": re.compile(r"fail|error|broken|cancell?ed|unsuccessful|timed out"),
    "passed": re.compile(r"\bx?pass(?:ed|ing|es)?\b|succe|\bok\b"),
    "total": re.compile(
        r"\b(?:tests?(?: run)?|doctests?|examples?|runs|specs?|properties|total)\b"
    ),
}
"""What a word of a count means; the first that fits."""
_NO_TESTS = re.compile(r"(?:features?|steps?|containers|suites?|files?)\b")
"""Words of counts that are not of tests."""
_UNITTEST = re.compile(
    r"^Ran (?P<total>\d+) tests? in [^\n]*\n\s*(?P<word>OK|FAILED|NO TESTS RAN)"
    r"(?: \((?P<pairs>[^)\n]*)\))?",
    re.MULTILINE,
)
_UNITTEST_PAIR = re.compile(r"([a-z ]*[a-z])=(\d+)")
_GROWING = frozenset(["xctest", "flutter", "karma"])
"""Those whose every count takes in the ones before."""
_GO_CASE = re.compile(r"^(\s*)--- (?P<word>PASS|FAIL|SKIP): (?P<name>\S+)")
_GO_JSON = re.compile(r'"Action":"(?P<word>pass|fail|skip)".*?"Test":"(?P<name>[^"]+)"')
_GO_PACKAGE = re.compile(r"^ok\s+\S+\s+(?:[\d.]+s|\(cached\))(?!.*\[no tests to run\])")
_GO_EMPTY = re.compile(r"^ok\s+\S+\s.*\[no tests to run\]|^\?\s+\S+\s+\[no test files\]")
_TAP = re.compile(r"^(not )?ok \d+\b([^#]*)(?:# *(skip|todo)\b)?", re.IGNORECASE)
_REMOTE = re.compile(r"(?P<name>[^\t]+)\t(?:pass|fail|pending|skipping|cancel)\t")
"""A check that ran elsewhere, as ``gh`` shows it."""
_LABELED = re.compile(r"^\[[a-z][\w:-]*\] (?!ERROR task)", re.MULTILINE)
"""What a task runner puts before each line of a task."""
_ECHO = re.compile(r"[$>] ")
"""How task runners begin a line that shows the command of a task."""
_OUTPUT = re.compile(r"^Output: (?=\S)", re.MULTILINE)
_ALL = re.compile(r"\W*all \d", re.IGNORECASE)


class CheckResult(Struct, frozen=True, kw_only=True):
    """What a check printed, as far as it tells."""

    passed: bool | None = None
    """None where nothing tells, and where no test ran."""
    ran: int | None = None
    """Tests that ran, skipped ones left out; None where no count was printed."""
    failed: int | None = None
    skipped: int | None = None
    quote: str = ""
    """The line that tells."""
    failures: tuple[str, ...] = ()
    """Lines that name what failed."""
    is_counted: bool = False
    """A test runner said it of its tests."""


class _Count(Struct):
    """The tests of one line, or of a whole output."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    line: str = ""

    @property
    def ran(self) -> int:
        return self.passed + self.failed


def clean(printed: str) -> str:
    """Return the end of an output as a terminal shows it, without colors, and without what a
    coding agent put around it."""
    text = ANSI.sub("", printed[-_PRINTED:]).replace("\\n", "\n").replace("\\t", "\t")
    text = _OUTPUT.sub("", text, count=1)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(line[:_LINE] for line in lines if not ENVELOPE.match(line[:200].strip()))


def read_test_result(
    text: str, status: bool | None, *, is_cut: bool = False, is_alone: bool = True
) -> CheckResult:
    """Return how a test run ended.

    Args:
        text: what it printed, cleaned.
        status: whether its own exit status is that of success; None where that is not known.
        is_cut: a program behind it may have left out lines.
        is_alone: no other check printed into the same output.
    """
    text = _LABELED.sub("", _latest(text))
    counts, is_whole = _counts_in(text, is_cut)
    lines = text.split("\n")
    failures = tuple(_names_in(lines))
    total = _Count(
        sum(count.passed for count in counts),
        sum(count.failed for count in counts),
        sum(count.skipped for count in counts),
    )
    is_known = bool(counts) and is_whole
    ran, failed = (total.ran, total.failed) if is_known else (None, total.failed or None)
    skipped = total.skipped if is_known else None
    passes = any(map(_GO_PACKAGE.match, lines)) and not counts

    def result(passed: bool | None, quote: str) -> CheckResult:
        return CheckResult(
            passed=passed,
            ran=ran,
            failed=failed,
            skipped=skipped,
            quote=shorten(quote.strip(), _QUOTE),
            failures=() if passed else failures,
            is_counted=bool(counts) or passes,
        )

    most = max(counts, key=lambda count: (count.ran, count.skipped), default=_Count()).line
    worst = max(counts, key=lambda count: count.failed, default=_Count())
    if worst.failed:
        return result(False, worst.line)
    behind = text.rpartition(most)[2].split("\n") if most else lines
    is_empty = not total.ran and not passes
    empty = most or _last(lines, "unstarted")
    empty = empty or ("" if failures else _last(lines, "none") or _first(lines, _GO_EMPTY))
    if is_empty and not most and empty:
        return result(None, empty)
    if broken := _last(lines, "ended") or _last(lines if status is None else behind, "exits"):
        return result(False, next(iter(failures), broken))
    if is_empty:
        if most:
            return result(None if status is not False else False, most)
        return _result_by_lines(lines, status, failures, is_strict=True, is_part=is_cut)
    if status is False:
        return result(False, _failing(lines) or most)
    if status is None and is_alone and (late := _last(behind, "failed")):
        return result(False, late)
    return result(True, most or _last(filter(_GO_PACKAGE.match, lines), "passed"))


def _latest(text: str) -> str:
    """Return a text without checks elsewhere that ran at first, and whose end a later line says."""
    lines = text.split("\n")
    last = {found["name"]: at for at, line in enumerate(lines) if (found := _REMOTE.match(line))}
    return "\n".join(
        line
        for at, line in enumerate(lines)
        if "\tpending\t" not in line or last.get(line.partition("\t")[0], at) == at
    )


def read_other_result(
    text: str,
    tool: str,
    status: bool | None,
    *,
    is_strict: bool,
    did_fail: bool,
    is_alone: bool,
    is_alone_of_kind: bool,
    is_filtered: bool,
    is_piped: bool,
) -> CheckResult:
    """Return how a lint, type check, build or program ended.

    Args:
        text: what it printed, cleaned.
        tool: that ran.
        status: whether its own exit status is that of success; None where that is not known.
        is_strict: it is a program, which may end with 0 whatever it found.
        did_fail: the call that it was in failed, so that it may not have run.
        is_alone: no other check printed into the same output.
        is_alone_of_kind: no other lint or type check did.
        is_filtered: a search behind it chose what to show.
        is_piped: its exit status is hidden by a program behind it.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if unstarted := _last(lines, "unstarted"):
        return CheckResult(quote=_short(unstarted))
    listed = tables()["silent"]["lists"].get(tool, "")
    form = re.compile(listed) if listed else pattern("outcomes", "found")
    found = [_short(line) for line in lines if form.search(line)]
    if not (found or listed) and is_alone:
        found = [_short(line) for line in (_last(lines, "exits"), _last(lines, "ended")) if line]
    if found:
        counted = [line for line in found if re.search(r"\b[1-9]\d* \w", line)]
        quote = (counted or (found if listed else found[::-1]))[0]
        return CheckResult(passed=False, quote=quote, failures=tuple(found[:_NAMES]))
    names = tuple(_names_in(lines))
    said = [line for line in printed_lines(text) if not _ECHO.match(line)]
    if listed:
        bad = _last_words(lines) if status is False else ""
        return CheckResult(passed=None if did_fail and status is None else not bad, quote=bad)
    echoed = {check[1] for line in lines if _ECHO.match(line) for check in _checks_of(line[2:])}
    is_silent = not said and not _names("tools").isdisjoint({tool, *echoed})
    if is_silent and not is_filtered and (status or (status is None and is_piped)):
        return CheckResult(passed=True)
    if status is not False and not is_alone:
        clear = _last(lines, "clear") if is_alone_of_kind else ""
        return CheckResult(passed=True if clear else status, quote=_short(clear))
    result = _result_by_lines(lines, status, names, is_strict=is_strict)
    has_quote = is_strict or not result.passed or pattern("outcomes", "passed").search(result.quote)
    return result if has_quote else replace(result, quote="")


def _result_by_lines(
    lines: list[str],
    status: bool | None,
    failures: tuple[str, ...],
    *,
    is_strict: bool,
    is_part: bool = False,
) -> CheckResult:
    """Return what the last line says that tells.

    A status of success counts before words that look bad, except of tests and programs (strict),
    which print what they found and may end with 0. In a part of an output (part) such words may be
    of a log: only what a runner says of a failure counts.
    """
    filled = [line.strip() for line in lines if line.strip()]
    if status is False:
        return CheckResult(passed=False, quote=_short(_failing(filled)), failures=failures)
    forms = [pattern("outcomes", name) for name in (_STRONG if is_part else ("failed",))]
    for place, line in enumerate(reversed(filled)):
        bad = any(form.search(line) for form in forms)
        if bad and (status is None or (is_strict and place < _LAST)):
            quote = line if is_part else _failing(filled)
            return CheckResult(passed=False, quote=_short(quote), failures=failures)
        if not bad and pattern("outcomes", "passed").search(line):
            return CheckResult(passed=True, quote=_short(line))
    return CheckResult(passed=status, quote=_short(_last_words(filled)))


def _failing(lines: Iterable[str]) -> str:
    """Return the line that says what failed: one with a count, else the first, else the last."""
    filled = [line.strip() for line in lines if line.strip()]
    bad = [line for line in filled if pattern("outcomes", "failed").search(line)]
    counted = [line for line in bad if re.search(r"\b[1-9]\d* (?:fail|error|problem)", line)]
    return next(iter(counted[-1:] or bad), "") or _last_words(filled)


def _last_words(lines: list[str]) -> str:
    """Return the last line that says something."""
    idle = pattern("outcomes", "idle")
    said = printed_lines("\n".join(lines))
    words = [line for line in said if re.search(r"\w", line)]
    return next((line for line in reversed(words) if not idle.search(line)), "".join(words[-1:]))


def _last(lines: Iterable[str], name: str) -> str:
    form = pattern("outcomes", name)
    return next((line for line in reversed(list(lines)) if form.search(line)), "")


def _first(lines: Iterable[str], form: re.Pattern[str]) -> str:
    return next(filter(form.match, lines), "")


def _short(line: str) -> str:
    return shorten(line.strip(), _QUOTE)


def _checks_of(command: str) -> Iterator[tuple[str, str]]:
    return filter(None, map(check_of, simple_commands(command)))


def _names(section: str) -> set[str]:
    return {name.strip() for name in tables()["silent"][section].split(",")}


def _names_in(lines: Iterable[str]) -> Iterator[str]:
    form = pattern("outcomes", "names")
    found = dict.fromkeys(line.strip() for line in lines if form.search(line))
    yield from list(found)[:_NAMES]


def _counts_in(text: str, is_cut: bool) -> tuple[list[_Count], bool]:
    """Return the counts that runners printed, and whether they are of all tests."""
    counts = [_of_unittest(found) for found in _UNITTEST.finditer(text)]
    rest = _UNITTEST.sub("", text)
    for name in tables()["counts"]:
        form = pattern("counts", name)
        whole = [_of_groups(found) for found in form.finditer(rest)]
        if whole:
            largest = max(whole, key=lambda count: (count.failed, count.ran))
            counts += [largest] if name in _GROWING else whole
            rest = form.sub("", rest)
    counts += _by_lines(rest.split("\n"))
    cases = _cases_in(rest.split("\n"))
    if cases is None:
        return counts, True
    if any(count.ran or count.skipped for count in counts):
        is_counted = cases.failed == 0 or any(count.failed for count in counts)
        return (counts if is_counted else [*counts, cases]), True
    is_verbose = cases.passed or cases.skipped or "=== RUN" in text
    return [cases], bool(is_verbose) and not is_cut


def _of_unittest(found: re.Match[str]) -> _Count:
    """Return the count of ``unittest``; an expected failure counts as skipped."""
    failed = skipped = 0
    for word, number in _UNITTEST_PAIR.findall(found["pairs"] or ""):
        if word.strip() in ("skipped", "expected failures"):
            skipped += int(number)
        else:
            failed += int(number)
    failed = max(failed, int(found["word"] == "FAILED"))
    ran, *_, ended = found[0].split("\n")
    passed = max(0, int(found["total"]) - failed - skipped)
    return _Count(passed, failed, skipped, ended if failed else ran)


def _of_groups(found: re.Match[str]) -> _Count:
    groups = {name: int(number or 0) for name, number in found.groupdict().items()}
    failed, skipped = groups.get("failed", 0), groups.get("skipped", 0)
    passed = groups.get("passed", groups.get("total", 0) - failed - skipped)
    if "passed" in groups and "total" in groups:
        failed = groups["total"] - passed
    return _Count(max(0, passed), failed, skipped, found[0].strip())


def _by_lines(lines: list[str]) -> list[_Count]:
    """Return the counts of lines that are a count, and no part or repetition of another."""
    counts: list[_Count] = []
    parts: list[_Count] = []
    for line in lines:
        if not any(map(str.isdigit, line)) or len(line) > 400:
            continue
        if (found := _COUNTED.match(line)) and (count := _of_pairs(line, found, True)):
            (parts if _ALL.match(line) else counts).append(count)
        elif (found := _NAMED.match(line)) and (count := _of_pairs(line, found, False)):
            (parts if "Time elapsed" in line else counts).append(count)
    return counts or parts


def _of_pairs(line: str, found: re.Match[str], is_number_first: bool) -> _Count | None:
    """Return the count of a line; None where its numbers are not of tests."""
    if re.match(r"\s*(?:\S+: )?(?:Test Suites|Test Files|Snapshots)\b", line):
        return None
    bare = re.sub(r"\([^()]*\)", "", found["pairs"])
    if is_number_first:
        pairs = [(word, int(number)) for number, word in _NUMBER_FIRST.findall(bare)]
    else:
        pairs = [(word, int(number)) for word, number in _WORD_FIRST.findall(bare)]
    sums = dict.fromkeys(("failed", "skipped", "passed", "total", "other", ""), 0)
    words = [word.strip().lower() for word, _ in pairs]
    if any(map(_NO_TESTS.match, words)):
        return None
    for word, (_, number) in zip(words, pairs, strict=True):
        sums[_kind(word)] += number
    kinds = {_kind(word) for word in words}
    is_of_all = re.match(r"(?i)\s*(?:DONE|OK \()", line)
    if not kinds & {"passed", "failed", "skipped"} and not is_of_all:
        return None
    is_errors = kinds <= {"failed", "other", ""} and all("fail" not in word for word in words)
    if is_errors and not re.search(r" in [\d.]+ ?s", line):
        return None
    passed = sums["passed"]
    if "passed" not in kinds and "total" in kinds:
        passed = max(0, sums["total"] - sums["failed"] - sums["skipped"])
    return _Count(passed, sums["failed"], sums["skipped"], line.strip())


def _kind(word: str) -> str:
    return next((kind for kind, form in _KINDS.items() if form.search(word.lower())), "")


def _cases_in(lines: list[str]) -> _Count | None:
    """Return the count of tests that were printed one by one, of parents and children the latter;
    None where none was."""
    go: dict[str, tuple[str, str]] = {}
    total = _Count()
    tap = False
    for line in lines:
        case = _GO_CASE.match(line) or _GO_JSON.search(line)
        if case:
            name, word = case["name"], case["word"].lower()
            if name not in go or word == "fail":
                go[name] = word, line
        elif found := _TAP.match(line):
            tap = True
            _add(total, "skip" if found[3] else "fail" if found[1] else "pass", line)
    above = {name.rpartition("/")[0] for name in go}
    above_failed = {name.rpartition("/")[0] for name, (word, _) in go.items() if word == "fail"}
    for name, (word, line) in go.items():
        if name not in (above_failed if word == "fail" else above):
            _add(total, word, line)
    if total.passed and not total.failed:
        total.line = _last(filter(_GO_PACKAGE.match, lines), "passed") or total.line
    return total if go or tap else None


def _add(total: _Count, word: str, line: str) -> None:
    if word == "skip":
        total.skipped += 1
    elif word == "fail":
        total.failed += 1
    else:
        total.passed += 1
    is_first_failure = word == "fail" and total.failed == 1
    if is_first_failure or not total.line or (word == "pass" and total.passed == 1):
        total.line = total.line if total.failed and word != "fail" else line.strip()
