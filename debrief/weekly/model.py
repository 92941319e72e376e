"""What a page about a week is made from."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

STAGES = (
    "raw_sessions",
    "prompt_snapshots",
    "session_metadata",
    "judge_evaluations",
    "session_scores",
    "langfuse_scores",
    "extracted_rubrics",
    "rubrics",
    "rubric_evaluations",
    "judge_agreement",
    "training_sets",
    "fingerprint_leaderboard",
)
"""In the order in which one follows from another, whichever a run came to first."""


class Done(Struct, frozen=True, kw_only=True):
    """What a stage did for one of its partitions."""

    stage: str
    partition: str = ""
    """Empty for a stage without partitions."""
    rows: int = 0
    """All that the partition has now."""
    fresh: int = 0
    """Rows that were not there before, or not so."""
    failed: int = 0
    calls: int = 0
    """Of a language model."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """None when a price is not known."""


def added_up(stage: str, parts: Iterable[Done]) -> Done:
    """Add up what a stage did; the cost is None as soon as one of them is not known."""
    found = list(parts)
    costs = [part.cost_usd for part in found]
    known = [cost for cost in costs if cost is not None]
    return Done(
        stage=stage,
        rows=sum(part.rows for part in found),
        fresh=sum(part.fresh for part in found),
        failed=sum(part.failed for part in found),
        calls=sum(part.calls for part in found),
        input_tokens=sum(part.input_tokens for part in found),
        output_tokens=sum(part.output_tokens for part in found),
        cost_usd=sum(known) if len(known) == len(costs) else None,
    )


def by_stage(parts: Iterable[Done]) -> list[Done]:
    """Return one sum a stage, in the order of ``STAGES``; others follow as they come."""
    stages: dict[str, list[Done]] = {}
    for part in parts:
        stages.setdefault(part.stage, []).append(part)
    place = {stage: number for number, stage in enumerate(STAGES)}
    names = sorted(stages, key=lambda stage: place.get(stage, len(place)))
    return [added_up(stage, stages[stage]) for stage in names]
