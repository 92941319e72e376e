"""Everything that can be checked of a record without its repository."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from msgspec import Struct

from debrief.errors import InputError, shown
from debrief.git.scratch import PLAIN, FileState
from debrief.markdown import counted
from debrief.recorder import contracts
from debrief.recorder.commands import command_problem, is_validation, rules_problems
from debrief.recorder.contracts import (
    APPLY_PATCH,
    OUTPUT_LIMIT,
    READ_FILE,
    TRUNCATED,
    CommandRules,
    Contents,
    Meta,
    Record,
)
from debrief.recorder.encoding import PATCHED, AnsweredCall, calls_of, tools_for
from debrief.recorder.patching import apply_operations
from debrief.recorder.paths import path_problem

RANK: dict[type, int] = {contracts.DeleteFile: 0, contracts.UpdateFile: 1, contracts.CreateFile: 2}
"""The order of operations, before that of paths."""
_MOST_PROBLEMS = 50
_LONGEST_PLACEHOLDER = 128
_ORDER = re.compile("s?(?:u(?:Fr)*(?:Cr)*(?:Pr(?:Cr)+)*(?:Pr)?t?)?")
"""Messages: system, user, calls that read a file, run a command or patch, each with its result, and
the closing text. Between two patches a command was run."""
_OUT_OF_ORDER = {
    **dict.fromkeys(("", "b"), "the assistant's closing words are missing"),
    "t": "comes after the assistant's closing words",
    "r": "a result without a call",
    "F": "a file is read after commands or a patch",
    "P": "a second patch without a command before it",
    "C": "a call without a result",
}
_CREDENTIALS = re.compile(r"https?://[^/]*@|[a-z+]+://[^/@]*:[^/]*@", re.IGNORECASE)


class ReadyRule(Struct, frozen=True, kw_only=True):
    """What a record has to have before it may train a model."""

    validation: bool = True
    """A lint, test or build command was run."""
    passed: bool = False
    """One that counts ended with exit code 0."""
    on_final_tree: bool = False
    """One that counts ran on the very tree that the record rebuilds."""


def problems_of(record: Record) -> list[str]:
    """Return what is wrong with the record, in words; empty when it is consistent.

    A consistent record's calls and results are linked and in order, its commands are of the
    allowlist or of the rules that it holds, its operations apply to the files that it holds, and
    its ``meta`` agrees with its messages. At most 50 problems are returned.
    """
    return list(islice(_problems(record), _MOST_PROBLEMS))


class RanCheck(NamedTuple):
    """A lint, test or build command that was run."""

    on_final_tree: bool
    """On the very files that the changes end with."""
    exit_code: int | None


class ReadyFacts(Struct, frozen=True, kw_only=True):
    """What decides whether a session may train a model."""

    contents: Contents
    changes: int
    mixed: str
    """Why the changes may hold those of others; empty if they do not."""
    skipped: int
    """Changed paths that are left out, by nobody's wish, and that nobody said are no loss."""
    prompt: str
    checks: tuple[RanCheck, ...]
    rules: CommandRules | None
    """The repository's own."""
    verified: bool = True
    unsure_redactions: int = 0


def readiness(record: Record, rule: ReadyRule) -> list[str]:
    """Return why a consistent record may not train a model, in words; empty when it may."""
    meta = record.meta
    skipped = sum(not one.is_ignored for one in meta.skipped)
    prompts = (one.content for one in record.messages if isinstance(one, contracts.UserMessage))
    facts = ReadyFacts(
        contents=meta.contents,
        changes=len(meta.changes),
        mixed=meta.others.mixed if meta.others else "",
        skipped=0 if meta.skipped_accepted else skipped,
        prompt=next(prompts, ""),
        checks=tuple(RanCheck(one.on_final_tree, one.exit_code) for one in validations_of(record)),
        rules=meta.rules,
        verified=meta.verified,
        unsure_redactions=meta.redactions.unsure,
    )
    return missing_for(facts, rule)


