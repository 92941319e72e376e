"""Cut a session into chunks that each fit one scoring call.

Whatever the input:

1. no chunk exceeds the target: a trace over it is split between its observations, an observation
   over it within its text;
2. the chunks' own traces, joined, are the session;
3. consecutive chunks share ``overlap`` traces; where these and the trace after them exceed the
   target, as many as fit in half of it;
4. a small final chunk takes traces from the one before, as long as its overlap has room, until it
   is small no more: the end of a session decides whether its task was done;
5. one pass, linear in the session: a text is counted once, one that is split a few times more.

Tokens are those of the observations' texts; the prompt around them is not counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import structs

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

_SURELY_OVER = 8
"""Characters that a token of ordinary text never has on average."""
_GOOD_ENDS = tuple(map(re.compile, (r"\n(?=[^\s/])", r"[^\W_](?=\s)", r"[,;.)}\]](?=\w)")))
"""The end of a line, of a word, of a clause."""


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
        overlap: the traces that a chunk repeats from the end of the one before, where they fit.
        min_chunk_ratio: the part of the target below which a final chunk's own tokens are few.
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


def _packed(
    pieces: Sequence[Measured], target: int, overlap: int, min_chunk_ratio: float
) -> list[_Range]:
    ranges: list[_Range] = []
    lead = own = filled = 0
    for index, (_, tokens) in enumerate(pieces):
        if filled + tokens > target and index > own:
            ranges.append((lead, own, index))
            lead, own = _lead(pieces, index, overlap, target), index
            filled = _tokens(pieces, lead, index)
        filled += tokens
    least = min_chunk_ratio * target
    if ranges and _tokens(pieces, own, len(pieces)) < least:
        lead_before, own_before, _ = ranges[-1]
        lead, own = _further_back(pieces, own_before, own, least, target, overlap)
        ranges[-1] = (lead_before, own_before, own)
    return [*ranges, (lead, own, len(pieces))]


def _further_back(
    pieces: Sequence[Measured], floor: int, own: int, least: float, target: int, overlap: int
) -> tuple[int, int]:
    """Return where the overlap and the own traces of a final chunk begin, once it has taken from
    the one before what it needs to have ``least`` tokens, or as much as fits.
    """
    lead = _lead(pieces, own, overlap, target)
    filled = _tokens(pieces, own, len(pieces))
    while filled < least and own - 1 > floor:
        earlier = _lead(pieces, own - 1, overlap, target)
        is_all = earlier == 0 and own - 1 < overlap
        if is_all or _tokens(pieces, earlier, own) + filled > target:
            break
        lead, own = earlier, own - 1
        filled += pieces[own][1]
    return lead, own


def _lead(pieces: Sequence[Measured], own: int, overlap: int, target: int) -> int:
    """Return where the overlap begins of a chunk whose own traces begin at ``own``."""
    lead, room = max(0, own - overlap), target - pieces[own][1]
    if _tokens(pieces, lead, own) <= room:
        return lead
    room = min(room, target // 2)
    while _tokens(pieces, lead, own) > room:
        lead += 1
    return lead


def _tokens(pieces: Sequence[Measured], first: int, end: int) -> int:
    return sum(size for _, size in pieces[first:end])


def _chunk(index: int, count: int, ranges: _Range, pieces: Sequence[Measured]) -> Chunk:
    lead, own, end = ranges
    return Chunk(
        index=index,
        count=count,
        overlap=tuple(trace for trace, _ in pieces[lead:own]),
        traces=tuple(trace for trace, _ in pieces[own:end]),
        tokens=_tokens(pieces, lead, end),
        own_tokens=_tokens(pieces, own, end),
    )


def _pieces(trace: Trace, target: int, overlap: int, count: Count) -> Iterator[Measured]:
    """Yield the trace, or its parts when it exceeds the target.

    The parts are so small that ``overlap`` of them take a quarter of the target at most, so a chunk
    that begins in the middle of a long trace has context too.
    """
    measured = [part for seen in trace.observations for part in _measured(seen, target, count)]
    total = sum(tokens for _, tokens in measured)
    if total <= target and len(measured) == len(trace.observations):
        yield trace, total
        return
    limit = target // (4 * max(1, overlap))
    part: list[Observation] = []
    filled = 0
    continued = trace.continued
    for observation, tokens in measured:
        if part and filled + tokens > limit:
            yield structs.replace(trace, observations=tuple(part), continued=continued), filled
            part, filled, continued = [], 0, True
        part.append(observation)
        filled += tokens
    yield structs.replace(trace, observations=tuple(part), continued=continued), filled


def _measured(observation: Observation, target: int, count: Count) -> list[tuple[Observation, int]]:
    """Return the observation with its tokens, or its parts when it exceeds the target."""
    total = count(observation.text)
    if total <= target:
        return [(observation, total)]
    parts = _cut(observation.text, max(1, target // 4), target, count)
    return [
        (Observation(observation.kind, text, observation.continued or place > 0), tokens)
        for place, (text, tokens) in enumerate(parts)
    ]


def _cut(text: str, limit: int, target: int, count: Count) -> Iterator[tuple[str, int]]:
    """Yield halves of halves of a text with their tokens, until each is within the limit.

    A text that is surely too long is not counted, so every character is counted a few times at
    most.
    """
    if len(text) <= _SURELY_OVER * limit or len(text) == 1:
        tokens = count(text)
        if len(text) == 1 and tokens > target:
            raise InputError("chunking", f"one character has {tokens} tokens, over {target}")
        if tokens <= limit or len(text) == 1:
            yield text, tokens
            return
    middle = _good_end(text)
    for half in (text[:middle], text[middle:]):
        yield from _cut(half, limit, target, count)


def _good_end(text: str) -> int:
    """Return the best place to cut in the quarter before the middle of a text, else its middle."""
    middle = len(text) // 2
    for good in _GOOD_ENDS:
        places = [match.end() for match in good.finditer(text, middle // 2, middle)]
        if places:
            return places[-1]
    return middle
