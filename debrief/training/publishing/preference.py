"""Pairs of a better and a worse session of the same task, with the margin and what it rests on.

Each session is in at most one pair: the best with the worst, the second best with the second
worst, as long as they are far enough apart. Sessions that began with the same prompt are paired
among themselves first, as only such pairs answer one question in two ways. Both of a pair are on
the same side of the split. Of a session in windows the first stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

from debrief.training.model import ScoreKind, ToolSchema
from debrief.training.publishing.columns import Columns, ListOf
from debrief.training.publishing.conversations import (
    ENCODER,
    Made,
    Message,
    StoredLine,
    not_trained_on,
    rendered,
    template_problems,
    text_of,
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
    "`chosen` and `rejected` are conversations, as in `trl`, `margin` the difference of their "
    f"overall qualities (at least {SMALLEST_MARGIN:g}), `reasons` what the scores say of it. Only "
    "where `same_prompt` is true do both answer the same prompt, as DPO needs it: filter for it. "
    "Both of a pair are on the same side of the split."
)
_MOST_REASONS = 3
_TOOLS = msgspec.json.Decoder(list[ToolSchema])


class Entrant(Struct, frozen=True, kw_only=True, gc=False):
    """A line as far as pairing needs it."""

    number: int
    """Of its line in the training set."""
    quality: float
    opening: str
    """Digest of its system message and first prompt."""


class Pair(Struct, frozen=True, kw_only=True, gc=False):
    """Two lines by number."""

    chosen: int
    rejected: int
    same_prompt: bool


class _Comparison(Struct, frozen=True, gc=False):
    margin: float
    reasons: list[str]
    same_prompt: bool
    chosen_session: str
    rejected_session: str


class _Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    chosen: list[Message]
    rejected: list[Message]
    tools: str
    margin: float
    reasons: list[str]
    same_prompt: bool
    chosen_session: str
    rejected_session: str


class _Score(Struct, frozen=True, gc=False):
    kind: ScoreKind
    name: str
    value: float
    weight: float
    comment: str


class _Rated(Struct, frozen=True, gc=False):
    session_id: str
    overall_quality: float
    scoring_model: str
    scores: tuple[_Score, ...]


_RATED = msgspec.json.Decoder(_Rated)
_CHECKED = msgspec.json.Decoder(_Line)


def pairs_of(entrants: Iterable[Entrant]) -> list[Pair]:
    """Return the pairs among lines of one side, in the order of the better one's line."""
    groups: dict[str, list[Entrant]] = {}
    for entrant in entrants:
        groups.setdefault(entrant.opening, []).append(entrant)
    found: list[Pair] = []
    left: list[Entrant] = []
    for group in groups.values():
        if len(group) == 1:
            left += group
            continue
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


def pair_line(better: StoredLine, worse: StoredLine, *, same_prompt: bool) -> Made | None:
    """Return two stored lines as one; None when they tell the same conversation."""
    chosen, rejected = (rendered(line, not_trained_on(line)) for line in (better, worse))
    if sum(map(len, chosen)) == sum(map(len, rejected)) and b"".join(chosen) == b"".join(rejected):
        return None
    winner, loser = _RATED.decode(better.metadata), _RATED.decode(worse.metadata)
    made = _Comparison(
        margin=round(winner.overall_quality - loser.overall_quality, 6),
        reasons=list(_reasons(winner, loser)),
        same_prompt=same_prompt,
        chosen_session=winner.session_id,
        rejected_session=loser.session_id,
    )
    tools = text_of(_both(bytes(worse.tools), bytes(better.tools)))
    rest = b',"tools":%b,%b\n' % (tools, ENCODER.encode(made)[1:])
    return (b'{"chosen":', *chosen, b',"rejected":', *rejected, rest), _own_problems(made)


@lru_cache(maxsize=32)
def _both(fewer: bytes, rather: bytes) -> bytes:
    """Return the tools of two lines by name, as JSON text; the second one's where both have it."""
    declared = [*_TOOLS.decode(fewer), *_TOOLS.decode(rather)]
    tools = {tool.function.name: tool for tool in declared}
    return ENCODER.encode([tools[name] for name in sorted(tools)])


def problems(line: bytes) -> Iterator[str]:
    """Yield what a preference trainer would stumble over."""
    try:
        made = _CHECKED.decode(line)
    except msgspec.DecodeError as error:
        yield f"not a line of the expected shape: {error}"
        return
    yield from _own_problems(made)
    if made.chosen == made.rejected:
        yield "both are the same conversation"
    for side, messages in (("chosen", made.chosen), ("rejected", made.rejected)):
        for problem in template_problems(messages, made.tools):
            yield f"{side}: {problem}"


def _own_problems(made: _Line | _Comparison) -> Iterator[str]:
    if not made.margin > 0:
        yield f"a margin of {made.margin:g}"
    if not made.reasons:
        yield "no reason"
    if made.chosen_session == made.rejected_session:
        yield "both are the same session"


def _reasons(better: _Rated, worse: _Rated) -> Iterator[str]:
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


def _gap(entry: _Score, other: _Score) -> float:
    return (entry.weight or 1.0) * (entry.value - other.value)
