"""From the conversations of one session's files to the session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import UNSET

from debrief.sessions.model import (
    Message,
    Problem,
    Session,
    Subagent,
    ToolCall,
    Turn,
    Usage,
)
from debrief.sessions.places import place_of
from debrief.sessions.readers.claude_code.conversion import Conversation
from debrief.sessions.readers.claude_code.threads import Spent, Thread
from debrief.sessions.readers.claude_code.turns import turns_of
from debrief.sessions.readers.moments import changed_at
from debrief.sessions.readers.timeline import MessageDraft

SOURCE = "claude-code"
TOOL = "claude-code"


def session_of(
    id: str, conversations: list[Conversation], unread: Sequence[Problem] = ()
) -> Session:
    """Make the session of its files.

    Args:
        id: of the session.
        conversations: the main one first, those of subagents' own files behind.
        unread: subagents' files that could not be opened.
    """
    main = conversations[0]
    problems = [*unread, *(problem for each in conversations for problem in each.file.problems)]
    started, ended = main.first_at, main.last_at
    for each in conversations[1:]:
        if each.last_at is not None:
            ended = each.last_at if ended is None else max(ended, each.last_at)
    if started is None:
        started = changed_at(main.file.path)
        reason = "no record tells its time; the time of the file's last change is taken"
        problems.append(Problem(path=main.file.path, line=0, reason=reason))
    threads = _threads(conversations)
    spent = _attribute(conversations, threads)
    turns = () if main.is_agent else turns_of(main.main.events, main.parents)
    subagents = tuple(_subagent(thread, conversations) for thread in threads)
    calls = list(_calls(turns, subagents))
    place = place_of(main.cwd)
    return Session(
        id=id,
        source=SOURCE,
        tool=TOOL,
        tool_version=main.version,
        models=_models(turns, subagents),
        task=place.task,
        repository=place.repository,
        branch=main.branch,
        cwd=main.cwd,
        started=started,
        ended=started if ended is None else max(started, ended),
        title=main.title.text,
        transcripts=tuple(each.file.ref() for each in conversations),
        turns=turns,
        subagents=subagents,
        usage=_sum(each.usage for each in spent),
        api_calls=len(spent),
        slash_commands=main.slash_commands,
        lines_added=sum(call.added for call in calls),
        lines_removed=sum(call.removed for call in calls),
        compactions=main.compactions,
        problems=tuple(problems),
        notices=tuple(sorted(filter(None, main.notices))) or UNSET,
    )


def _threads(conversations: list[Conversation]) -> list[Thread]:
    """Return the subagents' threads; of one that is told in several places, the fullest telling."""
    best: dict[str, Thread] = {}
    for conversation in conversations:
        found = list(conversation.agents.values())
        if conversation.is_agent:
            found.insert(0, conversation.main)
        for thread in found:
            known = best.get(thread.id)
            if known is None or _fullness(thread) > _fullness(known):
                if known is not None:
                    thread.call_id = thread.call_id or known.call_id
                best[thread.id] = thread
    return [thread for thread in best.values() if thread.messages or thread.prompt]


def _fullness(thread: Thread) -> tuple[bool, int]:
    return thread.place != "progress", thread.messages


def _attribute(conversations: list[Conversation], threads: list[Thread]) -> list[Spent]:
    """Write each API message's usage to the draft that counts; return what counts.

    A message that the session's own thread has under any request id does not count again in a
    subagent's, and one that several files tell counts once.
    """
    kept = {id(thread) for thread in threads}
    main = conversations[0]
    if not main.is_agent:
        kept.add(id(main.main))
    own = {
        key[0]
        for key, spent in main.spent.items()
        if spent.thread is main.main and key[0] is not None
    }
    counted: dict[Any, Spent] = {}
    for conversation in conversations:
        for key, spent in conversation.spent.items():
            if id(spent.thread) not in kept:
                continue
            if spent.thread is not main.main and key[0] in own:
                continue
            place = key if key != (None, None) else (key, conversation.file.path)
            known = counted.get(place)
            if known is None or spent.total > known.total:
                counted[place] = spent
    for spent in counted.values():
        spent.draft.usage = spent.usage
    return list(counted.values())


def _subagent(thread: Thread, conversations: list[Conversation]) -> Subagent:
    call_id, task = _task_of(thread, conversations)
    return Subagent(
        id=thread.id,
        type=_text(task, "subagent_type"),
        description=_text(task, "description"),
        prompt=thread.prompt or _text(task, "prompt"),
        messages=tuple([event.build() for event in thread.events if type(event) is MessageDraft]),
        place=thread.place,
        call_id=call_id,
    )


def _task_of(thread: Thread, conversations: list[Conversation]) -> tuple[str, dict[str, Any]]:
    """Find the call that started a subagent: by a record that says so, else by its prompt."""
    for conversation in conversations:
        call_id = conversation.started_by.get(thread.id) or thread.call_id
        if call_id in conversation.tasks:
            return call_id, conversation.tasks[call_id]
    for conversation in conversations:
        linked = set(conversation.started_by.values())
        for call_id, task in conversation.tasks.items():
            if (
                call_id not in linked
                and thread.prompt
                and _text(task, "prompt").strip() == thread.prompt.strip()
            ):
                conversation.started_by.setdefault(thread.id, call_id)
                return call_id, task
    return "", {}


def _text(task: dict[str, Any], key: str) -> str:
    value = task.get(key)
    return value if isinstance(value, str) else ""


def _messages(turns: Iterable[Turn], subagents: Iterable[Subagent]) -> Iterator[Message]:
    for turn in turns:
        yield from turn.messages
    for subagent in subagents:
        yield from subagent.messages


def _calls(turns: Iterable[Turn], subagents: Iterable[Subagent]) -> Iterator[ToolCall]:
    """Yield each call once, whoever's records tell it."""
    seen: set[str] = set()
    for message in _messages(turns, subagents):
        for call in message.calls:
            if call.id and call.id in seen:
                continue
            seen.add(call.id)
            yield call


def _models(turns: Iterable[Turn], subagents: Iterable[Subagent]) -> tuple[str, ...]:
    counts = Counter(message.model for message in _messages(turns, subagents) if message.model)
    return tuple(model for model, _ in counts.most_common())


def _sum(usages: Iterable[Usage]) -> Usage:
    total = Usage()
    for usage in usages:
        total += usage
    return total
