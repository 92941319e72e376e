"""Assets as Dagster runs them, on a lake in a test's own folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import dagster as dg

from debrief.lake import Lake
from debrief.stages.configuration import EvaluatorChoice, ScopeChoice
from pipelines.definitions import ASSETS, RESOURCES
from resources import LangfuseResource, Stages, WebhookResource

NO_MODEL, WHOLE = EvaluatorChoice(no_model=True), ScopeChoice()


def asset(name: str) -> dg.AssetsDefinition:
    """Return an asset by its name."""
    (found,) = (each for each in ASSETS if each.key.to_user_string() == name)
    assert isinstance(found, dg.AssetsDefinition)
    return found


def resources(
    lake: Lake | str,
    *,
    folders: Sequence[str] = (),
    evaluator: EvaluatorChoice = NO_MODEL,
    scope: ScopeChoice = WHOLE,
    **more: Any,
) -> dict[str, Any]:
    """Return the resources of a run: without a model or a server, unless told otherwise.

    This process's settings name what they are configured with from now on, as a command's do.
    """
    url = lake if isinstance(lake, str) else lake.url
    os.environ |= {
        "DEBRIEF_LAKES": url,
        **({"DEBRIEF_SESSIONS": os.pathsep.join(folders)} if folders else {}),
        "DEBRIEF_MODELS": evaluator.model,
        "DEBRIEF_REPOSITORIES": evaluator.repository,
    }
    return {
        **RESOURCES,
        "stages": Stages(
            lake={"url": url},
            sessions={"folders": [*folders]},
            evaluator=evaluator.model_dump(),
            scope=scope.model_dump(),
        ),
        "langfuse": LangfuseResource(enabled=False),
        "webhook": WebhookResource(enabled=False),
        **more,
    }


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
    return {name: shown_as(value) for name, value in own.metadata.items()}


def shown_as(value: dg.MetadataValue[Any]) -> Any:
    """Return a value; of a table its rows as text."""
    if isinstance(value, dg.TableMetadataValue):
        return "\n".join(str(record.data) for record in value.records)
    return value.value
