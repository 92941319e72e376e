"""The card beside a published set: that of the stored set, with what is here and how to load it."""

from __future__ import annotations

from collections.abc import Mapping

from debrief.training.cards import HOW_TO_LOAD
from debrief.training.model import Split, Status


def published_card(
    card: str,
    *,
    name: str,
    form: str,
    lines: Mapping[Split, int],
    min_overall_quality: float = 0.0,
    status: Status | None = None,
) -> str:
    """Return a stored set's card as it stands beside the published set.

    Args:
        card: of the stored set.
        name: of the set, as loaders know it.
        form: what the lines are here.
        lines: how many there are of each side.
        min_overall_quality: of the lines that were taken.
        status: of the lines that were taken; None for any.
    """
    said, _, _ = card.partition(HOW_TO_LOAD)
    sides = " and ".join(f"{count} {side}" for side, count in lines.items())
    chosen = [f"of at least {min_overall_quality:g} overall quality"] if min_overall_quality else []
    chosen += [f"that are `{status}`"] if status else []
    only = f", those {' and '.join(chosen)} alone" if chosen else ""
    told = f"As `{form}`: {sides} lines{only}. What is said above is of the whole set, as stored."
    return f"{said}## What is here\n\n{told}\n\n{HOW_TO_LOAD}{_loading(name, lines)}"


def _loading(name: str, lines: Mapping[Split, int]) -> str:
    if not any(lines.values()):
        return "There is no line to load.\n"
    return (
        "From this folder; `../..` is the one with the README that tells loaders the types.\n\n"
        "```python\n"
        "from datasets import load_dataset\n\n"
        f'samples = load_dataset("../..", "{name}")\n'
        "```\n"
    )
