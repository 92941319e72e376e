"""``debrief train``: better prompts proposed from training samples."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from debrief.cli.console import console
from debrief.errors import ConfigurationError, InputError
from debrief.lake import Lake
from debrief.settings import Settings, load_settings
from debrief.snapshots.repositories import HOME, find_repository
from debrief.training.lessons import LessonFilter, lessons_of, plan_lessons, prompts_of
from debrief.training.model import TrainingSample
from debrief.training.optimisation import OptimiserOptions
from debrief.training.trials import NEEDS_A_MODEL, Trials


class TrainWish(Struct, frozen=True, kw_only=True):
    """What was asked for on the command line."""

    lake: str = ""
    samples: LessonFilter = LessonFilter()
    offline: bool = False
    ask: str = ""
    """The language model that does it."""
    trials: int = 60
    most_samples: int = 24
    max_cost_usd: float | None = None
    dry_run: bool = False
    folder: Path = Path()
    """Inside the repository that candidates are written to."""


def train(wish: TrainWish) -> None:
    """Propose prompts, say how they fare before and after, and write them.

    Raises:
        DebriefError: there are no fitting samples, no model is configured, or it failed.
    """
    settings = load_settings()
    if wish.offline or (not wish.ask and settings.offline):
        raise ConfigurationError("debrief train", NEEDS_A_MODEL, "Name one with --ask.")
    repository = find_repository(wish.folder)
    if repository is None:
        raise InputError(
            str(wish.folder), "is in no repository, and candidates go to one", "Name it: --repo."
        )
    plans = repository.root / HOME / "training_data"
    found = [
        *lessons_of(Lake(wish.lake or settings.lake), wish.samples),
        *plan_lessons(plans, wish.samples),
    ]
    samples = _chosen(found)
    options = OptimiserOptions(trials=wish.trials, most_samples=wish.most_samples)
    if wish.dry_run:
        _tell_outlay(samples, options, wish, settings)
        return
    from debrief.training.candidates import report_of, write_candidate
    from debrief.training.optimisation import propose

    screen = console(stderr=True)
    proposal = propose(samples, _trials(wish, settings), options, screen.print)
    out = console()
    out.print(report_of(proposal))
    if proposal.changed:
        written = write_candidate(proposal, repository.root / HOME, samples[0].tool)
        there = "" if written.new else " (there already)"
        out.print(f"Written to {written.folder}{there}; the prompts in force are as they were.")


def _chosen(samples: list[TrainingSample]) -> list[TrainingSample]:
    """Return the samples of the one set of prompts that they ran with."""
    known = prompts_of(samples)
    if not known:
        raise InputError(
            "the lake and the repository",
            f"hold {len(samples)} such samples, and of none are the prompts known",
            "Take others, or capture prompts: debrief hooks install.",
        )
    if len(known) > 1:
        counts = ", ".join(f"{name} ({count})" for name, count in known.items())
        raise InputError(
            "the samples", f"ran with several prompts: {counts}", "Name one with --fingerprint."
        )
    fingerprint = next(iter(known))
    fitting = [one for one in samples if one.prompt_fingerprint == fingerprint]
    tools = sorted({one.tool for one in fitting})
    if len(tools) > 1:
        raise InputError("the samples", f"are of {', '.join(tools)}", "Name one with --tool.")
    return fitting


def _trials(wish: TrainWish, settings: Settings) -> Trials:
    from debrief.judging.judge_files import litellm_name
    from debrief.models.choosing import Models
    from debrief.redaction.redactor import key_of

    name = litellm_name(wish.ask or settings.model)
    if not name:
        raise ConfigurationError(
            "debrief train", NEEDS_A_MODEL, "Name one with --ask, or set DEBRIEF_MODEL."
        )
    models = Models(settings, max_cost_usd=wish.max_cost_usd)
    return Trials(models.get(name), secret=key_of(settings), concurrency=models.concurrency)


def _tell_outlay(
    samples: list[TrainingSample], options: OptimiserOptions, wish: TrainWish, settings: Settings
) -> None:
    from debrief.judging.judge_files import litellm_name
    from debrief.models.choosing import Models
    from debrief.tokens import count_tokens
    from debrief.training.outlay import outlay_of

    name = litellm_name(wish.ask or settings.model)
    price = Models(settings, dry_run=True).get(name).price if name else None
    outlay = outlay_of(samples, options, count_tokens, price)
    cost = outlay.usage.cost_usd
    money = "at an unknown price" if cost is None else f"for about ${cost:.4f}"
    console().print(
        f"{outlay.trained_on} training samples and {outlay.held_out} held-out ones of prompts "
        f"{samples[0].prompt_fingerprint}; at most about {outlay.trials} trials: "
        f"{outlay.calls:,} calls with {outlay.usage.input_tokens:,} tokens and "
        f"{outlay.usage.output_tokens:,} of answers, {money}"
        f"{f' ({name})' if name else ', as no model is named'}. Nothing was asked."
    )
