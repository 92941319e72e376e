"""Which side of the train/eval split a session is on.

A session's side is a hash of its repository and its week, and of nothing else: so what was worked
on together stays together, and no session that comes later moves one that was there. Forks,
continuations and near-duplicates mostly fall into one week. One that does not is left out rather
than moved: of two relatives the one that started later. The week is part of the hash whatever the
tables are partitioned by: another width would move the sides of all earlier sessions.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from debrief.training.model import Split
from debrief.weeks import week_of

EVAL_SHARE = 0.2


def side_of(repository: str, started: datetime, eval_share: float = EVAL_SHARE) -> Split:
    """Return the side of a session.

    Args:
        repository: its name; sessions without one share the empty name.
        started: time of its first record.
        eval_share: the share of all (repository, week) pairs that is held out, 0 to 1. A greater
            one moves pairs from ``train`` to ``eval`` and none the other way.
    """
    bucket = f"{week_of(started)} {repository}".encode("utf-8", "surrogatepass")
    draw = int.from_bytes(hashlib.sha256(bucket).digest()[:8])
    return "eval" if draw < eval_share * 2**64 else "train"
