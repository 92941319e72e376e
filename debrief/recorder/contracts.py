"""The record, and what is sent with it: the contract between recorders, API and training sets.

Every model forbids fields it does not know, so that a record says nothing that a reader of it
would overlook. Names are those of JSON; texts are exact, and nothing is ever trimmed. Records are
written by recorders in other languages too, from the JSON Schemas of these models.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

RECORD_VERSION = 1
READ_FILE, APPLY_PATCH, RUN_COMMAND = "repo.readFile", "apply_patch", "run_cmd"
TRUNCATED = "\n(truncated)"
"""Ends the output of a command that was cut at ``OUTPUT_LIMIT`` characters."""
OUTPUT_LIMIT = 50_000
MANY_FILES = 50
"""Changed files above which a record carries a warning."""

TaskId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
CommitId = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
CallId = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9]{9}$")]
FileMode = Literal["100644", "100755", "120000"]
Status = Literal["draft", "ready"]
Contents = Literal["full", "none"]
"""``none``: the record tells which files changed, and nothing of what is in them."""


class Contract(BaseModel):
    """What all models of the contract share: frozen, closed, camel case in JSON."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )


class Function(Contract):
    """A call's tool and arguments."""

    name: Literal["repo.readFile", "apply_patch", "run_cmd"]
    arguments: str
    """Compact JSON text of the tool's arguments: ``ReadFile``, ``ApplyPatch`` or ``RunCommand``."""


class Call(Contract):
    """One call, alone in its message: ``parallel_tool_calls`` is false."""

    id: CallId
    type: Literal["function"] = "function"
    function: Function


class SystemMessage(BaseModel):
    """The instructions that the session was started with."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    role: Literal["system"] = "system"
    content: str


class UserMessage(BaseModel):
    """What the person set out to do."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    role: Literal["user"] = "user"
    content: str


class AssistantMessage(BaseModel):
    """A call, or the closing words."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    role: Literal["assistant"] = "assistant"
    content: str = ""
    tool_calls: Annotated[list[Call], Field(min_length=1, max_length=1)] | None = None


class ToolMessage(BaseModel):
    """What a call gave back."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    role: Literal["tool"] = "tool"
    tool_call_id: CallId
    content: str


Message = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class ReadFile(Contract):
    """Arguments of ``repo.readFile``; its result is the file's exact text at the baseline."""

    path: str


class CreateFile(Contract):
    """A file that was not there: ``diff`` is its whole content."""

    type: Literal["create_file"] = "create_file"
    path: str
    diff: str
    mode: FileMode | None = None
    """Where it is not a plain file; of a symbolic link, ``diff`` is the target."""


class UpdateFile(Contract):
    """A file that was changed: ``diff`` is its hunks, from the first ``@@``; empty when only the
    mode changed."""

    type: Literal["update_file"] = "update_file"
    path: str
    diff: str
    mode: FileMode | None = None
    """The new mode, where it changed."""


class DeleteFile(Contract):
    """A file that is gone."""

    type: Literal["delete_file"] = "delete_file"
    path: str


Operation = Annotated[CreateFile | UpdateFile | DeleteFile, Field(discriminator="type")]


class ApplyPatch(Contract):
    """Arguments of ``apply_patch``: deletes, then updates, then creates, each sorted by path."""

    ops: list[Operation]


class RunCommand(Contract):
    """Arguments of ``run_cmd``, which the allowlist has to take."""

    cmd: str
    args: list[str]
    cwd: str = "."
    """Relative to the repository's top folder."""


class Skipped(Contract):
    """A change that is not in the record, and why."""

    path: str
    reason: str


class CommandSummary(Contract):
    """How a recorded command ended."""

    call_id: CallId
    cmd: str
    args: list[str]
    cwd: str
    exit_code: int | None
    """None when it was ended at its time limit."""
    duration_ms: int
    truncated: bool = False
    on_final_tree: bool = False
    """It ran on the very tree that the record rebuilds, so its outcome speaks of the change."""


class FileChange(Contract):
    """One changed file, in numbers."""

    path: str
    kind: Literal["create", "update", "delete"]
    added: int
    removed: int


class Redactions(Contract):
    """Secrets that placeholders stand for."""

    count: int = 0
    unsure: int = 0
    """Of those, the ones that a person has to look at before the record trains a model."""
    kinds: list[str] = []


class Meta(Contract):
    """What the record tells of itself."""

    version: Literal[1] = 1
    session_id: UUID
    task_id: TaskId
    recorder: str
    """Name and version, as ``debrief 0.1.0``."""
    repo_name: str
    repo_remote: str | None = None
    """Without user name and password."""
    branch: str | None = None
    """None where HEAD was detached."""
    base_ref: CommitId
    final_tree: CommitId
    """Id of the git tree that applying the operations to ``base_ref`` gives, skipped files left
    as they are at the baseline; of the placeholders' side where secrets were replaced."""
    started_at: AwareDatetime
    stopped_at: AwareDatetime
    contents: Contents = "full"
    verified: bool
    """The operations were applied to the baseline and gave back ``final_tree``."""
    changes: list[FileChange] = []
    skipped: list[Skipped] = []
    commands: list[CommandSummary] = []
    redactions: Redactions = Redactions()
    warnings: list[str] = []
    parallel_tool_calls: Literal[False] = False


class ToolDefinition(BaseModel):
    """A tool's schema, as in OpenAI's ``tools``."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    type: Literal["function"] = "function"
    function: dict[str, object]


class Record(BaseModel):
    """A recorded session: a conversation that a model can be tuned on, and where it came from."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    messages: list[Message]
    tools: list[ToolDefinition]
    meta: Meta


class NewTask(Contract):
    """A bucket of work, as it is made."""

    id: TaskId
    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=10_000)] | None = None


class Task(NewTask):
    """A bucket of work."""

    created_at: datetime


class Upload(Contract):
    """The body of ``POST /sessions``. What is repeated in ``record.meta`` has to agree with it."""

    id: UUID
    task_id: TaskId
    repo_name: str
    repo_remote: str | None = None
    branch: str | None = None
    base_ref: CommitId
    created_at: AwareDatetime
    """When the session was stopped."""
    record: Record


class StoredSession(Contract):
    """A stored session without its record."""

    id: UUID
    task_id: TaskId
    repo_name: str
    repo_remote: str | None
    branch: str | None
    base_ref: CommitId
    created_at: datetime
    """When the session was stopped, as the recorder tells."""
    received_at: datetime
    status: Status
    sha256: str
    """Of the record's bytes as they were sent."""
    size: int
    """Bytes of the stored record."""
    verified: bool
    files: int
    validated: bool
    """A validation command ran on the final tree."""
    redactions: int
    not_ready: list[str] = []
    """Why the session cannot be marked ready, in words."""
