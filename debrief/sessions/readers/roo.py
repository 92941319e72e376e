"""Roo Code and what came of it, Kilo Code before 7 and IBM Bob: tasks in the form of Cline's.

``<globalStorage>/<extension>/tasks/<id>/api_conversation_history.json``; newer versions put
``history_item.json`` beside it, which says where a task was and which task it is a part of.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, TranscriptReader
from debrief.sessions.readers.cline import tasks
from debrief.sessions.readers.documents import load_object
from debrief.sessions.readers.values import string


class RooReader(TranscriptReader):
    """Roo's tasks: one document each, and what is beside it."""

    source = "roo"
    tool = "roo-code"
    tools = ToolNames(
        run="execute_command",
        read="read_file",
        search="search_files list_files list_code_definition_names codebase_search",
        edit="apply_diff write_to_file insert_content search_and_replace search_replace edit_file"
        " edit apply_patch",
        wait="read_command_output",
        plan="update_todo_list",
        delegate="new_task",
        ask="ask_followup_question",
        web="browser_action",
    )
    home_folders = tuple(
        folder for extension in tasks.ROOS for folder in tasks.folders_of(extension)
    )
    suffixes = (tasks.DOCUMENT,)
    asking = ("message",)

    def claims(self, head: bytes, path: str) -> bool:
        """Return whether a beginning is of a task's document."""
        return tasks.claims(head) and tasks.is_roos(head, path)

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the beginning says, and of which task it is a part."""
        parent = ""
        with suppress(OSError, ValueError, RecursionError):
            history, _, _ = load_object(str(Path(path).with_name(tasks.HISTORY)))
            parent = string(history.get("parentTaskId"))
        return replace(tasks.describe(head, path), parent=parent)

    def beside(self, path: str) -> tuple[str, ...]:
        """Return what a task keeps beside its document."""
        return tasks.beside(path)

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one task's document."""
        draft = TranscriptDraft(path)
        document = draft.load(path)
        others = list(draft.load_beside(self.beside(path)))
        for other in others:
            draft.take(other, cwd="workspace", parent="parentTaskId")
            if other.get("workspace"):
                draft.take(other, title="task")
        extension = tasks.extension_of(path, tasks.ROOS)
        tasks.convert(document, others, draft, tasks.ROOS.get(extension, self.tool))
        return draft


READER = RooReader()
