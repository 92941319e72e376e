"""Pages of prompts (texts, sessions, differences) and of rubrics (effect, sessions for and
against)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from statistics import median
from typing import Any, Literal

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse
from msgspec import Struct

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.outcomes.store import label_values
from debrief.outcomes.verdicts import SCORES, verdicts_in
from debrief.rubrics.contrast import is_by_labels, is_yes_or_no, session_values
from debrief.rubrics.model import (
    ALL,
    EVALUATIONS,
    EXTRACTED,
    RUBRICS,
    SEARCHES,
    ExtractedRubric,
    Rubric,
    RubricEvaluation,
    RubricSearch,
)
from debrief.rubrics.shown import EFFECT_MEANS, meaning_of, rubric_shown
from debrief.scoring.model import SessionScores
from debrief.scoring.precedence import effective_rows
from debrief.scoring.verdict import COMPLETE
from debrief.snapshots.model import (
    NAMES,
    SNAPSHOTS,
    UNKNOWN,
    PromptUse,
    name_prompt,
    prompts_in_use,
)
from debrief.stats import Estimate, share_of
from debrief.view.index import Index
from debrief.view.indexed import SessionRow
from debrief.view.links import page_path
from debrief.view.query import to_look_at
from debrief.view.templating import Form, Page, PageContext, environment
from debrief.view.values import refused

router = APIRouter()
_SESSIONS, _SIDE, _QUOTES = 8, 8, 5
"""How many are shown: sessions of a prompt, sessions on each side of a rubric, quotes."""
_FEWEST = 5
"""Sessions with a verdict from which on a share of them has an interval."""
_CONTEXT = 3
_MOST_WORDS = 2_000
"""Of two lines that are compared word by word: more would take long."""
_ALIKE = 0.6
"""Share of words that two lines have in common, from which on the others are marked."""
_BETWEEN = 0.5
"""Between the value of a good session and of a bad one, where there are only these."""
_HIGH, _LOW = 4, 2
"""Levels from which on, and up to which, a session shows a rubric, or does not."""


class PromptRow(Struct, frozen=True, kw_only=True):
    """A fingerprint, as lists show it."""

    fingerprint: str
    name: str
    since: str
    """The day of its first session."""
    until: str
    """The day of its last one."""
    sessions: int
    with_verdict: int
    """Sessions with a verdict."""
    complete: int
    """Of those, the ones that are complete."""
    share: Estimate | None
    """Of complete ones among those with a verdict; None where these are too few to tell."""
    task: str
    """Of most of its sessions."""
    before: str = ""
    """The fingerprint that the same task had before."""


def prompts_known(page: PageContext) -> list[PromptUse]:
    """Return the prompts of the lake, read again only when its files changed."""
    now, state = (page.lake.versions(SNAPSHOTS), page.lake.versions(NAMES)), page.request.app.state
    if getattr(state, "prompts", (None,))[0] != now:
        state.prompts = now, prompts_in_use(page.lake)
    known: list[PromptUse] = state.prompts[1]
    return known


def prompt_name(page: PageContext, fingerprint: str) -> str:
    """Return the name of a fingerprint, for templates; itself when the lake has no such prompts."""
    named = (prompt.name for prompt in prompts_known(page) if prompt.fingerprint == fingerprint)
    return next(named, fingerprint)


environment().globals["prompt_name"] = prompt_name


def _rows(page: PageContext) -> list[PromptRow]:
    """Return all fingerprints, the one that was in force last first."""
    names = {prompt.fingerprint: prompt.name for prompt in prompts_known(page)}
    most_used = (
        "SELECT fingerprint, task FROM sessions GROUP BY 1, 2 ORDER BY count(*), min(started) DESC"
    )
    tasks = dict(map(tuple, page.index.select(most_used)))  # the last of a fingerprint stays
    rows: list[tuple[str, PromptRow]] = []
    before: dict[str, str] = {}
    complete_ones = ", ".join(f"'{name}'" for name in sorted(COMPLETE))
    for fingerprint, first, last, sessions, with_verdict, complete in page.index.select(
        "SELECT fingerprint, min(started), max(started), count(*), "
        f"sum(verdict NOT IN ('', 'undetermined')), sum(verdict IN ({complete_ones})) "
        "FROM sessions GROUP BY fingerprint ORDER BY min(started)"
    ):
        task = tasks[fingerprint]
        row = PromptRow(
            fingerprint=fingerprint,
            name=names.get(fingerprint, fingerprint),
            since=first[:10],
            until=last[:10],
            sessions=sessions,
            with_verdict=with_verdict,
            complete=complete,
            share=share_of(complete, with_verdict) if with_verdict >= _FEWEST else None,
            task=task,
            before=before.get(task, ""),
        )
        rows.append((last, row))
        if fingerprint != UNKNOWN:
            before[task] = fingerprint
    return [row for _, row in sorted(rows, key=lambda pair: pair[0], reverse=True)]


@router.get("/prompts")
def prompts(page: Page) -> Response:
    """List the fingerprints, with how their sessions went."""
    unknown = without_prompts(page.index)
    return page.render(
        "prompts/list.html", title="Prompts", prompts=_rows(page), without_prompts=unknown
    )


def without_prompts(index: Index, since: str = "") -> int:
    """Return of how many sessions nothing says which prompts they had, since a day in ISO's form.

    Those of weeks whose prompts no run has looked for yet are not among them.
    """
    looked_for = "SELECT week FROM versions WHERE table_name = 'session_metadata'"
    count = f"fingerprint = ? AND started >= ? AND week IN ({looked_for})"
    found = index.select(f"SELECT count(*) FROM sessions WHERE {count}", (UNKNOWN, since))
    return int(found[0][0])


@router.get("/prompts/{fingerprint}")
def prompt(page: Page, fingerprint: str) -> Response:
    """Show the texts of a prompt, and its sessions to look at."""
    known, rows = _find(page, fingerprint), _rows(page)
    return page.render(
        "prompts/prompt.html",
        title=known.name,
        prompt=known,
        row=next((row for row in rows if row.fingerprint == fingerprint), None),
        others=[row for row in rows if row.fingerprint not in (fingerprint, UNKNOWN)],
        looked_at=to_look_at(page.index, "fingerprint = ?", (fingerprint,), _SESSIONS),
    )


@router.post("/prompts/{fingerprint}/name")
def rename(page: Page, fingerprint: str, form: Form) -> Response:
    """Give a fingerprint a name."""
    _find(page, fingerprint)
    try:
        name_prompt(
            page.lake, page.settings.home, fingerprint, form.get("name", ""), page.person.name
        )
    except InputError as error:
        raise HTTPException(400, error.reason) from None
    return RedirectResponse(page_path("prompts", fingerprint), 303)


@router.get("/prompts/{before}/diff")
def compare(page: Page, before: str, to: str) -> Response:
    """Go to the difference from a prompt to one that was chosen."""
    if to not in (known := [prompt.fingerprint for prompt in prompts_known(page)]):
        raise refused("to", to, "is no prompt of this lake", known)
    return RedirectResponse(page_path("prompts", before, "diff", to), 303)


_Parts = tuple[tuple[str, bool], ...]


class PromptDiffLine(Struct, frozen=True):
    """A line of a difference: its numbers on both sides, and its words with what changed."""

    kind: Literal["same", "added", "removed", "gap"]
    old: int | None
    new: int | None
    parts: _Parts = ()


@router.get("/prompts/{before}/diff/{after}")
def difference(page: Page, before: str, after: str) -> Response:
    """Show what changed from one prompt to another, file by file."""
    old, new = _find(page, before), _find(page, after)
    rows = {row.fingerprint: row for row in _rows(page)}
    texts = [
        {
            "main prompt": known.snapshot.main,
            **{f"subagent {subagent.name}": subagent.text for subagent in known.snapshot.subagents},
        }
        for known in (old, new)
    ]
    files = [
        (name, list(prompt_diff(*(text.get(name, "").splitlines() for text in texts))))
        for name in dict.fromkeys((*texts[0], *texts[1]))
    ]
    return page.render(
        "prompts/diff.html",
        title="What changed",
        sides=[(old, rows.get(before)), (new, rows.get(after))],
        files=[(name, lines) for name, lines in files if lines],
    )


def _find(page: PageContext, fingerprint: str) -> PromptUse:
    for known in prompts_known(page):
        if known.fingerprint == fingerprint:
            return known
    raise InputError(fingerprint, "is no prompt of this lake", "Choose one of the list.")


def prompt_diff(old: Sequence[str], new: Sequence[str]) -> Iterator[PromptDiffLine]:
    """Yield the lines that changed, with a few around them; nothing when none did."""
    groups = difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT)
    for number, group in enumerate(groups):
        if number:
            yield PromptDiffLine("gap", None, None)
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                for place in range(old_to - old_from):
                    text = old[old_from + place]
                    at = old_from + place + 1, new_from + place + 1
                    yield PromptDiffLine("same", *at, ((text, False),))
                continue
            pairs = list(zip_longest(old[old_from:old_to], new[new_from:new_to]))
            words = [_changed_words(*pair) for pair in pairs]
            for place in range(old_to - old_from):
                yield PromptDiffLine("removed", old_from + place + 1, None, words[place][0])
            for place in range(new_to - new_from):
                yield PromptDiffLine("added", None, new_from + place + 1, words[place][1])


def _changed_words(old: str | None, new: str | None) -> tuple[_Parts, _Parts]:
    """Return two lines in parts, each with whether it changed; whole where they are unlike."""
    whole = ((old or "", False),), ((new or "", False),)
    if old is None or new is None:
        return whole
    before, after = (re.findall(r"\w+\s*|\W\s*", text) for text in (old, new))
    if len(before) + len(after) > _MOST_WORDS:
        return whole
    found = difflib.SequenceMatcher(None, before, after, autojunk=False)
    if found.ratio() < _ALIKE:
        return whole
    marked: tuple[list[tuple[str, bool]], ...] = ([], [])
    for tag, *ends in found.get_opcodes():
        for side, words, start in zip(marked, (before, after), (0, 2), strict=True):
            if text := "".join(words[slice(*ends[start : start + 2])]):
                side.append((text, tag != "equal"))
    return tuple(marked[0]), tuple(marked[1])


class SessionSide(Struct, frozen=True, kw_only=True):
    """A session that speaks for a rubric, or against it."""

    row: SessionRow
    level: int
    value: float
    """In the sense of the rubric's score name."""
    is_good: bool
    """Whether it is in the better half of the sessions judged."""
    reasoning: str
    turn: int | None
    """That the reasoning cites first."""


