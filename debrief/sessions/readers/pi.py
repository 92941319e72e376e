"""Pi: ``~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl``, a tree of entries each.

The way from the last entry to the root is the conversation, whatever else stands between them;
the first version of the format has no tree. A fork begins with a copy of its original's entries.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

from debrief.sessions.readers.assembly import Branches, TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, Transcript, TranscriptReader
from debrief.sessions.readers.documents import JsonLines, JsonRecord
from debrief.sessions.readers.forks import Branch
from debrief.sessions.readers.patches import FileEdit, Hunk, edit_of_arguments, from_hunks
from debrief.sessions.readers.timeline import NO_USAGE, MessageDraft
from debrief.sessions.readers.values import (
    TokenNames,
    declared_tools,
    first_string,
    mapping,
    mappings,
    moment,
    number_in,
    string,
    text_of,
    words_of,
)

_BILLED = TokenNames("input", "output", "cacheWrite", "cacheRead")
_EXIT_CODE = re.compile(r"Command exited with code (-?\d+)\s*\Z")
_PROMPT_FILE = re.compile(
    r'<project_instructions path="([^"\n]*)">\n(.*?)\n</project_instructions>', re.DOTALL
)
_SKILL = re.compile(r'\A<skill name="([^"\n]+)" location="[^"\n]*">\n.*?\n</skill>', re.DOTALL)


class PiReader(TranscriptReader):
    """Pi's sessions, one file each; subagents are within the results of the calls that ran them."""

    source = "pi"
    tool = "pi"
    tools = ToolNames(
        run="bash",
        read="read",
        search="grep find ls",
        edit="edit write",
        delegate="subagent",
    )
    home_folders = (".pi/agent/sessions",)
    moved_by = ("PI_CODING_AGENT_DIR", ".pi/agent")
    start = re.compile(
        rb'\A\s*\{\s*"type"\s*:\s*"session"\s*,(?=[^\n]*?"timestamp"\s*:)[^\n]*?"cwd"\s*:'
    )

    def describe(self, head: Head, path: str) -> Peek | None:
        """Return what the beginning says; a session without an id is named after its file."""
        records = head.records()
        message = next((record for record in records if record.get("type") == "message"), None)
        if message is None and head.is_whole:
            return None
        first = f"{message.get('id')} {message.get('timestamp')}" if message else ""
        return Peek(
            session_id=string(records[0].get("id") if records else "") or Path(path).stem,
            started=next(filter(None, map(_time, records[1:])), None) or head.first_time(),
            root=str(uuid5(NAMESPACE_OID, first)) if first else "",
        )

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one session."""
        draft = TranscriptDraft(path)
        draft.read_lines(_convert)
        draft.id = draft.id or Path(path).stem
        return draft

    def branch(self, transcript: Transcript) -> Branch:
        """Return the way that a session tells; what a fork copied is older than its header."""
        created, *others = [*map(_time, Head.of(transcript.path).records())] or [None]
        first = next(filter(None, others), None)
        is_copy = created is not None and first is not None and first < created
        return Branch(super().branch(transcript).turns, is_copy)


READER = PiReader()


def _time(record: JsonRecord) -> datetime | None:
    return moment(record.get("timestamp"))


def _convert(lines: JsonLines, draft: TranscriptDraft) -> None:
    timeline, created = draft.timeline, None
    broken_off: MessageDraft | None = None
    branches = Branches(timeline)
    for record in lines:
        kind = record.get("type")
        at = _time(record)
        if kind == "session":
            draft.take(record, id="id", cwd="cwd")
            created = created or at  # of a fork, later than what it copies
            continue
        draft.see(at)
        identity = string(record.get("id"))
        if kind == "message":
            message = record.get("message")
            if type(message) is dict:
                if broken_off is not None and message.get("role") == "assistant":
                    timeline.turns[-1].messages.remove(broken_off)  # asked again without it
                before = timeline.message
                _message(message, identity or f"line-{lines.line}", at, draft)
                # One that failed before its first word is no message; the one before it stays.
                is_new = timeline.message is not before
                has_failed = message.get("stopReason") == "error"
                broken_off = timeline.message if has_failed and is_new else None
            else:
                lines.report("a message record without a message")
        elif kind == "compaction":
            timeline.compact(string(record.get("summary")))
        elif kind == "custom_message":
            timeline.add_context("hook", words_of(record.get("content")), at)
        elif kind == "branch_summary":
            timeline.add_context("program", string(record.get("summary")), at)
        elif kind == "session_info":
            draft.title = string(record.get("name"))
        branches.add(identity, string(record.get("parentId")))
    branches.settle()
    if draft.started is None:
        draft.see(created)


def _message(
    message: JsonRecord, identity: str, at: datetime | None, draft: TranscriptDraft
) -> None:
    role, content, timeline = message.get("role"), message.get("content"), draft.timeline
    if role == "user":
        text = text_of(content)
        images = sum(block.get("type") == "image" for block in mappings(content))
        skill = _SKILL.match(text)
        if skill:
            asked = f"/skill:{skill[1]} {text[skill.end() :].strip()}".rstrip()
            timeline.prompt(asked, at, images, expansion=text)
        else:
            timeline.prompt(words_of(content), at, images)
    elif role == "assistant":
        _answer(message, identity, at, draft)
    elif role == "toolResult":
        _result(message, at, draft)
    elif role in ("custom", "hookMessage"):
        timeline.add_context("hook", text_of(content), at)
    elif role == "bashExecution" and message.get("excludeFromContext") is not True:
        timeline.add_context("command", _command_text(message), at)
    elif role == "system" and not draft.system_prompt:
        _instruct(message, draft)


def _command_text(message: JsonRecord) -> str:
    """Return what the model is given of a command that the person ran."""
    output, code = string(message.get("output")), message.get("exitCode")
    parts = [
        f"Ran `{string(message.get('command'))}`\n"
        + (f"```\n{output}\n```" if output else "(no output)")
    ]
    if message.get("cancelled") is True:
        parts.append("(command cancelled)")
    elif type(code) is int and code != 0:
        parts.append(f"Command exited with code {code}")
    whole = string(message.get("fullOutputPath"))
    if message.get("truncated") is True and whole:
        parts.append(f"[Output truncated. Full output: {whole}]")
    return "\n\n".join(parts)


def _instruct(message: JsonRecord, draft: TranscriptDraft) -> None:
    """Take the system prompt, which newer versions record in sections, and the tools."""
    sections = map(string, mapping(message.get("sections")).values())
    draft.system_prompt = "\n\n".join(filter(None, sections)) or text_of(message.get("content"))
    draft.declared += declared_tools(message.get("toolsAdded"))
    draft.add_instructions(_PROMPT_FILE.findall(draft.system_prompt), "system")


def _answer(
    message: JsonRecord, identity: str, at: datetime | None, draft: TranscriptDraft
) -> None:
    timeline, blocks = draft.timeline, mappings(message.get("content"))
    usage = _BILLED.usage(message.get("usage"))
    if blocks or usage != NO_USAGE:
        answer = timeline.begin_message(identity, message.get("model"), at)
        draft.add_blocks(answer, blocks, at)
        timeline.spend(usage)
    if message.get("stopReason") == "aborted":
        timeline.interrupt(at)


def _result(message: JsonRecord, at: datetime | None, draft: TranscriptDraft) -> None:
    call = draft.called(message.get("toolCallId"))
    if call is None:
        return
    text, details = text_of(message.get("content")), mapping(message.get("details"))
    failed, exit_code, edit = message.get("isError") is True, None, None
    if call.name == "bash":
        exit_code = number_in(text[-100:], _EXIT_CODE, None if failed else 0)
    elif call.name in ("edit", "write"):
        path = first_string(call.arguments, "path", "file_path")
        edit = _edit(path, string(details.get("diff"))) or edit_of_arguments(call.arguments)
    draft.timeline.result(call, text, failed=failed, at=at, exit_code=exit_code, edit=edit)
    for index, run in enumerate(mappings(details.get("results"))):
        if type(run.get("messages")) is list:
            _subagent(run, f"{call.id}-{index}", call.id, draft)


def _subagent(run: JsonRecord, identity: str, call_id: str, draft: TranscriptDraft) -> None:
    agent = draft.agent(identity)
    agent.prompt, agent.agent_type = string(run.get("task")), string(run.get("agent"))
    agent.parent_call = call_id
    for index, message in enumerate(mappings(run["messages"])):
        at = moment(message.get("timestamp"))
        agent.see(at)
        _message(message, f"{identity}-{index}", at, agent)


def _edit(path: str, diff: str) -> FileEdit | None:
    """Return an edit from the program's own kind of diff, whose lines bear their numbers.

    An added line has its number in the new file, any other line its number in the old one.
    """
    hunks: list[Hunk] = []
    body: list[str] = []
    start = shift = before = after = 0
    for line in [*diff.split("\n"), ""]:
        mark = line[:1]
        number, _, text = line[1:].lstrip(" ").partition(" ")
        if mark in ("+", "-", " ") and number.isdecimal():
            if not body:
                start = int(number) - (shift if mark == "+" else 0)
            body.append(f"{mark}{text}")
            before += mark != "+"
            after += mark != "-"
        elif body:
            old, new = start - (not before), start + shift - (not after)
            hunks.append((f"@@ -{old},{before} +{new},{after} @@", body))
            shift += after - before
            body, before, after = [], 0, 0
    return from_hunks(path, hunks) if hunks else None
