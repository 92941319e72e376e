"""Find sessions that contain a benchmark's problems, so that nobody trains on them.

The list is JSON, one object a line, made by whoever fetched the benchmarks. Fields: ``benchmark``
(its name), and of one problem what is known of ``id``, ``repository`` (``owner/name``), ``commit``
(what its work starts from) and ``text`` (what it asks for). A session is contaminated when a text
of it that no model wrote, such as a request or the result of a call, has 13 words in a row in
common with a problem's text, or is a shorter one word for word; or when its work started from a
problem's commit of its repository; or, where a problem names a repository and no commit, when it is
of that repository.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from debrief.errors import InputError
from debrief.sessions.model import Message, Session

_RUN = 13
"""Words, as in the reports on GPT-3: fewer are said of different things, too."""
_WORD = re.compile(r"\w+")
_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}\Z")
_NO_WORDS = re.compile(
    r"\x1b\[[0-9;]*[A-Za-z]"  # a terminal's colors
    r"|\\[nrt]"  # white space in the text of JSON
    r"|^(?:[^\s:]+:)?[ \t]*\d+[ \t]*(?:→|\t|:|\|)",  # a line's place, as readers of files show it
    re.MULTILINE,
)

Where = Literal["request", "result", "system prompt", "subagent's task"]
ContaminatedBy = Literal[Where, "commit", "repository"]
CONTAMINATED_BY: tuple[ContaminatedBy, ...] = (
    *("request", "result", "system prompt", "subagent's task"),
    *("commit", "repository"),
)


class BenchmarkProblem(Struct, frozen=True, kw_only=True):
    """One line of the list."""

    benchmark: str
    id: str = ""
    repository: str = ""
    """``owner/name``, or the name alone."""
    commit: str = ""
    """In full, or at least its first 7 digits."""
    text: str = ""


class Contamination(Struct, frozen=True):
    """What a session has in common with a benchmark."""

    benchmark: str
    by: ContaminatedBy


class Problems:
    """The problems of benchmarks, to be looked for in sessions."""

    def __init__(self, problems: Iterable[BenchmarkProblem]) -> None:
        self.counts: defaultdict[str, int] = defaultdict(int)
        """Problems by benchmark."""
        self._texts: dict[str, str] = {}
        self._words: set[str] = set()
        self._named: defaultdict[str, list[BenchmarkProblem]] = defaultdict(list)
        for problem in problems:
            self.counts[problem.benchmark] += 1
            for key in _keys(_words(problem.text)):
                self._texts.setdefault(key, problem.benchmark)
                self._words.update(key.split())
            if problem.repository:
                self._named[_name(problem.repository)].append(problem)

    def found_in(
        self, texts: Iterable[tuple[Where, str]], repository: str = "", commit: str = ""
    ) -> Contamination | None:
        """Return what a session has in common with a benchmark; None for nothing.

        Args:
            texts: that no model wrote, and where each is.
            repository: the session's; with or without its owner.
            commit: that its work started from, as far as it is known.
        """
        for where, text in texts:
            if key := next((key for key in self._shared(text) if key in self._texts), None):
                return Contamination(self._texts[key], where)
        near = [
            problem for problem in self._of(repository) if _starts_alike(problem.commit, commit)
        ]
        if near:
            by: ContaminatedBy = "commit" if near[0].commit else "repository"
            return Contamination(near[0].benchmark, by)
        return None

    def _shared(self, text: str) -> Iterator[str]:
        """Yield the keys of those stretches of a text that hold words of problems alone."""
        words = _words(text)
        if len(words) <= _RUN:
            yield from _keys(words)
            return
        for is_known, stretch in groupby(words, self._words.__contains__):
            known = list(stretch) if is_known else []
            if len(known) >= _RUN:
                yield from _keys(known)

    def is_near(self, repository: str) -> bool:
        """Return whether a problem is of a repository, at whatever commit."""
        return any(self._of(repository))

    def _of(self, repository: str) -> Iterator[BenchmarkProblem]:
        """Yield the problems of a repository; an owner counts where both are named with one."""
        owner = _owner(repository)
        for problem in self._named.get(_name(repository), ()):
            if not owner or _owner(problem.repository) in ("", owner):
                yield problem


def read_problems(path: Path) -> Problems:
    """Read a list of problems.

    Raises:
        InputError: it cannot be read, or a line is no problem.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error
    return Problems(_decoded(path, lines))


def _decoded(path: Path, lines: Iterable[bytes]) -> Iterator[BenchmarkProblem]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            problem = msgspec.json.decode(line, type=BenchmarkProblem)
        except msgspec.DecodeError as error:
            raise InputError(f"{path}:{number}", str(error), _FORM) from error
        if not (problem.repository or problem.text.strip()):
            raise InputError(f"{path}:{number}", "names neither repository nor text", _FORM)
        if problem.commit and not _COMMIT.match(problem.commit):
            raise InputError(f"{path}:{number}", "its commit is none", _FORM)
        yield problem


_FORM = 'A line is {"benchmark": …, "id": …, "repository": …, "commit": …, "text": …}.'


def given_texts(session: Session) -> Iterator[tuple[Where, str]]:
    """Yield the texts of a session that none of its own model's words are, and where each is."""
    yield "system prompt", session.system_prompt or ""
    yield from (("system prompt", each.text) for each in session.instructions or ())
    for turn in session.turns:
        yield "request", turn.prompt
        yield "request", turn.expansion
        yield from (("request", deed.text) for deed in turn.interventions)
        yield from _read(turn.messages)
    for subagent in session.subagents:
        yield "subagent's task", subagent.prompt
        yield from _read(subagent.messages)


def _read(messages: Iterable[Message]) -> Iterator[tuple[Where, str]]:
    for message in messages:
        yield from (("request", each.text) for each in message.context)
        yield from (("result", call.result or "") for call in message.calls)


def _words(text: str) -> list[str]:
    """Return the words of a text without a file reader's line numbers and a terminal's colors."""
    return _WORD.findall(_NO_WORDS.sub(" ", text).lower())


def _keys(words: list[str]) -> Iterator[str]:
    """Yield what words are known by: their runs, or all where they are fewer."""
    for at in range(max(1, len(words) - _RUN + 1) if words else 0):
        yield " ".join(words[at : at + _RUN])


def _starts_alike(known: str, commit: str) -> bool:
    """Return whether two ids may be of one commit; a problem without one is of any."""
    known, commit = known.lower(), commit.lower()
    return not known or (bool(commit) and (known.startswith(commit) or commit.startswith(known)))


def _name(repository: str) -> str:
    return repository.rstrip("/").rpartition("/")[2].removesuffix(".git").lower()


def _owner(repository: str) -> str:
    return repository.rstrip("/").rpartition("/")[0].rpartition("/")[2].lower()
