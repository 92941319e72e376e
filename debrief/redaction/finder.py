"""Finding secrets in a text: the prefilter's hits, each read by its rule.

A known format, a secret that announces itself by a prefix or a shape, is a row of
``formats.toml``; here are its type and the checks that rows name.
"""

from __future__ import annotations

import base64
import re
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.resources import files
from string import ascii_letters, digits, hexdigits

from msgspec import Struct, convert

from debrief.redaction.contexts import CONTEXTS, Context, judge_field
from debrief.redaction.plausibility import entropy, is_sample, wordiness
from debrief.redaction.spans import (
    VIEW_ANCHORS,
    Hit,
    Prefilter,
    SecretSpan,
    View,
    decoded,
    run_around,
    union,
    without,
)

_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_LONGEST = 4096
_OPEN = re.compile(r"\{(\d+),\}")
_B62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Format(Struct, forbid_unknown_fields=True, dict=True):
    """One known format; ``formats.toml`` explains the fields."""

    kind: str
    start: str
    rest: str
    lead: str = ""
    edge: bool = False
    check: str = "plausible"

    def __post_init__(self) -> None:
        bounded = _OPEN.sub(rf"{{\1,{_LONGEST}}}", self.start + self.rest)
        self.pattern = re.compile((_EDGE if self.edge else "") + bounded)
        """The whole secret, matched at its start."""
        self.before = re.compile(self.lead + r"\Z") if self.lead else None

    def accepts(self, secret: str) -> bool:
        """Return whether a match is a secret, and no sample of a documentation."""
        return _CHECKS[self.check](secret)


def _is_plausible(secret: str) -> bool:
    return not is_sample(secret) and entropy(secret[4:]) >= 2.5


def _is_mixed(secret: str) -> bool:
    body = secret[3:]
    has_both = any(c.isdigit() for c in body) and any(c.isalpha() for c in body)
    return has_both and _is_plausible(secret)


def has_crc(secret: str) -> bool:
    """Return whether the last six characters are the base-62 CRC-32 of those after the prefix.

    GitHub and npm sign their tokens so; a match proves the format, however dull the token is.
    """
    body = secret.rpartition("_")[2]
    number, digits = zlib.crc32(body[:-6].encode()), ""
    for _ in range(6):
        number, rest = divmod(number, 62)
        digits = _B62[rest] + digits
    return len(body) > 6 and digits == body[-6:]


def _is_jwt(secret: str) -> bool:
    head = secret.split(".", 1)[0]
    try:
        return b'"' in base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))
    except ValueError:
        return False


def _is_pem(secret: str) -> bool:
    body = secret.partition("KEY")[2].rpartition("END")[0] or secret
    runs = re.findall(r"[A-Za-z0-9+/]{16,}", body)
    return sum(map(len, runs)) >= 40 and "..." not in body and len(set("".join(runs))) > 12


_CHECKS: dict[str, Callable[[str], bool]] = {
    "plausible": _is_plausible,
    "mixed": _is_mixed,
    "signed": lambda secret: has_crc(secret) or _is_plausible(secret),
    "varied": lambda secret: not is_sample(secret) and len(set(secret)) > 7,
    "dense": lambda secret: _is_mixed(secret) and entropy(secret) >= 3.8,
    "sas": lambda secret: "sig=" in secret,
    "facebook": lambda secret: _is_mixed(secret) and "AAA" not in secret[4:],
    "jwt": _is_jwt,
    "pem": _is_pem,
}
FORMATS: list[Format] = convert(
    tomllib.loads((files(__package__) / "formats.toml").read_text("utf-8"))["formats"], list[Format]
)


Rule = Format | Context | str
"""A known format, a context, or the name of a view to look through."""

RULES: tuple[tuple[Rule, str, bool], ...] = (
    *((rule, rule.start, True) for rule in FORMATS),
    *((rule, rule.anchor, rule.tracked) for rule in CONTEXTS),
    *VIEW_ANCHORS,
)
"""Each with its anchor, and whether the engine tracks where that starts."""

VERSION = "2"
"""Raised when the careful rules change in a way that their anchors do not show."""


