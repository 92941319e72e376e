"""Improve prompts with GEPA on training samples, and measure the result on held-out ones.

GEPA (reflective prompt evolution) tries the prompts on training samples, lets a model read what
the trials came to, and rewrites one prompt after the other; what does better on the training
side survives. The held-out side is looked at twice only: under the prompts as they were, and
under the best that was found.

What that would cost is counted from the texts that go into each question and from the lengths that
answers are asked for: an estimate, as the model decides how long prompts become.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from debrief.errors import InputError
from debrief.markdown import front_matter
from debrief.models.language_model import failures_named
from debrief.models.templates import load_template
from debrief.models.usage import ModelUsage, Price, total
from debrief.snapshots.fingerprint import FINGERPRINT_LENGTH, prompt_digest
from debrief.snapshots.model import PromptSnapshot
from debrief.stats import NO_ESTIMATE, MeanEstimate, mean_of
from debrief.training.lessons import findings_of
from debrief.training.model import TrainingSample
from debrief.training.trials import (
    PromptTrials,
    adapter,
    course_text,
    program_of,
    prompts_in,
    request_of,
)

PROPOSER = "candidate_proposer"

LEAST_HELD_OUT = 6
"""With fewer held-out samples not even an improvement on every one is more than chance: of five it
comes about by chance in 1 of 16 cases, of six in 1 of 32 (a sign test at 95 %)."""
_SEED = 0
_COURSE, _REMARKS, _JUDGEMENT = 400, 200, 150
"""Tokens of answers, as they are asked for in words."""
_FORM, _QUESTION = 180, 420
"""Tokens of a question beside its data: to an agent or subagent, and to the judge."""
_REWRITINGS = 6
"""Trials to a rewriting: three before it and three after."""
_SHOWN = 3
"""Trials that a rewriting is shown."""


class OptimiserOptions(BaseModel):
    """What is chosen at launch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trials: int = Field(default=60, ge=4)
    """Trials that GEPA may make, at most by one round over; each is a call for every prompt and
    one of the judge."""
    most_samples: int = Field(default=24, ge=1)
    """Of each side of the split: the first ones, by order of their lines."""


class TrialFigures(Struct, frozen=True, kw_only=True):
    """What trials of proposed prompts came to, and what they took."""

    model: str = ""
    """Who played the agent, judged it, and rewrote the prompts, in words."""
    trained_on: int = 0
    held_out: int = 0
    trials: int = 0
    before: MeanEstimate = NO_ESTIMATE
    """Held-out trials under the prompts as they were, from 0 to 1."""
    after: MeanEstimate = NO_ESTIMATE
    """The same trials under the proposed ones."""
    difference: MeanEstimate = NO_ESTIMATE
    """After less before, sample by sample, from -1 to 1."""
    calls: int = 0
    """Of the model, those answered from the cache apart."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """None when the model's price is not known."""


class Proposal(TrialFigures, frozen=True, kw_only=True):
    """Prompts that were proposed, and what speaks for them."""

    parent_fingerprint: str
    fingerprint: str
    """Of the proposed prompts; that of the parent when nothing better was found."""
    digest: str
    main: str
    subagents: dict[str, str]
    recalled: int

    @property
    def changed(self) -> bool:
        """Whether anything was proposed."""
        return self.fingerprint != self.parent_fingerprint


