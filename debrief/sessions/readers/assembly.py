"""Build one session from the events of one or more transcripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET
from msgspec.structs import astuple

from debrief.keys import digest_of, place_of, slugify
from debrief.sessions.model import (
    DeclaredTool,
    Instructions,
    Problem,
    Session,
    Subagent,
    SubagentPlace,
    TranscriptRef,
    Turn,
    Usage,
)
from debrief.sessions.readers.documents import JsonLines, JsonRecord, load_object
from debrief.sessions.readers.timeline import NO_USAGE, CallDraft, MessageDraft, Timeline, TurnDraft
from debrief.sessions.readers.values import (
    CALL_TYPES,
    first_string,
    is_served_result,
    qualified,
    served_result,
    string,
    time_in_name,
    time_without_records,
    unique,
)

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_PROBLEMS = 100
AGENT_TYPES = ("subagent_type", "agent_type", "agent", "agent_name")
"""Arguments in which a call says what kind of subagent it starts."""


class TranscriptDraft:
    """One transcript on its way to a session, or to a part of one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.id = ""
        self.tool = ""
        """Where the transcript names another tool than its source's usual one."""
        self.title = ""
        self.task = ""
        """Where the transcript names it; else it follows from the folder and the repository."""
        self.cwd = ""
        self.branch = ""
        self.repository = ""
        self.commit = ""
        """The repository's when the session began, as whole hex digits."""
        self.version = ""
        self.model = ""
        self.began: datetime | None = None
        """When it began, where its program says so; a fork's copied messages are older."""
        self.started: datetime | None = None
        """Its earliest time."""
        self.ended: datetime | None = None
        self.parent = ""
        """The session that started this one as its subagent; empty for a person's own."""
        self.is_subagent = False
        """Another agent began the session, whether its transcript is known or not."""
        self.parent_call = ""
        """The call that started it, where the transcript names it."""
        self.agent_type = ""
        self.relative_of = ""
        self.plan = ""
        """The session that this one was forked from, where the transcript names it."""
        self.prompt = ""
        """What a subagent was asked, where it is not the prompt of a turn."""
        self.call: CallDraft | None = None
        """The call that started a subagent, where it is known by more than its id."""
        self.call_id = ""
        """The id of that call in the transcript that started it."""
        self.place: SubagentPlace = "file"
        self.timeline = Timeline()
        self.problems: list[Problem] = []
        self.unreported = 0
        """Problems beyond the first hundred."""
        self.references: list[TranscriptRef] = []
        """The transcript, and the files beside it that completed it."""
        self.declared: tuple[DeclaredTool, ...] = ()
        """The tools that the transcript describes, as they come."""
        self.system_prompt = ""
        """What the model was really sent, where the transcript holds it."""
        self.instructions: list[Instructions] = []
        """The person's own prompt files that the model was given, each once."""
        self.shows_instructions = False
        """The transcript holds such files wherever there are any: without any, there were none."""
        self.orphan_results = 0
        self.child_calls: dict[str, str] = {}
        """The calls that started subagents, by the subagents' session ids."""
        self.agents: dict[str, TranscriptDraft] = {}
        """Subagents whose messages are among the session's own, by their ids."""
        self.usage: Usage | None = None
        """The tool's own account of the tokens, where it beats adding up the messages'."""
        self.inclusive_usage: Usage | None = None
        """The same with its subagents', which counts where their transcripts are not at hand."""
        self.reported_usage: Usage | None = None
        """The tool's own total, subagents' included, which what was read is compared with."""
        self.api_calls: int | None = None
        """Where it is not the number of messages."""

    def load(self, path: str) -> JsonRecord:
        """Read a file that is one JSON object; raises as ``load_object`` does."""
        document, reference, problems = load_object(path)
        self.references.append(reference)
        self.problems += problems
        return document

    def load_beside(self, paths: Iterable[str]) -> Iterator[JsonRecord]:
        """Read the files that complete the transcript; those that cannot be read are reported."""
        for path in paths:
            try:
                yield self.load(path)
            except (OSError, ValueError) as error:
                reason = f"cannot be read: {error}"
                self.problems.append(Problem(path=path, line=0, reason=reason))

    def called(self, id: Any) -> CallDraft | None:
        """Return the call that a result with an id answers; a result without one is counted."""
        call = self.timeline.calls.get(string(id))
        self.orphan_results += call is None
        return call

    def add_blocks(
        self, message: MessageDraft, blocks: Iterable[JsonRecord], at: datetime | None
    ) -> None:
        """Add what a message's content says, in blocks of Anthropic's kind: texts, thoughts, calls.

        Args:
            blocks: with the calls' arguments under ``input`` or ``arguments``.
        """
        for block in blocks:
            kind = block.get("type")
            if kind == "text":
                message.texts.append(string(block.get("text")))
            elif kind == "thinking":
                message.thoughts.append(string(block.get("thinking")))
            elif kind == "toolCall" or kind in CALL_TYPES:
                given = block.get("input", block.get("arguments"))
                name = qualified(block.get("server_name"), string(block.get("name")))
                self.timeline.call(message, block.get("id"), name, given, at)
            elif is_served_result(kind):
                answer = served_result(block.get("content"), block.get("is_error"))
                if call := self.called(block.get("tool_use_id")):
                    self.timeline.result(
                        call, answer.text, failed=answer.failed, at=at, exit_code=answer.exit_code
                    )

    def add_instructions(
        self, files: Iterable[tuple[str, str]], place: Literal["system", "message"]
    ) -> None:
        """Add prompt files of the person's, each a path and a text, each once.

        Args:
            place: where the program put them; see ``Instructions``.
        """
        for path, text in files:
            given = Instructions(path=path, text=text, place=place)
            if given not in self.instructions:
                self.instructions.append(given)

    def objects_in(self, messages: Any) -> Iterator[tuple[int, JsonRecord]]:
        """Yield the objects in a document's list of messages, numbered from 0; report others."""
        for index, message in enumerate(messages if type(messages) is list else ()):
            if type(message) is dict:
                yield index, message
            else:
                self.report(0, f"message {index + 1} is not an object")

    def take(self, record: JsonRecord, **names: str) -> None:
        """Fill fields that are empty so far from a record, given its names for them."""
        for field, name in names.items():
            setattr(self, field, getattr(self, field) or string(record.get(name)))

    def agent(self, id: str, place: SubagentPlace = "inline") -> TranscriptDraft:
        """Return the draft of a subagent whose messages are among these."""
        if id not in self.agents:
            agent = self.agents[id] = TranscriptDraft(self.path)
            agent.id, agent.place = id, place
        return self.agents[id]

    def see(self, at: datetime | None) -> None:
        """Take the earliest time as the start and the latest as the end."""
        if at is None:
            return
        if self.started is None or at < self.started:
            self.started = at
        if self.ended is None or at > self.ended:
            self.ended = at

    def report(self, line: int, reason: str) -> None:
        """File a problem with a line of the transcript; 0 means the whole file."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(Problem(path=self.path, line=line, reason=reason))
        else:
            self.unreported += 1

    def read_lines(
        self, convert: Callable[[JsonLines, TranscriptDraft], None], path: str = ""
    ) -> None:
        """Read the file as JSON lines, whose records ``convert`` takes over.

        Args:
            path: of another file that the transcript goes on in.

        Raises:
            OSError: it cannot be read.
        """
        lines = JsonLines(path or self.path)
        convert(lines, self)
        self.references.append(lines.ref())
        self.problems += lines.problems


def assemble(
    draft: TranscriptDraft, *, source: str, tool: str, children: Sequence[TranscriptDraft] = ()
) -> Session:
    """Return the session of a transcript with its subagents' transcripts.

    A transcript of a subagent whose parent is not at hand is a session without human turns: its
    prompt was written by another agent, so all its work is a preamble.
    """
    parts = (draft, *children)
    for part in parts:
        if part.orphan_results:
            part.report(0, f"{part.orphan_results} tool results without their calls")
        if part.unreported:
            reason = f"{part.unreported} more problems"
            part.problems.append(Problem(path=part.path, line=0, reason=reason))
    turns = draft.timeline.build()
    if draft.parent or draft.is_subagent:
        turns = _without_prompts(turns)
        whose = f"session {draft.parent}" if draft.parent else "another session"
        draft.report(0, f"a subagent's work for {whose}, whose transcript is not here")
    subagents = tuple(_subagent(child, draft) for child in children)
    draft.see(draft.began)
    began = draft.began or draft.started
    for child in children:
        draft.see(child.started)
        draft.see(child.ended)
    draft.started = began or draft.started  # subagents' files are not looked at for its week
    if draft.started is None:
        where = "its file's name does" if time_in_name(draft.path) else "it is in the first week"
        draft.report(0, f"no record tells its time; {where}")
    started = draft.started or time_without_records(draft.path)
    place = place_of(draft.cwd, draft.repository)
    messages = [
        *(message for turn in turns for message in turn.messages),
        *(message for subagent in subagents for message in subagent.messages),
    ]
    edits = _edits(turn for turn in draft.timeline.turns if turn.origin != "inherited")
    for child in children:  # its records may begin with a copy of the session's
        for edit, times in _edits(child.timeline.turns).items():
            edits[edit] = max(edits[edit], times)
    used = Counter(message.model for message in messages if message.model)
    alone = None if children else draft.inclusive_usage
    spent = (part.timeline.usage if part.usage is None else part.usage for part in parts)
    usage = sum(spent, NO_USAGE) if alone is None else alone
    if draft.reported_usage is not None and draft.reported_usage != usage:
        reported, read = (
            ", ".join(map(str, astuple(each))) for each in (draft.reported_usage, usage)
        )
        reason = f"the tool's own total of its tokens is {reported}; what was read comes to {read}"
        draft.report(0, f"{reason} (input, output, cache written, cache read)")
    return Session(
        id=draft.id,
        source=source,
        tool=draft.tool or tool,
        tool_version=draft.version,
        models=tuple(model for model, _ in used.most_common()),
        task=slugify(draft.task) if draft.task else place.task,
        repository=place.repository,
        branch=draft.branch,
        cwd=draft.cwd,
        started=started,
        ended=draft.ended or started,
        title=draft.title,
        transcripts=tuple(ref for part in parts for ref in part.references),
        turns=turns,
        subagents=subagents,
        usage=usage,
        api_calls=sum(
            part.timeline.messages if part.api_calls is None else part.api_calls for part in parts
        ),
        slash_commands=draft.timeline.slash_commands,
        lines_added=sum(added * times for (_, _, added, _), times in edits.items()),
        lines_removed=sum(removed * times for (_, _, _, removed), times in edits.items()),
        compactions=draft.timeline.compactions,
        problems=tuple(problem for part in parts for problem in part.problems),
        declared_tools=unique(draft.declared) or UNSET,
        relative_of=draft.relative_of or UNSET,
        plan=draft.plan or UNSET,
        plan_digest=digest_of(draft.plan) if draft.plan else UNSET,
        base_commit=draft.commit if _COMMIT.fullmatch(draft.commit) else UNSET,
        system_prompt=draft.system_prompt or UNSET,
        instructions=tuple(draft.instructions)
        if draft.instructions or draft.shows_instructions
        else UNSET,
        reported_usage=UNSET if draft.reported_usage is None else draft.reported_usage,
    )


def _edits(turns: Iterable[TurnDraft]) -> Counter[tuple[str, str, int, int]]:
    """Count the edits of one thread by what makes two of them the same: id, input and growth."""
    return Counter(
        (call.transcript_id or call.id, call.input, edit.added, edit.removed)
        for turn in turns
        for message in turn.messages
        for call in message.calls
        if (edit := call.made_edit) is not None and (edit.added or edit.removed)
    )


def _subagent(child: TranscriptDraft, parent: TranscriptDraft) -> Subagent:
    """Return a child transcript as a subagent; what it was asked comes from its own prompts."""
    turns = child.timeline.build()
    timeline = parent.timeline
    call = child.call or timeline.named(child.parent_call or parent.child_calls.get(child.id, ""))
    call_id = "" if timeline.is_repeated(child.call_id) else child.call_id
    if call is not None and (child.call is not None or not call_id):
        call_id = call.id
    arguments = call.arguments if call else {}
    prompts = "\n\n".join(turn.prompt for turn in turns if turn.prompt)
    return Subagent(
        id=child.id,
        type=child.agent_type or first_string(arguments, *AGENT_TYPES),
        description=first_string(arguments, "description") or child.title,
        prompt=child.prompt or prompts or first_string(arguments, "prompt", "message"),
        messages=tuple(message for turn in turns for message in turn.messages),
        place=child.place,
        call_id=call_id,
    )


def _without_prompts(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    if not turns:
        return turns
    return (
        Turn(
            number=0,
            prompt="",
            origin="preamble",
            at=turns[0].at,
            ended=max((turn.ended for turn in turns if turn.ended is not None), default=None),
            messages=tuple(message for turn in turns for message in turn.messages),
            compacted=any(turn.compacted for turn in turns),
        ),
    )


class Branches:
    """The branches of a transcript whose records name the one before each: the last one's counts.

    Turns on other branches were taken back. Where ids repeat, nobody can tell; and where the way
    back breaks off, nothing is said about the records before the break.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._records = 0
        self._last = ""
        self._parents: dict[str, str] = {}
        self._turns: list[tuple[int, str, TurnDraft]] = []

    def add(self, id: str, parent: str) -> None:
        """Take a record that the timeline has dealt with."""
        self._records += 1
        self._last = id
        self._parents[id] = parent
        for turn in self._timeline.turns[len(self._turns) :]:
            self._turns.append((self._records, id, turn))

    def settle(self, last: str = "") -> None:
        """Mark the turns that are not on the way from the last record to the root.

        Args:
            last: the id of the record that the transcript itself calls the last.
        """
        if len(self._parents) < self._records:
            return
        order = {id: number for number, id in enumerate(self._parents, 1)}
        way, id = dict[str, int](), last or self._last
        while id in order and id not in way:
            way[id] = order[id]
            id = self._parents[id]
        start = min(way.values(), default=0) if id else 0
        for number, id, turn in self._turns:
            turn.rewound = number >= start and id not in way
