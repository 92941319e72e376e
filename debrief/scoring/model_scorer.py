"""A language model as scorer: what it is shown of a chunk and asked, and how its answer is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from msgspec.structs import replace

from debrief.models import fencing
from debrief.models.answers import (
    READ_ATTEMPTS,
    Answer,
    answer_text,
    ask_until_read,
    fold,
    is_cut_short,
    json_values,
    refuse,
)
from debrief.models.citing import cited_turns
from debrief.models.fencing import bare_words, refuse_lifted
from debrief.models.templates import SCORER, load_template, render
from debrief.models.usage import total
from debrief.scoring.dimensions import (
    BY_NAME,
    DIMENSIONS,
    Dimension,
    VerdictError,
    combine,
    verdict_on,
)
from debrief.scoring.model import Chunk, ChunkVerdicts, Verdict
from debrief.scoring.shown_session import shown_text
from debrief.sessions.model import Evidence, Session

Fence = Callable[[str], str]
"""Puts text from a session between markers that it cannot contain."""

_A_NUMBER = "a number from 0 to 1"


def scoring_prompt(session: Session, chunk: Chunk, fence: Fence | None = None) -> str:
    """Return the prompt for one chunk of a session.

    Args:
        session: whose task and facts every part's prompt carries.
        chunk: the part to be scored.
        fence: what puts text that was made safe between markers; a random one each time by
            default.
    """
    fence = fence or fencing.fence
    values = {
        "data": fence(shown_text(session, chunk)),
        "part": _part(chunk),
        "criteria": criteria_text(),
        "form": _form(),
    }
    return render(load_template(SCORER), values)


@cache
def criteria_text() -> str:
    """Return the six dimensions with the anchors of every value."""
    return "\n\n".join(_criterion(dimension) for dimension in DIMENSIONS)


def _part(chunk: Chunk) -> str:
    if chunk.count == 1:
        return "The whole session."
    which = f"Part {chunk.index + 1} of {chunk.count} of the session."
    where = {
        0: "It begins here and goes on in the next part, so judge what was reached so far.",
        chunk.count - 1: "It ends here. task_completion is how the whole session ends; the other "
        "dimensions of the parts before are scored on their own.",
    }.get(chunk.index, "It began before and goes on after, so judge what is seen here.")
    return f"{which} {where} user_satisfaction is of all that the person said in the session."


def _criterion(dimension: Dimension) -> str:
    kind = "one of these categories" if dimension.kind == "categorical" else _A_NUMBER
    anchors = "\n".join(f"- {a.label or a.value}: {a.text}" for a in dimension.anchors)
    return f"### {dimension.name} ({kind})\n{dimension.question}\n{anchors}"


def _form() -> str:
    """Return the answer's form, a line a dimension: reason first, and the score last."""
    lines = []
    for dimension in DIMENSIONS:
        said = {
            "rationale": "... (turn n)",
            "evidence": [{"turn": "n", "quote": "..."}],
            "score": " | ".join(filter(None, (a.label for a in dimension.anchors))) or _A_NUMBER,
        }
        lines.append(f'  "{dimension.name}": {json.dumps(said)}')
    return "{\n" + ",\n".join(lines) + "\n}"


_SAME_HEIGHT: Mapping[tuple[str, str], str] = {
    ("security_compliance", "good"): "adequate",
    ("user_satisfaction", "adequate"): "good",
}
"""Words that stand at the same height of another dimension's scale: a slip with one meaning."""

_LONGEST_RATIONALE = 4_000
_LONGEST_QUOTE, _MOST_EVIDENCE = 300, 5


def parse_verdicts(
    text: str | None, turns: Collection[int] | None = None, shown: str = ""
) -> tuple[Verdict, ...]:
    """Return the six verdicts of an answer, in the order of the table.

    Other names beside the six are left aside. Quotations that do not stand in what was shown are
    dropped; without any evidence, the turns that the rationale cites are it.

    Args:
        text: the answer: one object by dimension, each with ``score`` and ``rationale`` in any
            order, and ``evidence`` if it has any. A score of null says that nothing speaks for
            or against.
        turns: the turn numbers that the session has; when given, a rationale that cites
            another one is refused.
        shown: the bare words of the recording; empty checks no quotation.

    Raises:
        AnswerError: the answer is cut short, has several objects that differ, lacks a dimension
            or a rationale, has a value that is not one of its dimension's, cites a turn that
            is not there, or quotes nothing that is.
    """
    answer = answer_text(text)
    objects = [found for value in json_values(answer) if (found := _scores(value.value))]
    if is_cut_short(answer):
        refuse("it is cut short")
    if not objects:
        refuse("it holds no object with the six dimensions")
    if any(other != objects[0] for other in objects[1:]):
        refuse("it holds several objects that differ")
    verdicts = tuple(_verdict(dimension, objects[0], shown) for dimension in DIMENSIONS)
    if turns is not None:
        for verdict in verdicts:
            cited = {*cited_turns(verdict.rationale), *(one.turn for one in verdict.evidence)}
            strange = sorted(cited - set(turns))
            if strange:
                refuse(f"{verdict.dimension} cites turn {strange[0]}, which is not there")
    return verdicts


