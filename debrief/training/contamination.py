"""Find sessions that contain a benchmark's problems, so that nobody trains on them.

The list is JSON, one object a line, made by whoever fetched the benchmarks. Fields: ``benchmark``
(its name), and of one problem what is known of ``id``, ``repository`` (``owner/name``), ``commit``
(what its work starts from) and ``text`` (what it asks for). A session is contaminated when one of
its requests has 13 words in a row in common with a problem's text, or is a shorter one word for
word; or when its work started from a problem's commit of its repository; or, where a problem names
a repository and no commit, when it is of that repository.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from debrief.errors import InputError

_RUN = 13
"""Words, as in the reports on GPT-3: fewer are said of different things, too."""
_WORD = re.compile(r"\w+")
_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}\Z")

ContaminatedBy = Literal["text", "commit", "repository"]


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
        self._named: defaultdict[str, list[BenchmarkProblem]] = defaultdict(list)
        for problem in problems:
            self.counts[problem.benchmark] += 1
            for text in _keys(problem.text):
                self._texts.setdefault(text, problem.benchmark)
            if problem.repository:
                self._named[_name(problem.repository)].append(problem)

    def found_in(
        self, requests: Iterable[str], repository: str = "", commit: str = ""
    ) -> Contamination | None:
        """Return what a session has in common with a benchmark; None for nothing.

        Args:
            requests: the person's, each by itself.
            repository: the session's; with or without its owner.
            commit: that its work started from, as far as it is known.
        """
        for text in (text for request in requests for text in _keys(request)):
            if text in self._texts:
                return Contamination(self._texts[text], "text")
        near = [
            problem for problem in self._of(repository) if _starts_alike(problem.commit, commit)
        ]
        if near:
            by: ContaminatedBy = "commit" if near[0].commit else "repository"
            return Contamination(near[0].benchmark, by)
        return None

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


def _keys(text: str) -> Iterator[str]:
    """Yield what a text is known by: its runs of words, or all of a shorter one."""
    words = _WORD.findall(text.lower())
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
