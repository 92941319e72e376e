"""A language model as scorer of chunks: one call a chunk, asked again when refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from debrief.models.answers import fold, refuse
from debrief.models.fencing import BAR
from debrief.models.language_model import READ_ATTEMPTS, Answer, ask_until_read
from debrief.scoring.model import Chunk, ChunkVerdicts, Verdict
from debrief.scoring.parsing import parse_verdicts
from debrief.scoring.prompt import Fence, scoring_prompt, shown_text
from debrief.sessions.model import Session

_NO_ACCIDENT = 30
"""Characters from which on a rationale does not stand in a session by chance."""
_ESCAPED_SPACES = re.compile(r"\\+[nrt]|␤")
_TRACES = re.compile(rf"⟨[0-9A-F]{{4,6}}⟩|[\u2400-\u2424{BAR}\"'\\]")

Ask = Callable[[str], Answer]


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
    """Calls for one chunk at most."""

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkVerdicts:
        """Score one chunk.

        Raises:
            ModelError: no usable answer after all attempts.
            DebriefError: the model could not be asked.
        """
        prompt = scoring_prompt(session, chunk, self.fence)
        turns = turns_shown(session, chunk)
        shown = _folded(shown_text(session, chunk))

        def ask(refusal: str) -> Answer:
            return self.ask(f"{prompt}\n{_again(refusal)}" if refusal else prompt)

        def read(answer: Answer) -> tuple[Verdict, ...]:
            verdicts = parse_verdicts(answer.text, turns)
            if _is_lifted([verdict.rationale for verdict in verdicts], shown):
                refuse("it repeats words of the recording and judges nothing")
            return verdicts

        part = f"for part {chunk.index + 1} of {chunk.count} of {session.id}"
        verdicts, answer = ask_until_read(
            ask, read, model=self.model, about=part, attempts=self.attempts
        )
        return ChunkVerdicts(
            index=chunk.index,
            tokens=chunk.tokens,
            own_tokens=chunk.own_tokens,
            verdicts=verdicts,
            **answer.usage.columns(),
        )


def turns_shown(session: Session, chunk: Chunk) -> set[int]:
    """Return the numbers of the turns that the prompt of a chunk shows something of."""
    first = next((turn.number for turn in session.turns if turn.number > 0), 0)
    return {first} | {trace.number for trace in (*chunk.overlap, *chunk.traces)}


def _is_lifted(rationales: Sequence[str], shown: str) -> bool:
    """Return whether rationales are the recording's own words: then nobody judged anything."""
    lifted = [said for said in map(_folded, rationales) if said in shown]
    return len(lifted) == len(rationales) or any(len(said) >= _NO_ACCIDENT for said in lifted)


def _folded(text: str) -> str:
    """Fold away case, spaces, and every trace of a text's having been defused or put into JSON."""
    plain = _TRACES.sub("", _ESCAPED_SPACES.sub(" ", text))
    return " ".join(fold(plain).casefold().split())


def _again(refusal: str) -> str:
    return (
        f"Your answer before this could not be used: {refusal}. "
        "Answer again with the one JSON object that is described above."
    )
