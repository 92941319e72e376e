"""Assets as Dagster runs them, on a lake in a test's own folder."""

from __future__ import annotations

import os
from typing import Any

import dagster as dg

from debrief.lake import Lake
from resources import (
    EvaluatorResource,
    LakeResource,
    LangfuseResource,
    ScopeResource,
    SessionStore,
    WebhookResource,
)


def resources(lake: Lake | str, **more: Any) -> dict[str, Any]:
    """Return the resources of a run: without a model or a server, unless ``more`` says otherwise.

    This process's settings name what they are configured with from now on, as a command's do.
    """
    made = {
        "lake": LakeResource(url=lake if isinstance(lake, str) else lake.url),
        "sessions": SessionStore(),
        "evaluator": EvaluatorResource(no_model=True),
        "langfuse": LangfuseResource(enabled=False),
        "scope": ScopeResource(),
        "webhook": WebhookResource(enabled=False),
        **more,
    }
    evaluator, folders = made["evaluator"], made["sessions"].folders
    os.environ |= {
        "DEBRIEF_LAKES": made["lake"].url,
        **({"DEBRIEF_SESSIONS": os.pathsep.join(folders)} if folders else {}),
        "DEBRIEF_MODELS": evaluator.model,
        "DEBRIEF_REPOSITORIES": evaluator.repository,
    }
    return made


def metadata(
    result: dg.ExecuteInProcessResult, partition: str | None = None, asset: str = ""
) -> dict[str, Any]:
    """Return what a run shows of its only materialization, or that of one partition or asset."""
    events = [event.materialization for event in result.get_asset_materialization_events()]
    (own,) = [
        event
        for event in events
        if partition in (None, event.partition) and asset in ("", event.asset_key.to_user_string())
    ]
    return {name: value.value for name, value in own.metadata.items()}
