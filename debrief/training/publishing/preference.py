"""Pairs of a better and a worse session of the same task, with the margin and what it rests on.

Each session is in at most one pair: the best with the worst, the second best with the second
worst, as long as they are far enough apart. Sessions that began with the same prompt are paired
among themselves first, as only such pairs answer one question in two ways. Both of a pair are on
the same side of the split. Of a session in windows the first stands for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec
from msgspec import Raw, Struct

from debrief.training.model import ScoreEntry, ToolSchema
from debrief.training.publishing.columns import Columns, ListOf
from debrief.training.publishing.conversations import (
    ENCODER,
    Line,
    Made,
    Message,
    StoredMessage,
    rendered,
    template_problems,
)

SMALLEST_MARGIN = 0.1
"""Of overall quality, 0 to 1: less is within what one scorer varies by."""
COLUMNS: Columns = {
    "chosen": ListOf("json"),
    "rejected": ListOf("json"),
    "tools": "string",
    "margin": "float64",
    "reasons": ListOf("string"),
    "same_prompt": "bool",
    "chosen_session": "string",
    "rejected_session": "string",
}
NOTE = (
    "`chosen` and `rejected` are whole conversations, `margin` the difference of their overall "
    f"qualities (at least {SMALLEST_MARGIN:g}), `reasons` what the scores say of it. Only where "
    "`same_prompt` is true do both answer the same prompt, as DPO needs it: filter for it. Both "
    "of a pair are on the same side of the split."
)
_MOST_REASONS = 3
_PROMPT, _NEXT = b'{"role":"user",', b'},{"role":'
_USUAL_PROMPT = 4_096
"""Bytes of a line in which the first prompt mostly ends."""
_TOOLS = msgspec.json.Decoder(list[ToolSchema])


class Entrant(Struct, frozen=True, kw_only=True):
    """A line as far as pairing needs it."""

    number: int
    """Of its line in the training set."""
    quality: float
    prompt: str
    """Digest of its system message and first prompt."""


class Pair(Struct, frozen=True, kw_only=True):
    """Two lines by number."""

    chosen: int
    rejected: int
    same_prompt: bool


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    chosen: list[Message]
    rejected: list[Message]
    tools: str
    margin: float
    reasons: list[str]
    same_prompt: bool
    chosen_session: str
    rejected_session: str


class _Rated(Struct, frozen=True):
    session_id: str
    overall_quality: float
    scoring_model: str
    scores: tuple[ScoreEntry, ...]


class _RatedLine(Struct, frozen=True):
    messages: tuple[StoredMessage, ...]
    tools: Raw
    metadata: _Rated


_RATED = msgspec.json.Decoder(_RatedLine)
_CHECKED = msgspec.json.Decoder(_Line)


def pairs_of(entrants: Iterable[Entrant]) -> list[Pair]:
    """Return the pairs among lines of one side, in the order of the better one's line."""
    groups: dict[str, list[Entrant]] = {}
    for entrant in entrants:
        groups.setdefault(entrant.prompt, []).append(entrant)
    found: list[Pair] = []
    left: list[Entrant] = []
    for group in groups.values():
        pairs, rest = _paired(group, same_prompt=True)
        found += pairs
        left += rest
    found += _paired(left, same_prompt=False)[0]
    return sorted(found, key=lambda pair: pair.chosen)


def _paired(entrants: Sequence[Entrant], *, same_prompt: bool) -> tuple[list[Pair], list[Entrant]]:
    ranked = sorted(entrants, key=lambda one: (-one.quality, one.number))
    pairs = []
    best, worst = 0, len(ranked) - 1
    while best < worst and ranked[best].quality - ranked[worst].quality >= SMALLEST_MARGIN:
        pairs.append(
            Pair(chosen=ranked[best].number, rejected=ranked[worst].number, same_prompt=same_prompt)
        )
        best, worst = best + 1, worst - 1
    return pairs, ranked[best : worst + 1]


