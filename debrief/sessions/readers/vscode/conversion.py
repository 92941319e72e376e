"""From a chat's requests to turns, messages and subagents.

What the model said and called is in the rounds of a request's result. A request without these, as
an interrupted one and a subagent's, is read from the parts of the answer that the person was shown.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.documents import JsonRecord
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments, joined
from debrief.sessions.readers.timeline import NO_USAGE, CallDraft, MessageDraft
from debrief.sessions.readers.values import (
    decoded_arguments,
    first_string,
    inside,
    mapping,
    mappings,
    moment,
    string,
    text_of,
    usage_in,
    whole_number,
    whole_numbers,
)

_DENIED, _SKIPPED, _STOPPED = 0, 5, 2
_NOT_RUN = ("The user cancelled the tool call", "The user chose to skip the tool call")
_FAILED = ("ERROR while calling tool:", "ERROR: Your input to the tool was invalid")
_ADDED_TO_IDS = "__vscode-"
_EDITING = re.compile(r"apply_patch|create_file|(?:multi_)?replace_string_in_file")
_EDITS = "edit_files"
"""Names the edits that no call made: VS Code once applied blocks of code by itself."""
_INNER = "vscode_editFile_internal"
"""What ``insert_edit_into_file`` calls in its turn."""
_TEXT = 2
_MOST_LINES = 1_000_000
"""That one edit is taken to have replaced."""


def path_of(uri: Any) -> str:
    """Return the path of a URI, which is an object or text."""
    path = string(mapping(uri).get("path"))
    with suppress(ValueError):
        path = path or unquote(urlsplit(string(uri)).path)
    return path[1:] if re.match("/[A-Za-z]:", path) else path


def number_of(record: Any, name: str) -> int:
    """Return a count out of an object; 0 for none."""
    return whole_number(mapping(record).get(name))


class _Shown(Struct):
    """A call as the person was shown it, with the edits that came behind it."""

    part: JsonRecord
    edits: list[FileEdit] = []

    def text(self, name: str) -> str:
        return string(self.part.get(name))

    @property
    def agent(self) -> str:
        return self.text("subAgentInvocationId")

    @property
    def is_subagent(self) -> bool:
        return self.data.get("kind") == "subagent"

    @property
    def data(self) -> JsonRecord:
        return mapping(self.part.get("toolSpecificData"))

    @property
    def details(self) -> JsonRecord:
        return mapping(self.part.get("resultDetails"))

    def add_to(self, message: MessageDraft, draft: TranscriptDraft) -> None:
        """Add a call of which no more is known than what was shown."""
        data, id = self.data, self.text("toolCallId")
        given = data.get("rawInput") or decoded_arguments(string(self.details.get("input")))
        line = mapping(data.get("commandLine")).get("original", data.get("command"))
        if type(line) is str:
            given = {"command": line}
        elif type(data.get("prompt")) is str:
            given = {name: data.get(name) for name in ("description", "agentName", "prompt")}
        elif self.edits and not given:
            given = {"filePath": self.edits[0].path}
        call = draft.timeline.call(message, id, self.text("toolId"), given, None)
        outputs = [string(each.get("value")) for each in mappings(self.details.get("output"))]
        printed = mapping(data.get("terminalCommandOutput")).get("text", data.get("result"))
        self.settle(call, draft, "\n".join(filter(None, outputs)) or string(printed) or None)

    def settle(self, call: CallDraft, draft: TranscriptDraft, text: str | None) -> None:
        """Tell a call how it ended."""
        confirmed = self.part.get("isConfirmed")
        is_refused = confirmed is False or mapping(confirmed).get("type") in (_DENIED, _SKIPPED)
        if is_refused or (text or "").startswith(_NOT_RUN):
            draft.timeline.reject(call, text or "", None, "")
        elif text is not None or self.part.get("isComplete") is True:
            code = mapping(self.data.get("terminalCommandState")).get("exitCode")
            code = code if type(code) is int else None
            edit = joined(self.edits)
            if _EDITING.fullmatch(call.name):
                edit = edit_of_arguments(call.arguments) or edit
            failed = self.details.get("isError") is True or (text or "").startswith(_FAILED)
            draft.timeline.result(call, text, failed=failed, at=None, exit_code=code, edit=edit)


class ChatRequest:
    """One request of a chat: what the person asked, and all that came of it."""

    def __init__(self, record: JsonRecord, draft: TranscriptDraft) -> None:
        self._record, self._draft, self._timeline = record, draft, draft.timeline
        self._result = mapping(record.get("result"))
        self._metadata = mapping(self._result.get("metadata"))
        self._items = _shown(record.get("response"))
        self._calls = [item for item in self._items if isinstance(item, _Shown)]
        vendor, _, model = string(record.get("modelId")).partition("/")
        self._model = string(self._metadata.get("resolvedModel")) or model or vendor

    def convert(self, is_dropped: bool) -> bool:
        """Take it over; return whether it tells only its last call's input tokens."""
        record, timeline = self._record, self._timeline
        state, error = mapping(record.get("modelState")), mapping(self._result.get("errorDetails"))
        asked = number_of(record, "timestamp")
        elapsed = number_of(self._result.get("timings"), "totalElapsed")
        at, ended = moment(asked), moment(state.get("completedAt")) or moment(asked + elapsed)
        self._draft.see(at)
        self._draft.see(ended)
        self._draft.take(mapping(record.get("agent")), version="extensionVersion")
        self._ask(at, is_dropped)
        if rounds := mappings(self._metadata.get("toolCallRounds")):
            self._add_rounds(rounds)
        else:
            self._add_shown()
        self._add_subagents()
        usage, is_whole = self._usage()
        timeline.spend(usage)
        is_stopped = record.get("isCanceled") is True or error.get("code") == "canceled"
        if is_stopped or state.get("value") == _STOPPED:
            if timeline.message:
                timeline.stop(timeline.message.id)
            timeline.interrupt(ended)
        timeline.touch(ended)
        return usage.input > 0 and len(rounds) > 1 and not is_whole

    def _ask(self, at: datetime | None, is_dropped: bool) -> None:
        record = self._record
        mode = mapping(mapping(record.get("modeInfo")).get("modeInstructions"))
        own = path_of(mode.get("uri")) or string(mode.get("name")), string(mode.get("content"))
        if own[1] and mode.get("isBuiltin") is not True:
            self._draft.add_instructions([own], "system")
        text = string(mapping(record.get("message")).get("text")) or string(record.get("message"))
        if record.get("isSystemInitiated") is True:
            self._timeline.add_context("program", text, at)
            return
        variables = mappings(mapping(record.get("variableData")).get("variables"))
        images = sum(
            variable.get("kind") == "image" or variable.get("isImage") is True
            for variable in variables
        )
        rendered = text_of(self._metadata.get("renderedUserMessage")) if text[:1] == "/" else ""
        expansion = (inside(rendered, "userRequest") or "").strip()
        if text.strip() or images:
            expansion = expansion if expansion != text.strip() else ""
            turn = self._timeline.prompt(text, at, images, expansion=expansion)
            undone = record.get("shouldBeRemovedOnSend")
            is_undone = type(undone) is dict and not undone.get("afterUndoStop")
            turn.rewound = is_dropped or is_undone or record.get("isHidden") is True

    def _add_rounds(self, rounds: list[JsonRecord]) -> None:
        """Take the model's own calls over; what was shown has the person's answers to them."""
        metadata, timeline = self._metadata, self._timeline
        results = mapping(metadata.get("toolCallResults"))
        listed = mappings(metadata.get("summaries")) or mappings([metadata.get("summary")])
        summaries = {string(each.get("toolCallRoundId")): each for each in listed}
        for id in summaries.keys() - {string(each.get("id")) for each in rounds}:
            self._compact(summaries[id])
        own = [call for call in self._calls if not call.agent and call.text("toolId") != _EDITS]
        calls: list[CallDraft] = []
        for round_ in rounds:
            id, at = string(round_.get("id")), moment(round_.get("timestamp"))
            message = timeline.begin_message(id, string(round_.get("modelId")) or self._model, at)
            message.texts.append(string(round_.get("response")))
            thought = mapping(round_.get("thinking")).get("text")
            message.thoughts += map(string, thought if type(thought) is list else [thought])
            for record in mappings(round_.get("toolCalls")):
                call_id, name, given = map(record.get, ("id", "name", "arguments"))
                calls.append(timeline.call(message, call_id, name, given, at))
            if id in summaries:
                self._compact(summaries.pop(id))  # once, should ids be masked to one word
        by_id = {shown.text("toolCallId"): shown for shown in own}
        for index, call in enumerate(calls):
            shown = (
                by_id.get(call.transcript_id.partition(_ADDED_TO_IDS)[0])
                if len(by_id) == len(own)
                else None
            )
            if shown is None:
                shown = own[index] if len(own) == len(calls) else _Shown({})
            if shown.is_subagent:
                self._draft.child_calls[shown.text("toolCallId")] = call.id
            content = mapping(results.get(call.transcript_id)).get("content")
            shown.settle(call, self._draft, None if content is None else _text(content))
        for each in self._calls:
            if each.text("toolId") == _EDITS and timeline.message:
                each.add_to(timeline.message, self._draft)

    def _add_shown(self) -> None:
        """Take over what the person was shown: a message is a text and the calls behind it."""
        name = first_string(self._record, "responseId", "requestId")
        message: MessageDraft | None = None
        for number, item in enumerate(self._items):
            if isinstance(item, _Shown) and item.agent:
                continue
            if message is None or (isinstance(item, str) and message.calls):
                id = f"{name}-{number}" if number else name
                message = self._timeline.begin_message(id, self._model, None)
                message.texts.append("")
            if isinstance(item, str):
                message.texts[0] += item
            else:
                item.add_to(message, self._draft)

    def _add_subagents(self) -> None:
        """Take over what subagents were asked and did, of which no more is kept than was shown."""
        draft = self._draft
        asked = {call.text("toolCallId"): call for call in self._calls if call.is_subagent}
        for id, shown in asked.items():
            agent = draft.agent(id)
            agent.parent_call = draft.child_calls.get(id, id)
            agent.take(shown.data, agent_type="agentName", title="description", prompt="prompt")
        for call in self._calls:
            if call.agent:
                agent = draft.agent(call.agent)
                message = agent.timeline.message or agent.timeline.begin_message(
                    call.agent, "", None
                )
                call.add_to(message, agent)
        for id, shown in asked.items():
            if text := string(shown.data.get("result")):
                model = string(shown.data.get("modelName"))
                answer = draft.agent(id).timeline.begin_message(f"{id}-result", model, None)
                answer.texts.append(text)

    def _compact(self, summary: JsonRecord) -> None:
        usage = mapping(summary.get("usage"))
        cached = number_of(usage.get("prompt_tokens_details"), "cached_tokens")
        prompt, output = whole_numbers(usage, "prompt_tokens", "completion_tokens")
        self._timeline.usage += Usage(max(0, prompt - cached), output, 0, cached)
        self._timeline.compact(string(summary.get("text")))

    def _usage(self) -> tuple[Usage, bool]:
        """Return the request's tokens, and whether they are those of all its calls."""
        usage = NO_USAGE
        for each in mappings(self._record.get("modelTotals")):
            usage += usage_in(each, "inputTokens", "outputTokens", "", "cachedTokens")
        is_whole = usage != NO_USAGE
        last = [(each, "completionTokens") for each in (self._record, self._result.get("usage"))]
        for record, name in (*last, (self._metadata, "outputTokens")):
            if usage == NO_USAGE:
                usage = Usage(*whole_numbers(record, "promptTokens", name))
        return usage, is_whole


