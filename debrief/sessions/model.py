"""The normal form of a session, whatever tool recorded it.

Frozen msgspec structs rather than pydantic models: a transcript of 50 MB becomes a hundred
thousand of these, and building them must cost less than decoding the JSON did. All times are
timezone-aware and in UTC. Readers build them, redaction rewrites their texts, every later stage
only reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from operator import add
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import astuple

OURS: Final = "ours"
Own = Annotated[str, OURS]
"""Text that no transcript brings: all other text of a session is redacted, by this type alone."""
Name = Annotated[str, "name"]
"""Redacted by itself, so that it is the same wherever it stands: an id, a path."""
Json = Annotated[str, "json"]
Patch = Annotated[str, "patch"]
Copied = Annotated[str, "copy"]
"""Text that stands in another field too: redacted with it, and not counted again."""
Action = Literal["read", "search", "edit", "run", "wait", "plan", "delegate", "ask", "web", "other"]
"""What a call does: ``search`` finds or lists files, ``run`` is a shell command, ``wait`` looks
after what runs already, ``plan`` keeps a list of things to do or hands in a plan, ``delegate``
has another agent work, ``ask`` asks the person, ``web`` looks there."""
CallStatus = Literal["ok", "failed", "rejected", "unanswered"]
InterventionKind = Literal["interruption", "rejection", "answer", "remark", "slash_command"]
"""``remark``: words that were typed while the model worked and reached it beside a result."""
TurnOrigin = Literal["prompt", "queued", "preamble", "inherited"]
"""``inherited``: a fork has the turn from the session that it was forked from; the model saw it,
and it counts there alone."""
RecordStatus = Literal["draft", "ready"]
ContextSource = Literal["command", "task", "agent", "hook", "program"]
"""Who put a text into the model's request that no person wrote: a ``command`` that the person ran
beside the conversation, by its output; a ``task`` in the background, by what became of it; another
``agent``; a ``hook`` of the person's; or the agent's ``program`` itself."""
SubagentPlace = Literal["inline", "file", "progress"]
"""Where a subagent's messages were found: among the session's own records, in a file of their own,
or in reports of progress alone, which count tokens only up to that moment."""


class Usage(Struct, frozen=True, gc=False):
    """Tokens as the provider billed them, in four fields that are never added up blindly.

    Cache reads are over nine tenths of a plain sum and would swamp any ratio.
    """

    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, astuple(self), astuple(other)))


class ToolCall(Struct, frozen=True, kw_only=True, gc=False):
    """One call of a tool by the model, with what came back."""

    id: str
    name: str
    input: Json
    """The arguments as compact JSON text of an object; empty where the source tells none."""
    result: str | None = None
    """The result as text; None when the transcript holds none."""
    status: CallStatus = "unanswered"
    """``rejected``: the person refused the call. ``failed``: the tool reported an error."""
    exit_code: int | None = None
    """Of a shell command, where the transcript has it."""
    at: datetime | None = None
    path: str | None = None
    """The file that the call edited or created, when it did."""
    added: int = 0
    """Lines that the call added to ``path``."""
    removed: int = 0
    """Lines that the call removed from ``path``."""
    patch: Patch = ""
    """The edit as unified hunks without file headers (``@@ …``); empty when nothing was edited."""
    action: Action = "other"
    """By its tool's name and arguments; see ``actions.described``."""
    command: Copied = ""
    """Of ``run``: the shell command, or the commands, one a line; empty where the arguments tell
    none."""
    paths: tuple[Copied, ...] = ()
    """Files or folders that the arguments name, as they name them: what the call reads, edits or
    searches, or ``path`` where they name none. Never of ``run``."""
    estimated: bool = False
    """The edit was worked out from the call's own input, as no result says what it did."""
    late_result: Copied = ""
    """What the call brought after its result, where that said only that it had begun: the answer
    of a subagent in the background, or what a command printed that was waited for. It stands in
    the context of a later message too, or in the result of a later call."""

    @property
    def printed(self) -> str:
        """The result, and what the call brought after it; empty for neither."""
        return "\n".join(filter(None, (self.result, self.late_result)))


class ContextText(Struct, frozen=True, kw_only=True, gc=False):
    """A text that was in the model's request and that no person wrote, in its program's own tags.

    It is part of what the model answered, and never counts as the person's words.
    """

    said_by: ContextSource
    text: str
    """Empty where the transcript holds no more than that the model was told something."""
    at: datetime | None = None
    call_id: str = ""
    """The call that it is about, where it names one."""
    is_behind: bool = False
    """Its program put it behind the person's words, and not before them."""


class Message(Struct, frozen=True, kw_only=True):
    """One message of the model: what it thought and said, and the calls it made."""

    id: str
    model: str
    at: datetime | None = None
    text: str = ""
    thinking: str = ""
    """What the model thought before it spoke, where the transcript holds it. No judge sees it."""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    summary: str = ""
    """After a compaction, what the model was given in place of the conversation before this
    message."""
    context: tuple[ContextText, ...] = ()
    """What else it was given since its message before, beside the person's words and the results
    of its calls, in the order of the request. What came after the last message was in none."""


