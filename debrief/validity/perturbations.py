"""Changes to a session of which it is known how a score must move, and cuts, which move nothing.

A change gives a session as a reader would have read it; None where it cannot be made. A cut
session is compared with the same session uncut.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from debrief.keys import digest_of
from debrief.markdown import table
from debrief.scoring.dimensions import BY_NAME, OVERALL, verdict_on
from debrief.scoring.model import Chunk, ChunkScorer, ChunkVerdicts, SessionScores, Verdict
from debrief.scoring.model_scorer import shown_text
from debrief.scoring.scorer import ChunkParameters, score_session
from debrief.sessions.actions import described
from debrief.sessions.model import Message, Session, Subagent, ToolCall, Turn, calls_of

_LEAST_MESSAGES = 4
_JUNK_LINES = 500
_STILL = " However, it still crashes and the tests fail. The task remains unsolved."
_UNABLE = "\n\nI was unable to solve this."
_THANKS = "Thanks anyway, you were very kind and helpful. Bye!"


class Perturbation(Struct, frozen=True):
    """A change, and what must follow."""

    name: str
    must: Literal["fall", "not rise"]
    change: Callable[[Session, Session], Session | None]
    """Takes the session and one of another task."""
    of_failures: bool = False
    """Made to failed sessions alone."""


def cut_in_half(session: Session, _: Session) -> Session | None:
    """Return the first half of a session's messages."""
    counts = [len(turn.messages) for turn in session.turns]
    if sum(counts) < _LEAST_MESSAGES:
        return None
    left = (sum(counts) + 1) // 2
    turns = [
        replace(turn, messages=turn.messages[: left - before], ended=None)
        for turn, before in zip(session.turns, accumulate(counts, initial=0), strict=False)
        if before < left
    ]
    kept = {call.id for turn in turns for message in turn.messages for call in message.calls}
    return _with(replace(session, subagents=_started_by(kept, session.subagents)), turns)


def take_other_work(session: Session, other: Session) -> Session | None:
    """Keep what was asked for, and put the work on another task below it."""
    asked = [turn for turn in session.turns if turn.number > 0]
    done = [turn for turn in other.turns if turn.number > 0]
    if not asked or not done:
        return None
    turns = [replace(done[0], prompt=asked[0].prompt), *done[1:]]
    return _with(replace(session, subagents=other.subagents), turns)


def write_junk(session: Session, _: Session) -> Session | None:
    """Let 500 lines of junk be written, and the last message claim that all is done."""
    if (turn := _last_turn(session)) is None:
        return None
    lines = [f"value_{number} = {number * 7919 % 1_000}" for number in range(_JUNK_LINES)]
    call = described(
        ToolCall(
            id="junk",
            name="Write",
            input=json.dumps({"file_path": "filler.py", "content": "\n".join(lines)}),
            result="File created successfully",
            status="ok",
            path="filler.py",
            added=_JUNK_LINES,
            patch="\n+".join([f"@@ -0,0 +1,{_JUNK_LINES} @@", *lines]) + "\n",
        )
    )
    last = turn.messages[-1]
    writing = Message(id="junk", model=last.model, at=last.at, calls=(call,))
    done = replace(writing, id="done", text="All done.", calls=())
    messages = (*turn.messages, writing, done)
    return _with(session, [*session.turns[:-1], replace(turn, messages=messages)])


def give_thanks(session: Session, _: Session) -> Session | None:
    """Let the person thank the agent at the end, whatever came of it."""
    if (turn := _last_turn(session)) is None:
        return None
    last = turn.messages[-1]
    answer = Message(id="answer", model=last.model, at=last.at, text="You're welcome.")
    thanks = Turn(number=turn.number + 1, prompt=_THANKS, at=last.at, messages=(answer,))
    return _with(session, [*session.turns, thanks])


def _admission(words: str) -> Callable[[Session, Session], Session | None]:
    """Return the change that lets the last message end with these words."""

    def admit(session: Session, _: Session) -> Session | None:
        turn = _last_turn(session)
        if turn is None or not turn.messages[-1].text.strip():
            return None
        *before, last = turn.messages
        last = replace(last, text=f"{last.text.rstrip()}{words}")
        return _with(session, [*session.turns[:-1], replace(turn, messages=(*before, last))])

    return admit


