"""``debrief label``: a model proposes labels, which people confirm or change on a page."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.shared import (
    AsJson,
    DryRun,
    LakeUrl,
    MaxCost,
    Model,
    Yes,
    checked_limit,
    console,
    existing_lake,
    print_json,
    warn,
)
from debrief.errors import ConfigurationError, InputError
from debrief.markdown import counted

if TYPE_CHECKING:
    from debrief.evaluators import Evaluators
    from debrief.scoring.model import SessionScores

_FAILURES = 5


def label(
    model: Model = "",
    sample: Annotated[
        int, typer.Option("--sample", min=1, metavar="N", help="Sessions to propose labels for.")
    ] = 40,
    max_cost: MaxCost = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    lake: LakeUrl = "",
) -> None:
    """Have a model propose whether sessions did what was asked, for people to confirm.

    The sessions are those that "Label next" offers first. What is proposed waits there for one key
    each, and counts for nothing until a person has said the same or something else. What it costs
    is said before anything is asked. Exit code 1 when a session could not be read.
    """
    from debrief.cli.asking import agreed
    from debrief.lake import Lake
    from debrief.outcomes.proposing import (
        PROPOSED,
        ProposedLabel,
        proposals_of,
        put_proposals,
        sessions_to_label,
    )
    from debrief.scoring.scorer import score_week
    from debrief.sessions.model import SessionHead
    from debrief.sessions.store import SESSIONS_TABLE
    from debrief.settings import load_settings

    settings = load_settings().with_given(model=model, max_cost_usd=checked_limit(max_cost))
    if not settings.model:
        raise ConfigurationError("debrief label", "has no model to ask", "Name one: --model NAME.")
    opened = Lake(existing_lake(lake) or settings.lake)
    digests = {head.id: head.digest for head in opened.rows(SESSIONS_TABLE, SessionHead)}
    known = {
        row.session_id
        for row in opened.rows(PROPOSED, ProposedLabel)
        if row.model == settings.model and row.session_digest == digests.get(row.session_id)
    }
    sessions = sessions_to_label(opened, sample, known)
    if not sessions:
        raise InputError(
            opened.url,
            "has no scored session that waits for a label or a proposal",
            "debrief run scores sessions.",
        )

    def ask(by: Evaluators) -> list[SessionScores]:
        return list(score_week(sessions, by.chunk_scorer, concurrency=by.concurrency))

    asking = agreed(settings, ask, yes, dry_run=dry_run, sessions=len(sessions))
    with console(stderr=True).status(f"Reading {counted(len(sessions), 'session')} …"):
        rows = ask(asking)
    proposed = proposals_of(rows, datetime.now(UTC))
    put_proposals(opened, proposed)
    failed = [row for row in rows if row.status == "failed"]
    for row in failed[:_FAILURES]:
        warn(f"{row.session_id}: {row.failure}")
    if as_json:
        print_json({"proposed": proposed, "failed": len(failed), "spent": asking.spent})
    else:
        said = Counter(each.value for each in proposed)
        kinds = ", ".join(f"{said[each]} {each}" for each in ("good", "bad", "unsure"))
        out = console()
        out.print(f"{counted(len(proposed), 'label')} proposed: {kinds}; {len(failed)} failed.")
        out.print('They wait on "Label next": debrief view, then one key each.')
    raise typer.Exit(int(bool(failed)))