@router.get("/rubrics")
def rubrics(page: Page) -> Response:
    """Show the rubrics of each score name, with what unseen sessions say of them."""
    searches = {row.score_name: row for row in page.lake.read(SEARCHES, ALL, RubricSearch)}
    parts = []
    for name in dict.fromkeys([*searches, *page.lake.partitions(RUBRICS)]):
        own = [rubric_shown(rubric) for rubric in page.lake.read(RUBRICS, name, Rubric)]
        if own or name in searches:
            parts.append((name, meaning_of(name), searches.get(name), own))
    return page.render("rubrics/list.html", title="Rubrics", parts=parts, effect_means=EFFECT_MEANS)


@router.get("/rubrics/{score_name}/{key}")
def rubric(page: Page, score_name: str, key: str) -> Response:
    """Show a rubric, with what it was mined from and what other sessions say."""
    held = (
        row
        for name in page.lake.partitions(RUBRICS)
        if name == score_name
        for row in page.lake.read(RUBRICS, name, Rubric)
    )
    final = next((one for one in held if one.key == key), None)
    if final is None:
        raise InputError(
            f"{score_name}/{key}", "is no rubric of this lake", "Choose one of the list."
        )
    one = rubric_shown(final)
    mined = (
        row
        for week in page.lake.partitions(EXTRACTED)
        for row in page.lake.read(EXTRACTED, week, ExtractedRubric, ("id", one.sources))
    )
    quotes = list(dict.fromkeys(piece for row in mined for piece in row.evidence))[:_QUOTES]
    titles = page.index.with_ids({quote.session_id for quote in quotes})
    return page.render(
        "rubrics/rubric.html",
        title=one.name,
        rubric=one,
        meaning=meaning_of(one.score_name),
        effect_means=EFFECT_MEANS,
        quotes=[(quote, titles.get(quote.session_id)) for quote in quotes],
        sides=_sides(page, final),
    )