def propose(
    samples: Sequence[TrainingSample],
    trials: PromptTrials,
    options: OptimiserOptions,
    progress: Callable[[str], None] = lambda text: None,
) -> Proposal:
    """Propose better prompts than those that the samples ran with.

    Args:
        samples: of one prompt fingerprint, on both sides of the split.
        trials: the way to try prompts out.
        options: how much may be tried.
        progress: called with what is going on.

    Raises:
        InputError: the samples are of several prompts or of none that is known, there is none to
            train on, or too few are held out.
        ModelError: a question could not be answered, or the run may spend no more; what was
            answered is kept, and the next run goes on from there.
    """
    snapshot = _prompts(samples)
    missing = shortfall(samples, options)
    if missing:
        raise InputError("the samples", missing, MORE_SAMPLES)
    train, held_out = (side[: options.most_samples] for side in sides_of(samples))
    trials.sessions = tuple(sample.plan_id for sample in (*train, *held_out))
    texts = {"main": snapshot.main, **snapshot.subagents}
    bodies = {name: front_matter(text)[1] for name, text in texts.items()}
    spent = trials.spent
    progress(f"{len(held_out)} held-out samples under the prompts as they are")
    student = program_of(bodies)
    before = trials.run(student, held_out)
    progress(f"{len(train)} training samples, {options.trials} trials")
    best = _evolved(student, train, trials, options)
    # Front matter is for tools, and nobody rewrites it.
    made = {
        name: texts[name].removesuffix(bodies[name]) + text
        for name, text in prompts_in(best).items()
    }
    proposed = PromptSnapshot(main=made.pop("main"), subagents=made)
    parent, digest = prompt_digest(snapshot), prompt_digest(proposed)
    parent_fingerprint = samples[0].prompt_fingerprint or parent[:FINGERPRINT_LENGTH]
    after = before
    if digest != parent:
        progress(f"{len(held_out)} held-out samples under the proposed prompts")
        after = trials.run(best, held_out)
    used = trials.spent - spent
    return Proposal(
        parent_fingerprint=parent_fingerprint,
        fingerprint=digest[:FINGERPRINT_LENGTH] if digest != parent else parent_fingerprint,
        digest=digest,
        main=proposed.main,
        subagents=dict(proposed.subagents),
        model=trials.names,
        trained_on=len(train),
        held_out=len(held_out),
        trials=trials.count,
        before=mean_of(before, 1.0),
        after=mean_of(after, 1.0),
        difference=mean_of(
            [late - early for early, late in zip(before, after, strict=True)], 1.0, -1.0
        ),
        calls=used.calls,
        recalled=used.recalled,
        **used.usage.columns(),
    )


MORE_SAMPLES = (
    "debrief eval files a sample for each plan, debrief run makes them of sessions. How many of "
    "them are held out: DEBRIEF_TRAINING_EVAL_SHARE, usually one in five."
)


def shortfall(samples: Sequence[TrainingSample], options: OptimiserOptions) -> str:
    """Return what samples lack to propose prompts from and to tell better ones; empty for nothing.

    Args:
        samples: of one prompt fingerprint.
        options: how many of them may be taken.
    """
    sides = [side[: options.most_samples] for side in sides_of(samples)]
    needed = (("to train on", 1), ("held out", LEAST_HELD_OUT))
    pairs = [(what, least, len(side)) for (what, least), side in zip(needed, sides, strict=True)]
    short = [f"{least - there} more {what}" for what, least, there in pairs if there < least]
    if not short:
        return ""
    there = " and ".join(f"{count} {what}" for what, _, count in pairs)
    limit = f" (at most {options.most_samples} of each are taken)"
    taken = limit * (options.most_samples < LEAST_HELD_OUT)
    return f"too few: {there}{taken}; needed: {' and '.join(short)}"


def sides_of(
    samples: Sequence[TrainingSample],
) -> tuple[list[TrainingSample], list[TrainingSample]]:
    """Return the samples to train on and the held-out ones, each session once.

    Samples of several training sets, or of a set and of exported plans, may be of one session or
    of one request: what is held out anywhere is trained on nowhere.
    """
    held_out = {sample.plan_id: sample for sample in reversed(samples) if sample.split == "eval"}
    requests = {_request_key(sample) for sample in held_out.values()} - {""}
    train = {
        sample.plan_id: sample
        for sample in reversed(samples)
        if sample.plan_id not in held_out and _request_key(sample) not in requests
    }
    return list(train.values())[::-1], list(held_out.values())[::-1]


def _request_key(sample: TrainingSample) -> str:
    return " ".join(request_of(sample).split())


