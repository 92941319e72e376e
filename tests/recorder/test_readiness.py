from __future__ import annotations

import pytest

from debrief.recorder.checks import ReadyRule, is_validated, problems_of, readiness
from debrief.recorder.contracts import OthersWork, Record, Redactions, Skipped
from tests.recorder.records import BEFORE, build, without_contents

SKIPPED = [Skipped(path="logo.png", reason="binary: it has NUL bytes")]
OTHERS = OthersWork(first_base="3" * 40, commits=1, files=2, mixed="a merge is under way")


def test_a_record_without_contents_is_consistent_and_never_ready() -> None:
    record = without_contents()
    assert problems_of(record) == []
    assert readiness(record, ReadyRule(validation=False)) == [
        "it was recorded without the contents of files"
    ]


@pytest.mark.parametrize(
    ("record", "rule", "reasons"),
    [
        (build(), ReadyRule(), []),
        (build(final=[]), ReadyRule(), []),
        (build(earlier=[], final=[]), ReadyRule(validation=False), []),
        (build(before=BEFORE, after=BEFORE), ReadyRule(), ["it changes no file"]),
        (build(verified=False), ReadyRule(), ["its patches were not verified to rebuild the final tree"]),
        (
            build(redactions=Redactions(count=3, unsure=2, kinds=["password"])),
            ReadyRule(),
            ["2 redactions have to be looked at"],
        ),
        (build(redactions=Redactions(count=3, kinds=["github-token"])), ReadyRule(), []),
        (
            build(earlier=[(["add", "test"], "")], final=[(["install"], "")]),
            ReadyRule(),
            ["no validation command (lint, test or build) was run"],
        ),
        (
            build(final=[]),
            ReadyRule(on_final_tree=True),
            ["no validation command ran on the final tree"],
        ),
        (build(final=[]), ReadyRule(passed=True), ["no validation command passed"]),
        (build(final=[]), ReadyRule(validation=False, passed=True), []),
        (build(), ReadyRule(passed=True, on_final_tree=True), []),
        (build(skipped=[Skipped(path="dist/", reason="ignored (3 changed files)")]), ReadyRule(), []),
        (build(skipped=SKIPPED, skipped_accepted=True), ReadyRule(), []),
        (
            build(skipped=SKIPPED),
            ReadyRule(),
            ["1 changed path could not be recorded, and nobody said that it is whole without"],
        ),
        (
            build(others=OTHERS),
            ReadyRule(),
            ["its changes may hold those of others: a merge is under way"],
        ),
    ],
)  # fmt: skip
def test_the_rule_says_why_a_record_may_not_train(
    record: Record, rule: ReadyRule, reasons: list[str]
) -> None:
    assert problems_of(record) == []
    assert readiness(record, rule) == reasons


def test_a_record_is_validated_by_a_command_on_its_final_tree_alone() -> None:
    assert not is_validated(build(final=[(["install"], "")]))
    assert is_validated(build(earlier=[]))
