"""A language model as scorer of chunks: one call a chunk, asked again when refused."""

from __future__ import annotations

from collections.abc import Callable

from debrief.errors import ModelError
from debrief.models.answers import AnswerError
from debrief.models.language_model import Answer, accepted
from debrief.scoring.model import Chunk, ChunkVerdicts
from debrief.scoring.parsing import parse_verdicts
from debrief.scoring.prompt import Fence, scoring_prompt
from debrief.sessions.model import Session

ATTEMPTS = 3
"""Calls for one chunk at most: the first, and two with the refusal told."""


Ask = Callable[[str], Answer]


class ModelChunkScorer:
    """Scores chunks through ``ask``, the door to a language model.

    Args:
        model: the model's name, as rows tell it.
        ask: sends a prompt and returns the answer; raises a DebriefError when there is none.
        fence: what puts session text between markers.
    """

    def __init__(self, model: str, ask: Ask, fence: Fence | None = None) -> None:
        self.model = model
        self._ask = ask
        self._fence = fence

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkVerdicts:
        """Score one chunk.

        Raises:
            ModelError: no usable answer after three calls.
            DebriefError: the model could not be asked.
        """
        prompt = scoring_prompt(session, chunk, self._fence)
        turns = {turn.number for turn in session.turns} | {part.number for part in chunk.traces}
        answers: list[Answer] = []
        refusal = ""
        for _ in range(ATTEMPTS):
            answer = self._ask(f"{prompt}\n{_told(refusal)}" if refusal else prompt)
            answers.append(answer)
            try:
                verdicts = parse_verdicts(answer.text, turns)
            except AnswerError as error:
                refusal = error.reason
                continue
            whole = accepted(answers)
            return ChunkVerdicts(
                index=chunk.index,
                tokens=chunk.tokens,
                own_tokens=chunk.own_tokens,
                verdicts=verdicts,
                input_tokens=whole.input_tokens,
                output_tokens=whole.output_tokens,
                cost_usd=whole.cost_usd,
            )
        part = f"part {chunk.index + 1} of {chunk.count}"
        raise ModelError(
            self.model,
            f"gave no usable answer for {part} of {session.id} in {ATTEMPTS} calls: {refusal}",
            "It is asked again by the next run.",
        )


def _told(refusal: str) -> str:
    return (
        f"Your answer before this could not be used: {refusal}. "
        "Answer again with the one JSON object that is described above."
    )
