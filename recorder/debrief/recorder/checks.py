"""Everything that can be checked of a record without its repository."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from msgspec import Struct
from pydantic.alias_generators import to_camel

from debrief.errors import InputError, shown
from debrief.markdown import counted
from debrief.recorder import contracts
from debrief.recorder.commands import command_problem, is_validation, rules_problems
from debrief.recorder.contracts import (
    APPLY_PATCH,
    OUTPUT_LIMIT,
    READ_FILE,
    RUN_COMMAND,
    TRUNCATED,
    CommandRules,
    Contents,
    Meta,
    Record,
)
from debrief.recorder.encoding import PATCHED, tools_for
from debrief.recorder.messages import AnsweredCall, calls_of, changes_of
from debrief.recorder.paths import path_problem

_MOST_PROBLEMS = 50
_LONGEST_PLACEHOLDER = 128
_ORDER = re.compile("s?(?:u(?:[FC]r)*(?:Pr(?:Cr)+)*(?:Pr)?t?)?")
"""Messages: system, user, calls that read a file, run a command or patch, each with its result, and
the closing text. Between two patches a command was run."""
_OUT_OF_ORDER = {
    "b": "the assistant's closing words are blank",
    "t": "comes after the assistant's closing words",
    "r": "a result without a call",
    "F": "a file is read after a patch",
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
    skipped = sum(not skipped.is_ignored for skipped in meta.skipped)
    prompts = (
        message.content for message in record.messages if isinstance(message, contracts.UserMessage)
    )
    facts = ReadyFacts(
        contents=meta.contents,
        changes=len(changes_of(record)),
        mixed=meta.others.mixed if meta.others else "",
        skipped=0 if meta.skipped_accepted else skipped,
        prompt=next(prompts, ""),
        checks=tuple(validations_of(record)),
        rules=meta.rules,
        verified=meta.verified,
        unsure_redactions=meta.redactions.unsure,
    )
    reasons = missing_for(facts, rule)
    if _kind(record.messages[-1]) != "t":
        reasons.append("the assistant's closing words are missing")
    return reasons


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
    counting = [check for check in facts.checks if check.on_final_tree or not rule.on_final_tree]
    if rule.validation and not facts.checks:
        reasons.append(f"no validation command ({_checks_of(facts.rules)}) was run")
    elif rule.validation and not counting:
        reasons.append("no validation command ran on the final tree")
    elif (
        rule.validation
        and rule.passed
        and not any(ran_check.exit_code == 0 for ran_check in counting)
    ):
        reasons.append("no validation command passed")
    return reasons


def _checks_of(rules: CommandRules | None) -> str:
    """Return the names of a repository's checks."""
    checks = [rule for rule in rules.commands if rule.check] if rules else []
    own = [" ".join((rule.program, *rule.arguments)) for rule in checks]
    return ", ".join([*own, "pnpm lint, test or build"]) if own else "lint, test or build"


def validations_of(record: Record) -> list[RanCheck]:
    """Return the commands of a consistent record that lint, test or build."""
    meta = record.meta
    ends = {end.call_id: end for end in meta.commands or ()}
    last = max((patch.index for patch in calls_of(record, APPLY_PATCH)), default=-1)
    checks = []
    for call in calls_of(record, RUN_COMMAND):
        ran, end = call.arguments(contracts.RunCommand), ends.get(call.call.id)
        if is_validation(ran.cmd, ran.args, meta.rules):
            is_last = bool(end and end.on_final_tree)
            if meta.contents == "full":
                is_last = call.index > last
            checks.append(RanCheck(is_last, end.exit_code if end else None))
    return checks


