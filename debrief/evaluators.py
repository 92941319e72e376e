"""Who answers for the judges, the dimensions and the rubrics: one choice for a whole run."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from debrief.content import folder
from debrief.judging.judge_files import load_judges
from debrief.judging.model import ChangeJudge, Judge
from debrief.rubrics.model import RubricJudge
from debrief.scoring.model import ChunkScorer
from debrief.settings import Settings
from debrief.snapshots.fingerprint import FINGERPRINT_LENGTH, eval_digest

OFFLINE = "offline"


class Evaluators(Struct, frozen=True, kw_only=True):
    """The evaluators of a run."""

    name: str
    """``offline``, or the model's name."""
    judges: tuple[Judge, ...]
    eval_digest: str
    change_judge: ChangeJudge
    chunk_scorer: ChunkScorer
    scoring_fingerprint: str
    rubric_judge: RubricJudge
    concurrency: int = 1

    @property
    def eval_fingerprint(self) -> str:
        """Return what a judgement is comparable by."""
        return self.eval_digest[:FINGERPRINT_LENGTH]


def judges_folder(settings: Settings, repository: Path) -> Path:
    """Return where the judges are: the repository's own, else the project's."""
    named = settings.get("DEBRIEF_JUDGES")
    if named:
        return Path(named).expanduser()
    own = repository / ".debrief" / "judges"
    return own if own.is_dir() else folder("judges")
