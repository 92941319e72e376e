"""Mining and consolidating with a language model; what it quotes as evidence is verified."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import structs

from debrief.errors import DebriefError
from debrief.keys import slugify
from debrief.models.answers import refuse
from debrief.models.fencing import defuse, defuse_line, refuse_lifted
from debrief.models.prompting import Ask, PromptedModel
from debrief.models.subject import asking_about
from debrief.models.templates import SUMMARIZER, extractor_for, load_template, render, version_of
from debrief.retry import waits_end_with_it
from debrief.rubrics.asking import BUDGET, evidence_in, show, show_rubrics
from debrief.rubrics.contrast import Sides, score_of, sides_of, unmarked
from debrief.rubrics.linting import alike, lint, text_of
from debrief.rubrics.model import (
    FEWEST,
    MOST,
    DroppedRubric,
    ExtractedRubric,
    Mined,
    ReadWeek,
    Rubric,
    UnminedSession,
)
from debrief.rubrics.parsing import ParsedRubric, parse_rubric_set, parse_rubrics
from debrief.scoring.model import SCORE_NAMES, ScoreName
from debrief.sessions.model import Session
from debrief.tokens import count_tokens

UNPROVEN = "what it quotes does not stand in the session"
_WORDS = (SUMMARIZER, "rubric_sources", "rubric_evidence", "rubric_data_notice")


_SHARE = 0.25
"""Of the sessions with a value, on each side."""
_FEWEST_OF_PAIR, _MOST_OF_PAIR = 3, 7
_SAME_RUBRIC = 0.5
_SOME_KINSHIP = 0.2


@dataclass
class ModelMiner:
    """Finds candidates by asking a model what two sessions differ in.

    Each pair is a good one and a bad one, in an order that does not tell which is which, and the
    model is not told either: it proposes criteria, and trials decide.

    Args:
        name: the model's name, as rows tell it.
        ask: the door to the model.
        workers: calls at a time.
        secret: of this machine, as of ``PromptedModel``.
        budget: tokens of two sessions, or of rubrics, in one prompt.
    """

    name: str
    ask: Ask
    workers: int = 1
    secret: bytes = b""
    budget: int = BUDGET

    def __post_init__(self) -> None:
        self.version = version_of(*(extractor_for(each) for each in SCORE_NAMES), *_WORDS)
        """Of the templates: what was mined with other words is mined again."""
        self._model = PromptedModel(self.name, self.ask, self.secret)

    def extract(self, week: str, score_name: ScoreName, read_week: ReadWeek) -> Mined:
        """Return what the model found pairs of the week's sessions to differ in, and can prove.

        The same rubric, by its name, found in several pairs is one row with the evidence of all.
        A rubric whose quotation stands in neither session is dropped. A pair that fails is
        reported and costs nothing else. A week without a good session, or without a bad one, has
        nothing to contrast.
        """
        values = {
            session.id: value
            for session, scores in read_week(week)
            if session.prompt_count and (value := score_of(scores, score_name)) is not None
        }
        sides = sides_of(values, score_name, share=_SHARE, minimum=1)
        if sides is None:
            return Mined()
        most = min(len(sides.best), len(sides.worst), max(1, round(_SHARE * len(values))))
        sides = Sides(sides.best[:most], sides.worst[:most])
        ids = {*sides.best, *sides.worst}
        read = {session.id: session for session, _ in read_week(week) if session.id in ids}
        pairs = [Sides((good,), (bad,)) for good, bad in zip(sides.best, sides.worst, strict=True)]
        shown = [tuple(read[id_] for id_ in unmarked(pair)) for pair in pairs]
        with (
            ThreadPoolExecutor(self.workers, thread_name_prefix="extraction") as pool,
            waits_end_with_it(),
        ):
            answers = list(pool.map(lambda pair: self._mine(pair, score_name), shown))
        rows: dict[str, ExtractedRubric] = {}
        dropped: list[DroppedRubric] = []
        unmined: list[UnminedSession] = []
        named: dict[str, Any] = {"score_name": score_name, "extractor": self.name}
        for pair, answer in zip(pairs, answers, strict=True):
            both = (*pair.best, *pair.worst)
            if isinstance(answer, str):
                unmined += (UnminedSession(session_id=id_, reason=answer, **named) for id_ in both)
                continue
            for parsed in answer:
                evidence = [e for id_ in both for e in evidence_in(parsed.evidence, read[id_])]
                if not evidence:
                    dropped.append(DroppedRubric(name=parsed.name, reason=UNPROVEN, **named))
                    continue
                id_ = f"{week}.{score_name}.{_key_of(parsed.name)}"
                row = rows.get(id_) or ExtractedRubric(
                    id=id_,
                    week=week,
                    name=parsed.name,
                    description=parsed.description,
                    scoring_criteria=parsed.scoring_criteria,
                    **named,
                )
                mined = {*row.sessions, *both}
                rows[id_] = structs.replace(
                    row,
                    evidence=tuple(dict.fromkeys((*row.evidence, *evidence))),
                    sessions=tuple(each for each in (*sides.best, *sides.worst) if each in mined),
                    best_count=row.best_count + 1,
                    worst_count=row.worst_count + 1,
                )
        return Mined(rubrics=tuple(rows.values()), dropped=tuple(dropped), unmined=tuple(unmined))

    def consolidate(
        self,
        extracted: Iterable[ExtractedRubric],
        score_name: ScoreName,
        previous: Iterable[Rubric] = (),
    ) -> list[Rubric]:
        """Return the final set, the heaviest first.

        When the rubrics do not fit one call, they are merged batch by batch, and the results once
        more. A set whose scale has points without a text is sent back once with what was wrong.

        Raises:
            ModelError: no usable answer.
        """
        rows = sorted(extracted, key=lambda row: (row.week, row.id))
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
            batches = _batches(entries, self.budget)
            with asking_about(*{session for row in rows for session in row.sessions}):
                merged = [each for batch in batches for each in self._merge(batch, score_name)]
            if len(batches) == 1 or len(merged) >= len(entries):
                break
            entries = [
                structs.replace(rubric, id=f"merged_{place:03}")
                for place, (rubric, _) in enumerate(merged, 1)
            ]
        merged.sort(key=lambda item: -item[0].weight)
        keys = _keys([rubric for rubric, _ in merged], list(previous))
        sessions = {row.id: row.sessions for row in rows}
        return [
            Rubric(
                id=f"rubric_{place:03}",
                key=key,
                score_name=score_name,
                name=rubric.name,
                description=rubric.description,
                scoring_criteria=rubric.scoring_criteria,
                weight=rubric.weight,
                sources=rubric.sources,
                sessions=tuple(dict.fromkeys(i for row in rubric.sources for i in sessions[row])),
                notes=notes,
            )
            for place, (key, (rubric, notes)) in enumerate(
                zip(keys[:MOST], merged, strict=False), 1
            )
        ]

    def _merge(
        self, entries: Sequence[ParsedRubric], score_name: ScoreName
    ) -> list[tuple[ParsedRubric, str]]:
        """Return the rubrics that some are merged into, each with the notes on how."""
        text = _json(entries)
        shown, pointer = show_rubrics(text, self._model.marker(text))
        question = render(load_template(SUMMARIZER), {"all_rubrics": pointer})
        prompt = f"{shown}\n\n{question.rstrip()}\n\n{load_template('rubric_sources')}"
        sent_back = False

        def read(answer: str) -> tuple[list[ParsedRubric], str]:
            nonlocal sent_back
            found = parse_rubric_set(answer, minimum=min(FEWEST, len(entries)), maximum=MOST)
            marks = [mark for mark in lint(found[0]) if mark.rule == "unanchored"]
            if marks and not sent_back:
                sent_back = True
                problems = "; ".join(f"{mark.rubric_id}: {mark.message}" for mark in marks[:5])
                refuse(f"its scales lack anchors ({problems})")
            return found

        about = f"about the rubrics for {score_name}"
        (rubrics, notes), _ = self._model.read(prompt, read, about=about)
        return [(structs.replace(r, sources=_sources(r, entries)), notes) for r in rubrics]

    def _mine(self, pair: Sequence[Session], score_name: str) -> list[ParsedRubric] | str:
        """Return what two sessions may differ in, or why there is nothing."""
        texts, words = [], []
        for label, session in zip("AB", pair, strict=True):
            marker = self._model.marker(session.id, session.digest)
            shown = show(session, marker=marker, budget=self.budget // 2)
            texts.append(f"Recording {label}\n\n{shown.text}")
            words.append(shown.folded)
        values = {
            "chat_session": "(They are the recordings A and B above.)",
            "extraction_min_rubrics": _FEWEST_OF_PAIR,
            "extraction_max_rubrics": _MOST_OF_PAIR,
        }
        question = render(load_template(extractor_for(score_name)), values)
        asked = "\n\n".join([*texts, question.rstrip(), load_template("rubric_evidence")])

        def parse(answer: str) -> list[ParsedRubric]:
            rubrics = parse_rubrics(answer)
            reasons = [rubric.description for rubric in rubrics]
            refuse_lifted(answer, reasons, "\n".join(words), question)
            return rubrics

        about = " and ".join(session.id for session in pair)
        try:
            with asking_about(*(session.id for session in pair)):
                rubrics, _ = self._model.read(asked, parse, about=f"about rubrics in {about}")
        except DebriefError as error:
            return str(error)
        return rubrics[:_MOST_OF_PAIR]


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
        rated = [(alike(text_of(rubric), text_of(entry)), entry) for entry in batch]
        best = max(closeness for closeness, _ in rated)
        named = [entry for closeness, entry in rated if closeness >= max(_SOME_KINSHIP, best)]
    return tuple(dict.fromkeys(source for entry in named for source in entry.sources))


def _keys(rubrics: Sequence[ParsedRubric], previous: Sequence[Rubric]) -> list[str]:
    """Give each rubric the key of the earlier one that it is most alike, each key once."""
    pairs = sorted(
        (
            (-max(alike(new.name, old.name), alike(text_of(new), text_of(old))), place, old.key)
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
            key = _key_of(rubric.name)
            while key in keys.values():
                key += "-2"
            keys[place] = key
    return [keys[place] for place in range(len(rubrics))]


def _key_of(name: str) -> str:
    return slugify("-".join(name.casefold().split()))
