"""Chunks: a session of any length in parts that each fit one scoring call.

Whatever the input:

1. no chunk exceeds the target: a trace over it is split between its observations, an observation
   over it within its text;
2. the chunks' own traces, joined, are the session (``joined`` is the proof);
3. consecutive chunks share up to ``overlap`` traces, fewer when that many would take more than a
   quarter of the target, or leave no room for what comes next;
4. a small final chunk is merged into the one before if the traces of both still fit, which may
   cost that chunk a part of its overlap;
5. one pass, linear in the session: a text is counted once, and one that has to be split once
   more in its blocks.

Tokens are those of the observations' texts; the prompt around them is not counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from debrief.errors import InputError
from debrief.scoring.model import Chunk, Observation, Trace
from debrief.tokens import count_tokens

TARGET = 70_000
OVERLAP = 4
MIN_CHUNK_RATIO = 0.5

Count = Callable[[str], int]
Measured = tuple[Trace, int]
_Range = tuple[int, int, int]
"""The first overlapped, the first own, and the end of a chunk, as indices of pieces."""

_BLOCK = 4_096
_SURELY_OVER = 4
"""Characters a token has on average at most in ordinary text: a longer one is not counted whole
before it is cut into blocks."""
_GOOD_ENDS = (
    (re.compile(r"\n(?=[^\s/])"), True),
    (re.compile(r"[^\W_](?=\s)"), True),
    (re.compile(r"[,;.)}\]](?=\w)"), False),
)
"""The end of a line, of a word, of a clause; no token spans the first two."""


class _Block(NamedTuple):
    text: str
    tokens: int
    whole: bool
    """Whether it ends where a token ends."""


def chunk_by_tokens(
    traces: Iterable[Trace],
    target: int = TARGET,
    overlap: int = OVERLAP,
    min_chunk_ratio: float = MIN_CHUNK_RATIO,
    count: Count = count_tokens,
) -> list[Chunk]:
    """Return the chunks of a session; none for a session without traces.

    Args:
        traces: the session, in order.
        target: the most tokens that a chunk may have, overlap included; at least 1.
        overlap: the most traces that a chunk repeats from the end of the one before.
        min_chunk_ratio: a final chunk whose own tokens are under this part of the target is
            merged into the one before when that fits.
        count: the tokens of a text.

    Raises:
        InputError: the target or the overlap is not usable, or a single character exceeds the
            target.
    """
    if target < 1 or overlap < 0:
        raise InputError("chunking", f"target {target} and overlap {overlap} cannot be used")
    pieces = [piece for trace in traces for piece in _pieces(trace, target, overlap, count)]
    if not pieces:
        return []
    ranges = _packed(pieces, target, overlap, min_chunk_ratio)
    return [_chunk(index, len(ranges), part, pieces) for index, part in enumerate(ranges)]


def joined(chunks: Iterable[Chunk]) -> list[Trace]:
    """Return the session that ``chunks`` were made of: overlaps away, split parts together."""
    traces: list[Trace] = []
    for part in (trace for chunk in chunks for trace in chunk.traces):
        if not part.continued:
            traces.append(part)
            continue
        before = traces[-1]
        traces[-1] = Trace(
            number=before.number,
            observations=before.observations + part.observations,
            continued=before.continued,
        )
    return [_whole(trace) for trace in traces]


def _whole(trace: Trace) -> Trace:
    if not any(part.continued for part in trace.observations):
        return trace
    texts: list[tuple[Observation, list[str]]] = []
    for part in trace.observations:
        if part.continued:
            texts[-1][1].append(part.text)
        else:
            texts.append((part, [part.text]))
    return Trace(
        number=trace.number,
        observations=tuple(Observation(first.kind, "".join(parts)) for first, parts in texts),
        continued=trace.continued,
    )


def _packed(
    pieces: Sequence[Measured], target: int, overlap: int, min_chunk_ratio: float
) -> list[_Range]:
    ranges: list[_Range] = []
    lead = own = held = 0
    for index, (_, tokens) in enumerate(pieces):
        if held + tokens > target and index > own:
            ranges.append((lead, own, index))
            room = min(target // 4, target - tokens)
            lead, own = _lead(pieces, lead, index, overlap, room), index
            held = sum(size for _, size in pieces[lead:index])
        held += tokens
    small = sum(size for _, size in pieces[own:]) < min_chunk_ratio * target
    if ranges and small:
        lead_before, own_before, _ = ranges[-1]
        room = target - sum(size for _, size in pieces[own_before:])
        if room >= 0:
            most = own_before - lead_before
            ranges.pop()
            lead, own = _lead(pieces, lead_before, own_before, most, room), own_before
    return [*ranges, (lead, own, len(pieces))]


def _lead(pieces: Sequence[Measured], floor: int, end: int, most: int, room: int) -> int:
    """Return where the longest run of at most ``most`` pieces begins that ends at ``end``."""
    lead = end
    while lead > floor and end - lead < most and pieces[lead - 1][1] <= room:
        lead -= 1
        room -= pieces[lead][1]
    return lead


def _chunk(index: int, count: int, ranges: _Range, pieces: Sequence[Measured]) -> Chunk:
    lead, own, end = ranges
    own_tokens = sum(size for _, size in pieces[own:end])
    return Chunk(
        index=index,
        count=count,
        overlap=tuple(trace for trace, _ in pieces[lead:own]),
        traces=tuple(trace for trace, _ in pieces[own:end]),
        tokens=own_tokens + sum(size for _, size in pieces[lead:own]),
        own_tokens=own_tokens,
    )


def _pieces(trace: Trace, target: int, overlap: int, count: Count) -> Iterator[Measured]:
    """Yield the trace, or its parts when it exceeds the target.

    The parts are so small that ``overlap`` of them fit into the quarter that an overlap may take,
    so a chunk that begins in the middle of a long trace has context too.
    """
    measured = [part for seen in trace.observations for part in _measured(seen, target, count)]
    total = sum(tokens for _, tokens in measured)
    if total <= target and len(measured) == len(trace.observations):
        yield trace, total
        return
    limit = target // (4 * max(1, overlap))
    part: list[Observation] = []
    held = 0
    continued = trace.continued
    for observation, tokens in measured:
        if part and held + tokens > limit:
            yield _part(trace, part, continued), held
            part, held, continued = [], 0, True
        part.append(observation)
        held += tokens
    yield _part(trace, part, continued), held


def _part(trace: Trace, observations: Sequence[Observation], continued: bool) -> Trace:
    return Trace(number=trace.number, observations=tuple(observations), continued=continued)


def _measured(observation: Observation, target: int, count: Count) -> list[tuple[Observation, int]]:
    """Return the observation with its tokens, or its parts when it exceeds the target."""
    text = observation.text
    if len(text) <= _SURELY_OVER * target and (total := count(text)) <= target:
        return [(observation, total)]
    blocks = [_Block(block, count(block), whole) for block, whole in _blocks(text)]
    if sum(block.tokens for block in blocks) <= target and (total := count(text)) <= target:
        return [(observation, total)]
    parts = _texts(blocks, target, count)
    kind = observation.kind
    return [
        (Observation(kind, part, observation.continued if index == 0 else True), tokens)
        for index, (part, tokens) in enumerate(parts)
    ]


def _texts(blocks: Iterable[_Block], target: int, count: Count) -> Iterator[tuple[str, int]]:
    """Yield the blocks' text in parts of about a quarter of the target, never over the target."""
    limit = max(1, target // 4)
    held: list[_Block] = []
    total = 0
    for block in blocks:
        for small in _small(block, limit, target, count):
            if held and total + small.tokens > limit:
                yield from _together(held, target, count)
                held, total = [], 0
            held.append(small)
            total += small.tokens
    if held:
        yield from _together(held, target, count)


def _together(held: Sequence[_Block], target: int, count: Count) -> Sequence[tuple[str, int]]:
    """Return blocks as one text, counted anew when one of them may end inside a token."""
    text = "".join(block.text for block in held)
    if all(block.whole for block in held[:-1]):
        return [(text, sum(block.tokens for block in held))]
    tokens = count(text)
    return [(text, tokens)] if tokens <= target else [(b.text, b.tokens) for b in held]


def _small(block: _Block, limit: int, target: int, count: Count) -> Iterator[_Block]:
    """Yield a block in halves of halves, until each is within the limit or one character."""
    text = block.text
    if block.tokens <= limit or len(text) == 1:
        if block.tokens > target:
            raise InputError("chunking", f"one character has {block.tokens} tokens, over {target}")
        yield block
        return
    middle, _ = _good_end(text, 0, len(text) // 2)
    for half in (text[:middle], text[middle:]):
        yield from _small(_Block(half, count(half), False), limit, target, count)


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Yield blocks of text, each with whether it ends where a token ends."""
    start = 0
    while len(text) - start > _BLOCK:
        end, whole = _good_end(text, start, start + _BLOCK)
        yield text[start:end], whole
        start = end
    yield text[start:], True


def _good_end(text: str, start: int, end: int) -> tuple[int, bool]:
    """Return the best place to cut from the middle of ``start`` and ``end`` on, else ``end``.

    Beside it stands whether a token ends there for certain.
    """
    middle = (start + end) // 2
    for good, certain in _GOOD_ENDS:
        places = [match.end() for match in good.finditer(text, middle, end)]
        if places:
            return places[-1], certain
    return end, False
