"""Gemini CLI: ``~/.gemini/tmp/<project>/chats/session-*.json``, newer ones ``.jsonl``.

A chat does not always name its folder; a ``.project_root`` file beside the chats does, or the
projects file in ``~/.gemini``, which lists folders.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, TranscriptReader
from debrief.sessions.readers.documents import JsonLines, JsonRecord, compact_json
from debrief.sessions.readers.files import head_of
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments, from_unified
from debrief.sessions.readers.timeline import CallDraft
from debrief.sessions.readers.values import (
    Repeats,
    first_string,
    mapping,
    mappings,
    moment,
    number_in,
    string,
    whole_numbers,
)

_ID = re.compile(rb'(?<!\\)"sessionId"\s*:\s*"([^"\\]+)"')
_STARTED = re.compile(rb'(?<!\\)"startTime"\s*:\s*"([^"\\]+)"')
_TIME = re.compile(rb'(?<!\\)"timestamp"\s*:\s*"([^"\\]+)"')
_SUBAGENT = re.compile(rb'(?<!\\)"kind"\s*:\s*"subagent"')
_MESSAGE = re.compile(rb'(?<!\\)"id"\s*:\s*"([^"\\]+)"')
_FIRST = 4096
_SHELL = "run_shell_command"
_EDITING = frozenset({"write_file", "replace", "edit"})
EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)", re.MULTILINE)
_REFERENCED = re.compile(r"\s*--- Content from referenced files ---")
_NUDGES = ("System: Please continue.", "You have stopped calling tools without finishing.")
"""What the program says in the person's name when an answer broke off."""
_RAN = re.compile(
    r"I ran the following shell command:\n```sh\n.*\n```\n\n"
    r"This produced the following result:\n```\n.*\n```",
    re.DOTALL,
)
"""What the program says in the person's name of a command that they ran in its shell mode."""
_CONTEXT, _CONTEXT_ENDS = "<session_context>", "</session_context>"
_LOADED = re.compile(r"\s*<loaded_context>.*</loaded_context>\s*", re.DOTALL)
_PROMPT_FILE = re.compile(
    r"^--- Context from: ([^\n]+) ---\n(.*?)\n--- End of Context from: \1 ---$",
    re.DOTALL | re.MULTILINE,
)
_CANCELLED = re.compile(r"request cancelled|cancelled by user|user cancelled", re.IGNORECASE)


class GeminiReader(TranscriptReader):
    """Gemini CLI's chats: one JSON document each, or in newer versions JSON lines."""

    source = "gemini"
    tool = "gemini-cli"
    tools = ToolNames(
        run="run_shell_command",
        read="read_file read_many_files",
        search="search_file_content grep_search glob list_directory",
        edit="write_file replace edit",
        plan="write_todos enter_plan_mode exit_plan_mode",
        delegate="delegate_to_agent codebase_investigator",
        ask="ask_user",
        web="google_web_search web_fetch",
    )
    home_folders = (".gemini/tmp",)
    suffixes = (".json", ".jsonl")
    start = re.compile(
        rb'\A\s*\{\s*"(?:sessionId|projectHash|lastUpdated|messages|startTime|kind)"'
    )
    marks = (_ID, re.compile(rb'(?<!\\)"projectHash"\s*:\s*"'))
    message_mark = re.compile(rb'(?<!\\)"type"\s*:\s*"(?:user|gemini)"')
    asking = ("prompt", "objective")

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the beginning says; a session without an id is named after its file."""
        return Peek(
            session_id=head.text(_ID) or Path(path).stem,
            started=head.first_time(_STARTED, _TIME),
            parent=_parent(path) if _SUBAGENT.search(head[:_FIRST]) else "",
            root=head.text(_MESSAGE),
        )

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one chat."""
        draft = TranscriptDraft(path)
        header: JsonRecord = {}
        messages: list[Any] = []
        rewound: set[int] = set()
        first_lines = b"\n".join(head_of(path).split(b"\n", 2)[:2])
        # One document may be in a ``.jsonl`` file too.
        if Head(first_lines).records():
            draft.read_lines(lambda lines, _: _take_lines(lines, header, messages, rewound))
        else:
            header = draft.load(path)
            listed = header.get("messages")
            messages = listed if type(listed) is list else []
        draft.id = string(header.get("sessionId")) or Path(path).stem
        draft.title = string(header.get("summary"))
        draft.cwd = _directory(header, path)
        draft.is_subagent = header.get("kind") == "subagent"
        draft.parent = _parent(path) if draft.is_subagent else ""
        draft.see(moment(header.get("startTime")))
        for context in mappings(header.get("messages")):
            files = _PROMPT_FILE.findall(text_of_content(context.get("content")))
            draft.add_instructions(files, "message")
        _convert(messages, rewound, draft)
        return draft


