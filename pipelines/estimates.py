"""What a stage's due weeks are likely to take: calls, tokens, money, and how that is known."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import dagster as dg
from msgspec import Struct

from assets.doings import done_in
from assets.made_from import final_rubrics
from assets.progress import PROGRESS
from debrief.errors import DebriefError
from debrief.evaluation import version_of
from debrief.evaluators import Evaluators
from debrief.lake import Lake
from debrief.models.usage import ModelUsage
from debrief.rubrics.judging import rubric_digest
from debrief.sessions.heads import SessionHead
from debrief.weekly.model import added_up
from pipelines.due import Outlook
from pipelines.progress import hushed
from pipelines.scoring_sizes import Chunks, Sizes, total
from pipelines.targets import Target, Wanted

ASKING = (
    "judge_evaluations",
    "session_scores",
    "extracted_rubrics",
    "rubrics",
    "rubric_evaluations",
    "prompt_candidates",
)
"""Stages that ask language models."""
_READING, _SCORING, _MINING = "raw_sessions", "session_scores", "extracted_rubrics"


class Estimate(Struct, frozen=True, kw_only=True):
    """What one stage is likely to take."""

    stage: str
    calls: int = 0
    """Likely; what cannot be read is asked for again, at most twice, in addition."""
    fewest: int | None = None
    """Calls, where the number of them is not certain."""
    most: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """None when a price is not known, or the calls are not."""
    basis: str = ""
    """How it was worked out."""

    def describe(self) -> str:
        """Return the estimate in a line."""
        if self.cost_usd is None and not self.calls:
            return f"{self.stage}: not known ({self.basis})"
        calls, cost = f"{self.calls:,} calls", "cost not known"
        if self.cost_usd is not None:
            cost = f"${self.cost_usd:.4f}"
        if (bounds := self._bounds()) is not None:
            fewest, most = bounds
            calls += f" ({fewest:,} to {most:,})"
            if self.cost_usd is not None:
                low, high = (self.cost_usd * number / self.calls for number in bounds)
                cost += f" (${low:.4f} to ${high:.4f})"
        tokens = f"{self.input_tokens:,} + {self.output_tokens:,} tokens"
        return f"{self.stage}: {calls}, {tokens}, {cost} ({self.basis})"

    def _bounds(self) -> tuple[int, int] | None:
        if self.fewest is None or self.most is None or self.fewest == self.most or not self.calls:
            return None
        return self.fewest, self.most


class _Asked(Struct, frozen=True, kw_only=True):
    """The columns that all tables of answers have."""

    session_id: str
    session_digest: str
    model: str
    status: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None

    @property
    def calls(self) -> int:
        """Return the calls behind the row."""
        return 1


class _Judged(_Asked, frozen=True, kw_only=True):
    judge: str
    eval_fingerprint: str
    version: str = ""


class _Chunk(Struct, frozen=True):
    """One call that was made; nothing of what it said."""


class _Scored(_Asked, frozen=True, kw_only=True):
    scoring_fingerprint: str
    chunks: tuple[_Chunk, ...] = ()

    @property
    def calls(self) -> int:
        """Return the calls behind the row."""
        return max(1, len(self.chunks))


class _Held(_Asked, frozen=True, kw_only=True):
    rubric_key: str
    rubric_digest: str


def estimates(targets: Iterable[Target], wanted: Wanted, outlook: Outlook) -> Iterator[Estimate]:
    """Yield what each stage of ``targets`` that asks is likely to take; nothing offline."""
    if outlook.evaluators.models is None:
        return
    weeks: dict[str, list[Target]] = {}
    for target in targets:
        for stage in target.assets:
            if stage in ASKING:
                weeks.setdefault(stage, []).append(target)
    calls: dict[str, int] = {}
    for stage, found in weeks.items():
        if unread := _unread(found, outlook):
            told = f"{len(unread)} weeks are" if len(unread) > 1 else "1 week is"
            basis = f"{told} new or changed: --stage {_READING}, without more, reads first"
            yield Estimate(stage=stage, cost_usd=None, basis=basis)
            continue
        if stage == _MINING and calls.get(_SCORING):
            basis = f"known once {_SCORING} is done: it is mined from the best and the worst"
            yield Estimate(stage=stage, cost_usd=None, basis=basis)
            continue
        known = _from_records(stage, found, wanted, outlook)
        estimate = known if known is not None else _rehearsed(stage, found, wanted)
        calls[stage] = estimate.calls
        yield estimate


def _unread(targets: Iterable[Target], outlook: Outlook) -> list[str]:
    """Return the weeks of which nobody can tell what they hold before they were read."""
    weeks = {week for each in targets if _READING in each.assets for week in each.why}
    due = outlook.due((_READING,), sorted(weeks), force=False).weeks
    return [week for week, why in due.items() if why != "unrecorded"]


def _from_records(
    stage: str, targets: list[Target], wanted: Wanted, outlook: Outlook
) -> Estimate | None:
    """Take the mean of what was recorded of the same model; None when nothing was."""
    counts: dict[str, tuple[Count, type[_Asked]]] = {
        "judge_evaluations": (_judgements, _Judged),
        "session_scores": (_scorings, _Scored),
        "rubric_evaluations": (_holdings, _Held),
    }
    if stage not in counts:
        return None
    count, row_type = counts[stage]
    due = count(outlook, wanted, [week for target in targets for week in target.why])
    whole: list[Estimate] = []
    for model, number in due.items():
        rows = list(_recorded(outlook.lake, stage, model, row_type))
        if number.likely and not rows:
            return None
        whole.append(_scaled(stage, model, number, rows, outlook.evaluators))
    costs = [each.cost_usd for each in whole]
    known = [cost for cost in costs if cost is not None]
    return Estimate(
        stage=stage,
        calls=sum(each.calls for each in whole),
        fewest=sum(number.fewest for number in due.values()),
        most=sum(number.most for number in due.values()),
        input_tokens=sum(each.input_tokens for each in whole),
        output_tokens=sum(each.output_tokens for each in whole),
        cost_usd=sum(known) if len(known) == len(costs) else None,
        basis="; ".join(each.basis for each in whole if each.basis) or "nothing new to ask",
    )


def _scaled(
    stage: str, model: str, due: Chunks, rows: list[_Asked], evaluators: Evaluators
) -> Estimate:
    number = due.likely
    if not number:
        return Estimate(stage=stage)
    made = sum(row.calls for row in rows)
    usage = ModelUsage(
        input_tokens=round(number * sum(row.input_tokens for row in rows) / made),
        output_tokens=round(number * sum(row.output_tokens for row in rows) / made),
    )
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    price = evaluators.models.get(model).price if evaluators.models is not None else None
    cost = price.cost(usage) if price is not None else None
    basis = f"mean of {made:,} recorded answers of {model}"
    if len(costs) == len(rows):
        cost = number * sum(costs) / made
    elif price is not None:
        basis += " at its price"
    return Estimate(
        stage=stage,
        calls=number,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=cost,
        basis=basis,
    )


def _recorded(lake: Lake, stage: str, model: str, row_type: type[_Asked]) -> Iterator[_Asked]:
    for week in lake.partitions(stage):
        for row in lake.read(stage, week, row_type, only=("model", [model])):
            if row.status == "ok" and row.input_tokens:
                yield row


def _heads(outlook: Outlook, wanted: Wanted, week: str) -> list[SessionHead]:
    ids = wanted.scope.ids(outlook.lake, week) if wanted.scope.where else None
    heads = outlook.lake.read("raw_sessions", week, SessionHead)
    return [head for head in heads if ids is None or head.id in ids]


def _surely(number: int) -> Chunks:
    return Chunks(number, number, number)


def _judgements(outlook: Outlook, wanted: Wanted, weeks: list[str]) -> dict[str, Chunks]:
    evaluators = outlook.evaluators
    mark, version = evaluators.eval_fingerprint, version_of(evaluators.change_judge)
    due: dict[str, int] = {judge.model: 0 for judge in evaluators.judges}
    for week in weeks:
        known = {
            (row.session_id, row.session_digest, row.judge)
            for row in outlook.lake.read("judge_evaluations", week, _Judged)
            if (row.status, row.eval_fingerprint, row.version) == ("ok", mark, version)
        }
        for head in _heads(outlook, wanted, week):
            for judge in evaluators.judges:
                again = wanted.scope.again or (head.id, head.digest, judge.name) not in known
                due[judge.model] += again
    return {model: _surely(number) for model, number in due.items()}


def _scorings(outlook: Outlook, wanted: Wanted, weeks: list[str]) -> dict[str, Chunks]:
    mark, due = outlook.evaluators.scoring_fingerprint, Chunks()
    sizes = Sizes(outlook.lake)
    for week in weeks:
        known = {
            (row.session_id, row.session_digest)
            for row in outlook.lake.read("session_scores", week, _Scored)
            if row.status == "ok" and row.scoring_fingerprint == mark
        }
        heads = _heads(outlook, wanted, week)
        due += total(
            sizes.of(head)
            for head in heads
            if wanted.scope.again or (head.id, head.digest) not in known
        )
    return {outlook.evaluators.chunk_scorer.model: due}


def _holdings(outlook: Outlook, wanted: Wanted, weeks: list[str]) -> dict[str, Chunks]:
    judge, due = outlook.evaluators.rubric_judge, 0
    final = [
        (rubric.key, rubric_digest(rubric, version_of(judge)))
        for rubric in final_rubrics(outlook.lake)
    ]
    for week in weeks:
        known = {
            (row.session_id, row.session_digest, row.rubric_key, row.rubric_digest)
            for row in outlook.lake.read("rubric_evaluations", week, _Held)
            if row.status != "failed" and row.model == judge.model
        }
        for head in _heads(outlook, wanted, week):
            session = head.id, head.digest
            due += sum(wanted.scope.again or (*session, *each) not in known for each in final)
    return {judge.model: _surely(due)}


Count = Callable[[Outlook, Wanted, list[str]], dict[str, Chunks]]
"""Counts, for each model, the calls that weeks are likely to take."""


def _rehearsed(stage: str, targets: list[Target], wanted: Wanted) -> Estimate:
    """Make the prompts, count their tokens and ask nothing."""
    from pipelines.definitions import defs

    if stage == "prompt_candidates":
        basis = "debrief train --dry-run tells what trials would take"
        return Estimate(stage=stage, cost_usd=None, basis=basis)
    job = defs.resolve_implicit_global_asset_job_def()
    config: dict[str, Any] = {
        "loggers": {"quiet": {}},
        "resources": {"evaluator": {"config": {"dry_run": True}}},
    }
    done = []
    logging.getLogger(PROGRESS).info("working out what %s would take", stage)
    with hushed(), dg.DagsterInstance.ephemeral() as instance:
        for target in targets:
            result = job.execute_in_process(
                instance=instance,
                asset_selection=[dg.AssetKey(stage)],
                tags={**target.tags, **wanted.scope.tags},
                run_config=config,
                raise_on_error=False,
            )
            if not result.success:
                raise DebriefError(stage, "what it would take could not be worked out")
            done += list(done_in(result.all_events))
    whole = added_up(stage, done)
    return Estimate(
        stage=stage,
        calls=whole.calls,
        input_tokens=whole.input_tokens,
        output_tokens=whole.output_tokens,
        cost_usd=whole.cost_usd,
        basis="its prompts made and their tokens counted, times the price",
    )
