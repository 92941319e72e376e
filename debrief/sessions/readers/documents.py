"""Transcripts that are one JSON document with a list of messages, whole or cut short."""

from __future__ import annotations

import json
import re
from pathlib import Path

import orjson

from debrief.sessions.model import Problem, TranscriptRef
from debrief.sessions.readers.jsonl import Record, load_json, mend

_MESSAGES = re.compile(r'"messages"\s*:\s*\[')
_DECODER = json.JSONDecoder(strict=False)
_BETWEEN = re.compile(r"[\s,]*")


def read_document(path: str) -> tuple[Record, TranscriptRef, list[Problem]]:
    """Read a document; of a broken one, what stands before its ``messages`` and those till there.

    Raises:
        ValueError: nothing of it can be read.
        OSError: the file cannot be read.
    """
    try:
        document, ref, problems = load_json(path)
    except ValueError as error:
        data = Path(path).read_bytes()
        document, line = _salvaged(data.decode(errors="replace"), error)
        from hashlib import sha256

        ref = TranscriptRef(path=path, digest=sha256(data).hexdigest(), size=len(data), records=1)
        count = len(document["messages"])
        reason = f"the document is broken or cut short here; {count} messages stand before it"
        problems = [Problem(path=path, line=line, reason=reason)]
    if type(document) is not dict:
        raise ValueError("holds no JSON object")
    return document, ref, problems


def _salvaged(text: str, error: ValueError) -> tuple[Record, int]:
    start = _MESSAGES.search(text)
    if start is None:
        raise ValueError(f"not JSON: {error}") from error
    try:
        document = orjson.loads(text[: start.end()] + "]}")
    except orjson.JSONDecodeError:
        raise ValueError(f"not JSON: {error}") from error
    messages = []
    at = start.end()
    while True:
        between = _BETWEEN.match(text, at)
        at = between.end() if between else at
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        messages.append(mend(value))
    document["messages"] = messages
    return document, text.count("\n", 0, at) + 1
