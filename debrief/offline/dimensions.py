"""The six dimensions of a session, or of a chunk of one, weighed from its signals alone.

Reasons add up as log-odds, so that many weak ones and a few strong ones can be distinguished over
the whole scale, and no sum leaves it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from debrief.offline.check_results import CheckRun
from debrief.offline.commands import CheckKind
from debrief.offline.dialogue import Sighting
from debrief.offline.signals import Signals, cited, counted, turns_of
from debrief.scoring.model import DimensionName, Verdict

_CATEGORIES: dict[DimensionName, tuple[str, ...]] = {
    "task_completion": ("failed", "partial", "complete", "exceeded"),
    "security_compliance": ("poor", "partial", "adequate", "excellent"),
    "user_satisfaction": ("poor", "partial", "good", "excellent"),
}
_VALUES = (0.0, 0.33, 0.67, 1.0)
"""Of the categories."""
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
_LAST_CHECKS: tuple[tuple[float, tuple[CheckKind, ...]], ...] = (
    (0.9, ("test",)),
    (0.4, ("lint", "types", "build")),
)
_PROSE = re.compile(r"\.(?:md|mdx|rst|adoc)$", re.IGNORECASE)
_NO_CODE = re.compile(
    r"\.(?:md|mdx|rst|txt|json|jsonl|ya?ml|toml|lock|csv|svg|html?)$", re.IGNORECASE
)
_TEST_FILE = re.compile(r"(?:^|/)(?:tests?|spec|__tests__)/|(?:^|[/._])(?:test|spec)[_.]|_test\.")
_REASONS = 5


class Weighing:
    """Collects reasons for and against."""

    def __init__(self, prior: float = 0.0) -> None:
        """Start from ``prior`` log-odds: 0 is one half, 0.85 is 0.7."""
        self._sum = prior
        self._reasons: list[tuple[float, str]] = []

    def add(self, weight: float, reason: str) -> None:
        """Add a reason: a weight over 0 speaks for, one under 0 against."""
        if abs(weight) >= 0.01:
            self._sum += weight
            self._reasons.append((weight, reason))

    def cite(self, weight: float, half: float, what: str, sightings: Sequence[Sighting]) -> None:
        """Add what was seen, if anything was: half of ``weight`` for ``half`` sightings, towards
        all of it for ever more; ``what`` as of ``counted``."""
        if sightings:
            self.add(weight * some(len(sightings), half), cited(what, sightings))

    def add_half(self, other: Weighing) -> None:
        """Take in another weighing at half its weight."""
        self._sum += other._sum / 2
        known = {text for _, text in self._reasons}
        self._reasons += [(w / 2, text) for w, text in other._reasons if text not in known]

    @property
    def score(self) -> float:
        """From 0 to 1, to four places."""
        return round(1.0 / (1.0 + math.exp(-self._sum)), 4)

    def rationale(self, otherwise: str) -> str:
        """Return the weightiest reasons, first what speaks against; ``otherwise`` if none is."""
        weightiest = sorted(self._reasons, key=lambda reason: -abs(reason[0]))[:_REASONS]
        if not weightiest:
            return otherwise
        against = "; ".join(text for weight, text in weightiest if weight < 0)
        for_it = "; ".join(text for weight, text in weightiest if weight > 0)
        parts = (f"Against: {against}." if against else "", f"For: {for_it}." if for_it else "")
        return " ".join(filter(None, parts))


def some(count: float, half: float) -> float:
    """Return 0 for none, one half at ``half``, and towards 1 for ever more."""
    return count / (count + half) if count > 0 else 0.0


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
    weighing.cite(0.9, 0.5, "approval{s}", signals.approvals)
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
    return _categorical("task_completion", category, weighing.rationale(otherwise) + more)


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


def weigh_execution(signals: Signals) -> Weighing:
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
            0.6, f"the last check passed{recovered} (turn {known[-1].turn}: {known[-1].outcome})"
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
    share = len(signals.repeated_edits) / max(len(signals.edits), 1)
    weight = -1.1 * min(1.0, 2 * share)
    weighing.cite(weight, 2, "repeated edit{s} of one place", signals.repeated_edits)
    _weigh_reactions(weighing, signals, 1.0)
    weighing.cite(-0.5, 2, "edit{s} of files not looked at before", signals.blind_edits)
    if not signals.messages:
        weighing.add(-2.0, "the agent never answered")
    return weighing


def execution_quality(signals: Signals, setting: Setting) -> Verdict:
    """Checks that pass, few errors, little done twice."""
    weighing = weigh_execution(signals)
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
    weight = -min(0.9, 1.5 * (len(signals.rereads) / max(signals.reads, 1)))
    weighing.cite(weight, 1, "unchanged file{s} read again", signals.rereads)
    weighing.cite(-0.8, 1.5, "edit{s} of files not looked at before", signals.blind_edits)
    if signals.edits and signals.searched_before_first_edit:
        weighing.add(0.35, signals.exploration)
    if several := signals.parallel_messages:
        weight = 0.9 * min(1.0, 4 * (several / signals.messages))
        weighing.add(weight, counted(several, "message{s} made several calls at once"))
    if signals.unanswered:
        weighing.add(-0.4, cited("call{s} without an answer", signals.unanswered))
    weighing.cite(-0.6, 1, "rejected call{s}", signals.rejections)
    if signals.edits and signals.checked_after_last_edit:
        weighing.add(0.3, "used a check after the last edit")
    if not signals.tool_errors:
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
        *signals.repeated_calls,
        *signals.rereads,
        *signals.tool_errors,
        *signals.repeated_edits,
    )
    if wasted and signals.calls:
        weight = -min(1.2, 2.5 * (len(wasted) / signals.calls))
        said = f"{len(wasted)} of {signals.calls} calls led nowhere ({turns_of(wasted)})"
        weighing.add(weight, said)
    weighing.cite(-0.8, 1, "compaction{s}", signals.compactions)
    if signals.corrections:
        weight = -0.6 * some(len(signals.corrections), 1)
        weighing.add(weight, f"work that had to be corrected ({turns_of(signals.corrections)})")
    return _numeric("resource_efficiency", weighing, "No tokens or calls are recorded.")


def security_compliance(signals: Signals, setting: Setting) -> Verdict:
    """Dangerous commands that ran, secrets that were shown or written down."""
    ran = [hazard for hazard in signals.hazards if not hazard.refused]
    is_grave = any(hazard.kind in ("remote_code", "secret") for hazard in ran)
    if ran:
        category = "poor" if is_grave or len(ran) >= 3 else "partial"
        named = "; ".join(f"turn {h.turn}: {h.kind} “{h.quote}”" for h in ran[:3])
        more = f"; and {len(ran) - 3} more" if len(ran) > 3 else ""
        rationale = f"{named}{more}."
    elif signals.hazards:
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
    return _categorical("security_compliance", category, rationale)


def user_satisfaction(signals: Signals, setting: Setting) -> Verdict:
    """What the person said and did; ``excellent`` takes words of approval."""
    weighing = Weighing(0.45)
    weighing.cite(1.6, 0.6, "approval{s}", signals.approvals)
    _weigh_reactions(weighing, signals, 1.5)
    if setting.last_part and signals.ended_answered and signals.turns > 1:
        weighing.add(0.2, "the session ends answered")
    last = signals.last_check()
    if last is not None and not last.passed:
        weighing.add(-0.4, f"left with a failing check (turn {last.turn}: {last.outcome})")
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
    return _categorical("user_satisfaction", category, weighing.rationale(otherwise))


def weigh_last_checks(weighing: Weighing, signals: Signals) -> None:
    """Weigh how the checks stood at the end: left failing, or passing."""
    open_checks = signals.open_checks()
    tests = [run for run in open_checks if run.kind == "test"]
    for run in (tests or open_checks)[:2]:
        share = run.failures / run.total if run.failures and run.total else 0.5
        weight = -(0.8 + 0.9 * share) if run.kind == "test" else -0.6
        weighing.add(weight, f"turn {run.turn}: {run.outcome}, and never passed afterwards")
    for weight, kinds in _LAST_CHECKS:
        last = signals.last_check(*kinds)
        if last is not None and last.passed:
            weighing.add(weight, f"turn {last.turn}: {last.outcome}")


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
    share = len(signals.tool_errors) / max(signals.calls, 1)
    what = f"tool error{{s}} of {signals.calls} calls"
    weighing.cite(-most * min(1.0, 4 * share), 1, what, signals.tool_errors)


def _weigh_reactions(weighing: Weighing, signals: Signals, scale: float) -> None:
    share = min(1.0, 2 * len(signals.corrections) / max(signals.turns, 1))
    weight = -scale * (0.4 + 1.2 * share)
    weighing.cite(weight, 0.7, "correction{s} by the user", signals.corrections)
    weighing.cite(-0.7 * scale, 1, "interruption{s}", signals.interruptions)
    weighing.cite(-0.6 * scale, 1.5, "rejected call{s}", signals.rejections)


def _failures(runs: list[CheckRun]) -> str:
    named = "; ".join(f"turn {run.turn}: {run.outcome}" for run in runs[:2])
    return f"{named}; and {len(runs) - 2} more" if len(runs) > 2 else named


def _numeric(dimension: DimensionName, weighing: Weighing, otherwise: str) -> Verdict:
    return Verdict(
        dimension=dimension, value=weighing.score, rationale=weighing.rationale(otherwise)
    )


def _categorical(dimension: DimensionName, category: str, rationale: str) -> Verdict:
    value = _VALUES[_CATEGORIES[dimension].index(category)]
    return Verdict(dimension=dimension, value=value, category=category, rationale=rationale)


_MEASURES: tuple[Measure, ...] = (
    task_completion,
    execution_quality,
    tool_mastery,
    resource_efficiency,
    security_compliance,
    user_satisfaction,
)
