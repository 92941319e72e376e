"""Calls of a Codex rollout: their outputs, what events say of them, and what API calls cost."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from operator import add, ge, sub
from typing import Any

from msgspec import Struct

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.documents import JsonRecord, compact_json
from debrief.sessions.readers.patches import (
    FileEdit,
    created,
    deleted,
    from_apply_patch,
    from_unified,
    joined,
)
from debrief.sessions.readers.timeline import CallDraft, MessageDraft
from debrief.sessions.readers.values import (
    decoded_arguments,
    first_string,
    mapping,
    string,
    whole_numbers,
)

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
_RUNNING = re.compile(
    r"^(?:Process running with session|Script running with cell) ID (\w+)", re.MULTILINE
)
_WAITED = re.compile(r"\AWall time: [\d.]+ seconds\s+")
_PICTURES = {"image": "image", "input_image": "image", "input_audio": "audio", "input_file": "file"}
_HEAD = 400
_FAILURE_HEAD = 120


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
    if exit_code is None and _FAILURE.match(_WAITED.sub("", text[:_FAILURE_HEAD].lstrip())):
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
    kind = _PICTURES.get(kind, kind)
    return f"[{kind}]" if kind in _PICTURES.values() or len(block) == 1 else compact_json(block)


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


def served_text(answer: Any) -> str:
    """Return what a server's tool answered, as text."""
    if type(answer) is dict and type(answer.get("content")) is list:
        return read_output(answer["content"]).text
    return answer if type(answer) is str else compact_json(answer)


class RolloutCalls:
    """The calls of one rollout, which scripts may make too.

    In code mode the model calls ``exec`` with a script, and the commands and patches of that have
    events alone: what they say belongs to the script's call.

    Args:
        draft: that the rollout becomes.
        message: returns the message that a call is part of.
    """

    def __init__(
        self, draft: TranscriptDraft, message: Callable[[datetime | None], MessageDraft]
    ) -> None:
        self._draft = draft
        self._timeline = draft.timeline
        self._message = message
        self.scripts: list[CallDraft] = []
        """The turn's calls that run a script."""
        self._codes: dict[str, dict[str, int]] = {}
        """How the commands of a script ended, by the script's call: the latest run of each."""
        self._running: dict[str, CallDraft] = {}
        """Calls that went on after their output, by the number of what goes on."""
        self._printed: dict[str, list[str]] = {}
        """What these printed since, by their ids."""
        self._ends: dict[str, tuple[str, bool]] = {}
        """What events say of calls before their own output, which may never come: text, and
        whether it failed."""

    def finish(self) -> None:
        """Answer the calls whose own output never came."""
        for call_id, (text, failed) in self._ends.items():
            call = self._timeline.calls[call_id]
            self._timeline.result(
                call, text, failed=failed, at=None, exit_code=call.exit_code, edit=call.edit
            )

    def made(self, call_id: str, name: str, given: Any, at: datetime | None) -> CallDraft:
        """Add a call."""
        call = self._timeline.call(self._message(at), call_id, name, given, at)
        if name.endswith("exec"):
            self.scripts.append(call)
        return call

    def output(self, payload: JsonRecord, at: datetime | None) -> None:
        """Answer a call with its own output."""
        call_id = string(payload.get("call_id"))
        call = self._timeline.calls.get(call_id)
        if call is None:
            self._draft.orphan_results += bool(call_id)  # without one, it is Codex's own context
            return
        output = read_output(payload.get("output", payload.get("tools")))
        edit, code = call.edit, output.exit_code if call.exit_code is None else call.exit_code
        if codes := self._codes.pop(call.id, None):
            code = next(filter(None, codes.values()), 0)
        if edit is None and call.name == "apply_patch":
            edit = joined(from_apply_patch(first_string(call.arguments, "patch", "input")))
        if call.name.endswith("spawn_agent"):
            agent = string(decoded_arguments(output.text).get("agent_id"))
            self._draft.child_calls.setdefault(agent, call.id)
        failed = output.failed or self._ends.pop(call_id, ("", False))[1]
        self._timeline.result(call, output.text, failed=failed, at=at, exit_code=code, edit=edit)
        self._waited(call, output)

    def _waited(self, call: CallDraft, output: Output) -> None:
        """Follow background work: the output of a call that waits for it has its end."""
        given = call.arguments
        number = str(given.get("session_id") or given.get("cell_id") or "")
        begun = self._running.get(number)
        goes_on = _RUNNING.search(output.text, 0, _HEAD)
        if begun is None:
            if goes_on:
                self._running[goes_on[1]] = call
            return
        printed = self._printed.setdefault(begun.id, [])
        printed.append(output.text.partition("\nOutput:\n")[2])
        if goes_on is None:
            del self._running[number]
            begun.end_late("".join(printed), failed=output.failed, exit_code=output.exit_code)

    def executed(self, payload: JsonRecord, _: datetime | None) -> None:
        """Take how a command ended: a call of its own, or a script's."""
        call = self._timeline.calls.get(string(payload.get("call_id")))
        code = payload.get("exit_code")
        if type(code) is not int or payload.get("source") == "user_shell":
            return
        if call is None:
            script = self._script()
            if script is not None:
                commands = self._codes.setdefault(script.id, {})
                commands[str(payload.get("command"))] = code
            return
        call.exit_code = code
        output = string(payload.get("aggregated_output"))
        if call.status == "unanswered":
            self._ends[call.transcript_id] = output, code != 0
        else:
            is_late = any(call is each for each in self._running.values())
            call.end_late(output if is_late else "", failed=code != 0)

    def patched(self, payload: JsonRecord, at: datetime | None) -> None:
        """Take what a patch did to files: a call of its own, or a script's."""
        call_id = string(payload.get("call_id"))
        call = self._timeline.calls.get(call_id)
        success = payload.get("success") is True
        if call is None:
            call = self._script()
        output = first_string(payload, "stdout", "stderr")
        if call is None:
            call = self.made(call_id, "apply_patch", {}, at)
            self._timeline.result(call, output, failed=not success, at=at)
        if call.status == "unanswered" and call.transcript_id == call_id:
            self._ends[call_id] = output, not success
        if not success:
            return
        edits = [call.edit] if call.edit is not None and call.transcript_id != call_id else []
        edits += changes_of(payload.get("changes"))
        call.edit, call.is_edited = joined(edits), True

    def _script(self) -> CallDraft | None:
        """Return the running script that a nested call came from, if one runs."""
        running = (call for call in reversed(self.scripts) if call.status == "unanswered")
        return next(running, None)

    def served(self, payload: JsonRecord, at: datetime | None) -> None:
        """Take what a server's tool answered."""
        given, result = mapping(payload.get("invocation")), mapping(payload.get("result"))
        call_id = string(payload.get("call_id"))
        call = self._timeline.calls.get(call_id)
        answer = result.get("Ok")
        failed = "Err" in result or mapping(answer).get("isError") is True
        text = served_text(answer if "Ok" in result else result.get("Err"))
        if call is None:
            if self._script() is not None:
                return
            name = f"{string(given.get('server'))}__{string(given.get('tool'))}"
            call = self.made(call_id, name, given.get("arguments"), at)
            self._timeline.result(call, text, failed=failed, at=at)
        elif call.status == "unanswered":
            self._ends[call_id] = text, failed

    def dynamic(self, payload: JsonRecord, at: datetime | None) -> None:
        """Take what a tool of the program around Codex answered."""
        call_id = string(payload.get("call_id"))
        if call_id in self._timeline.calls or self._script() is not None:
            return
        call = self.made(call_id, string(payload.get("tool")), payload.get("arguments"), at)
        output = read_output(payload.get("content_items"), payload.get("success"))
        self._timeline.result(call, output.text, failed=output.failed, at=at)


