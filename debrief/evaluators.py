"""Who answers for the judges, the dimensions and the rubrics: one choice for a whole run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from debrief.content import folder
from debrief.judging.judge_files import load_judges
from debrief.judging.model import ChangeJudge, Judge
from debrief.rubrics.model import RubricJudge, RubricMiner
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
    miner: RubricMiner
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


def make_evaluators(
    settings: Settings, *, offline: bool, model: str = "", repository: Path | None = None
) -> Evaluators:
    """Return the evaluators of a run.

    Args:
        settings: where keys and the judges' place are read.
        offline: ask no model at all.
        model: one that answers for everything; empty: each judge's own for judging, and
            ``DEBRIEF_MODEL`` or the heaviest judge's for scoring and rubrics.
        repository: whose own ``.debrief/judges`` win; the current folder by default.

    Raises:
        ConfigurationError: a judge file is wrong, or a model is needed and has no key.
    """
    place = judges_folder(settings, repository or Path.cwd())
    if offline:
        return _offline(load_judges(place, model=OFFLINE))
    chosen = model or settings.get("DEBRIEF_MODEL")
    return _models(settings, load_judges(place, model=chosen or None), chosen)


def _offline(judges: Sequence[Judge]) -> Evaluators:
    from debrief.offline.evaluator import OfflineEvaluator
    from debrief.rubrics.offline_judge import OfflineRubricJudge
    from debrief.rubrics.offline_miner import OfflineMiner
    from debrief.scoring.scorer import fingerprint_of

    evaluator = OfflineEvaluator()
    return Evaluators(
        name=OFFLINE,
        judges=tuple(judges),
        eval_digest=eval_digest(judges),
        change_judge=evaluator,
        chunk_scorer=evaluator,
        scoring_fingerprint=fingerprint_of(evaluator),
        rubric_judge=OfflineRubricJudge(),
        miner=OfflineMiner(),
    )


def _models(settings: Settings, judges: Sequence[Judge], chosen: str) -> Evaluators:
    from debrief.judging.dspy_judge import DspyJudge
    from debrief.models.language_model import LanguageModel, language_model
    from debrief.rubrics.model_judge import ModelRubricJudge
    from debrief.rubrics.model_miner import ModelMiner
    from debrief.scoring.model_scorer import ModelChunkScorer
    from debrief.scoring.scorer import fingerprint_of

    name = chosen or max(judges, key=lambda judge: (judge.weight, judge.name)).model
    models: dict[str, LanguageModel] = {
        wanted: language_model(wanted, settings)
        for wanted in sorted({name, *(judge.model for judge in judges)})
    }
    scorer = ModelChunkScorer(name, models[name].ask)
    return Evaluators(
        name=name,
        judges=tuple(judges),
        eval_digest=eval_digest(judges),
        change_judge=DspyJudge(models.__getitem__),
        chunk_scorer=scorer,
        scoring_fingerprint=fingerprint_of(scorer),
        rubric_judge=ModelRubricJudge(name, models[name].ask),
        miner=ModelMiner(name, models[name].ask),
        concurrency=int(settings.get("DEBRIEF_CONCURRENCY", "8")),
    )