READER = GeminiReader()


def _take_lines(
    lines: JsonLines, header: JsonRecord, messages: list[Any], rewound: set[int]
) -> None:
    """Read the layout in which messages are appended, written again, and taken back.

    Args:
        lines: of the file.
        header: filled with what is said of the chat.
        messages: filled with its messages.
        rewound: filled with the indexes of messages that the person went back to before.
    """
    indexes: dict[str, int] = {}
    place = 0
    for record in lines:
        change = record.get("$set")
        if type(change) is dict:
            header.update(change)
            place = len(messages) if "messages" in change else place
        elif "$rewindTo" in record:
            index = indexes.get(string(record["$rewindTo"]))
            if index is not None:
                rewound.update(range(index, len(messages)))
        elif "sessionId" in record and "type" not in record:
            listed = record.get("messages")
            messages += listed if type(listed) is list else []
            started = header.get("startTime", record.get("startTime"))
            header.update({**record, "startTime": started})  # a resumption writes it again
        else:
            index = indexes.get(string(record.get("id")))
            if index is not None and index not in rewound and _is_same(messages[index], record):
                messages[index] = record
                continue
            indexes[string(record.get("id"))] = len(messages)
            messages.append(record)
    _add_checkpoint(mappings(header.get("messages")), place, messages, rewound)


def _add_checkpoint(
    checkpoint: list[JsonRecord], place: int, messages: list[Any], rewound: set[int]
) -> None:
    """Add the messages that a chat's last checkpoint has and no line: before the one that follows
    them there, else where the checkpoint stands."""
    ids = {string(mapping(each).get("id")): index for index, each in enumerate(messages)}
    added: dict[int, list[JsonRecord]] = {}
    for message in reversed(checkpoint):
        index = ids.get(string(message.get("id")))
        if index is not None:
            place = index
        elif message not in messages:
            added.setdefault(place, []).insert(0, message)
    if not added:
        return
    taken_back = {id(messages[index]) for index in rewound}
    messages[:] = [
        each
        for index in range(len(messages) + 1)
        for each in (*added.get(index, ()), *messages[index : index + 1])
    ]
    rewound.clear()
    rewound.update(index for index, each in enumerate(messages) if id(each) in taken_back)


def _is_same(message: JsonRecord, record: JsonRecord) -> bool:
    """Return whether two with one id, to which another tool may have masked all, are one."""
    return all(message.get(name) == record.get(name) for name in ("type", "timestamp"))


def _directory(header: JsonRecord, path: str) -> str:
    directories = header.get("directories")
    if type(directories) is list and directories:
        return string(directories[0])
    project = next(folder.parent for folder in Path(path).parents if folder.parent.name != "chats")
    root, listed = project / ".project_root", project.parent.parent / "projects.json"
    with suppress(OSError, ValueError):
        if root.is_file():
            return root.read_text(errors="replace").strip()
        if listed.is_file():
            folders = mapping(mapping(orjson.loads(listed.read_bytes())).get("projects"))
            for folder, name in folders.items():  # earlier versions name it by a digest
                if project.name in (name, hashlib.sha256(folder.encode()).hexdigest()):
                    return folder
    return ""


def _parent(path: str) -> str:
    """Return the session that a subagent's chat is filed under; empty when there is none."""
    folder = Path(path).parent.name
    return "" if folder == "chats" else folder


def _convert(messages: list[Any], rewound: set[int], draft: TranscriptDraft) -> None:
    timeline = draft.timeline
    earlier = Repeats()
    for index, message in draft.objects_in(messages):
        identity = string(message.get("id"))
        if earlier.hold(identity, message):
            draft.report(0, f"message {index + 1} repeats an earlier one and was counted once")
            continue
        at = moment(message.get("timestamp"))
        draft.see(at)
        kind = message.get("type")
        if kind == "user":
            _ask(message, at, index in rewound, draft)
        elif kind == "gemini":
            _answer(message, identity or f"message-{index + 1}", at, draft)
        elif kind == "info" and _CANCELLED.search(text_of_content(message.get("content"))):
            timeline.interrupt(at)
        elif kind == "compression":
            timeline.compact()


