"""OpenHands before its software agent kit (version 0): ``~/.openhands/sessions/<id>/events``.

There is a file an event, named by its number from 0. An action of the model's has the whole answer
that it came of, and the tokens that the agent has spent so far; what came of an action names it by
its number. The times are the machine's own, without a zone.
"""

from __future__ import annotations

import re
from datetime import datetime
from operator import sub
from pathlib import Path

from msgspec.structs import astuple

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, TranscriptReader
from debrief.sessions.readers.documents import JsonRecord
from debrief.sessions.readers.openhands import BILLED, of_terminal
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments, replaced
from debrief.sessions.readers.timeline import NO_USAGE, CallDraft
from debrief.sessions.readers.values import (
    TokenNames,
    declared_tools,
    first_string,
    mapping,
    mappings,
    moment,
    string,
    whole_numbers,
)

_EDITOR = "str_replace_editor"
_EDITING = frozenset({"create", "str_replace", "insert", "undo_edit"})
_ANSWERED = TokenNames(
    "prompt_tokens",
    "completion_tokens",
    "cache_creation_input_tokens",
    "cached",
    cached_inside=True,
)
_SILENT = frozenset({"system", "message", "recall", "change_agent_state", "condensation"})
"""Actions that are no calls."""
_NUDGE = "Please continue on whatever approach you think is suitable."
"""What the program says in the person's name where nobody is there to answer."""
_SUFFIXES = {
    "error": "\n[Error occurred in processing last action]",
    "user_rejected": "\n[Last action has been rejected by the user]",
}
"""What the model is shown behind a result, by the kind of the observation."""


