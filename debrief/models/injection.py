"""Signs that text in a session was written for whoever judges it."""

from __future__ import annotations

import base64
import binascii
import re
import threading
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from debrief.models.answers import fold

_LOOKED_AT = 400_000
_LOOKED_AT_FOR_CODES = 50_000
_CURSOR = re.compile(r"\x1b\[[0-9;?]*[A-HJKSTfsu]")
_BREAKS = re.compile(r"[\x00\x0b\x0c\x1c-\x1e\x85\u2028\u2029]|\r\n?")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BIDI_OR_TAGS = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0020-\U000e007f]")
_BASE64 = re.compile(r"\b[A-Za-z0-9+/]{24,400}={0,2}")
_SCORE_WORD = r"(?:score|mark|grade|rating|note|points?)"
_JUDGE = r"(?:evaluators?|graders?|judges?|raters?|scorers?)"
_EXTREME = (
    r"(?:top|highest|lowest|maximum|maximale|max|minimum|perfect|best|worst|full|[15](?:/5)?)"
)

_ADDRESSEE = r"(?:the |all |any )?(?:ai |llm )?"
_AWARD = r"(?:gives?|gets?|assign|award|donnez|gib|vergib)"
_UTTER = r"(?:output|reply|answer|return|choose)"

_FORGERIES = (
    r"^[\s>*_`#-]*(?:final )?score[*_`]* ?[:=] ?[*_`]*[1-5]\b(?!\d|[.:]\d)",
    r"\"score\"\s*:\s*[\d.]+\s*,\s*\"(?:reasoning|feedback|rationale)\"",
    r"\"rubrics\"\s*:\s*\[[^\]]*\]\s*,\s*\"score\"",
    r"\[\[ ?## ?(?:score|reasoning|feedback|completed) ?## ?\]\]",
    r"^[\s=]*=== *(?:chat|end) +session *===",
    r"^\s*--- *turn \d+ *---\s*^\s*\[user\]",
    r"^\s*\[TOOL_(?:CALLS|RESULTS)\]\s*$",
    r"<\|im_(?:start|end)\|>\s*(?:<\|im_start\|>)?\s*(?:system|user|assistant)\b",
    r"</s>\s*\[INST\]|\[INST\]\s*<<SYS>>",
    r"\n\n(?:Human|System):[^\n]*\n+(?:\s*\n)*Assistant:",
    r"</session-data>",
)
_ORDERS = (
    rf"\b(?:note|message|instructions?|attention) (?:to|for) {_ADDRESSEE}{_JUDGE}\b",
    rf"\b(?:ai|llm|automated|automatic|model) {_JUDGE}\b[^\n]{{0,120}}"
    r"\b(?:rate|give|output|policy|grade|award|unless|must|always)\b",
    r"(?:\A|\n)\W*(?:judge|evaluator|grader|system)\s*:[^\n]{0,160}"
    rf"\b(?:{_SCORE_WORD}|reasoning|api[_ ]key|prompt)\b",
    rf"\b(?:{_AWARD}|{_UTTER})\b[^\n.]{{0,40}}\b{_EXTREME}\b[^\n.]{{0,20}}\b{_SCORE_WORD}\b",
    rf"\b{_AWARD}\b[^\n.]{{0,40}}\b{_SCORE_WORD}\b[^\n.]{{0,20}}\b{_EXTREME}\b",
    r"\b(?:answer|reply|respond|output|return|give)s? (?:with |only )?[\"'`]?score ?: ?[1-5]",
    r"\b(?:ignore|disregard|forget|override) (?:the |this |any |all )?"
    r"(?:rubric|scale|criteria|scoring)\b",
    r"\bignore[rz]?\b[^\n.]{0,20}\b(?:consignes|instructions)\b[^\n.]{0,60}\bnote\b",
    r"\b(?:when|while|before) (?:grading|scoring|judging|rating|evaluating)\b[^\n]{0,80}"
    r"\b(?:score|reply|output|print|answer|give)\b",
    r"\b(?:ignore|disregard) (?:all |any )?(?:previous|prior|above) instructions\b[^\n]{0,80}"
    r"\b(?:score|rate|grade|mark)\b",
)
_DECODE = r"\b(?:decode|base64)\b[^\n]{0,40}\b(?:follow|execute|obey|do it)\b"
_TOPIC = (
    r"score|judge|grade|grading|evaluat|rater|rubric|consignes|=== |--- turn|\[\[ ?##|<\|im_"
    r"|\[inst\]|\[tool_|human:|session-data|base64|decode|system ?:"
)
"""A text without any of these is not looked at further."""
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (*_FORGERIES, *_ORDERS, _DECODE, _TOPIC)
)
_TOPIC_NUMBER = len(_PATTERNS) - 1
_DOTS = {ord("ı"): "i", ord("İ"): "i"}
"""Letters that ``re`` takes for an i in any case, and folding leaves alone."""
_ANCHORS = re.compile(r"\(\?:\\A\|\\n\)|(?<!\[)\^")
"""What the engine cannot do inside a pattern; without, the pattern matches more."""


