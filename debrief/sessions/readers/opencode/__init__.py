"""OpenCode: its database, exported sessions, and the store of files that it had before 1.2.

All are below ``~/.local/share/opencode``. A database holds all sessions, an export is one document
a session, a store has one file a session, message and part. A session with a parent is the work of
a subagent of that session. What was moved from one into another is in both, and is one session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.sessions.model import Problem, Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import (
    Claims,
    Head,
    Peek,
    ToolNames,
    Transcript,
    TranscriptReader,
)
from debrief.sessions.readers.databases import LOG
from debrief.sessions.readers.documents import LENIENT, JsonRecord, mend
from debrief.sessions.readers.files import FileStamp, Walk
from debrief.sessions.readers.opencode.conversion import Said, convert, take_info, time_of, usage_of
from debrief.sessions.readers.opencode.database import DatabasePath, SessionRows, trees_in
from debrief.sessions.readers.values import mapping, moment, string

_MESSAGE = re.compile(rb'(?<!\\)"sessionID"\s*:\s*"([^"\\]+)"')
_ROLE = re.compile(rb'(?<!\\)"role"\s*:\s*"(?:user|assistant)"')
_SESSION = re.compile(rb'(?<!\\)"(?:projectID|directory)"\s*:\s*"')
_ID = re.compile(rb'(?<!\\)"id"\s*:\s*"([^"\\]+)"')
_PARENT = re.compile(rb'(?<!\\)"parentID"\s*:\s*"([^"\\]+)"')
_CREATED = re.compile(rb'(?<!\\)"created"\s*:\s*(\d{10,16})')
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class StoredFiles(Struct, frozen=True):
    """One session of a store."""

    path: str
    """The session's own record, or its first message where that is missing."""
    peek: Peek
    files: tuple[str, ...] = ()
    """Messages and parts."""


def roughly(head: Head, path: str) -> Peek:
    """Return what the beginning of a record says of its session, without decoding it."""
    created = head.text(_CREATED)
    return Peek(
        session_id=head.text(_ID) or Path(path).stem,
        started=moment(int(created)) if created else None,
        parent=head.text(_PARENT),
    )


def stored_sessions(paths: Iterable[str]) -> dict[str, StoredFiles]:
    """Return the sessions of the stores that ``paths`` belong to, by their records' paths."""
    stored: dict[str, StoredFiles] = {}
    files: dict[str, dict[tuple[str, str], list[str]]] = {"session": {}, "message": {}, "part": {}}
    for path in sorted(paths):
        pieces = path.rsplit("/", 3)
        if len(pieces) == 4 and pieces[1] in files:
            store, kind, owner, name = pieces
            key = (store, name.removesuffix(".json") if kind == "session" else owner)
            files[kind].setdefault(key, []).append(path)
    for key in sorted({*files["session"], *files["message"]}):
        store, session = key
        read = ((path, Head.of(path)) for path in files["message"].get(key, ()))
        heads = {path: head for path, head in read if _MESSAGE.search(head) and _ROLE.search(head)}
        own = list(heads)
        parts = [part for path in own for part in files["part"].get((store, Path(path).stem), ())]
        record = files["session"].get(key, [""])[-1]
        head = Head.of(record) if record else Head()
        if _SESSION.search(head):
            stored[record] = StoredFiles(record, roughly(head, record), (*own, *parts))
        elif own:
            created = min(
                filter(None, (head.text(_CREATED) for head in heads.values())), default=""
            )
            peek = Peek(
                session_id=heads[own[0]].text(_MESSAGE) or session,
                started=moment(int(created)) if created else None,
            )
            stored[own[0]] = StoredFiles(own[0], peek, (*own[1:], *parts))
    return stored


