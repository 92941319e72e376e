"""What the person did about the agent's work: corrected it, stopped it, refused a call.

Their words are kept as they said them. A correction or an interruption is called by what it names,
a file, a command or an identifier, so that two join only when they are about the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from debrief.markdown import shorten
from debrief.sessions.model import Evidence, Intervention, Turn
from debrief.signals.excerpts import label
from debrief.signals.user_feedback import approval_in, correction_in, own_words
from debrief.troubles.model import TroubleReason
from debrief.troubles.naming import asked_for, is_plain, name_of, pattern
from debrief.troubles.steps import CallMade, Course, Mishap
from debrief.troubles.what_worked import is_look_or_help

_WORDS = 300
_GO_ON = re.compile(
    r"\A(?:sorry|continu|go on|go ahead|resume|keep going|proceed|ok\b|yes\b|weiter|sigue|segui"
    r"|prosegui|продолж|続け|继续|繼續|계속)",
    re.I,
)
_ANSWER = re.compile(r"(?:no|nope|nah|wait|hold on|hmm+|actually|not|nein|nee)\b", re.IGNORECASE)
"""How a person begins who was asked, and chooses otherwise."""
_OFFER = re.compile(
    r"\b(?:want me to|would you like|do you want|shall I|should I (?:also|go|continue))\b"
    r"|\banything else\b",
    re.IGNORECASE,
)
"""A closing question that asks nothing of the work: an answer may well correct it."""
_AT_ONCE = timedelta(seconds=5)
_CODE = re.compile(r"`([^`\n]{2,60})`")
_NAMED = re.compile(
    r"(?<![\w/])(?:"
    r"[\w.@/-]*\w\.(?:[a-z]{1,4}x?|toml|json|yaml|lock|jsonl)\b(?![/\w])"  # a file
    r"|\w+_\w+|[a-z]+[A-Z]\w+|[A-Z]\w*[a-z]\w*[A-Z]\w*"  # an identifier
    r"|--[a-z][\w-]+"  # an option
    r")"
)
_CHECKS = ("lint", "type ?check", "format", "test", "build", "ci")
"""The narrowest first: of "build failing: lint", it is the linter."""
_CHECK_FAILS = re.compile(
    rf"\b(?:{'|'.join(_CHECKS)})(?:ing|er|s)?\b[^.\n]{{0,30}}?"
    r"\b(?:fail\w*|broken|red|unhappy|not (?:pass|work)\w*)\b"
    rf"|\b(?:fail\w*|broken)\b[: ]{{1,2}}(?:{'|'.join(_CHECKS)})",
    re.IGNORECASE,
)


def said(course: Course) -> Iterator[Mishap]:
    """Yield the person's corrections, interruptions and refusals, in order."""
    own = course.strands[0]
    for number, turn in enumerate(course.turns):
        after = course.turns[number + 1] if number + 1 < len(course.turns) else None
        steps = [step for step in own if step.turn == turn.number]
        yield from _interruptions(course, turn, after)
        before = course.turns[number - 1] if number else None
        yield from _corrections(course, turn, before, steps)
    for strand in course.strands:
        yield from _refusals(course, strand)


def _corrections(
    course: Course, turn: Turn, before: Turn | None, steps: Sequence[CallMade]
) -> Iterator[Mishap]:
    messages = course.messages_of_turn(turn.number)
    quote = correction_in(turn.prompt) if turn.number > 1 else None
    if quote and not (
        _ANSWER.match(quote) and before is not None and _ends_with_a_question(before)
    ):
        yield _correction(turn, quote, turn.prompt, turn.at, messages, steps)
    for deed in turn.interventions:
        if deed.kind == "remark" and (quote := correction_in(deed.text)):
            yield _correction(turn, quote, deed.text, deed.at, (), ())


def _ends_with_a_question(turn: Turn) -> bool:
    """Return whether the agent ended a turn with a question."""
    last = next((message.text for message in reversed(turn.messages) if message.text.strip()), "")
    return last.rstrip(" \n*_)").endswith("?") and not _OFFER.search(last[-300:])


def _correction(
    turn: Turn,
    quote: str,
    text: str,
    at: datetime | None,
    messages: tuple[int, ...],
    steps: Sequence[CallMade],
) -> Mishap:
    words = own_words(text)
    name = _named(quote, text)
    return Mishap(
        kind="correction",
        subject=f"“{name}”",
        name=name,
        at=at,
        evidence=Evidence(turn.number, "", quote),
        steps=tuple(steps),
        messages=messages,
        words=shorten(words, _WORDS),
    )


