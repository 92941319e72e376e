"""``debrief train``: better prompts from training samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from debrief.cli.shared import (
    DryRun,
    LakeUrl,
    MaxCost,
    Repo,
    Yes,
    checked_limit,
    console,
    cost_text,
    existing_lake,
    warn,
)
from debrief.errors import ConfigurationError, InputError

if TYPE_CHECKING:
    from debrief.training.model import TrainingSample
    from debrief.training.optimisation import CostEstimate, OptimiserOptions


def train(
    task: Annotated[str, typer.Option(help="Only samples of this task.")] = "",
    tool: Annotated[str, typer.Option(help="Only samples of this tool.")] = "",
    model: Annotated[str, typer.Option(help="Only sessions that this model answered.")] = "",
    fingerprint: Annotated[
        str, typer.Option(help="Only this prompt fingerprint, or pair with an eval fingerprint.")
    ] = "",
    ask: Annotated[
        str, typer.Option(help="The language model that does it; DEBRIEF_MODEL if none.")
    ] = "",
    actor: Annotated[
        str, typer.Option(help="Another model that plays the agent; that of --ask then judges.")
    ] = "",
    rewriter: Annotated[str, typer.Option(help="Another model that rewrites the prompts.")] = "",
    trials: Annotated[int, typer.Option(min=4, help="How often prompts may be tried.")] = 60,
    samples: Annotated[
        int, typer.Option(min=1, help="Most samples of each side of the split.")
    ] = 24,
    yes: Yes = False,
    dry_run: DryRun = False,
    max_cost: MaxCost = None,
    lake: LakeUrl = "",
    repo: Repo = Path(),
) -> None:
    """Propose better prompts from training samples, and show before and after on held-out ones.

    Samples are those of the lake's training sets and of **.debrief/training_data/** (what
    `debrief eval` filed and `debrief migrate` brought) that ran with one known set of prompts; a
    folder there that cannot be used is named with the reason. GEPA
    rewrites the main prompt and the subagents'; what it proposes is written to
    **.debrief/prompts/candidates/TOOL/FINGERPRINT/**, beside the active prompts and never over
    them. What was answered once is not asked again.
    """
    from debrief.cli.asking import AskingEstimate, agree, print_notes
    from debrief.conversion import open_lake
    from debrief.judging.model import litellm_name
    from debrief.models.choosing import Models
    from debrief.redaction.redactor import key_of
    from debrief.settings import load_settings
    from debrief.snapshots.capture import HOME
    from debrief.snapshots.plans import repository_of
    from debrief.tokens import count_tokens
    from debrief.training.candidates import report_of, write_candidate
    from debrief.training.lessons import LessonFilter, lessons_of, plan_lessons
    from debrief.training.optimisation import OptimiserOptions, estimate_cost, propose
    from debrief.training.options import options_chosen
    from debrief.training.training_data_exporter import TRAINING_DATA
    from debrief.training.trials import NEEDS_A_MODEL, PromptTrials

    settings = load_settings()
    if settings.no_model and not ask:
        raise ConfigurationError("debrief train", NEEDS_A_MODEL, "Name one with --ask.")
    home = repository_of(repo).root / HOME
    only = LessonFilter(task=task, tool=tool, model=model, fingerprint=fingerprint)
    options = OptimiserOptions(trials=trials, most_samples=samples)
    judge = litellm_name(ask or settings.model)
    names = [litellm_name(each) or judge for each in (actor, ask or settings.model, rewriter)]
    share = options_chosen(settings, {}).eval_share
    plans = plan_lessons(home / TRAINING_DATA, only, share)
    found = [*lessons_of(open_lake(existing_lake(lake) or settings.lake), only), *plans.samples]
    for problem in plans.unusable:
        warn(f"{problem.path} cannot be trained on: {problem.reason}.")
    missing = [] if judge or dry_run else [f"{NEEDS_A_MODEL}: name one with --ask"]
    fitting = _of_one_prompt_set(found, options, missing)
    given = settings.with_given(max_cost_usd=checked_limit(max_cost))
    models = Models(given, dry_run=dry_run)
    acts, judges, rewrites = (models.get(name).price if name else None for name in names)
    estimate = estimate_cost(fitting, options, count_tokens, (acts, judges, rewrites))
    if dry_run:
        _print_estimate(fitting, estimate, names)
        return
    usage = estimate.usage
    asked = AskingEstimate(
        model=judge,
        calls=estimate.calls,
        tokens=usage.input_tokens + usage.output_tokens,
        cost_usd=usage.cost_usd,
        sessions=len(fitting),
    )
    print_notes(models)
    models = Models(agree(asked, given, yes=yes))
    screen = console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task("trials", total=estimate.trials)
        acting, judging, rewriting = map(models.get, names)
        runner = PromptTrials(
            judging,
            secret=key_of(settings),
            concurrency=models.concurrency,
            actor=acting,
            rewriter=rewriting,
            on_trial=lambda count: progress.update(bar, completed=count),
        )
        proposal = propose(fitting, runner, options, screen.print)
    out = console()
    out.print(report_of(proposal))
    if proposal.changed:
        folder, new = write_candidate(proposal, home, fitting[0].tool)
        note = "" if new else " (there already)"
        out.print(f"Written to {folder}{note}; the prompts in force are as they were.")


def _of_one_prompt_set(
    samples: Sequence[TrainingSample], options: OptimiserOptions, missing: list[str]
) -> list[TrainingSample]:
    """Return the samples of the one set of prompts that they ran with.

    Args:
        samples: all that were chosen.
        options: how many of them may be taken.
        missing: what a run lacks beside samples, in words.

    Raises:
        InputError: something is missing or has to be chosen; it says all of it at once.
    """
    from debrief.training.optimisation import LEAST_HELD_OUT, MORE_SAMPLES, shortfall

    known = [sample for sample in samples if sample.used_prompts and sample.prompt_fingerprint]
    if 0 < len(known) < len(samples):
        warn(f"{len(samples) - len(known)} of {len(samples)} samples do not tell their prompts.")
    sets: dict[tuple[str, str], list[TrainingSample]] = {}
    for sample in known:
        sets.setdefault((sample.prompt_fingerprint or "", sample.tool), []).append(sample)
    if not sets:
        lacks = f"hold {len(samples)} such samples, and of none are the prompts known"
        if not samples:
            lacks = f"hold 0 such samples; needed: 1 to train on and {LEAST_HELD_OUT} held out"
        move = f"Capture prompts: debrief hooks install. {MORE_SAMPLES}"
        raise InputError("the lake and the repository", "; ".join([lacks, *missing]), move)
    short = {of: shortfall(each, options) for of, each in sets.items()}
    enough = [of for of, lack in short.items() if not lack]
    if not enough:
        most = max(sets, key=lambda of: len(sets[of]))
        name, tool = most
        missing.append(f"those of --fingerprint {name} --tool {tool} are {short[most]}")
        missing += ["all others have less"] if len(sets) > 1 else []
    elif len(sets) > 1:
        choices = ", ".join(f"--fingerprint {name} --tool {tool}" for name, tool in enough)
        missing.append(f"ran with several prompts or tools: choose one of {choices}")
        missing += ["the others have too few samples"] if len(enough) < len(sets) else []
    if missing:
        raise InputError("the samples", "; ".join(missing), "" if enough else MORE_SAMPLES)
    return known


def _print_estimate(
    samples: Sequence[TrainingSample], estimate: CostEstimate, models: Sequence[str]
) -> None:
    asked = ", ".join(dict.fromkeys(filter(None, models)))
    console().print(
        f"{estimate.trained_on} training samples and {estimate.held_out} held-out ones of prompts "
        f"{samples[0].prompt_fingerprint}; at most about {estimate.trials} trials: "
        f"{estimate.calls:,} calls with {estimate.usage.input_tokens:,} tokens and "
        f"{estimate.usage.output_tokens:,} of answers, {cost_text(estimate.usage.cost_usd)}"
        f"{f' ({asked})' if asked else ', as no model is named'}. Nothing was asked."
    )
