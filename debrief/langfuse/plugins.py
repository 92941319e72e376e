"""Sessions sent by Langfuse's plugins for Claude Code and Codex, read with those tools' readers.

A plugin makes observations of a transcript's records. Here they become records again, and the
reader of transcripts makes the session of them. What a plugin does not send stays unknown.

Claude Code's sends a root for a prompt, an ``LLM Call`` for a message, a ``Tool: …`` for a call and
its result, a ``Subagent: …`` around another thread; and not what a tool did beside its text (so
edits are worked out from arguments, and failures from words), the messages' own ids, queued
prompts, interruptions, titles, thinking.

Codex's sends a root for a turn, an ``LLM`` for what the model said, a tool's observation for a
call. A turn that was under way when the plugin looked is sent again when it is over: its latest
root counts. It does not send the folder (that of the first command stands in), the branch, what
the person typed while the model worked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from debrief.langfuse.client import Row
from debrief.langfuse.vendors import Json, decoded, plain
from debrief.sessions.model import Problem, Session
from debrief.sessions.readers import claude_code, codex
from debrief.sessions.readers.claude_code.content import is_failure, is_summary
from debrief.sessions.readers.documents import compact_json
from debrief.sessions.readers.values import first_string, mapping, mappings, string, whole_number

_Key = tuple[str, str]
_Below = dict[_Key, list[Row]]
"""Observations by the trace and the id of what they are below."""


class Plugin(Struct, frozen=True):
    """One plugin: how its observations are known, and what they become."""

    messages: tuple[str, ...]
    """How the names of the models' observations begin."""
    mark: str
    """Of metadata that an observation of its own has."""
    value: str
    """The value of the mark; empty for any."""
    lacking: Callable[[Sequence[Row], _Below], int]
    """How many observations it says that it sent, and that are not there."""
    session: Callable[[str, Sequence[Row], _Below], Session]

    def sent(self, rows: Sequence[Row]) -> bool:
        """Return whether all that models said in a session was sent by the plugin."""
        names = [string(row.get("name")) for row in rows if row.get("type") == "GENERATION"]
        marks = (fact_in(row, self.mark) for row in rows)
        return (
            bool(names)
            and all(name.startswith(self.messages) for name in names)
            and any(found == (self.value or found) for found in marks if found)
        )


def lacking_in(rows: Sequence[Row]) -> int:
    """Return how many observations the plugins say that they sent, and that are not there."""
    below = _below(rows)
    return sum(plugin.lacking(rows, below) for plugin in PLUGINS)


def session_of_plugin(path: str, rows: Sequence[Row]) -> Session | None:
    """Return the session that a plugin sent; None when none did.

    Args:
        path: in place of the transcript's.
        rows: its observations in the order of their start.
    """
    plugin = next((plugin for plugin in PLUGINS if plugin.sent(rows)), None)
    return plugin.session(path, rows, _below(rows)) if plugin is not None else None


def fact_in(row: Row, name: str) -> str:
    """Return a value of an observation's metadata as text; empty where there is none."""
    found = mapping(decoded(row.get("metadata"))).get(name)
    return str(found) if isinstance(found, int) else string(found)


def _number(row: Row, name: str) -> int:
    found = fact_in(row, name)
    return int(found) if found.isdecimal() else 0


def _time(row: Row, name: str) -> str:
    """Return a time of an observation as text; that of its start where it has none."""
    value = row.get(name) or row.get("startTime")
    return value.isoformat() if isinstance(value, datetime) else string(value)


def _key(row: Row) -> _Key:
    return string(row.get("traceId")), string(row.get("id"))


def _below(rows: Iterable[Row]) -> _Below:
    found: _Below = defaultdict(list)
    for row in rows:
        found[string(row.get("traceId")), string(row.get("parentObservationId"))].append(row)
    return found


def _problems(path: str, count: int, reason: str) -> list[Problem]:
    return [Problem(path=path, line=0, reason=f"{count} {reason}")] if count else []


TOOL = "claude-code"
_AGENT = "Subagent"
_CUT = ("user_text", "assistant_text", "input_meta", "output_meta")
"""Where Claude Code's plugin says how long a text was that it sent."""
_SPENT_BY_CLAUDE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read_input_tokens": "cache_read_input_tokens",
    "cache_creation_input_tokens": "cache_creation_input_tokens",
}


def _claude_lacking(rows: Sequence[Row], below: _Below) -> int:
    lacking = 0
    for root in _claude_roots(rows):
        there = sum(row.get("type") == "GENERATION" for row in below.get(_key(root), ()))
        lacking += max(_number(root, "assistant_message_count") - there, 0)
    return lacking