PERTURBATIONS = (
    Perturbation("cut in half", "fall", cut_in_half),
    Perturbation("failure admitted", "fall", _admission(_STILL)),
    Perturbation("failure admitted a paragraph later", "fall", _admission(_UNABLE)),
    Perturbation("work on another task", "fall", take_other_work),
    Perturbation("500 lines of junk, all done", "not rise", write_junk),
    Perturbation("thanks for a failure", "not rise", give_thanks, of_failures=True),
)


def _started_by(calls: set[str], subagents: Sequence[Subagent]) -> tuple[Subagent, ...]:
    """Return the subagents that calls started, and those that these started."""
    found: list[Subagent] = []
    while new := [each for each in subagents if each.call_id in calls]:
        found += new
        subagents = [each for each in subagents if each.call_id not in calls]
        calls = {call.id for each in new for message in each.messages for call in message.calls}
    return tuple(found)


def _last_turn(session: Session) -> Turn | None:
    """Return the last turn if the agent has the last word in it."""
    return session.turns[-1] if session.turns and session.turns[-1].messages else None


def _with(session: Session, turns: Sequence[Turn]) -> Session:
    """Return the session with other turns: its end, lines and digest change with them."""
    changed = replace(session, turns=tuple(turns))
    calls = [call for call in calls_of(changed) if call.status == "ok"]
    times = [message.at for turn in turns for message in turn.messages if message.at]
    return replace(
        changed,
        ended=max(times, default=session.ended),
        lines_added=sum(call.added for call in calls),
        lines_removed=sum(call.removed for call in calls),
        digest=digest_of(changed),
    )


BUDGETS = (2_000, 8_000, 20_000, 70_000)
"""Tokens that a chunk may have."""
_UNCUT = ChunkParameters(target=sys.maxsize)


class Movement(Struct, frozen=True, kw_only=True):
    """One score of one session, uncut and cut."""

    session_id: str
    budget: int
    """Tokens that a chunk might have."""
    chunks: int
    name: str
    """A dimension, or ``overall_quality``."""
    uncut: float | None
    cut: float | None

    @property
    def flipped(self) -> bool:
        """Whether cutting made another category of it."""
        categorical = self.name != OVERALL and BY_NAME[self.name].kind == "categorical"
        return categorical and self.cut != self.uncut

    @property
    def moved(self) -> float | None:
        """Return what cutting added; None when one of the two has no value."""
        return None if self.cut is None or self.uncut is None else self.cut - self.uncut


def chunk_flips(
    sessions: Iterable[Session], scorer: ChunkScorer, budgets: Sequence[int] = BUDGETS
) -> Iterator[Movement]:
    """Yield the movements of each session at each budget that cuts it.

    Sessions that the scorer fails on are left out.

    Args:
        sessions: each is scored uncut, and once for each budget: a model is asked as often.
        scorer: the same for all.
        budgets: tokens that a chunk may have.
    """
    for session in sessions:
        whole = None
        for budget in budgets:
            parameters = ChunkParameters(target=budget)
            if len(parameters.chunks_of(session)) < 2:
                continue
            whole = whole or score_session(session, scorer, _UNCUT)
            row = score_session(session, scorer, parameters)
            if "failed" not in (whole.status, row.status):
                yield from _movements(whole, row, budget)


def _movements(whole: SessionScores, row: SessionScores, budget: int) -> Iterator[Movement]:
    pairs = [
        (one.dimension, one.value, two.value)
        for one, two in zip(whole.verdicts, row.verdicts, strict=True)
    ]
    for name, uncut, cut in [*pairs, (OVERALL, whole.overall_quality, row.overall_quality)]:
        yield Movement(
            session_id=row.session_id,
            budget=budget,
            chunks=len(row.chunks),
            name=name,
            uncut=uncut,
            cut=cut,
        )


