"""From what the files of one session hold to the session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from debrief.sessions.model import Problem, Session
from debrief.sessions.readers.assembly import TranscriptDraft, assemble
from debrief.sessions.readers.claude_code.conversion import TranscriptFile
from debrief.sessions.readers.claude_code.records import CountedUsage
from debrief.sessions.readers.timeline import NO_USAGE, TurnDraft
from debrief.sessions.readers.values import changed_at, string

SOURCE = "claude-code"


def session_of(id: str, files: list[TranscriptFile], unread: Sequence[Problem] = ()) -> Session:
    """Make the session of its files.

    Args:
        id: of the session.
        files: the main one first, those of subagents' own files behind.
        unread: subagents' files that could not be opened.
    """
    main = files[0].main
    main.id = id
    _settle_prompts(files[0])
    for leaf, summary in files[0].summaries if not files[0].title_rank else ():
        # A summary counts when it is of this file's records: older versions mixed them up.
        if summary and type(leaf) is str and leaf in files[0].parents:
            main.title = summary.strip()
    main.problems = [*unread, *(problem for each in files for problem in each.lines.problems)]
    main.references = [each.lines.ref() for each in files]
    for each in files[1:]:
        main.see(each.main.ended)
    threads = _threads(files)
    spent = _attribute(files, threads)
    main.usage = sum((each.usage for each in spent), NO_USAGE)
    main.api_calls = len(spent)
    for thread in threads:
        thread.api_calls = 0
        _link(thread, files)
    fallback = changed_at(main.path)
    return assemble(main, source=SOURCE, tool=SOURCE, fallback=fallback, children=threads)


def _settle_prompts(file: TranscriptFile) -> None:
    """Drop the queued prompts that a later record repeats, and find those that were rewound."""
    waiting: dict[str, list[TurnDraft]] = {}
    replaced: set[str] = set()
    latest: dict[str, str] = {}
    for asked in file.prompts:
        same = waiting.setdefault(asked.turn.prompt, [])
        if asked.queued:
            same.append(asked.turn)
            continue
        if same:
            same.pop(0).provisional = True
        if asked.parent is not None and asked.uuid is not None:
            if asked.parent in latest:
                replaced.add(latest[asked.parent])
            latest[asked.parent] = asked.uuid
    file.main.timeline.settle()
    for asked in file.prompts if replaced else ():
        asked.turn.rewound = _descends(asked.uuid, replaced, file.parents)


def _descends(uuid: str | None, ancestors: set[str], parents: Mapping[str, str | None]) -> bool:
    seen: set[str] = set()
    while uuid is not None and uuid not in seen:
        if uuid in ancestors:
            return True
        seen.add(uuid)
        uuid = parents.get(uuid)
    return False


def _threads(files: Iterable[TranscriptFile]) -> list[TranscriptDraft]:
    """Return the subagents' threads; of one that is in several places, the fullest."""
    best: dict[str, TranscriptDraft] = {}
    for file in files:
        own = [file.main] if file.is_agent else []
        for thread in (*own, *file.agents.values()):
            known = best.get(thread.id)
            if known is None or _fullness(thread) > _fullness(known):
                thread.call_id = thread.call_id or (known.call_id if known else "")
                best[thread.id] = thread
    return [thread for thread in best.values() if thread.timeline.messages or thread.prompt]


def _fullness(thread: TranscriptDraft) -> tuple[bool, int]:
    return thread.place != "progress", thread.timeline.messages


def _attribute(
    files: Sequence[TranscriptFile], threads: Iterable[TranscriptDraft]
) -> list[CountedUsage]:
    """Write each API message's usage to the draft that counts; return what counts.

    A message that the session's own thread has under any request id does not count again in a
    subagent's, and one that is in several files counts once.
    """
    main = files[0].main
    kept = {id(thread) for thread in (main, *threads)}
    own = {
        message
        for (message, _), spent in files[0].spent.items()
        if spent.thread is main and message is not None
    }
    counted: dict[Any, CountedUsage] = {}
    for file in files:
        for key, spent in file.spent.items():
            is_repeat = spent.thread is not main and key[0] in own
            if id(spent.thread) not in kept or is_repeat:
                continue
            message = key if key != (None, None) else (key, file.main.path)
            known = counted.get(message)
            if known is None or spent.total > known.total:
                counted[message] = spent
    for spent in counted.values():
        spent.draft.usage = spent.usage
    return list(counted.values())


def _link(thread: TranscriptDraft, files: Iterable[TranscriptFile]) -> None:
    """Link a subagent to the call that started it, and take its type and task from there."""
    thread.call_id, task = _task_of(thread, files)
    thread.agent_type, thread.title = (
        string(task.get("subagent_type")),
        string(task.get("description")),
    )
    thread.prompt = thread.prompt or string(task.get("prompt"))


def _task_of(
    thread: TranscriptDraft, files: Iterable[TranscriptFile]
) -> tuple[str, dict[str, Any]]:
    """Find the call that started a subagent: by a record that says so, else by its prompt."""
    for file in files:
        call_id = file.started_by.get(thread.id) or thread.call_id
        if call_id in file.tasks:
            return call_id, file.tasks[call_id]
    for file in files if thread.prompt else ():
        linked = set(file.started_by.values())
        for call_id, task in file.tasks.items():
            if (
                call_id not in linked
                and string(task.get("prompt")).strip() == thread.prompt.strip()
            ):
                file.started_by.setdefault(thread.id, call_id)
                return call_id, task
    return "", {}