@cache
def prefilter() -> Prefilter:
    """Return the prefilter over all rules, compiled once a process (a tenth of a second)."""
    untracked = [number for number, (_, _, tracked) in enumerate(RULES) if not tracked]
    return Prefilter([anchor for _, anchor, _ in RULES], untracked=untracked)


def may_hold_secret(json_text: str) -> bool:
    """Return whether the strings of a JSON text have to be looked at one by one."""
    data = json_text.encode("utf-8", "surrogatepass")
    return b"\\/" in data or bool(prefilter().scan(data))


PLACEHOLDER = re.compile(r"<secret:[a-z0-9-]{1,40}:[0-9a-f]{6}>")
"""What a secret is replaced by: its kind and six hex digits of a keyed digest."""

_DEEPEST = 2
_LOOK_BACK = 120
_RUN = re.compile(r"[A-Za-z0-9_\-+/=.]+")
_HEX_DIGITS = frozenset(hexdigits)
_BASE64_DIGITS = frozenset(ascii_letters + digits + "+/_-")
_BLOCK = re.compile(r"(?:\A|\n)[A-Za-z0-9+/]{40,}\Z")
_LINE = re.compile(r"[^\n]+")


def find(text: str, field: str = "") -> list[SecretSpan]:
    """Return the secrets of ``text`` in order, none overlapping, none spanning a line break.

    Args:
        text: any text; the placeholders in it are left out.
        field: the name that the whole text is the value of, such as a JSON key.
    """
    hits = prefilter().hits(text)
    return find_at(text, hits, field) if hits or field else []


def find_at(text: str, hits: Iterable[Hit], field: str = "") -> list[SecretSpan]:
    """Return the secrets of ``text`` where the prefilter's hits for it are known already."""
    holes = placeholders(text)
    masked = text
    if holes:
        masked = PLACEHOLDER.sub(lambda match: "\0" * len(match[0]), text)
        hits = prefilter().hits(masked)
    spans = list(_spans(masked, hits, 0))
    whole = masked.strip()
    verdict = judge_field(field, whole) if field and whole else None
    if verdict:
        start = masked.index(whole)
        spans.append(SecretSpan(start, start + len(whole), *verdict))
    return [piece for span in without(union(spans), holes) for piece in _lines(text, span)]


def placeholders(text: str) -> list[tuple[int, int]]:
    """Return where placeholders are in a text."""
    return [match.span() for match in PLACEHOLDER.finditer(text)]


def _spans(text: str, hits: Iterable[Hit], depth: int) -> Iterator[SecretSpan]:
    seen: set[str] = set()
    done: dict[int, int] = {}
    for hit in hits:
        rule, _, _ = RULES[hit.pattern]
        if isinstance(rule, Format):
            if done.get(hit.pattern, 0) <= hit.start:
                found = list(_known(text, rule, hit.start))
                done[hit.pattern] = found[-1].end if found else _after(text, rule, hit.start)
                yield from found
        elif isinstance(rule, Context):
            last = done.get(hit.pattern, 0)
            if not rule.tracked:
                yield from rule.read(text, hit.end, max(0, last, hit.end - _LOOK_BACK))
                done[hit.pattern] = hit.end
            elif hit.start >= last or "\n" in text[max(0, last - rule.reach) : hit.start]:
                yield from rule.read(text, hit.start)
                done[hit.pattern] = hit.start + rule.reach
        elif depth < _DEEPEST:
            yield from _through(rule, text, hit, depth, seen, done)


def _after(text: str, rule: Format, start: int) -> int:
    """Return where to go on after what looked like a secret and was none.

    A quarter of its length on: one that begins within is found, and no text costs more than time
    in proportion to its length.
    """
    found = rule.pattern.match(text, start)
    return start + (found.end() - start) // 4 if found else start + 1


def _known(text: str, rule: Format, start: int) -> Iterator[SecretSpan]:
    found = rule.pattern.match(text, start)
    if found and rule.before:
        lead = rule.before.search(text, max(0, start - 120), start)
        if lead is None:
            return
        start = lead.start()
    end = found.end() if found else start
    if found and rule.accepts(text[start:end]):
        yield SecretSpan(start, end, rule.kind)
    else:
        found = None
    if not rule.before:
        yield from _wrapped(text, rule, start, end if found else 0)


