"""Interpret single Codex records: prompts, prompt files, copied histories, pages."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from debrief.sessions.model import ContextSource
from debrief.sessions.readers.documents import JsonLines, JsonRecord
from debrief.sessions.readers.timeline import MessageDraft
from debrief.sessions.readers.values import first_string, inside, mapping, mappings, moment, string

_ITEM = re.compile(
    r"message|(?:function|custom_tool)_call(?:_output)?|(?:local_shell|web_search|tool_search)_call"
    r"|tool_search_output"
)
_ID_IN_NAME = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_NOTICES = ("<subagent_notification>", "<codex_internal_context", "<hook_prompt ")
_MACHINE = re.compile(
    r"<(?:environment_context|user_instructions|user_action|turn_aborted|skill|user_shell_command"
    r"|subagent_notification|permissions instructions|collaboration_mode|system-reminder"
    r"|INSTRUCTIONS|recommended_plugins|codex_internal_context|hook_prompt|tools|model_switch"
    r"|(?:skills|apps|plugins|environments)_instructions|multi_agent_\w+|personality_spec)[> ]"
    r"|# AGENTS\.md|Warning: apply_patch was requested via"
)
_IMAGE = re.compile(r"<image\b[^>]*>|</image>")
"""The parts before and after a picture in a message."""
REPLY = "send_user_message_question_reply"
"""The element that holds what a person answered to a question of the model's."""
_AGENTS = re.compile(r"# AGENTS\.md instructions(?: for (.*))?\n")
_CONTEXT = "# Context from my IDE setup:"
_CHOSEN = re.compile(
    r"^(?=# Files mentioned by the user:|## Active selection of the file:)", re.MULTILINE
)
_REQUEST = re.compile(r"^## My request(?: for Codex)?:\n", re.MULTILINE)
CITATION = "oai-mem-citation"
"""A note of the model's memory that nobody was shown."""


class Attributed(Struct, frozen=True):
    """A message in the user's name: what a person said in it, and what Codex did."""

    words: str
    images: int
    notes: tuple[str, ...]
    """Codex's own: context, notices, what became of other agents."""
    is_certain: bool
    """The record says whose words are whose; else that is guessed from how they begin."""


def said(payload: JsonRecord) -> Attributed:
    """Return who said what in a user's message among the response items."""
    content = payload.get("content")
    blocks = mappings(content if type(content) is list else [{"text": content}])
    about = mapping(payload.get("internal_chat_message_metadata_passthrough"))
    listed = about.get("content_item_kinds")
    kinds = [string(kind) for kind in (listed if type(listed) is list else ())]
    is_certain = len(kinds) == len(blocks) and any(kind != "unknown" for kind in kinds)
    words: list[str] = []
    notes: list[str] = []
    for place, block in enumerate(blocks):
        text = string(block.get("text"))
        is_words = (
            kinds[place].startswith("user.") if is_certain else not _MACHINE.match(text.lstrip())
        )
        if not is_words:
            notes.append(text)
        elif text.strip() and not _IMAGE.fullmatch(text.strip()):
            words.append(text)
    images = sum(block.get("type") == "input_image" for block in blocks)
    return Attributed("\n\n".join(words), images, tuple(notes), is_certain)


def is_notice(text: str) -> bool:
    """Return whether a text is what Codex itself tells the model: another agent's result, a goal
    to go on with, what a hook has to say."""
    return text.lstrip().startswith(_NOTICES)


def source_of(text: str) -> ContextSource:
    """Return who says a text that Codex put into the conversation."""
    text = text.lstrip()
    return next((who for begin, who in _SOURCES.items() if text.startswith(begin)), "program")


_SOURCES: dict[str, ContextSource] = {
    "<subagent_notification>": "task",
    "<hook_prompt ": "hook",
    "<user_shell_command": "command",
}


def is_environment(text: str) -> bool:
    """Return whether a text is the context that Codex begins with, the prompt files beside it."""
    return text.lstrip().startswith("<environment_context>")


def instructions_in(text: str) -> tuple[str, str] | None:
    """Return path and text of the prompt file that a part of a message holds; None for none."""
    header = _AGENTS.match(text)
    body = inside(text, "INSTRUCTIONS" if header else "user_instructions")
    if body is None or not (header or text.startswith("<user_instructions>")):
        return None
    folder = header[1] if header else ""
    path = f"{folder.rstrip('/')}/AGENTS.md" if folder else "AGENTS.md"
    return path, body.strip("\n")


