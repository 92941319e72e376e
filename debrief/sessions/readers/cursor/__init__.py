"""Cursor: ``globalStorage/state.vscdb``, and ``~/.cursor/projects/<project>/agent-transcripts``.

The database has all that Cursor shows of a session (``bubbles``). Transcripts, one
``<id>/<id>.jsonl`` a session of the agent, subagents' in ``<id>/subagents``, hold prompts, answers
and calls, and neither results nor tokens, models or times of answers: a session that is in both is
read from the database. A transcript's ids of session and parent are in its path alone, and so is
the working folder, as a name that several paths have. What is in workspaces' databases, and in
those of Cursor's CLI, is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from debrief.sessions.model import Session
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, Transcript
from debrief.sessions.readers.cursor import bubbles
from debrief.sessions.readers.documents import JsonLines, JsonRecord
from debrief.sessions.readers.patches import edit_of_arguments
from debrief.sessions.readers.tables import DatabaseReader, SessionInDatabase
from debrief.sessions.readers.values import mapping, mappings, moment, string, text_of

_SETTINGS = (".config", "Library/Application Support", "AppData/Roaming")
_TIME = re.compile(
    r"<timestamp>\s*\w+,\s+(\w{3})\w*\.?\s+(\d{1,2}),\s+(\d{4}),\s+(\d{1,2}):(\d{2})\s+([AP])M"
    r"(?:\s+\(UTC(?:([+-])(\d{1,2})(?::?(\d{2}))?)?\))?\s*</timestamp>"
)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_QUERY, _QUERY_END = "<user_query>", "</user_query>"
_MACHINE = (
    "The above subagent result is already visible to the user",
    "Briefly inform the user about the task result",
)
"""What Cursor asks by itself begins so right behind the tag; a person's words, on a new line."""
_HIDDEN = re.compile(r"\n*^\[REDACTED\]\s*\Z", re.MULTILINE)
"""Stands for thinking that was left out."""
_EDITING = re.compile(
    r"Write|(?:Multi)?StrReplace|ApplyPatch|EditNotebook|edit_file|search_replace|write"
)
_PLACES = ("path", "file_path", "target_directory", "working_directory", "target_notebook")
_STOPPED = re.compile(r"abort|interrupt|cancel", re.IGNORECASE)
_LONGEST_PATH = 4_096
_NO_SIGN = re.compile(r"[^A-Za-z0-9]+")


class CursorReader(DatabaseReader):
    """Cursor's sessions, in its database, and as transcripts that are named after them."""

    source = "cursor"
    tool = "cursor"
    tools = ToolNames(
        run="Shell run_terminal_cmd run_terminal_command_v2",
        read="Read ReadFile read_file read_file_v2",
        search="Grep Glob LS rg SemanticSearch codebase_search grep_search file_search list_dir "
        "glob_file_search list_dir_v2 ripgrep_raw_search ripgrep_search semantic_search_full",
        edit="Write StrReplace MultiStrReplace ApplyPatch EditNotebook edit_file edit_file_v2 "
        "search_replace Delete delete_file",
        wait="Await",
        plan="TodoWrite todo_write CreatePlan create_plan",
        delegate="Task Subagent task_v2",
        ask="AskQuestion ask_question",
        web="WebSearch WebFetch web_search",
    )
    home_folders = (
        ".cursor/projects",
        *(f"{each}/Cursor/User/globalStorage" for each in _SETTINGS),
    )
    suffixes = (".jsonl",)
    databases = ("state.vscdb",)
    needed = {"cursorDiskKV": frozenset({"key", "value"})}
    start = re.compile(
        rb'\A\s*\{\s*(?:"role"\s*:\s*"(?:user|assistant)"\s*,\s*"message"\s*:\s*\{\s*"content"\s*:'
        rb'|"type"\s*:\s*"turn_ended"\s*,\s*"status"\s*:)'
    )
    message_mark = re.compile(rb'(?<!\\)"role"\s*:\s*"(?:user|assistant)"')
    asking = ("prompt",)

    def claims(self, head: bytes, path: str) -> bool:
        """Return whether a file with this beginning is the source's."""
        return bool(self.start.match(head))

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the path and the first prompt say."""
        started = _time_in(head.decode(errors="replace"))
        return Peek(session_id=Path(path).stem, started=started, parent=_parent(path))

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one transcript."""
        draft = TranscriptDraft(path)
        draft.id, draft.parent = Path(path).stem, _parent(path)
        draft.read_lines(_convert)
        draft.cwd = _folder(draft, path)
        return draft

    def listed(self, connection: Connection) -> list[SessionInDatabase]:
        """Return the sessions of a database."""
        return bubbles.listed(connection)

    def family(self, connection: Connection, id: str) -> list[SessionInDatabase]:
        """Return a session of a database with its subagents'."""
        return bubbles.family(connection, id)

    def draft_of(self, connection: Connection, id: str, draft: TranscriptDraft) -> None:
        """Read one session of a database."""
        bubbles.read(connection, id, draft)

    def read_all(
        self, transcripts: Sequence[Transcript], failed: Callable[[Transcript, Exception], None]
    ) -> Session | None:
        """Read a session: where a database has it, a transcript of it adds nothing."""
        stored = [
            transcript for transcript in transcripts if transcript.on_disk.endswith(self.databases)
        ]
        session = super().read_all(stored, failed) if stored else None
        return session or super().read_all(
            [transcript for transcript in transcripts if transcript not in stored], failed
        )


