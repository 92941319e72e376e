"""Executables that behave as the programs do: shell scripts on the search path."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

_HEAD = """#!/bin/sh
at={folder}
number=1
until (set -C; : > "$at/asked.$number") 2> /dev/null; do number=$((number + 1)); done
cat > "$at/asked.$number"
printf '%s\\n' "$@" > "$at/arguments"
env > "$at/environment"
ls -A > "$at/files"
pwd > "$at/place"
echo $$ > "$at/pid"
"""


class StandIn:
    """A script in the place of a program, and what it was given."""

    def __init__(self, folder: Path, command: str) -> None:
        self.folder = folder / f"{command}-asked"
        self.folder.mkdir()
        self.path = folder / command

    def does(self, *lines: str) -> None:
        """Say what it does with a question, in shell."""
        head = _HEAD.format(folder=shlex.quote(str(self.folder)))
        self.path.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
        self.path.chmod(0o755)

    def says(self, said: object, *, code: int = 0) -> None:
        """Say what it answers to all: text, or what becomes JSON."""
        self.does(printed(said), f"exit {code}")

    def read(self, name: str) -> str:
        """Return what it noted: ``arguments``, ``environment``, ``files``, ``place``, ``pid``."""
        return (self.folder / name).read_text(encoding="utf-8")

    @property
    def asked(self) -> list[str]:
        """The questions that came by standard input, in turn."""
        paths = sorted(self.folder.glob("asked.*"), key=lambda path: int(path.suffix[1:]))
        return [path.read_text(encoding="utf-8") for path in paths]


def printed(said: object) -> str:
    """Return the line of shell that prints something."""
    text = said if isinstance(said, str) else json.dumps(said)
    return f"printf '%s\\n' {shlex.quote(text)}"


def claude(text: str = "Fine.", **changed: Any) -> dict[str, Any]:
    """Return an answer as Claude Code 2.1 prints it with ``--output-format json``."""
    model = {
        "inputTokens": 2001,
        "outputTokens": 301,
        "cacheReadInputTokens": 901,
        "cacheCreationInputTokens": 401,
        "costUSD": 0.0162092,
    }
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "num_turns": 1,
        "result": text,
        "stop_reason": "end_turn",
        "total_cost_usd": 0.0162092,
        "usage": {"input_tokens": 2001, "server_tool_use": {"web_search_requests": 0}},
        "modelUsage": {"claude-opus-5-5": model},
        "permission_denials": [],
        **changed,
    }


def claude_failure(words: str, status: int | None = None) -> dict[str, Any]:
    """Return what Claude Code prints where there is no answer."""
    return claude(words, is_error=True, api_error_status=status, modelUsage={}, total_cost_usd=0)


def codex(*items: dict[str, Any]) -> str:
    """Return the events of an answer as Codex 0.171 prints them with ``--json``."""
    usage = {
        "input_tokens": 3306,
        "cached_input_tokens": 902,
        "cache_write_input_tokens": 402,
        "output_tokens": 302,
        "reasoning_output_tokens": 20,
    }
    said = items or ({"id": "item_1", "type": "agent_message", "text": "Fine."},)
    events = [
        {"type": "thread.started", "thread_id": "01a21a40-0b24-7932-a9bd-e3fc4aeb83cd"},
        {"type": "turn.started"},
        {"type": "error", "message": "Reconnecting... 2/5"},
        *({"type": "item.completed", "item": item} for item in said),
        {"type": "turn.completed", "usage": usage},
    ]
    return "\n".join(map(json.dumps, events))


def gemini(text: str = "Fine.", *, calls: int = 0) -> dict[str, Any]:
    """Return an answer as Gemini CLI 0.61 prints it with ``--output-format json``."""
    tokens = {"input": 2003, "prompt": 2906, "candidates": 283, "cached": 903, "thoughts": 20}
    router = {"input": 10, "prompt": 100, "candidates": 5, "cached": 0, "thoughts": 1}
    return {
        "session_id": "8443c155-939a-408e-be6b-3dfcb77b862b",
        "response": text,
        "stats": {
            "models": {
                "gemini-3.1-pro-preview": {"tokens": tokens},
                "gemini-3.5-flash-lite": {"tokens": router},
            },
            "tools": {"totalCalls": calls},
        },
    }
