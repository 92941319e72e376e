"""Words in a session that were made for whoever judges it, and answers that only repeat them.

Nothing is decided by such a sign: fenced text is data either way. It marks a score, so that a
person looks before the session trains a model. An answer that stands in what was judged is
refused: whoever gave it judged nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import chain, permutations

import msgspec
from msgspec import Struct

from debrief.models.answers import answer_text, json_values, refuse
from debrief.redaction.spans import Prefilter
from debrief.sessions.model import Session, texts_of


class _Plain(dict[int, str]):
    """What is left of a character: its letter in small and without accents, or nothing."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if " " <= character <= "~" or character == "\t":
            return self.setdefault(code, character)
        if character in _BREAKS:
            return self.setdefault(code, "\n")
        parts = unicodedata.normalize("NFKD", character).casefold()
        shown = "".join(p for p in parts if unicodedata.category(p) not in _UNSEEN)
        return self.setdefault(code, unicodedata.normalize("NFC", shown).replace("ı", "i"))


_BREAKS = "\n\x00\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029"
_UNSEEN = ("Mn", "Me", "Cc", "Cf", "Cs")
_PLAIN = _Plain()
_BIDI_OR_TAGS = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0020-\U000e007f]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CURSOR = re.compile(r"\x1b\[[0-9;?]*[A-HJKSTfsu]")
_LONGEST_SIGN = 80
_Hits = list[tuple[int, int, int]]


def injection_signs(texts: Iterable[str]) -> list[str]:
    """Return the ends, shortened, of passages that look made for a judge.

    All of every text is looked at, in one pass of an engine whose time is linear; ordinary text
    has none.
    """
    return list(dict.fromkeys(sign for text in texts for sign in _signs(text)))


def is_suspected(session: Session) -> bool:
    """Return whether a text of a session has such a sign; remembered by its digest, for stages
    ask one after the other."""
    if (known := _SUSPECTED.get(session.digest)) is not None:
        return known
    suspected = bool(injection_signs(texts_of(session)))
    if session.digest:
        if len(_SUSPECTED) >= _MOST_REMEMBERED:
            _SUSPECTED.clear()
        _SUSPECTED[session.digest] = suspected
    return suspected


_SUSPECTED: dict[str, bool] = {}
_MOST_REMEMBERED = 100_000


def _signs(text: str) -> Iterator[str]:
    if hidden := _BIDI_OR_TAGS.search(text):
        yield f"hidden character U+{ord(hidden[0]):04X}"
    if not text.isascii() or _CONTROLS.search(text):
        text = _CURSOR.sub("\n", text).translate(_PLAIN)
    data = text.encode("utf-8")
    passages, near, classes, rules = _engines()
    found = {end for _, end, _ in passages.scan(data)}
    for start in range(0, len(data), _BLOCK):
        block = data[start : start + _BLOCK + _OVERLAP]
        found.update(start + end for end in _near(block, near.scan(block), classes, rules))
    for end in sorted(found):
        yield " ".join(data[max(0, end - _LONGEST_SIGN) : end].decode("utf-8", "ignore").split())


class _Rule(Struct, frozen=True):
    """What is a sign when all of it stands within so many bytes."""

    of: tuple[str, ...]
    reach: int
    ordered: bool = False
    lines: bool = False
    """Line ends may lie between."""


def _near(data: bytes, hits: _Hits, classes: list[str], rules: Iterable[_Rule]) -> Iterator[int]:
    """Yield where each rule that holds does so for the first time."""
    import numpy as np

    present = {classes[number] for _, _, number in hits}
    if not (rules := [rule for rule in rules if present.issuperset(rule.of)]):
        return
    table = np.fromiter(chain.from_iterable(hits), np.int64, 3 * len(hits)).reshape(-1, 3)
    kinds = np.array([classes.index(name) for name in classes])[table[:, 2]]
    at = {name: table[kinds == classes.index(name), 1] for name in present}
    lines = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    for rule in rules:
        for order in [rule.of] if rule.ordered else permutations(rule.of):
            start = end = at[order[0]]
            for later in (at[name] for name in order[1:]):
                place = np.searchsorted(later, end)
                start, end = start[place < len(later)], later[place[place < len(later)]]
            same_line = np.searchsorted(lines, start) == np.searchsorted(lines, end)
            yield from end[(end - start <= rule.reach) & (same_line | rule.lines)][:1].tolist()


class _Signs(Struct, frozen=True):
    """The file beside this module."""

    patterns: tuple[str, ...]
    words: dict[str, str]
    near: dict[str, tuple[str, ...]]
    rules: tuple[_Rule, ...]


@cache
def _engines() -> tuple[Prefilter, Prefilter, list[str], tuple[_Rule, ...]]:
    """Return what finds passages, what finds words, the words' classes, and the rules."""
    import hyperscan as hs

    text = (resources.files("debrief.models") / "injection.toml").read_bytes()
    signs = msgspec.toml.decode(text, type=_Signs)

    def compiled(patterns: Sequence[str], flags: int = 0) -> Prefilter:
        plain = [pattern.translate(_PLAIN) for pattern in patterns]
        flags |= hs.HS_FLAG_CASELESS | hs.HS_FLAG_MULTILINE
        return Prefilter(plain, untracked=range(len(plain)), flags=flags)

    whole = [_WORD.sub(lambda name: f"(?:{signs.words[name[1]]})", p) for p in signs.patterns]
    names = [name for name, words in signs.near.items() for _ in words]
    near = compiled([word for words in signs.near.values() for word in words])
    return compiled(whole, hs.HS_FLAG_SINGLEMATCH), near, names, signs.rules


_WORD = re.compile("«([a-z_]+)»")
_BLOCK, _OVERLAP = 1_000_000, 400

_ESCAPED_SPACES = re.compile(r"(?<!\\)\\+[nrt]")
_TRACES = re.compile("⟨[0-9A-F]{4,6}⟩")
_NO_LETTERS = re.compile(r"[\W_]+")
_NO_ACCIDENT, _TELLING = 30, 12


def bare_words(text: str) -> str:
    """Fold away case, accents, all but letters and digits, and every trace of a text's having
    been defused or put into JSON.

    An answer that holds nothing but words of what it was to judge has judged nothing.
    """
    plain = _TRACES.sub("", _ESCAPED_SPACES.sub(" ", text)).translate(_PLAIN)
    return _NO_LETTERS.sub("", plain.casefold())


def refuse_lifted(answer: str, reasons: Sequence[str], shown: str, question: str = "") -> None:
    """Refuse an answer that only repeats what it was shown: then nobody judged anything.

    One reason of 30 letters, or all of 12 together, do not stand in the material by chance.
    Shorter ones may, so the whole answer, and each object in it, is compared.

    Args:
        answer: whole, as it was sent.
        reasons: read out of it, one at least.
        shown: the bare words of all that was shown.
        question: what was asked, where it holds an example.

    Raises:
        AnswerError: the answer is lifted.
    """
    said = [bare_words(reason) for reason in reasons]
    lifted = [each for each in said if each in shown]
    by_all = len(lifted) == len(said) and len("".join(lifted)) >= _TELLING
    if not (by_all or any(len(each) >= _NO_ACCIDENT for each in lifted)):
        text = answer_text(answer)
        parts = [text, *(text[each.start : each.end] for each in json_values(text))]
        wholes = [bare_words(part) for part in parts] if len(lifted) == len(said) else []
        asked = bare_words(question)
        if not any(whole in shown for whole in wholes) and bare_words(answer) not in asked:
            return
    refuse("it repeats words of the recording and judges nothing")
