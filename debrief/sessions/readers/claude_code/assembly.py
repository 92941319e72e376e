"""From the conversations of one session's files to the session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from debrief.sessions.model import Problem, Session
from debrief.sessions.readers.assembly import TranscriptDraft, assemble
from debrief.sessions.readers.claude_code.conversion import Conversation, CountedUsage
from debrief.sessions.readers.timeline import NO_USAGE
from debrief.sessions.readers.values import changed_at, string

SOURCE = "claude-code"


def session_of(
    id: str, conversations: list[Conversation], unread: Sequence[Problem] = ()
) -> Session:
    """Make the session of its files.

    Args:
        id: of the session.
        conversations: the main one first, those of subagents' own files behind.
        unread: subagents' files that could not be opened.
    """
    main = conversations[0].main
    main.id = id
    main.problems = [
        *unread,
        *(problem for each in conversations for problem in each.file.problems),
    ]
    main.references = [each.file.ref() for each in conversations]
    for each in conversations[1:]:
        main.see(each.main.ended)
    threads = _threads(conversations)
    spent = _attribute(conversations, threads)
    main.usage = sum((each.usage for each in spent), NO_USAGE)
    main.api_calls = len(spent)
    for thread in threads:
        thread.api_calls = 0
        _link(thread, conversations)
    fallback = changed_at(main.path)
    return assemble(main, source=SOURCE, tool=SOURCE, fallback=fallback, children=threads)


def _threads(conversations: Iterable[Conversation]) -> list[TranscriptDraft]:
    """Return the subagents' threads; of one that is in several places, the fullest."""
    best: dict[str, TranscriptDraft] = {}
    for conversation in conversations:
        own = [conversation.main] if conversation.is_agent else []
        for thread in (*own, *conversation.agents.values()):
            known = best.get(thread.id)
            if known is None or _fullness(thread) > _fullness(known):
                thread.call_id = thread.call_id or (known.call_id if known else "")
                best[thread.id] = thread
    return [thread for thread in best.values() if thread.timeline.messages or thread.prompt]


def _fullness(thread: TranscriptDraft) -> tuple[bool, int]:
    return thread.place != "progress", thread.timeline.messages


def _attribute(
    conversations: Sequence[Conversation], threads: Iterable[TranscriptDraft]
) -> list[CountedUsage]:
    """Write each API message's usage to the draft that counts; return what counts.

    A message that the session's own thread has under any request id does not count again in a
    subagent's, and one that is in several files counts once.
    """
    main = conversations[0].main
    kept = {id(thread) for thread in (main, *threads)}
    own = {
        message
        for (message, _), spent in conversations[0].spent.items()
        if spent.thread is main and message is not None
    }
    counted: dict[Any, CountedUsage] = {}
    for conversation in conversations:
        for key, spent in conversation.spent.items():
            is_repeat = spent.thread is not main and key[0] in own
            if id(spent.thread) not in kept or is_repeat:
                continue
            message = key if key != (None, None) else (key, conversation.file.path)
            known = counted.get(message)
            if known is None or spent.total > known.total:
                counted[message] = spent
    for spent in counted.values():
        spent.draft.usage = spent.usage
    return list(counted.values())


def _link(thread: TranscriptDraft, conversations: Iterable[Conversation]) -> None:
    """Link a subagent to the call that started it, and take its type and task from there."""
    thread.call_id, task = _task_of(thread, conversations)
    thread.agent_type, thread.title = (
        string(task.get("subagent_type")),
        string(task.get("description")),
    )
    thread.prompt = thread.prompt or string(task.get("prompt"))


def _task_of(
    thread: TranscriptDraft, conversations: Iterable[Conversation]
) -> tuple[str, dict[str, Any]]:
    """Find the call that started a subagent: by a record that says so, else by its prompt."""
    for conversation in conversations:
        call_id = conversation.started_by.get(thread.id) or thread.call_id
        if call_id in conversation.tasks:
            return call_id, conversation.tasks[call_id]
    for conversation in conversations if thread.prompt else ():
        linked = set(conversation.started_by.values())
        for call_id, task in conversation.tasks.items():
            if (
                call_id not in linked
                and string(task.get("prompt")).strip() == thread.prompt.strip()
            ):
                conversation.started_by.setdefault(thread.id, call_id)
                return call_id, task
    return "", {}
