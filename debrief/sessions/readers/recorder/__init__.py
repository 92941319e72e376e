"""The Session Recorder: ``*.record.json`` files, and JSON lines with a record each.

A file of lines holds a session a line. Each is a transcript of its own, named by the file and the
byte that its line begins at, so that it can be read without those before it. Growth is exact from
a record's operations, commands have exit codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC
from hashlib import sha256

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.git.hunks import HunkError, apply_hunks
from debrief.keys import slugify
from debrief.recorder.stored import NO_CONTENTS, RecordCall, RecordMessage, RecordMeta
from debrief.sessions.model import Recorded, RecordStatus, Session, TranscriptRef
from debrief.sessions.readers.assembly import TranscriptDraft, assemble
from debrief.sessions.readers.base import (
    BrokenTranscript,
    Claims,
    NoSession,
    Peek,
    Reader,
    ToolNames,
    Transcript,
)
from debrief.sessions.readers.documents import mend_text
from debrief.sessions.readers.files import Walk
from debrief.sessions.readers.patches import FileEdit, created, deleted, from_unified, joined
from debrief.sessions.readers.recorder import records
from debrief.sessions.readers.timeline import CallDraft
from debrief.sessions.readers.values import NO_TIME, declared_tools

SOURCE = "recorder"
READ, PATCHED, RAN = "repo.readFile", "apply_patch", "run_cmd"


def stored_path(record_id: object) -> str:
    """Return the path of a stored record, which has no file."""
    return f"{SOURCE}:{record_id}"


def session_of(
    data: bytes, path: str, status: RecordStatus | None = None, *, takes_bare: bool = False
) -> Session:
    """Return a record as a session, not yet redacted and without a digest.

    Args:
        data: the record's bytes.
        path: what it was read from.
        status: of the stored session; a record that was never verified is a draft anyway.
        takes_bare: accept a bare record, which tells no time.

    Raises:
        InputError: it is no record, and why.
    """
    try:
        meta = records.decode_meta(data, takes_bare=takes_bare)
        parts = records.PARTS.decode(data)
        messages = records.MESSAGES.decode(parts.messages)
    except records.NOT_A_RECORD as error:
        raise InputError(path, f"is no record: {error}") from error
    draft = TranscriptDraft(path)
    sha = sha256(data).hexdigest()
    draft.references.append(TranscriptRef(path=path, digest=sha, size=len(data), records=1))
    draft.id, draft.version = meta.session_id, meta.recorder
    draft.repository, draft.branch = meta.repo_name, meta.branch or ""
    draft.declared = declared_tools(bytes(parts.tools).decode())
    draft.api_calls = 0
    for at in (meta.started_at, meta.stopped_at) if meta.started_at != NO_TIME else ():
        draft.see(at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC))
    _Conversion(messages, meta, draft).run()
    session = assemble(draft, source=SOURCE, tool=SOURCE)
    if not any(turn.messages or turn.prompt for turn in session.turns):
        raise InputError(path, "holds no prompt and no answer")
    full = meta.contents == "full"
    if not full:
        session = replace(
            session,
            lines_added=sum(change.added for change in meta.changes),
            lines_removed=sum(change.removed for change in meta.changes),
        )
    if not (meta.verified and full):
        status = "draft"
    return replace(
        session,
        task=slugify(meta.task_id),
        redactions=meta.redactions.count,
        unsure_redactions=meta.redactions.unsure,
        recorded=Recorded(
            base_commit=meta.base_ref,
            system="\n\n".join(m.content for m in messages if m.role == "system" and m.content),
            verified=meta.verified,
            withheld="" if full else NO_CONTENTS,
        ),
        status=status or UNSET,
    )


class _Conversion:
    """Reports one record's messages to its draft."""

    def __init__(
        self,
        messages: Sequence[RecordMessage],
        meta: RecordMeta,
        draft: TranscriptDraft,
    ) -> None:
        self._messages = messages
        self._draft = draft
        self._codes = {command.call_id: command.exit_code for command in meta.commands}
        self._results = {m.tool_call_id: m.content or "" for m in messages if m.role == "tool"}
        self._files: dict[str, str] = {}

    def run(self) -> None:
        """Begin a turn with each of the person's messages; a record has one as a rule."""
        timeline = self._draft.timeline
        turn = number = 0
        for message in self._messages:
            number += 1
            if message.role == "user":
                timeline.prompt(message.content or "", self._draft.started)
                turn, number = turn + 1, 0
            elif message.role == "assistant":
                number = number if timeline.turns else 0
                # Of this session alone: records of one kind of work begin alike, and are no copies.
                name = f"{self._draft.id}:{turn}.{number}"
                answer = timeline.begin_message(name, "", None)
                answer.texts.append(message.content or "")
                answer.calls += map(self._call, message.tool_calls or ())
        for turn_draft in timeline.turns:
            turn_draft.touch(self._draft.started)
            turn_draft.touch(self._draft.ended)

    def _call(self, call: RecordCall) -> CallDraft:
        result = self._results.get(call.id)
        name, given = call.function.name, call.function.arguments
        draft = CallDraft(call.id, name, given, None, result)
        draft.status = "unanswered" if result is None else "ok"
        if name == RAN and call.id in self._codes:
            draft.exit_code = self._codes[call.id]
            draft.status = "ok" if draft.exit_code == 0 else "failed"
        elif name == READ and result is not None:
            self._remember(given, result)
        elif name == PATCHED and result is not None:
            draft.edit = self._edit(given)
        return draft

    def _remember(self, arguments: str, content: str) -> None:
        try:
            self._files[msgspec.json.decode(arguments, type=records.RecordPath).path] = content
        except msgspec.DecodeError as error:
            self._report(f"arguments of {READ} that say nothing: {error}")

    def _edit(self, arguments: str) -> FileEdit | None:
        try:
            patch = msgspec.json.decode(arguments, type=records.RecordPatch)
        except msgspec.DecodeError as error:
            self._report(f"a patch that cannot be read: {error}")
            return None
        operations = patch.operations if patch.ops is None else patch.ops
        if operations is None:
            self._report("a patch that cannot be read: it has no operations")
            return None
        return joined(map(self._change, operations))

    def _change(self, operation: records.RecordOperation) -> FileEdit:
        path = operation.path
        if operation.type == "create_file":
            self._files[path] = operation.diff
            return created(path, operation.diff)
        content = self._files.get(path)
        if operation.type == "update_file":
            if content is not None and operation.diff:
                self._update(path, content, operation.diff)
            return from_unified(path, operation.diff)
        if content is None:
            self._report(f"{path} is deleted, and its text is not known: its lines do not count")
        return deleted(path, content or "")

    def _update(self, path: str, content: str, diff: str) -> None:
        try:
            self._files[path] = apply_hunks(content, diff)
        except HunkError as error:
            del self._files[path]
            self._report(f"a patch of {path} that does not fit its text: {error}")

    def _report(self, reason: str) -> None:
        self._draft.report(0, mend_text(reason))