def missing_for(facts: ReadyFacts, rule: ReadyRule) -> list[str]:
    """Return what a session lacks before it may train a model, in words."""
    reasons = []
    if facts.contents != "full":
        reasons.append("it was recorded without the contents of files")
    elif not facts.changes:
        reasons.append("it changes no file")
    if not facts.verified:
        reasons.append("its patches were not verified to rebuild the final tree")
    if facts.mixed:
        reasons.append(f"its changes may hold those of others: {facts.mixed}")
    if facts.skipped:
        reasons.append(
            f"{counted(facts.skipped, 'changed path')} could not be recorded, and nobody said "
            "that it is whole without"
        )
    if facts.unsure_redactions:
        reasons.append(f"{facts.unsure_redactions} redactions have to be looked at")
    if not facts.prompt.strip():
        reasons.append("the user's message is empty")
    counting = [one for one in facts.checks if one.on_final_tree or not rule.on_final_tree]
    if rule.validation and not facts.checks:
        reasons.append(f"no validation command ({_checks_of(facts.rules)}) was run")
    elif rule.validation and not counting:
        reasons.append("no validation command ran on the final tree")
    elif rule.validation and rule.passed and not any(one.exit_code == 0 for one in counting):
        reasons.append("no validation command passed")
    return reasons


def _checks_of(rules: CommandRules | None) -> str:
    """Return the names of a repository's checks."""
    checks = [rule for rule in rules.commands if rule.check] if rules else []
    own = [" ".join((rule.program, *rule.arguments)) for rule in checks]
    return ", ".join([*own, "pnpm lint, test or build"]) if own else "lint, test or build"


def validations_of(record: Record) -> list[contracts.CommandSummary]:
    """Return the commands of the record that lint, test or build."""
    meta = record.meta
    return [one for one in meta.commands if is_validation(one.cmd, one.args, meta.rules)]


def is_validated(record: Record) -> bool:
    """Return whether a validation command ran on the tree that the record rebuilds."""
    return any(one.on_final_tree for one in validations_of(record))


