"""Prompts: each fingerprint with its name, texts and sessions, and the difference between two."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Literal

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse
from msgspec import Struct

from debrief.errors import InputError
from debrief.markdown import counted
from debrief.outcomes.giving import rater_of
from debrief.snapshots.model import UNKNOWN
from debrief.snapshots.prompts import NAMES, SNAPSHOTS, PromptUse, name_prompt, prompts_in_use
from debrief.training.leaderboard import LeaderboardRow, MeanEstimate, estimate
from debrief.view.links import diff_path, prompt_path
from debrief.view.templating import Form, Page, PageContext, environment

router = APIRouter()
environment().filters["counted"] = counted
LEADERBOARD, ALL = "fingerprint_leaderboard", "all"
_SHOWN = 5
_CONTEXT = 3
_MOST_WORDS = 2_000
"""Of two lines that are compared word by word: more would take long."""
_ALIKE = 0.6
"""Share of words that two lines have in common, from which on the others are marked."""


class PromptRow(Struct, frozen=True, kw_only=True):
    """A fingerprint, as lists show it."""

    fingerprint: str
    name: str
    since: str
    """The day of its first session."""
    until: str
    """The day of its last one."""
    sessions: int
    quality: MeanEstimate
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
    marks: dict[str, list[float]] = defaultdict(list)
    tasks: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    days: dict[str, list[str]] = defaultdict(list)
    for fingerprint, task, started, quality in page.index.select(
        "SELECT fingerprint, task, started, quality FROM sessions ORDER BY started"
    ):
        days[fingerprint].append(started)
        tasks[fingerprint][task] += 1
        if quality is not None:
            marks[fingerprint].append(quality)
    rows: list[PromptRow] = []
    last: dict[str, str] = {}
    for fingerprint, own in sorted(days.items(), key=lambda pair: pair[1][0]):
        task = max(tasks[fingerprint], key=lambda name: tasks[fingerprint][name])
        rows.append(
            PromptRow(
                fingerprint=fingerprint,
                name=names.get(fingerprint, fingerprint),
                since=own[0][:10],
                until=own[-1][:10],
                sessions=len(own),
                quality=estimate(marks[fingerprint], 1.0),
                task=task,
                before=last.get(task, ""),
            )
        )
        if fingerprint != UNKNOWN:
            last[task] = fingerprint
    return sorted(rows, key=lambda row: days[row.fingerprint][-1], reverse=True)


@router.get("/prompts")
def prompts(page: Page) -> Response:
    """List the fingerprints, with how their sessions went."""
    return page.render("prompts/list.html", title="Prompts", prompts=_rows(page))


@router.get("/prompts/{fingerprint}")
def prompt(page: Page, fingerprint: str) -> Response:
    """Show the texts of a prompt, its lines of the leaderboard, and its worst sessions."""
    known, rows = _find(page, fingerprint), _rows(page)
    return page.render(
        "prompts/prompt.html",
        title=known.name,
        prompt=known,
        row=next((row for row in rows if row.fingerprint == fingerprint), None),
        others=[row for row in rows if row.fingerprint not in (fingerprint, UNKNOWN)],
        lines=[
            row
            for row in page.lake.read(LEADERBOARD, ALL, LeaderboardRow)
            if row.prompt_fingerprint == fingerprint
        ],
        worst=page.index.sessions(
            "fingerprint = ? AND quality IS NOT NULL", (fingerprint,), "quality", _SHOWN
        ),
    )


@router.post("/prompts/{fingerprint}/name")
def rename(page: Page, fingerprint: str, form: Form) -> Response:
    """Give a fingerprint a name."""
    _find(page, fingerprint)
    try:
        rater = rater_of(page.settings)
        name_prompt(page.lake, page.settings.home, fingerprint, form.get("name", ""), rater)
    except InputError as error:
        raise HTTPException(400, error.reason) from None
    return RedirectResponse(prompt_path(fingerprint), 303)


@router.get("/prompts/{before}/diff")
def compare(before: str, to: str) -> Response:
    """Go to the difference from a prompt to one that was chosen."""
    return RedirectResponse(diff_path(before, to), 303)


class PromptDiffLine(Struct, frozen=True):
    """A line of a difference: its numbers on both sides, and its words with what changed."""

    kind: Literal["same", "added", "removed", "gap"]
    old: int | None
    new: int | None
    parts: tuple[tuple[str, bool], ...] = ()


@router.get("/prompts/{before}/diff/{after}")
def difference(page: Page, before: str, after: str) -> Response:
    """Show what changed from one prompt to another, file by file."""
    old, new = _find(page, before), _find(page, after)
    rows = {row.fingerprint: row for row in _rows(page)}
    texts = [
        {
            "main prompt": known.snapshot.main,
            **{f"subagent {each.name}": each.text for each in known.snapshot.subagents},
        }
        for known in (old, new)
    ]
    files = [
        (name, list(prompt_diff(*(each.get(name, "").splitlines() for each in texts))))
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


_Parts = tuple[tuple[str, bool], ...]


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
