"""The verdict by rules: a short ordered list, the first rule that applies decides.

1. An outcome decides: merged, reverted, CI, a person's label.
2. Hardly any work, or nothing changed: it cannot be told. A question or a review leaves nothing
   that could be checked.
3. Work that breaks off or is stopped after a change is done in part. A commit or push without an
   answer is no such end: it says nothing of the work before it.
4. The last check that could have failed because of the change decides: failed, it is done in part;
   passed, it is done and verified.
5. Else it is done and unverified, or cannot be told where it holds many requests.

No word list decides: what somebody says of the work is shown beside the verdict.
"""

from __future__ import annotations

from debrief.signals.check_commands import CheckRun
from debrief.signals.extract import Facts
from debrief.scoring.verdict import Basis, SessionVerdict, VerdictName
from debrief.sessions.model import Evidence

RULES = "2"
"""Change it with whatever changes a verdict: rows of another version are made again."""
_LEAST_CALLS = 2
_MANY = 8
"""Requests from which on an unchecked session says too little of each."""
_SHOWN = 3


def verdict_of(facts: Facts, outcome: tuple[bool, str] | None = None) -> SessionVerdict:
    """Return the verdict on a session.

    Args:
        facts: the session's.
        outcome: whether it succeeded, and the source that says so; None where none does.
    """
    if outcome is not None:
        done, source = outcome
        return _said("complete_verified" if done else "failed", "outcome", facts, source=source)
    end, changed = facts.end, facts.edits[-_SHOWN:]
    stopped = end.ending in ("interrupted", "limit")
    at_end = (end.evidence,) if end.evidence else ()
    if facts.calls < _LEAST_CALLS and not facts.edits:
        return _said("undetermined", "no_work", facts, *at_end)
    if not facts.edits:
        basis: Basis = "stopped" if stopped else "open_end" if facts.broke_off else "no_change"
        return _said("undetermined", basis, facts, *at_end)
    if facts.broke_off:
        return _said("partial", "stopped" if stopped else "open_end", facts, *at_end)
    last = facts.last_check
    if last is None and facts.turns >= _MANY:
        return _said("undetermined", "many_requests", facts, *changed)
    if last is None:
        basis = "check_not_covering" if _ran_after(facts) else "no_check"
        return _said("complete_unverified", basis, facts, *changed)
    if not last.passed:
        return _said("partial", "check", facts, last.evidence, check=last.tool)
    before = (facts.failed_before.evidence,) if facts.failed_before else ()
    return _said("complete_verified", "check", facts, last.evidence, *before, check=last.tool)


def _ran_after(facts: Facts) -> list[CheckRun]:
    return [run for run in facts.checks if run.place > facts.last_edit]


def _said(
    verdict: VerdictName,
    basis: Basis,
    facts: Facts,
    *evidence: Evidence,
    source: str = "",
    check: str = "",
) -> SessionVerdict:
    return SessionVerdict(
        verdict=verdict,
        basis=basis,
        source=source,
        check=check,
        evidence=evidence,
        unanswered=facts.end.unanswered,
    )
