"""Pages of training sets: the list, and a set's card, lines and left-out sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, cast, get_args

import msgspec
from fastapi import APIRouter, HTTPException, Query, Response
from fastapi.responses import RedirectResponse
from msgspec import Struct

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.scoring.verdict import NOT_REVIEWED, VERDICT_LABELS
from debrief.sessions.model import Turn
from debrief.sessions.store import SESSIONS_TABLE
from debrief.training.held import Decision, decide, undecided
from debrief.training.manifest import manifest_pairs
from debrief.training.model import (
    INDEX,
    LINES,
    ChatMessage,
    LineRow,
    LineVerdict,
    SampleLine,
    TrainingSetRow,
    left_out_shown,
    not_trained_in,
    training_path,
)
from debrief.training.store import training_set_of
from debrief.view.links import page_path
from debrief.view.marks import Gap, clipped
from debrief.view.prompts import prompts_known
from debrief.view.templating import Form, Page, PageContext
from debrief.view.values import refused

router = APIRouter()
_NEAR = 25
"""Lines that are listed before and after the one that is shown."""
_MESSAGES = 150
"""Messages of a line that are shown at once."""
_HEAD, _TAIL = 6_000, 2_000
_HELD = 50
"""Shown at once of what is held back."""


class ChatView(Struct, frozen=True, kw_only=True):
    """A message of a line, as it is shown."""

    role: str
    turn: int | None
    """Of the session; None where its words are nowhere in it."""
    content: str
    thinking: str
    calls: tuple[tuple[str, str], ...]
    """Each one's name, and its arguments as indented JSON."""
    is_trained: bool
    why_not: str = ""

    @property
    def parts(self) -> list[str | Gap]:
        """Return the content as far as it is shown."""
        return clipped(self.content, _HEAD, _TAIL)


_VERDICTS: Mapping[str, str] = dict(VERDICT_LABELS.items()) | {"": NOT_REVIEWED}
"""Verdicts of lines, in words."""


class _Verdict(Struct, frozen=True):
    verdict: LineVerdict = ""


class _Turns(Struct, frozen=True):
    id: str
    turns: tuple[Turn, ...]


@router.get("/training")
def training_sets(page: Page) -> Response:
    """List the training sets, the largest first."""
    known: dict[str, tuple[tuple[str, str], TrainingSetRow, Counter[LineVerdict]]]
    known = page.request.app.state.__dict__.setdefault("training_sets", {})
    files, lines = page.lake.versions(INDEX), page.lake.versions(LINES)
    now = {"/".join(pair): pair for pair in manifest_pairs(page.lake) or ()}
    for key, pair in now.items():
        versions = files.get(key, ""), lines.get(key, "")
        if key not in known or known[key][0] != versions:
            row = training_set_of(page.lake, *pair)
            if row is None:  # not made yet, or by an earlier version
                known.pop(key, None)
                continue
            verdicts = Counter(row.verdict for row in page.lake.read(LINES, key, _Verdict))
            known[key] = versions, row, verdicts
    sets = [known[key][1:] for key in now if key in known]
    sets.sort(key=lambda each: (-each[0].samples, each[0].task))
    filled = [each for each in sets if each[0].samples]
    return page.render(
        "training/list.html",
        title="Training sets",
        names={prompt.fingerprint: prompt.name for prompt in prompts_known(page)},
        verdicts=_VERDICTS,
        filled=filled,
        empty=[(row, left_out_shown(row.reasons)) for row, _ in sets[len(filled) :]],
        held=sum(1 for _ in undecided(page.lake)),
        samples=sum(row.samples for row, _ in filled),
        tokens=sum(row.tokens for row, _ in filled),
    )


@router.get("/held")
def held_back(page: Page) -> Response:
    """Show what the last gate holds back, for a person to release or to remove."""
    waiting = list(undecided(page.lake))
    return page.render(
        "training/held.html", title="Held back", waiting=waiting[:_HELD], count=len(waiting)
    )


@router.post("/held")
def decide_held(page: Page, form: Form) -> Response:
    """Keep what a person decided on one, and show the next."""
    digest, verdict = form.get("digest", ""), form.get("verdict", "")
    known = {held.digest for _, held in undecided(page.lake)}
    if digest not in known or verdict not in get_args(Decision):
        raise HTTPException(400, "is not held back, or no decision")
    decide(page.lake, digest, cast("Decision", verdict), page.person.name)
    page.changed(f"held back: {digest[:12]} {verdict}")
    return RedirectResponse("/held", 303)


