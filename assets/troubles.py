"""Troubles: what goes wrong in each session, and what recurs in a repository."""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version

import dagster as dg

from assets import versions
from assets.partitions import all_of
from assets.presentation import preview
from assets.sessions import raw_sessions
from assets.weekly import Filled, Metadata, StageRun, fill, stage, upstream, weekly_stage
from debrief.keys import digest_of
from debrief.models.usage import own_prices, price_of
from debrief.sessions.model import Session
from debrief.settings import load_settings
from debrief.troubles import finding, grouping
from debrief.troubles.finding import events_of
from debrief.troubles.grouping import find_troubles
from debrief.troubles.model import ALL, EVENTS, TROUBLES, Trouble, TroubleEvent


def _event_inputs(run: StageRun, week: str) -> str:
    prices = run.once(
        "prices", lambda: digest_of(own_prices(load_settings().prices), version("litellm"))
    )
    return digest_of(finding.VERSION, upstream(run.lake, "raw_sessions", week=week), prices)


def _events(run: StageRun, week: str, stored: list[TroubleEvent]) -> Iterable[TroubleEvent]:
    own = load_settings().prices
    prices = cache(lambda model: price_of(model, own))
    for session in run.lake.read("raw_sessions", week, Session):
        yield from events_of(session, prices)


@weekly_stage(
    TroubleEvent,
    inputs=_event_inputs,
    make=_events,
    group_name="troubles",
    code_version=versions.TROUBLE_EVENTS,
    deps=[raw_sessions],
)
def trouble_events(run: StageRun, week: str, filled: Filled[TroubleEvent]) -> Metadata:
    """Each time that something went wrong in a session of the week, with its words, what was done
    about it, and the tokens, money and minutes that this took. Found without a model."""
    kinds = Counter(row.kind for row in filled.rows)
    sessions = {row.session_id for row in filled.rows}
    return {
        "kinds": preview(("kind", "events"), kinds.most_common()),
        "sessions": len(sessions),
        "summary": f"{len(filled.rows)} events in {len(sessions)} sessions",
    }


@stage(
    group_name="troubles",
    code_version=versions.TROUBLES,
    deps=[all_of(trouble_events)],
)
def troubles(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """What happened more than once in a repository: how often, in which sessions, what it took,
    and what then worked. The costliest of each repository first."""
    run = StageRun(context)
    lake = run.lake
    weeks = lake.partitions(EVENTS)
    inputs = digest_of(grouping.VERSION, [upstream(lake, EVENTS, week=week) for week in weeks])
    filled = fill(
        run,
        TROUBLES,
        ALL,
        Trouble,
        inputs,
        lambda _: find_troubles(lake.rows(EVENTS, TroubleEvent, weeks)),
    )
    rows = filled.rows
    run.log_progress(f"{len(rows)} troubles" + " (unchanged)" * filled.skipped)
    repositories = Counter(row.repository for row in rows)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(upstream(lake, TROUBLES, week=ALL)[:16]),
        metadata={
            "dagster/row_count": len(rows),
            "made_now": filled.fresh,
            "up_to_date": filled.skipped,
            "kinds": preview(("kind", "troubles"), Counter(row.kind for row in rows).most_common()),
            "repositories": len(repositories),
            "shown_at": dg.MetadataValue.url("/troubles"),
        },
    )
