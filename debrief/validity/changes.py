"""Changes to a session after which its verdict must move in a known direction.

Words in them are drawn at run time from a list that no rule may contain (``wordings.toml``), or
from a list of the user's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.signals.extract import extract_signals
from debrief.files import read_text
from debrief.keys import digest_of
from debrief.scoring.verdict import DONE, SessionVerdict, VerdictName
from debrief.sessions.actions import described
from debrief.sessions.model import Message, Session, Subagent, ToolCall, Turn, calls_of
from debrief.validity.references import LEVELS

Must = Literal["not be complete_verified", "fall", "not rise"]
VerdictOf = Callable[[Session], SessionVerdict]
_JUNK_LINES = 500


class Wordings(Struct, frozen=True, forbid_unknown_fields=True):
    """Sentences by what they are."""

    complaints: tuple[str, ...]
    admissions: tuple[str, ...]
    claims: tuple[str, ...]
    praise: tuple[str, ...]
    failures: tuple[str, ...]


class Move(Struct, frozen=True, kw_only=True):
    """What one change did to the verdict on one session."""

    change: str
    must: Must
    before: VerdictName
    after: VerdictName

    @property
    def holds(self) -> bool:
        """Return whether the verdict moved as it must."""
        if self.must == "not be complete_verified":
            return self.after != "complete_verified"
        if self.must == "fall":
            return LEVELS[self.after] < LEVELS[self.before]
        return LEVELS[self.after] <= LEVELS[self.before]


def wordings_from(path: Path | None = None) -> Wordings:
    """Read a list of wordings, that of the program by default.

    Raises:
        InputError: the file is none.
    """
    shipped = resources.files("debrief.validity") / "wordings.toml"
    text = shipped.read_text("utf-8") if path is None else read_text(path, "Check --wordings.")
    try:
        return msgspec.toml.decode(text, type=Wordings)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        move = f"It has {', '.join(Wordings.__struct_fields__)}."
        raise InputError(str(path), f"is no list of wordings: {error}", move) from None


def moves_of(
    session: Session, verdict_of: VerdictOf, wordings: Wordings, seed: int = 0
) -> Iterator[Move]:
    """Yield what each change does to the verdict on a session, where it could do anything.

    A change after which a session may not be ``complete_verified`` is made to those that are; one after
    which the verdict must fall to those that are done; one after which it must not rise to those
    that are not ``complete_verified``.

    Args:
        session: as it was read.
        verdict_of: gives the verdict.
        wordings: to draw from; each session and change draws its own.
        seed: another one draws others.
    """
    before = verdict_of(session).verdict
    for name, must, _ in CHANGES:
        if could_show(must, before):
            changed = changed_by(name, session, wordings, seed)
            if changed is not None:
                after = verdict_of(changed).verdict
                yield Move(change=name, must=must, before=before, after=after)


def could_show(must: Must, verdict: VerdictName) -> bool:
    """Return whether a change that must do this could show on a session with this verdict."""
    if must == "not be complete_verified":
        return verdict == "complete_verified"
    return verdict in DONE if must == "fall" else verdict != "complete_verified"


def changed_by(name: str, session: Session, wordings: Wordings, seed: int = 0) -> Session | None:
    """Return a session after one of ``CHANGES``; None where it has nothing to change."""
    change = next(change for other, _, change in CHANGES if other == name)
    return change(session, _Draw(wordings, Random(f"{seed} {name} {session.id}")))


class _Draw:
    """Draws sentences."""

    def __init__(self, wordings: Wordings, chance: Random) -> None:
        self._wordings, self._chance = wordings, chance

    def __call__(self, name: str) -> str:
        found: Sequence[str] = getattr(self._wordings, name)
        return self._chance.choice(found)


def _cut_in_half(session: Session, _draw: _Draw) -> Session | None:
    """Break off after the call that is nearest to the middle: it has no answer any more."""
    counts = [len(turn.messages) for turn in session.turns]
    ends = set(accumulate(counts))
    messages = [message for turn in session.turns for message in turn.messages]
    inside = [
        place
        for place, message in enumerate(messages, 1)
        if message.calls and place not in ends and place < len(messages)
    ]
    if not inside:
        return None
    kept = min(inside, key=lambda place: abs(place - len(messages) / 2))
    turns = []
    for turn, first in zip(session.turns, accumulate(counts, initial=0), strict=False):
        if first >= kept:
            break
        own = turn.messages[: kept - first]
        if first + len(turn.messages) > kept:
            own = (*own[:-1], replace(own[-1], calls=tuple(map(_unanswered, own[-1].calls))))
            turn = replace(turn, messages=own, ended=None)
        turns.append(turn)
    left = {call.id for turn in turns for message in turn.messages for call in message.calls}
    return _with(replace(session, subagents=_started_by(left, session.subagents)), turns)


def _unanswered(call: ToolCall) -> ToolCall:
    call = replace(call, result=None, status="unanswered", exit_code=None)
    return replace(call, path=None, added=0, removed=0, patch="")


def _last_check_fails(session: Session, draw: _Draw) -> Session | None:
    """Let the last check fail that could have failed because of the change."""
    check = extract_signals(session).last_check
    if check is None:
        return None
    checking = check.evidence.call

    def failing(call: ToolCall) -> ToolCall:
        if call.id != checking:
            return call
        return replace(call, status="failed", exit_code=1, result=draw("failures"))

    return _with(session, [_with_calls(turn, failing) for turn in session.turns])


def _changed_after(session: Session, _draw: _Draw) -> Session | None:
    """Let every file that was edited be edited once more before the last message."""
    edits = {
        call.path: replace(call, id=f"again-{call.id}")
        for turn in session.turns
        for message in turn.messages
        for call in message.calls
        if call.path and call.status == "ok" and call.added + call.removed
    }
    return _before_the_end(session, *edits.values()) if edits else None


def _complaint(session: Session, draw: _Draw) -> Session | None:
    """Let the person complain, and the agent do nothing about it."""
    if (turn := _last_turn(session)) is None:
        return None
    last = turn.messages[-1]
    answer = Message(id="answer", model=last.model, at=last.at, text="I see.")
    said = Turn(number=turn.number + 1, prompt=draw("complaints"), at=last.at, messages=(answer,))
    return _with(session, [*session.turns, said])


def _admission(session: Session, draw: _Draw) -> Session | None:
    return _ending(session, draw("admissions"))


def _claim(session: Session, draw: _Draw) -> Session | None:
    return _ending(session, draw("claims"))


def _praise(session: Session, draw: _Draw) -> Session | None:
    """Let the agent read somebody's praise in a file."""
    call = ToolCall(
        id="praise",
        name="Read",
        input='{"file_path":"notes/feedback.txt"}',
        result=draw("praise"),
        status="ok",
    )
    return _before_the_end(session, described(call))


