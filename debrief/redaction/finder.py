"""Finding secrets in a text: the prefilter's hits, each read by its rule."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from time import thread_time

from msgspec import Struct

from debrief.redaction.plausibility import wordiness
from debrief.redaction.readers import judge_field
from debrief.redaction.rules import CONTEXTS, FORMATS, Context, Format, Line
from debrief.redaction.spans import WITHHELD, Hit, Prefilter, SecretSpan, union, without
from debrief.redaction.views import CODES, ORDER, VIEW_ANCHORS, View, decoded, stretches


class Broken(Struct, frozen=True):
    """The beginning of a known format with a line break in it."""

    rule: Format


Rule = Format | Broken | Context | Line | str
"""A known format, whole or broken, a context, or the name of a view to look through."""

RULES: tuple[tuple[Rule, str, bool], ...] = (
    *((rule, rule.start, True) for rule in FORMATS),
    *((Broken(rule), rule.broken, True) for rule in FORMATS if rule.broken),
    *((rule, rule.anchor, rule.tracked) for rule in CONTEXTS),
    *((name, anchor, False) for name, anchor in VIEW_ANCHORS),
)
"""Each with its anchor, and whether the engine tracks where that starts."""

VERSION = "4"
"""Raised when the careful rules change in a way that their anchors do not show."""


@cache
def prefilter() -> Prefilter:
    """Return the prefilter over all rules, compiled once a process (a tenth of a second)."""
    untracked = [number for number, (_, _, tracked) in enumerate(RULES) if not tracked]
    return Prefilter([anchor for _, anchor, _ in RULES], untracked=untracked)


def may_hold_secret(json_text: str) -> bool:
    """Return whether the strings of a JSON text have to be looked at one by one.

    A secret at the beginning of a line, or over two, shows where line breaks are no escapes.
    """
    data = json_text.encode("utf-8", "surrogatepass")
    if b"\\" not in data:
        return bool(prefilter().scan(data, 1))
    parts = (part.replace(b"\\n", b"\n") for part in data.split(rb"\\"))
    return b"\\/" in data or bool(prefilter().scan(rb"\\".join(parts), 1))


PLACEHOLDER = re.compile(r"<secret:[a-z0-9-]{1,40}:[0-9a-f]{6}>")
"""What a secret is replaced by: its kind and six hex digits of a keyed digest."""

_SHORTEST = 10
"""Shorter texts hold no secret with what gives it away."""
_DEEPEST = 3
_LOOK_BACK = 120
_RUN = re.compile(r"[A-Za-z0-9_\-+/=.:~]+")
_RUN_BEFORE = re.compile(r"[A-Za-z0-9_\-+/=.:~]+\Z")
_NEXT_LINE = re.compile(r"[ \t]{0,16}[|\u2502\\]?\r?\n[ \t]{0,32}(?:[>|\u2502+\-] ?)?")
_BLOCK = re.compile(r"(?:\A|\n)[A-Za-z0-9+/]{40,}\Z")
_LINE = re.compile(r"[^\n]+")


class TooMuchWorkError(Exception):
    """A text would take too long to search."""


class Work:
    """What the search of one text may cost: in proportion to its length, whatever is in it.

    Costs are counted, in about microseconds, so that a text has the same fate on every machine.
    The clock is asked as well, for rules that cost more than they say.
    """

    HIT, FORMAT, BROKEN, CODE, CHANGE, SECRET = 0.8, 8.0, 12.0, 9.0, 2.0, 15.0
    """Costs of a place where a pattern occurs, of reading it for a known format, a broken one or
    digits to decode, of one change of a view, and of replacing a secret. Contexts tell their own.
    """
    SCAN = 0.015
    """Cost of a character of a view."""

    def __init__(self, size: int) -> None:
        self.left = 20_000 + size * 0.5
        self._seconds = 3 + size / 300_000
        self._started = 0.0
        self._calls = 0

    @property
    def most_hits(self) -> int:
        """How many places may be read, and one."""
        return int(self.left / self.HIT) + 1

    def spend(self, cost: float) -> None:
        """Note a cost.

        Raises:
            TooMuchWorkError: it is more than is left.
        """
        self.left -= cost
        self._calls += 1
        if self._calls % 64 == 1:
            now = thread_time()
            self._started = self._started or now
            if now - self._started > self._seconds:
                raise TooMuchWorkError
        if self.left < 0:
            raise TooMuchWorkError

    def hits(self, text: str) -> list[Hit]:
        """Return the prefilter's hits in a text.

        Raises:
            TooMuchWorkError: there are more than may be read.
        """
        found = prefilter().hits(text, self.most_hits)
        self.spend(len(found) * self.HIT)
        return found


def find(text: str, field: str = "") -> list[SecretSpan]:
    """Return the secrets of ``text`` in order, none overlapping, none spanning a line break.

    Of a text that would take too long to search, all of it is one secret, of the kind
    ``WITHHELD``, line breaks and all.

    Args:
        text: any text; the placeholders in it are left out.
        field: the name that the whole text is the value of, such as a JSON key.
    """
    if len(text) < _SHORTEST and not field:
        return []
    hits = prefilter().hits(text, Work(len(text)).most_hits)
    return find_at(text, hits, field) if hits or field else []


def find_at(text: str, hits: Sequence[Hit], field: str = "") -> list[SecretSpan]:
    """Return the secrets of ``text`` where the prefilter's hits for it are known already."""
    holes = placeholders(text)
    masked = text
    work = Work(len(text))
    try:
        if holes:
            masked = PLACEHOLDER.sub(lambda match: "\0" * len(match[0]), text)
            hits = prefilter().hits(masked, work.most_hits)
        work.spend(len(hits) * Work.HIT)
        spans = list(_spans(masked, hits, work, 0))
        work.spend(len(spans) * Work.SECRET)
    except TooMuchWorkError:
        return [SecretSpan(0, len(text), WITHHELD, sure=False)]
    whole = masked.strip()
    verdict = judge_field(field, whole) if field and whole else None
    if verdict:
        start = masked.index(whole)
        spans.append(SecretSpan(start, start + len(whole), *verdict))
    return [piece for span in without(union(spans), holes) for piece in _lines(text, span)]


