"""The steps of a trajectory: who speaks in each, its calls, what came back, and what it cost."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from zlib import crc32

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.codex import records as codex
from debrief.sessions.readers.codex.calls import read_output
from debrief.sessions.readers.documents import JsonRecord
from debrief.sessions.readers.patches import edit_of_arguments
from debrief.sessions.readers.timeline import CallDraft, MessageDraft
from debrief.sessions.readers.values import (
    first_string,
    mapping,
    mappings,
    moment,
    string,
    text_of,
    whole_numbers,
)

_COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens")
TOTALS = tuple(f"total_{name}" for name in _COUNTS)
_WRITTEN = frozenset(
    f"{prefix}{name}"
    for prefix in ("", "total_")
    for name in ("cache_creation_input_tokens", "cache_creation_tokens", "cache_write_tokens")
)
"""What agents call the tokens written to a cache, for which the format has no name."""


class Counts:
    """Reads the metrics of one trajectory.

    By the format, prompt tokens are all that went in. Some agents leave out what was read from a
    cache or written to it, which shows where these are more than the whole.
    """

    def __init__(self, steps: Iterable[JsonRecord], totals: Any) -> None:
        self._has_read = self._has_written = True
        metrics = [each for step in steps if type(each := step.get("metrics")) is dict]
        counted = [_counts(metric, _COUNTS) for metric in metrics]
        for prompt, _, read, written in (*counted, _counts(mapping(totals), TOTALS)):
            self._has_read &= read <= prompt
            self._has_written &= read + written <= prompt
        self._written = sum(written for *_, written in counted)

    def of_step(self, metrics: JsonRecord) -> Usage:
        """Return the tokens of one step."""
        return self._usage(*_counts(metrics, _COUNTS))

    def total(self, totals: JsonRecord) -> Usage:
        """Return the tokens of the whole; only steps may have those written to a cache."""
        prompt, output, read, written = _counts(totals, TOTALS)
        return self._usage(prompt, output, read, written or self._written)

    def _usage(self, prompt: int, output: int, read: int, written: int) -> Usage:
        prompt -= read if self._has_read else 0
        prompt -= written if self._has_written else 0
        return Usage(max(0, prompt), output, written, read)


def _counts(metrics: JsonRecord, names: tuple[str, ...]) -> tuple[int, int, int, int]:
    extra = mapping(metrics.get("extra"))
    prompt, output, read = whole_numbers(metrics, *names)
    written = max(whole_numbers(extra, *(extra.keys() & _WRITTEN)), default=0) if extra else 0
    return prompt, output, read, written


_EDITING = re.compile(
    r"(?:multi_?)?edit(?:_file)?|write(?:_file|_to_file)?|create(?:_file)?|replace(?:_in_file)?"
    r"|(?:apply_?)?patch|str_replace(?:_editor|_based_edit_tool)?|search_replace",
    re.IGNORECASE,
)
_COMPACTION = re.compile(r"summari[sz]|compact", re.IGNORECASE)
_CODES = ("exit_code", "exec_exit_code", "exitCode", "returncode", "return_code")
_CODE = re.compile(r'"\w+":\s*(-?\d{1,9})\b')
_CODE_IN_TEXT = re.compile(r"<returncode>(-?\d{1,9})</returncode>")
_FAILED = ("error", "failed", "failure", "timeout")
_TAIL = 4_000


class Steps:
    """Reports the steps of one trajectory to its draft's timeline, in the light of those before."""

    def __init__(self, draft: TranscriptDraft, counts: Counts) -> None:
        self._draft = draft
        self._counts = counts
        self._begun = False
        """A person or the model has spoken."""
        self._handed_over = False
        """The conversation was summed up, and what the model was given then is still to come."""
        self._open = deque[CallDraft]()
        """Calls of earlier steps, those without a result among them."""
        self.system: list[str] = []
        """What the agent's program says before anyone else."""
        self._seen = set[str]()
        self.is_partial = False
        """Steps were left out that another trajectory, or an earlier step, has already."""

    def add(self, step: JsonRecord) -> None:
        """Take one step."""
        when, extra = step.get("timestamp"), mapping(step.get("extra"))
        asked = mappings(step.get("tool_calls"))
        results = mappings(mapping(step.get("observation")).get("results"))
        if step.get("is_copied_context") is True or self._is_repeated(when, asked, extra):
            self.is_partial = True
            return
        at = moment(when)
        draft = self._draft
        draft.see(at)
        refers = bool(results) and self._refer(results)
        if extra.get("is_sidechain") is True:  # Claude Code's subagents, as Harbor writes them
            draft = draft.agent(string(extra.get("agent_id")) or "sidechain")
        source = step.get("source")
        if source == "agent":
            self._begun = True
            self._answer(draft, step, asked, results, extra, at)
        elif source == "user":
            self._begun = True
            self._ask(draft, step.get("message"), at)
        elif source == "system":
            self._note(text_of(step.get("message")), refers, at)

    def _is_repeated(self, when: Any, asked: list[JsonRecord], extra: JsonRecord) -> bool:
        """Return whether a step was recorded before, as OpenClaw does with what it shortens."""
        answered = extra.get("tool_call_id")
        if type(when) is not str or not (asked or answered):
            return False
        first = asked[0].get("tool_call_id") if asked else ""
        known = len(self._seen)
        self._seen.add(f"{when} {first} {answered}")
        return len(self._seen) == known

    def _note(self, text: str, refers: bool, at: datetime | None) -> None:
        """Take what the agent's program says: its system prompt, or what happens."""
        if refers and _COMPACTION.search(text):
            self._draft.timeline.compact()
            self._handed_over = True
        elif self._begun:
            self._draft.timeline.add_context("program", text, at)
        else:
            self.system.append(text)

    def _ask(self, draft: TranscriptDraft, content: Any, at: datetime | None) -> None:
        timeline = draft.timeline
        said = codex.said({"content": content})
        draft.add_instructions(filter(None, map(codex.instructions_in, said.notes)), "message")
        if self._handed_over:
            self._handed_over, timeline.summary = False, said.words
            return
        images = sum(part.get("type") == "image" for part in mappings(content))
        if said.words.strip() or images:
            for note in said.notes:
                if codex.instructions_in(note) is None:
                    timeline.add_context(codex.source_of(note), note, at)
            timeline.prompt(said.words, at, images=images)
        else:
            timeline.add_context("program", "\n\n".join(said.notes), at)

    def _answer(
        self,
        draft: TranscriptDraft,
        step: JsonRecord,
        asked: list[JsonRecord],
        results: list[JsonRecord],
        extra: JsonRecord,
        at: datetime | None,
    ) -> None:
        timeline, text = draft.timeline, text_of(step.get("message"))
        if results and not asked and "metrics" not in step:
            returned = "\n".join(text_of(result.get("content")) for result in results)
            if text in ("", returned):  # a step for what came back alone
                self._results(draft, results, [], extra, at)
                return
        model = string(step.get("model_name")) or self._draft.model
        # Numbers begin again where a trajectory goes on in another file.
        mark = crc32(f"{step.get('timestamp')} {text}".encode(errors="replace"))
        message = timeline.begin_message(f"step-{step.get('step_id')}-{mark:08x}", model, at)
        calls: list[CallDraft] = []
        for call in asked:
            id, name = string(call.get("tool_call_id")), string(call.get("function_name"))
            calls.append(timeline.call(message, id, name, call.get("arguments"), at))
            if text in (f"Executed {name} {id}", f"Using tool: {name}"):
                text = ""  # nobody said so: converters fill the field
        message.texts.append(text)
        message.thoughts.append(string(step.get("reasoning_content")))
        if type(metrics := step.get("metrics")) is dict:
            timeline.spend(self._counts.of_step(metrics))
        if results:
            self._results(draft, results, calls, extra, at, message)
        self._open += calls

    def _results(
        self,
        draft: TranscriptDraft,
        results: list[JsonRecord],
        calls: list[CallDraft],
        extra: JsonRecord,
        at: datetime | None,
        message: MessageDraft | None = None,
    ) -> None:
        """Give results to the calls that they name; others go to calls in their order.

        Where there are fewer of them than calls, as of a terminal's screen, they are the last
        calls'. What came back without any call answers one of which nothing else is known.
        """
        unnamed: list[JsonRecord] = []
        alone = extra if len(results) == 1 else {}
        for result in results:
            id = string(result.get("source_call_id")) or string(alone.get("tool_call_id"))
            call = draft.timeline.calls.get(id) if id else None
            if call is not None:
                _end(draft, call, result, alone, at)
            elif id:
                draft.orphan_results += 1
            elif "content" in result:
                unnamed.append(result)
        free = deque(calls) if calls else self._open
        waiting = sum(call.status == "unanswered" for call in calls)
        for _ in range(waiting - len(unnamed) if unnamed else 0):
            if call := _unanswered(free):
                draft.timeline.result(call, None, failed=False, at=at, edit=_edit(call))
        for result in unnamed:
            if call := _unanswered(free):
                _end(draft, call, result, alone, at)
            elif message is not None:
                _end(draft, draft.timeline.call(message, "", "", None, at), result, alone, at)
            else:
                draft.orphan_results += 1

    def _refer(self, results: list[JsonRecord]) -> bool:
        """Note which calls started the trajectories that results refer to, if they do."""
        found = False
        for result in results:
            for reference in mappings(result.get("subagent_trajectory_ref")):
                for name in ("trajectory_id", "session_id"):
                    child, call = string(reference.get(name)), string(result.get("source_call_id"))
                    if child:
                        self._draft.child_calls.setdefault(child, call)
                found = True
        return found


