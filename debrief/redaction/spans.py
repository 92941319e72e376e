"""Stretches of a text that hold a secret."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class SecretSpan(Struct, frozen=True, order=True, gc=False):
    """A stretch of a text, in characters, that holds one secret or a line of one."""

    start: int
    end: int
    kind: str
    sure: bool = True
    """False: it may be harmless; a person should look before the text trains a model."""
    value: str = ""
    """The secret with its encoding taken off, where the text spells it in another way."""


def union(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Merge spans that overlap, in order of position.

    Picking one of two would leave half a password. The merged span has the kind of a sure one
    that starts first, and is sure when any part of it is.
    """
    merged: list[SecretSpan] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end, not s.sure)):
        last = merged[-1] if merged else None
        if last is None or span.start >= last.end:
            if span.end > span.start:
                merged.append(span)
        elif span.end > last.end or (span.sure and not last.sure):
            merged[-1] = SecretSpan(
                last.start,
                max(last.end, span.end),
                last.kind if last.sure or not span.sure else span.kind,
                last.sure or span.sure,
                last.value if last.end >= span.end else "",
            )
    return merged


def without(spans: Iterable[SecretSpan], holes: list[tuple[int, int]]) -> list[SecretSpan]:
    """Cut the ``holes`` (in order, not overlapping) out of the spans."""
    kept: list[SecretSpan] = []
    for span in spans:
        inside = [hole for hole in holes if hole[0] < span.end and hole[1] > span.start]
        if not inside:
            kept.append(span)
            continue
        starts = [span.start, *(end for _, end in inside)]
        ends = [*(start for start, _ in inside), span.end]
        kept += (
            SecretSpan(start, end, span.kind, span.sure)
            for start, end in zip(starts, ends, strict=True)
            if start < end
        )
    return kept