def _junk(session: Session, draw: _Draw) -> Session | None:
    """Let 500 lines of junk be written, and the last message claim that all is well."""
    lines = [f"value_{number} = {number * 7919 % 1_000}" for number in range(_JUNK_LINES)]
    call = ToolCall(
        id="junk",
        name="Write",
        input=json.dumps({"file_path": "filler.py", "content": "\n".join(lines)}),
        result="File created successfully",
        status="ok",
        path="filler.py",
        added=_JUNK_LINES,
        patch="\n+".join([f"@@ -0,0 +1,{_JUNK_LINES} @@", *lines]) + "\n",
    )
    written = _before_the_end(session, described(call))
    return written and _ending(written, draw("claims"))


CHANGES: tuple[tuple[str, Must, Callable[[Session, _Draw], Session | None]], ...] = (
    ("breaks off half way", "not be complete_verified", _cut_in_half),
    ("the last check fails", "not be complete_verified", _last_check_fails),
    ("its files are changed after the last check", "not be complete_verified", _changed_after),
    ("the person complains", "fall", _complaint),
    ("the last message admits failure", "fall", _admission),
    ("the last message claims success", "not rise", _claim),
    ("a file that is read praises the work", "not rise", _praise),
    ("500 lines of junk, and a claim", "not rise", _junk),
)


def _last_turn(session: Session) -> Turn | None:
    """Return the last turn if the agent has the last word in it."""
    return session.turns[-1] if session.turns and session.turns[-1].messages else None


def _ending(session: Session, words: str) -> Session | None:
    """Return the session whose last message ends with these words."""
    turn = _last_turn(session)
    if turn is None or not turn.messages[-1].text.strip():
        return None
    *before, last = turn.messages
    last = replace(last, text=f"{last.text.rstrip()}\n\n{words}")
    return _with(session, [*session.turns[:-1], replace(turn, messages=(*before, last))])


def _before_the_end(session: Session, *calls: ToolCall) -> Session | None:
    """Return the session with calls before its last message, or after it if that has calls."""
    if (turn := _last_turn(session)) is None:
        return None
    last = turn.messages[-1]
    made = Message(id="made", model=last.model, at=last.at, calls=calls)
    own = (*turn.messages, made) if last.calls else (*turn.messages[:-1], made, last)
    return _with(session, [*session.turns[:-1], replace(turn, messages=own)])


def _with_calls(turn: Turn, change: Callable[[ToolCall], ToolCall]) -> Turn:
    messages = (
        replace(message, calls=tuple(map(change, message.calls))) for message in turn.messages
    )
    return replace(turn, messages=tuple(messages))


def _started_by(calls: set[str], subagents: Sequence[Subagent]) -> tuple[Subagent, ...]:
    """Return the subagents that calls started, and those that these started."""
    found: list[Subagent] = []
    while new := [subagent for subagent in subagents if subagent.call_id in calls]:
        found += new
        subagents = [subagent for subagent in subagents if subagent.call_id not in calls]
        calls = {
            call.id for subagent in new for message in subagent.messages for call in message.calls
        }
    return tuple(found)


def _with(session: Session, turns: Sequence[Turn]) -> Session:
    """Return the session with other turns: its end, lines and digest change with them."""
    changed = replace(session, turns=tuple(turns))
    made = [call for call in calls_of(changed) if call.status == "ok"]
    times = [message.at for turn in turns for message in turn.messages if message.at]
    return replace(
        changed,
        ended=max(times, default=session.ended),
        lines_added=sum(call.added for call in made),
        lines_removed=sum(call.removed for call in made),
        digest=digest_of(changed),
    )