def read_stored(stored: StoredFiles) -> TranscriptDraft:
    """Read a session of a store from its own record and the files of its messages and parts.

    Raises:
        OSError: its own record cannot be read.
        ValueError: that holds nothing.
    """
    draft = TranscriptDraft(stored.path)
    messages: list[JsonRecord] = []
    parts: dict[str, list[JsonRecord]] = {}
    for path in (stored.path, *stored.files):
        try:
            record = draft.load(path)
        except (OSError, ValueError) as error:
            if path == stored.path:
                raise
            draft.problems.append(Problem(path=path, line=0, reason=f"cannot be read: {error}"))
            continue
        if "role" in record:
            messages.append(record)
        elif path == stored.path:
            take_info(record, draft)
        else:
            owner = string(record.get("messageID")) or Path(path).parent.name
            parts.setdefault(owner, []).append(record)
    messages.sort(key=lambda m: (time_of(m, "created") or _LONG_AGO, string(m.get("id"))))
    if messages and not draft.id:
        draft.id = string(messages[0].get("sessionID"))
        draft.report(0, "the session's own record is missing: folder and title are not known")
    convert([(record, parts.get(string(record.get("id")), [])) for record in messages], draft)
    return draft


_EMPTY_LIST = re.compile(rb'"messages"\s*:\s*\[\s*\]')
_OWN_ID = re.compile(r"ses_[0-9A-Za-z]{16,}")


