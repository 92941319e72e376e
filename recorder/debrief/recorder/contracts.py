"""The record, and what is sent with it: the contract between recorders, API and training sets.

Every model forbids fields it does not know, so that a record says nothing that a reader of it
would overlook. Names are those of JSON; texts are exact, and nothing is ever trimmed. Records are
written by recorders in other languages too, from the JSON Schemas of these models.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    StringConstraints,
)
from pydantic.alias_generators import to_camel

Tool = Literal["repo.readFile", "apply_patch", "run_cmd"]
READ_FILE: Final = "repo.readFile"
APPLY_PATCH: Final = "apply_patch"
RUN_COMMAND: Final = "run_cmd"
TRUNCATED = "\n(truncated)"
"""Ends the output of a command that was cut at ``OUTPUT_LIMIT`` characters."""
OUTPUT_LIMIT = 50_000
MAX_STRING = 1_000_000
"""Characters of a string. A call's arguments are JSON of their own, whose strings are held to it
one by one."""
MAX_INTEGER = 2**53 - 1
"""The largest integer that every JSON parser reads exactly."""
MAX_MESSAGES = 5_000
RECORD_VERSION: Final = 3
"""Of the records that are made now. Earlier ones are read, and taken by the service, as well."""
IGNORED = "ignored"
"""Begins the reason of what was left out on purpose."""
MANY_FILES = 50
"""Changed files above which a record carries a warning."""

_NO_NUL = r"^[^\x00]*$"
Text = Annotated[str, StringConstraints(max_length=MAX_STRING, pattern=_NO_NUL)]
"""Exact, without the character NUL, which Postgres cannot hold."""
TaskId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
CommitId = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
CallId = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9]{9}$")]
FileMode = Literal["100644", "100755", "120000"]
Status = Literal["draft", "ready"]
Kind = Literal["create", "update", "delete"]
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=_NO_NUL)]
Remote = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=_NO_NUL)]
Branch = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=_NO_NUL)]
Label = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")
]
_MOMENT = (
    r"^2[01][0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]{1,6})?(Z|[+-][01][0-9]:[0-5][0-9])$"
)
_UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def reading(pattern: str, read: Callable[[str], object]) -> BeforeValidator:
    """Make a validator that reads texts of one form, and refuses those of another.

    What pydantic takes by itself depends on the type alone: a time may be a number in quotes, an
    id may stand in braces. A contract has one form.
    """
    form = re.compile(pattern.removesuffix("$"))

    def before(value: object) -> object:
        if not isinstance(value, str):
            return value
        if not form.fullmatch(value):
            raise ValueError(f"should match {pattern}")
        return read(value)

    return BeforeValidator(before)


def _exactly(*expected: object) -> BeforeValidator:
    """Make a validator that knows 1 from true and 0 from false."""

    def before(value: object) -> object:
        if not any(type(value) is type(one) and value == one for one in expected):
            raise ValueError(f"should be {' or '.join(map(repr, expected))}")
        return value

    return BeforeValidator(before)


Moment = Annotated[
    AwareDatetime,
    Field(
        ge=datetime(1999, 12, 31, tzinfo=UTC),
        lt=datetime(2200, 1, 2, tzinfo=UTC),
        json_schema_extra={"pattern": _MOMENT},
    ),
    reading(_MOMENT, datetime.fromisoformat),
]
"""A time that every reader can hold and turn into any zone's."""
Identity = Annotated[UUID, reading(_UUID, UUID), Field(json_schema_extra={"pattern": _UUID})]
"""Of a session, made by its recorder."""
Contents = Literal["full", "none"]
"""``none``: the record tells which files changed, and nothing of what is in them."""

ABSENT: Any = Field(default=None, exclude_if=lambda value: value is None)
"""Default of what is left out of the JSON where there is none, instead of being written null."""


class Contract(BaseModel):
    """What all models of the contract share: frozen, closed, camel case in JSON."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        from_attributes=True,
        use_attribute_docstrings=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )


class _Plain(BaseModel):
    """What OpenAI's own shapes share: frozen and closed, their names in JSON as they are."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, defer_build=True
    )


