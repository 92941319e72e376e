"""What single records of a Codex rollout say: outputs, token counts, prompts, edits, copies."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from debrief.sessions.model import Usage
from debrief.sessions.readers.files import JsonRecord, compact_json
from debrief.sessions.readers.patches import FileEdit, created, deleted, from_unified
from debrief.sessions.readers.timeline import MessageDraft
from debrief.sessions.readers.values import decoded_arguments, mapping, mappings, moment, string

_ITEM = re.compile(
    r"message|(?:function|custom_tool)_call(?:_output)?|(?:local_shell|web_search|tool_search)_call"
    r"|tool_search_output"
)
_ID_IN_NAME = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_EXIT_CODE = re.compile(
    r"^(?:Process exited with code|Exit code:|exit code:) ?(-?\d+)", re.MULTILINE
)
_SCRIPTED_CODE = re.compile(r'^\{[^\n]*?"exit_code":(-?\d+)', re.MULTILINE)
_FAILURE = re.compile(
    r"apply_patch verification failed|failed to parse function arguments|exec_command failed"
    r"|Script failed|unsupported call|aborted by user|execution error|failed in sandbox"
    r"|(?:exec command|patch|command) rejected|user rejected|rejected by user|timed out",
    re.IGNORECASE,
)
_PICTURES = ("image", "input_image", "input_audio", "input_file")
_HEAD = 400
_FAILURE_HEAD = 120

_NOTICE = "<subagent_notification>"
_MACHINE = re.compile(
    r"<(?:environment_context|user_instructions|user_action|turn_aborted|skill|user_shell_command"
    r"|subagent_notification|permissions instructions|collaboration_mode|system-reminder"
    r"|INSTRUCTIONS)>|# AGENTS\.md|Warning: apply_patch was requested via"
)
_CONTEXT = "# Context from my IDE setup:"
_CHOSEN = re.compile(
    r"^(?=# Files mentioned by the user:|## Active selection of the file:)", re.MULTILINE
)
_REQUEST = re.compile(r"^## My request(?: for Codex)?:\n", re.MULTILINE)
CITATION = "oai-mem-citation"
"""A note of the model's memory that nobody was shown."""

_TOKEN_FIELDS = ("input_tokens", "cached_input_tokens", "output_tokens")
_COPIED_WITHIN = timedelta(seconds=1)
"""A fork writes its copy at once; what a person does afterwards takes longer."""


class Output(Struct, frozen=True, gc=False):
    """A call's answer."""

    text: str
    failed: bool = False
    exit_code: int | None = None


def read_output(value: Any, success: Any = None) -> Output:
    """Return what a call's ``output`` field says, in any of its four forms.

    It is plain text with a header, JSON text with ``output`` and ``metadata``, a list of blocks,
    or an object.
    """
    if isinstance(value, str) and value.startswith('{"output"'):
        value = decoded_arguments(value) or value
    if isinstance(value, dict):
        inner = value.get("output", value.get("content"))
        text = _lines_of(inner) if isinstance(inner, list) else inner
        text = text if isinstance(text, str) else compact_json(value)
        code = mapping(value.get("metadata")).get("exit_code")
        if isinstance(code, int):
            return Output(text, code != 0, code)
        success = value.get("success", success)
    elif isinstance(value, list):
        text = _lines_of(value)
    elif isinstance(value, str):
        text = value
    else:
        return Output("" if value is None else compact_json(value))
    match = _EXIT_CODE.search(text, 0, _HEAD)
    exit_code = int(match[1]) if match else _exit_code_in_script(text)
    failed = success is False or bool(exit_code)
    if exit_code is None and _FAILURE.match(text[:_FAILURE_HEAD].lstrip()):
        failed = True
    return Output(text, failed, exit_code)


def _exit_code_in_script(text: str) -> int | None:
    """Return the first failure that a script reports of its commands as JSON, else their 0."""
    if not text.startswith("Script "):
        return None
    codes = [int(code) for code in _SCRIPTED_CODE.findall(text)]
    return next(filter(None, codes), 0) if codes else None


def _lines_of(blocks: list[Any]) -> str:
    """Return the texts of blocks, each on a line of its own."""
    text = ""
    for block in filter(None, map(_block_text, blocks)):
        text += block if not text or text.endswith("\n") else f"\n{block}"
    return text


def _block_text(block: Any) -> str:
    if not isinstance(block, dict):
        return str(block)
    text = block.get("text")
    if isinstance(text, str):
        return text
    kind = string(block.get("type")) or "block"
    return f"[{kind}]" if kind in _PICTURES or len(block) == 1 else compact_json(block)


