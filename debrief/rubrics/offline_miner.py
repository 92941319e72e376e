"""Mining without a model, behind the same door as mining with one."""

from __future__ import annotations

from collections.abc import Iterable

from debrief.rubrics.consolidation import consolidate_offline
from debrief.rubrics.extraction import mine_offline
from debrief.rubrics.model import ExtractedRubric, Mined, Rubric
from debrief.scoring.model import ScoreName, SessionScores
from debrief.sessions.model import Session


class OfflineMiner:
    """Finds rubrics by contrast of habits."""

    name = "offline"

    def extract(
        self,
        sessions: Iterable[Session],
        scores: Iterable[SessionScores],
        score_name: ScoreName,
        week: str,
        earlier: Iterable[Session],
        earlier_scores: Iterable[SessionScores],
    ) -> Mined:
        """Return the habits that set the week's best sessions apart, and those that do not."""
        return mine_offline(
            sessions,
            scores,
            score_name,
            week,
            earlier=earlier,
            earlier_scores=earlier_scores,
        )

    def consolidate(
        self,
        extracted: Iterable[ExtractedRubric],
        score_name: ScoreName,
        previous: Iterable[Rubric] = (),
    ) -> list[Rubric]:
        """Return the final set, the strongest first; a habit is its own key."""
        return consolidate_offline(extracted, score_name)
