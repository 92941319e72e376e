"""Mining with a language model, behind the same door as mining without one."""

from __future__ import annotations

from collections.abc import Iterable

from debrief.rubrics.asking import Ask
from debrief.rubrics.model import ExtractedRubric, Mined, Rubric
from debrief.rubrics.model_consolidation import consolidate_with_model
from debrief.rubrics.model_extraction import ModelExtractionOptions, extract_with_model
from debrief.rubrics.templates import SUMMARIZER, extractor_for, version_of
from debrief.scoring.model import SCORE_NAMES, ScoreName, SessionScores
from debrief.sessions.model import Session

_WORDS = (SUMMARIZER, "rubric_sources", "rubric_evidence", "rubric_data_notice")


class ModelMiner:
    """Finds rubrics by asking a model about the best sessions.

    Args:
        name: the model's name, as rows tell it.
        ask: the door to it.
        options: which sessions are mined, and how many rubrics are asked for.
        workers: calls at a time.
        secret: of this machine. With it a prompt is the same in every run, so that its answer can
            be kept; without it every marker is drawn anew.
    """

    def __init__(
        self,
        name: str,
        ask: Ask,
        *,
        options: ModelExtractionOptions | None = None,
        workers: int = 1,
        secret: bytes = b"",
    ) -> None:
        self.name = name
        self.version = version_of(*(extractor_for(each) for each in SCORE_NAMES), *_WORDS)
        """Of the templates: what was mined with other words is mined again."""
        self._ask = ask
        self._options = options
        self._workers = workers
        self._secret = secret

    def extract(
        self,
        sessions: Iterable[Session],
        scores: Iterable[SessionScores],
        score_name: ScoreName,
        week: str,
        earlier: Iterable[Session],
        earlier_scores: Iterable[SessionScores],
    ) -> Mined:
        """Return what the model found in the week's best sessions, and can prove.

        Earlier sessions are not needed: a single good session is enough to read.
        """
        return extract_with_model(
            sessions,
            scores,
            score_name,
            week,
            self._ask,
            self.name,
            options=self._options,
            workers=self._workers,
            secret=self._secret,
        )

    def consolidate(
        self,
        extracted: Iterable[ExtractedRubric],
        score_name: ScoreName,
        previous: Iterable[Rubric] = (),
    ) -> list[Rubric]:
        """Return the final set, the heaviest first.

        Raises:
            ModelError: no usable answer.
        """
        return consolidate_with_model(
            extracted,
            score_name,
            self._ask,
            self.name,
            previous=list(previous),
            secret=self._secret,
        )
