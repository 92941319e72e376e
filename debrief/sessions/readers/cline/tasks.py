"""Tasks of Cline's extension for editors, and of those that came of it: Roo Code, Kilo Code.

Each is ``<tasks>/<id>/api_conversation_history.json``: what the model was sent, word for word. Its
program wraps the person's words in elements and puts the environment behind them; results are texts
that name their call, and in older versions calls are elements too. ``ui_messages.json`` beside it
tells the tokens and times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek
from debrief.sessions.readers.documents import JsonRecord
from debrief.sessions.readers.patches import FileEdit, created, edit_of_arguments, joined, replaced
from debrief.sessions.readers.timeline import CallDraft, MessageDraft
from debrief.sessions.readers.values import (
    decoded_arguments,
    first_string,
    inside,
    mapping,
    mappings,
    moment,
    number_in,
    string,
    text_of,
    usage_in,
    whole_numbers,
)

DOCUMENT = "api_conversation_history.json"
ROOS = {
    "rooveterinaryinc.roo-cline": "roo-code",
    "kilocode.kilo-code": "kilo-code",
    "ibm.bob-code": "ibm-bob",
}
"""Roo Code's extension and those that came of it, each with its program's name."""
_MODE = re.compile(rb"# Current Mode\\n<slug>")
HISTORY = "history_item.json"
_BESIDE = ("ui_messages.json", "task_metadata.json", HISTORY)
_START = re.compile(rb'\A\s*\[\s*\{\s*"role"\s*:\s*"user"\s*,\s*"content"\s*:')
_TASK = re.compile(rb"<(?:task|environment_details|user_message|feedback)>")
_TIME = re.compile(rb'(?<!\\)"ts"\s*:\s*(\d{9,16})')
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \(([^()\n]+)\) Files")
_MODEL = re.compile(r"# Current Mode\n<slug>[^\n]*\n<name>[^\n]*\n<model>([^<\n]+)</model>")
_COMMIT = re.compile(r'"latestGitCommitHash":\s*"([0-9a-f]{40})"')
_RESULT = re.compile(r"\s*\[(\w+)(?: for .*?)?\] Result:\s*", re.DOTALL)
_WORDS = ("task", "user_message", "feedback", "answer")
_REFUSED = "The user denied this operation"
_EXIT_CODE = re.compile(r"exit(?:ed)?(?: with)? code:? (-?\d+)", re.IGNORECASE)
_ERROR = re.compile(
    r'\s*(?:The tool execution failed|Error |\[ERROR\]|\{"status":"error"|<error_details>'
    "|Unable to apply diff|File does not exist at path"
    "|Task was interrupted before this tool call could be completed)"
)
_STATUS = re.compile(r'\{"status":"(?:denied|approved)"[^\n]*\}')
_SEARCH = re.compile(r"[-<]{3,} SEARCH>?")
_REPLACE = re.compile(r"[+>]{3,} REPLACE>?")
_PLACE = re.compile(r":(?:start|end)_line:\s*\d+")
_ELEMENT = re.compile(r"<(\w+)>")
_CALL = re.compile(
    "<(execute_command|read_file|write_to_file|replace_in_file|search_files|list_files"
    "|list_code_definition_names|browser_action|use_mcp_tool|access_mcp_resource|web_fetch"
    "|ask_followup_question|plan_mode_respond|attempt_completion|new_task"
    "|apply_diff|insert_content|search_and_replace|edit_file|codebase_search|fetch_instructions"
    "|switch_mode|update_todo_list|run_slash_command|generate_image)>"
)
_BY_BLOCKS = frozenset({"replace_in_file", "apply_diff"})
_EDITING = _BY_BLOCKS | frozenset(
    {"write_to_file", "new_file", "apply_patch", "insert_content", "search_and_replace"}
    | {"edit", "edit_file", "search_replace"}
)


def folders_of(extension: str) -> tuple[str, ...]:
    """Return where an extension keeps its tasks, below a user's home."""
    inner = f"User/globalStorage/{extension}/tasks"
    places = (".config/Code", "Library/Application Support/Code", ".vscode-server/data")
    return tuple(f"{place}/{inner}" for place in places)


