"""Sessions that Langfuse's own plugin of Claude Code sent, read as Claude Code's.

The plugin makes observations of a transcript's records: a root for a prompt, an ``LLM Call`` for a
message, a ``Tool: …`` for a call and its result, a ``Subagent: …`` around another thread. Here they
become records again, and the reader of transcripts makes the session of them. What the plugin does
not send stays unknown: what a tool did beside its text (so edits are worked out from arguments, and
failures from words), the messages' own ids, queued prompts, interruptions, titles, thinking.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from debrief.langfuse.client import Row
from debrief.langfuse.vendors import Json, decoded
from debrief.sessions.model import Problem, Session
from debrief.sessions.readers.claude_code import session_of_records
from debrief.sessions.readers.claude_code.records import is_failure, is_summary
from debrief.sessions.readers.values import mapping, mappings, string, whole_number

TOOL = "claude-code"
_MESSAGES = ("LLM Call ", "Subagent LLM Call ")
_AGENT = "Subagent"
_CUT = ("user_text", "assistant_text", "input_meta", "output_meta")
"""Where the plugin says how long a text was that it sent."""
_SPENT = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read_input_tokens": "cache_read_input_tokens",
    "cache_creation_input_tokens": "cache_creation_input_tokens",
}


def is_of_plugin(rows: Iterable[Row]) -> bool:
    """Return whether all that models said in a session was sent by the plugin."""
    rows = list(rows)
    messages = [string(row.get("name")) for row in rows if row.get("type") == "GENERATION"]
    return (
        bool(messages)
        and all(name.startswith(_MESSAGES) for name in messages)
        and any(fact_in(row, "source") == TOOL for row in rows)
    )


def lacking_in(rows: Iterable[Row]) -> int:
    """Return how many messages the plugin says that it sent, and that are not there."""
    rows = list(rows)
    there: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        there[string(row.get("parentObservationId"))] += row.get("type") == "GENERATION"
    roots = (row for row in rows if fact_in(row, "source") == TOOL)
    counts = (
        _number(row, "assistant_message_count") - there[string(row.get("id"))] for row in roots
    )
    return sum(max(count, 0) for count in counts)


def session_of_plugin(path: str, rows: Sequence[Row]) -> Session:
    """Return the session that was sent.

    Args:
        path: in place of the transcript's.
        rows: its observations in the order of their start.
    """
    cut = [fact for row in rows for name in _CUT if (fact := _object(row, name)).get("truncated")]
    longest = max((whole_number(fact.get("kept_len")) for fact in cut), default=0)
    reason = f"{len(cut)} texts were cut by their sender, at {longest} characters"
    problems = [Problem(path=path, line=0, reason=reason)] if cut else []
    return session_of_records(path, _Plugin(rows).records(), problems)


class _Plugin:
    """Observations on their way back to records."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._below: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in rows:
            key = string(row.get("traceId")), string(row.get("parentObservationId"))
            self._below[key].append(row)

    def records(self) -> Iterator[Json]:
        """Yield the records, turn by turn."""
        roots = [row for row in self._rows if fact_in(row, "source") == TOOL]
        for root in sorted(roots, key=self._began):
            where = {
                "sessionId": fact_in(root, "session_id"),
                "cwd": fact_in(root, "cwd"),
                "gitBranch": fact_in(root, "git_branch"),
            }
            yield from self._thread(root, where)

    def _below_of(self, root: Row) -> list[Row]:
        return self._below[string(root.get("traceId")), string(root.get("id"))]

    def _began(self, root: Row) -> str:
        """Return when a span began: with its first part, where it has the time of its sending, as
        those of prompts without a time have."""
        return min(time_in(row, "startTime") for row in (root, *self._below_of(root)))

    def _thread(self, root: Row, facts: Json) -> Iterator[Json]:
        """Yield what was asked in a span, and what the model did, its subagents' work behind."""
        text = string(mapping(decoded(root.get("input"))).get("content"))
        message = {"role": "user", "content": text}
        asked = {**facts, "type": "user", "timestamp": self._began(root), "message": message}
        yield {**asked, "isCompactSummary": True} if is_summary(text) else asked
        below = self._below_of(root)
        calls = {fact_in(row, "tool_id"): row for row in below if row.get("type") == "TOOL"}
        for row in below:
            if row.get("type") == "GENERATION":
                yield from _message(row, calls, facts)
        for row in below:
            if string(row.get("name")).startswith(_AGENT) and row.get("type") == "SPAN":
                yield from self._thread(row, {"isSidechain": True, "agentId": row.get("id")})


def _message(row: Row, calls: dict[str, Row], facts: Json) -> Iterator[Json]:
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
    spent = {name: usage[key] for key, name in _SPENT.items() if key in usage}
    message = {
        "role": "assistant",
        "id": row.get("id"),
        "model": row.get("model") or row.get("providedModelName"),
        "content": content,
        **({"usage": spent} if spent else {}),
    }
    began = min((time_in(one, "startTime") for one in seen), default=time_in(row, "endTime"))
    yield {**facts, "type": "assistant", "timestamp": began, "message": message}
    for one in sorted(seen, key=lambda one: time_in(one, "endTime")):
        if _object(one, "output_meta"):  # else nothing came back before the plugin looked
            result = _result(one)
            message = {"role": "user", "content": [result]}
            yield {
                **facts,
                "type": "user",
                "timestamp": time_in(one, "endTime"),
                "message": message,
            }


def _result(row: Row) -> Json:
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


def time_in(row: Row, name: str) -> str:
    """Return a time of an observation as text; that of its start where it has none."""
    value = row.get(name) or row.get("startTime")
    return value.isoformat() if isinstance(value, datetime) else string(value)


def fact_in(row: Row, name: str) -> str:
    """Return a value of an observation's metadata as text; empty where there is none."""
    found = mapping(decoded(row.get("metadata"))).get(name)
    return str(found) if isinstance(found, int) else string(found)


def _object(row: Row, name: str) -> Json:
    return mapping(decoded(mapping(decoded(row.get("metadata"))).get(name)))


def _number(row: Row, name: str) -> int:
    found = fact_in(row, name)
    return int(found) if found.isdecimal() else 0
