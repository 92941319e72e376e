"""Writes a story down as Factory droid does: ``<id>.jsonl`` and ``<id>.settings.json``."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from debrief.errors import InputError
from tools.samples import chance
from tools.samples.events import Call, Compaction, Interruption, Prompt, Queued, Reply
from tools.samples.story import Story, encode, join, stamp
from tools.samples.tree import hunks_of

Record = dict[str, Any]
_CANCELLED = "Error: Tool execution cancelled by user"
_MARKS = {"pending": "[pending]", "in_progress": "[in_progress]", "completed": "[completed]"}
_FIRST_CONTEXT = 11_400


def write_droid(story: Story) -> dict[str, bytes]:
    """Return the story's files by path below ``sessions``."""
    writer = _Transcript(story)
    writer.write()
    stem = f"{story.cwd.replace('/', '-')}/{story.session_id}"
    settings = json.dumps(writer.settings(), indent=2) + "\n"
    return {f"{stem}.jsonl": join(writer.records), f"{stem}.settings.json": settings.encode()}


class _Transcript:
    """One file in the making, and what its settings file will say of it."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.records: list[Record] = []
        self.parent = ""
        self.turn = ""
        self.unsent = 0
        self.context = 0
        self.spent = {"input": 0, "output": 0, "cache": 0, "thinking": 0}
        self.active = 0.0

    def write(self) -> None:
        """Append the records of the whole story."""
        self.records.append(
            {
                "type": "session_start",
                "id": self.story.session_id,
                "title": self.story.title,
                "sessionTitle": self.story.title,
                "owner": "sam",
                "version": 2,
                "cwd": self.story.cwd,
            }
        )
        self._surroundings()
        for event in self.story.events:
            match event:
                case Prompt() | Queued():
                    self._message("user", [{"type": "text", "text": event.text}], event.at)
                    self.turn = self.parent
                case Reply():
                    self._reply(event)
                case Interruption():
                    self._outcome("cancelled")
                case Compaction():
                    self._compaction(event)
                case _:
                    raise InputError(self.story.name, f"droid knows no {type(event).__name__}")

    def settings(self) -> Record:
        """Return the settings file: the only place where droid counts tokens."""
        usage = {
            "inputTokens": self.spent["input"],
            "outputTokens": self.spent["output"],
            "cacheCreationTokens": 0,
            "cacheReadTokens": self.spent["cache"],
            "thinkingTokens": self.spent["thinking"],
            "factoryCredits": 0,
        }
        return {
            "assistantActiveTimeMs": round(self.active * 1000),
            "model": self.story.model,
            "reasoningEffort": "medium",
            "interactionMode": "auto",
            "autonomyLevel": "low",
            "autonomyMode": "auto-low",
            "providerLock": "openai" if self.story.model.startswith("gpt") else "anthropic",
            "providerLockTimestamp": stamp(self.story.started),
            "tokenUsage": usage,
            "inclusiveTokenUsage": usage,
        }

    def _surroundings(self) -> None:
        told = (
            "<system-reminder>\n\nUser system info (linux)\nModel: "
            f"{self.story.model}\nToday's date: {self.story.started.date()}\n\n% pwd\n"
            f"{self.story.cwd}\n\n% git rev-parse --abbrev-ref HEAD\n{self.story.plan}\n"
            "</system-reminder>"
        )
        identity = f"context-{chance.uuid_of(self.story.name, 'context')}"
        self.records.append(
            {
                "type": "message",
                "id": identity,
                "timestamp": stamp(self.story.started),
                "message": {
                    "role": "user",
                    "content": [{"type": "text", "text": told}],
                    "visibility": "llm_only",
                },
            }
        )
        self.parent = identity

    def _reply(self, event: Reply) -> None:
        blocks: list[Record] = []
        if event.thinking:
            blocks.append({"type": "thinking", "thinking": event.thinking, "signature": ""})
        if event.text:
            blocks.append({"type": "text", "text": event.text})
        for call in event.calls:
            name, arguments = self._asked(call)
            blocks.append(
                {"type": "tool_use", "id": self._call_id(call), "name": name, "input": arguments}
            )
        self._spend(event, blocks)
        self._message("assistant", blocks, event.at)
        for call in event.calls:
            if call.kind == "todo":
                self._todo_state(call)
        if event.calls:
            results = [self._result(call) for call in event.calls]
            self._message("user", results, event.calls[-1].at)
        elif event.ends_turn:
            self._outcome("completed")

    def _asked(self, call: Call) -> tuple[str, Record]:
        path = f"{self.story.cwd}/{call.path}"
        match call.kind:
            case "read":
                return "Read", {"file_path": path}
            case "grep":
                where = path if call.path else self.story.cwd
                return "Grep", {"pattern": call.pattern, "path": where, "output_mode": "content"}
            case "shell":
                return "Execute", {
                    "command": call.command,
                    "timeout": 120,
                    "riskLevel": "low",
                    "riskLevelReason": "Runs inside the worktree",
                }
            case "write":
                return "Create", {"file_path": path, "content": call.after}
            case "todo":
                return "TodoWrite", {"todos": _numbered(call)}
            case "edit" if self.story.model.startswith("gpt"):
                return "ApplyPatch", {"input": _patch(call, path)}
            case "edit":
                return "Edit", {"file_path": path, "old_str": call.old, "new_str": call.new}
            case _:
                raise InputError(self.story.name, f"droid's stories have no {call.kind!r} calls")

    def _result(self, call: Call) -> Record:
        told, failed = self._told(call)
        self.unsent += len(told) * 10 // 36
        return {
            "type": "tool_result",
            "tool_use_id": self._call_id(call),
            "is_error": failed,
            "content": told,
        }

    def _told(self, call: Call) -> tuple[str, bool]:
        if call.outcome in {"rejected", "interrupted"}:
            return _CANCELLED + (f"\n\n{call.reason}" if call.reason else ""), True
        if call.outcome == "failed" and call.kind == "shell":
            return f"Error: Command failed (exit code: {call.exit_code or 1})\n{call.output}", True
        if call.outcome == "failed":
            return f"Error: {call.reason}", True
        match call.kind:
            case "todo":
                return "TODO List Updated", False
            case "edit" | "write":
                done = {"success": True, "file_path": f"{self.story.cwd}/{call.path}"}
                return encode(done), False
            case "shell":
                return f"{call.output}\n\n[Process exited with code 0]".lstrip(), False
            case _:
                return call.output or "No matches found", False

    def _todo_state(self, call: Call) -> None:
        self.records.append(
            {
                "type": "todo_state",
                "id": chance.uuid_of(self.story.name, len(self.records)),
                "timestamp": stamp(call.at),
                "todos": {"todos": _numbered(call)},
                "messageIndex": len(self.records),
            }
        )

    def _compaction(self, event: Compaction) -> None:
        self.records.append(
            {
                "type": "compaction_state",
                "id": chance.uuid_of(self.story.name, len(self.records)),
                "timestamp": stamp(event.at),
                "summaryText": event.summary,
                "anchorMessage": {"id": self.parent},
                "removedCount": len(self.records),
            }
        )
        self.context, self.unsent = 0, len(event.summary) // 4

    def _outcome(self, reason: str) -> None:
        self.records.append(
            {
                "type": "agent_turn_outcome",
                "turnId": self.turn,
                "reason": reason,
                "resultKind": "text",
            }
        )

    def _message(self, role: str, content: list[Record], at: datetime) -> None:
        identity = chance.uuid_of(self.story.name, len(self.records))
        message: Record = {"role": role, "content": content}
        if role == "assistant":
            message |= {"modelId": self.story.model, "reasoningEffort": "medium"}
        self.records.append(
            {
                "type": "message",
                "id": identity,
                "timestamp": stamp(at),
                "message": message,
                "parentId": self.parent,
            }
        )
        if role == "user":
            self.unsent += sum(len(block.get("text", "")) for block in content) * 10 // 36
        self.parent = identity

    def _spend(self, event: Reply, blocks: list[Record]) -> None:
        output = 10 + sum(len(encode(block)) for block in blocks) * 10 // 36
        fresh = self.unsent + (_FIRST_CONTEXT if self.context == 0 else 0)
        self.spent["input"] += fresh
        self.spent["cache"] += self.context
        self.spent["output"] += output
        self.spent["thinking"] += len(event.thinking) // 4
        self.context += fresh + output
        self.unsent = 0
        self.active += 3 + output / 60

    def _call_id(self, call: Call) -> str:
        return f"call_{chance.letters(24, self.story.name, call.number, 'call')}"


def _numbered(call: Call) -> str:
    return "\n".join(
        f"{number}. {_MARKS[todo.status]} {todo.text}" for number, todo in enumerate(call.todos, 1)
    )


def _patch(call: Call, path: str) -> str:
    """Return an edit in the patch format of ApplyPatch."""
    lines = ["*** Begin Patch", f"*** Update File: {path}"]
    if call.before is None:
        lines += ["@@", *(f"-{line}" for line in call.old.split("\n"))]
        lines += [f"+{line}" for line in call.new.split("\n")]
    else:
        for hunk in hunks_of(call.before, call.after):
            lines += ["@@", *hunk.lines]
    return "\n".join([*lines, "*** End Patch"])