def claims(head: bytes) -> bool:
    """Return whether a beginning is of a task's document, whichever extension's."""
    return _START.match(head) is not None and _TASK.search(head) is not None


def is_roos(head: bytes, path: str) -> bool:
    """Return whether a task is Roo Code's or of one that came of it, by its modes or its folder."""
    return _MODE.search(head) is not None or extension_of(path, ROOS) != ""


def extension_of(path: str, extensions: Iterable[str]) -> str:
    """Return in which extension's folder a file is; empty for none."""
    return next(
        (extension for extension in extensions if f"/globalStorage/{extension}/" in path), ""
    )


def describe(head: Head, path: str) -> Peek:
    """Return what the beginning says: a task's folder is named after the time it began."""
    id = id_of(path)
    return Peek(session_id=id, started=_began(id) or head.first_time(_TIME))


def beside(path: str) -> tuple[str, ...]:
    """Return what the extension keeps beside a task's document."""
    paths = (str(Path(path).with_name(name)) for name in _BESIDE)
    return tuple(path for path in paths if Path(path).is_file())


def convert(
    document: JsonRecord, others: list[JsonRecord], draft: TranscriptDraft, tool: str
) -> None:
    """Take a task's messages over.

    Args:
        others: the files beside the document that could be read.
        tool: the extension.
    """
    draft.id, draft.tool = id_of(draft.path), tool
    draft.see(_began(draft.id))
    messages = list(draft.objects_in(document.get("messages")))
    requests = _requests(others, messages)
    for other in others:
        hosts = mappings(other.get("environment_history"))
        draft.version = draft.version or string((hosts or [{}])[-1].get("cline_version"))
    for index, message in messages:
        shown = requests.get(index, [])
        at = moment(message.get("ts", shown[0].get("ts") if shown else None))
        draft.see(at)
        if message.get("isSummary") is True or message.get("isTruncationMarker") is True:
            draft.timeline.compact(text_of(message.get("content")))
        elif message.get("type") == "reasoning":
            draft.timeline.thoughts.append(_thought(message))
        elif message.get("role") == "user":
            _ask(message.get("content"), at, draft)
        elif message.get("role") == "assistant":
            _answer(message, shown, f"{draft.id}-{index + 1}", at, draft)


def _requests(
    others: list[JsonRecord], messages: list[tuple[int, JsonRecord]]
) -> dict[int, list[JsonRecord]]:
    """Return what the window shows of the requests behind each answer, by its place among all.

    Cline's say after which message they were sent. Others come before the next answer, one that
    failed and was sent again included.
    """
    shown = [
        each
        for other in others
        for each in mappings(other.get("messages"))
        if each.get("say") == "api_req_started"
    ]
    replies = [(index, each.get("ts")) for index, each in messages if _is_answer(each)]
    answers = [(index, at) for index, at in replies if type(at) is int]
    by_time = bool(answers) and len(answers) == len(replies)
    found: dict[int, list[JsonRecord]] = {}
    for number, each in enumerate(shown):
        before, at = each.get("conversationHistoryIndex"), each.get("ts")
        if type(before) is int:
            found[before + 2] = [each]
        elif by_time and type(at) is int:
            later = next((index for index, answered in answers if answered >= at), answers[-1][0])
            found.setdefault(later, []).append(each)
        else:
            found[number * 2 + 1] = [each]
    return found


def _is_answer(message: JsonRecord) -> bool:
    return message.get("role") == "assistant" and message.get("type") != "reasoning"


def id_of(path: str) -> str:
    """Return a task's id: its folder's name, or its file's, up to ``DOCUMENT``."""
    return Path(path).name.removesuffix(DOCUMENT).rstrip("._-") or Path(path).parent.name


def _began(id: str) -> datetime | None:
    return moment(int(id)) if re.fullmatch(r"\d{12,14}", id) else None


