"""Claude Code: ``~/.claude/projects/<folder>/<session>.jsonl`` and subagents' files."""

from __future__ import annotations

import gc
import hashlib
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from debrief.errors import InputError
from debrief.sessions.model import Problem, Session
from debrief.sessions.readers.assembly import TranscriptDraft, assemble
from debrief.sessions.readers.base import (
    BrokenTranscript,
    Claims,
    Head,
    Peek,
    Reader,
    ToolNames,
    Transcript,
    nothing_in,
)
from debrief.sessions.readers.claude_code.conversion import TranscriptFile
from debrief.sessions.readers.claude_code.records import LOOK, Asked, CountedUsage, record_of
from debrief.sessions.readers.claude_code.tree import RecordFile, branch_of_file, joined_records
from debrief.sessions.readers.documents import JsonLines, JsonRecord
from debrief.sessions.readers.files import Walk, head_of
from debrief.sessions.readers.forks import Branch
from debrief.sessions.readers.timeline import NO_USAGE, CallDraft, TurnDraft
from debrief.sessions.readers.values import is_made_up, moment, string

SOURCE = "claude-code"


def session_of_records(
    path: str, records: Iterable[JsonRecord], problems: Sequence[Problem] = ()
) -> Session:
    """Return the session of records that were in a transcript, wherever they come from.

    Args:
        path: in place of the transcript's.
        records: in their order.
        problems: what is known to be missing.
    """
    file = TranscriptFile(path)
    file.take(map(record_of, records))
    file.main.id = file.session_id
    return _session_of([file], problems)


def _session_of(
    files: list[TranscriptFile], unread: Sequence[Problem], joined: Sequence[JsonLines] = ()
) -> Session:
    """Make the session of its files.

    Args:
        files: the main one first, those of subagents' own files behind.
        unread: subagents' files that could not be opened.
        joined: files whose records are among those of the main one.
    """
    main = files[0].main
    _settle_prompts(files[0])
    for leaf, summary in files[0].summaries if not files[0].title_rank else ():
        # A summary counts when it is of this file's records: older versions mixed them up.
        if summary and type(leaf) is str and leaf in files[0].parents:
            main.title = summary.strip()
    lines = [files[0].lines, *joined, *(file.lines for file in files[1:])]
    main.problems = [*unread, *(problem for line in lines for problem in line.problems)]
    main.references = [line.ref() for line in lines]
    ends = [file.main.ended for file in files if file.main.ended is not None]
    main.ended = max(ends, default=None)
    for file in files:
        file.settle_others()
    threads = _threads(files)
    spent = _attribute(files, threads)
    main.usage = sum((usage.usage for usage in spent), NO_USAGE)
    files[0].requests.settle(spent)
    main.api_calls = len(spent)
    for thread in threads:
        thread.api_calls = 0
        _link(thread, files)
    return assemble(main, source=SOURCE, tool=SOURCE, children=threads)


def _settle_prompts(file: TranscriptFile) -> None:
    """Drop the queued prompts that a later record repeats, and find those that were rewound."""
    waiting: dict[str, list[TurnDraft]] = {}
    replaced: set[str] = set()
    latest: dict[str, str] = {}
    for asked in file.prompts:
        if asked.is_delivered:  # a record that repeats it was seen already
            continue
        same = waiting.setdefault(asked.turn.prompt, [])
        if asked.turn.origin == "queued":  # a later record may repeat it
            same.append(asked.turn)
            continue
        if same:
            same.pop(0).provisional = True
        before = _said_before(asked, file)
        if before is not None and asked.uuid is not None:
            if before in latest:
                replaced.add(latest[before])
            latest[before] = asked.uuid
    file.main.timeline.settle()
    for asked in file.prompts if replaced else ():
        asked.turn.rewound = _descends(asked.uuid, replaced, file.parents)


def _said_before(asked: Asked, file: TranscriptFile) -> str | None:
    """Return the record that was said before a prompt, whatever the program put between."""
    at, seen = asked.parent, set[str]()
    while at in file.asides and at not in seen:
        seen.add(at)
        at = file.parents.get(at) or at
    return at


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
            known = counted.get(key)
            if known is None or spent.total > known.total:
                counted[key] = spent
    for spent in counted.values():
        spent.draft.usage = spent.usage
    return list(counted.values())


def _link(thread: TranscriptDraft, files: Iterable[TranscriptFile]) -> None:
    """Link a subagent to the call that started it, and take its type and task from there."""
    thread.call, task = _task_of(thread, files)
    thread.agent_type = thread.agent_type or string(task.get("subagent_type"))
    thread.title = string(task.get("description"))
    thread.prompt = thread.prompt or string(task.get("prompt"))