def entrant_of(number: int, line: Line, quality: float) -> Entrant:
    """Return what pairing needs of a line.

    Only its beginning is looked at: an unescaped quote after a brace is in no string, so the
    message after the first prompt begins where it says.
    """
    text = bytes(line[:_USUAL_PROMPT])
    end = text.find(_NEXT, text.find(_PROMPT))
    if end < 0:
        text = bytes(line)
        end = text.find(_NEXT, text.find(_PROMPT))
    prompt = hashlib.sha256(memoryview(text)[:end]).hexdigest()
    return Entrant(number=number, quality=quality, prompt=prompt)


def pair_line(better: Line, worse: Line, *, same_prompt: bool) -> Made | None:
    """Return two stored lines as one; None when they tell the same conversation."""
    chosen, rejected = _RATED.decode(better), _RATED.decode(worse)
    if chosen.messages == rejected.messages:
        return None
    margin = chosen.metadata.overall_quality - rejected.metadata.overall_quality
    made = _Line(
        chosen=rendered(chosen.messages),
        rejected=rendered(rejected.messages),
        tools=_both(bytes(rejected.tools), bytes(chosen.tools)),
        margin=round(margin, 6),
        reasons=list(_reasons(chosen, rejected)),
        same_prompt=same_prompt,
        chosen_session=chosen.metadata.session_id,
        rejected_session=rejected.metadata.session_id,
    )
    return ENCODER.encode_lines((made,)), _own_problems(made)


@lru_cache(maxsize=32)
def _both(fewer: bytes, rather: bytes) -> str:
    """Return the tools of two lines by name, as JSON text; the second one's where both have it."""
    declared = [*_TOOLS.decode(fewer), *_TOOLS.decode(rather)]
    tools = {tool.function.name: tool for tool in declared}
    return ENCODER.encode([tools[name] for name in sorted(tools)]).decode()


def problems(line: bytes) -> Iterator[str]:
    """Yield what a preference trainer would stumble over."""
    try:
        made = _CHECKED.decode(line)
    except msgspec.DecodeError as error:
        yield f"not a line of the expected shape: {error}"
        return
    yield from _own_problems(made)
    for side, messages in (("chosen", made.chosen), ("rejected", made.rejected)):
        for problem in template_problems(messages, made.tools):
            yield f"{side}: {problem}"


def _own_problems(made: _Line) -> Iterator[str]:
    if not made.margin > 0:
        yield f"a margin of {made.margin:g}"
    if not made.reasons:
        yield "no reason"
    if made.chosen_session == made.rejected_session or made.chosen == made.rejected:
        yield "both are the same session"


def _reasons(chosen: _RatedLine, rejected: _RatedLine) -> Iterator[str]:
    better, worse = chosen.metadata, rejected.metadata
    yield (
        f"overall quality {better.overall_quality:.2f} against {worse.overall_quality:.2f}, "
        f"scored by {better.scoring_model}"
    )
    against = {(entry.kind, entry.name): entry for entry in worse.scores}
    differing = [
        (entry, other)
        for entry in better.scores
        if entry.kind in ("dimension", "judge")
        and (other := against.get((entry.kind, entry.name))) is not None
        and entry.value > other.value
    ]
    differing.sort(key=lambda pair: (-_gap(*pair), pair[0].kind, pair[0].name))
    for entry, other in differing[:_MOST_REASONS]:
        said = "; ".join(
            f"{word}: {' '.join(one.comment.split())}"
            for word, one in (("better", entry), ("worse", other))
            if one.comment.strip()
        )
        told = f"{entry.kind} {entry.name} {entry.value:.2f} against {other.value:.2f}"
        yield f"{told} ({said})" if said else told


def _gap(entry: ScoreEntry, other: ScoreEntry) -> float:
    return (entry.weight or 1.0) * (entry.value - other.value)
