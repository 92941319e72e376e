"""Stretches of a text: where to look, where secrets are, and other spellings of it.

Where to look says one pass of a multi-pattern engine (Hyperscan, an automaton without
backtracking) at a multiple of the speed at which the JSON around the text was decoded, so the
careful rules see only what it flags. A view is a text made from another, with the way back: what
is found in the view is replaced in the original. Only what a view's change made visible is taken
from it; the rest is found without.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, starmap
from operator import itemgetter
from typing import Any

from msgspec import Struct


class SecretSpan(Struct, frozen=True, order=True, gc=False):
    """A stretch of a text, in characters, that holds one secret or a line of one."""

    start: int
    end: int
    kind: str
    sure: bool = True
    """False: it may be harmless; a person should look before the text trains a model."""
    value: str = ""
    """The secret with its encoding taken off, where the text spells it in another way."""


def union(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Merge spans that overlap, in order of position.

    Picking one of two would leave half a password. The merged span has the kind of a sure one
    that starts first, and is sure when any part of it is.
    """
    merged: list[SecretSpan] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end, not s.sure)):
        last = merged[-1] if merged else None
        if last is None or span.start >= last.end:
            if span.end > span.start:
                merged.append(span)
        elif span.end > last.end or (span.sure and not last.sure):
            merged[-1] = SecretSpan(
                last.start,
                max(last.end, span.end),
                last.kind if last.sure or not span.sure else span.kind,
                last.sure or span.sure,
                last.value if last.end >= span.end else "",
            )
    return merged


def without(spans: Iterable[SecretSpan], holes: list[tuple[int, int]]) -> list[SecretSpan]:
    """Cut the ``holes`` (in order, not overlapping) out of the spans."""
    kept: list[SecretSpan] = []
    for span in spans:
        inside = [hole for hole in holes if hole[0] < span.end and hole[1] > span.start]
        if not inside:
            kept.append(span)
            continue
        starts = [span.start, *(end for _, end in inside)]
        ends = [*(start for start, _ in inside), span.end]
        kept += (
            SecretSpan(start, end, span.kind, span.sure)
            for start, end in zip(starts, ends, strict=True)
            if start < end
        )
    return kept


_SEPARATOR = b"\n\0\n"


class Hit(Struct, frozen=True, order=True, gc=False):
    """A place where a pattern occurs, in characters from the start of the text."""

    start: int
    end: int
    pattern: int
    """Its index in the prefilter's patterns."""


