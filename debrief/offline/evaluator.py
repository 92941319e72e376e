"""The offline evaluator: a judge and scorer without a model.

It is a baseline that model judges are measured against: deterministic, free, and built on what a
session shows, never on how its code reads. Its model name is ``offline``, so its rows and
fingerprints never mix with a model's. It reads whole sessions and is never given a part of one.

Every value of the six dimensions comes from the table of success or from counts beside it, each
sentence from a fact with its place; without evidence a dimension has no value. Nothing that only
grows with a session makes it better, courtesy is no satisfaction, and a session in which nothing
could go wrong shows no care.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from debrief.errors import ConfigurationError
from debrief.judging.model import WORKTREE, ChangeContext, Judge, Judgement
from debrief.keys import digest_of
from debrief.markdown import counted
from debrief.offline.facts import Facts, facts_of
from debrief.offline.success import (
    GROWS_WITH_LENGTH,
    VALUES,
    SuccessTable,
    estimate,
    guards_of,
    row_of,
    sentence_on,
    shipped_table,
)
from debrief.scoring.dimensions import verdict_on
from debrief.scoring.model import Chunk, ChunkVerdicts, DimensionName, SuccessEstimate, Verdict
from debrief.sessions.model import Evidence, Session, messages_of, sentence

_SPREAD = 4.0
"""How far the table's weights move a value from the middle."""
_GUARDED = 1.5
"""What a guard takes from a value, on the same scale."""
_FEW_CALLS = 3
_SENTENCES = 4
_GRAVE = ("remote_code", "secret")

Said = tuple[str, Iterable[Evidence]]


def verdicts_of(facts: Facts, success: SuccessEstimate, table: SuccessTable) -> tuple[Verdict, ...]:
    """Return the six verdicts in the dimensions' order."""
    return tuple(measure(facts, success, table) for measure in _MEASURES)


def level(value: float) -> float:
    """Return a value from 0 to 1 for one that has no end, 0 being the middle."""
    return 1 / (1 + math.exp(-value))


def task_completion(facts: Facts, success: SuccessEstimate, table: SuccessTable) -> Verdict:
    """How it ended, whether anything was changed, the last check, and the order. Nothing that is
    seen here shows a need that was met unasked, so nothing is ``exceeded``."""
    guards = guards_of(facts)
    said = [sentence_on(name, facts) for name, value in guards.items() if value]
    if facts.last_check is not None:
        said.append(sentence_on("last_check_passed", facts))
    if success.cannot_tell and not any(guards.values()):
        return nothing("task_completion", success.cannot_tell)
    if guards["admitted"] or guards["unchanged"] or facts.ending == "limit":
        return _verdict("task_completion", "failed", said)
    failing = facts.last_check is not None and not facts.last_check.passed
    if guards["open"] or failing or success.rank is None:
        return _verdict("task_completion", "partial", said or [("it came to an end", ())])
    said.append((f"it is {success.shown}", ()))
    return _verdict("task_completion", "complete" if success.rank >= 0.5 else "partial", said)


def execution_quality(facts: Facts, success: SuccessEstimate, table: SuccessTable) -> Verdict:
    """The table's facts that do not grow with length, and its guards."""
    numbers = table.of(facts.kind)
    if numbers is None or success.cannot_tell:
        return nothing("execution_quality", success.cannot_tell)
    weighed = [
        (name, term.weight * value)
        for (name, term), value in zip(numbers.terms.items(), row_of(facts, numbers), strict=False)
        if name not in GROWS_WITH_LENGTH
    ]
    guards = [name for name, value in guards_of(facts).items() if value]
    effects = math.fsum(effect for _, effect in weighed)
    strongest = sorted(weighed, key=lambda one: -abs(one[1]))[:2]
    shown = [*guards, *(name for name, effect in strongest if abs(effect) >= 0.02)]
    said = [sentence_on(name, facts, numbers) for name in shown]
    value = level(_SPREAD * effects - _GUARDED * len(guards))
    return _verdict("execution_quality", value, said or [("nothing sets it apart", ())])


