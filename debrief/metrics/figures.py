"""A figure with its labels, apart from how any monitoring system wants it written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Kind = Literal["gauge", "counter"]


class Family(Struct, frozen=True, kw_only=True):
    """Figures of one name: the same unit, the same labels, other values."""

    name: str
    """In Prometheus' form; a counter's without ``_total``."""
    help: str
    labels: tuple[str, ...] = ()
    kind: Kind = "gauge"
    samples: tuple[tuple[tuple[str, ...], float], ...] = ()
    """Values of the labels, and the figure."""


def family(
    name: str,
    help: str,
    labels: tuple[str, ...],
    samples: Iterable[tuple[tuple[str, ...], float]],
    kind: Kind = "gauge",
) -> Family:
    """Return a family, its samples in the order of their labels."""
    return Family(name=name, help=help, labels=labels, kind=kind, samples=tuple(sorted(samples)))