class Intervention(Struct, frozen=True, kw_only=True, gc=False):
    """What the person did inside a turn other than prompting."""

    kind: InterventionKind
    text: str = ""
    at: datetime | None = None
    expansion: str = ""
    """Of a slash command, the text that the model was given for it."""


class Turn(Struct, frozen=True, kw_only=True):
    """One human prompt and all that follows until the next."""

    number: int
    """From 1. A ``preamble`` (work before the first prompt, or after a compaction that lost
    it) has number 0 and an empty prompt, and is not counted as a turn."""
    prompt: str
    origin: TurnOrigin = "prompt"
    at: datetime | None = None
    ended: datetime | None = None
    images: int = 0
    messages: tuple[Message, ...] = ()
    interventions: tuple[Intervention, ...] = ()
    compacted: bool = False
    """The conversation was compacted during or right before this turn."""
    rewound: bool = False
    """The person went back to before this turn and took another way: nothing later builds on it."""
    expansion: str = ""
    """Of a prompt that is a slash command, the text that the model was given for it."""

    @property
    def is_own(self) -> bool:
        """Whether a person asked for it in this session: it is no preamble, and not inherited."""
        return self.number > 0 and self.origin != "inherited"


class Subagent(Struct, frozen=True, kw_only=True):
    """Work that the session's agent handed to another agent."""

    id: str
    type: str = ""
    description: str = ""
    prompt: str = ""
    messages: tuple[Message, ...] = ()
    place: SubagentPlace = "file"
    call_id: str = ""
    """The call that started it, where the transcript has it."""


class Problem(Struct, frozen=True, kw_only=True, gc=False):
    """A place in a transcript that could not be read, everything around it having been."""

    path: Name
    line: int
    """From 1; 0 where the whole file is meant."""
    reason: str


class TranscriptRef(Struct, frozen=True, kw_only=True, gc=False):
    """A file that a session was read from."""

    path: Name
    digest: Own
    """SHA-256, in hex, of the file's bytes."""
    size: int
    """Bytes."""
    records: int
    """JSON records that were decoded."""


class DeclaredTool(Struct, frozen=True, kw_only=True, gc=False):
    """A tool as the source itself describes it to the model."""

    name: str
    """As calls of it name it."""
    description: str = ""
    parameters: Json = ""
    """The JSON schema of its arguments, as compact JSON text of an object; empty when the source
    does not have it."""


class Instructions(Struct, frozen=True, kw_only=True, gc=False):
    """A prompt file of the person's (CLAUDE.md, AGENTS.md …), as the model was given it."""

    path: Name
    text: str
    place: Literal["system", "message"]
    """Where its program put it: into the system prompt, or before the first prompt's words."""


class Recorded(Struct, frozen=True, kw_only=True, gc=False):
    """What a recorder's record holds of a session that no transcript does."""

    base_commit: str
    """The commit that the work started from."""
    system: str = ""
    """The instructions that it started with; empty for none."""
    verified: bool = False
    """Applying the changes to the base commit was seen to give the tree that was left behind."""
    withheld: str = ""
    """Why the record can train no model, in words; empty when it can."""


class Session(Struct, frozen=True, kw_only=True):
    """One continuous piece of work of a person with a coding agent, subagents included."""

    id: Name
    source: Own
    """Which reader it came from: ``claude-code``, ``droid``, ``codex`` …"""
    tool: str
    tool_version: str = ""
    models: tuple[str, ...] = ()
    """Every model that answered, most used first."""
    task: str
    """A slug: the plan the session worked on, else its repository, else ``unknown``."""
    repository: str = ""
    """The repository's name; empty when the transcript does not have it."""
    branch: str = ""
    cwd: str = ""
    started: datetime
    ended: datetime
    title: str = ""
    transcripts: tuple[TranscriptRef, ...] = ()
    turns: tuple[Turn, ...] = ()
    subagents: tuple[Subagent, ...] = ()
    usage: Usage = Usage()
    """Of the session and its subagents, each API message counted once."""
    api_calls: int = 0
    slash_commands: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    compactions: int = 0
    problems: tuple[Problem, ...] = ()
    redactions: int = 0
    """Secrets that were replaced by placeholders."""
    unsure_redactions: int = 0
    """Of those, the ones that a person should look at before the session trains a model."""
    digest: Own = ""
    """SHA-256 of this normal form without this field and ``status``: later stages redo a session
    when, and only when, it changes."""
    declared_tools: tuple[DeclaredTool, ...] | UnsetType = UNSET
    """What the model was told it could call, where the source holds it: most transcripts name
    tools only where they are called."""
    base_commit: str | UnsetType = UNSET
    """The repository's commit that the work started from, where the transcript has it."""
    recorded: Recorded | UnsetType = UNSET
    """Of a recorder's session alone."""
    system_prompt: str | UnsetType = UNSET
    """The system prompt that the model was really sent, where the transcript holds it."""
    instructions: tuple[Instructions, ...] | UnsetType = UNSET
    """The person's own prompt files that the model was given, where the transcript holds them;
    empty where it shows that there were none."""
    reported_usage: Usage | UnsetType = UNSET
    """The tool's own total of the tokens, where a file has one: a check of ``usage``."""
    relative_of: Name | UnsetType = UNSET
    """Of a fork, the session that it was forked from, or that one's original."""
    plan: Copied | UnsetType = UNSET
    """The plan that the session was started with, where its capture holds one."""
    plan_digest: Own | UnsetType = UNSET
    """SHA-256, in hex, of that plan as the capture holds it."""
    status: RecordStatus | UnsetType = UNSET
    """What the recorder's API holds of a session, where it came from there: ``ready`` is what
    somebody released for training. It is no part of the session itself."""

    @property
    def prompt_count(self) -> int:
        """Human turns, the preamble and those of a fork's original not counted."""
        return sum(turn.is_own for turn in self.turns)

    @property
    def growth(self) -> int:
        """Lines added plus lines removed."""
        return self.lines_added + self.lines_removed


