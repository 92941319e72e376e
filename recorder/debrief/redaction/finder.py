"""Finding secrets in a text: the prefilter's hits, each read by its rule."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from time import thread_time

from debrief.redaction.plausibility import KEYWORDS
from debrief.redaction.readers import judge_field
from debrief.redaction.rules import CONTEXTS, FORMATS, Context, Format, Line
from debrief.redaction.spans import WITHHELD, Hit, Prefilter, SecretSpan, once, union, without
from debrief.redaction.strings import strings_in
from debrief.redaction.views import CODES, ORDER, VIEW_ANCHORS, View, decoded, stretches

DOCUMENT = "document"
"""What JSON holds under a secret's name, where it is more than a string."""
Rule = Format | Context | Line | str
"""A known format, a context, a line, or the name of a view to look through."""

RULES: tuple[tuple[Rule, str, bool], ...] = (
    *((rule, rule.start, True) for rule in FORMATS),
    *((rule, rule.anchor, rule.tracked) for rule in CONTEXTS),
    *((name, anchor, False) for name, anchor in VIEW_ANCHORS),
    (DOCUMENT, rf'(?i)(?:{KEYWORDS})[\w.\-]{{0,32}}\\{{0,8}}"\s{{0,4}}:\s{{0,4}}[\[{{]', False),
)
"""Each with its anchor, and whether the engine tracks where that starts."""

VERSION = "7"
"""Raised when the careful rules change in a way that their anchors do not show."""


@once
def prefilter() -> Prefilter:
    """Return the prefilter over all rules."""
    untracked = [number for number, (_, _, tracked) in enumerate(RULES) if not tracked]
    return Prefilter([anchor for _, anchor, _ in RULES], untracked=untracked, is_kept=True)


def may_hold_secret(json_text: str) -> bool:
    """Return whether the strings of a JSON text have to be looked at one by one.

    What is beside a secret shows where line breaks, tabs and quotation marks are no escapes.
    """
    data = _with_breaks(json_text).encode("utf-8", "surrogatepass")
    return bool(_REWRITTEN.search(json_text) or prefilter().scan(data, 1))


def may_hold_secrets(json_texts: Iterable[str]) -> set[str]:
    """Return those of many JSON texts whose strings have to be looked at, scanned as one."""
    spelled = {text: _with_breaks(text) for text in json_texts}
    hits = prefilter().hits_in_each(spelled.values())
    return {text for text, plain in spelled.items() if _REWRITTEN.search(text) or plain in hits}


_REWRITTEN = re.compile(r"\\(?:/|u(?!00[0-7]|[dD][89a-fA-F]))")
"""Signs that JSON escapes without need, and that a rule may look for: ``/`` and other alphabets."""


def _with_breaks(json_text: str) -> str:
    plain = json_text.replace(r"\\", "\0").replace(r"\n", "\n").replace(r"\"", '"')
    return plain.replace(r"\t", "\t").replace("\0", r"\\")


PLACEHOLDER = re.compile(r"<secret:[a-z0-9-]{1,40}:[0-9a-f]{6}>|<withheld: [a-z ]{1,80}>")
"""What a secret is replaced by: its kind and six hex digits of a keyed digest; and the mark of
a stretch that is withheld."""

SHORTEST = 10
"""Shorter texts hold no secret with what gives it away."""
_DEEPEST = 3
_LOOK_BACK = 120
_PART = 16_384
"""Characters of a text in which a secret of a known format is looked for behind another."""
_LINE = re.compile(r"[^\n]+")


class SearchBudget:
    """The time that searching may take: of a session, shared by all its texts and all passes.

    It is of the thread's own time, so that a machine that is busy otherwise withholds nothing.

    Args:
        size: characters of all texts.
    """

    _START, _PER_CHARACTER = 0.2, 0.6e-6
    """Seconds."""

    def __init__(self, size: int) -> None:
        self._seconds = self._START + size * self._PER_CHARACTER
        self._end = 0.0

    def is_spent(self) -> bool:
        """Return whether nothing may be searched any more; the clock starts when first asked."""
        now = thread_time()
        self._end = self._end or now + self._seconds
        return now > self._end


_BEFORE, _WINDOW = 256, 4096
"""Characters of what is withheld around a place: those before it, and all."""


