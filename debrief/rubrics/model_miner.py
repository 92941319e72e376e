"""Mining with a language model: rubrics out of the best sessions, their evidence verified."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct, structs

from debrief.errors import DebriefError
from debrief.models.templates import (
    SUMMARIZER,
    extractor_for,
    load_template,
    render,
    version_of,
)
from debrief.models.usage import ModelUsage, total
from debrief.rubrics.asking import Ask, PromptedModel
from debrief.rubrics.contrast import values_of
from debrief.rubrics.evidence import evidence_in
from debrief.rubrics.model import DroppedRubric, ExtractedRubric, Mined, Rubric, UnminedSession
from debrief.rubrics.model_consolidation import consolidate_with_model
from debrief.rubrics.parsing import ParsedRubric, parse_rubrics
from debrief.rubrics.showing import BUDGET, parts_of, show
from debrief.scoring.model import SCORE_NAMES, ScoreName, SessionScores
from debrief.sessions.model import Session
from debrief.slugs import slugify

UNPROVEN = "what it quotes does not stand in the session"
_WORDS = (SUMMARIZER, "rubric_sources", "rubric_evidence", "rubric_data_notice")


class ModelExtractionOptions(Struct, frozen=True, kw_only=True):
    """Which sessions are mined, and how many rubrics are asked for."""

    share: float = 0.25
    """Of the scored sessions, the best ones."""
    minimum: int = 1
    """Sessions at least."""
    fewest: int = 3
    most: int = 7
    budget: int = BUDGET
    """Tokens of a session in one prompt; a longer one is mined in parts."""


class _MinedPart(Struct, frozen=True, kw_only=True):
    session: Session
    rubrics: tuple[ParsedRubric, ...] = ()
    failure: str = ""
    usage: ModelUsage = ModelUsage()


class ModelMiner:
    """Finds rubrics by asking a model about the best sessions.

    Args:
        name: the model's name, as rows tell it.
        ask: the door to the model.
        options: which sessions are mined, and how many rubrics are asked for.
        workers: calls at a time.
        secret: of this machine, as of ``PromptedModel``.
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
        self._model = PromptedModel(name, ask, secret)
        self._options = options or ModelExtractionOptions()
        self._workers = workers

    def extract(
        self,
        sessions: Iterable[Session],
        scores: Iterable[SessionScores],
        score_name: ScoreName,
        week: str,
        earlier: Iterable[Session] = (),
        earlier_scores: Iterable[SessionScores] = (),
    ) -> Mined:
        """Return what the model found in the week's best sessions, and can prove.

        The same rubric, by its name, found in several sessions is one row with the evidence of
        all. A rubric whose quotation does not stand in its session is dropped. A session that
        fails is reported and costs nothing else. Earlier sessions are not needed: a single good
        session is enough to read.
        """
        best = self._best(sessions, scores, score_name)
        parts = [part for each in best for part in parts_of(each, budget=self._options.budget)]
        with ThreadPoolExecutor(self._workers, thread_name_prefix="extraction") as pool:
            mined = list(pool.map(lambda part: self._mine(part, score_name), parts))
        rubrics, dropped = _proven(mined, score_name, week, self.name)
        return Mined(
            rubrics=tuple(rubrics),
            dropped=tuple(dropped),
            unmined=tuple(
                UnminedSession(
                    session_id=part.session.id,
                    score_name=score_name,
                    extractor=self.name,
                    reason=part.failure,
                )
                for part in mined
                if part.failure
            ),
            **total(part.usage for part in mined).columns(),
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
        return consolidate_with_model(extracted, score_name, self._model, list(previous))

    def _best(
        self, sessions: Iterable[Session], scores: Iterable[SessionScores], score_name: ScoreName
    ) -> list[Session]:
        values = values_of(scores, score_name)
        usable = {s.id: s for s in sessions if s.id in values and s.prompt_count}
        ranked = sorted(usable, key=lambda id_: (-values[id_], id_))
        count = max(self._options.minimum, round(self._options.share * len(ranked)))
        return [usable[id_] for id_ in ranked[:count]]

    def _mine(self, part: Session, score_name: str) -> _MinedPart:
        options = self._options
        first = part.turns[0].number if part.turns else 0
        marker = self._model.marker(part.id, part.digest, f"from {first}")
        shown = show(part, marker=marker, budget=options.budget)
        question = render(
            load_template(extractor_for(score_name)),
            {
                "chat_session": shown.pointer,
                "extraction_min_rubrics": options.fewest,
                "extraction_max_rubrics": options.most,
            },
        )
        prompt = f"{shown.text}\n\n{question.rstrip()}\n\n{load_template('rubric_evidence')}"
        try:
            rubrics, answer = self._model.read(
                prompt, parse_rubrics, about=f"about rubrics in session {part.id}"
            )
        except DebriefError as error:
            return _MinedPart(session=part, failure=str(error))
        return _MinedPart(session=part, rubrics=tuple(rubrics[: options.most]), usage=answer.usage)


def _proven(
    mined: Sequence[_MinedPart], score_name: ScoreName, week: str, model: str
) -> tuple[list[ExtractedRubric], list[DroppedRubric]]:
    rows: dict[str, ExtractedRubric] = {}
    dropped: list[DroppedRubric] = []
    for part, parsed in ((one, rubric) for one in mined for rubric in one.rubrics):
        evidence = evidence_in(parsed.evidence, part.session)
        if not evidence:
            dropped.append(
                DroppedRubric(
                    score_name=score_name, extractor=model, name=parsed.name, reason=UNPROVEN
                )
            )
            continue
        key = slugify("-".join(parsed.name.casefold().split()))
        row = ExtractedRubric(
            id=f"{week}.{score_name}.{key}",
            score_name=score_name,
            week=week,
            name=parsed.name,
            description=parsed.description,
            scoring_criteria=parsed.scoring_criteria,
            evidence=evidence,
            extractor=model,
            best_count=1,
            sessions=(part.session.id,),
        )
        rows[row.id] = _joined(rows[row.id], row) if row.id in rows else row
    return list(rows.values()), dropped


def _joined(first: ExtractedRubric, again: ExtractedRubric) -> ExtractedRubric:
    sessions = tuple(dict.fromkeys((*first.sessions, *again.sessions)))
    return structs.replace(
        first,
        evidence=tuple(dict.fromkeys((*first.evidence, *again.evidence))),
        sessions=sessions,
        best_count=len(sessions),
    )
