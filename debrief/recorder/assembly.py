"""A record put together from facts and changes: the same ones always give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ValidationError

from debrief.errors import InputError
from debrief.recorder.agreement import change_of
from debrief.recorder.calls import PATCHED
from debrief.recorder.changes import ChangedFile, Changes
from debrief.recorder.contracts import (
    APPLY_PATCH,
    OUTPUT_LIMIT,
    READ_FILE,
    RUN_COMMAND,
    TRUNCATED,
    ApplyPatch,
    AssistantMessage,
    Call,
    CommandSummary,
    CreateFile,
    DeleteFile,
    FileChange,
    FileMode,
    Function,
    Message,
    Meta,
    Operation,
    ReadFile,
    Record,
    Redactions,
    RunCommand,
    Skipped,
    SystemMessage,
    ToolMessage,
    UpdateFile,
    UserMessage,
)
from debrief.recorder.encoding import encode_arguments
from debrief.recorder.facts import RanCommand, SessionFacts
from debrief.recorder.tools import TOOLS

_PLAIN = "100644"
_MOST_NAMED = 10


def assemble(
    facts: SessionFacts,
    changes: Changes,
    *,
    redactions: Redactions | None = None,
    verified: bool = False,
) -> Record:
    """Return the record of a session.

    Args:
        facts: what the session knows of itself, without secrets.
        changes: what was changed, without secrets.
        redactions: what placeholders stand for in both.
        verified: the operations are known to rebuild ``changes.final_tree``.

    Raises:
        InputError: no record can hold so much, or a fact is not of the contract.
    """
    full = facts.contents == "full"
    operations = operations_for(changes.files)
    last = {run for run in facts.commands if run.tree in (changes.tree, changes.final_tree)}
    summaries = _change_summaries(changes.files, operations)
    messages = _Messages()
    try:
        if facts.system is not None:
            messages.add(SystemMessage(content=facts.system))
        messages.add(UserMessage(content=facts.prompt))
        for file in changes.files if full else ():
            if file.pair.before:
                messages.call(READ_FILE, ReadFile(path=file.path), file.pair.before.text)
        commands = [messages.run(run, full=full) for run in facts.commands if run not in last]
        if full and operations:
            messages.call(APPLY_PATCH, ApplyPatch(ops=operations), PATCHED)
        commands += [
            messages.run(run, full=full, on_final_tree=True)
            for run in facts.commands
            if run in last
        ]
        summary = facts.summary or closing_words(summaries, commands)
        messages.add(AssistantMessage(content=summary))
        meta = Meta(
            session_id=facts.session_id,
            task_id=facts.task_id,
            recorder=facts.recorder,
            repo_name=facts.repo_name,
            repo_remote=facts.repo_remote,
            branch=facts.branch,
            base_ref=facts.base_ref,
            final_tree=changes.final_tree,
            started_at=facts.started_at,
            stopped_at=facts.stopped_at,
            contents=facts.contents,
            verified=verified,
            changes=summaries,
            skipped=[Skipped(path=path, reason=reason) for path, reason in changes.skipped],
            commands=commands,
            redactions=redactions or Redactions(),
            warnings=list(changes.warnings),
        )
        return Record(messages=messages.all, tools=list(TOOLS), meta=meta)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise InputError(
            f"record of session {facts.session_id}",
            f"{place}: {first['msg']}",
            "Record smaller changes, or ignore files that tools make.",
        ) from error


def operations_for(files: Sequence[ChangedFile]) -> list[Operation]:
    """Return the operations of a patch: deletes, then updates, then creates, each by path."""
    deletes: list[Operation] = []
    updates: list[Operation] = []
    creates: list[Operation] = []
    for file in files:
        before, after = file.pair.before, file.pair.after
        if file.pair.updated and before and after:
            mode = _mode(after.mode) if before.mode != after.mode else None
            updates.append(UpdateFile(path=file.path, diff=file.hunks, mode=mode))
            continue
        if before:
            deletes.append(DeleteFile(path=file.path))
        if after:
            mode = _mode(after.mode) if after.mode != _PLAIN else None
            creates.append(CreateFile(path=file.path, diff=after.text, mode=mode))
    return [*deletes, *updates, *creates]


def closing_words(changes: Sequence[FileChange], commands: Sequence[CommandSummary]) -> str:
    """Return what a record ends on when the person said nothing: the facts, in words."""
    return " ".join([*_told_changes(changes), *_told_commands(commands)])


def shown_output(run: RanCommand) -> tuple[str, bool]:
    """Return a command's output as a record has it, and whether it was cut."""
    output = run.output.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    ending = f"\n{run.ending}" if run.ending and output else run.ending
    room = OUTPUT_LIMIT - len(ending)
    if run.cut or len(output) > room:
        return f"{output[:room]}{ending}{TRUNCATED}", True
    return f"{output}{ending}", False