def _shown(response: Any) -> list[str | _Shown]:
    """Return the texts and the calls of an answer, in order."""
    items: list[str | _Shown] = []
    latest: _Shown | None = None
    for part in response if type(response) is list else [response]:
        kind = mapping(part).get("kind")
        if kind in (None, "markdownContent", "markdownVuln"):
            value = mapping(part).get("content", part)
            text = string(value) or string(mapping(value).get("value"))
            # An edit is shown between two fences.
            items += [text] * bool(text.strip("`\n"))
        elif kind == "inlineReference":
            uri = part.get("inlineReference")
            path = path_of(uri) or path_of(mapping(uri).get("uri"))
            items.append(f"`{string(part.get('name')) or Path(path).name}`")
        elif kind == "toolInvocationSerialized" and part.get("toolId") != _INNER:
            latest = _Shown(part)
            items.append(latest)
        elif kind == "textEditGroup":
            if latest is None:
                latest = _Shown({"toolId": _EDITS, "isComplete": True})
                items.append(latest)
            latest.edits.append(_edit(part))
    return items


def _edit(group: JsonRecord) -> FileEdit:
    """Return how edits changed a file's lines, of which they tell the new ones alone."""
    added = removed = 0
    batches = group.get("edits")
    for batch in batches if type(batches) is list else ():
        for each in mappings(batch):
            text, place = string(each.get("text")), each.get("range")
            first, last = whole_numbers(place, "startLineNumber", "endLineNumber")
            begin, end = whole_numbers(place, "startColumn", "endColumn")
            lines, gone = text.count("\n"), min(max(0, last - first), _MOST_LINES)
            # Lines that stay are written again: those of the same length are taken for them.
            is_same = not (lines or gone) and len(text) == end - begin
            is_changed = (first, begin) != (last, end) and not is_same
            added, removed = added + lines + is_changed, removed + gone + is_changed
    return FileEdit(path_of(group.get("uri")), added, removed, estimated=True)


def _text(content: Any) -> str:
    """Return the text of a tool's result, whose parts are texts and trees of texts.

    In a tree, what comes first within a node begins a line, and what asks for it.
    """
    texts: list[str] = []
    for part in mappings(content):
        value, pieces = part.get("value"), [""]
        waiting = [(mapping(value).get("node"), False)]
        while waiting:
            node, begins_line = waiting.pop()
            text = string(mapping(node).get("text"))
            if text and mapping(node).get("type") == _TEXT:
                is_inside = begins_line and pieces[-1][-1:] not in ("", "\n")
                pieces += ["\n" * is_inside, text]
            children = mappings(mapping(node).get("children"))
            flags = [
                not at or each.get("lineBreakBefore") is True for at, each in enumerate(children)
            ]
            waiting += reversed(list(zip(children, flags, strict=True)))
        texts.append(string(value) or "".join(pieces).strip())
    return "\n".join(filter(None, texts))
