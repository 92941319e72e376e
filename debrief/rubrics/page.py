"""The rubrics as a Markdown report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from debrief.reports import report
from debrief.rubrics.linting import lint
from debrief.rubrics.model import (
    ExtractedRubric,
    Rubric,
    RubricEvidence,
    RubricSearch,
)
from debrief.rubrics.shown import (
    EFFECT_MEANS,
    ShownRubric,
    meaning_of,
    rubric_shown,
)

_QUOTES = 3
"""Of what a rubric was mined from."""


def rubrics_markdown(
    rubrics: Sequence[Rubric],
    *,
    extracted: Iterable[ExtractedRubric] = (),
    searches: Iterable[RubricSearch] = (),
) -> str:
    """Return a page of rubrics, score name by score name, each set with the linter's marks.

    Args:
        rubrics: of one or several score names.
        extracted: what they were merged from; gives each rubric the quotes it rests on.
        searches: what the search came to for each score name.
    """
    searched = {search.score_name: search.said for search in searches}
    mined = {row.id: row for row in extracted}

    def quotes_of(rubric: ShownRubric) -> list[RubricEvidence]:
        rows = (mined[source] for source in rubric.sources if source in mined)
        return list(islice(dict.fromkeys(piece for row in rows for piece in row.evidence), _QUOTES))

    return report(
        "rubrics",
        parts=[
            _part(name, searched.get(name, ""), [r for r in rubrics if r.score_name == name])
            for name in dict.fromkeys((*searched, *(rubric.score_name for rubric in rubrics)))
        ],
        quotes_of=quotes_of,
        effect_means=EFFECT_MEANS,
    )


def _part(score_name: str, search: str, rubrics: Sequence[Rubric]) -> dict[str, Any]:
    shown = [rubric_shown(rubric) for rubric in rubrics]
    return {
        "title": score_name.replace("_", " ").capitalize(),
        "meaning": meaning_of(score_name).shown,
        "search": search,
        "rubrics": shown,
        "marks": lint(rubrics),
        "rows": [
            (
                rubric.name,
                f"{rubric.weight:.2f}",
                rubric.finding_shown,
                rubric.effect_shown,
                rubric.p_shown,
                rubric.sessions,
            )
            for rubric in shown
        ],
    }