def _sides(page: PageContext, one: Rubric) -> dict[str, Any] | None:
    """Return what sessions say of a rubric that it was not mined from.

    Good sessions that show it and bad ones that do not speak for it, the others against it.
    """
    judged = {
        row.session_id: row
        for week in page.lake.partitions(EVALUATIONS)
        for row in page.lake.read(EVALUATIONS, week, RubricEvaluation, ("rubric_key", {one.key}))
        if row.score is not None
        and row.score_name == one.score_name
        and row.session_id not in one.sessions
    }
    values = _values(page.lake, one.score_name, judged)
    judged = {id_: row for id_, row in judged.items() if id_ in values}
    if not judged:
        return None
    two_sided = is_yes_or_no([values[id_] for id_ in judged], one.score_name)
    middle = _BETWEEN if two_sided else median(values[id_] for id_ in judged)
    ranked = sorted(judged, key=lambda id_: (values[id_], id_))
    from_ends = (ranked[n // 2 if n % 2 else -1 - n // 2] for n in range(len(ranked)))
    sides: dict[bool, list[str]] = {True: [], False: []}
    for id_ in from_ends:
        level = judged[id_].score or 0
        if not _LOW < level < _HIGH:
            sides[(values[id_] > middle) == (level >= _HIGH)].append(id_)
    rows = page.index.with_ids([*sides[True][:_SIDE], *sides[False][:_SIDE]])

    def shown(ids: list[str]) -> list[SessionSide]:
        return [
            SessionSide(
                row=rows[id_],
                level=judged[id_].score or 0,
                value=values[id_],
                is_good=values[id_] > middle,
                reasoning=judged[id_].reasoning,
                turn=next((place.turn for place in judged[id_].evidence), None),
            )
            for id_ in ids[:_SIDE]
            if id_ in rows
        ]

    return {
        "judged": len(judged),
        "for": (len(sides[True]), shown(sides[True])),
        "against": (len(sides[False]), shown(sides[False])),
    }


def _values(lake: Lake, score_name: str, sessions: Collection[str]) -> dict[str, float]:
    """Return the values that a score name gives to sessions, by id, as far as it has one."""
    if is_by_labels(score_name):
        return label_values(lake, {score_name})[score_name]
    verdicts = verdicts_in(lake)
    scores = (
        row
        for week in lake.partitions(SCORES)
        for row in lake.read(SCORES, week, SessionScores, ("session_id", sessions))
        if row.status == "ok"
    )
    found = (
        session_values(row, {score_name}, verdicts.get(row.session_id), {})
        for row in effective_rows(scores)
    )
    return {row.session_id: row.values[score_name] for row in found if row.values}
