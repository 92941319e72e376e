"""Compare first requests whatever template, quoting or markup they stand in.

A request is its content words in order: markup, punctuation, case and function words are left out,
so the same request bare, quoted or in an XML wrapper is the same words. What many different
requests share, such as a harness's template or the expansion of a slash command, is boilerplate and
is left out before two requests are compared. So is a request that was made for many different
pieces of work, such as a nightly prompt. Two requests that share most of their words and differ in
a slot, as two uses of a rare template do, are different requests.
"""

from __future__ import annotations

import html
import re
import unicodedata
import zlib
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from debrief.sessions.model import Session
from debrief.signals.request import request_of
from debrief.training.minhash import alike, groups_of, signatures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COMMON = 8
"""Different requests, or pieces of work, from which on what they share is boilerplate."""

_FEWEST_WORDS = 8
_MOST_WORDS = 10_000
_RUN = 3
_MARKS = 1
_LONGEST_EDIT = 2
"""Content words in a row that one request may have in place of the other's and be the same."""
_LITTLE = 3
"""Content words beside boilerplate that say next to nothing: the parts of a date."""
_FEWEST_REWORDED, _FEWEST_ALIKE = 8, 5
"""Content words of two texts together, from which on a common half of them, or more than three
fifths, tell rewording."""
_MIX = 0x9E3779B97F4A7C15

_TAG = re.compile(r"</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?/?>")
_WITHOUT_SPACES = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_WITHOUT_SPACES}]|[^\W_{_WITHOUT_SPACES}]+")
_FUNCTION_WORDS = """
    a about after all also am an and any are as ask asked asks at be been before below but by can
    could did do does doing don done for from had has have hello here hi how i if in into is it its
    just kindly let like may me might must my need needs now of on or our out please s says should
    so some such t than thank thanks that the their them then there these they this those to too us
    want wanted wants was we were what when where which while who will with would you your
"""
_PASSED_OVER = frozenset(_FUNCTION_WORDS.split())


def request_words(session: Session) -> bytes:
    """Return the first request that was not taken back as hashes of its content words, four bytes
    each, the lowest bit set for a word with a digit.

    Of a request that only points to a plan or another file, it is the text of that file. Of a slash
    command of fewer than eight words it is the text that the model was given for it. Empty for
    other requests of fewer than eight words, as "run the tests" is asked for in any work, and where
    the file that holds the task is not known.
    """
    turn = next((turn for turn in session.turns if turn.prompt and not turn.rewound), None)
    request = request_of(session)
    if request is not None and request.unknown:
        return b""
    text = turn.prompt if turn else ""
    if request is not None and request.is_pointer and request.files:
        text = request.text
    words = words_of(text)
    if turn and len(words) < _FEWEST_WORDS:
        words += words_of(turn.expansion)
    if len(words) < _FEWEST_WORDS:
        return b""
    content = (word for word in words if word not in _PASSED_OVER)
    return b"".join(_word_hash(word) for _, word in zip(range(_MOST_WORDS), content, strict=False))


def words_of(text: str) -> list[str]:
    """Return the words of a text without markup, punctuation and case.

    >>> words_of("> **Fix** `parse_row` in\\n> <file>a.py</file> &amp; test")
    ['fix', 'parse', 'row', 'in', 'a', 'py', 'test']
    """
    plain = unicodedata.normalize("NFKC", _TAG.sub(" ", html.unescape(_TAG.sub(" ", text))))
    return _WORD.findall(plain.casefold())


def _word_hash(word: str) -> bytes:
    digit = any(letter.isdigit() for letter in word)
    return ((zlib.crc32(word.encode()) & ~1) | digit).to_bytes(4, "little")


