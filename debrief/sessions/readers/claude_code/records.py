"""What single records of Claude Code say: prompts, commands, interruptions, edits.

Only what is read is decoded. Any field may hold anything, as versions differ: a value of the wrong
kind never costs the record. Fields are in the tool's own order, which decodes fastest.
"""

# ruff: noqa: N815 - fields have the transcript's own names

from __future__ import annotations

import json
import re
from typing import Any, Literal

import msgspec
import orjson
from msgspec import Raw, Struct

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.files import compact_json, mend
from debrief.sessions.readers.patches import FileEdit, Hunk, created, from_hunks, joined, replaced
from debrief.sessions.readers.timeline import MessageDraft, TurnDraft
from debrief.sessions.readers.values import (
    inside,
    mapping,
    mappings,
    string,
    whole_number,
    without_leading,
)

_Scalar = str | int | float | bool | None


class Block(Struct, gc=False):
    """A part of a message's content: text, a call, a result, an image."""

    type: Any = None
    id: Any = None
    name: Any = None
    input: Raw = Raw()
    text: Any = None
    thinking: Any = None
    tool_use_id: Any = None
    content: Any = None
    is_error: Any = None


class Tokens(Struct, gc=False):
    """``usage`` of an assistant's message."""

    input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    output_tokens: Any = None


class ClaudeMessage(Struct, gc=False):
    """``message`` of user and assistant records."""

    model: Any = None
    id: Any = None
    content: list[Block | _Scalar | list[Any]] | _Scalar | dict[str, Any] = None
    usage: Tokens | _Scalar | list[Any] = None


class ToolOutcome(Struct, gc=False):
    """``toolUseResult``: what a tool did, beside the text that the model was shown."""

    type: Any = None
    filePath: Any = None
    content: Any = None
    structuredPatch: Any = None
    interrupted: Any = None
    agentId: Any = None
    answers: Any = None
    exitCode: Any = None
    backgroundTaskId: Any = None
    returnCodeInterpretation: Any = None


class Attachment(Struct, gc=False):
    """``attachment``; what was typed while the model worked is one."""

    type: Any = None
    prompt: list[Block | _Scalar | list[Any]] | _Scalar | dict[str, Any] = None
    commandMode: Any = None
    origin: Any = None
    isMeta: Any = None
    files: Any = None
    systemPrompt: Raw = Raw()
    tools: Raw = Raw()
    cliPrefix: Any = None


class Report(Struct, gc=False):
    """``data`` of progress records; of a subagent's, its message as a record of its own."""

    message: ClaudeRecord | _Scalar | list[Any] = None
    type: Any = None
    prompt: Any = None
    agentId: Any = None


class ClaudeRecord(Struct, gc=False):
    """One line of a transcript."""

    parentUuid: Any = None
    isSidechain: Any = None
    agentId: Any = None
    cwd: Any = None
    sessionId: Any = None
    version: Any = None
    gitBranch: Any = None
    message: ClaudeMessage | _Scalar | list[Any] = None
    requestId: Any = None
    type: Any = None
    subtype: Any = None
    data: Report | _Scalar | list[Any] = None
    parentToolUseID: Any = None
    isMeta: Any = None
    uuid: Any = None
    timestamp: Any = None
    toolUseResult: ToolOutcome | _Scalar | list[Any] = None
    isCompactSummary: Any = None
    isVisibleInTranscriptOnly: Any = None
    attachment: Attachment | _Scalar | list[Any] = None
    summary: Any = None
    leafUuid: Any = None
    aiTitle: Any = None
    customTitle: Any = None
    origin: Any = None
    promptSource: Any = None
    sourceToolUseID: Any = None
    toolDenialKind: Any = None
    userFeedback: Any = None
    interruptedMessageId: Any = None
    logicalParentUuid: Any = None
    shapeHash: Any = None
    shape: Raw = Raw()
    querySource: Any = None
    modelUsage: Raw = Raw()
    startTime: Any = None


def usage_of(tokens: Any) -> Usage:
    """Return what a message used, as far as its record says."""
    if type(tokens) is not Tokens:
        return Usage()
    return Usage(
        whole_number(tokens.input_tokens),
        whole_number(tokens.output_tokens),
        whole_number(tokens.cache_creation_input_tokens),
        whole_number(tokens.cache_read_input_tokens),
    )


class CountedUsage(Struct):
    """The largest usage that was reported for one message of the API."""

    thread: TranscriptDraft
    draft: MessageDraft
    usage: Usage
    total: int