def _ask(content: Any, at: datetime | None, draft: TranscriptDraft) -> None:
    """Take a message to the model: results of calls, then what the person says."""
    pending: CallDraft | None = None
    blocks = [{"type": "text", "text": content}] if type(content) is str else mappings(content)
    images = sum(block.get("type") == "image" for block in blocks)
    for block in blocks:
        if block.get("type") == "tool_result":
            pending = draft.called(block.get("tool_use_id"))
            pending = _result(pending, text_of(block.get("content")), at, draft)
            continue
        text = string(block.get("text"))
        if text.startswith("<environment_details>"):
            if not draft.cwd and (folder := _FOLDER.search(text)):
                draft.cwd = folder[1]
            if model := _MODEL.search(text):
                draft.model = model[1]
            if not draft.commit and (commit := _COMMIT.search(text)):
                draft.commit = commit[1]
        elif named := _RESULT.match(text):
            calls = _open(draft)
            call = next((call for call in calls if call.name == named[1]), next(iter(calls), None))
            draft.orphan_results += call is None
            pending = _result(call, text[named.end() :], at, draft)
        elif pending is not None:
            pending = _result(pending, text, at, draft)
        else:
            _say(text, images, at, draft)


def _open(draft: TranscriptDraft) -> list[CallDraft]:
    turns = draft.timeline.turns
    messages = turns[-1].messages if turns else []
    calls = messages[-1].calls if messages else []
    return [call for call in calls if call.status == "unanswered"]


def _say(text: str, images: int, at: datetime | None, draft: TranscriptDraft) -> None:
    words = next((found for name in _WORDS if (found := inside(text, name)) is not None), None)
    if words is not None:
        draft.timeline.prompt(words.strip("\n"), at, images)


def _result(
    call: CallDraft | None, text: str, at: datetime | None, draft: TranscriptDraft
) -> CallDraft | None:
    """Answer a call; return it when its answer is still to come."""
    timeline = draft.timeline
    words = next((found for name in _WORDS[1:] if (found := inside(text, name)) is not None), None)
    if call is None or not text.strip():
        return call
    if stated := _STATUS.match(text):
        status = decoded_arguments(stated[0])
        words = first_string(status, "feedback") or words
    if text.startswith(_REFUSED) or (stated and status.get("status") == "denied"):
        timeline.reject(call, text, at, words=(words or "").strip("\n"))
        return None
    code = number_in(text[:200], _EXIT_CODE) if call.name == "execute_command" else None
    failed = _ERROR.match(text) is not None
    timeline.result(call, text, failed=failed, at=at, exit_code=code, edit=_edit(call))
    if words is not None:
        asked = call.name in ("ask_followup_question", "plan_mode_respond", "attempt_completion")
        if asked and call.name != "ask_followup_question":
            timeline.prompt(words.strip("\n"), at)
        else:
            timeline.intervene("answer" if asked else "remark", words.strip("\n"), at)
    return None


def _answer(
    message: JsonRecord,
    shown: list[JsonRecord],
    identity: str,
    at: datetime | None,
    draft: TranscriptDraft,
) -> None:
    timeline = draft.timeline
    model = first_string(mapping(message.get("modelInfo")), "modelId")
    model = model or next((id for each in shown if (id := _model_of(each))), draft.model)
    answer = timeline.begin_message(identity, model, at)
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if type(content) is str else mappings(content)
    has_calls = any(block.get("type") == "tool_use" for block in blocks)
    for block in blocks:
        if block.get("type") == "tool_use":
            timeline.call(answer, block.get("id"), block.get("name"), block.get("input"), at)
        elif block.get("type") == "text" and has_calls:
            answer.texts.append(string(block.get("text")))
        elif block.get("type") == "text":
            answer.texts.append(_elements(string(block.get("text")), answer, at, draft))
        elif block.get("type") in ("thinking", "reasoning"):
            answer.thoughts.append(_thought(block))
    timeline.spend(_usage(message, shown))


def _model_of(shown: JsonRecord) -> str:
    return first_string(mapping(shown.get("modelInfo")), "modelId")


