"""For models that score: a session, a rubric, and the score from 1 to 5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from debrief.rubrics.model import Rubric
from debrief.training.model import SampleMetadata
from debrief.training.publishing.columns import Columns, ListOf
from debrief.training.publishing.conversations import (
    ENCODER,
    Made,
    Message,
    StoredLine,
    rendered,
    template_problems,
    text_of,
)

Rubrics = Mapping[str, Rubric]
"""By ``<score name>/<key>``."""
LOWEST, HIGHEST = 1.0, 5.0
COLUMNS: Columns = {
    "messages": ListOf("json"),
    "tools": "string",
    "score_name": "string",
    "rubric_key": "string",
    "rubric_name": "string",
    "rubric": "string",
    "criteria": "string",
    "score": "float64",
    "reasoning": "string",
    "judged_by": "string",
    "session_id": "string",
}
NOTE = (
    "A line for each session and rubric that gave it a score, from 1 to 5. `rubric` and "
    "`criteria` are the rubric's texts as they stand now, empty where it has been replaced since."
)


class _Score(Struct, frozen=True, kw_only=True):
    score_name: str
    rubric_key: str
    rubric_name: str
    rubric: str
    criteria: str
    score: float
    reasoning: str
    judged_by: str
    session_id: str


class _Line(_Score, frozen=True, kw_only=True, forbid_unknown_fields=True):
    messages: list[Message]
    tools: str


_CHECKED = msgspec.json.Decoder(_Line)
_METADATA = msgspec.json.Decoder(SampleMetadata)


def convert(stored: StoredLine, rubrics: Rubrics) -> Iterator[Made]:
    """Yield a line for each rubric score of the stored one."""
    metadata = _METADATA.decode(stored.metadata)
    entries = [entry for entry in metadata.scores if entry.kind == "rubric"]
    if not entries:
        return
    messages, tools = rendered(stored), text_of(stored.tools)
    for entry in entries:
        score_name, _, key = entry.name.partition("/")
        rubric = rubrics.get(entry.name)
        made = _Score(
            score_name=score_name,
            rubric_key=key,
            rubric_name=rubric.name if rubric else key,
            rubric=rubric.description if rubric else "",
            criteria=rubric.scoring_criteria if rubric else "",
            score=entry.value,
            reasoning=entry.comment,
            judged_by=entry.model,
            session_id=metadata.session_id,
        )
        rest = b',"tools":%b,%b\n' % (tools, ENCODER.encode(made)[1:])
        yield (b'{"messages":', *messages, rest), _own_problems(made)


def problems(line: bytes) -> Iterator[str]:
    """Yield what is wrong with a line."""
    try:
        made = _CHECKED.decode(line)
    except msgspec.DecodeError as error:
        yield f"not a line of the expected shape: {error}"
        return
    yield from _own_problems(made)
    yield from template_problems(made.messages, made.tools)


def _own_problems(made: _Score) -> Iterator[str]:
    if not LOWEST <= made.score <= HIGHEST:
        yield f"a score of {made.score:g}"
    if not made.rubric_key or not made.score_name:
        yield "no rubric"