def _wrapped(text: str, rule: Format, start: int, known_end: int) -> Iterator[SecretSpan]:
    """Find a secret that a terminal broke over lines which hold nothing else."""
    run = _RUN.match(text, start, start + 400)
    if run is None or text[run.end() : run.end() + 1] not in ("\n", "\r"):
        return
    if known_end and known_end < run.end():
        return
    if rule.edge and start and text[start - 1].isalnum():
        return
    if start and text[start - 1] == "\n" and _BLOCK.search(text, max(0, start - 200), start - 1):
        return
    parts = [(run.start(), run.end())]
    while len(parts) < 12:
        at = text.find("\n", parts[-1][1]) + 1
        more = _RUN.match(text, at, at + 400)
        if more is None or text[more.end() : more.end() + 1] not in ("", "\n", "\r"):
            break
        parts.append(more.span())
        if more.end() - more.start() < parts[0][1] - parts[0][0]:
            break
    for count in range(len(parts), 1, -1):
        joined = "".join(text[begin:end] for begin, end in parts[:count])
        found = rule.pattern.match(joined)
        if not found or found.end() != len(joined) or not rule.accepts(joined):
            continue
        rest = joined[parts[0][1] - parts[0][0] :]
        if wordiness(rest) < 0.4 or (not known_end and wordiness(rest) < 0.8):
            yield from (SecretSpan(begin, end, rule.kind) for begin, end in parts[:count])
            return


def _through(
    name: str, text: str, hit: Hit, depth: int, seen: set[str], done: dict[int, int]
) -> Iterator[SecretSpan]:
    """Look at the text, or a stretch of it, through a view."""
    if name in ("noise", "delta"):
        if name not in seen:
            seen.add(name)
            yield from _in_view(name, text, 0, depth)
        return
    reach = -1 - ("escape", "join", "base64", "hex").index(name)
    if hit.start < done.get(reach, 0) or (name == "join" and hit.end <= done.get(reach, 0)):
        return
    if name == "escape":
        start, end = run_around(text, hit.start)
        done[reach] = end
        yield from _in_view(name, text[start:end], start, depth)
    elif name == "join":
        start, end = max(0, hit.end - 400), min(len(text), hit.end + 1200)
        done[reach] = hit.end + 400
        yield from _in_view(name, text[start:end], start, depth)
    else:
        at = hit.start
        if at and text[at] == "\\":
            at += 2
        elif text[at] not in (_HEX_DIGITS if name == "hex" else _BASE64_DIGITS):
            at += 1
        blob = decoded(name, text, at)
        if blob is not None:
            start, done[reach], plain = blob
            spans = union(_spans(plain, prefilter().hits(plain), depth + 1))
            if spans:
                is_sure = any(span.sure for span in spans)
                is_whole = spans[0].end - spans[0].start >= len(plain.strip())
                value = plain.strip() if is_whole else ""
                yield SecretSpan(start, done[reach], spans[0].kind, is_sure, value)


def _in_view(name: str, text: str, shift: int, depth: int) -> Iterator[SecretSpan]:
    view = View(name, text)
    if view.changed:
        for span in _spans(view.text, prefilter().hits(view.text), depth + 1):
            yield from view.spans(span, shift)


def _lines(text: str, span: SecretSpan) -> Iterator[SecretSpan]:
    """Cut a span at line breaks, and take indentation and a patch's markers out of it."""
    if "\n" not in text[span.start : span.end]:
        yield span
        return
    line_start = text.rfind("\n", 0, span.start) + 1
    rows = list(_LINE.finditer(text, span.start, span.end))
    marked = all(text[row.start()] in "+- " for row in rows[1:]) and (
        span.start > line_start and text[line_start] in "+- "
    )
    for number, row in enumerate(rows):
        begin = row.start() + (1 if marked and number else 0)
        piece = text[begin : row.end()]
        begin += len(piece) - len(piece.lstrip())
        if piece.strip():
            yield SecretSpan(begin, begin + len(piece.strip()), span.kind, span.sure)