def _task_of(
    thread: TranscriptDraft, files: Iterable[TranscriptFile]
) -> tuple[CallDraft | None, dict[str, Any]]:
    """Find the call that started a subagent: by a record that says so, else by its prompt."""
    if thread.call is not None:
        return thread.call, thread.call.arguments
    for file in files:
        if call := file.started_by.get(thread.id):
            return call, call.arguments
    for file in files if thread.prompt else ():
        linked = {id(call) for call in file.started_by.values()}
        for call, task in file.tasks:
            same = string(task.get("prompt")).strip() == thread.prompt.strip()
            if same and id(call) not in linked:
                file.started_by.setdefault(thread.id, call)
                return call, task
    return None, {}


_MARKS = re.compile(
    rb'"(?:parentUuid|isSidechain|leafUuid)"\s*:'
    rb'|"type"\s*:\s*"(?:file-history-snapshot|queue-operation|last-prompt|permission-mode'
    rb'|ai-title|custom-title|agent-name|bridge-session|pr-link)"'
)
_GEMINI = re.compile(rb'"message"\s*:\s*\{\s*"role"\s*:\s*"\w+"\s*,\s*"parts"\s*:')
"""A message in Gemini's words: Qwen Code's records are Claude Code's but for that."""
_TURN = re.compile(rb'"type"\s*:\s*"(?:user|assistant)"')
_MESSAGE = re.compile(rb'"message"\s*:\s*\{')
_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{1,200})"')
_OTHERS = re.compile(rb'"session_id"\s*:|"payload"\s*:|"type"\s*:\s*"session_start"')
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AGENT = "agent-"


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the collector of cycles off: a reading makes none, and would be searched for them
    again and again while it grows, which costs a third of the time of a long transcript.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class ClaudeCodeReader(Reader):
    """Claude Code's sessions, each with its subagents' files."""

    source = SOURCE
    tool = SOURCE
    tools = ToolNames(
        run="Bash Monitor",
        read="Read NotebookRead",
        search="Grep Glob LS LSP",
        edit="Edit Write MultiEdit NotebookEdit",
        wait="BashOutput TaskOutput AgentOutputTool ScheduleWakeup",
        plan="TodoWrite TodoRead TaskCreate TaskUpdate TaskList TaskGet EnterPlanMode ExitPlanMode "
        "exit_plan_mode",
        delegate="Task Agent Workflow SendMessage",
        ask="AskUserQuestion",
        web="WebFetch WebSearch",
    )
    home_folders = (".claude/projects", ".config/claude/projects")
    moved_by = ("CLAUDE_CONFIG_DIR", ".claude")
    """The old and the new one."""

    def transcripts(self, walk: Walk, claims: Claims) -> Iterator[Transcript]:
        """Yield the sessions, each with its subagents' files, in path order.

        A subagent's file goes with the session beside it or above it; when there is none, the
        files of one session's subagents are a transcript of their own.
        """
        claimed = claims[SOURCE]
        paths = walk.paths(self.suffixes, SOURCE)
        known = set(paths)
        groups: dict[object, list[str]] = {path: [path] for path in paths if not _is_agent(path)}
        for path in filter(_is_agent, paths):
            groups.setdefault(_parent_of(path, known), []).append(path)
        for first, *rest in sorted(groups.values()):
            if first in claimed and claimed[first].failure is None:
                yield Transcript(source=SOURCE, path=first, companions=tuple(rest))

    def peek(self, transcript: Transcript) -> Peek | None:
        """Look at all records for the session's id, its earliest time and a word that was said.

        A resumption may put bookkeeping of its own before all else, so the first time that stands
        in a file may be a late one.

        Raises:
            OSError: the file cannot be read.
        """
        id, root, has_speech, draft = "", "", False, TranscriptDraft(transcript.path)
        for record in JsonLines(transcript.path).typed(LOOK):
            id = id or string(record.sessionId)
            root = root or string(record.uuid)
            draft.see(moment(record.timestamp))
            has_speech = has_speech or record.is_speech
        if not has_speech:
            return None
        id = id or _session_id_without(transcript.path)
        return Peek(session_id=id, started=draft.started, root=root)

    @_no_collection()
    def read(self, transcript: Transcript) -> Session:
        """Read a session with its subagents; memory is bounded by what the session keeps.

        Raises:
            NoSession: the file is whole, and no prompt and no answer is in it.
            InputError: it cannot be opened, or nothing in it can be read.
        """
        file = _file_of(transcript.path)
        try:
            file.read()
        except OSError as error:
            raise InputError(transcript.path, _why(error)) from error
        return self._whole(file, transcript.companions)

    @_no_collection()
    def read_all(
        self, transcripts: Sequence[Transcript], failed: Callable[[Transcript, Exception], None]
    ) -> Session | None:
        """Read a session's transcripts as one: each record once, wherever it stands."""
        files: dict[Transcript, RecordFile] = {}
        for transcript in transcripts:
            try:
                files[transcript] = RecordFile(transcript.path)
            except OSError as error:
                failed(transcript, InputError(transcript.path, _why(error)))
        if not files:
            return None
        own = [file for file in files if not _is_agent(file.path)] or list(files)[:1]
        first, *others = sorted(own, key=lambda transcript: -files[transcript].said)
        joined = [files[other] for other in others]
        file = _file_of(first.path)
        file.lines = files[first].lines
        file.take(joined_records(files[first], joined))
        for at in (at for file in files.values() for at in file.times):
            file.main.see(at)
        agents = [file.path for file in files if file not in own]
        agents += [path for file in files for path in file.companions]
        return self._whole(file, agents, [record_file.lines for record_file in joined])

    @_no_collection()
    def branch(self, transcript: Transcript) -> Branch:
        """Return the way that a session's own file tells; see ``Reader.branch``."""
        file, records = _file_of(transcript.path), RecordFile(transcript.path)
        file.take(records.records)
        _settle_prompts(file)
        return branch_of_file(file, records)

    def _whole(
        self, first: TranscriptFile, companions: Iterable[str], joined: Sequence[JsonLines] = ()
    ) -> Session:
        """Return the session of a file that was read, with its subagents' files; see ``read``."""
        files, problems, path = [first], list[Problem](), first.main.path
        for companion in companions:
            agent = _agent_of(companion)
            file = TranscriptFile(companion, agent, agent)
            try:
                file.read()
            except OSError as error:
                problems.append(Problem(path=companion, line=0, reason=_why(error)))
                continue
            files.append(file)
        if not any(file.conversational for file in files):
            reason = "no prompt and no answer in it, bookkeeping alone"
            reason = reason if first.lines.size else "the file is empty"
            if strange := sum(file.strange for file in files):
                reason = f"{strange} prompts and answers, of which none could be understood"
                raise BrokenTranscript(path, f"{reason}: of another tool, or a newer version")
            raise nothing_in(path, first.lines.problems, reason)
        for thread in first.agents.values() if _is_agent(path) else ():
            thread.place = "file"
        first.main.id = first.session_id or _session_id_without(path)
        return _session_of(files, problems, joined)

    def claims(self, head: bytes, path: str) -> bool:
        """Return whether a beginning has records as Claude Code writes them."""
        if _GEMINI.search(head):
            return False
        if _MARKS.search(head):
            return True
        if not _TURN.search(head) or not _MESSAGE.search(head):
            return False
        return _SESSION_ID.search(head) is not None or not _OTHERS.search(head)


