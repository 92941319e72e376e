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
from operator import itemgetter

from debrief.redaction.spans import SecretSpan

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


_PATTERNS = {"noise": NOISE, "delta": DELTA, "join": JOIN, "escape": ESCAPE}


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
        for match in (*_PATTERNS[name].finditer(original), None):
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


_URL_SAFE = str.maketrans("-_", "+/")
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\n\r\t"