class Prefilter:
    """Finds every place of a text where one of several patterns occurs.

    Safe to share between threads: each has its own scratch space.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        untracked: Collection[int] = (),
        literal: bool = False,
        flags: int = 0,
    ) -> None:
        """Compile the patterns.

        Args:
            patterns: expressions in Hyperscan's dialect, matched against UTF-8.
            untracked: those too large for the engine to track where a match starts; the hits of
                these start at 0.
            literal: the patterns are plain strings, not expressions.
            flags: of the engine, for all patterns.
        """
        import hyperscan

        self._engine = hyperscan
        self._database: Any = hyperscan.Database()
        tracked = hyperscan.HS_FLAG_SOM_LEFTMOST
        encoded = [pattern.encode("utf-8", "surrogatepass") for pattern in patterns]
        self._database.compile(
            expressions=encoded,
            ids=list(range(len(encoded))),
            elements=len(encoded),
            flags=[flags if i in untracked else flags | tracked for i in range(len(encoded))],
            literal=literal,
        )
        self._local = threading.local()

    def scan(self, data: bytes) -> list[tuple[int, int, int]]:
        """Return (start byte, end byte, pattern) of each occurrence, in order of the end."""
        found: list[tuple[int, int, int]] = []
        add = found.append

        def on_match(pattern: int, start: int, end: int, flags: int, context: object) -> None:
            add((start, end, pattern))

        if data:
            self._database.scan(data, match_event_handler=on_match, scratch=self._scratch())
        return found

    def hits(self, text: str) -> list[Hit]:
        """Return where the patterns occur in ``text``, in order of their start."""
        data = text.encode("utf-8", "surrogatepass")
        return in_characters(text, data, self.scan(data))

    def hits_in_each(self, texts: Sequence[str]) -> dict[int, list[Hit]]:
        """Return the hits of many texts, by number, scanned as one; texts without are left out.

        A pattern's match that runs over the edge of a text is moved to that edge.
        """
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        starts = list(accumulate((len(data) + len(_SEPARATOR) for data in encoded), initial=0))
        found: dict[int, list[tuple[int, int, int]]] = {}
        for start, end, pattern in self.scan(_SEPARATOR.join(encoded)):
            number = bisect_left(starts, end) - 1
            first, size = starts[number], len(encoded[number])
            place = (max(0, start - first), min(size, end - first), pattern)
            found.setdefault(number, []).append(place)
        return {
            number: in_characters(texts[number], encoded[number], places)
            for number, places in found.items()
        }

    def _scratch(self) -> Any:
        scratch = getattr(self._local, "scratch", None)
        if scratch is None:
            scratch = self._local.scratch = self._engine.Scratch(self._database)
        return scratch


def in_characters(text: str, data: bytes, found: Sequence[tuple[int, int, int]]) -> list[Hit]:
    """Turn places in the bytes of a text to hits in its characters, in order of their start."""
    if len(data) == len(text):
        return sorted(starmap(Hit, found))
    known: dict[int, int] = {}
    last = count = 0
    for place in sorted({place for start, end, _ in found for place in (start, end)}):
        edge = place
        while edge < len(data) and data[edge] & 0xC0 == 0x80:
            edge += 1
        count += len(data[last:edge].decode("utf-8", "surrogatepass"))
        last = edge
        known[place] = count
    return sorted(Hit(known[start], known[end], pattern) for start, end, pattern in found)


_SGR = r"\x1b\[[0-9;?]{0,16}[A-Za-z]|\\(?:x1b|033|e|u001b)\[[0-9;]{0,16}[mK]"
_QUAD = "[A-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589_\\-+/][A-Za-z0-9+/_\\-]"
VIEW_ANCHORS: tuple[tuple[str, str, bool], ...] = (
    ("noise", r"[A-Za-z0-9_\-](?:\x1b\[[0-9;?]{0,8}[A-Za-z]){1,4}[A-Za-z0-9_\-]{2}", True),
    (
        "noise",
        r"[A-Za-z0-9_\-](?:\\(?:x1b|033|e|u001b)\[[0-9;]{0,8}[mK]){1,4}[A-Za-z0-9_\-]{2}",
        True,
    ),
    ("noise", r"[A-Za-z0-9_\-](?:\xe2\x80[\x8b-\x8d]|\xe2\x81\xa0|\xef\xbb\xbf|\xc2\xad)", True),
    ("escape", r"\\u00[2-7][0-9a-fA-F]", True),
    ("escape", r"\\x[2-7][0-9a-fA-F]", True),
    ("escape", r"%(?:2[4-9A-Fa-f]|3[Dd]|5[Ff]|7[Ee]|25)", True),
    ("escape", r"&#(?:x[2-7][0-9a-fA-F]|[0-9]{2,3});", True),
    (
        "join",
        r"[A-Za-z0-9_\-+/=.:]{3}\\?[\"'`](?:[\s+.&~|<>\-]|\\{1,4}n?){1,64}[fFrRbBuU]?\\?[\"'`]"
        r"[A-Za-z0-9_\-+/=]{8}",
        False,
    ),
    (
        "delta",
        r'"(?:partial_json|text_delta|input_json_delta|[a-z_.]{0,30}\.delta)\\?"',
        True,
    ),
    ("base64", rf"(?:^|[^A-Za-z0-9+/_\-]|\\[nrt])(?:{_QUAD}){{6}}", True),
    ("hex", r"(?:^|[^0-9A-Fa-f])(?:[2-7][0-9a-f]){14}", True),
)
"""Where a text may hide a secret behind an encoding: the view that shows it, its anchor, and
whether the engine tracks where it starts."""

_VIEWS = {
    "noise": re.compile(rf"(?:{_SGR}|[\u200b\u200c\u200d\u2060\ufeff\u00ad])+"),
    "escape": re.compile(
        r"\\{1,4}u00[2-7][0-9a-fA-F]|\\{1,4}x[2-7][0-9a-fA-F]|(?:%[2-7][0-9A-Fa-f])"
        r"|&#(?:x[2-7][0-9a-fA-F]|[0-9]{2,3});|&(?:amp|quot|lt|gt);"
    ),
    "join": re.compile(
        r"(?<=[A-Za-z0-9_\-+/=.:])\\?[\"'`](?:[\s+.&~|<>\-]|\\n?){1,64}[fFrRbBuU]?\\?[\"'`]"
        r"(?=[A-Za-z0-9_\-+/=.])"
    ),
    "delta": re.compile(
        r'(?<!\\)"(?:[}\]]|,[ ]?"[a-z_]{1,24}":[ ]?(?:[0-9]{1,12}|null|"[\w-]{0,80}")){1,8}'
        r"\r?\n{1,2}"
        r"(?:event:[^\n]{0,80}\n)?(?:data:[ ]?)?\{[^\n]{0,300}?"
        r'"(?:partial_json|text|arguments|delta|content)":[ ]?"'
    ),
}
_RUN_END = re.compile(r"[\s\"'<>`]")
_BASE64 = re.compile(
    r"[A-Za-z0-9+/_\-]{24,65536}={0,2}(?:\r?\n[ \t]*[A-Za-z0-9+/]{1,128}={0,2}(?=\s|\Z))*"
)
_HEX = re.compile(r"[0-9a-fA-F]{28,65536}")
_URL_SAFE = str.maketrans("-_", "+/")
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\n\r\t"


class View:
    """A text in which the matches of an expression are left out, or undone if they are escapes.

    Args:
        name: ``noise`` leaves out colour codes and invisible characters, ``delta`` joins the pieces
            of one string in a stream of JSON events, ``join`` adjacent string literals of source
            code, ``escape`` undoes URL, JSON, C and HTML escapes of printable characters.
        original: the text.
    """

    def __init__(self, name: str, original: str) -> None:
        self.original = original
        texts: list[str] = []
        self._pieces: list[tuple[int, int, int, bool]] = []
        """Of each piece: where it begins in the view, its range in the original, and whether it
        stands for that range as a whole."""
        length = last = 0
        for match in (*_VIEWS[name].finditer(original), None):
            begin, end = match.span() if match else (len(original), len(original))
            new = _unescape(match) if match and name == "escape" else ""
            for text, piece in (
                (original[last:begin], (length, last, begin, False)),
                (new, (length + begin - last, begin, end, True)),
            ):
                if text:
                    texts.append(text)
                    self._pieces.append(piece)
                    length += len(text)
            self.changed = last > 0
            last = end
        self.text = "".join(texts)

    def spans(self, span: SecretSpan, shift: int = 0) -> list[SecretSpan]:
        """Return where a span of the view lies in the original, moved by ``shift``.

        Empty when nothing that the view changed lies inside it. It falls into several where
        the view took out a line break or a quotation mark, which have to stay.
        """
        begins = itemgetter(0)
        first = bisect_right(self._pieces, span.start, key=begins) - 1
        last = bisect_right(self._pieces, span.end - 1, key=begins) - 1
        if first == last and not self._pieces[first][3]:
            return []
        ranges: list[list[int]] = []
        for number in range(first, last + 1):
            at, begin, end, whole = self._pieces[number]
            if number == last and not whole:
                end = begin + span.end - at
            if number == first and not whole:
                begin += span.start - at
            gap = self.original[ranges[-1][1] : begin] if ranges else ""
            if ranges and not any(mark in gap for mark in "\n\"'`"):
                ranges[-1][1] = end
            else:
                ranges.append([begin, end])
        value = self.text[span.start : span.end] if len(ranges) == 1 else ""
        return [
            SecretSpan(begin + shift, end + shift, span.kind, span.sure, span.value or value)
            for begin, end in ranges
        ]


def run_around(text: str, at: int) -> tuple[int, int]:
    """Return the stretch without white space and quotation marks around a place."""
    low = max(0, at - 1024)
    start = max(text.rfind(mark, low, at) for mark in " \n\t\"'<>`") + 1
    end = _RUN_END.search(text, at, at + 4096)
    return max(start, low), end.start() if end else min(len(text), at + 4096)


def _unescape(match: re.Match[str]) -> str:
    found = match.group()
    if found[0] == "&":
        return html.unescape(found)
    return chr(int(found[-2:], 16))


def decoded(name: str, text: str, at: int) -> tuple[int, int, str] | None:
    """Return start, end and plain text of the ``base64`` or ``hex`` digits at a place.

    None when they are not text.
    """
    match = (_BASE64 if name == "base64" else _HEX).match(text, at)
    if match is None:
        return None
    digits = re.sub(r"[\s=]+", "", match.group())
    if name == "hex":
        plain = bytes.fromhex(digits[: len(digits) // 2 * 2])
    else:
        digits = digits[: len(digits) - (len(digits) % 4 == 1)].translate(_URL_SAFE)
        try:
            plain = base64.b64decode(digits + "=" * (-len(digits) % 4))
        except (binascii.Error, ValueError):
            return None
    if len(plain.translate(None, _PRINTABLE)) > len(plain) // 50:
        return None
    return match.start(), match.end(), plain.decode("utf-8", "replace")
