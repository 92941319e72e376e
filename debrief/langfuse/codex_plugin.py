"""Sessions that Langfuse's own plugin of Codex sent, read as Codex's.

The plugin makes observations of a rollout's records: a root for a turn, an ``LLM`` for what the
model said, a tool's observation for a call. Here they become records again, and the reader of
rollouts makes the session of them. A turn that was under way when the plugin looked is sent again
when it is over: its latest root counts. What the plugin does not send stays unknown: the folder
(that of the first command stands in), the branch, what the person typed while the model worked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from debrief.langfuse.claude_plugin import fact_in, time_in
from debrief.langfuse.client import Row
from debrief.langfuse.vendors import Json, decoded, plain
from debrief.sessions.model import Problem, Session
from debrief.sessions.readers.codex import session_of_records
from debrief.sessions.readers.files import compact_json
from debrief.sessions.readers.values import first_string, mapping, mappings, string, whole_number

_ROOTS = ("Codex Turn", "Codex Subagent Turn")
_MESSAGES = ("LLM", "LLM Subagent")
_SPENT = {
    "input": "input_tokens",
    "cache_read_input_tokens": "cached_input_tokens",
    "output": "output_tokens",
}


def is_of_codex_plugin(rows: Iterable[Row]) -> bool:
    """Return whether all that models said in a session was sent by the plugin."""
    rows = list(rows)
    messages = [row for row in rows if row.get("type") == "GENERATION"]
    return (
        bool(messages)
        and all(row.get("name") in _MESSAGES for row in messages)
        and any(fact_in(row, "codex.thread_id") for row in rows)
    )


def lacking_calls(rows: Sequence[Row]) -> int:
    """Return how many calls the plugin says that it sent, and that are not there."""
    below = _below(rows)
    return sum(
        max(_calls_of(root) - sum(len(below[message]) for message in _ids(below[_id(root)])), 0)
        for root in _turns(rows)
    )


def session_of_codex_plugin(path: str, rows: Sequence[Row]) -> Session:
    """Return the session that was sent.

    Args:
        path: in place of the rollout's.
        rows: its observations in the order of their start.
    """
    turns = _turns(rows)
    inside = [row for row in rows if row.get("name") == _ROOTS[1] and row not in turns]
    reason = f"{len(inside)} turns of subagents are not read"
    problems = [Problem(path=path, line=0, reason=reason)] if inside else []
    return session_of_records(path, _records(turns, _below(rows)), problems)


def _turns(rows: Iterable[Row]) -> list[Row]:
    """Return the roots of the turns, of each the one that was sent last."""
    roots = [row for row in rows if row.get("isRootObservation") and row.get("name") in _ROOTS]
    roots.sort(key=lambda row: time_in(row, "endTime"))
    latest = {fact_in(row, "codex.turn_id") or _id(row): row for row in roots}
    return sorted(latest.values(), key=lambda row: time_in(row, "startTime"))


def _records(turns: Sequence[Row], below: dict[tuple[str, str], list[Row]]) -> Iterator[Json]:
    yield _record("session_meta", _meta(turns, below), turns[0], "startTime")
    for root in turns:
        asked = {"type": "user_message", "message": string(root.get("input"))}
        yield _record("turn_context", {"model": fact_in(root, "codex.model")}, root, "startTime")
        yield _record("event_msg", asked, root, "startTime")
        for message in below[_id(root)]:
            if message.get("name") in _MESSAGES:
                yield from _message(message, below[_id(message)])
        if root.get("level") == "WARNING":
            yield _record("event_msg", {"type": "turn_aborted"}, root, "endTime")


def _meta(turns: Sequence[Row], below: dict[tuple[str, str], list[Row]]) -> Json:
    calls = (call for root in turns for message in below[_id(root)] for call in below[_id(message)])
    folders = (first_string(mapping(decoded(call.get("input"))), "workdir") for call in calls)
    return {
        "id": fact_in(turns[0], "codex.thread_id"),
        "cli_version": fact_in(turns[0], "codex.cli_version"),
        "cwd": next(filter(None, folders), ""),
    }


def _message(row: Row, seen: Sequence[Row]) -> Iterator[Json]:
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
    spent = {name: whole_number(usage.get(key)) for key, name in _SPENT.items()}
    if any(spent.values()):
        counted = {"type": "token_count", "info": {"last_token_usage": spent}}
        yield _record("event_msg", counted, row, "endTime")
    for id, each in observed.items():
        yield from _result(id, each)


def _result(id: str, row: Row) -> Iterator[Json]:
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
    return {"type": kind, "payload": payload, "timestamp": time_in(row, time)}


def _below(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the observations by trace and parent."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[string(row.get("traceId")), string(row.get("parentObservationId"))].append(row)
    return found


def _id(row: Row) -> tuple[str, str]:
    return string(row.get("traceId")), string(row.get("id"))


def _ids(rows: Iterable[Row]) -> list[tuple[str, str]]:
    return list(map(_id, rows))


def _calls_of(root: Row) -> int:
    found = fact_in(root, "codex.tool_call_count")
    return int(found) if found.isdecimal() else 0
