"""Cline: ``~/.cline/data/sessions/<id>/<id>.messages.json``, and its extension's tasks.

A session of the program is one document, with a manifest beside it; subagents' documents are in
the same folder. The extension for editors keeps another kind of document: see ``tasks``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, Transcript, TranscriptReader
from debrief.sessions.readers.cline import tasks
from debrief.sessions.readers.documents import JsonRecord, compact_json
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments
from debrief.sessions.readers.timeline import CallDraft
from debrief.sessions.readers.values import (
    TokenNames,
    decoded_arguments,
    first_string,
    inside,
    mapping,
    mappings,
    moment,
    number_in,
    string,
    text_of,
    without,
)

_SESSION = re.compile(
    rb'\A\s*\{\s*"version"\s*:\s*\d+\s*,\s*"updated_at"\s*:\s*"[^"]*"\s*,\s*"agent"\s*:\s*"(\w+)"'
)
_ID = re.compile(rb'(?<!\\)"sessionId"\s*:\s*"([^"\\]+)"')
_PARENT = re.compile(rb'(?<!\\)"parentThreadId"\s*:\s*"([^"\\]+)"')
_TIME = re.compile(rb'(?<!\\)"ts"\s*:\s*(\d{9,16})')
_STARTED = re.compile(rb'(?<!\\)"started_at"\s*:\s*"([^"\\]+)"')
_ENVELOPE = re.compile(r"<user_(input|command)\b([^>]*)>(.*?)</user_\1>", re.DOTALL)
_SLASH = re.compile(r'\bslash="([^"]+)"')
_EXIT_CODE = re.compile(r"Command exited with code (-?\d+)")
_BILLED = TokenNames(
    "inputTokens", "outputTokens", "cacheWriteTokens", "cacheReadTokens", cached_inside=True
)
_DOCUMENT = ".messages.json"


class ClineReader(TranscriptReader):
    """Cline's sessions and tasks: one document each, and what is beside it."""

    source = "cline"
    tool = "cline"
    tools = ToolNames(
        run="run_commands execute_command",
        read="read_files read_file",
        search="search_codebase search_files list_files list_code_definition_names",
        edit="editor write_to_file new_file replace_in_file apply_patch",
        plan="plan_mode_respond",
        delegate="use_subagents",
        ask="ask_followup_question ask_question",
        web="web_fetch web_search browser_action",
    )
    home_folders = (
        ".cline/data/sessions",
        ".cline/data/tasks",
        *tasks.folders_of("saoudrizwan.claude-dev"),
    )
    moved_by = ("CLINE_DATA_DIR", ".cline/data")
    suffixes = (_DOCUMENT, tasks.DOCUMENT)
    start = _SESSION
    message_mark = re.compile(rb'(?<!\\)"role"\s*:\s*"(?:user|assistant)"')
    asking = ("task",)

    def claims(self, head: bytes, path: str) -> bool:
        """Return whether a beginning is of a session's document, or of a task's."""
        is_task = tasks.claims(head) and not tasks.is_roos(head, path)
        return is_task or super().claims(head, path)

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the beginning says."""
        if path.endswith(tasks.DOCUMENT):
            return tasks.describe(head, path)
        manifest = Head.of(_manifest(path)) if Path(_manifest(path)).is_file() else Head()
        times = [manifest.first_time(_STARTED), head.first_time(_TIME)]
        return Peek(
            session_id=head.text(_ID) or Path(path).name.removesuffix(_DOCUMENT),
            started=min((at for at in times if at is not None), default=None),
            parent=_parent(head.text(_ID), head.text(_PARENT), head.text(_SESSION)),
        )

    def beside(self, path: str) -> tuple[str, ...]:
        """Return a session's manifest, or what a task keeps beside its document."""
        if path.endswith(tasks.DOCUMENT):
            return tasks.beside(path)
        manifest = _manifest(path)
        compaction = path.removesuffix(_DOCUMENT) + ".compaction.json"
        return tuple(each for each in (manifest, compaction) if Path(each).is_file())

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one session's document, or one task's."""
        draft = TranscriptDraft(path)
        document = draft.load(path)
        others = list(draft.load_beside(self.beside(path)))
        if path.endswith(tasks.DOCUMENT):
            tasks.convert(document, others, draft, "cline-vscode")
        else:
            _convert(document, others, draft)
        return draft

    def read_children(
        self, transcript: Transcript, draft: TranscriptDraft
    ) -> Iterator[TranscriptDraft]:
        """Read subagents' documents."""
        for child in super().read_children(transcript, draft):
            draft.reported_usage = None  # the manifest counts the session's own calls alone
            yield child


READER = ClineReader()


def _manifest(path: str) -> str:
    return path.removesuffix(_DOCUMENT) + ".json"


def _parent(id: str, parent: str, agent: str) -> str:
    return parent or ("" if agent in ("", "lead") else id.partition("__")[0])