UnreadCause = Literal["transcript", "server"]
"""What kept a transcript from being read: what it is, or a server that did not answer."""


class UnreadTranscript(Struct, frozen=True, kw_only=True):
    """A transcript that gave no session, and why: nothing is lost without a word."""

    path: Name
    source: Own
    week: Own
    line: int
    reason: str
    expected: bool
    """True for a file that never held a session (empty, or bookkeeping alone): reported, but
    no failure."""
    cause: UnreadCause = "transcript"


class SessionHead(Struct, frozen=True, kw_only=True):
    """The columns of a ``raw_sessions`` row that are small."""

    id: str
    source: str
    tool: str
    models: tuple[str, ...] = ()
    task: str
    repository: str = ""
    branch: str = ""
    cwd: str = ""
    started: datetime
    ended: datetime
    transcripts: tuple[TranscriptRef, ...] = ()
    usage: Usage = Usage()
    api_calls: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    problems: tuple[Problem, ...] = ()
    redactions: int = 0
    unsure_redactions: int = 0
    digest: str = ""
    base_commit: str | UnsetType = UNSET
    recorded: Recorded | UnsetType = UNSET
    instructions: tuple[Instructions, ...] | UnsetType = UNSET
    reported_usage: Usage | UnsetType = UNSET
    relative_of: Name | UnsetType = UNSET
    plan_digest: str | UnsetType = UNSET
    status: RecordStatus | UnsetType = UNSET


def messages_of(session: Session) -> Iterator[Message]:
    """Yield all messages of a session, its subagents' last."""
    for turn in session.turns:
        yield from turn.messages
    for agent in session.subagents:
        yield from agent.messages


def calls_of(session: Session) -> Iterator[ToolCall]:
    """Yield all calls of a session, its subagents' last."""
    return (call for message in messages_of(session) for call in message.calls)


def texts_of(session: Session) -> Iterator[str]:
    """Yield every text of a session and its subagents, those in a call's arguments unescaped."""
    yield from (session.branch, session.cwd, session.title, session.system_prompt or "")
    yield session.plan or ""
    yield from (instruction.text for instruction in session.instructions or ())
    for turn in session.turns:
        yield from (turn.prompt, turn.expansion)
        for deed in turn.interventions:
            yield from (deed.text, deed.expansion)
        for message in turn.messages:
            yield from _of_message(message)
    for agent in session.subagents:
        yield from (agent.description, agent.prompt)
        for message in agent.messages:
            yield from _of_message(message)


def _of_message(message: Message) -> Iterator[str]:
    yield from (message.summary, message.thinking, message.text)
    yield from (text.text for text in message.context)
    for call in message.calls:
        yield call.name
        yield from _strings(call.input)
        yield from (text for text in (call.path, call.result) if text)


def _strings(arguments: str) -> Iterator[str]:
    try:
        values = [msgspec.json.decode(arguments)]
    except (msgspec.DecodeError, RecursionError):
        values = [arguments]
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            values += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            values += value


class Evidence(Struct, frozen=True, gc=False):
    """A place in a session."""

    turn: int
    """The turn's number."""
    call: str = ""
    """The id of the tool call; empty for a message."""
    quote: str = ""
    """The words that stand there."""


def sentence(text: str, places: Sequence[Evidence]) -> str:
    """Return a text as a sentence with the turns that show it and the words of the first."""
    begun = f"{text[:1].upper()}{text[1:]}"
    if not places:
        return f"{begun}."
    turns = list(dict.fromkeys(place.turn for place in places))
    more = f" and {len(turns) - 3} more" if len(turns) > 3 else ""
    where = f"turn{'s' if len(turns) > 1 else ''} {', '.join(map(str, turns[:3]))}{more}"
    quote = f": “{places[0].quote}”" if places[0].quote else ""
    return f"{begun} ({where}{quote})."