READER = ClaudeCodeReader()


def _session_id_without(path: str) -> str:
    """Name a session whose records do not: by its file, and by how it begins.

    File names such as ``transcript.jsonl`` repeat from folder to folder, and a copy must get the
    id of its original.
    """
    stem = Path(path).stem
    if _UUID.fullmatch(stem):
        return stem
    first, _, _ = head_of(path).partition(b"\n")
    return f"{stem}-{hashlib.sha256(first).hexdigest()[:8]}"


def _why(error: OSError) -> str:
    return f"cannot be read ({error.strerror or error})"


def _file_of(path: str) -> TranscriptFile:
    """Return a session's own file, or one of a subagent whose session is not at hand, unread."""
    return TranscriptFile(path, "", _agent_of(path) if _is_agent(path) else "")


def _agent_of(path: str) -> str:
    return Path(path).stem.removeprefix(_AGENT)


def _is_agent(path: str) -> bool:
    return path.rsplit("/", 1)[-1].startswith(_AGENT)


def _parent_of(path: str, known: Container[str]) -> str:
    """Return the session's file of a subagent's: above ``subagents/``, else beside it by its id.

    Where neither is there, subagents are of one session by an id that is one session's alone, or
    by the folder that is named after it. By any other, such as the word that ids were masked with,
    each is of a session that is not known.
    """
    session_folder, _, _ = path.rpartition("/subagents/")
    above = f"{session_folder}.jsonl"
    if above in known:
        return above
    id = Head.of(path).text(_SESSION_ID)
    beside = f"{path.rpartition('/')[0]}/{id}.jsonl"
    if beside in known or is_made_up(id):
        return beside
    name = session_folder.rpartition("/")[2]
    return above if is_made_up(name) or (name and name == id) else path
