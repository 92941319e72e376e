"""What the output of a Codex call says: its text, exit code and whether it failed."""

from __future__ import annotations

import re
from typing import Any

import orjson
from msgspec import Struct

from debrief.sessions.readers.jsonl import string

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
_PICTURES = ("image", "input_image", "input_audio", "input_file")
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
    if isinstance(value, list):
        return _judged(_lines_of(value), success)
    if isinstance(value, dict):
        return _from_object(value, success)
    if not isinstance(value, str):
        return Output("" if value is None else _dumped(value))
    if value.startswith('{"output"'):
        try:
            decoded = orjson.loads(value)
        except orjson.JSONDecodeError:
            decoded = None
        if isinstance(decoded, dict):
            return _from_object(decoded, success)
    return _judged(value, success)


def _from_object(value: dict[str, Any], success: Any) -> Output:
    inner = value.get("output", value.get("content"))
    if isinstance(inner, list):
        text = _lines_of(inner)
    else:
        text = inner if isinstance(inner, str) else _dumped(value)
    metadata = value.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    if not isinstance(code, int):
        return _judged(text, value.get("success", success))
    return Output(text, code != 0, code)


def _judged(text: str, success: Any) -> Output:
    code = _EXIT_CODE.search(text, 0, _HEAD)
    exit_code = int(code[1]) if code else _exit_code_in_script(text)
    failed = (
        success is False
        or bool(exit_code)
        or (exit_code is None and _FAILURE.match(text[:_FAILURE_HEAD].lstrip()) is not None)
    )
    return Output(text, failed, exit_code)


def _exit_code_in_script(text: str) -> int | None:
    """Return the first failure that a script tells of its commands as JSON, else their 0."""
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
    return f"[{kind}]" if kind in _PICTURES or len(block) == 1 else _dumped(block)


def _dumped(value: Any) -> str:
    return orjson.dumps(value).decode()
