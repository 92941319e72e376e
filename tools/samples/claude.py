"""Writes a story down as Claude Code does: ``<session>.jsonl`` and one file a subagent."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tools.samples import chance
from tools.samples.claude_calls import call_input, call_result, tool_name
from tools.samples.events import (
    ApiError,
    Call,
    Compaction,
    Event,
    Interruption,
    Prompt,
    Queued,
    Reply,
    SlashCommand,
)
from tools.samples.story import Story, dashed, encode, join, stamp

Record = dict[str, Any]
_SUBAGENT_MODEL = "claude-haiku-4-5-20251001"
_FIRST_CONTEXT = 15_800


def write_claude(story: Story) -> dict[str, bytes]:
    """Return the story's files by path below ``projects``."""
    folder = dashed(story.cwd)
    main = _Transcript(story)
    main.write(story.events)
    files = {f"{folder}/{story.session_id}.jsonl": join(main.finish())}
    for agent, transcript in main.children.items():
        path = f"{folder}/{story.session_id}/subagents/agent-{agent}.jsonl"
        files[path] = join(transcript.records)
    return files


class _Transcript:
    """One file in the making: its records, its chain of parents, and its context's size."""

    def __init__(self, story: Story, agent: str = "") -> None:
        self.story = story
        self.agent = agent
        self.records: list[Record] = []
        self.children: dict[str, _Transcript] = {}
        self.parent: str | None = None
        self.context = 0
        self.unsent = 0
        self.turn_began = story.started
        self.last_prompt = ""
        self.tracked: dict[str, Record] = {}

    def write(self, events: tuple[Event, ...]) -> None:
        """Append the records of what happened."""
        if not self.agent:
            self._loose({"type": "permission-mode", "permissionMode": "default"})
        for event in events:
            match event:
                case Prompt():
                    self._prompt(event)
                case Reply():
                    self._reply(event)
                case Interruption():
                    what = " for tool use" if event.during_call else ""
                    words = f"[Request interrupted by user{what}]"
                    self._user([{"type": "text", "text": words}], event.at)
                case Queued():
                    self._queued(event)
                case SlashCommand():
                    self._slash(event)
                case Compaction():
                    self._compaction(event)
                case ApiError():
                    self._api_error(event)

    def finish(self) -> list[Record]:
        """Return the records with those that close the file."""
        self._loose({"type": "last-prompt", "lastPrompt": self.last_prompt[:200]})
        return self.records

    def _prompt(self, event: Prompt) -> None:
        if not self.agent:
            self._snapshot(event.at, is_update=False)
        self._user(event.text, event.at)
        self.turn_began = event.at
        self.last_prompt = event.text

    def _reply(self, event: Reply) -> None:
        blocks: list[Record] = []
        if event.thinking:
            signature = chance.letters(80, self.story.name, self.agent, event.number, "thinking")
            blocks.append(
                {"type": "thinking", "thinking": event.thinking, "signature": signature + "=="}
            )
        if event.text:
            blocks.append({"type": "text", "text": event.text})
        blocks += [
            {
                "type": "tool_use",
                "id": self._call_id(call),
                "name": tool_name(call),
                "input": call_input(call, self.story.cwd),
            }
            for call in event.calls
        ]
        written = sum(len(encode(block)) for block in blocks)
        unseen = chance.number(20, 260, self.story.name, self.agent, event.number, "unseen")
        output = unseen + written * 10 // 36
        usage = self._usage()
        grows = chance.fraction(self.story.name, self.agent, event.number, "grows") < 0.3
        asked_by: dict[int, str] = {}
        for place, block in enumerate(blocks):
            last = place == len(blocks) - 1
            so_far = 1 + output * place // len(blocks) if grows and not last else output
            at = event.at + timedelta(milliseconds=340 * (place - len(blocks) + 1))
            uuid = self._assistant(event, block, {**usage, "output_tokens": so_far}, at)
            if place >= len(blocks) - len(event.calls):
                asked_by[place - (len(blocks) - len(event.calls))] = uuid
        self.unsent += output
        for place, call in enumerate(event.calls):
            self._result(call, asked_by[place])
        if event.number == 1 and not self.agent:
            self._loose({"type": "ai-title", "aiTitle": self.story.title})
        if event.ends_turn and not self.agent:
            took = round((event.at - self.turn_began).total_seconds() * 1000)
            self._system("turn_duration", event.at, durationMs=took, isMeta=False)

    def _assistant(self, event: Reply, block: Record, usage: Record, at: datetime) -> str:
        key = (self.story.name, self.agent, event.number)
        message = {
            "model": _SUBAGENT_MODEL if self.agent else self.story.model,
            "id": f"msg_01{chance.letters(22, *key, 'message')}",
            "type": "message",
            "role": "assistant",
            "content": [block],
            "stop_reason": "tool_use" if event.calls else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
        request = f"req_011C{chance.letters(20, *key, 'request')}"
        return self._chained({"message": message, "requestId": request, "type": "assistant"}, at)

    def _result(self, call: Call, asked_by: str) -> None:
        content, detail, is_error = call_result(call, self.story.cwd, self._agent_id(call))
        block = {"type": "tool_result", "tool_use_id": self._call_id(call), "content": content}
        if is_error or call.kind == "shell":
            block["is_error"] = is_error
        self._user(
            [block],
            call.at,
            toolUseResult=detail,
            sourceToolAssistantUUID=asked_by,
        )
        if call.kind == "task" and call.outcome == "ok":
            self._child(call)
        if call.kind in {"edit", "write"} and call.outcome == "ok" and not self.agent:
            self._track(call)

    def _child(self, call: Call) -> None:
        agent = self._agent_id(call)
        child = _Transcript(self.story, agent)
        began = call.events[0].at - timedelta(seconds=1) if call.events else call.at
        child._user(call.prompt, began)
        child.write(call.events)
        child._reply(
            Reply(number=1_000 + call.number, text=call.output, at=call.at, ends_turn=True)
        )
        self.children[agent] = child

    def _track(self, call: Call) -> None:
        name = chance.hexadecimal(16, call.path)
        version = self.tracked.get(call.path, {}).get("version", 0) + 1
        created = call.before is None
        self.tracked[call.path] = {
            "backupFileName": None if created else f"{name}@v{version}",
            "version": version,
            "backupTime": stamp(call.at),
        }
        self._snapshot(call.at, is_update=True)

    def _queued(self, event: Queued) -> None:
        at = stamp(event.at)
        enqueued = {"operation": "enqueue", "timestamp": at, "content": event.text}
        self._loose({"type": "queue-operation", **enqueued})
        self._loose({"type": "queue-operation", "operation": "remove", "timestamp": at})
        attachment = {"type": "queued_command", "prompt": event.text, "commandMode": "prompt"}
        self._chained({"attachment": attachment, "type": "attachment"}, event.at)
        self.unsent += len(event.text) // 4

    def _slash(self, event: SlashCommand) -> None:
        name = event.command.lstrip("/")
        gap = "\n            "
        self._user(
            f"<command-name>{event.command}</command-name>{gap}"
            f"<command-message>{name}</command-message>{gap}<command-args></command-args>",
            event.at,
        )
        self._user(f"<local-command-stdout>{event.output}</local-command-stdout>", event.at)

    def _compaction(self, event: Compaction) -> None:
        before = self.context + self.unsent
        logical, self.parent = self.parent, None
        self._system(
            "compact_boundary",
            event.at,
            content="Conversation compacted",
            logicalParentUuid=logical,
            isMeta=False,
            level="info",
            compactMetadata={"trigger": event.trigger, "preTokens": before},
        )
        self.context = 0
        self._user(event.summary, event.at, isVisibleInTranscriptOnly=True, isCompactSummary=True)
        self.unsent += _FIRST_CONTEXT

    def _api_error(self, event: ApiError) -> None:
        self._system(
            "api_error",
            event.at,
            level="error",
            error={"status": event.status, "error": {"type": "overloaded_error"}},
            retryInMs=1200.5,
            retryAttempt=1,
            maxRetries=10,
        )

    def _usage(self) -> Record:
        """Return the usage of the next call; what was sent before is read from the cache."""
        first = self.context == 0
        fresh = self.unsent + (_FIRST_CONTEXT if first else 0)
        read, self.context, self.unsent = self.context, self.context + fresh, 0
        return {
            "input_tokens": 3 + chance.number(0, 9, self.story.name, self.context),
            "cache_creation_input_tokens": fresh,
            "cache_read_input_tokens": read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": fresh,
                "ephemeral_1h_input_tokens": 0,
            },
            "service_tier": "standard",
        }

    def _user(self, content: Any, at: datetime, **more: Any) -> None:
        self.unsent += len(encode(content)) * 10 // 36
        self._chained({"type": "user", "message": {"role": "user", "content": content}, **more}, at)

    def _system(self, subtype: str, at: datetime, **more: Any) -> None:
        self._chained({"type": "system", "subtype": subtype, **more}, at)

    def _snapshot(self, at: datetime, *, is_update: bool) -> None:
        message = self.parent or chance.uuid_of(self.story.name, "first")
        snapshot = {
            "messageId": message,
            "trackedFileBackups": dict(self.tracked),
            "timestamp": stamp(at),
        }
        self.records.append(
            {
                "type": "file-history-snapshot",
                "messageId": message,
                "snapshot": snapshot,
                "isSnapshotUpdate": is_update,
            }
        )

    def _loose(self, record: Record) -> None:
        """Append a record that is outside the chain."""
        self.records.append({**record, "sessionId": self.story.session_id})

    def _chained(self, record: Record, at: datetime) -> str:
        uuid = chance.uuid_of(self.story.name, self.agent, len(self.records))
        envelope: Record = {
            "parentUuid": self.parent,
            "isSidechain": bool(self.agent),
            "userType": "external",
            "cwd": self.story.cwd,
            "sessionId": self.story.session_id,
            "version": self.story.version,
            "gitBranch": self.story.plan,
        }
        if self.agent:
            envelope["agentId"] = self.agent
        self.records.append({**envelope, **record, "uuid": uuid, "timestamp": stamp(at)})
        self.parent = uuid
        return uuid

    def _call_id(self, call: Call) -> str:
        return f"toolu_01{chance.letters(22, self.story.name, call.number, 'call')}"

    def _agent_id(self, call: Call) -> str:
        return chance.hexadecimal(8, self.story.name, call.number, "agent")
