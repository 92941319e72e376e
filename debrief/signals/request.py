"""What a session was asked to do: its first request, and the file that the request points to.

A request may say no more than where the task is written (``Do what TASK.md says``). The task is
then the text of that file: as the session's capture holds it (the ``plan.md`` of ``debrief
code``), as the program put it beside the request, or as the session read it before its first
edit. Code that a request names is what it is about, and no part of it. Everybody who judges,
scores, compares or trains takes the task from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename, join, normpath
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from debrief.markdown import shorten
from debrief.sessions.model import Evidence, Message, Session, ToolCall, Turn, calls_of
from debrief.sessions.readers.values import without_reminders
from debrief.signals.check_commands import language_of
from debrief.signals.excerpts import without_envelope
from debrief.signals.shell import arguments, placed_commands
from debrief.signals.user_feedback import typed_words
from debrief.snapshots.capture import PLAN

VERSION: Final = "request-2"
"""Raised when other texts are taken for the task: who judges by them judges anew."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_QUOTED = 200
"""Characters of a request that are shown."""
_SHORT = 2_000
"""Characters of a request that may point to a file; a longer one says itself what to do."""
_FIRST = 20
"""Calls among which a session reads the file that it was pointed to."""
_READERS = _set("cat head tail sed nl less more bat batcat type Get-Content gc")
"""Programs of a shell that print a file."""
_RANGE = re.compile(r"\d+(?:,\d+)?p?\Z")
"""Lines, as ``sed`` and ``head`` are told them."""
_LINES = re.compile(r"\A(?:1,|-n?)?(\d+)p?\Z")
"""The last line of a range that begins at the first."""
_USUAL_HEAD = 10
_TEXT = re.compile(r"\.(?:md|mdx|markdown|rst|adoc|org|txt)$|(?:^|/)[^./]+$", re.IGNORECASE)
"""Files that hold words and no code."""
_NAME = re.compile(
    r"@?(?P<path>[\w~./\\-]*\w\.(?:md|mdx|markdown|rst|adoc|org|txt))\b(?!\.\w)", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_POINTING = _set(
    """
    a according ahead all and are as at beginning begin below by carefully carry complete
    completely contents continue current described do done end entire everything exactly execute
    file final finish first folder following follow for from fully go going here i implement in
    instructions is it its issue let's look me now of on open out perform plan please project read
    repo repository requirements root s says section see spec specification specified start step
    steps task tasks tell tells that the them then there this through to under until up we what
    whole with work write written you your
    """
)
"""Words that say where a task is written and nothing of the task."""
_GUTTER = re.compile(r"^ *\d+(?:→|\t)", re.MULTILINE)
"""The number that a reader prints before each line."""
_BESIDE = re.compile(r"\A(?:<system-reminder>\s*)?Contents of (?P<path>[^\n]+?):?\n")
"""How a program begins a file that it puts beside the request that mentions it."""


class NamedFile(Struct, frozen=True, kw_only=True):
    """A file that a request names, as the session's agent was given it."""

    path: str
    text: str


class FirstRequest(Struct, frozen=True, kw_only=True):
    """What a session was asked to do."""

    turn: int
    """The number of its turn."""
    words: str
    """The prompt, and what a slash command stands for."""
    files: tuple[NamedFile, ...] = ()
    """Those that the words name."""
    is_pointer: bool = False
    """The words say where the task is written and nothing of it."""
    unknown: str = ""
    """The file that holds the task, where nothing shows what is in it; empty otherwise."""

    @property
    def text(self) -> str:
        """The task: the files alone where the words only point to them."""
        words = [] if self.is_pointer and self.files else [self.words]
        return "\n\n".join([*words, *(file.text for file in self.files)])


def request_of(session: Session) -> FirstRequest | None:
    """Return what a session was asked to do first; None where it holds no prompt."""
    turns = [turn for turn in session.turns if turn.number > 0 and turn.prompt.strip()]
    turn = next((turn for turn in turns if not turn.rewound), next(iter(turns), None))
    if turn is None:
        return None
    words = "\n\n".join(filter(None, (turn.prompt.strip(), turn.expansion.strip())))
    request = FirstRequest(turn=turn.number, words=words)
    plan = session.plan or ""
    if plan.strip() and plan.strip() not in words:
        files: tuple[NamedFile, ...] = (NamedFile(path=PLAN, text=plan.strip("\n")),)
        return replace(request, files=files, is_pointer=points_elsewhere(words))
    if len(turn.prompt) > _SHORT:
        return request
    files = tuple(_files_named(session, turn, words))
    if not points_elsewhere(words):
        return replace(request, files=files)
    if files:
        return replace(request, files=files, is_pointer=True)
    names = [found["path"] for found in _NAME.finditer(words)]
    made = {basename(call.path) for call in calls_of(session) if call.path}
    unknown = next((name for name in names if basename(name) not in made), "")
    return replace(request, is_pointer=True, unknown=unknown)


def requests_in(session: Session) -> tuple[Evidence, ...]:
    """Return what the person asked for, shortened, by turn; the words of a file in place of those
    that only point to it. What was taken back, or asked in another session, is left out."""
    first = request_of(session)
    found: list[Evidence] = []
    for turn in session.turns:
        if not turn.is_own or turn.rewound:
            continue
        words = typed_words(turn.prompt).strip()
        if first is not None and first.turn == turn.number and first.is_pointer:
            words = first.text if first.files else f"{words} ({first.unknown}: not known)"
        words = words or ("(a picture)" if turn.images else "")
        more = (deed.text for deed in turn.interventions if deed.kind == "remark")
        found += (
            Evidence(turn.number, "", quote) for text in (words, *more) if (quote := _short(text))
        )
    return tuple(found)


def _short(text: str) -> str:
    return shorten(" ".join(text.replace("\\\n", "\n").split()), _QUOTED)


def points_elsewhere(words: str) -> bool:
    """Return whether a request names a file and says nothing else of what is to be done.

    >>> points_elsewhere("Do what docs/TASK.md says."), points_elsewhere("Shorten docs/TASK.md.")
    (True, False)
    """
    rest, count = _NAME.subn(" ", words)
    return count > 0 and all(word.lower() in _POINTING for word in _WORD.findall(rest))


def not_known(request: FirstRequest) -> str:
    """Return the sentence for a task that nothing shows."""
    return (
        f"The plan is not known: the request only names {request.unknown}, and neither the session "
        "nor a capture of it holds that file."
    )


def spelled_out(session: Session) -> Session:
    """Return a session as it is shown to whoever judges: behind the words of its request stand
    the files that they name, whole, or that the plan is not known."""
    request = request_of(session)
    if request is None or not (request.files or request.unknown):
        return session
    parts = [
        f"The file {file.path}, which the request names:\n\n{file.text}" for file in request.files
    ]
    more = "\n\n".join(parts or [f"({not_known(request)})"])
    turns = tuple(
        replace(turn, prompt=f"{turn.prompt}\n\n{more}") if turn.number == request.turn else turn
        for turn in session.turns
    )
    return replace(session, turns=turns)


def _files_named(session: Session, turn: Turn, words: str) -> Iterator[NamedFile]:
    """Yield the files that a request names and that the agent was given first, all their parts."""
    shown: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    later = (each for each in session.turns if each.number >= turn.number)
    messages = (message for each in later for message in each.messages)
    for path, text in _given(messages):
        plain = _plain(text)
        if _is_named(path, words) and not any(plain in parts for parts in shown.values()):
            place = normpath(join(session.cwd, path))
            names.setdefault(place, path)
            shown.setdefault(place, []).append(plain)
    if not shown:
        return
    edited = {normpath(join(session.cwd, call.path)) for call in calls_of(session) if call.path}
    for place, parts in shown.items():
        text = "\n".join(parts)
        is_task = _TEXT.search(place) or not (language_of(place) or place in edited)
        if is_task and text.strip() and text.strip() not in words:
            folder = f"{session.cwd.rstrip('/')}/" if session.cwd else ""
            yield NamedFile(path=names[place].removeprefix(folder), text=text)


def _given(messages: Iterable[Message]) -> Iterator[tuple[str, str]]:
    """Yield path and text of each file that came before the first edit."""
    number = 0
    for message in messages:
        for context in message.context:
            if found := _BESIDE.match(context.text):
                yield found["path"], context.text[found.end() :].removesuffix("</system-reminder>")
        for call in message.calls:
            number += 1
            if number > _FIRST or call.patch:
                return
            if call.result and call.status not in ("failed", "rejected"):
                yield from ((path, without_envelope(call.printed)) for path in _read_by(call))


def _read_by(call: ToolCall) -> Iterator[str]:
    """Yield the files of which a call's result shows the text."""
    if call.action in ("read", "other") or arguments(call).get("command") == "view":
        yield from call.paths
        return
    commands = list(placed_commands(call.command))
    (words, targets), place = commands[-1] if commands else (((), ()), "")
    others = [each for (each, _), _ in commands[:-1] if each[:1] != ("cd",)]
    if others or targets or not words or basename(words[0]) not in _READERS:
        return
    names = [word for word in words[1:] if not word.startswith("-") and not _RANGE.match(word)]
    if len(names) == 1 and _is_whole(words, call.printed):
        yield join(place, names[0]) if place else names[0]


def _is_whole(words: Sequence[str], printed: str) -> bool:
    """Return whether a reader printed its file from the first to the last line."""
    program = basename(words[0])
    if program not in ("sed", "head", "tail"):
        return True
    numbers = [int(number) for word in words[1:] for number in _LINES.findall(word)]
    most = numbers[-1] if numbers else _USUAL_HEAD if program == "head" else 0
    return program != "tail" and printed.count("\n") + 1 < most


def _is_named(path: str, words: str) -> bool:
    """Return whether a request names a file, by its name or by the end of its path."""
    path = path.replace("\\", "/")
    name = re.escape(basename(path))
    if not name:
        return False
    found = re.finditer(
        rf"(?<![\w.-])@?(?P<above>(?:[^\s\"'`<>()@]*/)?){name}(?![\w-]|\.\w)", words
    )
    ends = (normpath(f"{match['above']}{basename(path)}").lstrip("./~") for match in found)
    return any(f"/{normpath(path)}".endswith(f"/{end}") for end in ends)


def _plain(result: str) -> str:
    """Return a file's text as a reader printed it, without what the reader put around it."""
    text = without_reminders(result).strip("\n")
    lines = text.split("\n")
    if all(_GUTTER.match(line) for line in lines):
        return _GUTTER.sub("", text)
    return text