def own_words(text: str) -> str:
    """Return the prompt without what an editor added about the files that were open.

    What the person selected or dropped in stays: the words that follow speak of it.
    """
    if not text.lstrip().startswith(_CONTEXT):
        return text
    match = _CHOSEN.search(text) or _REQUEST.search(text)
    return text[match.end() :].strip() if match else text


def loaded_tools(tools: Any) -> list[Any]:
    """Return those of the tools that the model sees from the beginning; the others it has to
    search for, and the search's result describes them."""
    loaded: list[Any] = []
    for tool in mappings(tools):
        if type(tool.get("tools")) is list:
            loaded.append({**tool, "tools": loaded_tools(tool["tools"])})
        elif tool.get("deferLoading") is not True:
            loaded.append(tool)
    return loaded


def parent_of(meta: JsonRecord) -> str:
    """Return the id of the session that spawned this one; empty where none is named."""
    agent = mapping(meta.get("source")).get("subagent")
    spawn = mapping(mapping(agent).get("thread_spawn"))
    return first_string(spawn, "parent_thread_id") or (
        string(meta.get("parent_thread_id")) if agent else ""
    )


def repository_of(url: str) -> str:
    """Return the repository's name in a remote's URL; empty when it holds none."""
    name = PurePosixPath(url.rstrip("/").replace(":", "/")).name.removesuffix(".git")
    return "" if name in ("", ".", "..") else name


def unwrapped(record: JsonRecord) -> tuple[str, JsonRecord]:
    """Return the kind and the payload of a record of the bare layout."""
    kind = string(record.get("type"))
    if _ITEM.fullmatch(kind):
        return "response_item", record
    if not kind and "id" in record and "timestamp" in record:
        return "session_meta", record
    return "", {}


def id_in_name(path: str) -> str:
    """Return the session's id that a rollout's name ends with, else the name."""
    stem = Path(path).name.removesuffix(".zst").removesuffix(".jsonl")
    ids: list[str] = _ID_IN_NAME.findall(stem)
    return ids[0] if ids else stem


def is_id(text: str) -> bool:
    """Return whether a text is a thread's id, and no word that other tools masked it with."""
    return _ID_IN_NAME.fullmatch(text) is not None


def meta_of(record: JsonRecord) -> JsonRecord:
    """Return what a record says of the session; an empty object where it is about no session."""
    if record.get("type") == "session_meta":
        return mapping(record.get("payload"))
    bare = record.get("type") is None and "id" in record and "timestamp" in record
    return record if bare else {}


def event_of(item: JsonRecord) -> JsonRecord:
    """Return the event that an ``item_completed`` stands for: the same in the words of rollouts
    that are not paginated. An empty object where the response items say it already."""
    kind = item.get("type")
    if kind == "AgentMessage":
        return {"type": "agent_message", "message": _words(item)}
    if kind == "UserMessage":
        parts = mappings(item.get("content"))
        images = [part for part in parts if part.get("type") in ("image", "local_image")]
        return {"type": "user_message", "message": _words(item), "images": images}
    name = _EVENTS.get(kind) if type(kind) is str else None
    if name is None:
        return {}
    event = {**item, "type": name, "call_id": item.get("id")}
    if kind == "FileChange":
        event["success"] = item.get("status") == "completed"
    elif kind == "McpToolCall":
        event["invocation"] = item
        event["result"] = (
            {"Ok": item["result"]} if item.get("result") else {"Err": item.get("error")}
        )
    return event


_EVENTS = {
    "CommandExecution": "exec_command_end",
    "FileChange": "patch_apply_end",
    "McpToolCall": "mcp_tool_call_end",
    "DynamicToolCall": "dynamic_tool_call_response",
    "SubAgentActivity": "sub_agent_activity",
    "EnteredReviewMode": "entered_review_mode",
    "ExitedReviewMode": "exited_review_mode",
}


def _words(item: JsonRecord) -> str:
    return "".join([string(part.get("text")) for part in mappings(item.get("content"))])


def has_results(message: MessageDraft) -> bool:
    """Return whether calls of a message were answered: what comes next was said knowing that."""
    ends = (message.calls[0], message.calls[-1]) if message.calls else ()
    return any(call.status != "unanswered" for call in ends)


_COPIED_WITHIN = timedelta(seconds=1)
"""A fork writes its copy at once; what a person does afterwards takes longer."""


