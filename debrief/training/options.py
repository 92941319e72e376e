"""Which sessions training sets take: launch options, else settings, else the default."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from debrief.errors import ConfigurationError
from debrief.scoring.verdict import VerdictName
from debrief.settings import Settings
from debrief.training.given import SystemPrompt

EVAL_SHARE = 0.2
TAKEN: Final[tuple[VerdictName, ...]] = ("complete_verified", "complete_unverified")
"""The verdicts that are asked for by default."""


def _names(value: object) -> object:
    """Return a list of names that a setting gives as one text."""
    return list(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


def _or_none(value: object) -> object:
    """Return None for an empty text or 0, which say that there is no limit."""
    return None if value in ("", "0", 0) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Verdicts = Annotated[tuple[VerdictName, ...], BeforeValidator(_names)]
Day = Annotated[date | None, BeforeValidator(_or_none)]
Limit = Annotated[int | None, BeforeValidator(_or_none)]


class TrainingOptions(BaseModel):
    """What is chosen at launch or by settings. The default takes every session that can be learned
    from and that somebody called complete. The launchpad shows the descriptions."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    verdicts: Verdicts = TAKEN
    """Sessions of these verdicts: `complete_verified`, `complete_unverified`, `partial`, `failed`,
    `undetermined`. Else the first two. Empty: any. What a recorder's owner released is taken where
    there is no verdict, or `undetermined`, whatever stands here."""
    unreviewed: bool | None = None
    """Also sessions that nobody gave a verdict and that no signal speaks against, each line marked
    `reviewed: false`. Else only while no model has reviewed a session of the lake."""
    outcome: Literal["any", "succeeded"] = "any"
    """`succeeded`: only sessions of which a label other than their own checks says so."""
    min_overall_quality: float = Field(default=0.0, ge=0, le=1)
    """From 0 to 1. With it, sessions without an overall quality are left out. Else 0."""
    status: Literal["any", "ready"] = "any"
    """`ready`: only sessions that changed something, in which a validation command ran, and none of
    whose redactions needs a look; of one that was recorded, its recorder's status counts instead of
    the first two. Else `any`, which leaves none out for these."""
    ready_without_change: bool = False
    """`ready` does not ask for a change."""
    ready_without_validation: bool = False
    """`ready` does not ask for a validation command."""
    allow_unsure_redactions: bool = False
    """Also sessions with redactions that nobody looked at."""
    require_change: bool = False
    """Only sessions that added or removed a line."""
    require_validation: bool = False
    """Only sessions in which a test, lint, type run or build ran."""
    allow_suspected_injections: bool = False
    """Also sessions with words that look made for whoever judges them: their scores cannot be
    relied on."""
    tools: Names = ()
    """Empty: every tool."""
    models: Names = ()
    """Empty: every model."""
    since: Day = None
    """The first day, as 2026-10-05 (UTC)."""
    until: Day = None
    """The last day, included."""
    max_per_repository: Limit = Field(default=None, ge=1)
    """0: no limit. Kept are first those that are complete and verified, then those that are
    complete, then those without a verdict; within these, the best by overall quality where it is
    known."""
    near_duplicates: Literal["drop", "keep"] = "drop"
    """`drop` all but the earliest of copies, or `keep` them."""
    system_prompt: SystemPrompt = "recorded"
    """What comes before the first prompt: `recorded`, the system prompt that the transcript holds,
    else the person's own prompts; `own`, those alone; or `none`."""
    max_tokens: Limit = Field(default=None, ge=256)
    """Sessions with more, their tools and what chat templates write counted in, are split into
    windows, each a line of its own. 0: never."""
    eval_share: float = Field(default=EVAL_SHARE, ge=0, lt=1)
    """Held out for evaluation, 0 to 1. Else 0.2."""

    @property
    def needs_change(self) -> bool:
        """Whether a session without a change is left out."""
        return self.require_change or (self.status == "ready" and not self.ready_without_change)

    @property
    def needs_validation(self) -> bool:
        """Whether a session in which nothing was checked is left out."""
        return self.require_validation or (
            self.status == "ready" and not self.ready_without_validation
        )


def training_options(given: Mapping[str, object]) -> TrainingOptions:
    """Return options as somebody gave them.

    Raises:
        ConfigurationError: one of them makes no sense.
    """
    try:
        return TrainingOptions.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "options"
        raise ConfigurationError(name, first["msg"], "See what it may be.") from error


_PREFIX = "DEBRIEF_TRAINING_"


def options_chosen(settings: Settings, at_launch: Mapping[str, object]) -> TrainingOptions:
    """Return what is chosen: at launch, else by a setting, else by default.

    Args:
        settings: such as ``DEBRIEF_TRAINING_MAX_TOKENS``; tools and models by commas.
        at_launch: by option; None for one that was not given.

    Raises:
        ConfigurationError: a setting names no option, or a value makes no sense.
    """
    chosen: dict[str, object] = {}
    for setting, text in sorted(settings.values.items()):
        if not setting.startswith(_PREFIX) or not text.strip():
            continue
        name = setting.removeprefix(_PREFIX).lower()
        if name not in TrainingOptions.model_fields:
            known = ", ".join(_PREFIX + option.upper() for option in TrainingOptions.model_fields)
            raise ConfigurationError(setting, "is no setting", f"There are: {known}.")
        chosen[name] = text.strip()
    given = {name: value for name, value in at_launch.items() if value is not None}
    return training_options({**chosen, **given})