def _claude_roots(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if fact_in(row, "source") == TOOL]


def _claude_session(path: str, rows: Sequence[Row], below: _Below) -> Session:
    cut = [fact for row in rows for name in _CUT if (fact := _object(row, name)).get("truncated")]
    longest = max((whole_number(fact.get("kept_len")) for fact in cut), default=0)
    reason = f"texts were cut by their sender, at {longest} characters"
    records = _claude_records(rows, below)
    return claude_code.session_of_records(path, records, _problems(path, len(cut), reason))


def _claude_records(rows: Sequence[Row], below: _Below) -> Iterator[Json]:
    """Yield the records, turn by turn."""
    for root in sorted(_claude_roots(rows), key=lambda root: _began(root, below)):
        where = {
            "sessionId": fact_in(root, "session_id"),
            "cwd": fact_in(root, "cwd"),
            "gitBranch": fact_in(root, "git_branch"),
        }
        yield from _thread(root, where, below)


def _began(root: Row, below: _Below) -> str:
    """Return when a span began: with its first part, where it has the time of its sending, as
    those of prompts without a time have."""
    return min(_time(row, "startTime") for row in (root, *below.get(_key(root), ())))


def _thread(root: Row, facts: Json, below: _Below) -> Iterator[Json]:
    """Yield what was asked in a span, and what the model did, its subagents' work behind."""
    text = string(mapping(decoded(root.get("input"))).get("content"))
    message = {"role": "user", "content": text}
    asked = {**facts, "type": "user", "timestamp": _began(root, below), "message": message}
    yield {**asked, "isCompactSummary": True} if is_summary(text) else asked
    parts = below.get(_key(root), ())
    calls = {fact_in(row, "tool_id"): row for row in parts if row.get("type") == "TOOL"}
    for row in parts:
        if row.get("type") == "GENERATION":
            yield from _claude_message(row, calls, facts)
    for row in parts:
        if string(row.get("name")).startswith(_AGENT) and row.get("type") == "SPAN":
            yield from _thread(row, {"isSidechain": True, "agentId": row.get("id")}, below)


def _claude_message(row: Row, calls: dict[str, Row], facts: Json) -> Iterator[Json]:
    """Yield a message, and behind it what came back from its calls."""
    gave = mapping(decoded(row.get("output")))
    made = [(string(call.get("id")), call) for call in mappings(gave.get("tool_calls"))]
    seen = [calls[id] for id, _ in made if id in calls]
    content: list[Json] = [{"type": "text", "text": string(gave.get("content"))}]
    for id, call in made:
        given = decoded(calls.get(id, {}).get("input"))
        known = {} if given in (None, "") else {"input": given}
        content.append({"type": "tool_use", "id": id, "name": call.get("name"), **known})
    usage = mapping(row.get("usageDetails") or row.get("usage"))
    spent = {name: usage[key] for key, name in _SPENT_BY_CLAUDE.items() if key in usage}
    message = {
        "role": "assistant",
        "id": row.get("id"),
        "model": row.get("model") or row.get("providedModelName"),
        "content": content,
        **({"usage": spent} if spent else {}),
    }
    began = min((_time(one, "startTime") for one in seen), default=_time(row, "endTime"))
    yield {**facts, "type": "assistant", "timestamp": began, "message": message}
    for one in sorted(seen, key=lambda one: _time(one, "endTime")):
        if _object(one, "output_meta"):  # else nothing came back before the plugin looked
            result = _claude_result(one)
            message = {"role": "user", "content": [result]}
            yield {**facts, "type": "user", "timestamp": _time(one, "endTime"), "message": message}


def _claude_result(row: Row) -> Json:
    gave = decoded(row.get("output"))
    if isinstance(gave, dict) and set(gave) == {"result", "injected_instructions"}:
        gave = decoded(gave["result"])
    is_content = isinstance(gave, list) and all(isinstance(part, dict) for part in gave)
    content = gave if is_content else "" if gave in (None, "null") else row.get("output")
    text = content if isinstance(content, str) else ""
    return {
        "type": "tool_result",
        "tool_use_id": fact_in(row, "tool_id"),
        "content": content,
        "is_error": is_failure(text),
    }


def _object(row: Row, name: str) -> Json:
    return mapping(decoded(mapping(decoded(row.get("metadata"))).get(name)))


_ROOTS = ("Codex Turn", "Codex Subagent Turn")
_MESSAGES = ("LLM", "LLM Subagent")
_SPENT_BY_CODEX = {
    "input": "input_tokens",
    "cache_read_input_tokens": "cached_input_tokens",
    "output": "output_tokens",
}