def injection_signs(texts: Iterable[str]) -> list[str]:
    """Return the passages, shortened, that look made for a judge; none for ordinary text.

    Nothing is decided by this: fenced text is data either way. It marks a score, so that a
    person looks before the session trains a model.
    """
    found: dict[str, None] = {}
    for text in texts:
        for sign in _signs(text[:_LOOKED_AT]):
            found.setdefault(" ".join(sign.split())[:80])
    return list(found)


def _signs(text: str) -> Iterator[str]:
    if hidden := _BIDI_OR_TAGS.search(text):
        yield f"hidden character U+{ord(hidden[0]):04X}"
    if not text.isascii() or _CONTROLS.search(text):
        text = fold(_BREAKS.sub("\n", _CURSOR.sub("\n", text)))
    possible = _suspected(text)
    for number in sorted(possible) if _TOPIC_NUMBER in possible else ():
        if number != _TOPIC_NUMBER and (match := _PATTERNS[number].search(text)):
            yield match[0]
            if _PATTERNS[number].pattern == _DECODE:
                for piece in _BASE64.finditer(text[:_LOOKED_AT_FOR_CODES]):
                    yield from _decoded(piece[0])


def _suspected(text: str) -> set[int]:
    """Return the indices of the patterns that may match, by one pass over the text."""
    possible: set[int] = set()

    def add(number: int, _start: int, _end: int, _flags: int, _context: object) -> None:
        possible.add(number)

    if text:
        data = text.translate(_DOTS).encode("ascii", "replace")
        _engine().scan(data, match_event_handler=add, scratch=_scratch())
    return possible


_LOCAL = threading.local()


def _scratch() -> Any:
    """Return the engine's working memory of this thread."""
    import hyperscan

    if not hasattr(_LOCAL, "scratch"):
        _LOCAL.scratch = hyperscan.Scratch(_engine())
    return _LOCAL.scratch


@cache
def _engine() -> Any:
    """Return the patterns compiled for a pass that flags at least all that ``re`` finds.

    For ASCII, one byte a character: as UTF-8 they take seven times as long to compile.
    """
    import hyperscan as hs

    flags = hs.HS_FLAG_CASELESS | hs.HS_FLAG_MULTILINE
    flags |= hs.HS_FLAG_PREFILTER | hs.HS_FLAG_SINGLEMATCH
    database = hs.Database()
    database.compile(
        expressions=[_ANCHORS.sub("", each.pattern).encode() for each in _PATTERNS],
        ids=list(range(len(_PATTERNS))),
        elements=len(_PATTERNS),
        flags=[flags] * len(_PATTERNS),
    )
    return database


def _decoded(piece: str) -> Iterator[str]:
    try:
        inner = base64.b64decode(piece + "=" * (-len(piece) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return
    if inner.isprintable():
        for pattern in _ORDERS:
            if match := re.search(pattern, inner, re.IGNORECASE):
                yield match[0]