class Asked(Struct):
    """A prompt's turn, and where in the chain of records it is."""

    turn: TurnDraft
    uuid: str | None
    parent: str | None


Said = Literal["prompt", "slash_command", "interruption", "notice", "machine"]
"""``notice``: what others did meanwhile, on which the model goes on."""

INTERRUPTED = "[Request interrupted by user"
INTERRUPTED_CALL = "[Request interrupted by user for tool use]"
REFUSED = ("The user doesn't want to ", INTERRUPTED)

_PERSONS = frozenset({"typed", "queued", "suggestion_accepted"})
"""Where a prompt comes from that nobody but the person sent, of all that ``promptSource`` says."""
_COMMANDS = ("<command-name>", "<command-message>")
_MACHINE = re.compile(
    r"<local-command-|<(?:bash-(?:input|stdout|stderr)|system-reminder|user-prompt-submit-hook"
    r"|session-start-hook)>|This session is being continued from a previous conversation|Caveat: "
    r"The messages below were generated by the user while running local commands"
)
_ASIDES = ("ide_opened_file", "system-reminder")
_PLAN = "Implement the following plan:"
_REST = "If you need specific details from before exiting plan mode ("
_BEFORE_THE_PLAN = re.compile(r"[^()]*\), read the full transcript at: [^\n]*\Z")
_NOTICES = ("<task-notification>", "<teammate-message")
_SAID = re.compile(
    r"(?:the user said:|reason for the rejection:)\s*(.*?)"
    r"(?:\n\nNote: The user's next message may contain|\Z)",
    re.DOTALL,
)
_CONTINUED = "This session is being continued from a previous conversation"
_FAILED = re.compile(
    r"<tool_use_error>|Exit code [1-9]|Error:|EISDIR|Request failed with status code"
    r"|Claude requested permissions? |This command requires approval"
)
_EXIT = re.compile(r"Exit code (\d{1,9})\b")


def words_in(content: Any) -> list[str]:
    """Return the texts of a message's content, block by block."""
    if type(content) is str:
        return [content]
    if type(content) is not list:
        return []
    texts = [
        block.text if type(block) is Block and block.type == "text" else block for block in content
    ]
    return [text for text in texts if type(text) is str]


def said_in(content: Any) -> str:
    """Return the text of a user record, without white space around it.

    What the program adds to a person's words is left out: reminders, the file that
    happens to be open in an editor, and behind a plan that was approved, where its transcript is.
    What the person selected stays: words such as "this" speak of it. A record of nothing else
    stays as it is.
    """
    texts = words_in(content)
    said = "\n".join(texts).strip()
    if said.startswith(_PLAN):
        return _without_the_rest(said)
    if not said.startswith("<"):
        return said
    own = "\n".join(without_leading(text, _ASIDES) for text in texts).strip()
    return own or said


def _without_the_rest(plan: str) -> str:
    place = plan.rfind(_REST)
    if place < 0 or not _BEFORE_THE_PLAN.match(plan, place + len(_REST)):
        return plan
    return plan[:place].rstrip()


def pictures_in(content: Any) -> int:
    """Return how many images a message's content holds."""
    if type(content) is not list:
        return 0
    return sum(type(block) is Block and block.type == "image" for block in content)


def arguments_of(given: msgspec.Raw) -> str:
    """Return a call's arguments as compact JSON text of an object, straight from the transcript;
    an empty text where it does not tell them."""
    data = bytes(given)
    if not data:
        return ""
    if data[:1] == b"{" and b"\\ud" not in data:
        try:
            return msgspec.json.format(data, indent=-1).decode()
        except UnicodeDecodeError:
            pass
    value = mend(json.loads(data.decode(errors="replace"), strict=False))
    if type(value) is not dict:
        value = {} if value is None else {"input": value}
    return compact_json(value)


def said_by(record: ClaudeRecord | Attachment, text: str) -> Said:
    """Return what a text is, as its record says; where that says nothing, as the words look."""
    kind = mapping(record.origin).get("kind")
    source = record.promptSource if type(record) is ClaudeRecord else None
    if source in _PERSONS:
        return "prompt"
    if source == "system" or (type(kind) is str and kind != "human"):
        return "notice"
    guess = kind_of(text)
    return "prompt" if kind == "human" and guess in ("notice", "machine") else guess


def kind_of(text: str) -> Said:
    """Return what a user record's text, without white space around it, looks like."""
    if text[:1] not in "<[CT":
        return "prompt"
    if text.startswith(INTERRUPTED):
        return "interruption"
    if text.startswith(_COMMANDS):
        return "slash_command"
    if text.startswith(_NOTICES):
        return "notice"
    return "machine" if _MACHINE.match(text) else "prompt"


