"""How many sessions' changes can be made again: ``python -m tools.rebuilt SESSIONS CLONES``.

Prints what becomes of the sessions of a folder step by step, and what is lost at each, as the table
in ``docs/execution.md``; with ``--list``, each session's tree or reason too. Sessions are redacted
first, as they are in the lake.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import get_args

from debrief.execution.file_events import Saw, Shaken, file_events
from debrief.execution.model import BaseSource, NotExecuted, RebuiltTree
from debrief.execution.rebuilding import rebuild
from debrief.markdown import table
from debrief.redaction.redactor import redactor_of
from debrief.sessions.model import Session
from debrief.sessions.redaction import redact_session
from debrief.sessions.store import sessions_in_folder
from debrief.settings import load_settings
from debrief.snapshots.clones import Clones, find_clones

Row = tuple[Session, RebuiltTree | NotExecuted]


def rows_of(sessions: Iterable[Session], clones: Clones) -> Iterator[Row]:
    """Yield what becomes of each session that changed files."""
    with tempfile.TemporaryDirectory() as store:
        for session in sessions:
            if all(isinstance(event, Saw | Shaken) for event in file_events(session)):
                continue
            clone = clones.of(session)
            if clone is None:
                yield session, NotExecuted(session_id=session.id, reason="no_repository")
            else:
                yield session, rebuild(session, clone, Path(store))


def step_table(rows: Sequence[Row]) -> str:
    """Return how many sessions come how far, as Markdown."""
    trees = [tree for _, tree in rows if isinstance(tree, RebuiltTree)]
    exact = [tree for tree in trees if tree.exact]
    reasons = Counter[str](found.reason for _, found in rows if isinstance(found, NotExecuted))
    sources = Counter[str](tree.base_source for tree in trees)
    words = ("read", "record")
    seen = Counter(tree.seen_in if tree.seen_in in words else "commit" for tree in exact)
    differing = [tree for tree in trees if tree.differing]
    unseen = len(trees) - len(exact) - len(differing)
    no_clone = reasons.pop("no_repository", 0)
    lines = [
        ("change files", len(rows), ""),
        ("their repository is at hand", len(rows) - no_clone, f"{no_clone} `no_repository`"),
        ("a tree can be made", len(trees), _counted(reasons)),
        *((f"base {name}", sources[name], "") for name in get_args(BaseSource)),
        ("exact", len(exact), ", ".join(f"{n} by {name}" for name, n in seen.most_common())),
        ("partial", len(trees) - len(exact), f"{len(differing)} differ, {unseen} end unseen"),
        ("their commit is known", sum(bool(tree.landed) for tree in trees), ""),
    ]
    return table(["sessions that", "number", "lost, or how"], [[a, str(b), c] for a, b, c in lines])


def _counted(reasons: Counter[str]) -> str:
    return ", ".join(f"{count} `{reason}`" for reason, count in reasons.most_common())


def main() -> None:
    """Print the tables of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sessions", type=Path)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--list", action="store_true", help="each session, too")
    given = parser.parse_args()
    redact = partial(redact_session, redactor=redactor_of(load_settings()))
    sessions = sessions_in_folder(given.sessions, redact)
    rows = list(rows_of(sessions, find_clones([given.clones])))
    for session, found in rows if given.list else ():
        print(session.repository, session.source, _line(found))
    print(step_table(rows))


def _line(found: RebuiltTree | NotExecuted) -> str:
    if isinstance(found, NotExecuted):
        return f"{found.session_id} {found.reason} {found.detail}"
    state = "exact" if found.exact else "partial"
    seen, base = found.seen_in[:8], f"{found.base[:8]} ({found.base_source})"
    return f"{found.session_id} {state} {seen} {base} {' '.join(found.differing)}"


if __name__ == "__main__":
    main()
