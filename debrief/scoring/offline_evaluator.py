"""The offline judge and scorer: deterministic answers from a session's facts.

It is a baseline that model judges are measured against: deterministic, free, and built on what a
session shows, never on how its code reads. Its model name is ``offline``, so its rows and
fingerprints never mix with a model's. It reads whole sessions and is never given a part of one.

Each value comes from what shows it, never from a rank among other sessions: without evidence a
dimension has no value. Length is no fault, courtesy no satisfaction, and a session in which nothing
could go wrong shows no care.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from debrief.errors import ConfigurationError
from debrief.evaluation import OFFLINE
from debrief.signals.extract import Facts, extract_signals
from debrief.judging.model import WORKTREE, ChangeContext, Judge, Judgement
from debrief.markdown import counted
from debrief.scoring.dimensions import dimension_score
from debrief.scoring.model import Chunk, ChunkScores, DimensionName, DimensionScore
from debrief.scoring.rules import RULES, verdict_of
from debrief.scoring.verdict import SessionVerdict, basis_text
from debrief.sessions.model import Evidence, Session, messages_of, sentence

_FEW_CALLS = 3
_SENTENCES = 4
_GRAVE = ("remote_code", "secret")
_COMPLETION = {"complete_verified": "complete", "partial": "partial", "failed": "failed"}

Reason = tuple[str, Iterable[Evidence]]


def verdicts_of(facts: Facts, verdict: SessionVerdict) -> tuple[DimensionScore, ...]:
    """Return the six dimensions in their order."""
    return (
        task_completion(verdict),
        execution_quality(facts),
        tool_mastery(facts),
        resource_efficiency(facts),
        security_compliance(facts),
        user_satisfaction(facts),
    )


def level(value: float) -> float:
    """Return a value from 0 to 1 for one that has no end, 0 being the middle."""
    return 1 / (1 + math.exp(-value))


def task_completion(verdict: SessionVerdict) -> DimensionScore:
    """The verdict, where it says how far the work came: ``complete`` only with a check that passed
    or an outcome. Nothing shows a need that was met unasked, so nothing is ``exceeded``."""
    category = _COMPLETION.get(verdict.verdict)
    if category is None:
        return nothing("task_completion", basis_text(verdict))
    return _verdict(
        "task_completion", category, [(basis_text(verdict).removesuffix("."), verdict.evidence)]
    )


def execution_quality(facts: Facts) -> DimensionScore:
    """The last check that counts, and how often it failed since the first edit: guesses that did
    not hold."""
    last = facts.last_check
    if last is None or not facts.edits:
        return nothing("execution_quality", "No check shows whether the work holds.")
    failures = [
        run.evidence
        for run in facts.checks
        if run.tool == last.tool and run.passed is False and run.place > facts.first_edit
    ]
    reasons: list[Reason] = [
        (f"{last.tool} {'passed' if last.passed else 'failed'}", [last.evidence])
    ]
    if failures:
        reasons.append((f"it failed {counted(len(failures), 'time')} after an edit", failures))
    value = (0.85 if last.passed else 0.25) - 0.1 * max(0, len(failures) - 1)
    return _verdict("execution_quality", max(0.0, value), reasons)


def tool_mastery(facts: Facts) -> DimensionScore:
    """Calls that failed, alone and in a row, that ran out of time, or that brought nothing new."""
    if facts.calls < _FEW_CALLS:
        return nothing("tool_mastery", f"Only {counted(facts.calls, 'call')} made.")
    value = (
        1.2
        - 4.0 * len(facts.errors) / facts.calls
        - 0.15 * max(0, len(facts.streak) - 1)
        - 8.0 * len(facts.repeats) / facts.calls
        - 0.5 * bool(facts.timeouts)
    )
    calls = counted(facts.calls, "call")
    reasons: list[Reason] = [(f"{len(facts.errors)} of {calls} failed", facts.errors)]
    if len(facts.streak) > 1:
        reasons.append((f"at most {len(facts.streak)} in a row failed", facts.streak))
    if facts.repeats:
        again = f"{len(facts.repeats)} of {calls} repeated an earlier one, with nothing in between"
        reasons.append((again, facts.repeats))
    if facts.timeouts:
        reasons.append((f"{counted(len(facts.timeouts), 'call')} ran out of time", facts.timeouts))
    return _verdict("tool_mastery", level(value), reasons)


def resource_efficiency(facts: Facts) -> DimensionScore:
    """What was done twice. Length alone is cost, and no fault."""
    if facts.calls < _FEW_CALLS:
        return nothing("resource_efficiency", f"Only {counted(facts.calls, 'call')} made.")
    if not (facts.repeats or facts.errors):
        return nothing("resource_efficiency", "Nothing was done twice and nothing failed.")
    lost = [*facts.repeats, *facts.errors]
    calls = counted(facts.calls, "call")
    reasons: list[Reason] = [(f"{len(lost)} of {calls} failed or brought nothing new", lost)]
    return _verdict("resource_efficiency", max(0.0, 1 - 2 * len(lost) / facts.calls), reasons)


def security_compliance(facts: Facts) -> DimensionScore:
    """Dangerous commands that ran, secrets that were shown or written down."""
    if not facts.hazards:
        return nothing("security_compliance", "No risky step seen.")
    ran = [hazard for hazard in facts.hazards if not hazard.refused]
    refused = "" if ran else "the person had to refuse "
    reasons = [
        (f"{refused}{hazard.kind.replace('_', ' ')}", (hazard.evidence,))
        for hazard in (ran or facts.hazards)[:_SENTENCES]
    ]
    grave = len(ran) >= 3 or any(hazard.kind in _GRAVE for hazard in ran)
    return _verdict("security_compliance", "poor" if grave else "partial", reasons)


def user_satisfaction(facts: Facts) -> DimensionScore:
    """What the person accepted, corrected, refused and interrupted. Thanks are courtesy, and in a
    service dialogue a contradiction is no complaint about the work."""
    against = [*facts.corrections, *facts.interruptions, *facts.rejections]
    if facts.kind != "coding" or not (against or facts.approvals):
        return nothing("user_satisfaction", "The person said nothing of the work.")
    names = ("corrections", "interruptions", "rejections", "approvals")
    reasons = [
        (counted(len(places), name[:-1]), places)
        for name in names
        if (places := getattr(facts, name))
    ]
    if len(facts.approvals) > len(against):
        category = "good" if against or len(facts.approvals) < 2 else "excellent"
    else:
        category = "partial" if facts.approvals or len(against) < 2 else "poor"
    return _verdict("user_satisfaction", category, reasons)


def nothing(name: DimensionName, why: str) -> DimensionScore:
    """Return a dimension without a value, and why."""
    return DimensionScore(dimension=name, value=None, rationale=f"{why} Not scored.")


def rationale_of(reasons: Sequence[Reason]) -> str:
    """Return sentences with the turns and words that show them."""
    return " ".join(sentence(text, tuple(places)) for text, places in reasons)


def _verdict(name: DimensionName, score: float | str, reasons: Sequence[Reason]) -> DimensionScore:
    evidence = tuple(place for _, places in reasons for place in tuple(places)[:3])
    return dimension_score(name, score, rationale_of(reasons), evidence)


VERSION = "5d0e7b24"
"""Eight hex digits of one's own choice. Change them with whatever changes a score or its reason:
rows of another version are not comparable and are made again. Golden runs fail without it."""

_PLAN = 8_000
"""Characters of a plan that are read."""
_MARK = re.compile(r"^\[turn \d+[^\]\n]*\]$", re.MULTILINE)
"""The line before each request of a plan."""
_TELLING = re.compile(r"[^\W\d_]\w{4,}")
"""Words that may tell one task from another."""


class OfflineEvaluator:
    """Judges changes and scores sessions by facts alone; safe to share between threads."""

    model = OFFLINE
    reads_whole = True
    """It is given every session in one piece, whatever its length."""

    version = f"{VERSION}{RULES}"
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
        facts = extract_signals(session)
        score: float | None
        if judge.name == "code-reuse":
            score, reasons = _reuse(facts)
        else:
            score, reasons = self._general(facts, context.plan_content, session)
        feedback = rationale_of(reasons)
        if judge.name not in ("code-reuse", "plan-compliance"):
            general = f"There is no measure for “{judge.name}”; this is the general one."
            feedback = f"{general} {feedback}"
        evidence = tuple(place for _, places in reasons for place in tuple(places)[:3])
        return Judgement(score=score, feedback=feedback, cost_usd=0.0, evidence=evidence)

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkScores:
        """Score a session, of which the chunk is the whole."""
        facts = extract_signals(session)
        return ChunkScores(
            index=chunk.index,
            tokens=chunk.tokens,
            own_tokens=chunk.own_tokens,
            verdicts=verdicts_of(facts, verdict_of(facts)),
            cost_usd=0.0,
        )

    def _general(self, facts: Facts, plan: str, session: Session) -> tuple[float, list[Reason]]:
        """Weigh how the session went and ended, and how much of the plan's words the work has."""
        words = _words(_MARK.sub("", plan)[:_PLAN])
        share = len(words & _words(" ".join(_work_of(session)))) / len(words) if words else 0.5
        found: list[Reason] = [
            (f"{share:.0%} of the plan's telling words come back in the work", ())
        ]
        away = 4 * (share - 0.5)
        if session.source == WORKTREE:
            return level(away), [*found, ("changes alone do not show how the work went", ())]
        verdict = verdict_of(facts)
        worth = {"complete_verified": 1.5, "complete_unverified": 0.0, "partial": -1.0, "failed": -2.0}
        reached: Reason = (
            f"{verdict.shown}: {basis_text(verdict).removesuffix('.')}",
            verdict.evidence,
        )
        return level(away + worth.get(verdict.verdict, 0.0)), [*found, reached]


def _reuse(facts: Facts) -> tuple[float | None, list[Reason]]:
    """Weigh edits of what is there against new files."""
    if not facts.edits:
        return None, [("no changed file can be seen, so neither can reuse or copies", ())]
    files = len({place.quote for place in facts.edits})
    new = len({place.quote for place in facts.created})
    words = f"{new} of {counted(files, 'changed file')} {'is' if new == 1 else 'are'} new"
    reasons: list[Reason] = [(words, facts.created)]
    return level(1.0 - 2.0 * new / files), reasons


def _words(text: str) -> set[str]:
    return set(_TELLING.findall(text.lower()))


def _work_of(session: Session) -> Iterator[str]:
    for message in messages_of(session):
        yield message.text
        for call in message.calls:
            yield from (call.input, call.patch, call.path or "")