@router.get("/training/{task}/{pair}")
def training_set(
    page: Page,
    task: str,
    pair: str,
    line: Annotated[int, Query(ge=1)] = 1,
    start: Annotated[int, Query(ge=0)] = 0,
    raw: bool = False,
) -> Response:
    """Show what a training set holds, one line of it as chat, and what it leaves out.

    Args:
        page: made by the application.
        task: the set's.
        pair: its prompt and eval fingerprints.
        line: which line is shown, from 1.
        start: the first of its messages that is shown, from 0.
        raw: give out the line itself.
    """
    key = f"{task}/{pair}"
    is_current = (task, pair) in (manifest_pairs(page.lake) or ())
    row = training_set_of(page.lake, task, pair) if is_current else None
    if row is None:
        raise InputError(key, "is no training set", "Choose one of the list.")
    lines = list(page.lake.read(LINES, key, LineRow))
    if line > max(1, len(lines)):
        raise refused("line", str(line), f"is no line of this set, which has {len(lines)}")
    data = _bytes_of(page.lake, row, lines[line - 1]) if lines else b""
    if raw and data:
        return Response(data, media_type="application/json")
    try:
        sample = msgspec.json.decode(data, type=SampleLine) if data else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InputError(key, "is being written just now", "Load the page again.") from None
    messages = _chat(page, sample) if sample else []
    if start and start >= len(messages):
        raise refused("start", str(start), f"is no message of this line, which has {len(messages)}")
    card = page.lake.read_bytes(training_path(task, pair, ".card.md")) or b""
    first = max(0, line - 1 - _NEAR)
    return page.render(
        "training/set.html",
        title=f"Training set {task}",
        verdicts=_VERDICTS,
        row=row,
        address=page_path("training", task, pair),
        prompt=pair.rpartition("-")[0],
        card=card.decode("utf-8", "replace").partition("\n")[2],
        lines=list(enumerate(lines, 1))[first : line + _NEAR],
        count=len(lines),
        line=line,
        sample=sample,
        untrained=[f"turn {why.turn}: {why.text}" for why in not_trained_in(sample.messages)]
        if sample
        else [],
        messages=messages[start : start + _MESSAGES],
        start=start,
        left=max(0, len(messages) - start - _MESSAGES),
        sessions=page.index.with_ids(row.session_id for row in lines[first : line + _NEAR]),
    )


def _bytes_of(lake: Lake, row: TrainingSetRow, line: LineRow) -> bytes:
    with lake.open_bytes(training_path(row.task, row.fingerprint)) as file:
        if file is None:
            raise InputError(
                f"{row.task}/{row.fingerprint}", "has no file of lines", "Make it again."
            )
        file.seek(line.offset)
        return file.read(line.size)


def _chat(page: PageContext, sample: SampleLine) -> list[ChatView]:
    """Return a line's messages, with the reason of each that is not trained on."""
    turns = _turns(page, sample)
    return [_shown(message, turn) for message, turn in zip(sample.messages, turns, strict=True)]


def _turns(page: PageContext, sample: SampleLine) -> Iterator[int | None]:
    """Yield the turn of each message: that whose prompt the last request holds."""
    id_ = sample.metadata.session_id
    prompts = [
        (turn.number, turn.prompt.strip())
        for row in page.index.sessions("id = ?", (id_,))
        for session in page.lake.read(SESSIONS_TABLE, row.week, _Turns, ("id", {id_}))
        for turn in session.turns
    ]
    place, now = 0, None
    for message in sample.messages:
        if message.role == "user":
            for further, (number, prompt) in enumerate(prompts[place:], place):
                if prompt and prompt in message.content:
                    place, now = further + 1, number
                    break
        yield now


def _shown(message: ChatMessage, turn: int | None) -> ChatView:
    return ChatView(
        role=message.role,
        turn=turn,
        content=message.content,
        thinking=message.reasoning_content,
        calls=tuple(
            (call.function.name, msgspec.json.format(call.function.arguments))
            for call in message.tool_calls or ()
        ),
        is_trained=message.role == "assistant" and message.weight != 0,
        why_not=message.not_trained.text if message.not_trained else "",
    )
