"""Other spellings of a text, so that encoded secrets are found: unescaped, joined, decoded.

A view is a text made from another, with the way back. It shows the neighbourhood of every place
that it changes, since an escape hides the text behind it as well: in ``password%3D…`` the name
and the edge of the value. Whatever is found in a view is replaced in the original.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from debrief.redaction.spans import SecretSpan

_QUAD = "[A-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589_\\-+/][A-Za-z0-9+/_\\-]"
_JOIN = r"(?:[\s+.&~|<>\-]|\\{1,4}n?){1,64}[fFrRbBuU]?\\?[\"'`]"
_COLOUR = r"(?:\x1b|\\(?:e|x1b|u001b|033))\[[0-9;?]{0,12}[A-Za-z]"
VIEW_ANCHORS = (
    (
        "escape",
        r"\\(?:u00|x|u\{0{0,4})(?:[2-7][0-9a-fA-F]|0[aAdD])|\\(?:0[4-7][0-7]|1[0-7]{2})",
    ),
    ("escape", r"%(?:[2-7][0-9a-fA-F]|0[9AaDd])"),
    ("escape", r"&(?:#[xX]?[0-9a-fA-F]{1,6}|[A-Za-z]{2,8});"),
    ("escape", rf"{_COLOUR}[!-\[\]-~]{{8}}"),
    ("escape", rf"[A-Za-z0-9_\-](?:{_COLOUR}){{1,4}}[A-Za-z0-9_\-]{{2}}"),
    ("escape", r"(?:\xe2\x80[\x8b-\x8d]|\xe2\x81\xa0|\xef\xbb\xbf|\xc2\xad)"),
    ("quoted", r"=(?:3D|5F|7E|0[9AD]|[2-7][0-9A-F][A-Za-z0-9_\-]{2})|[!-~]=\r?\n[!-~]"),
    (
        "join",
        r"[A-Za-z0-9_\-+/=.:]{2}\\?[\"'`][\s+.&~|<>\-\\n]+[fFrRbBuU]?\\?[\"'`][A-Za-z0-9_\-+/=]{8}",
    ),
    ("delta", r'"(?:partial_json|text_delta|input_json_delta|[a-z_.]{0,30}\.delta)\\?"'),
    ("base64", rf"(?:^|[^A-Za-z0-9+/_\-]|\\[nrt])(?:{_QUAD}){{6}}"),
    ("hex", r"(?:^|[^0-9A-Fa-f])(?:(?:[2-7][0-9a-f]){14}|(?:[2-7][0-9A-F]){14})"),
)
"""Where a text may hide a secret behind an encoding: the view that shows it, and its anchor."""

ORDER = ("delta", "join", "quoted", "escape")
"""Which of two views looks first where both have something to show."""

CODES = {"base64": 24, "hex": 28}
"""How many digits the anchors of what is decoded match."""

_HIDDEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_ESCAPE = re.compile(
    rf"(?=[\x1b\\%&{_HIDDEN}])(?:"
    r"(?:(?:\x1b|\\{1,8}(?:x1b|033|e|u001b))"
    r"(?:\[[0-9;?]{0,16}[A-Za-z]|\][^\x07\x1b\n]{0,200}\x07)){1,16}"
    rf"|[{_HIDDEN}]{{1,64}}"
    r"|\\{1,8}(?:u00[0-7][0-9a-fA-F]|u\{0{0,4}[0-7][0-9a-fA-F]\}|x[0-7][0-9a-fA-F]|[01][0-7]{2})"
    r"|\\{1,8}[\"'/nrt]"
    r"|%(?:[2-7][0-9A-Fa-f]|0[9AaDd])"
    r"|&(?:#[xX]0{0,4}[0-7]?[0-9a-fA-F]|#0{0,4}[0-9]{1,3}|[A-Za-z]{2,8});)"
)
_VIEWS = {
    "escape": _ESCAPE,
    "quoted": re.compile(r"=(?:\r?\n|[0-7][0-9A-F])"),
    "join": re.compile(
        rf"(?=[\\\"'`])(?<=[A-Za-z0-9_\-+/=.:])\\?[\"'`]{_JOIN}(?=[A-Za-z0-9_\-+/=.])"
    ),
    "delta": re.compile(
        r'(?<!\\)"(?:[}\]]|,[ ]?"[a-z_]{1,24}":[ ]?(?:[0-9]{1,12}|null|"[\w-]{0,80}")){1,8}'
        r"\r?\n{1,2}"
        r"(?:event:[^\n]{0,80}\n)?(?:data:[ ]?)?\{[^\n]{0,300}?"
        r'"(?:partial_json|text|arguments|delta|content)":[ ]?"'
    ),
}
_AROUND = {"escape": (128, 192), "quoted": (256, 1024), "join": (400, 1200)}
"""How many characters before and after a place a view shows."""

_RUN_END = re.compile(r"[\s\"'<>`]")
_BASE64 = re.compile(
    r"[A-Za-z0-9+/_\-]{24,65536}={0,2}"
    r"(?:\r?\n[ \t]{0,32}[A-Za-z0-9+/]{1,128}={0,2}(?=\s|\Z)){0,4096}"
)
_HEX = re.compile(r"[0-9a-fA-F]{28,65536}")
_URL_SAFE = str.maketrans("-_", "+/")
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\n\r\t"
_BETWEEN = "\n\0\n"


class View:
    """Stretches of a text in which the matches of an expression are left out, or undone.

    Args:
        name: ``escape`` undoes URL, JSON, C and HTML escapes and leaves out colour codes and
            invisible characters, ``quoted`` undoes quoted-printable, ``delta`` joins the pieces of
            one string in a stream of JSON events, ``join`` adjacent literals of source code.
        original: the text.
        stretches: of the text, in order, not overlapping.
    """

    def __init__(self, name: str, original: str, stretches: Iterable[tuple[int, int]]) -> None:
        self.original = original
        self._starts: list[int] = []
        self._pieces: list[tuple[int, int, int, bool]] = []
        """Of each piece: where it begins in the view, its range in the original, and whether it
        stands for that range as a whole."""
        self.changes = 0
        self.seen: Mapping[str, Collection[int]] = {}
        """By name of a view, the places of the original that were looked at through it."""
        texts: list[str] = []
        pieces, changed = self._pieces.append, _VIEWS[name].finditer
        plain = _PLAIN[name]
        length = 0
        for last, stop in stretches:
            for match in changed(original, last, stop):
                begin, end = match.span()
                new = plain(match.group())
                if new == match.group():
                    continue
                if begin > last:
                    texts.append(original[last:begin])
                    pieces((length, last, begin, False))
                    length += begin - last
                if new:
                    texts.append(new)
                    pieces((length, begin, end, True))
                    length += len(new)
                self.changes += 1
                last = end
            texts += (original[last:stop], _BETWEEN)
            pieces((length, last, stop, False))
            pieces((length + stop - last, stop, stop, True))
            length += stop - last + len(_BETWEEN)
        self.text = "".join(texts)
        self._starts = [start for start, _, _, _ in self._pieces]

    def origin(self, at: int) -> int:
        """Return where a place of the view is in the original; -1 where that was changed."""
        start, begin, _, whole = self._pieces[bisect_right(self._starts, at - 1) - 1]
        return -1 if whole else begin + at - start

    def is_line_same(self, at: int) -> bool:
        """Return whether the original has the line of a place, which is behind its beginning."""
        number = bisect_right(self._starts, at - 1) - 1
        start, begin, end, whole = self._pieces[number]
        if whole or self.text.find("\n", at, start + end - begin) < 0:
            return False
        return self.text.rfind("\n", start, at) >= 0

    def spans(self, span: SecretSpan) -> list[SecretSpan]:
        """Return where a span of the view lies in the original.

        It falls into several where the view took out a line break or a quotation mark, which have
        to stay.
        """
        first = bisect_right(self._starts, span.start) - 1
        last = bisect_right(self._starts, span.end - 1) - 1
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
            SecretSpan(begin, end, span.kind, span.sure, span.value or value)
            for begin, end in ranges
        ]


def stretches(name: str, text: str, places: Sequence[int]) -> list[tuple[int, int]]:
    """Return what a view shows of a text: around each place, to the end of its run at least.

    Args:
        name: of the view.
        text: the original.
        places: in order.
    """
    if name not in _AROUND or len(places) * 64 > len(text):
        return [(0, len(text))]
    before, after = _AROUND[name]
    found: list[tuple[int, int]] = []
    run_end = 0
    for place in places:
        begin, end = max(0, place - before), min(len(text), place + after)
        if place >= run_end:
            begin = min(begin, _run_start(text, place))
            run = _RUN_END.search(text, place, place + 4096)
            run_end = run.start() if run else min(len(text), place + 4096)
        if found and begin <= found[-1][1]:
            begin = found.pop()[0]
        found.append((begin, max(end, run_end)))
    return found


def _run_start(text: str, at: int) -> int:
    low = max(0, at - 1024)
    return max(low, *(text.rfind(mark, low, at) + 1 for mark in " \n\t\"'<>`"))


@lru_cache(maxsize=4096)
def _unescaped(found: str) -> str:
    if found[0] == "&":
        plain = html.unescape(found)
        return plain if plain.isascii() else found
    if found[0] == "%":
        return chr(int(found[1:], 16))
    code = found.lstrip("\\")
    if code in _LETTERS:
        return _LETTERS[code]
    if found[0] != "\\" or "[" in code or "]" in code:
        return ""
    return chr(int(code, 8) if code[0] in "01" else int(code.strip("ux{}"), 16))


_LETTERS = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "/": "/"}
_PLAIN: dict[str, Callable[[str], str]] = {
    "escape": _unescaped,
    "quoted": lambda found: "" if found[-1] == "\n" else chr(int(found[1:], 16)),
    "join": lambda _: "",
    "delta": lambda _: "",
}


def decoded(name: str, text: str, at: int) -> tuple[int, int, str]:
    """Return start, end and plain text of the ``base64`` or ``hex`` digits at a place.

    The plain text is empty when they are no text.
    """
    match = (_BASE64 if name == "base64" else _HEX).match(text, at)
    if match is None:
        return at, at, ""
    digits = re.sub(r"[\s=]+", "", match.group())
    if name == "hex":
        plain = bytes.fromhex(digits[: len(digits) // 2 * 2])
    else:
        digits = digits[: len(digits) - (len(digits) % 4 == 1)].translate(_URL_SAFE)
        try:
            plain = base64.b64decode(digits + "=" * (-len(digits) % 4))
        except (binascii.Error, ValueError):
            return match.start(), match.end(), ""
    if len(plain.translate(None, _PRINTABLE)) > len(plain) // 50:
        return match.start(), match.end(), ""
    return match.start(), match.end(), plain.decode("utf-8", "replace")