def _take_context(message: JsonRecord, draft: TranscriptDraft) -> bool:
    """Take what the program says of the machine and the folder as a chat begins, without the
    prompt files in it; return whether a message is that."""
    text = text_of_content(message.get("content")).strip()
    is_context = text.startswith(_CONTEXT) and text.endswith(_CONTEXT_ENDS)
    if is_context:
        text = _PROMPT_FILE.sub("", _LOADED.sub("\n", text))
        at = moment(message.get("timestamp"))
        draft.timeline.add_context("program", text, at, is_ahead=True)
    return is_context


def _ask(message: JsonRecord, at: datetime | None, rewound: bool, draft: TranscriptDraft) -> None:
    if _take_context(message, draft):
        return
    prompt, images = asked(message.get("content"))
    if _RAN.fullmatch(prompt):
        if not rewound:
            draft.timeline.add_context("command", prompt, at)
    elif (prompt or images) and not prompt.strip().startswith(_NUDGES):
        draft.timeline.prompt(prompt, at, images).rewound = rewound


def asked(content: Any) -> tuple[str, int]:
    """Return the words of a person's content, files that it refers to left out, and its images."""
    words: list[str] = []
    images = 0
    for part in content if type(content) is list else [content]:
        text = text_of_content(part)
        if _REFERENCED.match(text):
            break
        if _LOADED.fullmatch(text):
            continue
        if text.strip():
            words.append(text)
        data = mapping(mapping(part).get("inlineData"))
        images += string(data.get("mimeType")).startswith("image/")
    return "\n".join(words), images


def _answer(
    message: JsonRecord, identity: str, at: datetime | None, draft: TranscriptDraft
) -> None:
    timeline = draft.timeline
    answer = timeline.begin_message(identity, message.get("model"), at)
    answer.texts.append(text_of_content(message.get("content")))
    for thought in mappings(message.get("thoughts")):
        about = string(thought.get("subject")), first_string(thought, "description", "summary")
        answer.thoughts.append("\n".join(filter(None, about)))
    for record in mappings(message.get("toolCalls")):
        given = record.get("args")
        call = timeline.call(answer, record.get("id"), record.get("name"), given, at)
        _result(call, record, draft)
    names = ("input", "tool", "output", "thoughts", "cached")
    prompt, tool, output, thoughts, cached = whole_numbers(message.get("tokens"), *names)
    timeline.spend(Usage(max(0, prompt + tool - cached), output + thoughts, 0, cached))


def _result(call: CallDraft, record: JsonRecord, draft: TranscriptDraft) -> None:
    status = record.get("status")
    at = moment(record.get("timestamp"))
    text = result_text(record.get("result"))
    if status == "cancelled":
        draft.timeline.reject(call, text, at)
    elif status in ("success", "completed", "error"):
        exit_code = None
        if call.name == _SHELL:
            # Newer versions leave the exit code out when it is 0.
            is_ok = text.startswith("Output:") and status != "error"
            exit_code = number_in(text, EXIT_CODE, 0 if is_ok else None)
        failed = status == "error"
        edit = edit_of(call.name, mapping(record.get("args")), record.get("resultDisplay"))
        draft.timeline.result(call, text, failed=failed, at=at, exit_code=exit_code, edit=edit)


def edit_of(name: str, given: JsonRecord, shown: Any) -> FileEdit | None:
    """Return what a call did to a file: as it was shown, else as its arguments ask."""
    display = mapping(shown)
    if type(display.get("fileDiff")) is str:
        path = first_string(given, "file_path", "absolute_path")
        target = string(display.get("filePath")) or path or string(display.get("fileName"))
        return from_unified(target, display["fileDiff"])
    return edit_of_arguments(given) if name in _EDITING else None


def text_of_content(content: Any) -> str:
    """Return the text of a content or a part, one part a line."""
    if type(content) is dict:
        return string(content.get("text"))
    if type(content) is list:
        parts = (text_of_content(part) for part in content if type(part) is not list)
        return "\n".join(filter(None, parts))
    return string(content)


def result_text(result: Any) -> str:
    """Return what the responses of a function came to, as text."""
    if type(result) is str:
        return result
    texts: list[str] = []
    for part in mappings(result if type(result) is list else [result]):
        response = mapping(part.get("functionResponse")).get("response")
        if type(response) is dict:
            output = response.get("output", response.get("error", response))
            texts.append(output if type(output) is str else compact_json(output))
        elif text_of_content(part):
            texts.append(text_of_content(part))
    return "\n".join(texts)
