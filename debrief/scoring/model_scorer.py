"""A language model as scorer: what it is shown of a chunk and asked, and how its answer is read.

Without a key of one's own a coding agent's subagents answer the prompts, as files: the prompts of
all parts are written into a folder, and whoever reads them leaves an answer beside each. The
answers go through the same checks as a model's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.keys import digest_of
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
from debrief.models.fencing import bare_words, defuse, defuse_line
from debrief.models.templates import SCORER, load_template, render
from debrief.scoring.chunking import shortened, task_context, trace_text
from debrief.scoring.dimensions import BY_NAME, DIMENSIONS, Dimension, VerdictError, verdict_on
from debrief.scoring.model import Chunk, ChunkVerdicts, Trace, Verdict
from debrief.scoring.scorer import DEFAULT
from debrief.sessions.model import Session

Fence = Callable[[str], str]
"""Puts text from a session between markers that it cannot contain."""

_TASK_HEAD, _TASK_TAIL = 6_000, 2_000
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


def shown_text(session: Session, chunk: Chunk) -> str:
    """Return all that is shown of a session, made safe: task, facts and the chunk's traces.

    It goes into one block, and its headings are such that no text of a session has one like them.
    """
    task = defuse(shortened(task_context(session), _TASK_HEAD, _TASK_TAIL))
    parts = {
        "What the task is": task or "(there is no human message)",
        "Facts": session_facts(session),
        "Repeated for context": "".join(_traces(chunk.overlap)),
        "To be scored": "".join(_traces(chunk.traces)),
    }
    return "\n\n".join(f"### {name}\n\n{text.rstrip()}" for name, text in parts.items() if text)


def session_facts(session: Session) -> str:
    """Return what is known of a session beside its text, one fact a line."""
    minutes = (session.ended - session.started).total_seconds() / 60
    facts = {
        "Session": session.id,
        "Tool": f"{session.tool} {session.tool_version}".strip(),
        "Models": ", ".join(session.models) or "unknown",
        "Repository": session.repository or "unknown",
        "Human turns": str(session.prompt_count),
        "Duration": f"{minutes:.0f} minutes",
        "Lines added and removed": f"+{session.lines_added} -{session.lines_removed}",
        "Tokens in and out": f"{session.usage.input} and {session.usage.output}",
        "Subagents": str(len(session.subagents)),
        "Compactions": str(session.compactions),
    }
    return "\n".join(f"- {name}: {defuse_line(value)}" for name, value in facts.items())


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
        chunk.count - 1: "It ends here; the parts before are scored on their own.",
    }.get(chunk.index, "It began before and goes on after, so judge what is seen here.")
    return f"{which} {where}"


def _traces(traces: Iterable[Trace]) -> Iterator[str]:
    """Yield the traces as text; what was cut inside its text is made safe once more: a line may
    begin where none did before.
    """
    shown: int | None = None
    for trace in traces:
        if trace.continued and trace.number != shown:
            yield f"--- Turn {trace.number}, continued ---\n"
        shown = trace.number
        parts = (
            replace(part, text=defuse(part.text)) if part.continued else part
            for part in trace.observations
        )
        yield trace_text(replace(trace, observations=tuple(parts)))


def _criterion(dimension: Dimension) -> str:
    kind = "one of these categories" if dimension.kind == "categorical" else _A_NUMBER
    anchors = "\n".join(f"- {a.label or a.value}: {a.text}" for a in dimension.anchors)
    return f"### {dimension.name} ({kind})\n{dimension.question}\n{anchors}"


def _form() -> str:
    example = {
        dimension.name: {
            "score": " | ".join(filter(None, (a.label for a in dimension.anchors))) or _A_NUMBER,
            "rationale": "... (turn n)",
        }
        for dimension in DIMENSIONS
    }
    return orjson.dumps(example, option=orjson.OPT_INDENT_2).decode()


_SAME_HEIGHT: Mapping[tuple[str, str], str] = {
    ("security_compliance", "good"): "adequate",
    ("user_satisfaction", "adequate"): "good",
}
"""Words that stand at the same height of another dimension's scale: a slip with one meaning."""

_CITATION = re.compile(
    r"\bturns?\s+#?(\d{1,6}(?:\s*(?:,|and|to|&|-|–)\s*(?:turns?\s+)?#?\d{1,6}\b)*)", re.IGNORECASE
)
_LONGEST_RATIONALE = 4_000