def _thought(block: JsonRecord) -> str:
    return first_string(block, "thinking", "text") or text_of(block.get("summary"))


def _elements(text: str, answer: MessageDraft, at: datetime | None, draft: TranscriptDraft) -> str:
    """Take calls that are elements of a text; return the text without them."""
    kept: list[str] = []
    done = 0
    while (start := _CALL.search(text, done)) is not None:
        end = text.rfind(f"</{start[1]}>")
        if end < start.end():
            break
        draft.timeline.call(answer, "", start[1], _parameters(text[start.end() : end]), at)
        kept.append(text[done : start.start()])
        done = end + len(start[0]) + 1
    return "".join([*kept, text[done:]])


def _parameters(text: str) -> dict[str, str]:
    """Return the elements of a call, as far as they are closed."""
    found: dict[str, str] = {}
    at = 0
    while (start := _ELEMENT.search(text, at)) is not None:
        end = text.find(f"</{start[1]}>", start.end())
        if end < 0:
            break
        found[start[1]] = text[start.end() : end].strip("\n")
        at = end + len(start[0]) + 1
    return found


def _usage(message: JsonRecord, shown: list[JsonRecord]) -> Usage:
    """Return the tokens of an answer.

    Roo's shown input includes what was cached where the provider speaks OpenAI's way, and since
    3.28 everywhere: then it is never less than that.
    """
    texts = (decoded_arguments(string(each.get("text"))) for each in shown)
    known = [counts for counts in texts if counts.get("tokensIn") is not None]
    names = ("tokensIn", "tokensOut", "cacheWrites", "cacheReads")
    total = Usage()
    for counts in known:
        given, _, written, read = whole_numbers(counts, *names)
        is_whole = "apiProtocol" in counts and given >= written + read
        total += usage_in(counts, *names) if is_whole else Usage(*whole_numbers(counts, *names))
    if known:
        return total
    tokens = mapping(message.get("metrics")).get("tokens")
    prompt, output, cached = whole_numbers(tokens, "prompt", "completion", "cached")
    return Usage(prompt, output, 0, cached)


def _edit(call: CallDraft) -> FileEdit | None:
    if call.name not in _EDITING:
        return None
    given = call.arguments
    path = first_string(given, "path", "absolutePath", "file_path")
    if call.name in _BY_BLOCKS:
        files = [(path, string(given.get("diff")))]
        if several := string(given.get("args")):
            named = (
                (inside(each, "path"), inside(each, "content")) for each in several.split("</file>")
            )
            files = [(file.strip(), diff or "") for file, diff in named if file]
        return joined(
            replaced(file, old, new, estimated=True)
            for file, diff in files
            for old, new in _replacements(diff)
        )
    if call.name == "insert_content":
        return created(path, string(given.get("content")), estimated=True)
    if call.name == "search_and_replace":  # with a pattern, what it matched is not told
        if str(given.get("use_regex")).lower() == "true":
            return None
        old, new = string(given.get("search")), string(given.get("replace"))
        return replaced(path, old, new, estimated=True)
    return edit_of_arguments({**given, "path": path})


def _replacements(diff: str) -> Iterator[tuple[str, str]]:
    """Yield what each block of a diff searches for, and what it puts there."""
    old: list[str] | None = None
    new: list[str] | None = None
    for line in diff.splitlines():
        if _SEARCH.fullmatch(line):
            old, new = [], None
        elif old is not None and new is None and _is_place(old, line):
            old = []
        elif old is not None and new is None and line and not line.strip("="):
            new = []
        elif old is not None and new is not None and _REPLACE.fullmatch(line):
            yield "".join(f"{each}\n" for each in old), "".join(f"{each}\n" for each in new)
            old = new = None
        elif new is not None:
            new.append(line)
        elif old is not None:
            old.append(line)


def _is_place(before: list[str], line: str) -> bool:
    """Return whether a line ends the head of a block, which says where in the file it is."""
    return (
        bool(before)
        and not line.strip("-")
        and len(line) > 2
        and all(_PLACE.fullmatch(each) for each in before)
    )
