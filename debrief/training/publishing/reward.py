"""For models that score: a session, a rubric, and the score from 1 to 5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from debrief.training.publishing.form import Form, Rubrics, StoredLine, template_messages


def convert(line: StoredLine, rubrics: Rubrics) -> Iterator[dict[str, Any]]:
    """Yield a line for each rubric score of the stored one."""
    rating = line.rating
    entries = [entry for entry in rating.scores if entry.kind == "rubric"]
    messages = template_messages(line.messages) if entries else []
    for entry in entries:
        score_name, _, key = entry.name.partition("/")
        rubric = rubrics.get(entry.name)
        yield {
            "messages": messages,
            "tools": bytes(line.tools).decode(),
            "score_name": score_name,
            "rubric_key": key,
            "rubric_name": rubric.name if rubric else key,
            "rubric": rubric.description if rubric else "",
            "criteria": rubric.scoring_criteria if rubric else "",
            "score": entry.value,
            "reasoning": entry.comment,
            "judged_by": entry.model,
            "session_id": rating.session_id,
        }


FORM = Form(
    name="reward",
    reader="whoever trains a model to score",
    columns={
        "messages": ["json"],
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
    },
    note=(
        "A line for each session and rubric that gave it a score, from 1 to 5. `rubric` and "
        "`criteria` are the rubric's texts as they stand now, empty where it has been replaced "
        "since."
    ),
    convert=convert,
)