def _scores(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    inner = next(iter(value.values())) if len(value) == 1 else None
    for found in (inner, value):
        if isinstance(found, dict) and not BY_NAME.keys().isdisjoint(found):
            return found
    return None


def _evidence(name: str, said: Mapping[str, Any], shown: str) -> tuple[Evidence, ...]:
    given = said.get("evidence")
    found = [
        Evidence(turn=each["turn"], quote=each["quote"].strip()[:_LONGEST_QUOTE])
        for each in (given if isinstance(given, list) else ())
        if isinstance(each, dict)
        and type(each.get("turn")) is int
        and isinstance(each.get("quote"), str)
    ]
    standing = [one for one in found if not shown or bare_words(one.quote) in shown]
    if found and not standing:
        refuse(f"{name} quotes words that do not stand in the recording")
    cited = dict.fromkeys(cited_turns(str(said["rationale"])))
    return tuple(standing[:_MOST_EVIDENCE]) or tuple(map(Evidence, cited))


def _verdict(dimension: Dimension, scores: Mapping[str, Any], shown: str) -> Verdict:
    name = dimension.name
    said = scores.get(name)
    if said is None:
        refuse(f"it leaves out {name}")
    if not isinstance(said, dict) or "score" not in said:
        refuse(f'{name} is no object with "score" and "rationale"')
    rationale = said.get("rationale")
    if not isinstance(rationale, str) or not rationale.strip():
        refuse(f"{name} has no rationale")
    score, why = said["score"], rationale.strip()[:_LONGEST_RATIONALE]
    evidence = _evidence(name, said, shown)
    if score is None:
        return Verdict(dimension=name, value=None, rationale=why, evidence=evidence)
    if dimension.kind == "categorical" and isinstance(score, str):
        word = fold(score).strip().casefold()
        score = _SAME_HEIGHT.get((name, word), word)
    try:
        return verdict_on(name, score, why, evidence)
    except VerdictError as error:
        refuse(str(error).rstrip("."))


_AGAIN = (
    "\nYour answer before this could not be used: {}. "
    "Answer again with the one JSON object that is described above."
)

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
    """Calls for one answer at most."""
    further: Sequence[Ask] = ()
    """Further doors: each gives one more independent answer to every question."""
    version: str = ""
    """Of how the model is asked, beside the prompt."""

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkVerdicts:
        """Score one chunk, by as many independent answers as there are doors.

        Raises:
            ModelError: no usable answer after all attempts.
            DebriefError: the model could not be asked.
        """
        prompt = scoring_prompt(session, chunk, self.fence)
        shown = bare_words(shown_text(session, chunk))
        said = [
            self._answer(ask, prompt, session, chunk, shown) for ask in (self.ask, *self.further)
        ]
        answers = tuple(verdicts for verdicts, _ in said)
        return ChunkVerdicts(
            index=chunk.index,
            tokens=chunk.tokens,
            own_tokens=chunk.own_tokens,
            verdicts=combine(answers) if self.further else answers[0],
            answers=answers if self.further else (),
            **total(answer.usage for _, answer in said).columns(),
        )

    def _answer(
        self, ask: Ask, prompt: str, session: Session, chunk: Chunk, shown: str
    ) -> tuple[tuple[Verdict, ...], Answer]:
        turns = turns_shown(session, chunk)

        def read(answer: Answer) -> tuple[Verdict, ...]:
            verdicts = parse_verdicts(answer.text, turns, shown)
            refuse_lifted(answer.text, [verdict.rationale for verdict in verdicts], shown)
            return _placed(verdicts, session)

        return ask_until_read(
            lambda refusal: ask(prompt + (_AGAIN.format(refusal) if refusal else "")),
            read,
            model=self.model,
            about=f"for part {chunk.index + 1} of {chunk.count} of {session.id}",
            attempts=self.attempts,
        )


def _placed(verdicts: Sequence[Verdict], session: Session) -> tuple[Verdict, ...]:
    """Return verdicts whose quotations name the tool calls that they stand in."""

    @cache
    def calls_in(number: int) -> list[tuple[str, str]]:
        turns = [turn for turn in session.turns if turn.number == number]
        calls = [each for turn in turns for message in turn.messages for each in message.calls]
        return [(call.id, bare_words(f"{call.input}\n{call.result}")) for call in calls]

    def placed(seen: Evidence) -> Evidence:
        quote = bare_words(seen.quote)
        found = (id_ for id_, text in calls_in(seen.turn) if quote and quote in text)
        return replace(seen, call=next(found, ""))

    return tuple(
        replace(verdict, evidence=tuple(map(placed, verdict.evidence))) for verdict in verdicts
    )


def turns_shown(session: Session, chunk: Chunk) -> set[int]:
    """Return the numbers of the turns that the prompt of a chunk shows something of."""
    first = next((turn.number for turn in session.turns if turn.number > 0), 0)
    return {first} | {trace.number for trace in (*chunk.overlap, *chunk.traces)}