class _Messages:
    """The conversation so far; numbers its calls."""

    def __init__(self) -> None:
        self.all: list[Message] = []
        self._calls = 0

    def add(self, message: Message) -> None:
        self.all.append(message)

    def call(self, tool: str, arguments: BaseModel, result: str) -> str:
        self._calls += 1
        call_id = f"call{self._calls:05d}"
        function = Function(name=tool, arguments=encode_arguments(arguments))
        self.add(AssistantMessage(tool_calls=[Call(id=call_id, function=function)]))
        self.add(ToolMessage(tool_call_id=call_id, content=result))
        return call_id

    def run(self, run: RanCommand, *, full: bool, on_final_tree: bool = False) -> CommandSummary:
        output, truncated = shown_output(run)
        arguments = RunCommand(cmd=run.cmd, args=list(run.args), cwd=run.cwd)
        return CommandSummary(
            call_id=self.call(RUN_COMMAND, arguments, output if full else ""),
            cmd=run.cmd,
            args=list(run.args),
            cwd=run.cwd,
            exit_code=run.exit_code,
            duration_ms=run.duration_ms,
            truncated=truncated,
            on_final_tree=on_final_tree,
        )


def _mode(mode: str) -> FileMode:
    if mode not in ("100644", "100755", "120000"):
        raise InputError(mode, "is no mode of a file")
    return mode  # type: ignore[return-value]


def _change_summaries(
    files: Sequence[ChangedFile], operations: Sequence[Operation]
) -> list[FileChange]:
    before = {file.path: file.pair.before.text for file in files if file.pair.before}
    found = [change_of(op, before.get(op.path, "")) for op in operations]
    return sorted(found, key=lambda change: (change.path, change.kind != "delete"))


def _told_changes(changes: Sequence[FileChange]) -> Iterator[str]:
    if not changes:
        yield "Nothing was changed."
        return
    told = [_told_change(change) for change in changes[:_MOST_NAMED]]
    rest = len(changes) - len(told)
    if rest:
        told.append(f"{rest:,} more")
    yield f"{_joined(told)}."[0].upper() + f"{_joined(told)}."[1:]


def _told_change(change: FileChange) -> str:
    path = change.path if change.path.isprintable() else json.dumps(change.path)
    if change.kind == "update":
        return f"updated {path} (+{change.added} -{change.removed})"
    if change.kind == "create":
        return f"created {path} (+{change.added})"
    return f"deleted {path} (-{change.removed})"


def _told_commands(commands: Sequence[CommandSummary]) -> Iterator[str]:
    last = [command for command in commands if command.on_final_tree]
    if last:
        yield f"On the result, {_joined([_told_command(command) for command in last])}."
    elif commands:
        yield f"Before the last change, {_joined([_told_command(c) for c in commands])}."
    else:
        yield "No command was run."


def _told_command(command: CommandSummary) -> str:
    line = " ".join([command.cmd, *command.args])
    place = "" if command.cwd == "." else f" in {command.cwd}"
    if command.exit_code is None:
        return f"`{line}`{place} did not end"
    if command.exit_code == 0:
        return f"`{line}`{place} passed"
    return f"`{line}`{place} failed with exit code {command.exit_code}"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