def flips_table(movements: Iterable[Movement]) -> str:
    """Return the movements as a Markdown table, one line a budget.

    It says in how many of the sessions cut a category flipped, any or a certain one, and how far
    the overall quality moved: up or down on average, and in either direction.
    """
    categorical = [name for name, each in BY_NAME.items() if each.kind == "categorical"]
    by_budget: dict[int, list[Movement]] = {}
    for movement in movements:
        by_budget.setdefault(movement.budget, []).append(movement)
    rows = []
    for budget, found in sorted(by_budget.items()):
        cut = len({one.session_id for one in found})
        flipped = [
            {one.session_id for one in found if one.flipped and one.name in names}
            for names in (categorical, *([name] for name in categorical))
        ]
        moved = [one.moved for one in found if one.name == OVERALL and one.moved is not None]
        mean, distance = (sum(each) / max(1, len(moved)) for each in (moved, [*map(abs, moved)]))
        shares = (f"{len(each) / cut:.1%}" for each in flipped)
        rows.append((f"{budget:,}", str(cut), *shares, f"{mean:+.3f}", f"{distance:.3f}"))
    head = ("tokens", "sessions cut", "a category flipped", *categorical)
    return table((*head, OVERALL, "distance"), rows)


_HEADING = "\n### To be scored\n"
_RESULT = re.compile(
    r"^\[TOOL_RESULTS\] (\w+)(?:, exit code (-?\d+))?(, \+\d+ -\d+)?", re.MULTILINE
)
_USER = re.compile(r"^\[USER\].*\n((?:(?!\[|--- Turn ).*\n?)*)", re.MULTILINE)
_WELL = re.compile(r"\b(?:pass(?:ed|es)?|done|fixed|works|succeeded|complete[d]?)\b", re.I)
_ILL = re.compile(r"\b(?:fail(?:ed|s|ure)?|error|exception|traceback|unable|cannot)\b", re.I)
_PRAISE = re.compile(r"\b(?:thanks?|great|perfect|nice|good|excellent)\b", re.I)
_COMPLAINT = re.compile(r"\b(?:no|wrong|not what|again|stop|don't|why|still)\b", re.I)
_DAMAGE = re.compile(r"rm -rf [/~]|<secret:|drop table", re.I)
_RISK = re.compile(r"rm -rf|--force|chmod 777|--no-verify|\bsudo\b", re.I)
_END = 1_000


class WordScorer:
    """Answers from the words that a chunk shows: what a cut costs, without a model's moods.

    It tells nothing of how good a session is.
    """

    model = "words"

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkVerdicts:
        """Count words."""
        shown = shown_text(session, chunk)
        own = shown.rpartition(_HEADING)[2]
        of_all = shown.partition("\n### What the person said\n")[2].partition("\n### Facts\n")[0]
        person = "\n".join(_USER.findall(of_all or own))
        results, end = _RESULT.findall(own), shown[-_END:]
        fine = sum(status == "ok" and code in ("", "0") for status, code, _ in results)
        grown = sum(bool(growth) for _, _, growth in results)
        balance = len(_WELL.findall(end)) - len(_ILL.findall(end))
        praise = len(_PRAISE.findall(person)) - len(_COMPLAINT.findall(person))
        risk = "poor" if _DAMAGE.search(own) else "partial" if _RISK.search(own) else "adequate"
        said: dict[str, str | float | None] = {
            "task_completion": _side(balance, "failed", "partial", "complete"),
            "execution_quality": _share(len(_WELL.findall(own)), len(_ILL.findall(own))),
            "tool_mastery": _share(fine, len(results) - fine),
            "resource_efficiency": _share(grown, len(results) - grown),
            "security_compliance": risk,
            "user_satisfaction": _side(praise, "partial", "good", "excellent") if person else None,
        }
        return ChunkVerdicts(
            index=chunk.index,
            tokens=chunk.tokens,
            own_tokens=chunk.own_tokens,
            verdicts=tuple(
                Verdict(dimension=BY_NAME[name].name, value=None)
                if score is None
                else verdict_on(name, score)
                for name, score in said.items()
            ),
        )


def _side(balance: int, less: str, even: str, more: str) -> str:
    return less if balance < 0 else more if balance else even


def _share(yes: int, no: int) -> float | None:
    return yes / (yes + no) if yes + no else None
