"""What the stages of a run share: lake, weeks and configuration, opened when first used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

from debrief.evaluators import Evaluators
from debrief.lake import Lake
from debrief.questions.standing import standing_questions
from debrief.redaction.redactor import Redactor
from debrief.rubrics.trial import MOST_JUDGEMENTS
from debrief.scope import Scope
from debrief.sessions.model import SessionHead
from debrief.snapshots.captures import Captures, find_captures, repository_folders
from debrief.snapshots.clones import Clones
from debrief.stages.configuration import EvaluatorChoice, SessionSources, StageOptions

PROGRESS = "debrief.progress"
"""Logger of single steps forward. Not the run's own log: Dagster stores each of its lines as an
event, which costs more than a week of a cheap stage does."""

_USUAL_SOURCES, _EVERY_SESSION, _USUAL_EVALUATORS = SessionSources(), Scope(), EvaluatorChoice()

T = TypeVar("T")


class StageRun:
    """A run of one or several stages.

    Args:
        lake: that is read and filled.
        weeks: that it takes.
        sources: where sessions are read.
        scope: which sessions are taken, and whether again.
        evaluators: opens whoever judges, scores and mines; called when a stage first asks.
        most_judgements: that a model gives to try the rubrics of one score name.
    """

    def __init__(
        self,
        lake: Lake,
        weeks: Sequence[str] = (),
        *,
        sources: SessionSources = _USUAL_SOURCES,
        scope: Scope = _EVERY_SESSION,
        evaluators: Callable[[], Evaluators] = _USUAL_EVALUATORS.open,
        most_judgements: int = MOST_JUDGEMENTS,
    ) -> None:
        self.lake, self.weeks = lake, weeks
        self.sources, self.scope = sources, scope
        self.most_judgements = most_judgements
        self._open_evaluators = evaluators
        self._made: dict[str, Any] = {}

    @classmethod
    def of(
        cls,
        lake: Lake,
        options: StageOptions,
        weeks: Sequence[str] = (),
        run: str = "",
        account: str = "",
    ) -> StageRun:
        """Return a run with its options.

        Args:
            lake: that is read and filled.
            options: of the run.
            weeks: that it takes.
            run: its id; empty outside of Dagster.
            account: the run that spending is counted under; the run itself by default.

        Raises:
            InputError: a condition cannot be read.
        """
        return cls(
            lake,
            weeks,
            sources=options.sessions,
            scope=options.scope.open(),
            evaluators=partial(options.evaluator.open, run, account),
        )

    @cached_property
    def evaluators(self) -> Evaluators:
        """Who judges, scores and mines; reviews are asked the standing questions, too."""
        made = self._open_evaluators()
        if made.models is not None:
            made.ask_also(standing_questions(self.lake))
        return made

    @cached_property
    def redactor(self) -> Redactor:
        """Takes secrets out, with this machine's key."""
        return self.sources.redactor()

    @cached_property
    def captures(self) -> Captures:
        """The captures beside the sessions of the run's weeks."""
        heads = self.lake.rows("raw_sessions", SessionHead, self.weeks)
        return find_captures([*self.sources.places(), *sorted(repository_folders(heads))])

    @cached_property
    def clones(self) -> Clones:
        """The clones of repositories that settings name."""
        return self.sources.clones()

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return what ``make`` returned the first time that the run asked for ``name``."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made


def log_progress(stage: str, message: str) -> None:
    """Show a step forward on the terminal of whoever started the run."""
    logging.getLogger(PROGRESS).info("%s %s", stage, message)
