"""A server of tools (MCP over stdio) with one tool, which knows one note: programs start it."""

from __future__ import annotations

import json
import sys
from typing import Any

NOTES = {"add": "add() takes two numbers."}
_TOOL = {
    "name": "look_up",
    "description": "Look a note up by its name.",
    "inputSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
}


def _answer(method: str, given: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a method brings; None for one that is not known."""
    if method == "initialize":
        about = {"name": "notes", "version": "1.0.0"}
        version = given.get("protocolVersion", "2025-06-18")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [_TOOL]}
    if method == "tools/call":
        name = given["arguments"]["name"]
        text = NOTES.get(name, f"There is no note named {name}.")
        return {"content": [{"type": "text", "text": text}], "isError": name not in NOTES}
    return {} if method == "ping" else None


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and "method" in asked:
        result = _answer(asked["method"], asked.get("params") or {})
        unknown = {"error": {"code": -32601, "message": "Method not found"}}
        answer = unknown if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
