"""Group the friction that reviews noted in a repository: a model proposes, and a check decides.

The first question shows all notes of a repository, by number, and asks which of them are the same.
The second one shows their passages and asks whether the proposed line would have stopped each. A
friction keeps the sessions with a yes, and falls alone when fewer than two are left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BeforeValidator

from debrief.errors import ModelError
from debrief.friction.grouping import half_shared, is_alike
from debrief.friction.line_check import read_line
from debrief.friction.prompt_items import items_of
from debrief.friction.schema import FrictionEvent, RecurringFriction
from debrief.markdown import shorten
from debrief.models.answer_fields import AnswerPart, Text, read_form, word
from debrief.models.fencing import (
    bare_words,
    defuse_line,
    fence,
    injection_signs,
    make_visible,
)
from debrief.models.prompting import PromptedModel
from debrief.models.subject import asking_about
from debrief.models.templates import FRICTION_CHECK, FRICTION_GROUPS, load_template, render
from debrief.scoring.facets import LEAST_QUOTED

MOST_SESSIONS = 200
"""Sessions whose notes are shown, the newest."""
_MOST_FRICTIONS = 5
_MOST_PASSAGES = 6
"""Sessions of one friction whose passages are checked, the newest."""
_LONGEST_NOTE, _LONGEST_FILE = 200, 12_000
"""Characters of each text of a note, and of the prompt file."""


class RepositoryNotes(Struct, frozen=True, kw_only=True):
    """What reviews noted in the sessions of one repository."""

    repository: str
    events: tuple[FrictionEvent, ...]
    """Of reviews, the oldest session first."""
    prompt_file: str = ""
    """The newest CLAUDE.md or AGENTS.md that is known; empty where none is."""

    @property
    def numbered(self) -> dict[str, FrictionEvent]:
        """Return the notes by number: ``3.1`` is the first note of the third session."""
        by_session: dict[str, list[FrictionEvent]] = defaultdict(list)
        for event in self.events:
            by_session[event.session_id].append(event)
        newest = list(by_session.values())[-MOST_SESSIONS:]
        return {
            f"{session}.{note}": event
            for session, own in enumerate(newest, 1)
            for note, event in enumerate(own, 1)
        }

    @property
    def prompt_lines(self) -> dict[str, str]:
        """Return the items of the prompt file by number: ``L1``, ``L2``, …"""
        items = items_of(self.prompt_file[:_LONGEST_FILE])
        return {f"L{number}": item.text for number, item in enumerate(items, 1)}


class ProposedFriction(Struct, frozen=True, kw_only=True):
    """A group of notes that a model proposes, and the line that would stop it."""

    what: str
    line: str
    notes: tuple[str, ...]
    """Numbers of the notes."""


def group_notes(
    notes: RepositoryNotes,
    model: PromptedModel,
    passage_of: Callable[[FrictionEvent], str],
    known: Sequence[RecurringFriction] = (),
) -> list[RecurringFriction]:
    """Return the recurring friction that a model sees in a repository's notes.

    A friction that is known from before keeps its id and its line.

    Args:
        notes: of one repository; nothing is asked where fewer than two sessions have some.
        model: that is asked: once for groups, once for all passages of them.
        passage_of: returns the text around a note's words.
        known: what was found in the repository before.

    Raises:
        ModelError: no answer was usable.
        DebriefError: the model could not be asked.
    """
    numbered = notes.numbered
    sessions = _sessions_of(numbered.values())
    if len(sessions) < 2:
        return []
    about = f"recurring friction in {notes.repository}"
    with asking_about(*sessions):
        shown = "\n".join(_notes_shown(notes))
        proposed, _ = model.read(
            render(load_template(FRICTION_GROUPS), {"notes": _fenced(shown, model)}),
            lambda answer: read_groups(answer, notes),
            about=f"about {about}",
        )
        passages = {
            number: passage_of(numbered[number])
            for each in proposed
            for number in _one_of_each_session(each.notes, numbered)
        }
        if not passages:
            return []
        shown = "\n\n".join(_passages_shown(proposed, passages, notes))
        checked, _ = model.read(
            render(load_template(FRICTION_CHECK), {"passages": _fenced(shown, model)}),
            lambda answer: read_checks(answer, passages, notes),
            about=f"about passages of {about}",
        )
    made: list[RecurringFriction] = []
    for number, each in enumerate(proposed, 1):
        kept = {numbered[place].session_id for place in checked.stopped.intersection(each.notes)}
        events = [event for n in each.notes if (event := numbered[n]).session_id in kept]
        if len(kept) > 1:
            friction = RecurringFriction.of(
                events,
                by=model.name,
                what=each.what,
                line=each.line,
                existing=checked.existing.get(number, ""),
            )
            left = [row for row in known if row.id not in {done.id for done in made}]
            made.append(_known_again(friction, left))
    return made


def read_groups(answer: str, notes: RepositoryNotes) -> list[ProposedFriction]:
    """Return the groups of an answer that stand; one that does not falls alone.

    A group stands when its notes are known, belong to no group before it and to two sessions at
    least, and its line names nothing that they do not hold.

    Raises:
        AnswerError: the answer has no list of frictions.
    """
    numbered = notes.numbered
    used: set[str] = set()
    found: list[ProposedFriction] = []
    for group in read_form(_GroupsAnswer, answer, "frictions").frictions[:_MOST_FRICTIONS]:
        own = tuple(dict.fromkeys(group.notes))
        events = [numbered[number] for number in own if number in numbered]
        if len(events) < len(own) or used.intersection(own) or len(_sessions_of(events)) < 2:
            continue
        what = " ".join(group.what.split())[:_LONGEST_NOTE]
        if not what or injection_signs([what]) or make_visible(what) != what:
            continue
        try:
            line = read_line(group.line, list(map(_note_text, events)))
        except ModelError:
            continue
        used.update(own)
        found.append(ProposedFriction(what=what, line=line, notes=own))
    return found


class CheckedLines(Struct, frozen=True):
    """What a model says of proposed lines."""

    stopped: frozenset[str]
    """Numbers of the passages in which the line would have stopped the friction."""
    existing: Mapping[int, str]
    """The line of the prompt file that says the same, by the number of the proposed one."""


def read_checks(answer: str, passages: Mapping[str, str], notes: RepositoryNotes) -> CheckedLines:
    """Return what an answer says of proposed lines; a yes counts with words of its passage alone.

    Raises:
        AnswerError: the answer has no list of passages.
    """
    said = read_form(_ChecksAnswer, answer, "passages")
    lines = notes.prompt_lines
    stopped = frozenset(
        each.number
        for each in said.passages
        if each.stopped
        and len(quoted := bare_words(each.quote)) >= LEAST_QUOTED
        and quoted in bare_words(passages.get(each.number, ""))
    )
    named = {each.number: lines.get(each.existing.strip(" `."), "") for each in said.lines}
    return CheckedLines(stopped, named)


class _Group(AnswerPart):
    what: Text = ""
    notes: list[Text] = []
    line: Text = ""


class _GroupsAnswer(AnswerPart):
    frictions: list[_Group]


class _Checked(AnswerPart):
    number: Text = ""
    stopped: Annotated[bool, BeforeValidator(lambda said: said is True or word(said) == "true")]
    quote: Text = ""


class _CheckedLine(AnswerPart):
    number: int = 0
    existing: Text = ""


class _ChecksAnswer(AnswerPart):
    passages: list[_Checked]
    lines: list[_CheckedLine] = []


def _known_again(
    friction: RecurringFriction, known: Iterable[RecurringFriction]
) -> RecurringFriction:
    """Return a friction with the id and the line of the known one that it is, if it is one.

    It is when they share half of their events; or half of their sessions and a name in their
    lines, as sessions that are reviewed again have other notes.
    """
    for row in known:
        if half_shared(row.events, friction.events) or is_alike(row, friction):
            return replace(friction, id=row.id, what=row.what, line=row.line)
    return friction


def _sessions_of(events: Iterable[FrictionEvent]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(event.session_id for event in events))


def _one_of_each_session(
    numbers: Iterable[str], numbered: Mapping[str, FrictionEvent]
) -> list[str]:
    """Return a friction's first note of each of its newest sessions."""
    first: dict[str, str] = {}
    for number in numbers:
        first.setdefault(numbered[number].session_id, number)
    newest = sorted(first.values(), key=lambda number: int(number.partition(".")[0]))
    return newest[-_MOST_PASSAGES:]


def _notes_shown(notes: RepositoryNotes) -> Iterator[str]:
    for number, event in notes.numbered.items():
        yield f"{number} {_note_text(event)}"


def _note_text(event: FrictionEvent) -> str:
    what, instead = (shorten(text, _LONGEST_NOTE) for text in (event.what, event.instead))
    return f"{what} → {instead or '?'}"


def _passages_shown(
    proposed: Iterable[ProposedFriction], passages: Mapping[str, str], notes: RepositoryNotes
) -> Iterator[str]:
    for number, each in enumerate(proposed, 1):
        yield f"Line {number}: {each.line}"
        own = (place for place in each.notes if place in passages)
        yield from (f"Passage {place}:\n{passages[place]}" for place in own)
    if lines := notes.prompt_lines:
        yield "Lines of the file:\n" + "\n".join(f"{key} {text}" for key, text in lines.items())


def _fenced(text: str, model: PromptedModel) -> str:
    safe = "\n".join(map(defuse_line, text.split("\n")))
    return fence(safe, model.marker("friction", safe))
