"""Choose who answers for judges, dimensions and rubrics in a run: a model, or the offline rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from debrief.content import folder
from debrief.errors import ConfigurationError
from debrief.evaluation import OFFLINE
from debrief.judging.model import ChangeJudge, Judge, litellm_name, load_judges
from debrief.keys import digest_of
from debrief.models.choosing import Models
from debrief.models.fencing import fence, marker_of
from debrief.models.templates import check_templates
from debrief.models.usage import RunUsage
from debrief.redaction.redactor import key_of
from debrief.rubrics.model import RubricJudge, RubricMiner
from debrief.scoring.model import ChunkScorer
from debrief.settings import Settings
from debrief.snapshots.fingerprint import FINGERPRINT_LENGTH, eval_digest

if TYPE_CHECKING:
    from debrief.scoring.pairwise import SessionComparison
    from debrief.sessions.model import Session


class Evaluators(Struct, frozen=True, kw_only=True):
    """The evaluators of a run."""

    name: str
    """``offline``, or the model's name."""
    judges: tuple[Judge, ...]
    eval_digest: str
    change_judge: ChangeJudge
    """Judges changes, each judge asked alone."""
    session_judge: ChangeJudge
    """Judges sessions, together with their scores where that is one call."""
    chunk_scorer: ChunkScorer
    scoring_fingerprint: str
    rubric_judge: RubricJudge
    miner: RubricMiner
    score_names: tuple[str, ...]
    """By which sessions are good when rubrics are mined."""
    concurrency: int = 1
    models: Models | None = None
    """The language models behind all of it; None without any."""
    dry_run: bool = False
    """Nothing is asked: every answer is a failure, and ``spent`` says what it would have taken."""
    second: Evaluators | None = None
    """Of another model, which judges and scores as well; its rows stay apart."""

    @property
    def each(self) -> tuple[Evaluators, ...]:
        """Return these evaluators, and the second ones where there are some."""
        return (self,) if self.second is None else (self, self.second)

    @property
    def has_second_opinion(self) -> bool:
        """Return whether another model reads the sessions of which the first is unsure."""
        return getattr(self.chunk_scorer, "second_opinion", None) is not None

    @property
    def spent(self) -> RunUsage:
        """Return what was asked so far, and what it cost."""
        return self.models.spent if self.models is not None else RunUsage()

    @property
    def eval_fingerprint(self) -> str:
        """Return what a judgement is comparable by."""
        return self.eval_digest[:FINGERPRINT_LENGTH]


def judges_folder(settings: Settings, repository: Path | None = None) -> Path:
    """Return where the judges are: ``DEBRIEF_JUDGES``, else the repository's own, else ours."""
    if settings.judges:
        return settings.judges
    own = repository / ".debrief" / "judges" if repository is not None else None
    return own if own is not None and own.is_dir() else folder("judges")


def prompts_folder(settings: Settings, repository: Path | None = None) -> Path | None:
    """Return where own templates are: ``DEBRIEF_PROMPTS``, else the repository's; None without.

    Raises:
        ConfigurationError: ``DEBRIEF_PROMPTS`` is no folder, or a template in it is wrong.
    """
    own = settings.prompts or (repository and repository / ".debrief" / "prompts")
    if settings.prompts and not settings.prompts.is_dir():
        raise ConfigurationError(str(settings.prompts), "is no folder", "Correct DEBRIEF_PROMPTS")
    if own is None or not own.is_dir():
        return None
    check_templates(own)
    return own


def make_evaluators(
    settings: Settings,
    *,
    offline: bool,
    repository: Path | None = None,
    second_model: str = "",
    second_opinion: str = "",
    run: str = "",
    account: str = "",
    dry_run: bool = False,
    history: bool = False,
    only: Sequence[str] = (),
    fail_fast: bool = False,
) -> Evaluators:
    """Return the evaluators of a run.

    Args:
        settings: where keys, the judges' place, limits, samples and the model are read: one that
            answers for everything, else each judge's own for judging, and the heaviest judge's
            for scoring and rubrics.
        offline: ask no model at all.
        repository: whose own ``.debrief/judges`` and ``.debrief/prompts`` win.
        second_model: one that judges and scores as well; empty: none.
        second_opinion: one that scores, instead of the first, the sessions of which that one is
            unsure; empty: none.
        run: names the run where several processes work for it.
        account: names those runs that share the limits; the run alone by default.
        dry_run: count what would be asked, and ask nothing.
        history: leave the judges' calls in DSPy's history; for a few calls only.
        only: judges by name, instead of all.
        fail_fast: send a question twice at most, within seconds: right where a person waits.

    Raises:
        ConfigurationError: a judge file or a template is wrong, or a model is needed and has no
            key.
    """
    chosen = OFFLINE if offline else settings.model
    place = judges_folder(settings, repository)
    judges = _chosen(load_judges(place, model=chosen or None), only)
    common: dict[str, Any] = {
        "judges": tuple(judges),
        "eval_digest": eval_digest(judges),
        "score_names": settings.score_names,
        "dry_run": dry_run,
    }
    if offline:
        from debrief.rubrics.judging import OfflineRubricJudge
        from debrief.rubrics.offline_miner import OfflineMiner
        from debrief.scoring.offline_evaluator import OfflineEvaluator
        from debrief.scoring.scorer import scoring_fingerprint

        evaluator = OfflineEvaluator()
        return Evaluators(
            name=OFFLINE,
            change_judge=evaluator,
            session_judge=evaluator,
            chunk_scorer=evaluator,
            scoring_fingerprint=scoring_fingerprint(evaluator),
            rubric_judge=OfflineRubricJudge(),
            miner=OfflineMiner(),
            **common,
        )
    samples = settings.samples
    models = Models(
        settings, run=run, account=account, samples=samples, dry_run=dry_run, fail_fast=fail_fast
    )
    name = litellm_name(chosen) or max(judges, key=lambda judge: (judge.weight, judge.name)).model
    asked = partial(
        _by_model,
        settings=settings,
        prompts=prompts_folder(settings, repository),
        models=models,
        samples=samples,
        secret=key_of(settings),
        history=history,
    )
    opinion = litellm_name(second_opinion)
    opinion = "" if opinion == name else opinion
    first = asked(name, second_opinion=opinion, **common)
    second = litellm_name(second_model)
    if second in ("", name):
        return first
    judges = _chosen(load_judges(place, model=second), only)
    common |= {"judges": tuple(judges), "eval_digest": eval_digest(judges)}
    return structs.replace(first, second=asked(second, **common))


