"""Mining with a language model, behind the same door as mining without one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from debrief.errors import ModelError
from debrief.rubrics.asking import Ask
from debrief.rubrics.model import ExtractedRubric, Rubric
from debrief.rubrics.model_consolidation import consolidate_with_model
from debrief.rubrics.model_extraction import ModelExtractionOptions, extract_with_model
from debrief.scoring.model import ScoreName, SessionScores
from debrief.sessions.model import Session

_LOG = logging.getLogger(__name__)


class ModelMiner:
    """Finds rubrics by asking a model about the best sessions.

    Args:
        name: the model's name, as rows tell it.
        ask: the door to it.
        options: which sessions are mined, and how many rubrics are asked for.
        previous: the final sets before, so that a rubric keeps its key.
        workers: calls at a time.
    """

    def __init__(
        self,
        name: str,
        ask: Ask,
        *,
        options: ModelExtractionOptions | None = None,
        previous: Sequence[Rubric] = (),
        workers: int = 1,
    ) -> None:
        self.name = name
        self._ask = ask
        self._options = options
        self._previous = previous
        self._workers = workers

    def extract(
        self,
        sessions: Iterable[Session],
        scores: Iterable[SessionScores],
        score_name: ScoreName,
        week: str,
        earlier: Iterable[Session],
        earlier_scores: Iterable[SessionScores],
    ) -> list[ExtractedRubric]:
        """Return what the model found in the week's best sessions, and can prove.

        Earlier sessions are not needed: a single good session is enough to read.

        Raises:
            ModelError: not one session could be mined.
        """
        found = extract_with_model(
            sessions,
            scores,
            score_name,
            week,
            self._ask,
            self.name,
            options=self._options,
            workers=self._workers,
        )
        for failure in found.failures:
            _LOG.warning("No rubrics from %s: %s", failure.session_id, failure.reason)
        if found.unproven:
            _LOG.warning("Dropped %s rubrics whose evidence was not found", found.unproven)
        if found.failures and not found.rubrics and not found.unproven:
            first = found.failures[0]
            raise ModelError(self.name, f"mined none of the week's sessions: {first.reason}")
        return list(found.rubrics)

    def consolidate(
        self, extracted: Iterable[ExtractedRubric], score_name: ScoreName
    ) -> list[Rubric]:
        """Return the final set, the heaviest first."""
        previous = [rubric for rubric in self._previous if rubric.score_name == score_name]
        return consolidate_with_model(
            extracted, score_name, self._ask, self.name, previous=previous
        )
