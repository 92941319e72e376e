"""Extract and consolidate rubrics with a language model; what it quotes is verified."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
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
from debrief.rubrics.contrast import good_of
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
from debrief.sessions.model import Session
from debrief.tokens import count_tokens

UNPROVEN = "what it quotes does not stand in the session"
_WORDS = (SUMMARIZER, "rubric_sources", "rubric_evidence", "rubric_data_notice")


_SHARE = 0.25
"""Of the sessions of a week with a value, that rubrics are extracted from at most."""
_SAME_RUBRIC = 0.5
_SOME_KINSHIP = 0.2


@dataclass
class ModelMiner:
    """Extracts rubrics from good sessions, one session a prompt, and consolidates them.

    Args:
        name: the model's name, as rows tell it.
        ask: the door to the model.
        workers: calls at a time.
        secret: of this machine, as of ``PromptedModel``.
        budget: tokens of a session, or of rubrics, in one prompt.
        score_names: that are extracted by, for the version.
        fewest: rubrics to ask for from one session, at least.
        most: rubrics to ask for, and to take, from one session.
        prompts: a project's folder of templates, which win over the shipped ones.
    """

    name: str
    ask: Ask
    workers: int = 1
    secret: bytes = b""
    budget: int = BUDGET
    score_names: Sequence[str] = ()
    fewest: int = 3
    most: int = 7
    prompts: Path | None = None

    def __post_init__(self) -> None:
        names = dict.fromkeys(extractor_for(each) for each in self.score_names)
        templates = version_of(*names, *_WORDS, own=self.prompts)
        self.version = f"{templates}, {self.fewest} to {self.most}"
        """Of the templates in use and the number of rubrics: another one extracts anew."""
        self._model = PromptedModel(self.name, self.ask, self.secret)

    def extract(self, week: str, score_name: str, read_week: ReadWeek) -> Mined:
        """Return the rubrics that the model extracts from the week's good sessions, and can prove.

        The same rubric, by its name, extracted from several sessions is one row with the evidence
        of all. A rubric whose quotation does not stand in its session is dropped. A session that
        fails is reported and costs no other.
        """
        values = {
            session.id: scored.values[score_name]
            for session, scored in read_week(week)
            if session.prompt_count and score_name in scored.values
        }
        good = good_of(values, score_name, share=_SHARE)
        read = {session.id: session for session, _ in read_week(week) if session.id in good}
        with (
            ThreadPoolExecutor(self.workers, thread_name_prefix="extraction") as pool,
            waits_end_with_it(),
        ):
            answers = list(pool.map(lambda id_: self._extract(read[id_], score_name), good))
        rows: dict[str, ExtractedRubric] = {}
        dropped: list[DroppedRubric] = []
        unmined: list[UnminedSession] = []
        named: dict[str, Any] = {"score_name": score_name, "extractor": self.name}
        for session_id, answer in zip(good, answers, strict=True):
            if isinstance(answer, str):
                unmined.append(UnminedSession(session_id=session_id, reason=answer, **named))
                continue
            for parsed in answer:
                evidence = evidence_in(parsed.evidence, read[session_id])
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
                sessions = dict.fromkeys((*row.sessions, session_id))
                rows[id_] = structs.replace(
                    row,
                    evidence=tuple(dict.fromkeys((*row.evidence, *evidence))),
                    sessions=tuple(sessions),
                )
        return Mined(rubrics=tuple(rows.values()), dropped=tuple(dropped), unmined=tuple(unmined))

    def consolidate(
        self,
        extracted: Iterable[ExtractedRubric],
        score_name: str,
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
        self, entries: Sequence[ParsedRubric], score_name: str
    ) -> list[tuple[ParsedRubric, str]]:
        """Return the rubrics that some are merged into, each with the notes on how."""
        text = _json(entries)
        shown, pointer = show_rubrics(text, self._model.marker(text))
        question = render(load_template(SUMMARIZER, self.prompts), {"all_rubrics": pointer})
        prompt = f"{shown}\n\n{question.rstrip()}\n\n{load_template('rubric_sources')}"
        sent_back = False

        def read(answer: str) -> tuple[list[ParsedRubric], str]:
            nonlocal sent_back
            found = parse_rubric_set(answer, minimum=1, maximum=MOST)
            if sent_back:
                return found
            fewest = min(FEWEST, len(entries))
            if len(found[0]) < fewest:
                sent_back = True
                refuse(f"it has {len(found[0])} rubrics instead of {fewest} to {MOST}")
            marks = [mark for mark in lint(found[0]) if mark.rule == "unanchored"]
            if marks:
                sent_back = True
                problems = "; ".join(f"{mark.rubric_id}: {mark.message}" for mark in marks[:5])
                refuse(f"its scales lack anchors ({problems})")
            return found

        about = f"about the rubrics for {score_name}"
        (rubrics, notes), _ = self._model.read(prompt, read, about=about)
        return [(structs.replace(r, sources=_sources(r, entries)), notes) for r in rubrics]

    def _extract(self, session: Session, score_name: str) -> list[ParsedRubric] | str:
        """Return the rubrics of one session, or why there are none."""
        marker = self._model.marker(session.id, session.digest)
        shown = show(session, marker=marker, budget=self.budget)
        values = {
            "chat_session": shown.pointer,
            "extraction_min_rubrics": self.fewest,
            "extraction_max_rubrics": self.most,
        }
        question = render(load_template(extractor_for(score_name), self.prompts), values)
        asked = "\n\n".join([shown.text, question.rstrip(), load_template("rubric_evidence")])

        def parse(answer: str) -> list[ParsedRubric]:
            rubrics = parse_rubrics(answer)
            reasons = [rubric.description for rubric in rubrics]
            refuse_lifted(answer, reasons, shown.folded, question)
            return rubrics

        try:
            with asking_about(session.id):
                rubrics, _ = self._model.read(
                    asked, parse, about=f"about rubrics of {score_name} in {session.id}"
                )
        except DebriefError as error:
            return str(error)
        return rubrics[: self.most]


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