class Function(Contract):
    """A call's tool and arguments."""

    name: Tool
    arguments: Annotated[str, StringConstraints(pattern=_NO_NUL)]
    """Compact JSON text of the tool's arguments: ``ReadFile``, ``ApplyPatch`` or ``RunCommand``."""


class Call(Contract):
    """One call, alone in its message: ``parallel_tool_calls`` is false."""

    id: CallId
    type: Literal["function"] = "function"
    function: Function


class SystemMessage(_Plain):
    """The instructions that the session was started with."""

    role: Literal["system"] = "system"
    content: Text


class UserMessage(_Plain):
    """What the person set out to do."""

    role: Literal["user"] = "user"
    content: Text


class AssistantMessage(_Plain):
    """A call, or the closing words."""

    role: Literal["assistant"] = "assistant"
    content: Text = ""
    tool_calls: Annotated[list[Call], Field(min_length=1, max_length=1)] | None = ABSENT


class ToolMessage(_Plain):
    """What a call gave back."""

    role: Literal["tool"] = "tool"
    tool_call_id: CallId
    content: Text


Message = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class ReadFile(Contract):
    """Arguments of ``repo.readFile``; its result is the file's exact text at the baseline."""

    path: Text


class CreateFile(Contract):
    """A file that was not there: ``diff`` is its whole content."""

    type: Literal["create_file"] = "create_file"
    path: Text
    diff: Text
    mode: FileMode | None = ABSENT
    """Where it is not a plain file; of a symbolic link, ``diff`` is the target."""


class UpdateFile(Contract):
    """A file that was changed: ``diff`` is its hunks, from the first ``@@``; empty when only the
    mode changed."""

    type: Literal["update_file"] = "update_file"
    path: Text
    diff: Text
    mode: FileMode | None = ABSENT
    """The new mode, where it changed."""


class DeleteFile(Contract):
    """A file that is gone."""

    type: Literal["delete_file"] = "delete_file"
    path: Text


Operation = Annotated[CreateFile | UpdateFile | DeleteFile, Field(discriminator="type")]


_RANK: dict[str, int] = {"delete_file": 0, "update_file": 1, "create_file": 2}


def operation_order(operation: Operation) -> tuple[int, str]:
    """Return what the operations of a patch are sorted by."""
    return _RANK[operation.type], operation.path


class ApplyPatch(Contract):
    """Arguments of ``apply_patch``: deletes, then updates, then creates, each sorted by path."""

    ops: list[Operation]


class RunCommand(Contract):
    """Arguments of ``run_cmd``, which the allowlist or the record's own rules have to take."""

    cmd: Text
    args: list[Text]
    cwd: Text = "."
    """Relative to the repository's top folder."""


class Skipped(Contract):
    """A change that is not in the record, and why."""

    path: Text
    reason: Text

    @property
    def is_ignored(self) -> bool:
        """Its owner, or the recorder's list of what tools make, leaves it out."""
        return self.reason.startswith(IGNORED)


class CommandOutcome(Contract):
    """How a recorded command ended; what was run is in its message."""

    call_id: CallId
    cmd: Text | None = ABSENT
    """Of versions 1 and 2, and not read, as are the next two and ``truncated``."""
    args: list[Text] | None = ABSENT
    cwd: Text | None = ABSENT
    exit_code: Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)] | None
    """None when it was ended at its time limit, or its recorder was ended while it ran."""
    duration_ms: Count
    truncated: bool | None = ABSENT
    on_final_tree: bool | None = ABSENT
    """In a record without contents: no file was changed after it was started. Other records have
    no patch after it then; versions 1 and 2 say it all the same, and it is not read."""


class FileChange(Contract):
    """One changed file, and how many lines were added and removed."""

    path: Text
    kind: Kind
    added: Count
    removed: Count


class PatchStep(Contract):
    """A patch of a record of version 2, and the tree that it made of the files."""

    call_id: CallId
    tree: CommitId


