"""The rubric judge that is a language model."""

from __future__ import annotations

from threading import Lock

from msgspec import structs

from debrief.models.answers import refuse
from debrief.models.fencing import defuse, defuse_line
from debrief.models.injection import injection_signs
from debrief.models.templates import JUDGE, load_template, render, version_of
from debrief.rubrics.asking import Ask, PromptedModel
from debrief.rubrics.model import Rubric, RubricJudgement
from debrief.rubrics.parsing import parse_judgement
from debrief.rubrics.showing import BUDGET, Shown, is_lifted, show
from debrief.sessions.model import Session

_HELD = 128


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
    """

    def __init__(self, model: str, ask: Ask, *, secret: bytes = b"", budget: int = BUDGET) -> None:
        self.model = model
        self.version = version_of(JUDGE)
        """Of the judge template: other words give other scores."""
        self._model = PromptedModel(model, ask, secret)
        self._budget = budget
        self._shown: dict[tuple[str, str], Shown] = {}
        self._lock = Lock()

    def judge_rubric(self, rubric: Rubric, session: Session) -> RubricJudgement:
        """Judge one session.

        Raises:
            ModelError: no usable answer after three calls.
            DebriefError: the model could not be asked.
        """
        shown = self._show(session)
        question = render(
            load_template(JUDGE),
            {
                "rubric_name": defuse_line(rubric.name),
                "rubric_description": defuse(rubric.description),
                "scoring_criteria": defuse(rubric.scoring_criteria),
                "chat_session": shown.pointer,
            },
        )

        def read(answer: str) -> RubricJudgement:
            judgement = parse_judgement(answer)
            if is_lifted(answer, reasoning=judgement.reasoning, shown=shown, question=question):
                refuse("it repeats words of the recording and judges nothing")
            return judgement

        judgement, answer = self._model.read(
            f"{shown.text}\n\n{question}",
            read,
            about=f"about rubric {rubric.key} in session {session.id}",
        )
        words = (rubric.name, rubric.description, rubric.scoring_criteria)
        return structs.replace(
            judgement,
            **answer.usage.columns(),
            injection_suspected=shown.suspected or bool(injection_signs(words)),
        )

    def _show(self, session: Session) -> Shown:
        key = (session.id, session.digest)
        with self._lock:
            if key not in self._shown or not session.digest:
                marker = self._model.marker(*key)
                self._shown[key] = show(session, marker=marker, budget=self._budget)
                if len(self._shown) > _HELD:
                    del self._shown[next(iter(self._shown))]
            return self._shown[key]
