"""Consolidation with a language model: many mined rubrics become five to ten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import structs

from debrief.models.answers import refuse
from debrief.models.fencing import defuse, defuse_line
from debrief.models.templates import SUMMARIZER, load_template, render
from debrief.rubrics.asking import PromptedModel
from debrief.rubrics.consolidation import FEWEST, MOST, key_of
from debrief.rubrics.linting import alike, unanchored
from debrief.rubrics.model import ExtractedRubric, Rubric
from debrief.rubrics.parsing import ParsedRubric, ParsedRubricSet, parse_rubric_set
from debrief.rubrics.showing import BUDGET, show_rubrics
from debrief.scoring.model import ScoreName
from debrief.tokens import count_tokens

_SAME_RUBRIC = 0.5
_SOME_KINSHIP = 0.2


def consolidate_with_model(
    extracted: Iterable[ExtractedRubric],
    score_name: ScoreName,
    model: PromptedModel,
    previous: Sequence[Rubric] = (),
    *,
    budget: int = BUDGET,
) -> list[Rubric]:
    """Merge mined rubrics into the final set of a score name, the heaviest first.

    When they do not fit one call, they are merged batch by batch, and the results once more. A
    set whose scale has points without a text is sent back once with what was wrong.

    Args:
        extracted: of all weeks; other score names are left out.
        score_name: of the set.
        model: asked for it.
        previous: the set before. A rubric that says the same as one of it keeps its key, so that
            its scores form a series.
        budget: tokens of rubrics in one prompt.

    Raises:
        ModelError: no usable answer.
    """
    rows = sorted(
        (row for row in extracted if row.score_name == score_name),
        key=lambda row: (row.week, row.id),
    )
    if not rows:
        return []
    entries = [
        ParsedRubric(
            id=row.id,
            name=row.name,
            description=row.description,
            scoring_criteria=row.scoring_criteria,
            sources=(row.id,),
        )
        for row in rows
    ]
    while True:
        merged = [(batch, _merge(batch, score_name, model)) for batch in _batches(entries, budget)]
        again = [
            structs.replace(rubric, sources=_sources(rubric, batch))
            for batch, found in merged
            for rubric in found.rubrics
        ]
        if len(merged) == 1 or len(again) >= len(entries):
            break
        entries = [
            structs.replace(entry, id=f"merged_{place:03}") for place, entry in enumerate(again, 1)
        ]
    final = [
        (rubric, _sources(rubric, batch), found.consolidation_notes)
        for batch, found in merged
        for rubric in found.rubrics
    ]
    final.sort(key=lambda item: -item[0].weight)
    keys = _keys([rubric for rubric, _, _ in final], previous)
    sessions = {row.id: row.sessions for row in rows}
    return [
        Rubric(
            id=f"rubric_{place:03}",
            key=keys[place - 1],
            score_name=score_name,
            name=rubric.name,
            description=rubric.description,
            scoring_criteria=rubric.scoring_criteria,
            weight=rubric.weight,
            sources=sources,
            sessions=tuple(dict.fromkeys(id_ for row in sources for id_ in sessions[row])),
            notes=notes,
        )
        for place, (rubric, sources, notes) in enumerate(final[:MOST], 1)
    ]


def _batches(entries: Sequence[ParsedRubric], budget: int) -> list[list[ParsedRubric]]:
    batches: list[list[ParsedRubric]] = []
    size = 0
    for entry in entries:
        tokens = count_tokens(_json([entry]))
        if not batches or (size + tokens > budget and len(batches[-1]) >= 2):
            batches.append([])
            size = 0
        batches[-1].append(entry)
        size += tokens
    return batches


def _merge(
    entries: Sequence[ParsedRubric], score_name: ScoreName, model: PromptedModel
) -> ParsedRubricSet:
    text = _json(entries)
    shown, pointer = show_rubrics(text, model.marker(text))
    question = render(load_template(SUMMARIZER), {"all_rubrics": pointer})
    prompt = f"{shown}\n\n{question.rstrip()}\n\n{load_template('rubric_sources')}"
    sent_back = False

    def read(answer: str) -> ParsedRubricSet:
        nonlocal sent_back
        found = parse_rubric_set(answer, minimum=min(FEWEST, len(entries)), maximum=MOST)
        marks = [] if sent_back else unanchored(found.rubrics)
        if marks:
            sent_back = True
            problems = "; ".join(f"{mark.rubric_id}: {mark.message}" for mark in marks[:5])
            refuse(f"its scales lack anchors ({problems})")
        return found

    found, _ = model.read(prompt, read, about=f"about the rubrics for {score_name}")
    return found


def _json(entries: Sequence[ParsedRubric]) -> str:
    shown = [
        {
            "id": entry.id,
            "name": defuse_line(entry.name),
            "description": defuse(entry.description),
            "scoring_criteria": defuse(entry.scoring_criteria),
        }
        for entry in entries
    ]
    return msgspec.json.format(msgspec.json.encode(shown), indent=1).decode()


def _sources(rubric: ParsedRubric, batch: Sequence[ParsedRubric]) -> tuple[str, ...]:
    """Return what was merged into a rubric: as the model says, else what is worded most alike."""
    named = [entry for entry in batch if entry.id in rubric.sources]
    if not named:
        rated = [(alike(_words(rubric), _words(entry)), entry) for entry in batch]
        best = max(closeness for closeness, _ in rated)
        named = [entry for closeness, entry in rated if closeness >= max(_SOME_KINSHIP, best)]
    return tuple(dict.fromkeys(source for entry in named for source in entry.sources))


def _keys(rubrics: Sequence[ParsedRubric], previous: Sequence[Rubric]) -> list[str]:
    """Give each rubric the key of the earlier one that it is most alike, each key once."""
    pairs = sorted(
        (
            (-max(alike(new.name, old.name), alike(_words(new), _words(old))), place, old.key)
            for place, new in enumerate(rubrics)
            for old in previous
        ),
    )
    keys: dict[int, str] = {}
    for closeness, place, key in pairs:
        if -closeness >= _SAME_RUBRIC and place not in keys and key not in keys.values():
            keys[place] = key
    for place, rubric in enumerate(rubrics):
        if place not in keys:
            key = key_of("", rubric.name)
            while key in keys.values():
                key += "-2"
            keys[place] = key
    return [keys[place] for place in range(len(rubrics))]


def _words(rubric: ParsedRubric | Rubric) -> str:
    return f"{rubric.name} {rubric.description} {rubric.scoring_criteria}"
