"""Stretches of a text that hold a secret."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Span(Struct, frozen=True, order=True, gc=False):
    """A stretch of a text, in characters, that holds one secret or a line of one."""

    start: int
    end: int
    kind: str
    sure: bool = True
    """False: it may be harmless; a person should look before the text trains a model."""
    value: str = ""
    """The secret with its encoding taken off, where the text spells it in another way."""


def union(spans: Iterable[Span]) -> list[Span]:
    """Merge spans that overlap or touch, in order of position.

    Picking one of two would leave half a password. The merged span has the kind of a sure one
    that starts first, and is sure when any part of it is.
    """
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end, not s.sure)):
        if not merged or span.start >= merged[-1].end:
            if span.end > span.start:
                merged.append(span)
            continue
        last = merged[-1]
        if span.end <= last.end and (last.sure or not span.sure):
            continue
        whole = last if last.end >= span.end else None
        merged[-1] = Span(
            last.start,
            max(last.end, span.end),
            last.kind if last.sure or not span.sure else span.kind,
            last.sure or span.sure,
            whole.value if whole else "",
        )
    return merged


def without(spans: Iterable[Span], holes: list[tuple[int, int]]) -> list[Span]:
    """Cut the ``holes`` (in order, not overlapping) out of the spans."""
    if not holes:
        return list(spans)
    kept: list[Span] = []
    for span in spans:
        start = span.start
        cut = False
        for hole_start, hole_end in holes:
            if hole_end <= start:
                continue
            if hole_start >= span.end:
                break
            cut = True
            if hole_start > start:
                kept.append(Span(start, hole_start, span.kind, span.sure))
            start = hole_end
        if not cut:
            kept.append(span)
        elif start < span.end:
            kept.append(Span(start, span.end, span.kind, span.sure))
    return kept