def _by_model(
    name: str,
    *,
    settings: Settings,
    prompts: Path | None,
    models: Models,
    samples: int,
    secret: bytes,
    history: bool,
    second_opinion: str = "",
    **common: Any,
) -> Evaluators:
    from debrief.signals.request import VERSION
    from debrief.judging.dspy_judge import FORM, DspyJudge
    from debrief.models.templates import SCORER, version_of
    from debrief.rubrics.judging import ModelRubricJudge
    from debrief.rubrics.model_miner import ModelMiner
    from debrief.scoring.dimensions import DIMENSIONS
    from debrief.scoring.model_scorer import ModelChunkScorer
    from debrief.scoring.riding import RidingJudge, can_ride
    from debrief.scoring.scorer import scoring_fingerprint

    others = {judge.model for judge in common["judges"]} | {second_opinion} - {""}
    for each in sorted({name, *others}):
        models.get(each)
    ask = models.get(name).ask
    asked = f"temperature {models.temperature:g}, answers {samples}"
    scorer = ModelChunkScorer(
        name,
        ask,
        # A marker of its own that is the same in every run: prompts are cached.
        lambda text: fence(text, marker_of(secret, text)),
        further=[partial(ask, sample=number) for number in range(1, samples)],
        version=asked,
        judges=tuple(
            # Two stages read the one answer, so it has to be kept.
            judge
            for judge in common["judges"]
            if models.keeps_answers and can_ride(judge, name)
        ),
    )
    if second_opinion:
        larger = models.get(second_opinion).ask
        scorer.second_opinion = dataclasses.replace(
            scorer,
            model=second_opinion,
            ask=larger,
            further=[partial(larger, sample=number) for number in range(1, samples)],
            judges=(),
        )
    alone = DspyJudge(
        models.get,
        secret=secret,
        history=history,
        samples=samples,
        version=f"{FORM}, {VERSION}, {asked}",
    )
    return Evaluators(
        name=name,
        change_judge=alone,
        session_judge=RidingJudge(
            scorer,
            alone,
            version=f"{alone.version}, {version_of(SCORER)}, {digest_of(DIMENSIONS)[:8]}",
        ),
        chunk_scorer=scorer,
        scoring_fingerprint=scoring_fingerprint(scorer),
        rubric_judge=ModelRubricJudge(name, ask, secret=secret, prompts=prompts),
        miner=ModelMiner(
            name,
            ask,
            workers=models.concurrency,
            secret=secret,
            score_names=settings.score_names,
            fewest=settings.extraction_min_rubrics,
            most=settings.extraction_max_rubrics,
            prompts=prompts,
        ),
        concurrency=models.concurrency,
        models=models,
        **common,
    )


def comparer_of(
    evaluators: Evaluators, settings: Settings
) -> Callable[[Session, Session], SessionComparison]:
    """Return what compares two sessions by the model of evaluators, in both orders.

    Raises:
        ValueError: there is no model behind the evaluators.
    """
    from debrief.scoring.pairwise import compare

    name, models, secret = evaluators.name, evaluators.models, key_of(settings)
    if models is None:
        raise ValueError(f"{name} is no model")
    return partial(
        compare,
        ask=models.get(name).ask,
        model=name,
        put_between=lambda text: fence(text, marker_of(secret, text)),
    )


def scorer_asked_again(evaluators: Evaluators) -> ChunkScorer:
    """Return a scorer that asks the same model the same questions, for answers of their own.

    Raises:
        ValueError: there is no model behind the evaluators.
    """
    from debrief.scoring.model_scorer import ModelChunkScorer

    scorer = evaluators.chunk_scorer
    if evaluators.models is None or not isinstance(scorer, ModelChunkScorer):
        raise ValueError(f"{evaluators.name} is no model")
    ask = evaluators.models.get(scorer.model).ask
    return dataclasses.replace(scorer, ask=partial(ask, sample=1))


def _chosen(judges: list[Judge], only: Sequence[str]) -> list[Judge]:
    names = [judge.name for judge in judges]
    for name in only:
        if name not in names:
            known = f"Known: {', '.join(names)}."
            raise ConfigurationError(f"judge {name}", "is not there", known)
    return [judge for judge in judges if not only or judge.name in only]
