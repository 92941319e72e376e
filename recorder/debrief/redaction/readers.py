"""Parse places where a name says that a value is secret: assignments, pairs, cookies, tables.

They look at a bounded stretch around the place, so a hit costs the same in a text of any length.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import accumulate
from string import ascii_letters, digits

from debrief.redaction.plausibility import (
    KEYWORDS,
    class_of,
    classes,
    entropy,
    is_given,
    is_password,
    is_placeholder,
    is_random,
    is_uuid,
    is_weak,
    kind_of,
    wordiness,
)
from debrief.redaction.spans import SecretSpan

_REACH = 1024
_LONGEST_BARE = 4096
_JUDGED = 512
"""Characters of a value that are looked at."""
_KEYWORD = f"(?:{KEYWORDS})"
_NAME = re.compile(rf"{_KEYWORD}[\w.\-]{{0,48}}", re.IGNORECASE)
_SMALL_NAME = re.compile(_NAME.pattern)
"""In small letters, which Python searches five times as fast."""
_NAME_CHARACTERS = ascii_letters + digits + "_.-"
_QUALIFIER = re.compile(
    r"(?:api|access|secret|private|auth|signing|encryption|master|account) \Z", re.IGNORECASE
)
_GAP = re.compile(
    r"""(?P<close>["'`\\\])]{0,6})[ \t]{0,24}
    (?::[ \t]?(?:str|[Ss]tring|&str|bytes|Optional\[str\]|str[ ]\|[ ]None)[ \t]{0,2}(?==)
    |:[ \t]?&?(?:'\w{1,16}[ ])?[A-Za-z][\w.]{0,24}(?:\[[\w., |]{0,24}\])?
    (?:[ ]?\|[ ]?[\w.]{1,16}){0,2}[ \t]{0,2}(?==[ \t]{0,4}[fbru]{0,2}\\*["'`]))?
    (?P<op>:=|=>|->|={1,3}|[:：]|\?\?|\|\||[,>(])
    [ \t]{0,4}(?:\{[ \t]{0,4}\\*["']?
    (?:raw|plain|plaintext|value|val|current|default)\\*["']?[ ]?:[ ]?)?
    (?:[\w.:]{0,24}(?:fromhex|b64decode|unhexlify|from|bytes|PASSWORD)\((?=["']))?
    (?:[fbruFBRUN@$]{1,2}(?=["']))?""",
    re.VERBOSE,
)
_WEAK_GAP = re.compile(
    r"""["'`\\*_]{0,4}[ \t]{1,4}(?:(?:is|was|to|of|as|with|ist|es|est|=|:)[ \t]{1,4})?"""
)
_QUOTE = re.compile(r"\\*[\"'`]")
_BARE, _BARE_LINE = (
    {most: re.compile(rf"[^\s\"'`<>\\{more}]{{4,{most}}}") for most in (_JUDGED, _LONGEST_BARE)}
    for more in (",;", "")
)
"""A value without quotation marks, by how many characters of it are read at most."""
_CODE = re.compile(r"[A-Za-z_$][\w$.:]*[(\[]")
_SYNTAX = re.compile(r"[)\]}][)\]}:({?]|\?\.|=>|&&|\|\|")
_NEXT_PARAMETER = re.compile(r"&[A-Za-z_][\w.\-\[\]]*=")
_STATEMENT = re.compile(r"(?:login|machine|identified|user|setx?)\s", re.IGNORECASE)


@lru_cache(maxsize=4096)
def judge(name: str, value: str, *, strong: bool = True) -> bool | None:
    """Return True for a secret, False for what may be one, None for a harmless value.

    Args:
        name: the value's.
        value: quotes taken off.
        strong: an assignment introduces it, not mere neighbourhood in prose.
    """
    promised = class_of(name)
    if promised == "password":
        if strong:
            return True if is_given(value) or is_random(value) else None
        return True if is_password(value, strict=True) else None
    if promised == "secret":
        if is_random(value) or (strong and is_uuid(value)):
            return True
        if not strong:
            return True if is_password(value, 10, strict=True) and entropy(value) > 3 else None
        return True if is_given(value, 8) else None
    if promised == "auth":
        password = strong and is_password(value, 10, strict=True)
        return True if is_basic(value) or is_random(value, 20) or password else None
    if promised == "key" and strong and classes(value) >= 3 and not set("/.") & set(value):
        return False if is_random(value, 32) else None
    return None


_SCHEMES = ("bearer", "token", "basic", "apikey")


def judge_field(name: str, value: str) -> tuple[str, bool] | None:
    """Return kind and certainty of a whole value that belongs to a name, if it is a secret."""
    if not class_of(name) or len(value) > _LONGEST_BARE:
        return None
    scheme, space, rest = value.partition(" ")
    if space and scheme.lower() in _SCHEMES:
        value = rest
    verdict = judge(name, value[:_JUDGED])
    return None if verdict is None else (kind_of(name), verdict)


def is_basic(value: str) -> bool:
    """Return whether a value is base64 of ``user:password`` with a password worth hiding."""
    try:
        plain = base64.b64decode(value, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return False
    user, colon, password = plain.partition(":")
    if not colon or not plain.isprintable() or len(password) < 4 or user == password:
        return False
    return not is_weak(password) and not is_placeholder(password)


def assignments(text: str, end: int, since: int) -> Iterator[SecretSpan]:
    """Read the names that end shortly before a place, and the values given to them."""
    before = text[max(0, since - 48) : since]
    begin = since - len(before) + len(before.rstrip(_NAME_CHARACTERS))  # of a name begun there
    start = max(begin, text.rfind("\n", begin, end) + 1)
    line = text[start:end]
    found = _SMALL_NAME.finditer(line.lower()) if line.isascii() else _NAME.finditer(line)
    for named in found:
        at, stop = start + named.start(), start + named.end()
        if at < since and _NAME.match(text, at, since):  # read already
            continue
        if stop == end and (whole := _NAME.match(text, at)):
            stop = whole.end()
        span = _assignment(text, at, stop)
        if span:
            yield span


def _assignment(text: str, at: int, stop: int) -> SecretSpan | None:
    """Read the value that is given to a name, whose keyword is at a place."""
    start = at - 48 if at > 48 else 0
    start += len(text[start:at].rstrip(_NAME_CHARACTERS))
    if start == at and text[at - 1 : at] == " ":
        qualifier = _QUALIFIER.search(text, max(0, at - 12), at)
        start = qualifier.start() if qualifier else at
    name = text[start:stop].strip(".-")
    if not class_of(name):
        return None
    before_name = text[max(0, start - 1) : start]
    if before_name == ":" and _ARN.search(text, max(0, start - 120), start):
        return None
    gap = _GAP.match(text, stop)
    if gap is None:
        flag = (start < at and text[start] == "-") or before_name == "-"
        gap = _WEAK_GAP.match(text, stop)
        if gap is None or (text[stop - 1] == "." and not flag):
            return None
        is_quoted = _QUOTE.match(text, gap.end()) is not None
        strong = flag or is_quoted or _STATEMENT.search(line_before(text, at, 200)) is not None
        operator = " "
    else:
        strong, operator = True, gap["op"]
        if operator in _QUOTED_ONLY and not _QUOTE.match(text, gap.end()):
            return None
        is_quoted = before_name in _QUOTES or text[start - 2 : start] in ("'#", '"#')
        if operator == "," and not (gap["close"] and is_quoted):
            return None
        if operator == "(" and not ("." in text[start:stop] or _SETTER.match(name)):
            return None
        if operator == ">" and before_name not in ("<", ":"):
            return None
    is_line = operator == "=" and _begins_line(text, start)
    found = _value(text, gap.end(), _JUDGED, whole_line=is_line)
    if found is None:
        return None
    begin, end, quoted = found
    value = text[begin : min(end, begin + _JUDGED)]
    if not quoted and (_CODE.match(value) or _SYNTAX.search(value)):
        return None
    is_option = before_name in ("/", "-") or text[start] == "-"
    if name.lower() in ("pass", "pw", "pwd") and operator not in ("=", "=>") and not is_option:
        strong = False
    verdict = judge(name, value, strong=strong)
    if verdict is None:
        return None
    if not quoted and end - begin >= _JUDGED - 8:  # the rest of it
        found = _value(text, begin, _LONGEST_BARE, whole_line=is_line)
        if found is None:
            return None
        end = found[1]
    return SecretSpan(begin, end, kind_of(name), verdict)


_ARN = re.compile(r"(?:\barn:[\w:\-]*|::)\Z")
"""The name of a thing at Amazon, or a type, up to its last part: ``arn:aws:…:secret:shop/db``."""
_QUOTED_ONLY = (",", "(", "==", "===", "->", "||", "??")
_QUOTES = ('"', "'", "`")
_SETTER = re.compile(r"(?:set|with|add|use|put)_?[A-Z_]|(?:password|secret|token)\Z")


def _begins_line(text: str, start: int) -> bool:
    if text[start - 1 : start] == "\n":
        return True
    line = line_before(text, start, 64).strip(" \t+-")
    return line in ("", "export", "set", "ENV", "$ export", "declare -x")


_OPERATOR = re.compile(r"&&|\|\|")
_CLOSING = (")", "]", "}")


def _value(
    text: str, at: int, most: int, *, whole_line: bool = False
) -> tuple[int, int, bool] | None:
    """Return where the value at a place is, of which so many characters are read without quotes.

    One of ``_LONGEST_BARE`` characters is no value but a file.
    """
    quote = _QUOTE.match(text, at)
    if quote:
        mark, begin = quote.group(), quote.end()
        end = text.find(mark, begin, begin + _REACH)
        line_end = text.find("\n", begin, begin + _REACH)
        if end < 0 or 0 <= line_end < end:
            bare = _BARE[_LONGEST_BARE].match(text, begin)
            return (begin, bare.end(), True) if bare else None
        return begin, end, True
    bare = (_BARE_LINE if whole_line else _BARE)[most].match(text, at)
    if bare is None or len(bare.group()) >= _LONGEST_BARE:
        return None
    value = _OPERATOR.split(bare.group(), maxsplit=1)[0]
    following = _NEXT_PARAMETER.search(value) if "&" in value and not whole_line else None
    if following:
        value = value[: following.start()]
    stripped = value.rstrip(",;")
    for closing, opening in (")(", "][", "}{") if stripped[-1:] in _CLOSING else ():
        while stripped.endswith(closing) and opening not in stripped:
            stripped = stripped[:-1].rstrip(",;")
    if stripped.endswith("."):
        stripped = stripped[:-1]
    return at, at + len(stripped), False


_FIELD = re.compile("name|key", re.IGNORECASE)
_PAIRED = re.compile(
    r"""(?:name|key)["'\\]{0,3}\s{0,2}[:=]\s{0,2}["'\\]{0,3}(?P<name>[\w.\-]{2,64})["'\\]{0,3},?\s{0,40}
    ["'\\]{0,3}value["'\\]{0,3}\s{0,2}[:=]\s{0,2}(?P<q>\\*["']?)(?P<v>[^\s"'\\,}]{6,512})""",
    re.IGNORECASE | re.VERBOSE,
)


def paired_values(text: str, end: int, since: int) -> Iterator[SecretSpan]:
    """Read a name and a value in fields of their own: ``name: X``, ``value: …``."""
    for field in _FIELD.finditer(text, since, end):
        found = _PAIRED.match(text, field.start())
        verdict = judge_field(found["name"], found["v"]) if found else None
        if found and verdict:
            yield SecretSpan(*found.span("v"), *verdict)


def line_before(text: str, at: int, most: int) -> str:
    """Return the line before a place, of so many characters at most."""
    low = max(0, at - most)
    return text[max(low, text.rfind("\n", low, at) + 1) : at]


def _line_end(text: str, at: int, most: int) -> int:
    end = text.find("\n", at, at + most)
    return end if end >= 0 else min(len(text), at + most)


_COOKIES = re.compile(
    r"(?:cookies?[\"'\\]{0,3}\s{0,2}[:=]|[ ]-b[ ]|[ ]--cookie[ ])\s{0,2}[\"'\\]{0,3}"
    r"(?P<rest>[^\n\"']{8,4096})",
    re.IGNORECASE,
)
_PAIR = re.compile(r"(?P<name>[\w.\-]{1,64})=(?P<v>[^\s;,\"'\\]{16,2048})")
_TRACKING = re.compile(r"_{0,2}(?:ga|gid|fbp|utm|gcl|hj|cf_bm|cfduid|cfruid)", re.IGNORECASE)


def _cookies(text: str, at: int, since: int) -> Iterator[SecretSpan]:
    """Read the session cookies of a header; those that only track are left."""
    header = _COOKIES.match(text, at)
    for pair in _PAIR.finditer(text, *header.span("rest")) if header else ():
        value = pair["v"]
        if not _TRACKING.match(pair["name"]) and (is_random(value) or is_random(value[:64])):
            yield SecretSpan(*pair.span("v"), "cookie")


_URL = re.compile(
    r"://(?P<user>[^\s/@:\"'<>`]{0,64}):(?!\d{1,5}/)(?P<v>[^\s\"'<>`]{2,200})@(?=[\w\[.\-])"
)


def _url(text: str, end: int, since: int) -> Iterator[SecretSpan]:
    """Read the password, or the token, before the host of a URL; ``end`` is behind an ``@``."""
    at = text.rfind("://", max(0, end - 220), end)
    match = _URL.match(text, at) if at >= 0 else None
    if match is None:
        return
    user, password = match["user"], match["v"]
    if is_random(user, 20):
        yield SecretSpan(*match.span("user"), "token")
    if password == user or is_weak(password) or is_placeholder(password):
        return
    if password.isdigit() and len(password) < 6:
        return
    if is_password(password, 6) or is_random(password) or is_given(password):
        yield SecretSpan(*match.span("v"), "url-password")
    elif len(password) >= 6 and wordiness(password) < 0.5:
        yield SecretSpan(*match.span("v"), "url-password", sure=False)


_LOGIN = re.compile(r"""\w:\\{0,2}["']?(?P<v>[^\s@:"'<>`/\\]{6,64})\\{0,2}["']?@\w?\[?\Z""")


def _login(text: str, end: int, since: int) -> Iterator[SecretSpan]:
    """Read the password before a host, outside of a URL: ``user:…@host``."""
    match = _LOGIN.search(text, max(since, end - 80), end)
    if match and is_password(match["v"], strict=True):
        yield SecretSpan(*match.span("v"), "password")


_PGPASS = re.compile(
    r"[\w.*\-]{1,80}:(?:\d{2,5}|\*):[\w*\-]{1,63}:[\w*\-]{1,63}:(?P<v>\S{6,128})[ \t\r]*\Z"
)


def _pgpass(text: str, at: int, since: int) -> Iterator[SecretSpan]:
    """Read a line of a PostgreSQL password file."""
    start = at - len(line_before(text, at, 100))
    match = _PGPASS.match(text, start, _line_end(text, at, 400))
    if match and is_password(match["v"]):
        yield SecretSpan(*match.span("v"), "password")


_AROUND = " \t\r\"'`*"


def _columns(text: str, end: int, since: int) -> Iterator[SecretSpan]:
    """Read what is below a name in the head of a table: of Markdown, or of separated values."""
    start = end - len(line_before(text, end - 1, 300)) - 1
    stop = _line_end(text, start, 600)
    head = text[start:stop]
    mark = next((mark for mark in "|\t;," if mark in head), "")
    names = _cells(head, mark, [])
    starts = [start for start, _ in names]
    named = {
        number: name.strip(_AROUND)
        for number, (_, name) in enumerate(names)
        if class_of(name.strip(_AROUND))
    }
    above = line_before(text, max(0, start - 1), 600)
    is_wide = len(names) > 1
    if not named or (not is_wide and head[:1].isspace()):
        return
    if is_wide and mark and above.count(mark) == len(names) - 1:  # the table began before
        return
    for _ in range(_MOST_ROWS if is_wide else 50):
        start, stop = stop + 1, _line_end(text, stop + 1, 600)
        row = text[start:stop]
        if is_wide and row and not row.strip("-+=|: \t\r"):
            continue
        cells = _cells(row, mark, starts)
        if len(cells) != len(names) or not row.strip():
            return
        for number, name in named.items():
            at, cell = cells[number]
            value = cell.strip(_AROUND)
            verdict = judge_field(name, value) if value else None
            if verdict:
                begin = start + at + cell.index(value)
                yield SecretSpan(begin, begin + len(value), *verdict)


_MOST_ROWS = 10_000
_ALIGNED = re.compile(r"\S+(?: \S+)*")


def _cells(row: str, mark: str, starts: list[int]) -> list[tuple[int, str]]:
    """Return the cells of a row, each with its place: between marks, or below the head's."""
    if mark:
        parts = row.split(mark)
        ends = accumulate(len(part) + 1 for part in parts)
        return [(end - len(part) - 1, part) for end, part in zip(ends, parts, strict=True)]
    found = [(cell.start(), cell[0]) for cell in _ALIGNED.finditer(row)]
    if len(found) == len(starts):
        return found
    return [cell for cell in found if cell[0] in starts] if len(starts) > 1 else found


_MANIFEST = re.compile(r"^[ ]*(?:stringData|data):[ ]*\n((?:[ ]+[^\n]*\n?|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"""^[ ]+[\w.\-]+:[ ]+["']?(?P<v>[^\s"'|>][^\s"']{5,4096})""", re.MULTILINE)


def _manifest(text: str, at: int, since: int) -> Iterator[SecretSpan]:
    """Read the data of a Kubernetes secret: whatever stands there is one."""
    begin = max(text.rfind("\n---", max(0, at - _REACH), at), at - _REACH, 0)
    block = _MANIFEST.search(text, at, at + _REACH) or _MANIFEST.search(text, begin, at)
    for entry in _ENTRY.finditer(text, *block.span(1)) if block else ():
        if is_given(entry["v"][:_JUDGED]):
            yield SecretSpan(*entry.span("v"), "secret")


READERS: dict[str, Callable[[str, int, int], Iterator[SecretSpan]]] = {
    "assignments": assignments,
    "paired_values": paired_values,
    "cookies": _cookies,
    "url": _url,
    "login": _login,
    "pgpass": _pgpass,
    "columns": _columns,
    "manifest": _manifest,
}
