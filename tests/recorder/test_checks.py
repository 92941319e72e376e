"""What is wrong with a record, and what it lacks before it may train a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.recorder.checks import ReadyRule, is_validated, problems_of, readiness
from debrief.recorder.contracts import (
    OUTPUT_LIMIT,
    TRUNCATED,
    OthersWork,
    Record,
    Redactions,
    Skipped,
)
from debrief.recorder.encoding import decode_record
from debrief.recorder.messages import line_count
from tests.recorder.records import (
    AFTER,
    BEFORE,
    GONE,
    Damage,
    as_json,
    build,
    damaged,
    put,
    without_contents,
)

RECORD = build()
SYSTEM, USER, READ, READ_RESULT = 0, 1, 2, 3
EARLY, PATCH, LATE, CLOSING = 8, 10, 12, 14
SECOND_PATCH = {**as_json(RECORD)["messages"][PATCH]["tool_calls"][0], "id": "call00006"}
Case = tuple[str, Damage, str]


def found(damage: Damage, record: Record = RECORD) -> str:
    """Return the problems of a record that was damaged in one place."""
    problems = problems_of(decode_record(damaged(damage, record)))
    assert problems, "the damage is not noticed"
    assert all(len(problem) < 1000 for problem in problems)
    return "\n".join(problems)


def arguments(index: int, change: Callable[[Any], object]) -> Damage:
    """Change the arguments of the call in one message."""

    def damage(record: Any) -> None:
        function = record["messages"][index]["tool_calls"][0]["function"]
        value = json.loads(function["arguments"])
        change(value)
        function["arguments"] = json.dumps(value)

    return damage


def op(number: int, **changes: Any) -> Damage:
    return arguments(PATCH, lambda value: value["ops"][number].update(changes))


def pop(index: int) -> Damage:
    """Take a message out."""
    return put(f"messages.{index}", GONE)


def insert(place: int, index: int) -> Damage:
    """Put a copy of a message in a second place."""
    return lambda record: record["messages"].insert(place, record["messages"][index])


def swap(one: int, other: int) -> Damage:
    """Let two calls and their results change places."""

    def damage(record: Any) -> None:
        messages = record["messages"]
        first, second = messages[one : one + 2], messages[other : other + 2]
        messages[one : one + 2], messages[other : other + 2] = second, first

    return damage


def one_id(record: Any) -> None:
    put("messages.4.tool_calls.0.id", "call00001")(record)
    put("messages.5.tool_call_id", "call00001")(record)


def test_a_session_as_it_is_recorded_has_no_problems_and_is_ready() -> None:
    assert problems_of(RECORD) == []
    assert readiness(RECORD, ReadyRule(passed=True, on_final_tree=True)) == []
    assert is_validated(RECORD)


def test_a_record_without_closing_words_is_a_draft() -> None:
    record = decode_record(damaged(pop(CLOSING), RECORD))

    assert problems_of(record) == []
    assert readiness(record, ReadyRule()) == ["the assistant's closing words are missing"]


def test_commands_may_come_before_the_files_that_are_read() -> None:
    messages = as_json(RECORD)["messages"]
    early, reads = messages[EARLY:PATCH], messages[READ:EARLY]

    record = decode_record(
        damaged(put("messages", [*messages[:READ], *early, *reads, *messages[PATCH:]]))
    )

    assert problems_of(record) == []


def test_a_verified_record_tells_its_final_tree() -> None:
    record = decode_record(damaged(put("meta.finalTree", GONE)))

    assert problems_of(record) == ["meta.verified: true, but finalTree is missing"]


texts = st.lists(st.sampled_from(["a", "", "b ", "ü", "@@ -1 +1 @@"]), max_size=8).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)
trees = st.dictionaries(st.sampled_from(["a", "b/c", "b/d", "e"]), texts)


@settings(deadline=None)
@given(trees, trees)
def test_whatever_is_changed_its_record_is_consistent(
    before: dict[str, str], after: dict[str, str]
) -> None:
    assert problems_of(build(before, after)) == []


CONVERSATION: list[Case] = [
    ("no messages", put("messages", []), "messages[0]: not the user's message"),
    ("no user", pop(USER), "messages[1]: not the user's message"),
    ("user first", lambda r: r["messages"].insert(0, r["messages"].pop(1)), "messages[1]:"),
    ("two users", insert(1, USER), "neither a call nor"),
    ("blank closing words", put("messages.14.content", " \n"), "closing words are blank"),
    ("closing words early", insert(2, CLOSING), "messages[3]: comes after the assistant's closing"),
    ("a call as closing words", insert(15, READ), "messages[15]: comes after the assistant's"),
    ("no result", pop(READ_RESULT), "messages[2]: a call without a"),
    ("no call", pop(READ), "messages[2]: a result without a call"),
    ("no last result", pop(13), "messages[12]: a call without a"),
    ("two results", insert(3, 3), "messages[4]: a result without a call"),
    ("another's result", put("messages.3.tool_call_id", "call00099"), "the result of another call"),
    ("one id for two calls", one_id, "messages[4]: the id call00001 belongs to two calls"),
    ("a file read after a patch", swap(READ, PATCH), "a file is read after a patch"),
    ("files in disorder", swap(READ, READ + 2), "sorted by path"),
    (
        "a file read twice",
        arguments(READ + 2, put("path", "README.md")),
        "files are read once each",
    ),
    ("two patches", put("messages.12.tool_calls", [SECOND_PATCH]), "messages[12]: a second patch"),
    ("a patch that failed", put("messages.11.content", '{"ok":false}'), "result of a patch"),
    ("no tools", put("tools", []), "tools: not the definitions"),
    ("other tools", put("tools.0.function.name", "read"), "tools: not the definitions"),
    ("doubled tools", lambda r: r["tools"].append(r["tools"][0]), "tools: not the definitions"),
]
READ_ARGUMENTS = "messages.2.tool_calls.0.function.arguments"
ARGUMENTS: list[Case] = [
    ("no JSON", put(READ_ARGUMENTS, "{"), "messages[2], arguments of repo.readFile: not JSON"),
    ("more", arguments(READ, put("encoding", "latin-1")), "encoding: Extra inputs"),
    ("a number", arguments(READ, put("path", 1)), "path: Input should be a valid string"),
    ("the wrong tool", put("messages.6.tool_calls.0.function.name", "run_cmd"), "cmd: Field"),
    ("an unknown operation", op(0, type="rename_file"), "ops[0]: Input tag 'rename_file'"),
    ("a delete with a diff", op(0, diff=""), "ops[0].diff: Extra inputs"),
    ("an unknown mode", op(1, mode="100664"), "ops[1].mode: Input should be"),
    ("no ops", arguments(PATCH, put("ops", GONE)), "ops: Field required"),
    ("a bare create", arguments(PATCH, put("ops.3.diff", GONE)), "ops[3].diff: Field required"),
    ("a bare update", arguments(PATCH, put("ops.1.diff", GONE)), "ops[1].diff: Field required"),
]
OPERATIONS: list[Case] = [
    ("outside", op(3, path="src/../../x"), "leaves its folder"),
    ("endless", op(1, path="x" * 900_000), "x…' is changed, but was not read"),
    ("reading outside", arguments(READ, put("path", "../README.md")), "leaves its folder"),
    ("in a file", op(3, path="src/cart.ts/x"), "'src/cart.ts' is not a folder"),
    ("over a file", op(3, path="src/cart.ts"), "is created, but is there already"),
    ("by type", arguments(PATCH, lambda v: v["ops"].reverse()), "deletes, updates, creates"),
    ("by path", arguments(PATCH, lambda v: v["ops"].insert(1, v["ops"].pop(2))), "and by path"),
    ("twice", arguments(PATCH, lambda v: v["ops"].append(v["ops"][3])), "each once and by"),
    ("unread update", op(1, path="LICENSE"), "'LICENSE' is changed, but was not read"),
    ("unread delete", op(0, path="new.ts"), "'new.ts' is changed, but was not read"),
    ("unchanged read", arguments(PATCH, put("ops.0", GONE)), "'old.ts' was read, but is not"),
    ("empty", op(1, diff=""), "changes neither text nor mode"),
    ("of another text", op(1, diff="@@ -1 +1 @@\n-# Store\n+# Shop\n"), "line 1 of the text"),
    ("another baseline", put("messages.3.content", "# Shop\n"), "'README.md': line 1: the text"),
    ("a link", op(1, mode="120000"), "into a link or back"),
]
COMMANDS: list[Case] = [
    ("program", arguments(EARLY, put("cmd", "sh")), "messages[8]: the program is not pnpm"),
    ("arguments", arguments(EARLY, put("args", ["lint;id"])), "messages[8]: no pattern"),
    ("folder", arguments(EARLY, put("cwd", "..")), "messages[8]: the working directory"),
    ("output", put("messages.9.content", "x" * 50_013), "an output of over 50,000 characters"),
]
SKIPPED_TOO = [{"path": "old.ts", "reason": "binary"}]
META: list[Case] = [
    ("changes", put("meta.changes", []), "changes is for the messages alone to tell"),
    ("steps", put("meta.steps", []), "steps is for the messages alone to tell"),
    ("no command", put("meta.commands", []), "not the commands of the messages"),
    ("args", put("meta.commands.0.args", ["test"]), "args is for the messages alone to tell"),
    ("id", put("meta.commands.0.callId", "call00009"), "not the commands of the messages"),
    ("order", lambda r: r["meta"]["commands"].reverse(), "not the commands of the messages"),
    ("tree", put("meta.commands.1.onFinalTree", True), "onFinalTree is for the messages alone"),
    ("time", put("meta.stoppedAt", "2026-11-01T00:00:00Z"), "before startedAt"),
    ("digest", put("meta.finalTree", "2" * 64), "of another length than baseRef"),
    ("redactions", put("meta.redactions.unsure", 1), "more are unsure than there are"),
    ("skipped", put("meta.skipped", SKIPPED_TOO), "'old.ts' is among the changes too"),
    ("password", put("meta.repoRemote", "https://me:pw@example.org/x.git"), "a user name or"),
    ("token", put("meta.repoRemote", "https://token@example.org/x.git"), "a user name or"),
    ("password", put("meta.repoRemote", "ssh://git:pw@example.org/x.git"), "a user name or"),
    ("contents", put("meta.contents", "none"), "but the messages hold contents or outputs"),
]


@pytest.mark.parametrize(
    ("name", "damage", "problem"),
    [*CONVERSATION, *ARGUMENTS, *OPERATIONS, *COMMANDS, *META],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_record_that_contradicts_itself_is_refused_with_the_place(
    name: str, damage: Damage, problem: str
) -> None:
    assert problem in found(damage), name


def test_a_cut_output_with_its_marker_is_as_long_as_it_gets() -> None:
    record = as_json(RECORD)
    record["messages"][9]["content"] = "x" * OUTPUT_LIMIT + TRUNCATED
    assert problems_of(decode_record(json.dumps(record).encode())) == []


REMOTES = """git@example.org:shop/shop.git ssh://git@example.org/shop.git ../shop /srv/git/shop.git
    https://example.org/shop.git https://example.org/@scope/shop.git"""


