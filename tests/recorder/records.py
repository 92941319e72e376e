"""A recorded session to start from, and ways to damage it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from debrief.recorder.contracts import (
    ApplyPatch,
    AssistantMessage,
    Call,
    CommandOutcome,
    CreateFile,
    DeleteFile,
    Function,
    Message,
    Meta,
    Operation,
    ReadFile,
    Record,
    RunCommand,
    SystemMessage,
    ToolMessage,
    UpdateFile,
    UserMessage,
)
from debrief.recorder.encoding import (
    PATCHED,
    TOOLS,
    decode,
    decode_record,
    encode_arguments,
    encode_record,
    upload_body,
)
from debrief.recorder.messages import changes_of
from debrief.recorder.storage.rows import NewBenchmark, NewRow, NewTask, Upload

FORMER = sorted((Path(__file__).parent / "former").glob("*.record.json"))
"""Records that recorders of versions 1 and 2 wrote."""
BEFORE = {
    "README.md": "# Shop\n\nRuns with Node.\n",
    "old.ts": "export const gone = 1;\n",
    "src/cart.ts": "export function total(prices: number[]) {\n  return prices.length;\n}\n",
}
"""Files of the baseline that the record touches."""
AFTER = {
    "README.md": "# Shop\n\nRuns with Node 22 and ünïcode.\n",
    "src/cart.ts": (
        "export function total(prices: number[]) {\n"
        "  return prices.reduce((sum, price) => sum + price, 0);\n}\n"
    ),
    "src/cart.test.ts": 'import { total } from "./cart";\n\ntest("total", () => {\n});',
}
"""The same files, and a new one, after the session."""


def hunks(before: str, after: str) -> str:
    """Return the unified hunks between two texts whose lines all end."""
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True))
    return "".join(list(lines)[2:])


def operations(before: Mapping[str, str], after: Mapping[str, str]) -> list[Operation]:
    """Return what turns some files into others."""
    gone, new = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    kept = [path for path in sorted(before.keys() & after.keys()) if before[path] != after[path]]
    return [
        *[DeleteFile(path=path) for path in gone],
        *[UpdateFile(path=path, diff=hunks(before[path], after[path])) for path in kept],
        *[CreateFile(path=path, diff=after[path]) for path in new],
    ]


def build(
    before: Mapping[str, str] = BEFORE,
    after: Mapping[str, str] = AFTER,
    earlier: Sequence[tuple[list[str], str]] = ((["lint"], "1 problem\n"),),
    final: Sequence[tuple[list[str], str]] = ((["--filter", "@shop/web", "test"], "1 passed\n"),),
    **meta: Any,
) -> Record:
    """Return a consistent record of a session that turned some files into others."""
    ops = operations(before, after)
    messages: list[Message] = [
        SystemMessage(content="Work carefully."),
        UserMessage(content="Make the total right."),
    ]
    commands: list[CommandOutcome] = []

    def call(name: Any, arguments: str, result: str) -> str:
        id = f"call{len(messages) // 2:05}"
        function = Function(name=name, arguments=arguments)
        messages.append(AssistantMessage(tool_calls=[Call(id=id, function=function)]))
        messages.append(ToolMessage(tool_call_id=id, content=result))
        return id

    def run(args: list[str], output: str, exit_code: int) -> None:
        command = encode_arguments(RunCommand(cmd="pnpm", args=args, cwd="."))
        call_id = call("run_cmd", command, output)
        commands.append(CommandOutcome(call_id=call_id, exit_code=exit_code, duration_ms=1200))

    for op in sorted(ops, key=lambda op: op.path):
        if not isinstance(op, CreateFile):
            call("repo.readFile", encode_arguments(ReadFile(path=op.path)), before[op.path])
    for args, output in earlier:
        run(args, output, 1)
    call("apply_patch", encode_arguments(ApplyPatch(ops=ops)), PATCHED)
    for args, output in final:
        run(args, output, 0)
    messages.append(AssistantMessage(content="The total is right now."))
    facts: dict[str, Any] = {
        "session_id": UUID("7f2c1a52-90c6-4d0e-9f61-0c3f5f4c8a11"),
        "task_id": "cart",
        "recorder": "debrief 0.1.0",
        "repo_name": "shop",
        "repo_remote": "git@example.org:shop/shop.git",
        "branch": "main",
        "base_ref": "1" * 40,
        "final_tree": "2" * 40,
        "started_at": datetime(2026, 11, 2, 9, 0, tzinfo=UTC),
        "stopped_at": datetime(2026, 11, 2, 9, 42, tzinfo=UTC),
        "verified": True,
        "commands": commands,
    }
    return Record(messages=messages, tools=list(TOOLS), meta=Meta(**(facts | meta)))


def upload_of(record: Record) -> Upload:
    """Return what a client sends of a record, as the service reads it."""
    return decode(Upload, upload_body(encode_record(record), record.meta), "body")


def as_json(record: Record) -> Any:
    """Return the record as plain JSON values, to be damaged."""
    return json.loads(encode_record(record))


Damage = Callable[[Any], object]
GONE = object()


def put(way: str, value: object) -> Damage:
    """Set the value at a way such as ``meta.commands.0.cwd``, or take it away."""

    def damage(record: Any) -> None:
        *steps, last = [int(step) if step.isdigit() else step for step in way.split(".")]
        for step in steps:
            record = record[step]
        if value is GONE:
            del record[last]
        else:
            record[last] = value

    return damage


def damaged(damage: Damage, record: Record | None = None) -> bytes:
    """Return the bytes of a record that was damaged in one place."""
    content = as_json(record or build())
    damage(content)
    return json.dumps(content).encode()


def without_contents() -> Record:
    """Return a session of which the record tells that files changed, and not how."""
    record = as_json(whole := build())
    opening, early, late = slice(0, 2), slice(8, 10), slice(12, None)
    record["messages"] = [
        one for part in (opening, early, late) for one in record["messages"][part]
    ]
    record["messages"][3]["content"] = record["messages"][5]["content"] = ""
    changes = [change.model_dump() for change in changes_of(whole)]
    record["meta"] |= {"contents": "none", "changes": changes}
    for number, command in enumerate(record["meta"]["commands"]):
        command["onFinalTree"] = bool(number)
    return decode_record(json.dumps(record).encode())


TEXT = b'{"tools": [], "messages": [], "meta": {"b": "\\u00fc", "a": 1, "a": 2}}'
"""What jsonb would not give back: it is in an order of its own, and says one thing twice."""


def task(id: str = "cart") -> NewTask:
    return NewTask(id=id, name=id.title())


def row(**given: Any) -> NewRow:
    text = given.setdefault("text", TEXT)
    facts: dict[str, Any] = {
        "id": uuid4(),
        "task_id": "cart",
        "repo_name": "shop",
        "repo_remote": "git@example.org:shop/shop.git",
        "branch": None,
        "base_ref": "1" * 40,
        "created_at": datetime(2026, 11, 2, 9, 42, tzinfo=UTC),
        "sha256": sha256(text).hexdigest(),
        "verified": True,
        "files": 3,
        "validated": True,
        "redactions": 0,
    }
    return NewRow(**(facts | given))


def benchmark(**given: Any) -> NewBenchmark:
    return NewBenchmark(
        **{"value": 0.5, "adapter": "cart-lora", "version": "3", "metric": "pass", **given}
    )
