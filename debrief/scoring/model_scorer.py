"""Score a chunk with a language model: the prompt, the call, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from debrief.judging.answers import JudgeAnswer
from debrief.judging.context import has_change
from debrief.judging.model import Judge
from debrief.models import fencing
from debrief.models.answers import READ_ATTEMPTS, Answer, Question, ask_until_read
from debrief.models.fencing import bare_words, refuse_lifted
from debrief.models.templates import SCORER, load_template, render
from debrief.models.usage import total
from debrief.scoring.answer_form import answer_example, answer_schema
from debrief.scoring.answer_reading import read_answer
from debrief.scoring.dimensions import DIMENSIONS, Dimension, combine
from debrief.scoring.llm_review import SessionReview, middle_reading
from debrief.scoring.model import Chunk, ChunkScorer, ChunkScores, DimensionScore
from debrief.scoring.quotations import Recording, checked
from debrief.scoring.shown_session import end_once_more, shown_text
from debrief.scoring.traces import shows_task
from debrief.sessions.model import Session

Fence = Callable[[str], str]
"""Puts text from a session between markers that it cannot contain."""

_A_NUMBER = "a number from 0 to 1, or null"
_SHORT = 3_000
"""Tokens of a chunk whose end is not said twice."""
_FROM_HERE = "## The session"
"""Where the template begins to be of one session."""
_JUDGES = """## Judges

Each judge below has instructions and a scale of its own. Where they name `plan_content`, take all \
that the person asked for in the session; where they name `git_changes`, take all that the session \
changed, by edits and by commands. Answer each under "judges": "feedback" first, then "score" on \
the judge's own scale, or null where there is nothing that the judge could look at. The form in \
which a judge wants its answer is this one, whatever its instructions say."""


def scoring_question(
    session: Session, chunk: Chunk, fence: Fence | None = None, judges: Sequence[Judge] = ()
) -> Question:
    """Return what is asked for one chunk of a session.

    What is the same for all sessions comes first, so that a provider need not read it anew.

    Args:
        session: whose task and facts every part's prompt carries.
        chunk: the part to be scored.
        fence: what puts text that was made safe between markers; a random one each time by
            default.
        judges: whose questions ride along, where the chunk is the whole session and something was
            changed in it.
    """
    fence = fence or fencing.fence
    riding = _riding(judges, session, chunk)
    names = tuple(judge.name for judge in riding)
    constant, mark, asked = load_template(SCORER).partition(_FROM_HERE)
    return Question(
        constant=render(
            constant,
            {
                "criteria": criteria_text(),
                "judges": _judges_text(riding),
                "form": answer_example(names),
            },
        ).rstrip(),
        text=render(
            mark + asked,
            {"part": _part(chunk), "data": fence(shown_with_end(session, chunk))},
        ),
        form=answer_schema(names),
    )


def scoring_prompt(session: Session, chunk: Chunk, fence: Fence | None = None) -> str:
    """Return the question for one chunk as one text; arguments as of ``scoring_question``."""
    return scoring_question(session, chunk, fence).whole


def shown_with_end(session: Session, chunk: Chunk) -> str:
    """Return what is shown of a session, with its end once more where the chunk holds it and is so
    long that its end could be lost on a weak reader.
    """
    shown = shown_text(session, chunk)
    if chunk.index < chunk.count - 1 or chunk.tokens < _SHORT:
        return shown
    return f"{shown}\n\n### The end once more\n\n{end_once_more(session)}"


@cache
def criteria_text() -> str:
    """Return the six dimensions with the anchors of every value."""
    return "\n\n".join(_criterion(dimension) for dimension in DIMENSIONS)


def _riding(judges: Sequence[Judge], session: Session, chunk: Chunk) -> tuple[Judge, ...]:
    """Return the judges whose questions ride along: all where the chunk is the whole of a session
    that changed something, its task included."""
    is_whole = chunk.count == 1 and shows_task(session)
    return tuple(judges) if judges and is_whole and has_change(session) else ()