def _unanswered(calls: deque[CallDraft]) -> CallDraft | None:
    """Take calls out up to the first without a result; None when all have one."""
    while calls:
        call = calls.popleft()
        if call.status == "unanswered":
            return call
    return None


def _end(
    draft: TranscriptDraft,
    call: CallDraft,
    result: JsonRecord,
    of_step: JsonRecord,
    at: datetime | None,
) -> None:
    """Answer a call; how it ended has no place in the format, so agents add it each in its way."""
    content = result.get("content")
    text = None if content is None else text_of(content)
    details = {**of_step, **mapping(of_step.get("tool_result_metadata"))} if of_step else {}
    details |= mapping(result.get("extra"))
    code, failed = _exit_code(details, text or ""), False
    if details:
        failed = True in (details.get("is_error"), details.get("tool_result_is_error"))
        failed = failed or first_string(details, "exec_status", "status") in _FAILED
    if draft.tool == "codex" and code is None:
        read = read_output(text)
        failed, code = failed or read.failed, read.exit_code
    draft.timeline.result(call, text, failed=failed, at=at, exit_code=code, edit=_edit(call))


def _edit(call: CallDraft) -> Any:
    name = call.name.rpartition("__")[2]
    return edit_of_arguments(call.arguments) if _EDITING.fullmatch(name) else None


def _exit_code(details: JsonRecord, text: str) -> int | None:
    """Return a command's exit code, where an agent has it beside or within what was printed."""
    codes = [details.get(name) for name in _CODES] if details else []
    if text.startswith("{"):
        end = max(0, len(text) - _TAIL)
        places = (text.rfind(f'"{name}":', end) for name in _CODES)
        codes += [int(code[1]) for at in places if at >= 0 and (code := _CODE.match(text, at))]
    elif text.startswith("<returncode>") and (code := _CODE_IN_TEXT.match(text)):
        codes.append(int(code[1]))
    return next((code for code in codes if type(code) is int and abs(code) < 1 << 31), None)