@pytest.mark.parametrize("remote", REMOTES.split())
def test_a_remote_without_a_password_is_fine(remote: str) -> None:
    assert problems_of(build(repo_remote=remote)) == []


def test_a_broken_record_tells_at_most_fifty_problems() -> None:
    before = {f"f{n:04}": "x\n" for n in range(80)}
    record = as_json(build(before=before, after={}))
    record["meta"]["skipped"] = [{"path": path, "reason": "binary"} for path in before]
    assert len(problems_of(decode_record(json.dumps(record).encode()))) == 50


@pytest.mark.parametrize(
    ("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2), ("a\r\u2028b", 1)]
)
def test_lines_end_at_line_feeds_alone(text: str, lines: int) -> None:
    assert line_count(text) == lines
    assert line_count(AFTER["src/cart.test.ts"]) == 4


SKIPPED = [Skipped(path="logo.png", reason="binary: it has NUL bytes")]
OTHERS = OthersWork(first_base="3" * 40, commits=1, files=2, mixed="a merge is under way")


def test_a_record_without_contents_is_consistent_and_never_ready() -> None:
    record = without_contents()
    assert problems_of(record) == []
    assert readiness(record, ReadyRule(validation=False)) == [
        "it was recorded without the contents of files"
    ]


IS_WHOLE = "1 changed path could not be recorded, and nobody said that it is whole without"
INSTALLED = {"earlier": [(["add", "test"], "")], "final": [(["install"], "")]}
RULES: list[tuple[dict[str, Any], dict[str, bool], str]] = [
    ({}, {}, ""),
    ({}, {"passed": True, "on_final_tree": True}, ""),
    ({"final": []}, {}, ""),
    ({"final": []}, {"on_final_tree": True}, "no validation command ran on the final tree"),
    ({"final": []}, {"passed": True}, "no validation command passed"),
    ({"final": []}, {"validation": False, "passed": True}, ""),
    ({"earlier": [], "final": []}, {"validation": False}, ""),
    (INSTALLED, {}, "no validation command (lint, test or build) was run"),
    ({"before": BEFORE, "after": BEFORE}, {}, "it changes no file"),
    ({"verified": False}, {}, "its patches were not verified to rebuild the final tree"),
    ({"redactions": Redactions(count=3, unsure=2)}, {}, "2 redactions have to be looked at"),
    ({"redactions": Redactions(count=3, kinds=["github-token"])}, {}, ""),
    ({"skipped": [Skipped(path="dist/", reason="ignored (3 changed files)")]}, {}, ""),
    ({"skipped": SKIPPED}, {}, IS_WHOLE),
    ({"skipped": SKIPPED, "skipped_accepted": True}, {}, ""),
    ({"others": OTHERS}, {}, "its changes may hold those of others: a merge is under way"),
]


@pytest.mark.parametrize(("given", "rule", "reason"), RULES)
def test_the_rule_says_why_a_record_may_not_train(
    given: dict[str, Any], rule: dict[str, bool], reason: str
) -> None:
    record = build(**given)
    assert problems_of(record) == []
    assert readiness(record, ReadyRule(**rule)) == ([reason] if reason else [])


def test_a_record_is_validated_by_a_command_on_its_final_tree_alone() -> None:
    assert not is_validated(build(final=[(["install"], "")]))
    assert is_validated(build(earlier=[]))