def find(text: str, field: str = "", budget: SearchBudget | None = None) -> list[SecretSpan]:
    """Return the secrets of ``text`` in order, none overlapping, none spanning a line break.

    What could not be searched in time is there too, as spans of the kind ``WITHHELD``, line
    breaks and all.

    Args:
        text: any text; the placeholders in it are left out.
        field: the name that the whole text is the value of, such as a JSON key.
        budget: of all that is searched together; None for a text by itself.
    """
    if len(text) < SHORTEST and not field:
        return []
    hits = prefilter().hits(text, most_hits(text))
    return find_at(text, hits, field, budget) if hits or field else []


def find_at(
    text: str, hits: Sequence[Hit], field: str = "", budget: SearchBudget | None = None
) -> list[SecretSpan]:
    """Return the secrets of ``text`` where the prefilter's hits for it are known already."""
    holes = placeholders(text)
    masked = text
    if holes:
        masked = PLACEHOLDER.sub(lambda match: "\0" * len(match[0]), text)
        hits = prefilter().hits(masked, most_hits(text))
    budget = budget or SearchBudget(len(text))
    spans: list[SecretSpan] = []
    if hits and text.lstrip()[:1] in _OPENING:
        spans += _in_json(masked, budget)
        masked = _without(masked, spans)
    spans += _spans(masked, hits, budget, 0)
    if len(hits) >= most_hits(text):
        spans += _unscanned(masked, max(hit.end for hit in hits))
    whole = masked.strip()
    verdict = judge_field(field, whole) if field and whole else None
    if verdict:
        start = masked.index(whole)
        spans.append(SecretSpan(start, start + len(whole), *verdict))
    return [piece for span in without(union(spans), holes) for piece in _lines(text, span)]


def _without(text: str, spans: Iterable[SecretSpan]) -> str:
    """Return a text of the same length in which nothing is found twice."""
    pieces: list[str] = []
    last = 0
    for span in spans:
        pieces += (text[last : span.start], "\0" * (span.end - span.start))
        last = span.end
    return "".join([*pieces, text[last:]])


def placeholders(text: str) -> list[tuple[int, int]]:
    """Return where placeholders are in a text."""
    return [match.span() for match in PLACEHOLDER.finditer(text)]


def most_hits(text: str) -> int:
    """Return how many hits are taken of a text: more make it slow before one is read."""
    return 5_000 + len(text) // 12


_OPENING = ("{", "[")


def _in_json(text: str, budget: SearchBudget) -> Iterator[SecretSpan]:
    """Find the values of a JSON text whose names say that they are secrets, and of JSON in it."""
    at = 0
    for number, (spellings, (kind, sure)) in enumerate(_named_values(text, _DEEPEST)):
        if not number % 64 and budget.is_spent():
            return
        for value in spellings:
            if (begin := text.find(value, at)) >= 0:
                at = begin + len(value)
                yield SecretSpan(begin, at, kind, sure)
                break


def _named_values(text: str, depth: int) -> Iterator[tuple[Iterable[str], tuple[str, bool]]]:
    """Yield the values in order, as the text may spell them, with kind and certainty."""
    try:
        leaves = strings_in(text)
    except (ValueError, RecursionError):
        return
    for leaf, name, _ in leaves:
        if depth and leaf.lstrip()[:1] in _OPENING:
            for values, inner in _named_values(leaf, depth - 1):
                yield dict.fromkeys(form for value in values for form in _spelled(value)), inner
        elif name and (verdict := judge_field(name, leaf.strip())):
            yield _spelled(leaf.strip()), verdict


def _spelled(value: str) -> Iterable[str]:
    """Return how a JSON text may spell a string."""
    if value.isalnum() and value.isascii():
        return (value,)
    forms = (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (False, True))
    return dict.fromkeys((*forms, value))


def _unscanned(text: str, at: int) -> Iterator[SecretSpan]:
    """Yield the windows with a hit behind the place where the prefilter stopped."""
    for start in range(max(0, at - _BEFORE), len(text), _WINDOW - _BEFORE):
        if prefilter().hits(text[start : start + _WINDOW], 1):
            yield SecretSpan(start, min(len(text), start + _WINDOW), WITHHELD, sure=False)


def _windows(text: str, ends: Iterable[int]) -> Iterator[SecretSpan]:
    """Yield the stretches around the ends of hits that were not read in time."""
    start = stop = 0
    for end in sorted(ends):
        if end - _BEFORE > stop:
            if stop:
                yield SecretSpan(start, stop, WITHHELD, sure=False)
            start = end - _BEFORE
        stop = min(len(text), end + _WINDOW - _BEFORE)
    if stop:
        yield SecretSpan(max(0, start), stop, WITHHELD, sure=False)


