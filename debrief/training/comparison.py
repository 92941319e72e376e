"""Answer which of two sides completes more of the reviewed sessions, or what is missing to tell.

Like is compared with like: sessions on one task that several tried, else in one repository. Each
side needs five reviewed sessions there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from debrief.markdown import counted
from debrief.stats import difference_of_shares, sessions_needed, stratified_difference

FEWEST = 5
"""Reviewed sessions that each side needs."""
_MOST_NEEDED = 1_000
"""More sessions than that are no help to name."""


class ComparedSession(Struct, frozen=True, kw_only=True):
    """What a session is compared by."""

    prompt_fingerprint: str
    tool: str
    model: str
    """Its family."""
    place: str
    """The task that several sessions tried, else the repository; empty where neither is known."""
    is_complete: bool | None
    """By its verdict; None where nobody gave one, or it is undetermined."""
    cost_usd: float | None
    """None where a price is not known."""
    minutes: float | None
    """From its beginning to its end; None without signals."""


Sides = Mapping[str, Sequence[ComparedSession]]
"""Sessions by the name of their side."""


def answers(sides: Sides) -> Iterator[str]:
    """Yield an answer for the side with most reviewed sessions against each that it can be compared
    with; a sentence about what is missing where there is none."""
    reviewed = {
        name: [one for one in own if one.is_complete is not None and one.place]
        for name, own in sides.items()
    }
    names = sorted(sides, key=lambda name: (-len(reviewed[name]), -len(sides[name]), name))
    if not any(reviewed.values()):
        yield "Cannot be told: no session is reviewed."
    elif len(names) < 2:
        yield f"Nothing to compare: all sessions are of {names[0]}."
    else:
        first, *others = names
        pairs = [(other, _shared(reviewed[first], reviewed[other])) for other in others]
        comparable = [(other, alike) for other, alike in pairs if _fewest(alike) >= FEWEST]
        yield from (_difference(first, other, alike) for other, alike in comparable)
        if not comparable:
            yield min(
                (_missing(first, other, reviewed[first], reviewed[other]) for other in others),
                key=lambda missing: missing[0],
            )[1]


_Alike = list[tuple[str, bool, bool]]
"""Of each session: its place, whether it is complete, and whether it is of the second side."""


def _shared(ours: Sequence[ComparedSession], theirs: Sequence[ComparedSession]) -> _Alike:
    """Return the sessions in places where both sides have some."""
    places = {one.place for one in ours} & {one.place for one in theirs}
    return [
        (one.place, bool(one.is_complete), is_second)
        for is_second, own in ((False, ours), (True, theirs))
        for one in own
        if one.place in places
    ]


def _fewest(alike: _Alike) -> int:
    second = sum(is_second for *_, is_second in alike)
    return min(second, len(alike) - second)


def _difference(first: str, second: str, alike: _Alike) -> str:
    complete = Counter((side, is_complete) for _, is_complete, side in alike)
    counts = [
        (complete[side, True], complete[side, True] + complete[side, False])
        for side in (False, True)
    ]
    named = dict(zip((first, second), counts, strict=True))
    value, low, high = _interval(alike, counts)
    if low > 0 or high < 0:
        better, worse = (second, first) if value > 0 else (first, second)
        return (
            f"{_shown(better)} completes more of your reviewed sessions than {worse}: "
            f"{_of(named[better])} against {_of(named[worse])} on the same work."
        )
    said = (
        f"{_shown(first)} and {second} cannot be told apart: {_of(named[first])} against "
        f"{_of(named[second])} reviewed sessions on the same work are complete"
    )
    more = sessions_needed(abs(value), 0.05) - len(alike) if abs(value) > 0.01 else _MOST_NEEDED
    if 0 < more < _MOST_NEEDED:
        said += f"; about {counted(more, 'more reviewed session')} would do, were it to go on so"
    return f"{said}."


def _interval(alike: _Alike, counts: Sequence[tuple[int, int]]) -> tuple[float, float, float]:
    """Return by how much the second side is ahead, with its 95 % interval."""
    places, values, groups = zip(*alike, strict=True)
    if len(set(places)) == 1:
        plain = difference_of_shares(counts[1], counts[0])
        return plain.value, plain.low, plain.high
    found = stratified_difference(values, groups, places)
    # What a regression leaves of equal shares is no difference, in either direction.
    value, low, high = (round(end or 0.0, 6) for end in (found.value, found.low, found.high))
    return value, low, high


def _missing(
    first: str,
    second: str,
    ours: Sequence[ComparedSession],
    theirs: Sequence[ComparedSession],
) -> tuple[int, str]:
    """Return how many reviewed sessions at least are missing to compare two sides, and which."""
    places = [Counter(one.place for one in own) for own in (ours, theirs)]
    both = places[0].keys() & places[1].keys()

    def lacks(place: str) -> list[int]:
        taken = both | {place}
        has = [sum(own[each] for each in taken) for own in places]
        return [max(FEWEST - n, 0 if own[place] else 1) for n, own in zip(has, places, strict=True)]

    place = min(
        sorted(places[0].keys() | places[1].keys()), key=lambda place: (sum(lacks(place)), place)
    )
    lacking = {name: n for name, n in zip((first, second), lacks(place), strict=True) if n}
    total = sum(lacking.values())
    many = counted(total, "more reviewed session")
    if len(lacking) == 1:
        many += f" of {next(iter(lacking))}"
    else:
        many += f" ({' and '.join(f'{count} of {name}' for name, count in lacking.items())})"
    return total, f"{_shown(first)} against {second} cannot be told: {many} in {place} would do."


def _of(counts: tuple[int, int]) -> str:
    return f"{counts[0]} of {counts[1]}"


def _shown(name: str) -> str:
    """Return a side's name to begin a sentence with; what is no plain word stays as it is."""
    return name.capitalize() if name.isalpha() and len(name) > 3 else name