class FirstRequests:
    """The distinct requests of some sessions, without what is boilerplate among them.

    Args:
        words: of each session, as ``request_words`` returns them.
        works: of each session, a number of the work that it is a part of.
        files: of each session, the keys of the files that it worked on.
    """

    def __init__(
        self, words: Sequence[bytes], works: Sequence[int], files: Sequence[Collection[bytes]]
    ) -> None:
        import numpy as np

        numbers: dict[bytes, list[int]] = {}
        for session, each in enumerate(words):
            if each:
                numbers.setdefault(each, []).append(session)
        self._sessions = list(numbers.values())
        self._of = {one: number for number, ones in enumerate(self._sessions) for one in ones}
        self._files = files
        self._words = [np.frombuffer(each, np.uint32) for each in numbers]
        self._weights = [len({works[one] for one in ones}) for ones in self._sessions]
        self._rest = self._without_boilerplate()
        self._same = set(self._found())

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of sessions with the same request, the smaller first: enough of them to
        connect all that have."""
        for number, sessions in enumerate(self._sessions):
            if not self._is_habit(number):
                yield from ((sessions[0], other) for other in sessions[1:])
        for one, other in self._same:
            first, second = sorted((self._sessions[one][0], self._sessions[other][0]))
            yield first, second

    def differ(self, one: int, other: int) -> bool:
        """Return whether two sessions have requests that are known and not the same."""
        first, second = self._of.get(one), self._of.get(other)
        if first is None or second is None or first == second:
            return False
        return (min(first, second), max(first, second)) not in self._same

    def _is_habit(self, number: int) -> bool:
        return self._weights[number] >= COMMON

    def _without_boilerplate(self) -> list[NDArray[np.uint32]]:
        """Return the words of each request that no boilerplate covers."""
        import numpy as np

        if not self._words:
            return []
        runs = [_runs(each) for each in self._words]
        known, places = np.unique(np.concatenate(runs), return_inverse=True)
        owners = np.repeat(np.arange(len(runs)), list(map(len, runs)))
        owned, place = np.divmod(np.unique(owners * len(known) + places), len(known))
        counts = np.array([weight if weight >= COMMON else 1 for weight in self._weights])
        is_common = (np.bincount(place, counts[owned]) >= COMMON)[places]
        ends = np.cumsum([len(each) for each in runs])[:-1]
        return [
            words[~_covered(len(words), common)]
            for words, common in zip(self._words, np.split(is_common, ends), strict=True)
        ]

    def _found(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs of different requests that ask for the same."""
        for one, other in sorted(self._candidates()):
            first, second = self._rest[one], self._rest[other]
            is_slot = any(len(self._rest[n]) < len(self._words[n]) for n in (one, other))
            is_same = _is_same(first, second, is_slot=is_slot)
            if is_same or (self._is_same_work(one, other) and _is_mostly_shared(first, second)):
                yield one, other
        for one, other in self._of_boilerplate():
            if self._is_same_work(one, other) and _is_mostly_shared(
                self._words[one], self._words[other]
            ):
                yield one, other

    def _of_boilerplate(self) -> set[tuple[int, int]]:
        """Return pairs of requests of which next to nothing remains, such as a date, and whose
        sessions worked on one file: enough to connect all that did."""
        by_file: dict[bytes, list[int]] = {}
        for number, rest in enumerate(self._rest):
            if len(rest) <= _LITTLE:
                keys = {key for one in self._sessions[number] for key in self._files[one]}
                for key in sorted(keys):
                    by_file.setdefault(key, []).append(number)
        return {pair for members in by_file.values() for pair in pairwise(members)}

    def _candidates(self) -> set[tuple[int, int]]:
        """Return pairs of requests with a run of words in common, or many words."""
        import numpy as np

        asked = [number for number, rest in enumerate(self._rest) if len(rest)]
        if len(asked) < 2:
            return set()
        own = [np.unique(_runs(self._rest[number])) for number in asked]
        owners = np.repeat(asked, list(map(len, own))).tolist()
        found: set[tuple[int, int]] = set()
        for places in groups_of(np.concatenate(own)):
            found.update(combinations([owners[place] for place in places[:_MOST]], 2))
        marks = signatures([np.unique(self._rest[number]).astype(np.uint64) for number in asked])
        found.update((asked[one], asked[other]) for one, other, _ in alike(marks, _REWORDED))
        return found

    def _is_same_work(self, one: int, other: int) -> bool:
        first, second = (
            {key for session in self._sessions[number] for key in self._files[session]}
            for number in (one, other)
        )
        return shares_files(first, second)


