"""Pairs of a better and a worse session of the same task, with the margin and its reasons.

Each session is in at most one pair: the best with the worst, the second best with the second
worst, as long as they are far enough apart. Sessions that began with the same prompt are paired
among themselves first, as only such pairs answer one question in two ways. Both of a pair are on
the same side of the split. Of a session in windows the first stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from debrief.training.model import ScoreEntry, ToolSchema
from debrief.training.publishing.form import (
    Form,
    Rating,
    StoredLine,
    template_messages,
    trained_messages,
)
from debrief.training.store import LineRow

MIN_MARGIN = 0.1
"""Of overall quality, 0 to 1: less is within what one scorer varies by."""
_MAX_REASONS = 3
_TOOLS = msgspec.json.Decoder(list[ToolSchema])


Pair: TypeAlias = tuple[LineRow, LineRow, bool]
"""The better line, the worse one, and whether they began with the same prompt."""


def pairs_of(lines: Iterable[LineRow]) -> list[Pair]:
    """Return the pairs among lines of one side, in the order of the better one's line."""
    groups: dict[str, list[LineRow]] = {}
    for line in lines:
        groups.setdefault(line.opening, []).append(line)
    pairs: list[Pair] = []
    left: list[LineRow] = []
    for group in groups.values():
        paired, rest = _paired(group, same_prompt=True)
        pairs += paired
        left += rest
    pairs += _paired(left, same_prompt=False)[0]
    return sorted(pairs, key=lambda pair: pair[0].offset)


def _paired(lines: Iterable[LineRow], *, same_prompt: bool) -> tuple[list[Pair], list[LineRow]]:
    ranked = sorted(lines, key=lambda line: (-line.quality, line.offset))
    pairs: list[Pair] = []
    best, worst = 0, len(ranked) - 1
    while best < worst and ranked[best].quality - ranked[worst].quality >= MIN_MARGIN:
        pairs.append((ranked[best], ranked[worst], same_prompt))
        best, worst = best + 1, worst - 1
    return pairs, ranked[best : worst + 1]


def pair_line(better: StoredLine, worse: StoredLine, same_prompt: bool) -> dict[str, Any] | None:
    """Return two stored lines as one; None when both hold the same conversation."""
    chosen, rejected = (template_messages(trained_messages(x.messages)) for x in (better, worse))
    if chosen == rejected:
        return None
    winner, loser = better.rating, worse.rating
    tools = {
        tool.function.name: tool for line in (worse, better) for tool in _TOOLS.decode(line.tools)
    }
    return {
        "chosen": chosen,
        "rejected": rejected,
        "tools": msgspec.json.encode([tools[name] for name in sorted(tools)]).decode(),
        "margin": round(winner.overall_quality - loser.overall_quality, 6),
        "reasons": list(_reasons(winner, loser)),
        "same_prompt": same_prompt,
        "chosen_session": winner.session_id,
        "rejected_session": loser.session_id,
    }


def _reasons(better: Rating, worse: Rating) -> Iterator[str]:
    yield (
        f"overall quality {better.overall_quality:.2f} against {worse.overall_quality:.2f}, "
        f"scored by {better.scoring_model}"
    )
    others = {(entry.kind, entry.name): entry for entry in worse.scores}
    differing = [
        (entry, other)
        for entry in better.scores
        if entry.kind in ("dimension", "judge")
        and (other := others.get((entry.kind, entry.name))) is not None
        and entry.value > other.value
    ]
    differing.sort(key=lambda pair: (-_gap(*pair), pair[0].kind, pair[0].name))
    for entry, other in differing[:_MAX_REASONS]:
        comments = "; ".join(
            f"{word}: {' '.join(one.comment.split())}"
            for word, one in (("better", entry), ("worse", other))
            if one.comment.strip()
        )
        reason = f"{entry.kind} {entry.name} {entry.value:.2f} against {other.value:.2f}"
        yield f"{reason} ({comments})" if comments else reason


def _gap(entry: ScoreEntry, other: ScoreEntry) -> float:
    return (entry.weight or 1.0) * (entry.value - other.value)


FORM = Form(
    name="preference",
    reader="TRL's `RewardTrainer`, and `DPOTrainer` where `same_prompt` is true",
    columns={
        "chosen": ["json"],
        "rejected": ["json"],
        "tools": "string",
        "margin": "float64",
        "reasons": ["string"],
        "same_prompt": "bool",
        "chosen_session": "string",
        "rejected_session": "string",
    },
    note=(
        "`chosen` and `rejected` are conversations, as in `trl`, `margin` the difference of their "
        f"overall qualities (at least {MIN_MARGIN:g}), `reasons` what the scores say of it. Only "
        "where `same_prompt` is true do both answer the same prompt, as DPO needs it: filter for "
        "it. Both of a pair are on the same side of the split."
    ),
    pair=pair_line,
)
