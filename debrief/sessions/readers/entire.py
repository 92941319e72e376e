"""Entire: ``<checkpoint>/<n>/transcript.jsonl`` of its branches, a message a line, second-hand.

Entire writes the sessions of several programs in one short form of its own, with what came back
from a call within the call. ``metadata.json`` beside it names the session, its model and tokens.
"""

from __future__ import annotations

import re
from pathlib import Path

from msgspec.structs import replace

from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, TranscriptReader
from debrief.sessions.readers.documents import JsonLines, JsonRecord, load_object
from debrief.sessions.readers.patches import edit_of_arguments
from debrief.sessions.readers.values import (
    TokenNames,
    mapping,
    mappings,
    moment,
    string,
    text_of,
)

_METADATA = "metadata.json"
_TOOLS = {
    "Claude Code": "claude-code",
    "Copilot CLI": "copilot",
    "Cursor": "cursor",
    "Factory AI Droid": "droid",
    "Gemini CLI": "gemini",
    "Opencode": "opencode",
    "gemini-cli": "gemini",
}
"""What Entire calls programs that have another name here."""
_TIME = re.compile(rb'(?<!\\)"ts"\s*:\s*"([^"\\]{1,40})"')
_EDITS = re.compile(r"edit|write|create|replace|patch", re.IGNORECASE)
_SPENT = TokenNames("input_tokens", "output_tokens")
_BILLED = TokenNames("input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens")


class EntireReader(TranscriptReader):
    """Entire's transcripts, each with its metadata; the tool of each is the agent it names."""

    source = "entire"
    tool = "entire"
    drops = "thoughts, system prompts, tools, exit codes, the folder, some results and times"
    original = "full.jsonl"
    start = re.compile(
        rb'\A\s*\{\s*"v"\s*:\s*1\s*,\s*"agent"\s*:\s*"[^"]*"\s*,\s*"cli_version"\s*:'
    )
    message_mark = re.compile(rb'(?<!\\)"type"\s*:\s*"(?:user|assistant)"')

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the beginning and the metadata beside it say."""
        return Peek(session_id=_identity(path), started=head.first_time(_TIME))

    def beside(self, path: str) -> tuple[str, ...]:
        """Return a transcript's metadata when there are any."""
        metadata = Path(path).with_name(_METADATA)
        return (str(metadata),) if metadata.is_file() else ()

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one transcript with its metadata."""
        draft = TranscriptDraft(path)
        metadata: JsonRecord = next(draft.load_beside(self.beside(path)), {})
        draft.id = _identity(path)
        draft.take(metadata, branch="branch", model="model")
        draft.read_lines(_convert)
        draft.references.reverse()  # its own before its metadata's
        total = _BILLED.usage(metadata.get("token_usage"))
        read = draft.timeline.usage
        if replace(total, cache_write=0, cache_read=0) == read:  # else it is of something else
            draft.usage = total
        return draft


READER = EntireReader()


def _identity(path: str) -> str:
    """Return the session's id, else a name made of the file's, which is the same in all folders."""
    place = Path(path)
    try:
        metadata, _, _ = load_object(str(place.with_name(_METADATA)))
    except (OSError, ValueError):
        metadata = {}
    parts = place.parts[-4:-1] if place.stem == "transcript" else (place.stem,)
    return string(metadata.get("session_id")) or "-".join(parts)


def _convert(lines: JsonLines, draft: TranscriptDraft) -> None:
    for record in lines:
        at, content = moment(record.get("ts")), record.get("content")
        draft.see(at)
        draft.take(record, version="cli_version")
        agent = string(record.get("agent"))
        draft.tool = draft.tool or _TOOLS.get(agent, agent)
        blocks = mappings(content)
        if record.get("type") == "user":
            texts = [string(block.get("text")) for block in blocks]
            text = "\n\n".join(filter(str.strip, texts)) if blocks else text_of(content)
            images = sum(block.get("type") == "image" for block in blocks)
            if text.strip() or images:
                draft.timeline.prompt(text, at, images)
        elif record.get("type") == "assistant":
            _answer(record, blocks, f"line-{lines.line}", draft)


def _answer(
    record: JsonRecord, blocks: list[JsonRecord], identity: str, draft: TranscriptDraft
) -> None:
    at, timeline = moment(record.get("ts")), draft.timeline
    answer = timeline.begin_message(string(record.get("id")) or identity, draft.model, at)
    draft.add_blocks(answer, blocks, at)
    timeline.spend(_SPENT.usage(record))
    asked = (block for block in blocks if block.get("type") == "tool_use")
    for call, block in zip(answer.calls, asked, strict=True):
        result = mapping(block.get("result"))
        if result:
            edit = edit_of_arguments(call.arguments) if _EDITS.search(call.name) else None
            failed = result.get("status") == "error"
            timeline.result(call, text_of(result.get("output")), failed=failed, at=at, edit=edit)
