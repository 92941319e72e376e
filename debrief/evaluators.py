"""Choose the model that answers for judges, reviews and rubrics in a run, if any does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from msgspec import Struct

from debrief.content import folder
from debrief.errors import ConfigurationError
from debrief.judging.model import ChangeJudge, Judge, litellm_name, load_judges
from debrief.models.choosing import Models, can_be_asked, key_name
from debrief.models.fencing import fence, marker_of
from debrief.models.templates import check_templates
from debrief.models.usage import RunUsage
from debrief.redaction.redactor import key_of
from debrief.rubrics.model import RubricJudge, RubricMiner
from debrief.scoring.model import AskedQuestion, ChunkScorer
from debrief.sessions.model import Session
from debrief.settings import Settings
from debrief.snapshots.fingerprint import FINGERPRINT_LENGTH, eval_digest


class NoModel:
    """Stands where a model would answer: whatever is asked of it is refused."""

    model = name = ""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise ConfigurationError(
            "no model: an LLM is needed for this",
            "none is configured",
            "Pass --model claude-code, or set DEBRIEF_MODEL",
        )

    judge = score_chunk = judge_rubric = extract = consolidate = _refuse


class Evaluators(Struct, frozen=True, kw_only=True):
    """The evaluators of a run."""

    name: str
    """The model's name; empty without a model."""
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

    @property
    def spent(self) -> RunUsage:
        """Return what was asked so far, and what it cost."""
        return self.models.spent if self.models is not None else RunUsage()

    def ask_also(self, questions: Callable[[Session], Sequence[AskedQuestion]]) -> None:
        """Have reviews answer more questions in the same call.

        Args:
            questions: returns those of a session.
        """
        from debrief.scoring.model_scorer import ModelChunkScorer

        if isinstance(self.chunk_scorer, ModelChunkScorer):
            self.chunk_scorer.questions = questions

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


def configured_model(settings: Settings, repository: Path | None = None) -> str:
    """Return the model that reviews, by name or by a key for what a judge's file names.

    Args:
        settings: with the model's name and the keys.
        repository: whose own judges win.

    Returns:
        its name; empty where none is configured.

    Raises:
        ConfigurationError: a judge file is wrong.
    """
    if settings.no_model:
        return ""
    judges = load_judges(judges_folder(settings, repository), model=settings.model)
    if settings.model or any(can_be_asked(judge.model, settings) for judge in judges):
        return reviewer_of(judges, settings)
    return ""


def reviewer_of(judges: Sequence[Judge], settings: Settings) -> str:
    """Return the one model, else the heaviest judge's, which reviews and mines too."""
    heaviest = max(judges, key=lambda judge: (judge.weight, judge.name))
    return litellm_name(settings.model) or heaviest.model


def require_model(command: str, settings: Settings, repository: Path | None = None) -> None:
    """Raise where a command needs a model and none is configured.

    Raises:
        ConfigurationError: none is, or a judge file is wrong.
    """
    if configured_model(settings, repository):
        return
    why = "DEBRIEF_NO_MODEL says that none is asked"
    if not settings.no_model:
        judges = load_judges(judges_folder(settings, repository))
        why = f"{key_name(reviewer_of(judges, settings))} is not set"
    raise ConfigurationError(
        command,
        f"needs a model, and {why}",
        "Pass --model claude-code (or codex, gemini-cli) where that is logged in, or --model NAME "
        f"with its provider's key in {settings.home / '.env'} (chmod 600)",
    )


def make_evaluators(
    settings: Settings,
    *,
    no_model: bool,
    repository: Path | None = None,
    run: str = "",
    account: str = "",
    dry_run: bool = False,
    history: bool = False,
    only: Sequence[str] = (),
    fail_fast: bool = False,
) -> Evaluators:
    """Return the evaluators of a run.

    Args:
        settings: where keys, the judges' place, limits and the model are read: one that answers
            for everything, else each judge's own for judging, and the heaviest judge's for
            reviews and rubrics.
        no_model: ask no model at all.
        repository: whose own ``.debrief/judges`` and ``.debrief/prompts`` win.
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
    judges = _chosen(load_judges(judges_folder(settings, repository), model=settings.model), only)
    common: dict[str, Any] = {
        "judges": tuple(judges),
        "eval_digest": eval_digest(judges),
        "score_names": settings.score_names,
        "dry_run": dry_run,
    }
    if no_model:
        nobody = NoModel()
        return Evaluators(
            name="",
            change_judge=nobody,
            session_judge=nobody,
            chunk_scorer=nobody,
            scoring_fingerprint="",
            rubric_judge=nobody,
            miner=nobody,
            **common,
        )
    models = Models(settings, run=run, account=account, dry_run=dry_run, fail_fast=fail_fast)
    return _by_model(
        reviewer_of(judges, settings),
        settings=settings,
        prompts=prompts_folder(settings, repository),
        models=models,
        secret=key_of(settings),
        history=history,
        **common,
    )


def _by_model(
    name: str,
    *,
    settings: Settings,
    prompts: Path | None,
    models: Models,
    secret: bytes,
    history: bool,
    **common: Any,
) -> Evaluators:
    from debrief.judging.dspy_judge import FORM, DspyJudge
    from debrief.models.templates import SCORER, version_of
    from debrief.rubrics.judging import ModelRubricJudge
    from debrief.rubrics.model_miner import ModelMiner
    from debrief.scoring.model_scorer import ModelChunkScorer
    from debrief.scoring.riding import RidingJudge, can_ride
    from debrief.scoring.scorer import scoring_fingerprint
    from debrief.signals.request import VERSION

    for each in sorted({name, *(judge.model for judge in common["judges"])}):
        models.get(each)
    ask = models.get(name).ask
    asked = f"temperature {models.temperature:g}"
    scorer = ModelChunkScorer(
        name,
        ask,
        # A marker of its own that is the same in every run: prompts are cached.
        lambda text: fence(text, marker_of(secret, text)),
        version=asked,
        judges=tuple(
            # Two stages read the one answer, so it has to be kept.
            judge
            for judge in common["judges"]
            if models.keeps_answers and can_ride(judge, name)
        ),
    )
    alone = DspyJudge(
        models.get,
        secret=secret,
        history=history,
        version=f"{FORM}, {VERSION}, {asked}",
    )
    return Evaluators(
        name=name,
        change_judge=alone,
        session_judge=RidingJudge(
            scorer,
            alone,
            version=f"{alone.version}, {version_of(SCORER)}",
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


def _chosen(judges: list[Judge], only: Sequence[str]) -> list[Judge]:
    names = [judge.name for judge in judges]
    for name in only:
        if name not in names:
            known = f"Known: {', '.join(names)}."
            raise ConfigurationError(f"judge {name}", "is not there", known)
    return [judge for judge in judges if not only or judge.name in only]