class OpenCodeReader(TranscriptReader):
    """Exports are one file a session, as the kit has them; a store's are many, a database's one."""

    source = "opencode"
    tool = "opencode"
    tools = ToolNames(
        run="bash shell",
        read="read",
        search="grep glob list lsp",
        edit="edit write patch multiedit apply_patch",
        plan="todowrite todoread plan_enter plan_exit",
        delegate="task",
        ask="question",
        web="webfetch websearch codesearch",
    )
    home_folders = (".local/share/opencode", ".local/share/kilo")
    moved_by = ("XDG_DATA_HOME", ".local/share")
    suffixes = (".json", ".jsonl")
    start = re.compile(rb'\A\s*\{\s*"info"\s*:\s*\{')
    marks = (re.compile(rb'(?<!\\)"(?:directory|projectID|version)"\s*:\s*"'),)

    def describe(self, head: Head, path: str) -> Peek | None:
        """Return what the beginning of an export says; None when it holds no message."""
        if head.is_whole and _EMPTY_LIST.search(head):
            return None
        text = head.decode(errors="replace")
        try:
            info = mapping(mend(LENIENT.raw_decode(text, text.index("{", 1))[0]))
        except (ValueError, RecursionError):
            return roughly(head, path)
        id, started = string(info.get("id")) or Path(path).stem, time_of(info, "created")
        # Other tools mask ids to a word that many sessions have then: these go by their beginning.
        known = _OWN_ID.fullmatch(id) or started is None
        root = "" if known else f"{started} {string(info.get('directory'))}"
        return Peek(session_id=id, started=started, root=root, parent=string(info.get("parentID")))

    def transcripts(self, walk: Walk, claims: Claims) -> Iterator[Transcript]:
        """Yield exports and stored sessions, in path order, and then databases' sessions."""
        stored = stored_sessions(walk.paths(self.suffixes, self.source))
        own = claims[self.source].items()
        peeks = {path: beginning.peek for path, beginning in own if beginning.failure is None}
        peeks |= {path: files.peek for path, files in stored.items()}
        for transcript in self.grouped(dict(sorted(peeks.items()))):
            files: list[str] = []
            for path in (transcript.path, *transcript.companions):
                files += (path, *(stored[path].files if path in stored else ()))
            yield Transcript(source=self.source, path=files[0], companions=tuple(files[1:]))
        here = {file.path for file in walk.files}
        for path in walk.paths(".db", self.source):
            if _program_of(path):
                log = (path + LOG,) if path + LOG in here else ()
                yield from self._in_database(path, log)

    def _in_database(self, path: str, log: tuple[str, ...]) -> Iterator[Transcript]:
        """Yield a database's sessions, and what keeps it, or one form of its tables, from it."""
        found = Transcript(source=self.source, path=path, companions=log)
        try:
            forms = trees_in(path)
        except (InputError, OSError):  # a look at it says why
            yield found
            return
        found = replace(found, companions=(path, *log), file=path)
        for form, trees in forms.items():
            if trees is None:
                yield replace(found, path=DatabasePath(path, form).path)
            for tree in trees or ():
                first, place = tree[0], DatabasePath(path, form, tree[0].id)
                changed = max(row.changed for row in tree) * 1_000_000
                changed += sum(row.times for row in tree) % 1_000_000
                yield replace(
                    found,
                    path=place.path,
                    stamp=FileStamp(place.path, sum(1 + row.rows for row in tree), changed),
                    peek=Peek(
                        session_id=first.id, started=moment(first.created), parent=first.parent
                    ),
                )
        if not any(forms.values()) and None not in forms.values():
            yield replace(found, companions=log, file="")

    def peek(self, transcript: Transcript) -> Peek | None:
        """Look at the beginning; None when there is no message.

        Raises:
            InputError: it is a database, or one form of its tables, that cannot be read.
        """
        if transcript.peek is not None:
            return transcript.peek
        if (place := DatabasePath.of(transcript.path, transcript.on_disk)) is not None:
            raise place.refusal()
        own = _stored_in(transcript).get(transcript.path)
        if own is None:
            return super().peek(transcript)
        return own.peek if own.files or "/message/" in own.path else None

    def read_main(self, transcript: Transcript) -> TranscriptDraft:
        """Read an export, a stored session's files, or a session of a database with its agents."""
        if (place := DatabasePath.of(transcript.path, transcript.on_disk)) is not None:
            main, *agents = map(_draft_of, place.sessions())
            main.agents = {agent.id: agent for agent in agents}
            totals = [draft.reported_usage for draft in (main, *agents)]
            known = [total for total in totals if total is not None]
            if len(known) == len(totals):
                main.reported_usage = sum(known, Usage())
            else:
                main.reported_usage = None
            return main
        own = _stored_in(transcript).get(transcript.path)
        return self.read_file(transcript.path) if own is None else read_stored(own)

    def read_children(
        self, transcript: Transcript, draft: TranscriptDraft
    ) -> Iterator[TranscriptDraft]:
        """Read the sessions of subagents, exported or stored."""
        if draft.agents:
            return
        yield from super().read_children(transcript, draft)
        for path, child in _stored_in(transcript).items():
            if path != transcript.path:
                try:
                    yield read_stored(child)
                except (OSError, ValueError) as error:
                    draft.report(0, f"its subagent's record {path} cannot be read: {error}")

    def read_file(self, path: str) -> TranscriptDraft:
        """Read an exported session."""
        draft = TranscriptDraft(path)
        document = draft.load(path)
        take_info(mapping(document.get("info")), draft)
        draft.id = draft.id or Path(path).stem
        listed = document.get("messages")
        messages: list[Said] = []
        for number, message in enumerate(listed if type(listed) is list else (), 1):
            inner = mapping(message).get("info")
            if type(inner) is dict:
                parts = message.get("parts")
                messages.append((inner, parts if type(parts) is list else []))
            else:
                draft.report(0, f"message {number} tells nothing about itself")
        convert(messages, draft)
        return draft

    def documents(self, transcript: Transcript) -> list[bytes]:
        """Return a database's session and those of its subagents as exports."""
        place = DatabasePath.of(transcript.path, transcript.on_disk)
        return [stored.exported() for stored in (place.sessions() if place else ())]


READER = OpenCodeReader()


def _program_of(database: str) -> str:
    """Return whose database a file is, by its name and its folder's; empty for no known one's.

    Kilo Code 7 came of OpenCode and keeps its tables.
    """
    names = Path(database).parts[-2:]
    if any("opencode" in name for name in names):
        return "opencode"
    return "kilo-code" if "kilo" in names or "kilo.db" in names else ""


def _draft_of(stored: SessionRows) -> TranscriptDraft:
    draft = TranscriptDraft(stored.reference.path)
    draft.tool = _program_of(stored.reference.path.partition("#")[0])
    draft.problems += stored.problems
    draft.references.append(stored.reference)
    take_info(stored.info, draft)
    if "tokens" in stored.info:
        draft.reported_usage = usage_of(stored.info["tokens"])
    convert(stored.messages, draft)
    return draft


def _stored_in(transcript: Transcript) -> dict[str, StoredFiles]:
    return stored_sessions((transcript.path, *transcript.companions))