def _spans(
    text: str, hits: Sequence[Hit], budget: SearchBudget, depth: int, view: View | None = None
) -> Iterator[SecretSpan]:
    """Find secrets where a text has hits.

    In a view, what depends on a line alone that its original has too is not read again.
    """
    done: dict[object, int] = {}
    places: dict[str, list[int]] = {}
    edges: set[int] = set()
    """Where secrets end: what begins there needs no other sign before it."""
    for number, hit in enumerate(hits):
        rule = RULES[hit.pattern][0]
        if isinstance(rule, str):
            if rule != DOCUMENT:
                places.setdefault(rule, []).append(hit.end)
            continue
        if text[hit.end - 1] == "\0" or text[hit.end : hit.end + 1] == "\0":
            continue  # what follows has been found
        if not number % 8 and budget.is_spent():
            unread = (hit.end for hit in hits[number:])
            yield from _windows(text, itertools.chain(unread, *places.values()))
            return
        key = rule.find or hit.pattern if isinstance(rule, Context) else hit.pattern
        last = done.get(key, 0)
        if isinstance(rule, Format):
            if last <= hit.start:
                begin = hit.start if hit.start in edges else 0
                part = text[begin : begin + _PART] if begin else text
                match = rule.pattern.match(part, hit.start - begin)
                found = rule.judged(part, match) if match else None
                if found:
                    yield SecretSpan(begin + found[0], begin + found[1], rule.kind)
                    edges.add(begin + found[1])
                done[key] = begin + found[1] if found else _after(hit.start, match)
        elif isinstance(rule, Line):
            end = rule.end(text, hit.end, last)
            done[key] = max(last, end)
            if not (view and rule.is_within_line and view.is_line_same(hit.end)):
                yield from rule.read(text, hit.end, last, end)
        elif not rule.tracked:
            is_read = rule.find == "assignments" and view and view.is_line_same(hit.end)
            if hit.end > last and not is_read:
                yield from rule.read(text, hit.end, max(0, last, hit.end - _LOOK_BACK))
                done[key] = hit.end
        elif hit.start >= last or text.find("\n", max(0, last - rule.reach), hit.start) >= 0:
            yield from rule.read(text, hit.start)
            done[key] = hit.start + rule.reach
    if depth == _DEEPEST:
        return
    for name, ends in places.items():
        seen = view.seen.get(name, ()) if view else ()
        ends = sorted(end for end in ends if not (view and view.origin(end) in seen))
        if budget.is_spent():
            yield from _windows(text, ends)
        else:
            yield from _through(name, text, ends, places, budget, depth + 1)


def _after(start: int, found: re.Match[str] | None) -> int:
    """Return where to go on after what looked like a secret and was none.

    A quarter of its length on: one that begins within is found, and no text costs more than time
    in proportion to its length.
    """
    return start + (found.end() - found.start()) // 4 if found else start + 1


def _through(
    name: str,
    text: str,
    ends: list[int],
    places: Mapping[str, Collection[int]],
    budget: SearchBudget,
    depth: int,
) -> Iterator[SecretSpan]:
    """Look at the neighbourhood of places through a view.

    A place that it left as it was is not looked at again through another view that looks first
    (``ORDER``) at all its places: two views over one another need no second order.
    """
    if name in CODES or not ends:
        yield from _encoded(name, text, ends, budget, depth)
        return
    view = View(name, text, stretches(name, text, ends))
    view.seen = {other: set(places.get(other, ())) for other in ORDER[: ORDER.index(name) + 1]}
    if view.changes:
        for span in _all_spans(view.text, budget, depth, view):
            yield from view.spans(span)


def _all_spans(
    text: str, budget: SearchBudget, depth: int, view: View | None = None
) -> Iterator[SecretSpan]:
    hits = prefilter().hits(text, most_hits(text))
    yield from _spans(text, hits, budget, depth, view)
    if len(hits) >= most_hits(text):
        yield from _unscanned(text, max(hit.end for hit in hits))


def _encoded(
    name: str, text: str, ends: list[int], budget: SearchBudget, depth: int
) -> Iterator[SecretSpan]:
    """Look into the base64 or hex digits at places."""
    done = 0
    for number, end in enumerate(ends):
        if end < done:
            continue
        if budget.is_spent():
            yield from _windows(text, ends[number:])
            return
        start, done, plain = decoded(name, text, end - CODES[name])
        spans = union(_all_spans(plain, budget, depth)) if plain else []
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
