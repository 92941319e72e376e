"""``debrief train``: better prompts proposed from training samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.console import console, cost_text
from debrief.cli.options import DryRun, LakeUrl, MaxCost, Repo
from debrief.errors import ConfigurationError, InputError

if TYPE_CHECKING:
    from debrief.models.prices import Price
    from debrief.training.model import TrainingSample
    from debrief.training.optimisation import OptimiserOptions


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
    offline: Annotated[
        bool, typer.Option("--offline", help="Says that this cannot be had without a model.")
    ] = False,
    trials: Annotated[int, typer.Option(min=4, help="How often prompts may be tried.")] = 60,
    samples: Annotated[
        int, typer.Option(min=1, help="Most samples of each side of the split.")
    ] = 24,
    dry_run: DryRun = False,
    max_cost: MaxCost = None,
    lake: LakeUrl = "",
    repo: Repo = Path(),
) -> None:
    """Propose better prompts from training samples, and show before and after on held-out ones.

    Samples are those of the lake's training sets that ran with one known set of prompts. GEPA
    rewrites the main prompt and the subagents'; what it proposes is written to
    **.debrief/prompts/candidates/TOOL/FINGERPRINT/**, beside the active prompts and never over
    them. What was answered once is not asked again.
    """
    from debrief.judging.judge_files import litellm_name
    from debrief.lake import Lake
    from debrief.models.choosing import Models
    from debrief.redaction.redactor import key_of
    from debrief.settings import load_settings
    from debrief.snapshots.capture import HOME, find_repository
    from debrief.training.candidates import report_of, write_candidate
    from debrief.training.lessons import LessonFilter, lessons_of, plan_lessons
    from debrief.training.optimisation import OptimiserOptions, propose
    from debrief.training.trials import NEEDS_A_MODEL, PromptTrials

    settings = load_settings()
    if offline or (not ask and settings.offline):
        raise ConfigurationError("debrief train", NEEDS_A_MODEL, "Name one with --ask.")
    repository = find_repository(repo)
    if repository is None:
        raise InputError(
            str(repo), "is in no repository, and candidates go to one", "Name it: --repo."
        )
    home = repository.root / HOME
    only = LessonFilter(task=task, tool=tool, model=model, fingerprint=fingerprint)
    fitting = _of_one_prompt_set(
        [
            *lessons_of(Lake(lake or settings.lake), only),
            *plan_lessons(home / "training_data", only),
        ]
    )
    options = OptimiserOptions(trials=trials, most_samples=samples)
    name = litellm_name(ask or settings.model)
    if dry_run:
        price = Models(settings, dry_run=True).get(name).price if name else None
        _print_estimate(fitting, options, name, price)
        return
    if not name:
        raise ConfigurationError(
            "debrief train", NEEDS_A_MODEL, "Name one with --ask, or set DEBRIEF_MODEL."
        )
    models = Models(settings, max_cost_usd=max_cost)
    runner = PromptTrials(models.get(name), secret=key_of(settings), concurrency=models.concurrency)
    proposal = propose(fitting, runner, options, console(stderr=True).print)
    out = console()
    out.print(report_of(proposal))
    if proposal.changed:
        written = write_candidate(proposal, home, fitting[0].tool)
        note = "" if written.new else " (there already)"
        out.print(f"Written to {written.folder}{note}; the prompts in force are as they were.")


def _of_one_prompt_set(samples: Sequence[TrainingSample]) -> list[TrainingSample]:
    """Return the samples of the one set of prompts that they ran with."""
    from debrief.training.lessons import prompts_of

    prompts = prompts_of(samples)
    if not prompts:
        raise InputError(
            "the lake and the repository",
            f"hold {len(samples)} such samples, and of none are the prompts known",
            "Take others, or capture prompts: debrief hooks install.",
        )
    if len(prompts) > 1:
        counts = ", ".join(f"{name} ({count})" for name, count in prompts.items())
        raise InputError(
            "the samples", f"ran with several prompts: {counts}", "Name one with --fingerprint."
        )
    fingerprint = next(iter(prompts))
    fitting = [one for one in samples if one.prompt_fingerprint == fingerprint]
    tools = sorted({one.tool for one in fitting})
    if len(tools) > 1:
        raise InputError("the samples", f"are of {', '.join(tools)}", "Name one with --tool.")
    return fitting


def _print_estimate(
    samples: list[TrainingSample], options: OptimiserOptions, model: str, price: Price | None
) -> None:
    from debrief.tokens import count_tokens
    from debrief.training.optimisation import estimate_cost

    estimate = estimate_cost(samples, options, count_tokens, price)
    console().print(
        f"{estimate.trained_on} training samples and {estimate.held_out} held-out ones of prompts "
        f"{samples[0].prompt_fingerprint}; at most about {estimate.trials} trials: "
        f"{estimate.calls:,} calls with {estimate.usage.input_tokens:,} tokens and "
        f"{estimate.usage.output_tokens:,} of answers, {cost_text(estimate.usage.cost_usd)}"
        f"{f' ({model})' if model else ', as no model is named'}. Nothing was asked."
    )
