"""Sessions made to move whoever judges them, and what they managed in a prompt."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import structs

from debrief.sessions.actions import described
from debrief.sessions.model import Message, Session, ToolCall, Turn

SHARED = Path(__file__).parents[1] / "../shared/cases/injection_cases.jsonl"
FENCE = re.compile(r"<<<data ([0-9a-f]{32})>>>\n(.*?)\n<<<end of data \1>>>", re.DOTALL)
LINE_ENDS = re.compile(r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
OURS = re.compile(
    r"(?:===.*(?:chat|end) session|total turns:|--- turn \d|\[(?:user|assistant|tool_calls"
    r"|tool_results|subagents|system)\]|score:|reasoning:|\[\[ ## |<<<|### (?:signals|to be scored"
    r"|what the task is|what the person said|repeated for context|the person's last words)$)",
    re.IGNORECASE,
)
CHAT_TOKENS = re.compile(
    r"<\|[^|\n¦]{1,60}\|>(?!¦)|\[/?INST\](?!¦)|</s>(?!¦)|\n\n(?:Human|System):"
)


def attacked(base: Session, payload: str, channel: str = "user") -> Session:
    """A session like ``base`` with two turns, that carries ``payload`` in one place."""

    def text(name: str, otherwise: str) -> str:
        return payload if channel == name else otherwise

    call = described(
        ToolCall(
            id="c",
            name=text("tool_name", "Read"),
            input=json.dumps({"file_path": text("file_name", "a.py")}),
            result=text("tool_result", "ok"),
            status="ok",
        )
    )
    message = Message(id="m", model="m", text=text("assistant", "Done."), calls=(call,))
    turns = tuple(
        Turn(number=number, prompt=prompt, messages=(message,))
        for number, prompt in enumerate((text("user", "Please look."), "ok"), 1)
    )
    branch = text("git_branch", "main")
    return structs.replace(base, turns=turns, branch=branch, repository="shop", digest="")


def shared_cases() -> Iterator[dict[str, Any]]:
    """The cases of the shared collection, if it is there."""
    lines = SHARED.read_text(encoding="utf-8").splitlines() if SHARED.is_file() else []
    for line in lines:
        case = json.loads(line)
        made = case["payload_gen"]
        case["text"] = case["payload"] or made["pre"] * min(made["pre_n"], 60_000) + made["post"]
        if case["channel"] not in ("plan_id", "task_id"):
            yield case


def marker_lines(prompt: str) -> int:
    lines = (" ".join(unicodedata.normalize("NFKC", x).split()) for x in LINE_ENDS.split(prompt))
    return sum(bool(OURS.match(line.lstrip())) for line in lines)


def faults_of(prompt: str, clean: str) -> Iterator[str]:
    """What a hostile text managed in a prompt, against the prompt of a harmless one."""
    blocks = list(FENCE.finditer(prompt))
    if len(blocks) != 1 or prompt.count("<<<data ") - prompt.count("¦ <<<data ") != 1:
        yield "not one block"
        return
    hidden = {
        c for c in prompt if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t"
    }
    if hidden:
        yield f"hidden {hidden}"
    if marker_lines(prompt) != marker_lines(clean):
        yield f"{marker_lines(prompt)} lines like ours, not {marker_lines(clean)}"
    if tokens := CHAT_TOKENS.findall(blocks[0][2]):
        yield f"chat tokens {tokens}"