def _evolved(
    student: Any, train: Sequence[TrainingSample], trials: PromptTrials, options: OptimiserOptions
) -> Any:
    import dspy
    from dspy.teleprompt.gepa import InstructionProposer

    by_session = {sample.plan_id: sample for sample in train}
    examples = [
        dspy.Example(session_id=sample.plan_id, request=request_of(sample)).with_inputs("request")
        for sample in train
    ]

    def metric(gold: Any, made: Any, *_: object) -> Any:
        score, feedback = trials.judge(by_session[gold.session_id], course_text(made))
        return dspy.Prediction(score=score, feedback=feedback)

    lm = trials.acting()
    _silence_bars()
    proposer = InstructionProposer(
        additional_instructions=load_template(PROPOSER),
        # A proposal without its heading would take the model's chat along into the prompt.
        adapter=dspy.ChatAdapter(use_json_adapter_fallback=False),
    )
    optimiser = dspy.GEPA(
        metric=metric,
        instruction_proposer=proposer,
        max_metric_calls=options.trials,
        reflection_lm=trials.rewriting(),
        num_threads=trials.concurrency,
        use_merge=False,
        seed=_SEED,
        gepa_kwargs={"stop_callbacks": [lambda state: trials.failure is not None]},
    )
    with (
        failures_named(trials.actor.name),
        dspy.context(lm=lm, adapter=adapter(), disable_history=True),
    ):
        best = optimiser.compile(student, trainset=examples, valset=examples)
    if trials.failure is not None:
        raise trials.failure
    best.names = student.names
    return best


def _silence_bars() -> None:
    """Leave GEPA's and DSPy's own bars and news out: who launched it has one over the whole run."""
    bars: Any = import_module("tqdm")

    class Silent(bars.tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "disable": True})

    engine: Any = import_module("gepa.core.engine")
    parallel: Any = import_module("dspy.utils.parallelizer")
    engine.tqdm, parallel.tqdm = Silent, SimpleNamespace(tqdm=Silent)
    logging.getLogger("dspy").setLevel(logging.WARNING)


def _prompts(samples: Sequence[TrainingSample]) -> PromptSnapshot:
    known = {sample.prompt_fingerprint: sample.used_prompts for sample in samples}
    if len(known) != 1:
        reason = f"ran with {len(known)} sets of prompts"
        raise InputError("the samples", reason, "Name one with --fingerprint.")
    (snapshot,) = known.values()
    if snapshot is None or not snapshot.main.strip():
        reason = "do not tell what prompts they ran with"
        raise InputError("the samples", reason, "Capture them: debrief hooks.")
    return snapshot


Prices: TypeAlias = tuple[Price | None, Price | None, Price | None]


class CostEstimate(Struct, frozen=True, kw_only=True):
    """What proposing prompts would take at most, about."""

    trained_on: int
    held_out: int
    trials: int
    calls: int
    usage: ModelUsage
    """Without what an earlier run left in the cache."""


def estimate_cost(
    samples: Sequence[TrainingSample],
    options: OptimiserOptions,
    count: Callable[[str], int],
    prices: Prices = (None, None, None),
) -> CostEstimate:
    """Return what proposing prompts from samples would take.

    Args:
        samples: of one prompt fingerprint.
        options: how much may be tried.
        count: counts the tokens of a text.
        prices: of who plays the agent, judges it, and rewrites; None where it is not known.
    """
    train, held_out = (side[: options.most_samples] for side in sides_of(samples))
    snapshot = samples[0].used_prompts
    prompts = [count(snapshot.main), *map(count, snapshot.subagents.values())] if snapshot else [0]
    tried = train + held_out
    request = _mean(count(request_of(sample)) for sample in tried)
    findings = _mean(count(findings_of(sample)) for sample in tried)
    course = _COURSE + _REMARKS * (len(prompts) - 1)
    longest = max(prompts)
    seen = _SHOWN * (request + course + _JUDGEMENT)
    trials = options.trials + len(train) + 2 * len(held_out)
    rewritings = -(-options.trials // _REWRITINGS)
    actor, judge, rewriter = prices
    asked = [
        (actor, prompts[0] + request + _FORM, _COURSE, trials),
        *((actor, prompt + request + _COURSE + _FORM, _REMARKS, trials) for prompt in prompts[1:]),
        (judge, request + findings + course + _QUESTION, _JUDGEMENT, trials),
        (rewriter, longest + seen + _QUESTION, max(270, longest), rewritings),
    ]
    usages: list[ModelUsage] = []
    for price, question, answer, times in asked:
        model_usage = ModelUsage(input_tokens=question, output_tokens=answer)
        usages += [
            replace(model_usage, cost_usd=price.cost(model_usage) if price else None)
        ] * times
    return CostEstimate(
        trained_on=len(train),
        held_out=len(held_out),
        trials=trials,
        calls=sum(times for *_, times in asked),
        usage=total(usages),
    )


def _mean(values: Iterable[int]) -> int:
    found = list(values)
    return sum(found) // max(1, len(found))