def placeholders(text: str) -> list[tuple[int, int]]:
    """Return where placeholders are in a text."""
    return [match.span() for match in PLACEHOLDER.finditer(text)]


def _spans(
    text: str, hits: Iterable[Hit], work: Work, depth: int, view: View | None = None
) -> Iterator[SecretSpan]:
    """Find secrets where a text has hits.

    In a view, what depends on a line alone that its original has too is not read again.
    """
    done: dict[object, int] = {}
    places: dict[str, list[int]] = {}
    for hit in hits:
        rule, _, _ = RULES[hit.pattern]
        if isinstance(rule, str):
            places.setdefault(rule, []).append(hit.end)
        elif isinstance(rule, Broken):
            work.spend(Work.BROKEN)
            yield from _broken_start(text, rule.rule, hit.end, work)
        elif isinstance(rule, Format):
            if done.get(hit.pattern, 0) <= hit.start:
                work.spend(Work.FORMAT * (3 if rule.before or rule.check == "pem" else 1))
                match = rule.pattern.match(text, hit.start)
                found = list(_known(text, rule, hit.start, match, work))
                done[hit.pattern] = found[-1].end if found else _after(hit.start, match)
                yield from found
        elif isinstance(rule, Line):
            last = done.get(hit.pattern, 0)
            end = rule.end(text, hit.end, last)
            done[hit.pattern] = max(last, end)
            if not (view and rule.is_within_line and view.is_line_same(hit.end)):
                work.spend(rule.cost)
                yield from rule.read(text, hit.end, last, end)
        else:
            last = done.get(rule.find or hit.pattern, 0)
            if not rule.tracked:
                is_read = rule.find == "assignments" and view and view.is_line_same(hit.end)
                if hit.end > last and not is_read:
                    work.spend(rule.cost)
                    yield from rule.read(text, hit.end, max(0, last, hit.end - _LOOK_BACK))
                    done[rule.find or hit.pattern] = hit.end
            elif hit.start >= last or text.find("\n", max(0, last - rule.reach), hit.start) >= 0:
                work.spend(rule.cost)
                yield from rule.read(text, hit.start)
                done[hit.pattern] = hit.start + rule.reach
    if depth < _DEEPEST:
        for name in places:
            seen = view.seen.get(name, ()) if view else ()
            ends = sorted(places[name])
            if view and seen:
                ends = [end for end in ends if view.origin(end) not in seen]
            yield from _through(name, text, ends, places, work, depth + 1)