class OthersWork(Contract):
    """Commits that others made, or that were made earlier, and that a merge, a rebase, a pull or a
    change of branches brought in during the session."""

    first_base: CommitId
    """The commit that the session began at. ``baseRef`` is the one that the patches apply to."""
    commits: Count
    files: Count
    """That differ between the two commits."""
    mixed: Text = ""
    """Why they cannot be separated from the session's own, so that the patches hold both; empty
    where none of theirs is in a patch."""


class CommandRule(Contract):
    """A command that the owner of a repository adds to the allowlist."""

    program: Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=_NO_NUL)]
    arguments: Annotated[
        list[Annotated[str, Field(max_length=214, pattern=_NO_NUL)]], Field(max_length=64)
    ]
    """Words; ``<kind>`` stands for one argument of a kind of the allowlist's ``words``, ``<kind>+``
    for one or more."""
    check: Annotated[bool, Field(strict=True)] = False
    """It lints, tests or builds: its outcome validates a change."""
    time_limit: Annotated[FiniteFloat, Field(gt=0, le=86_400)] = 600.0
    """Seconds."""


class CommandRules(Contract):
    """The commands of a repository, as they were when the session began."""

    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    """Of the rules; the person at the recorder agreed to it before one was run."""
    commands: Annotated[list[CommandRule], Field(min_length=1, max_length=100)]


class Redactions(Contract):
    """Secrets that placeholders stand for."""

    count: Count = 0
    unsure: Count = 0
    """Of those, the ones that a person has to look at before the record trains a model."""
    kinds: list[Text] = []


class Meta(Contract):
    """Where the record came from, and how it was made."""

    model_config = ConfigDict(json_schema_extra={"description": "What the record tells of itself."})
    # As the published schemas have it.
    version: Annotated[Literal[1, 2, 3], _exactly(1, 2, 3)] = RECORD_VERSION
    """1: at most one patch, which all commands but those on its result come before. 1 and 2: what
    the messages tell is said here too, and not read."""
    session_id: Identity
    task_id: TaskId
    recorder: Name | None = ABSENT
    """Name and version, as ``debrief 0.1.0``."""
    repo_name: Name
    repo_remote: Remote | None = None
    """Without user name and password."""
    branch: Branch | None = None
    """None where HEAD was detached."""
    base_ref: CommitId
    """The commit that the patches apply to."""
    final_tree: CommitId | None = ABSENT
    """Id of the git tree that applying the operations to ``base_ref`` gives, skipped files left
    as they are at the baseline; of the placeholders' side where secrets were replaced. Without it,
    a record cannot be verified."""
    started_at: Moment
    stopped_at: Moment
    contents: Contents = "full"
    verified: bool = False
    """The operations were applied to the baseline, patch by patch, and gave back the files of each
    moment, and ``final_tree``."""
    steps: list[PatchStep] | None = ABSENT
    """Of version 2, and not read."""
    changes: list[FileChange] | None = ABSENT
    """In a record without contents: what differs between the baseline and ``final_tree``. Others
    tell it by their patches; versions 1 and 2 say it all the same, and it is not read."""
    modes: dict[str, FileMode] | None = ABSENT
    """By path, of files that a patch deletes: what they were at the baseline, if no plain file."""
    skipped: list[Skipped] = []
    skipped_accepted: bool = False
    """The person saw what is skipped, and takes the record for whole without it."""
    others: OthersWork | None = None
    rules: CommandRules | None = None
    """The commands that the repository adds to the allowlist."""
    commands: list[CommandOutcome] | None = ABSENT
    """One for each command, in their order. Without it, nobody knows how they ended."""
    redactions: Redactions = Field(
        default_factory=Redactions,
        json_schema_extra={"default": {"count": 0, "unsure": 0, "kinds": []}},
    )
    warnings: list[Text] = []
    parallel_tool_calls: Annotated[Literal[False], _exactly(False)] = False


class ToolDefinition(_Plain):
    """A tool's schema, as in OpenAI's ``tools``."""

    type: Literal["function"] = "function"
    function: dict[str, object]


class Record(_Plain):
    """A recorded session: a conversation that a model can be tuned on, and where it came from."""

    messages: Annotated[list[Message], Field(max_length=MAX_MESSAGES)]
    tools: list[ToolDefinition]
    meta: Meta