def _judges_text(judges: Sequence[Judge]) -> str:
    """Return the instructions of judges whose questions ride along; empty without any."""
    if not judges:
        return ""
    bodies = (f'<judge name="{judge.name}">\n{judge.body.strip()}\n</judge>' for judge in judges)
    return "\n\n".join([_JUDGES, *bodies, ""])


def _part(chunk: Chunk) -> str:
    if chunk.count == 1:
        return "The whole session."
    which = f"Part {chunk.index + 1} of {chunk.count} of the session."
    where = {
        0: "It begins here and goes on in the next part: judge what was reached so far.",
        chunk.count - 1: "It ends here: requests, verdict and task_completion are of the whole "
        "session, all else of this part; the parts before are read on their own.",
    }.get(chunk.index, "It began before and goes on after: judge what is seen here.")
    return f"{which} {where} What the person said is of the whole session."


def _criterion(dimension: Dimension) -> str:
    kind = "one of these categories, or null" if dimension.kind == "categorical" else _A_NUMBER
    anchors = "\n".join(f"- {a.label or a.value}: {a.text}" for a in dimension.anchors)
    return f"### {dimension.name} ({kind})\n{dimension.question}\n{anchors}"


_AGAIN = (
    "\nYour answer before this could not be used: {}. "
    "Answer again with the one JSON object that is described above."
)

Ask = Callable[[Question], Answer]


class Read(Struct, frozen=True, kw_only=True):
    """One answer for a part of a session, read and checked."""

    reading: SessionReview
    verdicts: tuple[DimensionScore, ...]
    judged: Mapping[str, JudgeAnswer] = {}
    """What is said to the judges whose questions ride in the same call, by name."""
    answer: Answer


@dataclass(eq=False, repr=False)
class ModelChunkScorer:
    """Scores chunks through ``ask``, the door to a language model."""

    model: str
    """The model's name, as rows have it."""
    ask: Ask
    """Sends a prompt and returns the answer; raises a DebriefError when there is none."""
    fence: Fence | None = None
    """Puts session text between markers."""
    attempts: int = READ_ATTEMPTS
    """Calls for one answer at most."""
    further: Sequence[Ask] = ()
    """Further doors: each gives one more independent answer to every question."""
    version: str = ""
    """Of how the model is asked, beside the prompt."""
    judges: Sequence[Judge] = ()
    """Whose questions ride in the same call, where a session fits into one."""
    second_opinion: ChunkScorer | None = None
    """Asked as well where this one is unsure of a session."""

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkScores:
        """Score one chunk, by as many independent answers as there are doors.

        Raises:
            ModelError: no usable answer after all attempts.
            DebriefError: the model could not be asked.
        """
        said = self.read(session, chunk)
        answers = tuple(read.verdicts for read in said)
        several = len(said) > 1
        return ChunkScores(
            index=chunk.index,
            tokens=chunk.tokens,
            own_tokens=chunk.own_tokens,
            verdicts=combine(answers) if several else answers[0],
            answers=answers if several else (),
            bounds=tuple(read.reading.most for read in said) if several else (),
            reading=middle_reading([read.reading for read in said]),
            **total(read.answer.usage for read in said).columns(),
        )

    def read(self, session: Session, chunk: Chunk) -> list[Read]:
        """Return one answer of each door, read and checked; errors as of ``score_chunk``."""
        question = scoring_question(session, chunk, self.fence, self.judges)
        shown = bare_words(shown_text(session, chunk))
        return [
            self._answer(ask, question, session, chunk, shown) for ask in (self.ask, *self.further)
        ]

    def _answer(
        self, ask: Ask, question: Question, session: Session, chunk: Chunk, shown: str
    ) -> Read:
        judges = [judge.name for judge in _riding(self.judges, session, chunk)]

        def read(answer: Answer) -> Read:
            said = read_answer(answer.text, judges)
            why = [said.dimension(dimension.name).rationale for dimension in DIMENSIONS]
            refuse_lifted(answer.text, list(filter(None, why)), shown)
            reading, verdicts = checked(said, Recording(session, chunk, shown))
            judged = {name: found for n, name in enumerate(judges) if (found := said.judge(n))}
            return Read(reading=reading, verdicts=verdicts, judged=judged, answer=answer)

        found, last = ask_until_read(
            lambda refusal: ask(
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
