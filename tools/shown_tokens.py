"""How many tokens a model is shown of each session of a folder: ``python -m tools.shown_tokens``.

The fixed text of a question (what is asked, and how to answer) comes on top.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from statistics import mean, median

from debrief.markdown import table
from debrief.redaction.redactor import redactor_of
from debrief.scoring.scorer import DEFAULT
from debrief.scoring.shown_session import shown_text
from debrief.sessions.model import Session, calls_of
from debrief.sessions.redaction import redact_session
from debrief.sessions.store import sessions_in_folder
from debrief.settings import load_settings
from debrief.tokens import count_tokens

SOME_WORK = 5
"""Calls from which on a session is more than a greeting or another tool's small fixture."""


def tokens_of(session: Session) -> tuple[int, int]:
    """Return the tokens that a model is shown of a session in all its parts, and how many parts."""
    parts = DEFAULT.chunks_of(session)
    return sum(count_tokens(shown_text(session, part)) for part in parts), len(parts)


def main() -> None:
    """Print the table of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    redact = partial(redact_session, redactor=redactor_of(load_settings()))
    rows = [
        (sum(1 for _ in calls_of(session)), *tokens_of(session))
        for session in sessions_in_folder(folder, redact)
    ]
    print(_table(rows))


def _table(rows: list[tuple[int, int, int]]) -> str:
    lines = []
    for name, least in (("all", 0), (f"with {SOME_WORK} calls or more", SOME_WORK)):
        kept = sorted((tokens, parts) for calls, tokens, parts in rows if calls >= least)
        if not kept:
            continue
        tokens = [each for each, _ in kept]
        tenth = tokens[len(tokens) * 9 // 10]
        split = sum(parts > 1 for _, parts in kept)
        figures = (len(kept), median(tokens), mean(tokens), tenth, tokens[-1])
        lines.append([name, *(f"{figure:,.0f}" for figure in figures), str(split)])
    head = ["sessions", "number", "median", "mean", "nine of ten below", "most", "in parts"]
    return table(head, lines)


if __name__ == "__main__":
    main()
