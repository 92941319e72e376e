"""From a worktree to a record that was seen to rebuild it, or that says why it is held.

The same facts and changes always give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast
from uuid import UUID

from msgspec import structs
from pydantic import BaseModel, ValidationError

from debrief.errors import InputError, first_problem
from debrief.git.scratch import PLAIN, FileState, scratch_of
from debrief.recorder import contracts
from debrief.recorder.changes import StepChanges, WorktreeChanges, find_changes
from debrief.recorder.comparison import ChangedFile, change_of
from debrief.recorder.encoding import (
    MAX_BYTES,
    PATCHED,
    encode_arguments,
    encode_record,
    tools_for,
)
from debrief.recorder.local_session import RanCommand, SessionFacts, rules_of, shown_output
from debrief.recorder.repository import warning_of
from debrief.recorder.scrubbing import SecretLog, mask_facts, scrubbed
from debrief.recorder.verification import round_trip
from debrief.redaction import Redactor
from debrief.version import VERSION

RECORDER = f"debrief {VERSION}"
_MOST_NAMED = 10
_FACTS = (
    *("task_id", "repo_name", "repo_remote", "branch", "base_ref", "started_at", "stopped_at"),
    *("contents", "others"),
)
"""That ``meta`` has as they are."""


def build_record(
    root: Path,
    facts: SessionFacts,
    redactor: Redactor,
    blobs: Sequence[str] = (),
) -> contracts.Record:
    """Record a session's changes, replace their secrets, and verify the round trip.

    A record that must not leave the machine comes back with ``meta.verified`` false, and the
    reasons at the end of ``meta.warnings``.

    Args:
        root: anywhere in the session's worktree.
        facts: all of the session but its changes.
        redactor: this machine's.
        blobs: texts of the files that commands found.

    Raises:
        InputError: git cannot read the changes, or no record can hold them.
    """
    secrets = SecretLog(redactor)
    with scratch_of(root) as opened:
        if blobs:
            opened.write_blobs(blobs)
        kept = [command.state for command in facts.commands]
        changes = find_changes(opened, facts.base_ref, facts.ignore, kept, secrets.clean_whole)
        facts = mask_facts(facts, secrets)
        redactions = secrets.redactions()
        # Verified with its contents, though it may be sent without them.
        whole = structs.replace(facts, contents="full")
        record = assemble(whole, changes, redactions=redactions)
        try:
            steps = [step.tree for step in changes.steps if step.files]
            held = round_trip(opened, record, redactor, steps)
        except InputError as error:
            held = [str(error)]
    record = assemble(facts, changes, redactions=redactions, verified=not held)
    size = len(encode_record(record))
    if size > MAX_BYTES:
        held.append(f"it has {size:,} bytes; at most {MAX_BYTES:,} can be sent")
    elif left := scrubbed(record, redactor):
        held.append(f"a secret is left in it ({', '.join(left.kinds)})")
    if not held:
        return record
    changes = structs.replace(changes, warnings=(*changes.warnings, *held))
    return assemble(facts, changes, redactions=redactions, verified=False)


def assemble(
    facts: SessionFacts,
    changes: WorktreeChanges,
    *,
    redactions: contracts.Redactions | None = None,
    verified: bool = False,
) -> contracts.Record:
    """Return the record of a session.

    Args:
        facts: all of the session but its changes, without secrets.
        changes: what was changed, without secrets.
        redactions: what placeholders stand for in both.
        verified: the operations were seen to rebuild ``changes.final_tree``.

    Raises:
        InputError: no record can hold so much, or a fact is not of the contract.
    """
    full = facts.contents == "full"
    changed = [
        change_of(file, file.hunks.count("\n+"), file.hunks.count("\n-")) for file in changes.files
    ]
    last_patch = max((number for number, step in enumerate(changes.steps) if step.files), default=0)
    messages = _Messages()
    try:
        if facts.system is not None:
            messages.add(contracts.SystemMessage(content=facts.system))
        messages.add(contracts.UserMessage(content=facts.prompt))
        for path, text in first_versions(changes.steps) if full else ():
            messages.call(contracts.READ_FILE, contracts.ReadFile(path=path), text)
        commands: list[contracts.CommandOutcome] = []
        for number, step in enumerate(changes.steps):
            if full and step.files:
                patch = contracts.ApplyPatch(ops=operations_for(step.files))
                messages.call(contracts.APPLY_PATCH, patch, PATCHED)
            if number < len(facts.commands):
                on_final_tree = None if full else number >= last_patch
                commands.append(messages.run(facts.commands[number], on_final_tree))
        summary = facts.summary or closing_words(changed, facts.commands, last_patch)
        messages.add(contracts.AssistantMessage(content=summary))
        others = [warning_of(facts.base_ref, facts.others)] if facts.others else []
        meta = contracts.Meta(
            **{name: getattr(facts, name) for name in _FACTS},
            session_id=UUID(facts.id),
            recorder=RECORDER,
            final_tree=changes.final_tree,
            verified=verified,
            changes=None if full else changed,
            modes=(deleted_modes(changes.steps) or None) if full else None,
            skipped=list(changes.skipped),
            skipped_accepted=facts.accept_skipped,
            rules=rules_of(facts),
            commands=commands,
            redactions=redactions or contracts.Redactions(),
            warnings=[*others, *changes.warnings],
        )
        tools = list(tools_for(meta.rules))
        return contracts.Record(messages=messages.all, tools=tools, meta=meta)
    except ValidationError as error:
        move = "Record smaller changes, or ignore files that tools make."
        reason = ": ".join(first_problem(error))
        raise InputError(f"record of session {facts.id}", reason, move) from error


def first_versions(steps: Sequence[StepChanges]) -> list[tuple[str, str]]:
    """Return the files that steps update or delete, and did not create: path and text, by path."""
    first: dict[str, FileState | None] = {}
    for step in steps:
        for file in step.files:
            first.setdefault(file.path, file.before)
    return sorted((path, before.text) for path, before in first.items() if before)


def deleted_modes(steps: Sequence[StepChanges]) -> dict[str, contracts.FileMode]:
    """Return, by path, the modes at the baseline of files that a patch deletes, where they were no
    plain files: no patch has these."""
    first: dict[str, FileState | None] = {}
    deleted = set()
    for step in steps:
        for file in step.files:
            first.setdefault(file.path, file.before)
            deleted |= {file.path} if file.before and not file.is_update else set()
    return {
        path: mode
        for path in sorted(deleted)
        if (before := first[path]) and (mode := _mode(before, unless=PLAIN))
    }


def operations_for(files: Sequence[ChangedFile]) -> list[contracts.Operation]:
    """Return the operations of a patch: deletes, then updates, then creates, each by path."""
    ops: list[contracts.Operation] = []
    for file in files:
        before, after = file.before, file.after
        if file.is_update and before and after:
            mode = _mode(after, unless=before.mode)
            ops.append(contracts.UpdateFile(path=file.path, diff=file.hunks, mode=mode))
            continue
        if before:
            ops.append(contracts.DeleteFile(path=file.path))
        if after:
            mode = _mode(after, unless=PLAIN)
            ops.append(contracts.CreateFile(path=file.path, diff=after.text, mode=mode))
    return sorted(ops, key=contracts.operation_order)


def closing_words(
    changes: Sequence[contracts.FileChange], commands: Sequence[RanCommand], last_patch: int
) -> str:
    """Return what a record ends on when the person said nothing: the facts, in words.

    Args:
        changes: what was changed.
        commands: what was run.
        last_patch: the number of the first command that nothing was changed after.
    """
    done = [_change_words(change) for change in changes[:_MOST_NAMED]]
    if rest := len(changes) - len(done):
        done.append(f"{rest:,} more")
    words = _joined(done) if done else "nothing was changed"
    last = commands[last_patch:]
    ran = "No command was run."
    if commands:
        when = "On the result" if last else "Before the last change"
        ran = (
            f"{when}, {_joined([_command_words(ran_command) for ran_command in last or commands])}."
        )
    return f"{words[0].upper()}{words[1:]}. {ran}"


class _Messages:
    """The conversation so far; numbers its calls."""

    def __init__(self) -> None:
        self.all: list[contracts.Message] = []
        self._calls = 0

    def add(self, message: contracts.Message) -> None:
        self.all.append(message)

    def call(self, tool: contracts.Tool, arguments: BaseModel, result: str) -> str:
        self._calls += 1
        call_id = f"call{self._calls:05d}"
        function = contracts.Function(name=tool, arguments=encode_arguments(arguments))
        call = contracts.Call(id=call_id, function=function)
        self.add(contracts.AssistantMessage(tool_calls=[call]))
        self.add(contracts.ToolMessage(tool_call_id=call_id, content=result))
        return call_id

    def run(self, run: RanCommand, on_final_tree: bool | None) -> contracts.CommandOutcome:
        """Add a command; its output is left out where ``on_final_tree`` has to be said."""
        arguments = contracts.RunCommand(cmd=run.cmd, args=list(run.args), cwd=run.cwd)
        output = shown_output(run) if on_final_tree is None else ""
        return contracts.CommandOutcome(
            call_id=self.call(contracts.RUN_COMMAND, arguments, output),
            exit_code=run.exit_code,
            duration_ms=run.duration_ms,
            on_final_tree=on_final_tree,
        )


def _mode(file: FileState, *, unless: str) -> contracts.FileMode | None:
    return None if file.mode == unless else cast("contracts.FileMode", file.mode)


def _change_words(change: contracts.FileChange) -> str:
    path = change.path if change.path.isprintable() else json.dumps(change.path)
    added, removed = f"+{change.added}", f"-{change.removed}"
    numbers = {"create": added, "delete": removed}.get(change.kind, f"{added} {removed}")
    return f"{change.kind}d {path} ({numbers})"


def _command_words(command: RanCommand) -> str:
    line = " ".join([command.cmd, *command.args])
    folder = "" if command.cwd == "." else f" in {command.cwd}"
    failed = f"failed with exit code {command.exit_code}"
    end = {None: "did not end", 0: "passed"}.get(command.exit_code, failed)
    return f"`{line}`{folder} {end}"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
