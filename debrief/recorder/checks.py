"""Everything that can be checked of a record without its repository."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from msgspec import Struct

from debrief.errors import InputError
from debrief.recorder.agreement import meta_problems
from debrief.recorder.allowlist import command_problem, is_validation
from debrief.recorder.applier import FileState, apply_operations
from debrief.recorder.contracts import (
    APPLY_PATCH,
    READ_FILE,
    RUN_COMMAND,
    ApplyPatch,
    AssistantMessage,
    CommandSummary,
    CreateFile,
    DeleteFile,
    Message,
    Operation,
    ReadFile,
    Record,
    RunCommand,
    SystemMessage,
    ToolMessage,
    UpdateFile,
    UserMessage,
)
from debrief.recorder.paths import path_problem, shown
from debrief.recorder.scratch import PLAIN
from debrief.recorder.tools import PATCHED, TOOLS, AnsweredCall, calls_of

_RANK = {DeleteFile: 0, UpdateFile: 1, CreateFile: 2}
_MOST_PROBLEMS = 50


class ReadyRule(Struct, frozen=True, kw_only=True):
    """What a record has to have before it may train a model."""

    validation: bool = True
    """A lint, test or build command was run."""
    passed: bool = False
    """One that counts ended with exit code 0."""
    on_final_tree: bool = False
    """One that counts ran on the very tree that the record rebuilds."""


class Examined(Struct, frozen=True):
    """The result of one pass over a record."""

    problems: list[str]
    """As of ``problems_of``."""
    ops: list[Operation]
    """Of its patch; all of them, when there is no problem."""


def examine(record: Record) -> Examined:
    """Return what is wrong with the record, and what its patch does."""
    ops: list[Operation] = []
    return Examined(list(islice(_problems(record, ops), _MOST_PROBLEMS)), ops)


def problems_of(record: Record) -> list[str]:
    """Return what is wrong with the record, in words; empty when it is consistent.

    A consistent record's calls and results are linked and in order, its commands are of the
    allowlist, its operations apply to the files that it holds, and its ``meta`` agrees with its
    messages. At most 50 problems are returned.
    """
    return examine(record).problems


def readiness(record: Record, rule: ReadyRule) -> list[str]:
    """Return why a consistent record may not train a model, in words; empty when it may."""
    meta = record.meta
    reasons = []
    if meta.contents != "full":
        reasons.append("it was recorded without the contents of files")
    elif not meta.changes:
        reasons.append("it changes no file")
    if not meta.verified:
        reasons.append("its patch was not verified to rebuild the final tree")
    if meta.redactions.unsure:
        reasons.append(f"{meta.redactions.unsure} redactions have to be looked at")
    if not any(isinstance(one, UserMessage) and one.content.strip() for one in record.messages):
        reasons.append("the user's message is empty")
    if rule.validation:
        reasons += _validation_missing(validations_of(record), rule)
    return reasons


def validations_of(record: Record) -> list[CommandSummary]:
    """Return the commands of the record that lint, test or build."""
    return [one for one in record.meta.commands if is_validation(one.cmd, one.args)]


def is_validated(record: Record) -> bool:
    """Return whether a validation command ran on the tree that the record rebuilds."""
    return any(one.on_final_tree for one in validations_of(record))


def _validation_missing(ran: Sequence[CommandSummary], rule: ReadyRule) -> list[str]:
    if not ran:
        return ["no validation command (lint, test or build) was run"]
    if rule.on_final_tree:
        ran = [one for one in ran if one.on_final_tree]
        if not ran:
            return ["no validation command ran on the final tree"]
    if rule.passed and not any(one.exit_code == 0 for one in ran):
        return ["no validation command passed"]
    return []


def _problems(record: Record, ops: list[Operation]) -> Iterator[str]:
    """Yield what is wrong, and put the operations of the patch into ``ops``."""
    unlinked = list(_linkage(record))
    if unlinked:
        yield from unlinked
        return
    if record.tools != list(TOOLS):
        yield "tools: not the definitions of the recorder's three tools"
    files: dict[str, str] = {}
    commands: list[tuple[AnsweredCall, RunCommand]] = []
    patched: int | None = None
    for each in calls_of(record):
        try:
            if each.call.function.name == READ_FILE:
                yield from _read(each, each.arguments(ReadFile).path, files)
            elif each.call.function.name == APPLY_PATCH:
                patched = each.index
                ops += each.arguments(ApplyPatch).ops
                if each.result != PATCHED:
                    yield f"messages[{each.index + 1}]: the result of a patch is {PATCHED}"
            else:
                command = each.arguments(RunCommand)
                commands.append((each, command))
                if problem := command_problem(command.cmd, command.args, command.cwd):
                    yield f"messages[{each.index}]: {problem}"
        except InputError as error:
            yield str(error)
            return
    yield from _patch(files, ops)
    yield from meta_problems(record.meta, files, ops, commands, patched)


def _linkage(record: Record) -> Iterator[str]:
    """Yield what is wrong with the order and the linkage of the record's messages.

    The order is: a system message if there is one, the user's, then each call followed by its own
    result, and the assistant's closing words. Of the calls, files are read first, the patch is
    applied at most once, and only commands come after it.
    """
    messages = record.messages
    first = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    if len(messages) <= first or not isinstance(messages[first], UserMessage):
        yield f"messages[{first}]: not the user's message"
    last = len(messages) - 1
    if last <= first or not _is_text(messages[last]):
        yield f"messages[{max(last, 0)}]: the assistant's closing words are missing"
        last += 1
    yield from _call_pairs(messages, first + 1, last)
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            continue
        name = message.tool_calls[0].function.name
        if name == READ_FILE and seen & {RUN_COMMAND, APPLY_PATCH}:
            yield f"messages[{index}]: a file is read after commands or the patch"
        if name == APPLY_PATCH and APPLY_PATCH in seen:
            yield f"messages[{index}]: a second patch"
        seen.add(name)


def _is_text(message: Message) -> bool:
    return (
        isinstance(message, AssistantMessage)
        and not message.tool_calls
        and bool(message.content.strip())
    )


def _call_pairs(messages: Sequence[Message], first: int, last: int) -> Iterator[str]:
    pending = ""
    used: set[str] = set()
    for index, message in enumerate(messages[first:last], first):
        if isinstance(message, ToolMessage):
            if not pending:
                yield f"messages[{index}]: a result without a call"
            elif message.tool_call_id != pending:
                yield f"messages[{index}]: the result of another call than the one before it"
            pending = ""
            continue
        if pending:
            yield f"messages[{index - 1}]: a call without a result"
            pending = ""
        if isinstance(message, AssistantMessage) and message.tool_calls:
            pending = message.tool_calls[0].id
            if pending in used:
                yield f"messages[{index}]: the id {pending} belongs to two calls"
            used.add(pending)
        else:
            yield f"messages[{index}]: neither a call nor its result"
    if pending:
        yield f"messages[{last - 1}]: a call without a result"


def _read(tool_call: AnsweredCall, path: str, files: dict[str, str]) -> Iterator[str]:
    where = f"messages[{tool_call.index}]"
    if problem := path_problem(path):
        yield f"{where}: {problem}"
    if files and path <= next(reversed(files)):
        yield f"{where}: files are read once each, sorted by path"
    files[path] = tool_call.result


def _patch(files: dict[str, str], ops: Sequence[Operation]) -> Iterator[str]:
    for before, after in pairwise(ops):
        if (_RANK[type(before)], before.path) >= (_RANK[type(after)], after.path):
            yield "apply_patch: operations are deletes, updates, creates, each once and by path"
            break
    needed = {op.path for op in ops if not isinstance(op, CreateFile)}
    for path in sorted(needed - files.keys()):
        yield f"apply_patch: {shown(path)} is changed, but was not read"
    for path in sorted(files.keys() - needed):
        yield f"apply_patch: {shown(path)} was read, but is not changed"
    if needed <= files.keys():
        try:
            apply_operations({path: FileState(PLAIN, text) for path, text in files.items()}, ops)
        except InputError as error:
            yield f"apply_patch: {error}"