READER = CursorReader()


def _parent(path: str) -> str:
    folder = Path(path).parent
    return folder.parent.name if folder.name == "subagents" else ""


def _convert(lines: JsonLines, draft: TranscriptDraft) -> None:
    timeline = draft.timeline
    at: datetime | None = None
    for record in lines:
        content = mapping(record.get("message")).get("content")
        if record.get("role") == "user":
            text = text_of(content)
            at = _time_in(text) or at
            draft.see(at)
            _results(mappings(content), at, draft)
            _ask(text, at, draft)
        elif record.get("role") == "assistant":
            _answer(content, draft)
        elif record.get("type") == "turn_ended" and _STOPPED.search(
            f"{record.get('status')} {record.get('error')}"
        ):
            timeline.interrupt(None)


def _ask(text: str, at: datetime | None, draft: TranscriptDraft) -> None:
    """Take a prompt out of what Cursor wrapped it in: only what is before its tag is Cursor's."""
    before, tag, words = text.partition(_QUERY)
    images = before.count("[Image]") if tag else 0
    if not tag:
        words = _TIME.sub("", before)
    elif _QUERY_END in words:
        words = words.rpartition(_QUERY_END)[0]
    if words.startswith(_MACHINE):
        draft.timeline.add_context("task", words.strip(), at)
    elif words.strip() or images:
        draft.timeline.prompt(words.strip(), at, images=images)


def _answer(content: Any, draft: TranscriptDraft) -> None:
    timeline = draft.timeline
    message = timeline.begin_message(f"message-{timeline.messages + 1}", "", None)
    for block in [{"type": "text", "text": content}] if type(content) is str else mappings(content):
        if block.get("type") == "text":
            message.texts.append(_HIDDEN.sub("", string(block.get("text"))))
        elif block.get("type") == "thinking":
            message.thoughts.append(string(block.get("thinking")))
        elif block.get("type") == "tool_use":
            name = "".join(
                string(block.get("name")).split(maxsplit=1)[:1]
            )  # one had a path behind it
            call = timeline.call(message, block.get("id"), name, block.get("input"), None)
            if _EDITING.fullmatch(name):  # a call is written down once it has run
                call.edit = edit_of_arguments(call.arguments)
                call.is_edited = True


def _results(blocks: list[JsonRecord], at: datetime | None, draft: TranscriptDraft) -> None:
    """Take results, which no transcript that was seen holds."""
    for block in blocks:
        is_result = block.get("type") == "tool_result"
        if is_result and (call := draft.called(block.get("tool_use_id"))):
            text, failed = text_of(block.get("content")), block.get("is_error") is True
            draft.timeline.result(call, text, failed=failed, at=at, edit=call.edit)


def _time_in(text: str) -> datetime | None:
    """Return the time that a prompt begins with, to the minute."""
    match = _TIME.search(text)
    if match is None or match[1] not in _MONTHS:
        return None
    month, hour = _MONTHS.index(match[1]) + 1, int(match[4]) % 12 + 12 * (match[6] == "P")
    zone = f"{match[7] or '+'}{int(match[8] or 0):02d}:{match[9] or '00'}"
    day = f"{match[3]}-{month:02d}-{int(match[2]):02d}"
    return moment(f"{day}T{hour:02d}:{match[5]}:00{zone}")


def _folder(draft: TranscriptDraft, path: str) -> str:
    """Return the working folder: one that calls name, and after which the project is named."""
    parts = Path(path).parts
    if "agent-transcripts" not in parts[1:]:
        return ""
    project = parts[parts.index("agent-transcripts", 1) - 1].casefold()
    seen = {""}
    for call in draft.timeline.calls.values():
        given = call.arguments
        edited = call.edit.path if call.edit else ""
        for name in (*(string(given.get(each)) for each in _PLACES), edited):
            end = len(name) if len(name) < _LONGEST_PATH else 0
            while (folder := name[: max(0, end)]) not in seen:
                seen.add(folder)
                if _NO_SIGN.sub("-", folder).strip("-").casefold() == project:
                    return folder
                end = max(folder.rfind("/"), folder.rfind("\\"))
    return ""