def _after(start: int, found: re.Match[str] | None) -> int:
    """Return where to go on after what looked like a secret and was none.

    A quarter of its length on: one that begins within is found, and no text costs more than time
    in proportion to its length.
    """
    return start + (found.end() - start) // 4 if found else start + 1


def _known(
    text: str, rule: Format, start: int, match: re.Match[str] | None, work: Work
) -> Iterator[SecretSpan]:
    found = rule.judged(text, match) if match else None
    if found:
        yield SecretSpan(*found, rule.kind)
    yield from _wrapped(text, rule, start, found[1] if found else 0, work)


def _broken_start(text: str, rule: Format, end: int, work: Work) -> Iterator[SecretSpan]:
    """Find a secret that a line break split in its beginning, which ends at a place."""
    line_end = text.rfind("\n", 0, end)
    line_end -= text[line_end - 1 : line_end] == "\r"
    before = text[max(0, line_end - 200) : line_end]
    run = _RUN_BEFORE.search(before)
    if run:
        yield from _wrapped(text, rule, line_end - len(before) + run.start(), 0, work)


def _wrapped(
    text: str, rule: Format, start: int, known_end: int, work: Work
) -> Iterator[SecretSpan]:
    """Find a secret that a terminal, or a mail, broke over lines."""
    run = _RUN.match(text, start, start + 400)
    if run is None or not _NEXT_LINE.match(text, run.end()):
        return
    if known_end and known_end < run.end():
        return
    if rule.edge and start and text[start - 1].isalnum():
        return
    if start and text[start - 1] == "\n" and _BLOCK.search(text, max(0, start - 200), start - 1):
        return
    parts = [run.span()]
    while len(parts) < 12:
        between = _NEXT_LINE.match(text, parts[-1][1])
        more = _RUN.match(text, between.end(), between.end() + 400) if between else None
        if more is None:
            break
        parts.append(more.span())
        if more.end() - more.start() < parts[0][1] - parts[0][0] and len(parts) > 2:
            break
    work.spend(len(parts) * Work.BROKEN)
    for count in range(len(parts), 1, -1):
        joined = "".join(text[begin:end] for begin, end in parts[:count])
        found = rule.match(joined, run.end() - run.start())
        if not found or found[1] < len(joined.rstrip("./=")):
            continue
        rest = joined[run.end() - run.start() :]
        if wordiness(rest) < 0.4 or (not known_end and (wordiness(rest) < 0.8 or len(rest) < 8)):
            yield SecretSpan(start + found[0], run.end(), rule.kind)
            yield from (SecretSpan(begin, end, rule.kind) for begin, end in parts[1:count])
            return


def _through(
    name: str,
    text: str,
    ends: list[int],
    places: Mapping[str, Collection[int]],
    work: Work,
    depth: int,
) -> Iterator[SecretSpan]:
    """Look at the neighbourhood of places through a view.

    A place that it left as it was is not looked at again through another view that looks first
    (``ORDER``) at all its places: two views over one another need no second order.
    """
    if name in CODES or not ends:
        yield from _encoded(name, text, ends, work, depth)
        return
    view = View(name, text, stretches(name, text, ends))
    work.spend(view.changes * Work.CHANGE + len(view.text) * Work.SCAN)
    view.seen = {other: set(places.get(other, ())) for other in ORDER[: ORDER.index(name) + 1]}
    if view.changes:
        for span in _spans(view.text, work.hits(view.text), work, depth, view):
            yield from view.spans(span)


def _encoded(name: str, text: str, ends: list[int], work: Work, depth: int) -> Iterator[SecretSpan]:
    """Look into the base64 or hex digits at places."""
    done = 0
    for end in ends:
        if end < done:
            continue
        start, done, plain = decoded(name, text, end - CODES[name])
        work.spend(Work.CODE + (done - start) * Work.SCAN)
        spans = union(_spans(plain, work.hits(plain), work, depth)) if plain else []
        if spans:
            is_sure = any(span.sure for span in spans)
            is_whole = spans[0].end - spans[0].start >= len(plain.strip())
            value = plain.strip() if is_whole else ""
            yield SecretSpan(start, done, spans[0].kind, is_sure, value)


def _lines(text: str, span: SecretSpan) -> Iterator[SecretSpan]:
    """Cut a span at line breaks, and take indentation and a patch's markers out of it."""
    if span.kind == WITHHELD or "\n" not in text[span.start : span.end]:
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