_BEGINNING = re.compile(rb'\A\s*\{\s*"(?:messages|meta|tools)"\s*:')
_NAMES = (".record.json", ".record.jsonl")
_MANIFEST = re.compile(rb'\A\s*\{\s*"manifest"\s*:')
_LONGEST = 64_000_000
"""Bytes of a line that is still read; a record is never so long."""


class RecordReader(Reader):
    """Reads the records that a recorder or an export left in files."""

    source = SOURCE
    tool = SOURCE
    tools = ToolNames(run="run_cmd", read="repo.readFile", edit="apply_patch")
    suffixes = (".json", ".jsonl")

    def claims(self, head: bytes, path: str) -> bool:
        """Return whether a file has a record's name, or begins with one."""
        return path.endswith(_NAMES) or _is_records_file(head, path)

    def transcripts(self, walk: Walk, claims: Claims) -> Iterator[Transcript]:
        """Yield the records among the files of a folder, in path order."""
        for path, beginning in claims[SOURCE].items():
            if beginning.failure is not None:
                continue
            if path.endswith(".json"):
                yield Transcript(source=SOURCE, path=path)
                continue
            for offset in _offsets(path):
                yield Transcript(
                    source=SOURCE, path=f"{path}#{offset}", companions=(path,), file=path
                )

    def peek(self, transcript: Transcript) -> Peek | None:
        """Read only a record's ``meta``; None if the file is not a record."""
        return _peek(_data(transcript))

    def read(self, transcript: Transcript) -> Session:
        """Read one record.

        Raises:
            NoSession: it is the last line of an export, which counts the others.
            InputError: it is no record, or cannot be read.
        """
        try:
            data = _data(transcript)
        except OSError as error:
            reason = f"cannot be read ({error.strerror or error})"
            raise InputError(transcript.path, reason) from error
        if _MANIFEST.match(data):
            raise NoSession(transcript.path, "the last line of an export, which counts the others")
        try:
            return session_of(data, transcript.path, takes_bare=True)
        except InputError as error:
            raise BrokenTranscript(transcript.path, error.reason) from error


def _is_records_file(head: bytes, path: str) -> bool:
    """Return whether a file begins with a record, as other files with messages do not."""
    if not _BEGINNING.match(head):
        return False
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            line = file.read(_LONGEST) if path.endswith(".json") else file.readline(_LONGEST)
    except OSError:
        return False
    return _peek(line) is not None


def _peek(data: bytes) -> Peek | None:
    try:
        meta = records.decode_meta(data.removesuffix(b"\n"), takes_bare=True)
    except records.NOT_A_RECORD:
        return None
    started = None if meta.started_at == NO_TIME else meta.started_at
    return Peek(session_id=meta.session_id, started=started)


def _offsets(path: str) -> Iterator[int]:
    """Yield where the lines of a file begin, blank ones apart."""
    at = 0
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            for line in file:
                if not line.isspace():
                    yield at
                at += len(line)
    except OSError:
        return


def _data(transcript: Transcript) -> bytes:
    """Return the bytes of a record, its line end left off.

    Raises:
        OSError: they cannot be read.
    """
    path = transcript.on_disk
    with open(path, "rb") as file:  # noqa: PTH123
        if path == transcript.path:
            return file.read().removesuffix(b"\n")
        file.seek(int(transcript.path.removeprefix(f"{path}#")))
        return file.readline().removesuffix(b"\n")


READER = RecordReader()