def parse_verdicts(text: str | None, turns: Collection[int] | None = None) -> tuple[Verdict, ...]:
    """Return the six verdicts of an answer, in the order of the table.

    Other names beside the six are left aside.

    Args:
        text: the answer: one object by dimension, each with ``score`` and ``rationale``.
        turns: the turn numbers that the session has; when given, a rationale that cites
            another one is refused.

    Raises:
        AnswerError: the answer is cut short, has several objects that differ, lacks a dimension
            or a rationale, has a value that is not one of its dimension's, or cites a turn that
            is not there.
    """
    answer = answer_text(text)
    objects = [found for value in json_values(answer) if (found := _scores(value.value))]
    if is_cut_short(answer):
        refuse("it is cut short")
    if not objects:
        refuse("it holds no object with the six dimensions")
    if any(other != objects[0] for other in objects[1:]):
        refuse("it holds several objects that differ")
    verdicts = tuple(_verdict(dimension, objects[0]) for dimension in DIMENSIONS)
    if turns is not None:
        for verdict in verdicts:
            strange = sorted(set(cited_turns(verdict.rationale)) - set(turns))
            if strange:
                refuse(f"{verdict.dimension} cites turn {strange[0]}, which is not there")
    return verdicts


def cited_turns(rationale: str) -> Iterator[int]:
    """Yield the turn numbers that a rationale cites; of a range its two ends."""
    for citation in _CITATION.findall(rationale):
        yield from map(int, re.findall(r"\d+", citation))


def _scores(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    inner = next(iter(value.values())) if len(value) == 1 else None
    for found in (inner, value):
        if isinstance(found, dict) and not BY_NAME.keys().isdisjoint(found):
            return found
    return None


def _verdict(dimension: Dimension, scores: Mapping[str, Any]) -> Verdict:
    name = dimension.name
    said = scores.get(name)
    if said is None:
        refuse(f"it leaves out {name}")
    if not isinstance(said, dict) or "score" not in said:
        refuse(f'{name} is no object with "score" and "rationale"')
    rationale = said.get("rationale")
    if not isinstance(rationale, str) or not rationale.strip():
        refuse(f"{name} has no rationale")
    score = said["score"]
    if dimension.kind == "categorical" and isinstance(score, str):
        word = fold(score).strip().casefold()
        score = _SAME_HEIGHT.get((name, word), word)
    try:
        return verdict_on(name, score, rationale.strip()[:_LONGEST_RATIONALE])
    except VerdictError as error:
        refuse(str(error).rstrip("."))


_NO_ACCIDENT = 30
"""Characters from which on a rationale does not stand in a session by chance."""
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
    """Calls for one chunk at most."""

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkVerdicts:
        """Score one chunk.

        Raises:
            ModelError: no usable answer after all attempts.
            DebriefError: the model could not be asked.
        """
        prompt = scoring_prompt(session, chunk, self.fence)
        turns = turns_shown(session, chunk)
        shown = bare_words(shown_text(session, chunk))

        def ask(refusal: str) -> Answer:
            return self.ask(prompt + (_AGAIN.format(refusal) if refusal else ""))

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
    lifted = [said for said in map(bare_words, rationales) if said in shown]
    return len(lifted) == len(rationales) or any(len(said) >= _NO_ACCIDENT for said in lifted)


AGENT = "agent"
"""The model's name of answers that do not say who gave them."""
_MARK = "session.json"


class PartPrompt(Struct, frozen=True):
    """A part's prompt and the place of its answer."""

    path: Path
    answer: Path

    @property
    def is_answered(self) -> bool:
        """Return whether somebody left an answer."""
        return self.answer.is_file()


class HandScorer:
    """Takes the answers that stand in a folder; ``write_prompts`` made it."""

    def __init__(self, folder: Path, model: str = AGENT) -> None:
        self.model = model
        self._folder = folder

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkVerdicts:
        """Check one part's answer.

        Raises:
            InputError: there is none.
            ModelError: it cannot be used, and why.
        """
        prompt = _prompt(self._folder, chunk)
        try:
            text = prompt.answer.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise InputError(str(prompt.answer), f"cannot be read: {error.strerror}") from None
        said = ModelChunkScorer(self.model, lambda _: Answer(text=text), attempts=1)
        return said.score_chunk(session, chunk)


def write_prompts(session: Session, folder: Path) -> list[PartPrompt]:
    """Write the prompt of each part that has no answer yet; return all parts' prompts in order.

    Raises:
        InputError: the folder holds another session's prompts, or the session has no turns.
    """
    mark = {"session": session.id, "digest": digest_of(session.digest, DEFAULT)}
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / _MARK
    if kept.is_file() and orjson.loads(kept.read_bytes()) != mark:
        raise InputError(
            str(folder),
            "holds prompts of another session, or of this one before it went on",
            "Name another folder.",
        )
    chunks = DEFAULT.chunks_of(session)
    if not chunks:
        raise InputError(session.id, "the session has no turns")
    kept.write_bytes(orjson.dumps(mark))
    prompts = []
    for chunk in chunks:
        prompt = _prompt(folder, chunk)
        if not prompt.is_answered:
            text = scoring_prompt(session, chunk)
            prompt.path.write_text(text, encoding="utf-8", errors="replace")
        prompts.append(prompt)
    return prompts


def _prompt(folder: Path, chunk: Chunk) -> PartPrompt:
    name = f"part-{chunk.index + 1}-of-{chunk.count}"
    return PartPrompt(folder / f"{name}.md", folder / f"{name}.answer.json")
