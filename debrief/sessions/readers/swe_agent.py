"""SWE-agent: ``<instance>.traj``, a run a document: its steps, and the history that was sent.

A step is what the model thought, the command that it gave, and what came back.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, TranscriptReader
from debrief.sessions.readers.documents import JsonRecord, compact_json
from debrief.sessions.readers.values import (
    decoded_arguments,
    mapping,
    mappings,
    string,
    text_of,
    whole_numbers,
)

_DOCUMENT = ".traj"
_INSTANCE = re.compile(r"[\w.-]+?__([\w.-]+)-\d+")
"""What SWE-bench calls a task: its owner, its repository and the number of a pull request."""
_ENDS = frozenset({
    "exit_api", "exit_command_timeout", "exit_context", "exit_cost", "exit_environment_error",
    "exit_error", "exit_format", "exit_total_execution_time",
})  # fmt: skip
"""Commands that the program itself puts down when it ends a run."""


class SweAgentReader(TranscriptReader):
    """Runs of SWE-agent, one document each."""

    source = "swe-agent"
    tool = "swe-agent"
    tools = ToolNames(run="bash")
    suffixes = (_DOCUMENT,)
    start = re.compile(rb'\A\s*\{\s*(?:"environment"\s*:\s*"[^"\\]*"\s*,\s*)?"trajectory"\s*:\s*\[')

    def describe(self, head: Head, path: str) -> Peek | None:
        """Return what a document says: runs have no ids, so all of it is read."""
        try:
            draft = self.read_file(path)
        except (OSError, ValueError, RecursionError):  # reading it says why
            return Peek(session_id=_identity(path, []))
        return Peek(session_id=draft.id) if draft.timeline.turns else None

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one run."""
        draft = TranscriptDraft(path)
        document = draft.load(path)
        steps = [step for _, step in draft.objects_in(document.get("trajectory"))]
        draft.id = _identity(path, steps)
        draft.task = Path(path).name.removesuffix(_DOCUMENT)
        if instance := _INSTANCE.fullmatch(draft.task):
            draft.repository = instance[1]
        draft.model = _model(document.get("replay_config"))
        _brief(mappings(document.get("history")), draft)
        for index, step in enumerate(steps):
            _step(index, step, draft)
        if steps:
            draft.cwd = _folder(steps[0].get("state"))
        stats = mapping(mapping(document.get("info")).get("model_stats"))
        draft.usage = Usage(*whole_numbers(stats, "tokens_sent", "tokens_received"))
        return draft


READER = SweAgentReader()


def _identity(path: str, steps: list[JsonRecord]) -> str:
    """Return a name for a run, of its file's and its first step's: each run has the same task."""
    digest = hashlib.sha256(compact_json(steps[:1]).encode(errors="replace")).hexdigest()
    return f"{Path(path).name.removesuffix(_DOCUMENT)}-{digest[:12]}"


def _model(config: Any) -> str:
    """Return the model that a run's configuration names, which newer versions keep as text."""
    settings = decoded_arguments(string(config))
    return string(mapping(mapping(settings.get("agent")).get("model")).get("name"))


def _folder(state: Any) -> str:
    """Return where the shell was, which older versions keep as text."""
    return string((mapping(state) or decoded_arguments(string(state))).get("working_dir"))


def _brief(history: list[JsonRecord], draft: TranscriptDraft) -> None:
    """Take what the model was told before its first answer: examples, and then its task."""
    told: list[str] = []
    for entry in history:
        text = text_of(entry.get("content"))
        if entry.get("is_demo") is True:
            draft.timeline.add_context("program", text, None)
        elif entry.get("role") == "system":
            draft.system_prompt = draft.system_prompt or text
        elif entry.get("role") == "user":
            told.append(text)
        elif entry.get("role") == "assistant":
            break
    if not told:
        return
    *examples, task = told
    for text in examples:
        draft.timeline.add_context("program", text, None)
    draft.timeline.prompt(task, None)


def _step(index: int, step: JsonRecord, draft: TranscriptDraft) -> None:
    timeline, action = draft.timeline, string(step.get("action")).strip()
    if action in _ENDS:
        return
    answer = timeline.begin_message(f"step-{index + 1}", draft.model, None)
    answer.texts.append(string(step.get("thought")))
    if not action:
        return
    call = timeline.call(answer, "", "bash", {"command": action}, None)
    observation = step.get("observation")
    if type(observation) is str:
        timeline.result(call, observation, failed=False, at=None)