class OldOpenHandsReader(TranscriptReader):
    """Conversations of OpenHands 0, each a folder of events."""

    source = "openhands-0"
    tool = "openhands"
    tools = ToolNames(
        run="execute_bash execute_ipython_cell", edit=_EDITOR, plan="task_tracker", web="browser"
    )
    home_folders = (".openhands/sessions", ".openhands-state/sessions")
    suffixes = ("0.json",)
    start = re.compile(
        rb'\A\s*\{\s*"id"\s*:\s*0\s*,\s*"timestamp"\s*:\s*"[^"]*"\s*,'
        rb'\s*"source"\s*:\s*"(?:agent|user|environment)"'
    )

    def describe(self, head: Head, path: str) -> Peek:
        """Return the session that the folder above the events is named after."""
        return Peek(session_id=_id_of(path), started=head.first_time())

    def beside(self, path: str) -> tuple[str, ...]:
        """Return the files of the conversation's other events, in their order."""
        named = ((file.stem, file) for file in Path(path).parent.glob("*.json"))
        others = [(int(stem), str(file)) for stem, file in named if stem.isdecimal()]
        return tuple(file for _, file in sorted(others) if file != path)

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one conversation."""
        draft = TranscriptDraft(path)
        draft.id = _id_of(path)
        talk = _Talk(draft)
        for event in (draft.load(path), *draft.load_beside(self.beside(path))):
            talk.take(event)
        draft.reported_usage = None if talk.reported == NO_USAGE else talk.reported
        return draft


READER = OldOpenHandsReader()


def _id_of(path: str) -> str:
    return Path(path).parent.parent.name


class _Talk:
    """A conversation's events on their way to its timeline."""

    def __init__(self, draft: TranscriptDraft) -> None:
        self.spent = self.reported = NO_USAGE
        """What the agent says that it has spent so far, since its count began and in all."""
        self._draft = draft
        self._answer = ""
        """The model's answer that the last message is."""
        self._commands: dict[str, str] = {}
        """What the person ran, by the numbers of the actions."""
        self._lacks_calls = False

    def take(self, event: JsonRecord) -> None:
        """Report an event to the timeline."""
        draft, at = self._draft, moment(event.get("timestamp"))
        draft.see(at)
        action, given = string(event.get("action")), mapping(event.get("args"))
        if "observation" in event:
            self._observe(event, mapping(event.get("extras")), at)
        elif action == "system":
            draft.system_prompt = string(given.get("content"))
            draft.declared = declared_tools(given.get("tools"))
            draft.take(given, version="openhands_version")
        elif action == "condensation":
            draft.timeline.compact(string(given.get("summary")))
        elif action == "change_agent_state" and given.get("agent_state") == "paused":
            draft.timeline.interrupt(at)
        elif event.get("source") == "user":
            self._hear(event, given, at)
        elif event.get("source") == "agent" and "tool_call_metadata" in event:
            self._call(event, mapping(event["tool_call_metadata"]), at)
        elif event.get("source") == "agent" and action == "message":
            self._say(f"event-{event.get('id')}", string(given.get("content")), event, at, {})
        elif event.get("source") == "agent" and action not in _SILENT and not self._lacks_calls:
            self._lacks_calls = True
            draft.report(0, "actions without the calls that they came of, as in early versions")

    def _hear(self, event: JsonRecord, given: JsonRecord, at: datetime | None) -> None:
        timeline = self._draft.timeline
        if event.get("action") == "message":
            images = given.get("image_urls")
            count = len(images) if type(images) is list else 0
            text = string(given.get("content"))
            if text.startswith(_NUDGE):
                timeline.add_context("program", text, at)
            else:
                timeline.prompt(text, at, count)
        elif event.get("action") == "run":
            self._commands[str(event.get("id"))] = string(given.get("command"))

    def _say(
        self, id: str, text: str, event: JsonRecord, at: datetime | None, answer: JsonRecord
    ) -> None:
        """Begin a message, and count what was spent since the last one: what the answer does not
        account for went into answers that no event holds."""
        timeline, draft = self._draft.timeline, self._draft
        draft.model = string(answer.get("model")) or draft.model
        counts = mapping(mapping(event.get("llm_metrics")).get("accumulated_token_usage"))
        total = BILLED.usage(counts) if counts else self.spent
        since = _less(total, self.spent) or total  # a count may begin anew
        own = _usage_of(answer) or since
        timeline.message = None
        timeline.spend(_less(since, own) or NO_USAGE)
        timeline.begin_message(id, draft.model, at).texts.append(text)
        timeline.spend(own)
        self.spent, self.reported = total, self.reported + since

    def _call(self, event: JsonRecord, about: JsonRecord, at: datetime | None) -> None:
        answer = mapping(about.get("model_response"))
        id, call_id = string(answer.get("id")), string(about.get("tool_call_id"))
        said = mapping(next(iter(mappings(answer.get("choices"))), {}).get("message"))
        timeline = self._draft.timeline
        if timeline.message is None or not id or id != self._answer:
            self._answer = id
            self._say(id or call_id, string(said.get("content")), event, at, answer)
            if timeline.message is not None:
                timeline.message.thoughts.append(string(said.get("reasoning_content")))
        asked = next((c for c in mappings(said.get("tool_calls")) if c.get("id") == call_id), {})
        arguments = mapping(asked.get("function")).get("arguments")
        if timeline.message is not None:
            name = about.get("function_name")
            timeline.call(timeline.message, call_id, name, arguments, at)

    def _observe(self, event: JsonRecord, seen: JsonRecord, at: datetime | None) -> None:
        draft, timeline = self._draft, self._draft.timeline
        kind, text = string(event.get("observation")), string(event.get("content"))
        about = mapping(event.get("tool_call_metadata"))
        metadata = mapping(seen.get("metadata"))
        if kind == "run":
            text = of_terminal(text, metadata)
        if kind == "recall":
            draft.take(seen, cwd="working_dir", repository="repo_name", branch="repo_branch")
            draft.repository = draft.repository.rpartition("/")[2]
            own = string(seen.get("repo_instructions")).strip()
            draft.add_instructions([("", own)] if own else [], "message")
        elif about:
            call = draft.called(about.get("tool_call_id"))
            if call is None:
                return
            if kind == "user_rejected":
                timeline.reject(call, f"OBSERVATION:\n{text}{_SUFFIXES[kind]}", at, words="")
                return
            code = metadata.get("exit_code")
            is_known = type(code) is int and code != -1
            is_broken = call.name == _EDITOR and text.startswith("ERROR:")
            failed = kind == "error" or event.get("success") is False or is_broken
            timeline.result(
                call,
                text + _SUFFIXES.get(kind, ""),
                failed=failed,
                at=at,
                exit_code=code if is_known else None,
                edit=None if failed else _edit(call, seen),
            )
        elif kind == "error":
            timeline.add_context("program", text + _SUFFIXES[kind], at)
        elif kind == "run" and (command := self._commands.get(str(event.get("cause")))):
            ran = f"User executed the command:\n{command}"
            seen_of = f"Observed result of command executed by user:\n{text}"
            timeline.add_context("command", f"{ran}\n\n{seen_of}", at)


def _usage_of(answer: JsonRecord) -> Usage | None:
    """Return the tokens that an answer has with it; None where it has none."""
    counts = mapping(answer.get("usage"))
    (cached,) = whole_numbers(counts.get("prompt_tokens_details"), "cached_tokens")
    usage = _ANSWERED.usage({**counts, "cached": cached})
    return None if usage == NO_USAGE else usage


def _less(usage: Usage, part: Usage) -> Usage | None:
    """Return what is left of tokens without a part of them; None where it is no part of them."""
    left = Usage(*map(sub, astuple(usage), astuple(part)))
    return None if min(astuple(left)) < 0 else left


def _edit(call: CallDraft, seen: JsonRecord) -> FileEdit | None:
    given = call.arguments
    if call.name != _EDITOR or given.get("command") not in _EDITING:
        return None
    old, new = seen.get("old_content"), seen.get("new_content")
    if type(old) is str and type(new) is str:
        return replaced(first_string(seen, "path") or string(given.get("path")), old, new)
    return edit_of_arguments(given)
