"""Judging: every session on every rubric, what is already known not asked again."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec import structs

from debrief.digests import digest_of
from debrief.errors import DebriefError
from debrief.evaluation import evaluate, version_of
from debrief.rubrics.model import (
    NoOccasionError,
    Rubric,
    RubricEvaluation,
    RubricJudge,
)
from debrief.sessions.model import Session

_Item = tuple[Session, Rubric, RubricEvaluation]


def rubric_digest(rubric: Rubric, version: str = "") -> str:
    """Return the digest of what a judge reads of a rubric: name, description and criteria.

    Args:
        rubric: the rubric.
        version: of the words that it is put to the judge in; empty for a judge without any.
    """
    read = (rubric.name, rubric.description, rubric.scoring_criteria)
    return digest_of("rubric-v1", *read, *((version,) if version else ()))


def evaluate_rubrics(
    sessions: Iterable[Session],
    rubrics: Sequence[Rubric],
    judge_by: RubricJudge,
    previous: Iterable[RubricEvaluation] = (),
    *,
    workers: int = 1,
    only: Container[tuple[str, str]] | None = None,
) -> Iterator[RubricEvaluation]:
    """Judge sessions on rubrics, and yield the rows session by session in the order given.

    A row of ``previous`` is yielded again, without a call, when it did not fail and session,
    rubric and model are what they were. A failure is a row with its reason, and the next run
    tries it again.

    Args:
        sessions: may be lazy; twice as many as there are workers are held at once.
        rubrics: of one or several score names.
        judge_by: called from several threads when there are several workers.
        previous: rows of an earlier run.
        workers: calls at a time.
        only: the pairs of session id and rubric key that are wanted; all when None.
    """
    version = version_of(judge_by)
    ordered = sorted(rubrics, key=lambda rubric: (rubric.score_name, rubric.id, rubric.key))
    known = {_identity(row): row for row in previous if row.status != "failed"}

    def groups() -> Iterator[list[_Item]]:
        for session in sessions:
            yield [
                (session, rubric, _blank(session, rubric, judge_by.model, version))
                for rubric in ordered
                if only is None or (session.id, rubric.key) in only
            ]

    def stored(item: _Item) -> RubricEvaluation | None:
        session, rubric, blank = item
        row = known.get(_identity(blank))
        return row and structs.replace(row, rubric_id=rubric.id, started=session.started)

    return evaluate(groups(), stored, lambda item: _judge(*item, judge_by), workers=workers)


def _blank(session: Session, rubric: Rubric, model: str, version: str) -> RubricEvaluation:
    return RubricEvaluation(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        score_name=rubric.score_name,
        rubric_id=rubric.id,
        rubric_key=rubric.key,
        rubric_digest=rubric_digest(rubric, version),
        model=model,
        status="failed",
    )


def _identity(row: RubricEvaluation) -> tuple[str, ...]:
    return (
        row.session_id,
        row.session_digest,
        row.score_name,
        row.rubric_key,
        row.rubric_digest,
        row.model,
    )


def _judge(
    session: Session, rubric: Rubric, blank: RubricEvaluation, judge_by: RubricJudge
) -> RubricEvaluation:
    try:
        judgement = judge_by.judge_rubric(rubric, session)
    except NoOccasionError as nothing:
        return structs.replace(blank, status="no_occasion", reasoning=nothing.reason)
    except DebriefError as error:
        return structs.replace(blank, failure=str(error))
    return structs.replace(
        blank,
        status="ok",
        score=judgement.score,
        reasoning=judgement.reasoning,
        injection_suspected=judgement.injection_suspected,
        input_tokens=judgement.input_tokens,
        output_tokens=judgement.output_tokens,
        cost_usd=judgement.cost_usd,
    )