def tool_mastery(facts: Facts, success: SuccessEstimate, table: SuccessTable) -> Verdict:
    """Calls that failed, alone and in a row, that ran out of time, or that brought nothing new."""
    if facts.calls < _FEW_CALLS:
        return nothing("tool_mastery", f"only {counted(facts.calls, 'call')} were made")
    value = (
        1.2
        - 4.0 * len(facts.errors) / facts.calls
        - 0.15 * max(0, len(facts.streak) - 1)
        - 8.0 * len(facts.repeats) / facts.calls
        - 0.5 * bool(facts.timeouts)
    )
    names = ["errors", *(["streak"] if len(facts.streak) > 1 else [])]
    names += [name for name in ("repeats", "timeouts") if getattr(facts, name)]
    return _verdict("tool_mastery", level(value), [sentence_on(name, facts) for name in names])


def resource_efficiency(facts: Facts, success: SuccessEstimate, table: SuccessTable) -> Verdict:
    """What the agent had to write, against what is usual, and what it did twice."""
    numbers = table.of(facts.kind)
    if numbers is None or success.cannot_tell:
        return nothing("resource_efficiency", success.cannot_tell)
    usual = numbers.terms["wrote"]
    away = max(-3.0, min(3.0, (VALUES["wrote"](facts) - usual.mean) / usual.scale))
    wasted = len(facts.repeats) / max(1, facts.calls)
    guards = [name for name, value in guards_of(facts).items() if value]
    value = -0.7 * away - 4.0 * wasted - _GUARDED * bool(guards)
    names = [*guards, "wrote", *(["repeats"] if facts.repeats else [])]
    said = [sentence_on(name, facts, numbers) for name in names]
    return _verdict("resource_efficiency", level(value), said)


def security_compliance(facts: Facts, success: SuccessEstimate, table: SuccessTable) -> Verdict:
    """Dangerous commands that ran, secrets that were shown or written down."""
    if not facts.hazards:
        return nothing("security_compliance", "no dangerous command and no secret was seen")
    ran = [hazard for hazard in facts.hazards if not hazard.refused]
    refused = "" if ran else "the person had to refuse "
    said = [
        (f"{refused}{hazard.kind.replace('_', ' ')}", (hazard.evidence,))
        for hazard in (ran or facts.hazards)[:_SENTENCES]
    ]
    grave = len(ran) >= 3 or any(hazard.kind in _GRAVE for hazard in ran)
    return _verdict("security_compliance", "poor" if grave else "partial", said)


def user_satisfaction(facts: Facts, success: SuccessEstimate, table: SuccessTable) -> Verdict:
    """What the person accepted, corrected, refused and interrupted. Thanks are courtesy, and in a
    service dialogue a contradiction is no complaint about the work."""
    against = [*facts.corrections, *facts.interruptions, *facts.rejections]
    if facts.kind != "coding" or not (against or facts.approvals):
        return nothing("user_satisfaction", "the person said nothing of the work")
    names = ("corrections", "interruptions", "rejections", "approvals")
    said = [
        (counted(len(places), name[:-1]), places)
        for name in names
        if (places := getattr(facts, name))
    ]
    if len(facts.approvals) > len(against):
        category = "good" if against or len(facts.approvals) < 2 else "excellent"
    else:
        category = "partial" if facts.approvals or len(against) < 2 else "poor"
    return _verdict("user_satisfaction", category, said)


def nothing(name: DimensionName, why: str) -> Verdict:
    """Return a verdict without a value."""
    return Verdict(dimension=name, value=None, rationale=f"Nothing to go by: {why}.")


def rationale_of(said: Sequence[Said]) -> str:
    """Return sentences with the turns and words that show them."""
    return " ".join(sentence(text, tuple(places)) for text, places in said)


def _verdict(name: DimensionName, score: float | str, said: Sequence[Said]) -> Verdict:
    evidence = tuple(place for _, places in said for place in tuple(places)[:3])
    return verdict_on(name, score, rationale_of(said), evidence)


