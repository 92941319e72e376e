"""Small drawings in SVG: where points and bars are. Their colours are the style sheet's."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class DrawnLine(Struct, frozen=True, kw_only=True):
    """A line through some values, in a box of given size."""

    width: float
    height: float
    points: str
    """As a polyline takes them; values that are missing are passed over."""
    places: list[tuple[float, float, float]]
    """Each value that is there: left, top, and the value."""


def line_of(
    values: Sequence[float | None],
    width: float,
    height: float,
    bounds: tuple[float, float] = (0.0, 1.0),
    margin: float = 5.0,
) -> DrawnLine:
    """Return where a line of values is drawn, from left to right at equal distances.

    Args:
        values: None where there is none.
        width: of the box, in pixels.
        height: of the box.
        bounds: the values at its lower and upper edge.
        margin: pixels that stay free at each side.
    """
    low, high = bounds
    step = (width - 2 * margin) / max(1, len(values) - 1)
    places = [
        (
            round(margin + step * number, 1),
            round(height - margin - (height - 2 * margin) * (value - low) / (high - low), 1),
            value,
        )
        for number, value in enumerate(values)
        if value is not None
    ]
    points = " ".join(f"{left},{top}" for left, top, _ in places)
    return DrawnLine(width=width, height=height, points=points, places=places)