class TokenMeter:
    """Turns the stream of token counts, which are cumulative, into what each API call cost.

    A count repeats whenever the limits are shown again; only a changed total is a new call. The
    total begins anew when a session is resumed by some versions. Input includes cached tokens.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._total: list[int] | None = None

    def read(self, payload: JsonRecord) -> Usage | None:
        """Return the cost of the API call that ``payload`` counts; None when it is no new one."""
        info = payload.get("info")
        if info is None and "input_tokens" in payload:
            info = {"total_token_usage": payload}
        total = _counts(mapping(info).get("total_token_usage"))
        last = _counts(mapping(info).get("last_token_usage"))
        before, self._total = self._total, total or self._total
        if total is not None and total == before:
            return None
        if total is not None and last is None:
            last = total
            if before is not None and all(map(int.__ge__, total, before)):
                last = [now - then for now, then in zip(total, before, strict=True)]
        if last is None or not any(last):
            return None
        self.calls += 1
        given, cached, output = last
        return Usage(max(0, given - cached), output, 0, cached)


def _counts(usage: Any) -> list[int] | None:
    if not isinstance(usage, dict):
        return None
    values = (usage.get(field) for field in _TOKEN_FIELDS)
    return [value if isinstance(value, int) and value > 0 else 0 for value in values]


def is_human(text: str) -> bool:
    """Return whether a user message among the response items may be a person's."""
    text = text.lstrip()
    return bool(text) and not _MACHINE.match(text)


def is_notice(text: str) -> bool:
    """Return whether a user message brings the model another agent's result."""
    return text.lstrip().startswith(_NOTICE)


def own_words(text: str) -> str:
    """Return the prompt without what an editor added about the files that were open.

    What the person selected or dropped in stays: the words that follow speak of it.
    """
    if not text.lstrip().startswith(_CONTEXT):
        return text
    match = _CHOSEN.search(text) or _REQUEST.search(text)
    return text[match.end() :].strip() if match else text


def changes_of(changes: Any) -> list[FileEdit]:
    """Return the edits of a ``patch_apply_end`` event, one a file."""
    edits: list[FileEdit] = []
    for path, change in mapping(changes).items():
        if type(change) is not dict:
            continue
        kind, content = change.get("type"), string(change.get("content"))
        if kind == "add":
            edits.append(created(path, content))
        elif kind == "delete":
            edits.append(deleted(path, content))
        else:
            target = string(change.get("move_path")) or path
            edits.append(from_unified(target, string(change.get("unified_diff"))))
    return edits


class CopiedHistory:
    """Separates the copied records at a fork's beginning from its own.

    A fork's first ``session_meta`` is its own, and a second one, of the session that it was
    forked from, opens the copy. The copy's turns carry the ids that they had, which hold their
    time; where they do not, the copy ends with the burst in which it was written.
    """

    def __init__(self) -> None:
        self._id: str | None = None
        self._started: datetime | None = None
        self._inside = False

    def holds(self, record: JsonRecord) -> bool:
        """Return whether ``record`` is a copy; call it for every record, in order."""
        payload, at = record.get("payload"), moment(record.get("timestamp"))
        if record.get("type") == "session_meta" and type(payload) is dict:
            identity = string(payload.get("id"))
            if self._id is None:
                self._id = identity
                self._started = at or moment(payload.get("timestamp"))
            self._inside = self._inside or identity != self._id
        elif self._inside and self._started is not None:
            begun = _time_in(string(mapping(payload).get("turn_id")))
            if begun is not None:
                self._inside = begun < self._started
            elif at is not None:
                self._inside = at <= self._started + _COPIED_WITHIN
        return self._inside


def _time_in(identity: str) -> datetime | None:
    """Return the time in a UUID of version 7; None for any other id."""
    digits = identity.replace("-", "")
    if len(digits) != 32 or digits[12] != "7":
        return None
    try:
        return moment(int(digits[:12], 16))
    except ValueError:
        return None


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
    agent = mapping(mapping(meta.get("source")).get("subagent"))
    return string(mapping(agent.get("thread_spawn")).get("parent_thread_id"))


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


def served_text(answer: Any) -> str:
    """Return what a server's tool answered, as text."""
    if type(answer) is dict and type(answer.get("content")) is list:
        return read_output(answer["content"]).text
    return answer if type(answer) is str else compact_json(answer)


def id_in_name(path: str) -> str:
    """Return the session's id that a rollout's name ends with, else the name."""
    stem = Path(path).stem
    ids: list[str] = _ID_IN_NAME.findall(stem)
    return ids[-1] if ids else stem


def meta_of(record: JsonRecord) -> JsonRecord:
    """Return what a record says of the session; an empty object where it is about no session."""
    if record.get("type") == "session_meta":
        return mapping(record.get("payload"))
    bare = record.get("type") is None and "id" in record and "timestamp" in record
    return record if bare else {}


def has_results(message: MessageDraft) -> bool:
    """Return whether calls of a message were answered: what comes next was said knowing that."""
    ends = (message.calls[0], message.calls[-1]) if message.calls else ()
    return any(call.status != "unanswered" for call in ends)