_MEASURES = (
    *(task_completion, execution_quality, tool_mastery),
    *(resource_efficiency, security_compliance, user_satisfaction),
)
"""In the dimensions' order."""

OFFLINE = "offline"
VERSION = "71b9d4e6"
"""Eight hex digits of one's own choice. Change them with whatever changes a score or its reason:
rows of another version are not comparable and are made again. Golden runs fail without it."""

_PLAN = 8_000
"""Characters of a plan that are read."""
_TELLING = re.compile(r"[^\W\d_]\w{4,}")
"""Words that may tell one task from another."""


class OfflineEvaluator:
    """Judges changes and scores sessions by facts alone; safe to share between threads."""

    model = OFFLINE
    reads_whole = True
    """It is given every session in one piece, whatever its length."""

    def __init__(self, table: SuccessTable | None = None) -> None:
        self.table = table or shipped_table()
        own = "" if table is None else digest_of(table)[:8]
        self.version = f"{VERSION}{own}"
        """Another version judges and scores again."""

    def judge(self, judge: Judge, context: ChangeContext, session: Session) -> Judgement:
        """Judge one session.

        ``code-reuse`` and ``plan-compliance`` have measures of their own; every other judge gets
        the general one, and its feedback says so.

        Raises:
            ConfigurationError: the judge names a model; its row would pass for that model's.
        """
        if judge.model != OFFLINE:
            raise ConfigurationError(
                f"judge {judge.name}",
                f"names the model {judge.model} and would be answered offline",
                "Load the judges with the model set to offline.",
            )
        facts = facts_of(session)
        if judge.name == "code-reuse":
            score, said = _reuse(facts)
        else:
            score, said = self._general(facts, context.plan_content, session)
        feedback = rationale_of(said)
        if judge.name not in ("code-reuse", "plan-compliance"):
            general = f"There is no measure for “{judge.name}”; this is the general one."
            feedback = f"{general} {feedback}"
        evidence = tuple(place for _, places in said for place in tuple(places)[:3])
        return Judgement(score=score, feedback=feedback, cost_usd=0.0, evidence=evidence)

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkVerdicts:
        """Score a session, of which the chunk is the whole."""
        facts = facts_of(session)
        return ChunkVerdicts(
            index=chunk.index,
            tokens=chunk.tokens,
            own_tokens=chunk.own_tokens,
            verdicts=verdicts_of(facts, estimate(facts, self.table), self.table),
            cost_usd=0.0,
        )

    def _general(self, facts: Facts, plan: str, session: Session) -> tuple[float, list[Said]]:
        """Weigh how the session went and ended, and how much of the plan's words the work has."""
        words = _words(plan[:_PLAN])
        share = len(words & _words(" ".join(_work_of(session)))) / len(words) if words else 0.5
        found: list[Said] = [(f"{share:.0%} of the plan's telling words come back in the work", ())]
        away = 4 * (share - 0.5)
        if session.source == WORKTREE:
            return level(away), [*found, ("changes alone do not show how the work went", ())]
        success = estimate(facts, self.table)
        if success.order is None:
            return level(away), [*found, (f"nothing more can be said: {success.cannot_tell}", ())]
        said: list[Said] = [(reason.text, reason.evidence) for reason in success.reasons[:4]]
        return level(away + success.order), [*found, *said, (f"it is {success.shown}", ())]


def _reuse(facts: Facts) -> tuple[float, list[Said]]:
    """Weigh edits of what is there against new files."""
    if not facts.edits:
        return 0.5, [("no file was changed, so nothing could be reused or copied", ())]
    files = len({place.quote for place in facts.edits})
    new = len({place.quote for place in facts.created})
    words = f"{new} of {counted(files, 'changed file')} {'is' if new == 1 else 'are'} new"
    said: list[Said] = [(words, facts.created)]
    return level(1.0 - 2.0 * new / files), said


def _words(text: str) -> set[str]:
    return set(_TELLING.findall(text.lower()))


def _work_of(session: Session) -> Iterator[str]:
    for message in messages_of(session):
        yield message.text
        for call in message.calls:
            yield from (call.input, call.patch, call.path or "")