def _convert(document: JsonRecord, others: list[JsonRecord], draft: TranscriptDraft) -> None:
    origin, id = mapping(document.get("origin")), string(document.get("sessionId"))
    draft.id = id or Path(draft.path).name.removesuffix(_DOCUMENT)
    parent, agent = string(origin.get("parentThreadId")), string(document.get("agent"))
    draft.parent = _parent(draft.id, parent, agent)
    draft.version = string(origin.get("version"))
    draft.system_prompt = string(document.get("system_prompt"))
    compacted: tuple[datetime | None, str] | None = None
    for beside in others:
        if "messages" in beside:
            compacted = _compaction(beside)
        else:
            _describe(beside, draft)
    for index, message in draft.objects_in(document.get("messages")):
        at = moment(message.get("ts"))
        draft.see(at)
        if compacted and at and compacted[0] and at > compacted[0]:
            draft.timeline.compact(compacted[1])
            compacted = None
        if message.get("role") == "user":
            _ask(message, at, draft)
        elif message.get("role") == "assistant":
            _answer(message, string(message.get("id")) or f"message-{index + 1}", at, draft)
    if compacted:
        draft.timeline.compact(compacted[1])


def _describe(manifest: JsonRecord, draft: TranscriptDraft) -> None:
    """Take what a manifest tells."""
    metadata = mapping(manifest.get("metadata"))
    draft.take(manifest, cwd="cwd", model="model")
    draft.take(metadata, title="title")
    draft.take(mapping(metadata.get("git")), branch="branch")
    draft.see(moment(manifest.get("started_at")))
    first = next(iter(mappings(mapping(metadata.get("checkpoint")).get("history"))), {})
    if first.get("kind") == "commit":
        draft.take(first, commit="ref")
    if counts := metadata.get("usage"):
        draft.reported_usage = _BILLED.usage(counts)


def _compaction(document: JsonRecord) -> tuple[datetime | None, str]:
    """Return when a conversation was compacted last, and what the model is given for it since."""
    first = next(iter(mappings(document.get("messages"))), {})
    at = mapping(first.get("metadata")).get("generatedAt", document.get("updated_at"))
    return moment(at), text_of(first.get("content"))


def _ask(message: JsonRecord, at: datetime | None, draft: TranscriptDraft) -> None:
    timeline, blocks = draft.timeline, mappings(message.get("content"))
    metadata = mapping(message.get("metadata"))
    if metadata.get("kind") == "compaction_summary":
        timeline.compact(text_of(blocks))
        return
    for block in blocks:
        if block.get("type") == "tool_result":
            _result(block, at, draft)
    text = "\n\n".join(string(block.get("text")) for block in blocks if block.get("type") == "text")
    images = sum(block.get("type") == "image" for block in blocks)
    if not (text.strip() or images):
        return
    if metadata.get("displayRole") == "system":
        timeline.add_context("program", text, at)
        return
    if note := inside(text, "mode_notice"):
        timeline.add_context("program", f"<mode_notice>{note}</mode_notice>", at)
    words = without(text, ("mode_notice",)).strip()
    found = _ENVELOPE.match(words)
    slash = _SLASH.search(found[2]) if found else None
    if found is None:
        timeline.prompt(words, at, images)
    elif slash is None:
        timeline.prompt(found[3], at, images)
    else:
        timeline.prompt(f"/{slash[1]}", at, images, expansion=found[3].strip())


def _answer(
    message: JsonRecord, identity: str, at: datetime | None, draft: TranscriptDraft
) -> None:
    timeline = draft.timeline
    model = string(mapping(message.get("modelInfo")).get("id")) or draft.model
    answer = timeline.begin_message(identity, model, at)
    draft.add_blocks(answer, mappings(message.get("content")), at)
    timeline.spend(_BILLED.usage(message.get("metrics")))


def _result(block: JsonRecord, at: datetime | None, draft: TranscriptDraft) -> None:
    call = draft.called(block.get("tool_use_id"))
    if call is None:
        return
    content = block.get("content")
    parts = mappings(content) if type(content) is list else [mapping(content)]
    if type(content) is str:
        parts, text = [decoded_arguments(content)], content
    else:
        is_plain = all(part.get("type") in ("text", "image") for part in parts)
        text = text_of(content) if is_plain else compact_json(content)
    failed = block.get("is_error") is True or any(part.get("success") is False for part in parts)
    code = None
    if call.name == "run_commands":
        code = number_in(text, _EXIT_CODE, None if failed else 0)
    edit = _edit(call)
    draft.timeline.result(call, text, failed=failed, at=at, exit_code=code, edit=edit)


def _edit(call: CallDraft) -> FileEdit | None:
    given = call.arguments
    if call.name == "editor":  # whatever else a model may name, these alone are obeyed
        path = first_string(given, "path")
        texts = {name: given.get(name) for name in ("old_text", "new_text")}
        return edit_of_arguments({"path": path, **texts})
    return edit_of_arguments(given) if call.name == "apply_patch" else None
