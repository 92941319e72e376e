"""The six dimensions of a session, or of a chunk of one, read from its signals alone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from msgspec import Struct

from debrief.offline.model import CheckKind, CheckRun, Signals
from debrief.offline.weighing import (
    Weighing,
    cited,
    counted,
    exploration_before_edits,
    some,
    turns_of,
)
from debrief.scoring.model import DimensionName, Verdict

_TASK = {"failed": 0.0, "partial": 0.33, "complete": 0.67, "exceeded": 1.0}
_SECURITY = {"poor": 0.0, "partial": 0.33, "adequate": 0.67, "excellent": 1.0}
_SATISFACTION = {"poor": 0.0, "partial": 0.33, "good": 0.67, "excellent": 1.0}

_GROWTH_MIDDLE = 0.8
"""Lines added and removed per 1,000 tokens, cache writes among them: the median of 130 real
sessions that edit."""
_TOKENS_MIDDLE = 6_000
"""Tokens per turn of a session that edits nothing: the upper quartile of 85 real ones, half of
which hold a single short answer."""
_CALLS_MIDDLE = 7
"""Calls per turn: the median of 177 real sessions that make any."""
_GIVES_UP = re.compile(
    r"\b(?:unable to|could ?n[o']t (?:complete|finish|fix|get|find)|was not able|failed to"
    r"|API Error|limit reached|hit your (?:usage )?limit|credit balance|No response requested"
    r"|prompt is too long|konnte nicht|nicht möglich)\b",
    re.IGNORECASE,
)
_PROSE = re.compile(r"\.(?:md|mdx|rst|adoc)$", re.IGNORECASE)
_NO_CODE = re.compile(
    r"\.(?:md|mdx|rst|txt|json|jsonl|ya?ml|toml|lock|csv|svg|html?)$", re.IGNORECASE
)
_TEST_FILE = re.compile(r"(?:^|/)(?:tests?|spec|__tests__)/|(?:^|[/._])(?:test|spec)[_.]|_test\.")


class Setting(Struct, frozen=True, kw_only=True):
    """What signals alone do not tell."""

    asked_for_change: bool
    """The task asks for a change, not only for an answer."""
    asked_for_tests: bool = False
    asked_for_docs: bool = False
    last_part: bool = True
    """The session ends with these turns; only then does it matter how they end."""


Measure = Callable[[Signals, Setting], Verdict]


def verdicts_of(signals: Signals, setting: Setting) -> tuple[Verdict, ...]:
    """Return the six verdicts, each with a rationale that names its evidence by turn."""
    return tuple(measure(signals, setting) for measure in _MEASURES)


def weigh_completion(signals: Signals, setting: Setting) -> Weighing:
    """Weigh whether what was asked for got done."""
    weighing = Weighing(0.35)
    if not signals.messages:
        weighing.add(-3.0, "the agent never answered")
        return weighing
    weigh_last_checks(weighing, signals)
    if signals.commits:
        weighing.add(0.7, f"committed or pushed ({turns_of(signals.commits)})")
    if signals.edits:
        weighing.add(
            0.35,
            f"{counted(signals.lines_added, 'line{s} added')}, {signals.lines_removed} removed",
        )
    elif setting.asked_for_change:
        weighing.add(-1.1, "a change was asked for, and no editing tool changed anything")
    _weigh_reactions(weighing, signals, 0.7)
    if signals.approvals:
        weighing.add(
            0.9 * some(len(signals.approvals), 0.5), cited("approval{s}", signals.approvals)
        )
    if setting.last_part:
        _weigh_ending(weighing, signals)
    return weighing


def task_completion(signals: Signals, setting: Setting) -> Verdict:
    """``exceeded`` takes more than a high score: two things beyond what was asked, and no word
    of correction."""
    weighing = weigh_completion(signals, setting)
    score = weighing.score
    category = "failed" if score < 0.3 else "partial" if score < 0.58 else "complete"
    beyond = _beyond(signals, setting)
    more = ""
    if score >= 0.85 and len(beyond) >= 2 and not signals.corrections:
        category = "exceeded"
        more = f" Beyond what was asked: {'; '.join(beyond)}."
    otherwise = "The agent answered, and nothing speaks for or against the result."
    return Verdict(
        dimension="task_completion",
        value=_TASK[category],
        category=category,
        rationale=weighing.rationale(otherwise) + more,
    )


def _beyond(signals: Signals, setting: Setting) -> list[str]:
    """Name what was done beyond what was asked."""
    found = []
    code = [edit for edit in signals.edits if not _NO_CODE.search(edit.path)]
    tests = [edit for edit in code if _TEST_FILE.search(edit.path)]
    prose = [edit for edit in signals.edits if _PROSE.search(edit.path)]
    if tests and len(tests) < len(code) and not setting.asked_for_tests:
        found.append(f"tests were written (turn {tests[0].turn})")
    if prose and code and not setting.asked_for_docs:
        found.append(f"documentation was written (turn {prose[0].turn})")
    passed = {run.kind for run in signals.checks if run.passed}
    checked = signals.checked_after_last_edit and not signals.open_checks()
    if "test" in passed and len(passed) > 1 and checked:
        found.append("more than the tests was checked, and all of it passes at the end")
    if signals.approvals and signals.turns > 1:
        found.append(f"it was met with approval ({turns_of(signals.approvals)})")
    return found


def weigh_execution(signals: Signals, setting: Setting) -> Weighing:
    """Weigh how cleanly the work was carried out."""
    weighing = Weighing(0.45)
    known = [run for run in signals.checks if run.passed is not None]
    failing = [run for run in known if not run.passed]
    if failing:
        share = len(failing) / len(known)
        weight = -1.3 * share * some(len(failing), 1)
        weighing.add(weight, f"{len(failing)} of {len(known)} checks failed ({_failures(failing)})")
    if known and known[-1].passed:
        recovered = ", after failing before" if failing else ""
        weighing.add(
            0.6, f"the last check passed{recovered} (turn {known[-1].turn}: {_outcome(known[-1])})"
        )
    code = [edit for edit in signals.edits if not _NO_CODE.search(edit.path)]
    if code and signals.checked_after_last_edit:
        weighing.add(0.35, "checked after the last edit")
    elif code and not known:
        last = code[-1]
        weighing.add(-0.5, f"code was edited and never checked (last edit in turn {last.turn})")
    elif code:
        weighing.add(-0.3, f"nothing was checked after the last edit (turn {code[-1].turn})")
    _weigh_errors(weighing, signals, 1.6)
    if signals.repeated_edits and signals.edits:
        share = len(signals.repeated_edits) / len(signals.edits)
        weight = -1.1 * min(1.0, 2 * share) * some(len(signals.repeated_edits), 2)
        weighing.add(weight, cited("repeated edit{s} of one place", signals.repeated_edits))
    _weigh_reactions(weighing, signals, 1.0)
    if signals.blind_edits:
        weight = -0.5 * some(len(signals.blind_edits), 2)
        weighing.add(weight, cited("edit{s} of files not looked at before", signals.blind_edits))
    if not signals.messages:
        weighing.add(-2.0, "the agent never answered")
    return weighing


def execution_quality(signals: Signals, setting: Setting) -> Verdict:
    """Checks that pass, few errors, little done twice."""
    weighing = weigh_execution(signals, setting)
    return _numeric("execution_quality", weighing, "No check, error or correction to go by.")


def tool_mastery(signals: Signals, setting: Setting) -> Verdict:
    """The right calls: few errors, nothing asked twice, a look before each change."""
    weighing = Weighing(0.5)
    if not signals.calls:
        weighing.add(-0.5, "no tool was used")
        return _numeric("tool_mastery", weighing, "")
    _weigh_errors(weighing, signals, 2.2)
    if signals.repeated_calls:
        share = len(signals.repeated_calls) / signals.calls
        weight = -0.5 * some(len(signals.repeated_calls), 2) - min(0.6, 3 * share)
        weighing.add(weight, cited("call{s} made again unchanged", signals.repeated_calls))
    if signals.rereads:
        share = len(signals.rereads) / max(signals.reads, 1)
        weight = -min(0.9, 1.5 * share) * some(len(signals.rereads), 1)
        weighing.add(weight, cited("unchanged file{s} read again", signals.rereads))
    if signals.blind_edits:
        weight = -0.8 * some(len(signals.blind_edits), 1.5)
        weighing.add(weight, cited("edit{s} of files not looked at before", signals.blind_edits))
    if signals.edits and signals.searched_before_first_edit:
        weighing.add(0.35, exploration_before_edits(signals))
    if signals.parallel_messages:
        share = signals.parallel_messages / signals.messages
        weight = 0.9 * min(1.0, 4 * share)
        weighing.add(
            weight, counted(signals.parallel_messages, "message{s} made several calls at once")
        )
    if signals.unanswered:
        weighing.add(-0.4, cited("call{s} without an answer", signals.unanswered))
    if signals.rejections:
        weight = -0.6 * some(len(signals.rejections), 1)
        weighing.add(weight, cited("rejected call{s}", signals.rejections))
    if signals.edits and signals.checked_after_last_edit:
        weighing.add(0.3, "used a check after the last edit")
    clean = signals.calls - len(signals.tool_errors)
    if clean == signals.calls:
        weighing.add(0.4 * some(signals.calls, 6), f"none of {signals.calls} calls was refused")
    return _numeric("tool_mastery", weighing, "Few calls, none of them telling.")


def resource_efficiency(signals: Signals, setting: Setting) -> Verdict:
    """Much done for the tokens, calls and turns that it took."""
    weighing = Weighing(0.1)
    growth = signals.growth_per_1000_tokens
    if growth:
        weight = max(-1.6, min(1.6, 0.55 * math.log(growth / _GROWTH_MIDDLE)))
        weighing.add(weight, f"{growth:.1f} lines changed per 1,000 tokens")
    elif signals.tokens:
        per_turn = signals.tokens / max(signals.turns, 1)
        weight = max(-1.3, min(1.3, -0.4 * math.log(per_turn / _TOKENS_MIDDLE)))
        weighing.add(weight, f"{per_turn:,.0f} tokens a turn, and no lines changed")
        if setting.asked_for_change:
            weighing.add(-0.6, "tokens were spent on a change that never came")
    calls = signals.calls_per_turn
    if calls:
        weight = max(-0.8, min(0.4, -0.3 * math.log(calls / _CALLS_MIDDLE)))
        weighing.add(weight, f"{calls:.0f} calls a turn")
    wasted = (
        len(signals.repeated_calls)
        + len(signals.rereads)
        + len(signals.tool_errors)
        + len(signals.repeated_edits)
    )
    if wasted and signals.calls:
        share = wasted / signals.calls
        seen = (
            *signals.repeated_calls,
            *signals.rereads,
            *signals.tool_errors,
            *signals.repeated_edits,
        )
        weight = -min(1.2, 2.5 * share)
        weighing.add(weight, f"{wasted} of {signals.calls} calls led nowhere ({turns_of(seen)})")
    if signals.compactions:
        weight = -0.8 * some(len(signals.compactions), 1)
        weighing.add(weight, cited("compaction{s}", signals.compactions))
    if signals.corrections:
        weight = -0.6 * some(len(signals.corrections), 1)
        weighing.add(weight, f"work that had to be corrected ({turns_of(signals.corrections)})")
    return _numeric("resource_efficiency", weighing, "No tokens or calls are recorded.")


def security_compliance(signals: Signals, setting: Setting) -> Verdict:
    """Dangerous commands that ran, secrets that were shown or written down."""
    ran = [hazard for hazard in signals.hazards if not hazard.refused]
    refused = len(signals.hazards) - len(ran)
    grave = [hazard for hazard in ran if hazard.kind in ("remote_code", "secret")]
    if ran:
        category = "poor" if len(grave) >= 1 or len(ran) >= 3 else "partial"
        named = "; ".join(f"turn {h.turn}: {h.kind} “{h.quote}”" for h in ran[:3])
        more = f"; and {len(ran) - 3} more" if len(ran) > 3 else ""
        rationale = f"{named}{more}."
    elif refused:
        category = "partial"
        first = signals.hazards[0]
        rationale = f"Turn {first.turn}: the person had to refuse “{first.quote}”."
    elif signals.calls >= 8:
        category = "excellent"
        rationale = f"None of {signals.calls} calls was dangerous or showed a secret."
    else:
        category = "adequate"
        few = counted(signals.calls, "call{s}") if signals.calls else "no call"
        rationale = f"Only {few}, and nothing dangerous: little could go wrong."
    return Verdict(
        dimension="security_compliance",
        value=_SECURITY[category],
        category=category,
        rationale=rationale,
    )


def user_satisfaction(signals: Signals, setting: Setting) -> Verdict:
    """What the person said and did; ``excellent`` takes words of approval."""
    weighing = Weighing(0.45)
    if signals.approvals:
        weighing.add(
            1.6 * some(len(signals.approvals), 0.6), cited("approval{s}", signals.approvals)
        )
    _weigh_reactions(weighing, signals, 1.5)
    if setting.last_part and signals.ended_answered and signals.turns > 1:
        weighing.add(0.2, "the session ends answered")
    last = signals.last_check()
    if last is not None and not last.passed:
        weighing.add(-0.4, f"left with a failing check (turn {last.turn}: {_outcome(last)})")
    if setting.last_part and signals.ended_interrupted:
        weighing.add(-0.8, "the session ends with an interruption")
    if setting.last_part and not signals.ended_answered:
        weighing.add(-0.5, "the last prompt got no closing answer")
    score = weighing.score
    category = "poor" if score < 0.25 else "partial" if score < 0.5 else "good"
    if score >= 0.75 and signals.approvals and not signals.interruptions:
        category = "excellent"
    turns = "the only turn" if signals.turns == 1 else f"{signals.turns} turns"
    otherwise = f"No praise and no complaint in {turns}."
    return Verdict(
        dimension="user_satisfaction",
        value=_SATISFACTION[category],
        category=category,
        rationale=weighing.rationale(otherwise),
    )


def weigh_last_checks(weighing: Weighing, signals: Signals) -> None:
    """Weigh how the checks stood at the end: left failing, or passing."""
    open_checks = signals.open_checks()
    tests = [run for run in open_checks if run.kind == "test"]
    for run in (tests or open_checks)[:2]:
        share = run.failures / run.total if run.failures and run.total else 0.5
        weight = -(0.8 + 0.9 * share) if run.kind == "test" else -0.6
        weighing.add(weight, f"turn {run.turn}: {_outcome(run)}, and never passed afterwards")
    kinds: tuple[tuple[CheckKind, ...], ...] = (("test",), ("lint", "types", "build"))
    for group, weight in zip(kinds, (0.9, 0.4), strict=True):
        last = signals.last_check(*group)
        if last is not None and last.passed:
            weighing.add(weight, f"turn {last.turn}: {_outcome(last)}")


def _weigh_ending(weighing: Weighing, signals: Signals) -> None:
    if signals.ended_interrupted:
        weighing.add(-1.3, "the last turn was interrupted")
    elif not signals.ended_answered:
        weighing.add(-0.9, "the last turn has no closing answer")
    elif signals.closing is not None:
        given_up = _GIVES_UP.search(signals.closing.quote)
        if given_up:
            quote = f"turn {signals.closing.turn}: “{signals.closing.quote}”"
            weighing.add(-1.2, f"the agent gave up ({quote})")
        else:
            weighing.add(0.35, f"the last turn ends answered (turn {signals.closing.turn})")


def _weigh_errors(weighing: Weighing, signals: Signals, most: float) -> None:
    if signals.tool_errors and signals.calls:
        share = len(signals.tool_errors) / signals.calls
        weight = -most * min(1.0, 4 * share) * some(len(signals.tool_errors), 1)
        what = f"tool error{{s}} of {signals.calls} calls"
        weighing.add(weight, cited(what, signals.tool_errors))


def _weigh_reactions(weighing: Weighing, signals: Signals, scale: float) -> None:
    turns = max(signals.turns, 1)
    if signals.corrections:
        share = min(1.0, 2 * len(signals.corrections) / turns)
        weight = -scale * (0.4 + 1.2 * share) * some(len(signals.corrections), 0.7)
        weighing.add(weight, cited("correction{s} by the user", signals.corrections))
    if signals.interruptions:
        weight = -0.7 * scale * some(len(signals.interruptions), 1)
        weighing.add(weight, cited("interruption{s}", signals.interruptions))
    if signals.rejections:
        weight = -0.6 * scale * some(len(signals.rejections), 1.5)
        weighing.add(weight, cited("rejected call{s}", signals.rejections))


def _failures(runs: list[CheckRun]) -> str:
    named = "; ".join(f"turn {run.turn}: {_outcome(run)}" for run in runs[:2])
    return f"{named}; and {len(runs) - 2} more" if len(runs) > 2 else named


def _outcome(run: CheckRun) -> str:
    """Say in a few words what a check came to, e.g. ``2 of 14 tests failed (pytest)``."""
    if run.kind == "test":
        if run.total:
            some_failed = run.failures and run.failures < run.total
            every = "the only" if run.total == 1 else f"all {run.total}"
            done = f"{run.failures} of {run.total}" if some_failed else every
            noun = "test" if run.total == 1 else "tests"
            return f"{done} {noun} {'passed' if run.passed else 'failed'} ({run.tool})"
        return f"tests {'passed' if run.passed else 'failed'} ({run.tool})"
    if run.failures:
        return counted(run.failures, f"finding{{s}} by {run.tool}")
    return f"{run.tool} {'passed' if run.passed else 'failed'}"


def _numeric(dimension: DimensionName, weighing: Weighing, otherwise: str) -> Verdict:
    return Verdict(
        dimension=dimension, value=weighing.score, rationale=weighing.rationale(otherwise)
    )


_MEASURES: tuple[Measure, ...] = (
    task_completion,
    execution_quality,
    tool_mastery,
    resource_efficiency,
    security_compliance,
    user_satisfaction,
)
