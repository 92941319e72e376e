"""Give each session a level on each rubric, by a model, never asking twice."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from threading import Lock

from msgspec import structs

from debrief.errors import DebriefError
from debrief.evaluation import evaluate, version_of
from debrief.keys import digest_of
from debrief.models.citing import cited_evidence
from debrief.models.fencing import defuse, defuse_line, injection_signs, refuse_lifted
from debrief.models.prompting import Ask, PromptedModel
from debrief.models.templates import JUDGE, load_template, render
from debrief.models.templates import version_of as template_version
from debrief.rubrics.asking import BUDGET, ShownSession, show
from debrief.rubrics.model import (
    Rubric,
    RubricEvaluation,
    RubricJudge,
    RubricJudgement,
)
from debrief.rubrics.parsing import parse_judgement
from debrief.sessions.model import Session

_Item = tuple[Session, Rubric, RubricEvaluation]


_ROW_FORM = "3"
"""Raised when rows get another field: all are judged again, by a model from its kept answers."""


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
    version = _ROW_FORM + version_of(judge_by)
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


_identity = attrgetter(
    *("session_id", "session_digest", "score_name", "rubric_key", "rubric_digest", "model")
)


def _judge(
    session: Session, rubric: Rubric, blank: RubricEvaluation, judge_by: RubricJudge
) -> RubricEvaluation:
    try:
        judgement = judge_by.judge_rubric(rubric, session)
    except DebriefError as error:
        return structs.replace(blank, failure=str(error))
    return structs.replace(blank, status="ok", **structs.asdict(judgement))


_HELD = 32


class ModelRubricJudge:
    """Holds sessions against rubrics with a language model; safe to use from threads.

    A prompt is the fenced session first and the judge template after it. So the question comes
    after the data, and all rubrics of one session share a prefix that a provider's prompt cache
    can serve.

    Args:
        model: the model's name, as rows tell it.
        ask: the door to it.
        secret: of this machine. With it a session's marker is the same in every run, so that
            answers can be cached by their prompt, and still nobody else can know it. Without it
            the marker is drawn anew each time a session is shown.
        budget: tokens of a session in one prompt.
        prompts: a project's folder of templates, which win over the shipped ones.
    """

    def __init__(
        self,
        model: str,
        ask: Ask,
        *,
        secret: bytes = b"",
        budget: int = BUDGET,
        prompts: Path | None = None,
    ) -> None:
        self.model = model
        self.version = template_version(JUDGE, own=prompts)
        """Of the judge template: other words give other scores."""
        self._template = load_template(JUDGE, prompts)
        self._model = PromptedModel(model, ask, secret)
        self._budget = budget
        self._shown: dict[tuple[str, str], ShownSession] = {}
        self._lock = Lock()

    def judge_rubric(self, rubric: Rubric, session: Session) -> RubricJudgement:
        """Judge one session.

        Raises:
            ModelError: no usable answer after three calls.
            DebriefError: the model could not be asked.
        """
        shown = self._show(session)
        values = {
            "rubric_name": defuse_line(rubric.name),
            "rubric_description": defuse(rubric.description),
            "scoring_criteria": defuse(rubric.scoring_criteria),
            "chat_session": shown.pointer,
        }
        question = render(self._template, values)

        def read(answer: str) -> RubricJudgement:
            judgement = parse_judgement(answer)
            refuse_lifted(answer, [judgement.reasoning], shown.folded, question)
            return judgement

        prompt, about = (
            f"{shown.text}\n\n{question}",
            f"rubric {rubric.key} in session {session.id}",
        )
        judgement, answer = self._model.read(prompt, read, about=f"about {about}")
        words = (rubric.name, rubric.description, rubric.scoring_criteria)
        return structs.replace(
            judgement,
            evidence=cited_evidence(judgement.reasoning),
            **answer.usage.columns(),
            injection_suspected=shown.suspected or bool(injection_signs(words)),
        )

    def _show(self, session: Session) -> ShownSession:
        key = (session.id, session.digest)
        with self._lock:
            if key not in self._shown or not session.digest:
                marker = self._model.marker(*key)
                self._shown[key] = show(session, marker=marker, budget=self._budget)
                if len(self._shown) > _HELD:
                    del self._shown[next(iter(self._shown))]
            return self._shown[key]