def command_in(text: str) -> str:
    """Return a slash command as it was typed: ``/name arguments``."""
    parts = (inside(text, name) or "" for name in ("command-name", "command-args"))
    return " ".join(map(str.strip, parts)).strip() or text


def is_summary(text: str) -> bool:
    """Return whether a text is what the model is given after a compaction."""
    return text.startswith(_CONTINUED)


def is_failure(text: str) -> bool:
    """Return whether a result looks like that of a call that failed, where no mark tells.

    Of what fails by its mark, newer versions' words tell nearly all; other tools' words may not.
    """
    return text.startswith(REFUSED) or _FAILED.match(text) is not None


def is_refused(record: ClaudeRecord, failed: bool, text: str) -> bool:
    """Return whether the person refused the call that a result is of."""
    if failed and type(record.toolDenialKind) is str:
        return bool(record.toolDenialKind == "user-rejected")
    return text.startswith(REFUSED)


def words_of_refusal(text: str) -> str:
    """Return what the person said when they rejected a call; empty when they said nothing."""
    match = _SAID.search(text)
    return match[1].strip() if match else ""


def answers_in(outcome: Any, text: str) -> str:
    """Return a person's answers to the model's questions, one ``question: answer`` a line.

    Args:
        outcome: the record's ``toolUseResult``.
        text: the tool result's, taken where the object holds no answers.
    """
    answers = outcome.answers if type(outcome) is ToolOutcome else None
    if type(answers) is dict and answers:
        return "\n".join(f"{question}: {string(answer)}" for question, answer in answers.items())
    return text


def exit_code_of(name: str, text: str, outcome: Any, failed: bool) -> int | None:
    """Return a shell command's exit status where the transcript tells it."""
    if name == "Bash":
        if failed:
            match = _EXIT.match(text)
            return int(match[1]) if match else None
        if type(outcome) is ToolOutcome and (
            outcome.interrupted or outcome.backgroundTaskId or outcome.returnCodeInterpretation
        ):
            return None
        return 0
    if name == "BashOutput" and type(outcome) is ToolOutcome:
        return outcome.exitCode if type(outcome.exitCode) is int else None
    return None


EDITING_TOOLS = frozenset({"Edit", "MultiEdit", "Write"})


def edit_of(name: str, arguments: str, outcome: Any, written: dict[str, str]) -> FileEdit | None:
    """Return what a successful call did to a file; None when it edited none.

    Args:
        name: the tool's.
        arguments: of the call, as JSON text.
        outcome: the record's ``toolUseResult``: an object, a string, or None.
        written: what earlier calls without a result object wrote, by path; kept up to date, so
            that a file written over is compared with what it held.
    """
    if type(outcome) is ToolOutcome and type(outcome.structuredPatch) is list:
        path = string(outcome.filePath)
        if outcome.structuredPatch:
            return _of_hunks(path, outcome.structuredPatch)
        return created(path, string(outcome.content)) if outcome.type == "create" else None
    return _of_input(name, orjson.loads(arguments), written) if name in EDITING_TOOLS else None


def _of_hunks(path: str, hunks: list[Any]) -> FileEdit:
    listed: list[Hunk] = []
    for hunk in mappings(hunks):
        lines = hunk.get("lines")
        if type(lines) is list:
            old = f"{hunk.get('oldStart', 1)},{hunk.get('oldLines', 0)}"
            new = f"{hunk.get('newStart', 1)},{hunk.get('newLines', 0)}"
            listed.append((f"@@ -{old} +{new} @@", [line for line in lines if type(line) is str]))
    return from_hunks(path, listed)


def _of_input(name: str, given: dict[str, Any], written: dict[str, str]) -> FileEdit | None:
    path = string(given.get("file_path"))
    if name == "Write":
        content, before = string(given.get("content")), written.get(path, "")
        written[path] = content
        return replaced(path, before, content, estimated=True)
    parts = mappings(given.get("edits")) if name == "MultiEdit" else [given]
    return joined(_replacement(path, part, written) for part in parts)


def _replacement(path: str, part: dict[str, Any], written: dict[str, str]) -> FileEdit:
    old, new = string(part.get("old_string")), string(part.get("new_string"))
    if old and path in written:
        times = -1 if part.get("replace_all") is True else 1
        written[path] = written[path].replace(old, new, times)
    return replaced(path, old, new, estimated=True)
