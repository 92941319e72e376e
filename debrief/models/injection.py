"""Signs that text in a session was written for whoever judges it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator

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

_FORGERIES = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
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
)
_ORDERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
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
)
_DECODE = re.compile(r"\b(?:decode|base64)\b[^\n]{0,40}\b(?:follow|execute|obey|do it)\b", re.I)
_WORDS = (
    *("score", "judge", "grade", "grading", "evaluat", "rater", "rubric", "consignes", "=== "),
    *("--- turn", "[[ ##", "[[##", "<|im_", "[inst]", "[tool_", "human:", "session-data"),
    *("base64", "decode", "system:", "system :"),
)
"""A text that has none of these, folded and in small letters, is not looked at further."""


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
    if _is_plain(text) and not _may_be_meant(text):
        return
    plain = fold(_BREAKS.sub("\n", _CURSOR.sub("\n", text)))
    if not _may_be_meant(plain):
        return
    for pattern in _FORGERIES:
        if match := pattern.search(plain):
            yield match[0]
    yield from _orders(plain)
    if match := _DECODE.search(plain):
        yield match[0]
        for piece in _BASE64.finditer(plain[:_LOOKED_AT_FOR_CODES]):
            yield from _decoded(piece[0])


def _is_plain(text: str) -> bool:
    """Return whether folding would change nothing."""
    return text.isascii() and not _CONTROLS.search(text)


def _may_be_meant(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in _WORDS)


def _orders(plain: str) -> Iterator[str]:
    for pattern in _ORDERS:
        if match := pattern.search(plain):
            yield match[0]


def _decoded(piece: str) -> Iterator[str]:
    try:
        inner = base64.b64decode(piece + "=" * (-len(piece) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return
    if inner.isprintable():
        yield from _orders(inner)
