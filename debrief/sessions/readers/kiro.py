"""Kiro CLI: ``~/.kiro/sessions/cli/<id>.jsonl`` with ``<id>.json``.

Only prompts tell their time. The file beside them has the folder, and of each turn its end, its
model and, where Kiro counts them, its tokens. What Kiro's IDE and the CLI's first versions, which
had a database, keep is not read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, TranscriptReader
from debrief.sessions.readers.documents import JsonLines, JsonRecord, compact_json
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments, replaced
from debrief.sessions.readers.timeline import NO_USAGE, CallDraft
from debrief.sessions.readers.values import (
    TokenNames,
    first_string,
    mapping,
    mappings,
    moment,
    number_in,
    string,
)

_ASKED = re.compile(rb'"timestamp"\s*:\s*(\d{10}(?:\.\d+)?)\b')
_PARENT = re.compile(rb'(?<!\\)"parent_session_id"\s*:\s*"([^"\\]+)"')
_EXIT_CODE = re.compile(r"exit status: (-?\d+)")
_CHOSEN_BY_KIRO = "auto"
"""In place of a model's name."""
_INTERRUPTED = "Response was interrupted by the user"
_BILLED = TokenNames(
    "input_token_count",
    "output_token_count",
    "cache_write_input_token_count",
    "cache_read_input_token_count",
)
_EDITING = frozenset({"write", "fs_write"})
_READING = frozenset({"view", "read"})


class KiroReader(TranscriptReader):
    """Sessions of Kiro's CLI, each with what is beside it."""

    source = "kiro"
    tool = "kiro"
    tools = ToolNames(
        run="shell execute_bash execute_cmd",
        read="read fs_read",
        search="grep glob",
        edit="write fs_write",
        plan="todo_list",
        delegate="use_subagent subagent",
        web="web_search web_fetch",
    )
    home_folders = (".kiro/sessions/cli",)
    moved_by = ("KIRO_HOME", ".kiro")
    start = re.compile(
        rb'\A\s*\{\s*"version"\s*:\s*(?:"v\d+"|\d+)\s*,\s*"kind"\s*:\s*'
        rb'"(?:Prompt|AssistantMessage|ToolResults|Compaction|Clear|ToolLog)"'
    )
    message_mark = re.compile(rb'"kind"\s*:\s*"(?:Prompt|AssistantMessage)"')
    asking = ("query", "task", "prompt")

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the names and the first prompt say."""
        parent = "".join(Head.of(each).text(_PARENT) for each in self.beside(path))
        asked = _ASKED.search(head)
        started = moment(float(asked[1])) if asked else None
        return Peek(session_id=Path(path).stem, started=started, parent=parent)

    def beside(self, path: str) -> tuple[str, ...]:
        """Return the file that a session's folder and turns are in, when there is one."""
        about = path.removesuffix(".jsonl") + ".json"
        return (about,) if Path(about).is_file() else ()

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one session."""
        draft = TranscriptDraft(path)
        about: JsonRecord = next(draft.load_beside(self.beside(path)), {})
        draft.id = Path(path).stem
        draft.take(about, cwd="cwd", title="title", parent="parent_session_id")
        state = mapping(mapping(about.get("session_state")).get("conversation_metadata"))
        turns = mappings(state.get("user_turn_metadatas"))
        draft.read_lines(_Talk(draft, turns).convert)
        draft.references.reverse()  # its own before what is beside it
        if draft.started is None:
            draft.see(moment(about.get("created_at")))
        for turn in turns:
            draft.see(moment(turn.get("end_timestamp")))
        return draft


READER = KiroReader()


class _Talk:
    """A session's records on their way to its timeline."""

    def __init__(self, draft: TranscriptDraft, turns: list[JsonRecord]) -> None:
        self._draft = draft
        self._turns: dict[str, JsonRecord] = {}
        """By message, the turn that it is of, as the file beside the session has it."""
        spent = NO_USAGE
        for turn in turns:
            spent += _BILLED.usage(turn)
            ids = turn.get("message_ids")
            self._turns |= {
                id: turn for id in (ids if type(ids) is list else ()) if type(id) is str
            }
        if spent != NO_USAGE:
            draft.usage = spent

    def convert(self, lines: JsonLines, draft: TranscriptDraft) -> None:
        timeline = draft.timeline
        for record in lines:
            kind, data = record.get("kind"), mapping(record.get("data"))
            blocks = mappings(data.get("content"))
            at = moment(mapping(data.get("meta")).get("timestamp"))
            draft.see(at)
            if kind == "Prompt":
                images = sum(block.get("kind") == "image" for block in blocks)
                words = _words(blocks)
                if words.strip() or images:
                    timeline.prompt(words, at, images)
            elif kind == "AssistantMessage":
                self._answer(string(data.get("message_id")), blocks)
            elif kind == "ToolResults":
                for block in blocks:
                    if block.get("kind") == "toolResult":
                        _result(mapping(block.get("data")), draft)
            elif kind == "Compaction":
                timeline.compact(string(data.get("summary")))
            elif kind == "Clear":
                timeline.compact()

    def _answer(self, id: str, blocks: list[JsonRecord]) -> None:
        timeline = self._draft.timeline
        words = _words(blocks)
        if words.strip() == _INTERRUPTED:
            timeline.interrupt(None)
            return
        thoughts = [
            mapping(block.get("data")) for block in blocks if block.get("kind") == "thinking"
        ]
        models = [string(thought.get("modelId")) for thought in thoughts]
        models += [string(self._turns.get(id, {}).get("model"))]
        known = (model for model in models if model not in ("", _CHOSEN_BY_KIRO))
        message = timeline.begin_message(id, next(known, ""), None)
        message.texts.append(words)
        message.thoughts += [string(thought.get("text")) for thought in thoughts]
        for block in blocks:
            if block.get("kind") == "toolUse":
                data = mapping(block.get("data"))
                given = data.get("input")
                timeline.call(message, data.get("toolUseId"), data.get("name"), given, None)


def _words(blocks: list[JsonRecord]) -> str:
    return "\n\n".join(
        string(block.get("data")) for block in blocks if block.get("kind") == "text"
    ).strip("\n")


def _result(data: JsonRecord, draft: TranscriptDraft) -> None:
    call = draft.called(data.get("toolUseId"))
    if call is None:
        return
    parts = mappings(data.get("content"))
    codes = [string(mapping(part.get("data")).get("exit_status")) for part in parts]
    draft.timeline.result(
        call,
        "\n".join(_text(part.get("data")) for part in parts),
        failed=data.get("status") == "error",
        at=None,
        exit_code=number_in("\n".join(codes), _EXIT_CODE),
        edit=_edit(call),
    )


def _text(data: Any) -> str:
    return data if type(data) is str else compact_json(data)


def _edit(call: CallDraft) -> FileEdit | None:
    given = call.arguments
    command = string(given.get("command"))
    if call.name not in _EDITING or command in _READING:
        return None
    path = string(given.get("path"))
    old, new = first_string(given, "oldStr", "old_str"), first_string(given, "newStr", "new_str")
    if old or command in ("insert", "append"):
        return replaced(path, old, new or string(given.get("content")), estimated=True)
    return edit_of_arguments(given)