def is_validated(record: Record) -> bool:
    """Return whether a validation command ran on the tree that the record rebuilds."""
    return any(validation.on_final_tree for validation in validations_of(record))


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
    patches: list[list[contracts.Operation]] = []
    commands: list[AnsweredCall] = []
    for call in calls_of(record):
        where = f"messages[{call.index}]"
        try:
            if call.call.function.name == READ_FILE:
                path = call.arguments(contracts.ReadFile).path
                if problem := path_problem(path):
                    yield f"{where}: {problem}"
                if files and path <= next(reversed(files)):
                    yield f"{where}: files are read once each, sorted by path"
                files[path] = call.result
            elif call.call.function.name == APPLY_PATCH:
                patches.append(call.arguments(contracts.ApplyPatch).ops)
                if call.result != PATCHED:
                    yield f"messages[{call.index + 1}]: the result of a patch is {PATCHED}"
            else:
                command = call.arguments(contracts.RunCommand)
                commands.append(call)
                if problem := command_problem(command.cmd, command.args, command.cwd, rules):
                    yield f"{where}: {problem}"
        except InputError as error:
            yield str(error)
            return
    changes: list[contracts.FileChange] = []
    try:
        changes = changes_of(record)
    except InputError as error:
        yield f"apply_patch: {error}"
    yield from _order(files, patches)
    if record.meta.contents == "none" and (files or patches or any(c.result for c in commands)):
        yield "meta.contents: none, but the messages hold contents or outputs"
    most = OUTPUT_LIMIT + len(TRUNCATED) + _LONGEST_PLACEHOLDER * record.meta.redactions.count
    for call in commands:
        if len(call.result) > most:
            yield f"messages[{call.index + 1}]: an output of over {OUTPUT_LIMIT:,} characters"
    ends = record.meta.commands
    if ends is not None and [call.call.id for call in commands] != [end.call_id for end in ends]:
        yield "meta.commands: not the commands of the messages, in their order"
    yield from _meta_problems(record.meta, changes)


def _linkage(record: Record) -> Iterator[str]:
    """Yield what is wrong with the order and the linkage of the record's messages.

    The order is: a system message if there is one, the user's, then each call followed by its own
    result, and the assistant's closing words if there are any. Of the calls, files are read before
    the first patch; patches and commands come as they came, with a command at least between two
    patches.
    """
    kinds = "".join(map(_kind, record.messages))
    match = _ORDER.match(kinds)
    end = match.end() if match else 0
    found = kinds[end : end + 1]
    if "u" not in kinds[:end]:
        yield f"messages[{end}]: not the user's message"
    elif found:
        if kinds[end - 1] == "t":
            found = "t"
        elif found in "FPC" and kinds[end + 1 : end + 2] != "r":
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
            if contracts.operation_order(before) >= contracts.operation_order(after):
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


def _meta_problems(meta: Meta, changes: Sequence[contracts.FileChange]) -> Iterator[str]:
    """Yield where ``meta`` disagrees with the changes or with itself."""
    of_patches = {"steps"} if meta.contents == "none" else {"steps", "changes", "on_final_tree"}
    repeated = {*of_patches, "cmd", "args", "cwd", "truncated"} if meta.version > 2 else set()
    for model in (meta, *(meta.commands or ())):
        for name in type(model).model_fields:
            if name in repeated and getattr(model, name) is not None:
                yield f"meta: {to_camel(name)} is for the messages alone to tell"
    both = {change.path for change in changes} & {skipped.path for skipped in meta.skipped}
    for path in sorted(both):
        yield f"meta.skipped: {shown(path)} is among the changes too"
    if meta.verified and meta.final_tree is None:
        yield "meta.verified: true, but finalTree is missing"
    if meta.stopped_at < meta.started_at:
        yield "meta.stoppedAt: before startedAt"
    ids = [meta.final_tree, meta.others.first_base if meta.others else None]
    if any(each is not None and len(each) != len(meta.base_ref) for each in ids):
        yield "meta.finalTree: of another length than baseRef"
    if meta.redactions.unsure > meta.redactions.count:
        yield "meta.redactions: more are unsure than there are"
    if meta.repo_remote is not None and _CREDENTIALS.match(meta.repo_remote):
        yield "meta.repoRemote: holds a user name or a password"