def _named(quote: str, text: str) -> str:
    """Return what their words name: a check that fails, something in code marks, a file or an
    identifier; else its sentence."""
    if _CHECK_FAILS.search(quote):
        named = (check for check in _CHECKS if re.search(rf"\b{check}", quote, re.IGNORECASE))
        return f"{next(named).replace(' ?', '')} fails"
    if code := _CODE.search(text.partition("\n")[0][:400]):
        return code[1].strip()
    found = _NAMED.search(quote)
    return found[0] if found else quote


def _interruptions(course: Course, turn: Turn, after: Turn | None) -> Iterator[Mishap]:
    refused = [deed.at for deed in turn.interventions if deed.kind == "rejection"]
    last = course.last_message.get(turn.number)
    for deed in turn.interventions:
        if deed.kind != "interruption" or any(_is_near(deed.at, at) for at in refused):
            continue
        words = own_words(after.prompt) if after is not None else ""
        if last is None or not words or _GO_ON.search(words) or approval_in(words):
            continue  # nothing says that the agent was wrong, or it had done nothing yet
        name = _named(shorten(words, 160), words)
        yield Mishap(
            kind="interruption",
            subject=f"the person stopped the agent: “{name}”",
            name=name,
            at=deed.at,
            evidence=Evidence(turn.number, "", shorten(words, 160)),
            messages=() if last is None else (last,),
            words=shorten(words, _WORDS),
        )


def _is_near(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= _AT_ONCE


def _refusals(course: Course, strand: Sequence[CallMade]) -> Iterator[Mishap]:
    """Yield refused calls: those of one message for the same are one refusal."""
    known: set[int] = set()
    for step in strand:
        call = step.call
        denied = call.status == "failed" and pattern("denied").search((call.result or "")[:400])
        if not (call.status == "rejected" or denied) or call.action == "ask":
            continue
        if (call.result or "").startswith("[Request interrupted by user"):
            continue  # it was stopped while it ran
        command = ""
        reason: TroubleReason = ""
        if call.action == "run":
            words = asked_for(call.command)
            reason = "unsaid" if is_plain(words) else ""  # it is not the program that was refused
            name, command = name_of(words) or call.name, shorten(call.command, 400)
        elif call.action == "edit":
            name = "an edit"
        elif call.action == "plan":
            name, reason = "a plan", "plan"
        else:
            name = call.name
        if step.message in known:
            continue  # one answer refused them all
        known.add(step.message)
        words_with = "" if denied else _words_with(course, step)
        if call.action == "plan" and not words_with:
            continue  # so is a plan recorded that a new session carries out
        if _GO_ON.search(words_with) or (call.action == "plan" and approval_in(words_with)):
            continue  # they had not meant to refuse it
        yield Mishap(
            kind="refused_permission",
            subject=f"{name}: refused",
            name=name,
            reason=reason,
            at=step.at,
            evidence=step.evidence(shorten(label(call), 120)),
            steps=(step,),
            command=command,
            file=step.below(call.path or next(iter(call.paths), "")),
            words=shorten(words_with, _WORDS),
            worked=name if command and _is_granted(name, strand) else "",
        )


def _is_granted(name: str, strand: Sequence[CallMade]) -> bool:
    """Return whether a command of that name went well elsewhere: then what it was to do was
    refused, and not the command."""
    asked = (
        asked_for(step.call.command)
        for step in strand
        if step.call.action == "run" and step.call.status == "ok" and step.call.command
    )
    return any(name_of(words) == name and not is_look_or_help(words) for words in asked if words)


def _words_with(course: Course, step: CallMade) -> str:
    """Return what the person said when they refused a call: with the refusal, else next."""
    turns = course.turns
    at = next((n for n, turn in enumerate(turns) if turn.number == step.turn), None)
    if at is None:
        return ""
    refusals = [deed for deed in turns[at].interventions if deed.kind == "rejection"]
    own = next((deed for deed in refusals if _is_after(deed, step)), None)
    if own is not None and own.text:
        return own.text
    is_last = course.last_message.get(step.turn) == step.message
    return own_words(turns[at + 1].prompt) if is_last and at + 1 < len(turns) else ""


def _is_after(deed: Intervention, step: CallMade) -> bool:
    return deed.at is None or step.at is None or deed.at >= step.at
