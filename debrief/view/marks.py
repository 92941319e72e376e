"""Highlight the words that reasons cite, and cut long texts around them.

A mark is where the words of a quotation stand in a text, or in the HTML that was made of it. White
space and case do not count, and signs need not: a quotation has often been shortened, and Markdown
takes signs away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import unescape

from markupsafe import Markup, escape
from msgspec import Struct

from debrief.errors import without_controls

_LETTER = re.compile(r"[^\W_]")
_NO_LETTER = re.compile(r"[\W_]+")
_NO_TEXT = re.compile(r"<[^>]*>|&#?\w+;")
_CUT = re.compile(r"…|: ")
_FEWEST = 6
"""Letters of a part of a quotation that are not found by chance."""
_LONG_LINE = 200
_MOST = 400
"""Letters of a quotation that are looked for."""


class Back(Struct, frozen=True):
    """A way back from a mark to a reason."""

    href: str
    name: str


class EvidenceMark(Struct, frozen=True, kw_only=True):
    """A place in a session that reasons cite."""

    number: int
    """From 1, in the order of the transcript."""
    turn: int
    quote: str = ""
    backs: tuple[Back, ...] = ()
    """The reasons."""

    @property
    def anchor(self) -> str:
        """Return the id of the element that stands for it."""
        return f"mark-{self.number}"


def find(text: str, quote: str) -> tuple[int, int] | None:
    """Return where a quotation is in a text; None where nowhere.

    Signs count where that finds it, else letters alone; and of one with something left out in its
    middle, the longest part.

    >>> find("It **is** done.", "is done…")
    (5, 14)
    """
    for part in (quote, *sorted(_CUT.split(quote), key=len, reverse=True)):
        letters = _LETTER.findall(part)[:_MOST]
        if not letters or "".join(letters).lower() not in _letters_of(text):
            continue
        if part is quote or len(letters) >= _FEWEST:
            signs = "".join(part.strip("… ").split())[:_MOST]
            found = _pattern(signs, r"\s*+").search(text)
            found = found or _pattern("".join(letters), r"[\W_]*+").search(text)
            if found:
                return found.span()
    return None


@lru_cache(maxsize=64)
def _letters_of(text: str) -> str:
    """Return the letters of a text, which tell at once that a quotation is not in it."""
    return _NO_LETTER.sub("", text).lower()


@lru_cache(maxsize=512)
def _pattern(signs: str, between: str) -> re.Pattern[str]:
    return re.compile(between.join(map(re.escape, signs)), re.IGNORECASE)


def marked(html: str, marks: Iterable[EvidenceMark]) -> Markup:
    """Return HTML in which the words of each mark stand out and lead back to its reasons.

    A mark whose words are not there stands before everything.
    """
    before = ""
    for mark in marks:
        visible = _NO_TEXT.sub(_seen, html)
        place = find(visible, mark.quote)
        backs = _backs(mark)
        if place is None:
            before += f'<p class="evidence-here" id="{mark.anchor}">{_note(mark)}{backs}</p>'
        else:
            html = _wrapped(html, _uncut(html, place), mark, backs)
    return Markup(f"{before}{html}")


def _uncut(html: str, place: tuple[int, int]) -> tuple[int, int]:
    """Return a stretch that ends with the tag or the entity that it would end within."""
    start, end = place
    ends = (each.end() for each in _NO_TEXT.finditer(html) if each.start() < end < each.end())
    return start, next(ends, end)


def _seen(found: re.Match[str]) -> str:
    """Return what is seen of a tag or an entity, in as many characters."""
    return ("" if found[0].startswith("<") else unescape(found[0])).ljust(len(found[0]))


def _note(mark: EvidenceMark) -> str:
    return _shown(f"Evidence: “{mark.quote}” " if mark.quote else "Evidence: ")


def _shown(text: str) -> str:
    return escape(without_controls(text))


def _backs(mark: EvidenceMark) -> str:
    return "".join(
        f'<a class="back" href="{escape(back.href)}" title="Back to the reason">'
        f"{_shown(back.name)}</a>"
        for back in mark.backs
    )


def _wrapped(html: str, place: tuple[int, int], mark: EvidenceMark, backs: str) -> str:
    """Wrap the text between two places, piece by piece, for tags may begin or end there."""
    parts, identity = [html[: place[0]]], f' id="{mark.anchor}"'
    inside = html[place[0] : place[1]]
    for piece in re.split(r"(<[^>]*>)", inside):
        if piece.startswith("<") or not piece:
            parts.append(piece)
        else:
            parts.append(f'<mark class="evidence"{identity}>{piece}</mark>')
            identity = ""
    after = html[place[1] :]
    for opened, closed in (("<a ", "</a>"), ("<summary", "</summary>")):  # no link may be in these
        begun = "".join(parts)
        if begun.count(opened) > begun.count(closed):
            head, tag, after = after.partition(closed)
            parts += [head, tag]
    return "".join([*parts, backs, after])


class Gap(Struct, frozen=True):
    """How many characters are left out of a long text."""

    characters: int


def clipped(text: str, head: int, tail: int, quotes: Sequence[str] = ()) -> list[str | Gap]:
    """Return the beginning and the end of a long text and what is around quotations, in order.

    Args:
        text: however long.
        head: characters of its beginning.
        tail: characters of its end.
        quotes: that must not be left out.
    """
    if len(text) <= head + tail:
        return [text]
    spans = [(0, head), (len(text) - tail, len(text))]
    for quote in quotes:
        place = find(text, quote)
        if place is not None:
            spans.append((max(0, place[0] - tail // 2), min(len(text), place[1] + tail // 2)))
    spans = [_whole_lines(text, *span) for span in spans]
    parts: list[str | Gap] = []
    end = 0
    for start, stop in sorted(spans):
        if start > end:
            between = text[end:start]
            parts.append(Gap(len(between)) if between.strip() else between)
        if stop > end:
            parts.append(text[max(start, end) : stop])
            end = stop
    return parts


def _whole_lines(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return a stretch that begins and ends with lines, where lines are not too long for that."""
    before = text.rfind("\n", max(0, start - _LONG_LINE), start) + 1 if start else 0
    after = text.find("\n", stop, stop + _LONG_LINE)
    return before or start, stop if after < 0 else after