def line_count(text: str) -> int:
    """Return how many lines a text has; a last one without a line end counts."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def change_of(op: contracts.Operation, before: str = "") -> contracts.FileChange:
    """Return an operation in numbers.

    Args:
        op: the operation; an update's hunks have to add up.
        before: the text of a file that it deletes.
    """
    if isinstance(op, contracts.CreateFile):
        return contracts.FileChange(
            path=op.path, kind="create", added=line_count(op.diff), removed=0
        )
    if isinstance(op, contracts.DeleteFile):
        return contracts.FileChange(
            path=op.path, kind="delete", added=0, removed=line_count(before)
        )
    added, removed = op.diff.count("\n+"), op.diff.count("\n-")
    return contracts.FileChange(path=op.path, kind="update", added=added, removed=removed)


def _problems(record: Record) -> Iterator[str]:
    unlinked = list(_linkage(record))
    if unlinked:
        yield from unlinked
        return
    rules = record.meta.rules
    if rules is not None:
        yield from (f"meta.rules: {problem}" for problem in rules_problems(rules))
    if record.tools != list(tools_for(rules)):
        yield "tools: not the definitions of the recorder's three tools"
    files: dict[str, str] = {}
    patches: list[tuple[AnsweredCall, list[contracts.Operation]]] = []
    commands: list[tuple[AnsweredCall, contracts.RunCommand]] = []
    for each in calls_of(record):
        where = f"messages[{each.index}]"
        try:
            if each.call.function.name == READ_FILE:
                path = each.arguments(contracts.ReadFile).path
                if problem := path_problem(path):
                    yield f"{where}: {problem}"
                if files and path <= next(reversed(files)):
                    yield f"{where}: files are read once each, sorted by path"
                files[path] = each.result
            elif each.call.function.name == APPLY_PATCH:
                patches.append((each, each.arguments(contracts.ApplyPatch).ops))
                if each.result != PATCHED:
                    yield f"messages[{each.index + 1}]: the result of a patch is {PATCHED}"
            else:
                command = each.arguments(contracts.RunCommand)
                commands.append((each, command))
                if problem := command_problem(command.cmd, command.args, command.cwd, rules):
                    yield f"{where}: {problem}"
        except InputError as error:
            yield str(error)
            return
    operations = [ops for _, ops in patches]
    final = {path: FileState(PLAIN, text) for path, text in files.items()}
    is_applied = record.meta.contents == "full"
    try:
        for ops in operations:
            final = apply_operations(final, ops)
    except InputError as error:
        is_applied = False
        yield f"apply_patch: {error}"
    yield from _order(files, operations)
    yield from _meta_problems(record.meta, files, patches, commands)
    if is_applied:
        yield from _changes(record.meta, files, operations, final)


def _linkage(record: Record) -> Iterator[str]:
    """Yield what is wrong with the order and the linkage of the record's messages.

    The order is: a system message if there is one, the user's, then each call followed by its own
    result, and the assistant's closing words. Of the calls, files are read first; then patches and
    commands come as they came, with a command at least between two patches.
    """
    kinds = "".join(map(_kind, record.messages))
    match = _ORDER.match(kinds)
    end = match.end() if match else 0
    found = kinds[end : end + 1]
    if "u" not in kinds[:end]:
        yield f"messages[{end}]: not the user's message"
    elif found or kinds[-1] != "t":
        if kinds[end - 1] == "t":
            found = "t"
        elif found and found in "FPC" and kinds[end + 1 : end + 2] != "r":
            found = "C"
        yield f"messages[{end}]: {_OUT_OF_ORDER.get(found, 'neither a call nor its result')}"
    used: set[str] = set()
    for index, (call, result) in enumerate(pairwise(record.messages)):
        if isinstance(call, contracts.AssistantMessage) and call.tool_calls:
            call_id = call.tool_calls[0].id
            if isinstance(result, contracts.ToolMessage) and result.tool_call_id != call_id:
                yield f"messages[{index + 1}]: the result of another call than the one before it"
            if call_id in used:
                yield f"messages[{index}]: the id {call_id} belongs to two calls"
            used.add(call_id)


def _kind(message: contracts.Message) -> str:
    """Return the letter that ``_ORDER`` has for a message."""
    if isinstance(message, contracts.AssistantMessage):
        if message.tool_calls:
            return {READ_FILE: "F", APPLY_PATCH: "P"}.get(message.tool_calls[0].function.name, "C")
        return "t" if message.content.strip() else "b"
    return "r" if message.role == "tool" else message.role[0]


def _order(
    files: Mapping[str, str], patches: Sequence[Sequence[contracts.Operation]]
) -> Iterator[str]:
    for ops in patches:
        for before, after in pairwise(ops):
            if (RANK[type(before)], before.path) >= (RANK[type(after)], after.path):
                yield "apply_patch: operations are deletes, updates, creates, each once and by path"
                break
    first: dict[str, contracts.Operation] = {}
    for op in (op for ops in patches for op in ops):
        first.setdefault(op.path, op)
    needed = {path for path, op in first.items() if not isinstance(op, contracts.CreateFile)}
    for path in sorted(needed - files.keys()):
        yield f"apply_patch: {shown(path)} is changed, but was not read"
    for path in sorted(files.keys() - needed):
        yield f"apply_patch: {shown(path)} was read, but is not changed"


def _meta_problems(
    meta: Meta,
    files: Mapping[str, str],
    patches: Sequence[tuple[AnsweredCall, list[contracts.Operation]]],
    commands: Sequence[tuple[AnsweredCall, contracts.RunCommand]],
) -> Iterator[str]:
    """Yield where ``meta`` disagrees with the messages or with itself."""
    if meta.contents == "none" and (files or patches or any(done.result for done, _ in commands)):
        yield "meta.contents: none, but the messages hold contents or outputs"
    called = [each.call.id for each, _ in patches]
    if [step.call_id for step in meta.steps] != called and (meta.version > 1 or len(called) > 1):
        yield "meta.steps: not the patches of the messages, in their order"
    elif meta.steps and meta.steps[-1].tree != meta.final_tree:
        yield "meta.steps: the last one's tree is not finalTree"
    yield from _commands(meta, commands, patches[-1][0].index if patches else None)
    both = {change.path for change in meta.changes} & {one.path for one in meta.skipped}
    for path in sorted(both):
        yield f"meta.skipped: {shown(path)} is among the changes too"
    if meta.stopped_at < meta.started_at:
        yield "meta.stoppedAt: before startedAt"
    ids = [meta.final_tree, *(step.tree for step in meta.steps)]
    ids += [meta.others.first_base] if meta.others else []
    if any(len(each) != len(meta.base_ref) for each in ids):
        yield "meta.finalTree: of another length than baseRef"
    if meta.redactions.unsure > meta.redactions.count:
        yield "meta.redactions: more are unsure than there are"
    if meta.repo_remote is not None and _CREDENTIALS.match(meta.repo_remote):
        yield "meta.repoRemote: holds a user name or a password"


def _changes(
    meta: Meta,
    files: Mapping[str, str],
    patches: Sequence[Sequence[contracts.Operation]],
    final: Mapping[str, FileState],
) -> Iterator[str]:
    """Yield where ``meta.changes`` is not what the patches come to.

    What a file's only patch does is known exactly; of a file that several change, whether it is
    there before and after, and by how many lines it grew.
    """
    stated: dict[tuple[str, str], contracts.FileChange] = {
        (change.path, change.kind): change for change in meta.changes
    }
    if len(stated) != len(meta.changes):
        yield "meta.changes: a change is listed twice"
    by_path: dict[str, list[list[contracts.Operation]]] = {}
    for ops in patches:
        for path in dict.fromkeys(op.path for op in ops):
            by_path.setdefault(path, []).append([op for op in ops if op.path == path])
    for path, groups in by_path.items():
        if len(groups) > 1:
            found = [stated.pop((path, kind), None) for kind in ("delete", "update", "create")]
            if problem := _net_problem(found, files.get(path), final.get(path)):
                yield f"meta.changes: {shown(path)} {problem}"
            continue
        for op in groups[0]:
            made = change_of(op, files.get(path, ""))
            change = stated.pop((made.path, made.kind), None)
            if change is None:
                yield f"meta.changes: {shown(op.path)} ({made.kind}) is missing"
            elif change != made:
                numbers = f"adds {made.added} and removes {made.removed} lines"
                yield f"meta.changes: {shown(op.path)} ({made.kind}) {numbers}"
    for path, other in stated:
        yield f"meta.changes: {shown(path)} ({other}) is not in the patch"


def _net_problem(
    found: Sequence[contracts.FileChange | None], before: str | None, after: FileState | None
) -> str:
    """Return why the changes stated of a file are not what several patches come to."""
    deleted, updated, created = found
    text = None if after is None else after.text
    lines = line_count(before or ""), line_count(text or "")
    if updated:
        grew = updated.added - updated.removed == lines[1] - lines[0]
        if None in (before, text) or deleted or created or not grew:
            return f"(update) is not from {lines[0]} to {lines[1]} lines"
        return ""
    if before is not None and before == text and not (deleted or created):
        return ""
    if bool(deleted) != (before is not None) or (deleted and deleted.removed != lines[0]):
        return f"(delete) is not of {lines[0]} lines"
    if bool(created) != (text is not None) or (created and created.added != lines[1]):
        return f"(create) is not of {lines[1]} lines"
    return ""


def _commands(
    meta: Meta, commands: Sequence[tuple[AnsweredCall, contracts.RunCommand]], patched: int | None
) -> Iterator[str]:
    called = [(call.call.id, one.cmd, one.args, one.cwd) for call, one in commands]
    if called != [(one.call_id, one.cmd, one.args, one.cwd) for one in meta.commands]:
        yield "meta.commands: not the commands of the messages, in their order"
        return
    most = OUTPUT_LIMIT + len(TRUNCATED) + _LONGEST_PLACEHOLDER * meta.redactions.count
    for (call, _), summary in zip(commands, meta.commands, strict=True):
        place = f"messages[{call.index + 1}]"
        if len(call.result) > most:
            yield f"{place}: an output of over {OUTPUT_LIMIT:,} characters"
        if summary.truncated and meta.contents == "full" and not call.result.endswith(TRUNCATED):
            yield f"{place}: a truncated output without the marker"
        if patched is not None and summary.on_final_tree != (call.index > patched):
            yield f"messages[{call.index}]: on the wrong side of the last patch for onFinalTree"