_FIELDS = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")


class TokenMeter:
    """Turns Codex's cumulative token counts into what each API call cost.

    A ``token_count`` event repeats whenever the limits are shown again; only a changed total is a
    new call. The total begins anew when a session is resumed by some versions, and a fork's goes
    on from that of the session it was forked from. Newer versions write a ``token_usage_record``
    for every call, and from the first of these on the events are not to be read: they say it again.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._total: list[int] | None = None
        self._reported: list[int] | None = None
        self.has_records = False

    @property
    def reported(self) -> Usage | None:
        """By how much the totals grew, which is Codex's own sum; None when it told no total."""
        return None if self._reported is None else _usage(self._reported)

    def inherit(self, payload: JsonRecord) -> None:
        """Take note of a total that a fork copied, which none of its own calls is part of."""
        total = _total_of(payload)
        self._total = self._total if total is None else total

    def restart(self) -> None:
        """Take the next total as one that goes on from elsewhere: turns were taken back."""
        self._total = None

    def read(self, payload: JsonRecord) -> Usage | None:
        """Return the cost of the call that a ``token_count`` counts; None when it is no new one."""
        last = _counts(mapping(payload.get("info")).get("last_token_usage"))
        return self._call(_total_of(payload), last)

    def read_record(self, payload: JsonRecord) -> Usage | None:
        """Return the cost of the call that a ``token_usage_record`` is about; None for nothing."""
        self.has_records = True
        return self._call(_total_of(payload), _counts(payload.get("usage")))

    def _call(self, total: list[int] | None, last: list[int] | None) -> Usage | None:
        before, self._total = self._total, total or self._total
        if total is not None:
            if total == before:
                return None
            if before is not None and all(map(ge, total, before)):
                grown = list(map(sub, total, before))
            else:
                grown = total if last is None else last
            last = grown if last is None else last
            self._reported = list(map(add, self._reported or _NONE, grown))
        if last is None or not any(last):
            return None
        self.calls += 1
        return _usage(last)


_NONE = [0] * len(_FIELDS)


def _total_of(payload: JsonRecord) -> list[int] | None:
    info = payload.get("info")
    if type(info) is dict:
        return _counts(info.get("total_token_usage"))
    return _counts(
        payload.get("thread_token_usage", payload if "input_tokens" in payload else None)
    )


def _counts(usage: Any) -> list[int] | None:
    return whole_numbers(usage, *_FIELDS) if type(usage) is dict else None


def _usage(counts: list[int]) -> Usage:
    """Return counts as usage: Codex's input includes what was cached and what was written."""
    given, cached, written, output = counts
    return Usage(max(0, given - cached - written), output, written, cached)
