"""Factory droid: ``~/.factory/sessions/<slug>/<id>.jsonl`` with ``<id>.settings.json``.

Tokens are in the settings alone; a subagent's transcript names its parent's session.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, TranscriptReader
from debrief.sessions.readers.documents import JsonLines, JsonRecord, compact_json
from debrief.sessions.readers.patches import edit_of_arguments
from debrief.sessions.readers.timeline import NO_USAGE
from debrief.sessions.readers.values import (
    ANTHROPIC_TOKENS,
    Repeats,
    TokenNames,
    decoded_arguments,
    elements,
    first_string,
    mappings,
    moment,
    number_in,
    string,
    text_of,
    without,
)

_FIRST_MESSAGE = re.compile(rb'"type"\s*:\s*"message"\s*,\s*"id"\s*:\s*"([^"\\]{1,80})"')
_CONTEXT = "context-"
"""What the ids of messages with context for the model begin with."""
_REMINDERS = ("system-reminder", "system-notification")
_ATTACHED_FILE = re.compile(r"Contents of .+ \(lines \d+-\d+ of \d+\):\n")
_PROMPT_FILE = re.compile(
    r"^% cat ([^\n]+)\n<coding_guidelines>\n(.*?)\n</coding_guidelines>$", re.DOTALL | re.MULTILINE
)
_EXIT_CODE = re.compile(r"(?:\[Process exited with|\bexit) code:? (-?\d+)", re.IGNORECASE)
_INTERRUPTED = "[Request interrupted by user"
_STOPPED = re.compile(r"interrupt|cancel|abort", re.IGNORECASE)
_EDITING = frozenset({"ApplyPatch", "Create", "Write", "Edit", "MultiEdit"})
_TAIL = 300
_BILLED = ANTHROPIC_TOKENS
_SETTLED = TokenNames("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens")
"""What messages and settings call the four counts of a ``Usage``."""


class DroidReader(TranscriptReader):
    """Droid's transcripts, each with its settings."""

    source = "droid"
    tool = "droid"
    tools = ToolNames(
        run="Execute",
        read="Read",
        search="Grep Glob LS",
        edit="ApplyPatch Create Write Edit MultiEdit",
        wait="TaskOutput",
        plan="TodoWrite ExitSpecMode",
        delegate="Task",
        ask="AskUser",
        web="WebSearch FetchUrl",
    )
    home_folders = (".factory/sessions",)
    start = re.compile(rb'\A\s*\{[^\n{]{0,4000}?"type"\s*:\s*"session_start"')

    def describe(self, head: Head, path: str) -> Peek | None:
        """Return what the beginning says; a session without an id is named after its file."""
        records = head.records()
        if head.is_whole and not any(record.get("type") == "message" for record in records):
            return None
        start = next((record for record in records if record.get("type") == "session_start"), {})
        return Peek(
            session_id=string(start.get("id")) or Path(path).stem,
            started=head.first_time(),
            parent=string(start.get("callingSessionId")),
            root=head.text(_FIRST_MESSAGE).removeprefix(_CONTEXT),
        )

    def beside(self, path: str) -> tuple[str, ...]:
        """Return a transcript's settings file when there is one."""
        settings = path.removesuffix(".jsonl") + ".settings.json"
        return (settings,) if Path(settings).is_file() else ()

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one transcript with its settings."""
        draft = TranscriptDraft(path)
        settings: JsonRecord = next(draft.load_beside(self.beside(path)), {})
        draft.model = string(settings.get("model"))
        draft.read_lines(_convert)
        draft.references.reverse()  # its own before its settings'
        draft.id = draft.id or Path(path).stem
        usage, inclusive = (
            _SETTLED.usage(settings.get(name)) for name in ("tokenUsage", "inclusiveTokenUsage")
        )
        if usage != NO_USAGE:
            draft.usage = usage
            draft.inclusive_usage = None if inclusive == NO_USAGE else inclusive
        elif draft.timeline.usage == NO_USAGE and draft.timeline.turns:
            draft.report(0, "no settings with token counts beside it: tokens are not known")
        return draft


READER = DroidReader()


def _convert(lines: JsonLines, draft: TranscriptDraft) -> None:
    earlier = Repeats()
    for record in lines:
        kind = record.get("type")
        at = moment(record.get("timestamp"))
        draft.see(at)
        if kind == "message":
            identity = string(record.get("id"))
            if earlier.hold(identity, record):
                continue
            if type(record.get("message")) is dict:
                _message(record, identity or f"line-{lines.line}", at, draft)
            else:
                lines.report("a message record without a message")
        elif kind == "session_start" and not draft.id:
            draft.title = first_string(record, "sessionTitle", "title")
            if draft.title == "New Session":
                draft.title = string(record.get("title"))
            draft.take(record, id="id", cwd="cwd", version="version")
            draft.take(record, parent="callingSessionId", parent_call="callingToolUseId")
        elif kind == "compaction_state":
            draft.timeline.compact()
        elif kind == "agent_turn_outcome" and _STOPPED.search(str(record.get("reason", ""))):
            draft.timeline.interrupt(at)


def _message(
    record: JsonRecord, identity: str, at: datetime | None, draft: TranscriptDraft
) -> None:
    message, timeline = record["message"], draft.timeline
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if type(content) is str else mappings(content)
    if message.get("role") == "user":
        visibility = first_string(record, "visibility") or string(message.get("visibility"))
        is_context = identity.startswith(_CONTEXT)
        if is_context:
            draft.add_instructions(_PROMPT_FILE.findall(text_of(content)), "message")
        if visibility == "user_only":  # for the screen alone
            blocks = [block for block in blocks if block.get("type") == "tool_result"]
        _ask(blocks, is_context or visibility == "llm_only", at, draft)
    if message.get("role") != "assistant" or type(content) not in (str, list):
        return
    model = first_string(message, "modelId", "model") or draft.model
    answer = timeline.begin_message(identity, model, at)
    draft.add_blocks(answer, blocks, at)
    timeline.spend(_BILLED.usage(message.get("usage")))


def _ask(
    blocks: list[JsonRecord], by_machine: bool, at: datetime | None, draft: TranscriptDraft
) -> None:
    texts: list[str] = []
    images = 0
    has_results = False
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_result":
            has_results = True
            _result(block, at, draft)
        elif kind == "image":
            images += 1
        elif kind == "text":
            text = string(block.get("text"))
            is_context = by_machine or bool(_ATTACHED_FILE.match(text))
            if is_context and not _PROMPT_FILE.search(text):  # which stand as instructions
                draft.timeline.add_context("program", text, at)
            for name in () if is_context else _REMINDERS:
                for reminder in elements(text, name):
                    draft.timeline.add_context("program", reminder, at)
            text = "" if is_context else without(text, _REMINDERS) if "<system-" in text else text
            if text.strip():
                texts.append(text.strip() if "<system-" in text else text)
    prompt = "\n\n".join(texts)
    if not (texts or images) or by_machine:
        return
    if prompt.startswith(_INTERRUPTED):
        draft.timeline.interrupt(at)
    elif not has_results:
        draft.timeline.prompt(prompt, at, images=images)
    elif prompt:
        draft.timeline.intervene("remark", prompt, at)


def _result(block: JsonRecord, at: datetime | None, draft: TranscriptDraft) -> None:
    content = block.get("content")
    text = compact_json(content) if type(content) is dict else text_of(content)
    call = draft.called(block.get("tool_use_id"))
    if call is None:
        return
    has_outcome = text.startswith("{") and '"success"' in text
    outcome = decoded_arguments(text) if has_outcome else {}
    failed = block.get("is_error") is True or outcome.get("success") is False
    exit_code = None
    if call.name == "Execute":
        exit_code = number_in(text[-_TAIL:], _EXIT_CODE, number_in(text[:_TAIL], _EXIT_CODE))
    edit = None
    if call.name in _EDITING:
        edit = edit_of_arguments(call.arguments, string(outcome.get("diff")))
    draft.timeline.result(call, text, failed=failed, at=at, exit_code=exit_code, edit=edit)
