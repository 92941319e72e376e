"""Other spellings of a text: escapes undone, colours taken out, split literals joined.

A view is a text made from another, with the way back: what is found in the view is replaced in
the original. Only what a view's change made visible is taken from it; the rest is found without.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from bisect import bisect_right
from collections.abc import Callable

from debrief.redaction.spans import Span

Replace = Callable[[re.Match[str]], str]

_SGR = r"\x1b\[[0-9;?]{0,16}[A-Za-z]|\\(?:x1b|033|e|u001b)\[[0-9;]{0,16}[mK]"
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
NOISE = re.compile(rf"(?:{_SGR}|[{_INVISIBLE}])+")
NOISE_ANCHORS = (
    r"[A-Za-z0-9_\-](?:\x1b\[[0-9;?]{0,8}[A-Za-z]){1,4}[A-Za-z0-9_\-]{2}",
    r"[A-Za-z0-9_\-](?:\\(?:x1b|033|e|u001b)\[[0-9;]{0,8}[mK]){1,4}[A-Za-z0-9_\-]{2}",
    r"[A-Za-z0-9_\-](?:\xe2\x80[\x8b-\x8d]|\xe2\x81\xa0|\xef\xbb\xbf|\xc2\xad)",
)

ESCAPE = re.compile(
    r"\\{1,4}u00[2-7][0-9a-fA-F]|\\{1,4}x[2-7][0-9a-fA-F]|(?:%[2-7][0-9A-Fa-f])"
    r"|&#(?:x[2-7][0-9a-fA-F]|[0-9]{2,3});|&(?:amp|quot|lt|gt);"
)
ESCAPE_ANCHORS = (
    r"\\u00[2-7][0-9a-fA-F]",
    r"\\x[2-7][0-9a-fA-F]",
    r"%(?:2[4-9A-Fa-f]|3[Dd]|5[Ff]|7[Ee]|25)",
    r"&#(?:x[2-7][0-9a-fA-F]|[0-9]{2,3});",
)
_RUN_END = re.compile(r"[\s\"'<>`]")

JOIN = re.compile(
    r"(?<=[A-Za-z0-9_\-+/=.:])\\?[\"'`](?:[\s+.&~|<>\-]|\\n?){1,64}[fFrRbBuU]?\\?[\"'`]"
    r"(?=[A-Za-z0-9_\-+/=.])"
)
JOIN_ANCHOR = (
    r"[A-Za-z0-9_\-+/=.:]{3}\\?[\"'`](?:[\s+.&~|<>\-]|\\{1,4}n?){1,64}[fFrRbBuU]?\\?[\"'`]"
    r"[A-Za-z0-9_\-+/=]{8}"
)

DELTA = re.compile(
    r'(?<!\\)"(?:[}\]]|,[ ]?"[a-z_]{1,24}":[ ]?(?:[0-9]{1,12}|null|"[\w-]{0,80}")){1,8}'
    r"\r?\n{1,2}"
    r"(?:event:[^\n]{0,80}\n)?(?:data:[ ]?)?\{[^\n]{0,300}?"
    r'"(?:partial_json|text|arguments|delta|content)":[ ]?"'
)
DELTA_ANCHOR = r'"(?:partial_json|text_delta|input_json_delta|[a-z_.]{0,30}\.delta)\\?"'

_QUAD = "[A-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589_\\-+/][A-Za-z0-9+/_\\-]"
BASE64_ANCHOR = rf"(?:^|[^A-Za-z0-9+/_\-]|\\[nrt])(?:{_QUAD}){{6}}"
HEX_ANCHOR = r"(?:^|[^0-9A-Fa-f])(?:[2-7][0-9a-f]){14}"
_BASE64 = re.compile(
    r"[A-Za-z0-9+/_\-]{24,65536}={0,2}(?:\r?\n[ \t]*[A-Za-z0-9+/]{1,128}={0,2}(?=\s|\Z))*"
)
_HEX = re.compile(r"[0-9a-fA-F]{28,65536}")


class View:
    """A text made from another by replacing the matches of an expression."""

    def __init__(self, original: str, pattern: re.Pattern[str], replace: Replace) -> None:
        self.original = original
        pieces: list[str] = []
        self._at: list[int] = []
        self._from: list[int] = []
        self._to: list[int] = []
        self._whole: list[bool] = []
        length = last = 0
        for match in pattern.finditer(original):
            new = replace(match)
            for piece, begin, end, whole in (
                (original[last : match.start()], last, match.start(), False),
                (new, match.start(), match.end(), True),
            ):
                if piece:
                    pieces.append(piece)
                    self._at.append(length)
                    self._from.append(begin)
                    self._to.append(end)
                    self._whole.append(whole)
                    length += len(piece)
            last = match.end()
        if last < len(original):
            pieces.append(original[last:])
            self._at.append(length)
            self._from.append(last)
            self._to.append(len(original))
            self._whole.append(False)
        self.text = "".join(pieces)
        self.changed = last > 0

    def spans(self, span: Span, shift: int = 0) -> list[Span]:
        """Return where a span of the view lies in the original, moved by ``shift``.

        Empty when nothing that the view changed lies inside it. It falls into several where
        the view took out a line break or a quotation mark, which have to stay.
        """
        first = bisect_right(self._at, span.start) - 1
        last = bisect_right(self._at, span.end - 1) - 1
        if first == last and not self._whole[first]:
            return []
        ranges: list[list[int]] = []
        for piece in range(first, last + 1):
            begin, end = self._from[piece], self._to[piece]
            if piece == first and not self._whole[piece]:
                begin += span.start - self._at[piece]
            if piece == last and not self._whole[piece]:
                end = self._from[piece] + span.end - self._at[piece]
            gap = self.original[ranges[-1][1] : begin] if ranges else ""
            if ranges and not any(mark in gap for mark in "\n\"'`"):
                ranges[-1][1] = end
            else:
                ranges.append([begin, end])
        value = self.text[span.start : span.end] if len(ranges) == 1 else ""
        return [
            Span(begin + shift, end + shift, span.kind, span.sure, span.value or value)
            for begin, end in ranges
        ]


def without_noise(text: str) -> View:
    """Return the text without colour codes and invisible characters."""
    return View(text, NOISE, lambda match: "")


def without_deltas(text: str) -> View:
    """Return a stream of JSON events with the pieces of one string joined."""
    return View(text, DELTA, lambda match: "")


def without_joins(text: str) -> View:
    """Return source code with adjacent string literals joined."""
    return View(text, JOIN, lambda match: "")


def unescaped(text: str) -> View:
    """Return the text with URL, JSON, C and HTML escapes of printable characters undone."""
    return View(text, ESCAPE, _unescape)


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


def decoded_base64(text: str, at: int) -> tuple[int, int, str] | None:
    """Return start, end and plain text of the base64 at a place; None when it is not text."""
    found = _BASE64.match(text, at)
    if found is None:
        return None
    encoded = re.sub(r"\s+", "", found.group()).rstrip("=").translate(_URL_SAFE)
    encoded = encoded[: len(encoded) - (len(encoded) % 4 == 1)]
    try:
        plain = base64.b64decode(encoded + "=" * (-len(encoded) % 4))
    except (binascii.Error, ValueError):
        return None
    return _text(found, plain)


def decoded_hex(text: str, at: int) -> tuple[int, int, str] | None:
    """Return start, end and plain text of the hex digits at a place; None when it is not text."""
    found = _HEX.match(text, at)
    if found is None:
        return None
    return _text(found, bytes.fromhex(found.group()[: len(found.group()) // 2 * 2]))


def _text(found: re.Match[str], plain: bytes) -> tuple[int, int, str] | None:
    odd = len(plain.translate(None, _PRINTABLE))
    if odd > len(plain) // 50:
        return None
    return found.start(), found.end(), plain.decode("utf-8", "replace")


_URL_SAFE = str.maketrans("-_", "+/")
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\n\r\t"