def _codex_lacking(rows: Sequence[Row], below: _Below) -> int:
    return sum(
        max(_number(root, "codex.tool_call_count") - len(_calls_below(root, below)), 0)
        for root in _turns(rows)
    )


def _calls_below(root: Row, below: _Below) -> list[Row]:
    messages = below.get(_key(root), ())
    return [call for message in messages for call in below.get(_key(message), ())]


def _codex_session(path: str, rows: Sequence[Row], below: _Below) -> Session:
    turns = _turns(rows)
    inside = [row for row in rows if row.get("name") == _ROOTS[1] and row not in turns]
    problems = _problems(path, len(inside), "turns of subagents are not read")
    return codex.session_of_records(path, _codex_records(turns, below), problems)


def _turns(rows: Iterable[Row]) -> list[Row]:
    """Return the roots of the turns, of each the one that was sent last."""
    roots = [row for row in rows if row.get("isRootObservation") and row.get("name") in _ROOTS]
    roots.sort(key=lambda row: _time(row, "endTime"))
    latest = {fact_in(row, "codex.turn_id") or _key(row): row for row in roots}
    return sorted(latest.values(), key=lambda row: _time(row, "startTime"))


def _codex_records(turns: Sequence[Row], below: _Below) -> Iterator[Json]:
    calls = (call for root in turns for call in _calls_below(root, below))
    folders = (first_string(mapping(decoded(call.get("input"))), "workdir") for call in calls)
    about = {
        "id": fact_in(turns[0], "codex.thread_id"),
        "cli_version": fact_in(turns[0], "codex.cli_version"),
        "cwd": next(filter(None, folders), ""),
    }
    yield _record("session_meta", about, turns[0], "startTime")
    for root in turns:
        asked = {"type": "user_message", "message": string(root.get("input"))}
        yield _record("turn_context", {"model": fact_in(root, "codex.model")}, root, "startTime")
        yield _record("event_msg", asked, root, "startTime")
        for message in below.get(_key(root), ()):
            if message.get("name") in _MESSAGES:
                yield from _codex_message(message, below.get(_key(message), ()))
        if root.get("level") == "WARNING":
            yield _record("event_msg", {"type": "turn_aborted"}, root, "endTime")


def _codex_message(row: Row, seen: Sequence[Row]) -> Iterator[Json]:
    """Yield what the model thought, said and called, and behind it what came back."""
    gave = mapping(decoded(row.get("output"))) or {"content": row.get("output")}
    if thought := string(gave.get("reasoning")):
        yield _item(row, "reasoning", content=[{"text": thought}])
    if text := string(gave.get("content")):
        yield _item(row, "message", role="assistant", content=[{"text": text}])
    observed = {fact_in(each, "codex.call_id"): each for each in seen}
    for call in mappings(gave.get("tool_calls")):
        id, given = string(call.get("id")), call.get("arguments")
        is_text = isinstance(given, str)
        name = "input" if is_text else "arguments"
        about = {"call_id": id, "name": call.get("name")}
        about[name] = given if is_text else compact_json(given or {})
        kind = "custom_tool_call" if is_text else "function_call"
        yield _item(observed.get(id, row), kind, **about)
    usage = mapping(row.get("usageDetails") or row.get("usage"))
    spent = {name: whole_number(usage.get(key)) for key, name in _SPENT_BY_CODEX.items()}
    if any(spent.values()):
        counted = {"type": "token_count", "info": {"last_token_usage": spent}}
        yield _record("event_msg", counted, row, "endTime")
    for id, each in observed.items():
        yield from _codex_result(id, each)


def _codex_result(id: str, row: Row) -> Iterator[Json]:
    if row.get("level") == "ERROR":
        why = {"Err": string(row.get("statusMessage"))}
        failed = {"type": "mcp_tool_call_end", "call_id": id, "result": why}
        yield _record("event_msg", failed, row, "endTime")
    if row.get("output") not in (None, ""):
        output = {"type": "function_call_output", "call_id": id, "output": plain(row["output"])}
        yield _record("response_item", output, row, "endTime")


def _item(row: Row, kind: str, **payload: object) -> Json:
    return _record("response_item", {"type": kind, **payload}, row, "startTime")


def _record(kind: str, payload: Json, row: Row, time: str) -> Json:
    return {"type": kind, "payload": payload, "timestamp": _time(row, time)}


PLUGINS = (
    Plugin(("LLM Call ", "Subagent LLM Call "), "source", TOOL, _claude_lacking, _claude_session),
    Plugin(_MESSAGES, "codex.thread_id", "", _codex_lacking, _codex_session),
)
