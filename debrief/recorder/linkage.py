"""Whether a record's messages are a conversation: who speaks when, and which result is whose."""

from __future__ import annotations

from collections.abc import Iterator

from debrief.recorder.contracts import (
    APPLY_PATCH,
    READ_FILE,
    RUN_COMMAND,
    AssistantMessage,
    Message,
    Record,
    SystemMessage,
    ToolMessage,
    UserMessage,
)


def linkage_problems(record: Record) -> Iterator[str]:
    """Yield what is wrong with the order and the linkage of the record's messages.

    The order is: a system message if there is one, the user's, then each call followed by its own
    result, and the assistant's closing words. Of the calls, files are read first, the patch is
    applied at most once, and only commands come after it.
    """
    messages = record.messages
    first = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    if len(messages) <= first or not isinstance(messages[first], UserMessage):
        yield f"messages[{first}]: not the user's message"
    last = len(messages) - 1
    if last <= first or not _is_text(messages[last]):
        yield f"messages[{max(last, 0)}]: the assistant's closing words are missing"
        last += 1
    yield from _pairs(messages, first + 1, last)
    yield from _stages(messages)


def _is_text(message: Message) -> bool:
    return (
        isinstance(message, AssistantMessage)
        and not message.tool_calls
        and bool(message.content.strip())
    )


def _pairs(messages: list[Message], first: int, last: int) -> Iterator[str]:
    waiting = ""
    used: set[str] = set()
    for index, message in enumerate(messages[first:last], first):
        if isinstance(message, ToolMessage):
            if not waiting:
                yield f"messages[{index}]: a result without a call"
            elif message.tool_call_id != waiting:
                yield f"messages[{index}]: the result of another call than the one before it"
            waiting = ""
            continue
        if waiting:
            yield f"messages[{index - 1}]: a call without a result"
            waiting = ""
        if isinstance(message, AssistantMessage) and message.tool_calls:
            waiting = message.tool_calls[0].id
            if waiting in used:
                yield f"messages[{index}]: the id {waiting} belongs to two calls"
            used.add(waiting)
        else:
            yield f"messages[{index}]: neither a call nor its result"
    if waiting:
        yield f"messages[{last - 1}]: a call without a result"


def _stages(messages: list[Message]) -> Iterator[str]:
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            continue
        name = message.tool_calls[0].function.name
        if name == READ_FILE and seen & {RUN_COMMAND, APPLY_PATCH}:
            yield f"messages[{index}]: a file is read after commands or the patch"
        if name == APPLY_PATCH and APPLY_PATCH in seen:
            yield f"messages[{index}]: a second patch"
        seen.add(name)
