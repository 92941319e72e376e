"""Why a backfill found nothing to take, told so that the next command can be right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from assets.scope import facts_of
from debrief.errors import InputError
from debrief.sessions.where import Where
from debrief.training.pairs import observed_pairs
from debrief.weeks import week_of
from pipelines.due import Outlook
from pipelines.targets import Wanted

_SHOWN = 10
"""Values, or weeks, that are offered."""


def nothing_to_take(wanted: Wanted, outlook: Outlook) -> InputError:
    """Return the error that names what no session answers to, and what there is instead."""
    known = sorted({*outlook.lake.partitions("raw_sessions"), *outlook.scan.weeks()})
    if not known:
        move = "debrief sources lists what there is to read, debrief run reads it."
        return InputError(outlook.lake.url, "holds no session", move)
    weeks = [week for week in known if week in wanted.weeks or not wanted.weeks]
    if not weeks:
        return _no_week(wanted.weeks, known)
    if wanted.scope.where:
        return _no_session(wanted.scope.where, weeks, outlook)
    if wanted.fingerprint:
        there = Counter(pair[1] for pair in observed_pairs(outlook.lake, weeks))
        move = f"There are: {_listed(there)}."
        return InputError(f"--fingerprint {wanted.fingerprint}", "is that of no training set", move)
    return InputError(
        wanted.stage, "has no partition yet", "debrief run makes what comes before it."
    )


def _no_week(asked: Sequence[str], known: Sequence[str]) -> InputError:
    first, last = asked[0], asked[-1]
    told = first if first == last else f"{first}..{last}"
    to_come = first > week_of(datetime.now(UTC))
    reason = "is still to come" if to_come else "holds no session that was read"
    there = known[0] if len(known) == 1 else f"{known[0]}..{known[-1]}"
    return InputError(f"--weeks {told}", reason, f"There are sessions in {there}.")


def _no_session(where: Where, weeks: Sequence[str], outlook: Outlook) -> InputError:
    facts = [facts for week in weeks for _, facts in facts_of(outlook.lake, week)]
    for condition in where.conditions:
        alone = Where((condition,))
        if any(alone.takes(each) for each in facts):
            continue
        field = condition[0]
        there = Counter(value for each in facts for value in each.get(field, ()))
        move = f"There are: {_listed(there)}." if there else f"Of no session a {field} is known."
        return InputError(f"--where {alone}", "fits no session", move)
    return InputError(
        f"--where {where}", "fits no session: each has some, and none has all", "Leave one out."
    )


def _listed(there: Counter[str]) -> str:
    values = [value or "(none)" for value, _ in there.most_common(_SHOWN)]
    more = len(there) - len(values)
    return ", ".join(values) + (f" and {more} more" if more > 0 else "")