_MOST = 2 * COMMON
"""Requests that are compared for one run of words; there are more only where boilerplate was cut
out of a request, so that other words met."""
_REWORDED = 0.4
"""Likeness of requests as sets of words, from which on they are looked at."""


def shares_files(one: Collection[bytes], other: Collection[bytes]) -> bool:
    """Return whether two sessions have half the files of one of them in common."""
    fewest = min(len(one), len(other))
    return fewest > 0 and 2 * len(set(one) & set(other)) >= fewest


def _is_same(one: NDArray[np.uint32], other: NDArray[np.uint32], *, is_slot: bool) -> bool:
    """Return whether the words of two requests, boilerplate left out, ask for the same.

    They do when all of one stands in the other, when they differ in a word or two here and there,
    or when half of the words in which they differ are the same ones in another order. Numbers that
    each has for itself, such as a ticket's, tell slots of a template apart; in requests without
    boilerplate they may be dates or ports.
    """
    if not len(one) or not len(other):
        return False
    if is_slot and _numbers(one) - _numbers(other) and _numbers(other) - _numbers(one):
        return False
    shared = _shared(one, other)
    spans = [_longest(~flags) for flags in shared]
    covered = [int(flags.sum()) for flags in shared]
    if not all(spans):
        fewest = min(covered)
        return fewest >= _FEWEST_ALIKE or 3 * fewest >= max(len(one), len(other))
    mostly = all(2 * count >= len(flags) for count, flags in zip(covered, shared, strict=True))
    if mostly and max(spans) <= _LONGEST_EDIT:
        return True
    first, second = (
        set(words[~flags].tolist()) for words, flags in zip((one, other), shared, strict=True)
    )
    every, both = len(first | second), len(first & second)
    return both * 2 >= every >= _FEWEST_REWORDED or both * 5 > every * 3 >= _FEWEST_ALIKE * 3


def _is_mostly_shared(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> bool:
    return all(2 * int(flags.sum()) >= len(flags) for flags in _shared(one, other))


def _shared(
    one: NDArray[np.uint32], other: NDArray[np.uint32]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return of each word of two requests whether it is in a run that both have."""
    import numpy as np

    first, second = _runs(one), _runs(other)
    return (
        _covered(len(one), np.isin(first, second)),
        _covered(len(other), np.isin(second, first)),
    )


def _numbers(words: NDArray[np.uint32]) -> set[int]:
    return set(words[words & 1 == 1].tolist())


def _longest(flags: NDArray[np.bool_]) -> int:
    """Return the length of the longest stretch of true flags."""
    import numpy as np

    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return int((edges[1::2] - edges[::2]).max(initial=0))


def _covered(count: int, runs: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return of each of ``count`` words whether one of the marked runs holds it."""
    import numpy as np

    flags = np.zeros(count + 2 * _MARKS, np.bool_)
    for offset in range(_RUN):
        flags[offset : offset + len(runs)] |= runs
    return flags[_MARKS : _MARKS + count]


def _runs(words: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return the hashes of the runs of three words, with a mark before and behind all, so that two
    words at either end are in a run, too."""
    import numpy as np

    marks = [0] * _MARKS
    padded = np.concatenate((marks, words, marks)).astype(np.uint64)
    runs = np.zeros(len(padded) - _RUN + 1, np.uint64)
    with np.errstate(over="ignore"):
        for offset in range(_RUN):
            runs = (runs + padded[offset : offset + len(runs)]) * np.uint64(_MIX)
            runs ^= runs >> np.uint64(29)
    return runs
