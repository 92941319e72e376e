"""Review a chunk with a language model: the prompt, the call, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from debrief.judging.answers import JudgeAnswer
from debrief.judging.context import nothing_to_judge
from debrief.judging.model import Judge
from debrief.models import fencing
from debrief.models.answers import READ_ATTEMPTS, Answer, Question, ask_until_read
from debrief.models.fencing import bare_words, refuse_lifted
from debrief.models.templates import SCORER, load_template, render
from debrief.scoring.answer_form import answer_example, answer_schema
from debrief.scoring.answer_reading import read_answer
from debrief.scoring.dimensions import dimensions_of
from debrief.scoring.facets import rider_facets, rider_text
from debrief.scoring.llm_review import SessionReview
from debrief.scoring.model import AskedQuestion, Chunk, ChunkScores, Facet
from debrief.scoring.quotations import Recording, verified_review
from debrief.scoring.shown_session import shown_text
from debrief.scoring.traces import shows_task
from debrief.sessions.model import Session

Fence = Callable[[str], str]
"""Puts text from a session between markers that it cannot contain."""

_FROM_HERE = "## The session"
"""Where the template begins to be of one session."""
_JUDGES = """## Judges

Each judge below has instructions and a scale of its own. `plan_content` is all that the person \
asked for, `git_changes` all that the session changed, by edits and by commands. Answer each under \
"judges": "feedback" first, then "score", or null where there is nothing to look at."""


def scoring_question(
    session: Session,
    chunk: Chunk,
    fence: Fence | None = None,
    judges: Sequence[Judge] = (),
    questions: Sequence[AskedQuestion] = (),
) -> Question:
    """Return what is asked for one chunk of a session.

    What is the same for all sessions comes first, so that a provider need not read it anew.

    Args:
        session: whose task and signals every part's prompt carries.
        chunk: the part to be reviewed.
        fence: what puts text that was made safe between markers; a random one each time by
            default.
        judges: asked in the same call; see ``asked_judges``.
        questions: asked in the same call.
    """
    fence = fence or fencing.fence
    names = tuple(judge.name for judge in judges)
    constant, mark, asked = load_template(SCORER).partition(_FROM_HERE)
    return Question(
        constant=render(
            constant, {"judges": _judges_text(judges), "form": answer_example(names)}
        ).rstrip(),
        text=render(
            mark + asked,
            {
                "part": part_of(chunk),
                "data": fence(shown_text(session, chunk)),
                "questions": rider_text(questions),
            },
        ),
        form=answer_schema(names, questions=bool(questions)),
    )


def scoring_prompt(session: Session, chunk: Chunk, fence: Fence | None = None) -> str:
    """Return the question for one chunk as one text; arguments as of ``scoring_question``."""
    return scoring_question(session, chunk, fence).whole


def asked_judges(judges: Sequence[Judge], session: Session, chunk: Chunk) -> tuple[Judge, ...]:
    """Return the judges that are asked in the same call: those with something to judge, where the
    chunk is the whole of a session, its task included."""
    if not judges or chunk.count > 1 or not shows_task(session):
        return ()
    return tuple(judge for judge in judges if not nothing_to_judge(judge, session))


def _judges_text(judges: Sequence[Judge]) -> str:
    """Return the instructions of judges that are asked in the same call; empty without any."""
    if not judges:
        return ""
    bodies = (f'<judge name="{judge.name}">\n{judge.body.strip()}\n</judge>' for judge in judges)
    return "\n\n".join([_JUDGES, *bodies, ""])


def part_of(chunk: Chunk) -> str:
    """Return which part of its session a chunk is, in words for the model."""
    if chunk.count == 1:
        return "The whole session."
    which = f"Part {chunk.index + 1} of {chunk.count} of the session."
    where = {
        0: "It begins here and goes on in the next part: judge what was reached so far.",
        chunk.count - 1: "It ends here: requests and verdict are of the whole session, all else "
        "of this part; the parts before are reviewed on their own.",
    }.get(chunk.index, "It began before and goes on after: judge what is seen here.")
    return f"{which} {where} What the person said is of the whole session."


_AGAIN = (
    "\nYour answer before this could not be used: {}. "
    "Answer again with the one JSON object that is described above."
)

Ask = Callable[[Question], Answer]


def _no_questions(session: Session) -> Sequence[AskedQuestion]:
    return ()


class ReadAnswer(Struct, frozen=True, kw_only=True):
    """An answer for a part of a session, read and checked."""

    review: SessionReview
    facets: tuple[Facet, ...] = ()
    """Answers to the questions that were asked in the same call."""
    judged: Mapping[str, JudgeAnswer] = {}
    """What is said to the judges that were asked in the same call, by name."""
    answer: Answer


@dataclass(eq=False, repr=False)
class ModelChunkScorer:
    """Reviews chunks through ``ask``, the way to a language model."""

    model: str
    """The model's name, as rows have it."""
    ask: Ask
    """Sends a prompt and returns the answer; raises a DebriefError when there is none."""
    fence: Fence | None = None
    """Puts session text between markers."""
    attempts: int = READ_ATTEMPTS
    """Calls for one answer at most."""
    version: str = ""
    """Of how the model is asked, beside the prompt."""
    judges: Sequence[Judge] = ()
    """Asked in the same call, where a session fits into one."""
    questions: Callable[[Session], Sequence[AskedQuestion]] = _no_questions
    """Returns what else is asked of a session in the same call. No part of the fingerprint: a
    session that was reviewed is not reviewed again for a new question."""

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkScores:
        """Review one chunk.

        Raises:
            ModelError: no usable answer after all attempts.
            DebriefError: the model could not be asked.
        """
        found = self.read(session, chunk)
        return ChunkScores(
            index=chunk.index,
            tokens=chunk.tokens,
            own_tokens=chunk.own_tokens,
            dimension_scores=dimensions_of(found.review, found.review.verdict),
            review=found.review,
            facets=found.facets,
            **found.answer.usage.columns(),
        )

    def read(self, session: Session, chunk: Chunk) -> ReadAnswer:
        """Return the answer for a chunk, read and checked; errors as of ``score_chunk``."""
        judges = asked_judges(self.judges, session, chunk)
        questions = self.questions(session)
        question = scoring_question(session, chunk, self.fence, judges, questions)
        shown = bare_words(shown_text(session, chunk))
        names = [judge.name for judge in judges]

        def read(answer: Answer) -> ReadAnswer:
            said = read_answer(answer.text, names)
            refuse_lifted(answer.text, said.own_words or [answer.text], shown)
            review = verified_review(said, Recording(session, chunk, shown))
            today = datetime.now(UTC).date()
            facets = rider_facets(said.answers, questions, session, chunk, self.model, today)
            judged = {name: found for n, name in enumerate(names) if (found := said.judge(n))}
            return ReadAnswer(review=review, facets=tuple(facets), judged=judged, answer=answer)

        found, last = ask_until_read(
            lambda refusal: self.ask(
                replace(question, text=question.text + _AGAIN.format(refusal))
                if refusal
                else question
            ),
            read,
            model=self.model,
            about=f"for part {chunk.index + 1} of {chunk.count} of {session.id}",
            attempts=self.attempts,
        )
        return replace(found, answer=last)