class CopiedHistory:
    """Separates the copied records at a fork's beginning from its own.

    A fork's first ``session_meta`` is its own, and a second one, of the session that it was
    forked from, opens the copy. Newer versions number their records and tell the number that a
    subagent's own begin with. Else the copy's turns carry the ids that they had, which hold their
    time; where they do not, the copy ends with the burst in which it was written.
    """

    def __init__(self) -> None:
        self._id: str | None = None
        self._first: int | None = None
        self._started: datetime | None = None
        self.is_open = False
        """Whether the latest record was a copy, so that the next may be one."""

    def holds(self, record: JsonRecord) -> bool:
        """Return whether ``record`` is a copy; call it for every ``session_meta``, and while the
        copy is open for every record."""
        is_meta = record.get("type") == "session_meta"
        payload, at = record.get("payload"), moment(record.get("timestamp"))
        if is_meta and type(payload) is dict:
            identity = string(payload.get("id"))
            if self._id is None:
                self._id = identity
                self._started = at or moment(payload.get("timestamp"))
                first = payload.get("subagent_history_start_ordinal")
                self._first = first if type(first) is int else None
            self.is_open = self.is_open or identity != self._id
        elif self._first is not None:
            self.is_open = ordinal_of(record) < self._first
        elif self._started is not None:
            begun = _time_in(string(mapping(payload).get("turn_id")))
            if begun is not None:
                self.is_open = begun < self._started
            elif at is not None:
                self.is_open = at <= self._started + _COPIED_WITHIN
        return self.is_open


def history_elsewhere(meta: JsonRecord, lines: JsonLines) -> list[JsonRecord]:
    """Return the records that a fork goes on from where its rollout holds no copy of them.

    Newer versions number a thread's records on in the fork's file, and leave those before in the
    original's, which is in the same folder or in that of another day.

    Args:
        meta: the record that begins the fork's rollout.
        lines: of the rollout, which gets a problem where the original's is not at hand.
    """
    payload = mapping(meta.get("payload"))
    base = mapping(payload.get("history_base"))
    thread, end = string(base.get("thread_id")), base.get("end_ordinal_exclusive")
    if thread == payload.get("id") or type(end) is not int or not 0 < end <= ordinal_of(meta):
        return []
    path = _rollout_of(thread, lines.path)
    if path is None:
        lines.report(f"the session that it was forked from, {thread}, is not here")
        return []
    original, records = JsonLines(str(path)), list[JsonRecord]()
    with suppress(OSError):
        for record in original:
            if ordinal_of(record) >= end:
                continue
            if original.records == 1 and record.get("type") == "session_meta":
                records += history_elsewhere(record, lines)
            records.append(record)
    return records


def _rollout_of(thread: str, path: str) -> Path | None:
    """Return where a thread's rollout is, by its name, seen from another rollout."""
    folder = Path(path).parent
    found: list[Path] = []
    if is_id(thread) and thread not in Path(path).name:
        found += folder.glob(f"*{thread}.jsonl*")
        if all(part.isdecimal() for part in folder.parts[-3:]) and len(folder.parts) > 3:
            found += folder.parents[2].glob(f"*/*/*/*{thread}.jsonl*")
    return min(found, default=None)


def ordinal_of(record: JsonRecord) -> int:
    """Return a record's number in its thread; 0 where records have none."""
    ordinal = record.get("ordinal")
    return ordinal if type(ordinal) is int else 0


def _time_in(identity: str) -> datetime | None:
    """Return the time in a UUID of version 7; None for any other id."""
    digits = identity.replace("-", "")
    if len(digits) != 32 or digits[12] != "7":
        return None
    try:
        return moment(int(digits[:12], 16))
    except ValueError:
        return None


class ThreadPage(Struct, frozen=True):
    """Where a thread went on after its person had taken something back, in a file of its own."""

    thread: str
    first: int
    """The number of its first record; the thread's earlier ones from there on are taken back."""

    @property
    def id(self) -> str:
        """What it is called where the thread's beginning is not at hand."""
        return f"{self.thread}@{self.first}"


def page_of(meta: JsonRecord) -> ThreadPage | None:
    """Return which page of a thread a file is; None for its first, and for a fork."""
    base, identity = mapping(meta.get("history_base")), string(meta.get("id"))
    first = base.get("end_ordinal_exclusive")
    if not identity or base.get("thread_id") != identity or type(first) is not int:
        return None
    return ThreadPage(identity, first)
