"""Uploads of plain clients: a task, a repository, a baseline and a conversation, and no more.

What such a client leaves out is filled in before the contract is applied, so that there is one
contract for all records. Names are in camel case or in snake case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Any
from uuid import NAMESPACE_OID, uuid5

from pydantic import BeforeValidator, ValidationError, WithJsonSchema
from pydantic.alias_generators import to_camel

from debrief.recorder.contracts import CommandRules
from debrief.recorder.encoding import tools_for
from debrief.recorder.storage.rows import Upload

_REPEATED = ("taskId", "repoName", "repoRemote", "branch", "baseRef")
"""Fields that both an upload and its record's ``meta`` have; one of them is enough."""
_UNKNOWN = ("recorder", "finalTree", "verified", "commands")
"""Fields of ``meta`` that the service cannot fill in."""
_NEVER_NULL = {
    *("id", "taskId", "repoName", "baseRef", "createdAt", "sessionId", "startedAt", "stoppedAt"),
    *_UNKNOWN,
}
"""Fields that count as left out where they are null."""
_CALL_ID = re.compile("[a-zA-Z0-9]{9}")
_SCHEMA = {
    "title": "PlainUpload",
    "type": "object",
    "description": "An upload that leaves out what the service can fill in. `taskId`, `repoName` "
    "and `baseRef` are needed, here or in `record.meta`; names are in camel or in snake case.",
    "required": ["record"],
    "properties": {
        "record": {
            "type": "object",
            "required": ["messages"],
            "properties": {"messages": {"type": "array"}, "meta": {"type": "object"}},
        }
    },
}


def read_upload(body: object) -> Upload:
    """Return the upload that a body contains, with what it leaves out filled in.

    Raises:
        ValueError: it is not of the contract, or names a field twice.
    """
    if not isinstance(body, Mapping):
        return Upload.model_validate(body)
    completion = _Completion(body)
    upload = Upload.model_validate(completion.body, by_alias=True, by_name=True)
    return upload.with_missing(completion.missing)


AnyUpload = Annotated[
    Upload,
    BeforeValidator(
        read_upload, json_schema_input_type=Upload | Annotated[object, WithJsonSchema(_SCHEMA)]
    ),
]
"""The body of ``POST /sessions``: a recorder's whole upload, or a plain client's."""


class _Completion:
    """Fills in what a body leaves out. What is not of the contract stays, to be refused."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.missing: list[str] = []
        """The fields that were left out, as ``record.meta.finalTree``."""
        self.body = _camel(body)
        record = self.body.get("record")
        if not isinstance(record, Mapping):
            return
        record = self.body["record"] = dict(record)
        given = record.get("meta")
        if not isinstance(given, Mapping | None):
            return
        meta = record["meta"] = _camel(given or {})
        if isinstance(record.get("messages"), list):
            record["messages"] = _messages(record["messages"], meta)
        for name in _REPEATED:
            if name in self.body:
                meta.setdefault(name, self.body[name])
            elif name in meta:
                self.body[name] = meta[name]
        self._fill_id_and_times(meta)
        self.missing += [f"record.meta.{name}" for name in _UNKNOWN if name not in meta]
        if record.get("tools") is None:
            self.missing.append("record.tools")
            record["tools"] = _tools(meta.get("rules"))

    def _fill_id_and_times(self, meta: dict[str, Any]) -> None:
        body = self.body
        if "id" not in body:
            self.missing.append("id")
            body["id"] = meta.get("sessionId") or _id_of(body)
        if "createdAt" not in body:
            self.missing.append("createdAt")
            body["createdAt"] = meta.get("stoppedAt") or datetime.now(UTC).isoformat()
        self._fill(meta, "sessionId", body["id"])
        self._fill(meta, "stoppedAt", body["createdAt"])
        self._fill(meta, "startedAt", meta["stoppedAt"])

    def _fill(self, meta: dict[str, Any], name: str, value: object) -> None:
        if name not in meta:
            meta[name] = value
            self.missing.append(f"record.meta.{name}")


def _camel(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields by their camel case names, without those that are left out as null."""
    renamed: dict[str, Any] = {}
    for name, value in fields.items():
        new = to_camel(name) if "_" in name else name
        if new in renamed:
            raise ValueError(f"{new} is there twice, in camel case and in snake case")
        renamed[new] = value
    return {
        name: value
        for name, value in renamed.items()
        if value is not None or name not in _NEVER_NULL
    }


def _id_of(body: Mapping[str, Any]) -> str:
    """Return an id made of everything that was sent except times, so that a retry has the same."""
    record, times = dict(body["record"]), ("startedAt", "stoppedAt")
    record["meta"] = {name: value for name, value in record["meta"].items() if name not in times}
    content = {**body, "createdAt": None, "record": record}
    try:
        data = json.dumps(content, sort_keys=True)
    except RecursionError:
        raise ValueError("is nested too deep") from None
    return str(uuid5(NAMESPACE_OID, sha256(data.encode()).hexdigest()))


def _messages(messages: Sequence[Any], meta: dict[str, Any]) -> list[Any]:
    """Return messages with texts in place of nulls, and ids of calls in the contract's form."""
    ids = dict.fromkeys(_ids(messages), "")
    if not all(map(_CALL_ID.fullmatch, ids)):
        ids = {id: f"call{number:05}" for number, id in enumerate(ids, 1)}
        messages = [_with_ids(message, ids) for message in messages]
        if isinstance(commands := meta.get("commands"), list):
            meta["commands"] = [_with_ids(command, ids) for command in commands]
    return [_with_text(message) for message in messages]


def _with_text(message: Any) -> Any:
    null = {"role": "assistant", "content": None}
    is_null = isinstance(message, Mapping) and null.items() <= message.items()
    return {**message, "content": ""} if is_null else message


def _with_ids(part: Any, ids: Mapping[str, str]) -> Any:
    """Return a message, a call or a command with other ids of calls."""
    if not isinstance(part, Mapping):
        return part
    changed: dict[str, object] = {
        name: ids.get(value, value)
        for name, value in part.items()
        if name in ("id", "tool_call_id", "callId", "call_id") and isinstance(value, str)
    }
    if isinstance(calls := part.get("tool_calls"), list):
        changed["tool_calls"] = [_with_ids(call, ids) for call in calls]
    return {**part, **changed}


def _ids(messages: Sequence[Any]) -> Iterator[str]:
    """Yield the ids of calls in the order in which they appear, and those that results name."""
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        calls = message.get("tool_calls")
        known = calls if isinstance(calls, list) else []
        ids = [call.get("id") for call in known if isinstance(call, Mapping)]
        yield from (id for id in (*ids, message.get("tool_call_id")) if isinstance(id, str))


def _tools(rules: object) -> list[Any]:
    """Return the definitions of a record's tools."""
    try:
        known = None if rules is None else CommandRules.model_validate(rules)
    except ValidationError:
        known = None  # refused where it stands
    return list(tools_for(known))
