"""Score configs: what Langfuse checks a score against. Made once, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from debrief.errors import LangfuseError
from debrief.langfuse.client import LangfuseClient
from debrief.scoring.dimensions import BY_NAME, DIMENSIONS

OVERALL = "overall_quality"
NAMES: tuple[str, ...] = (*BY_NAME, OVERALL)
"""The scores that a session gets."""

_LARGEST_PAGE = 100


class Configs(Struct, frozen=True):
    """The configs of our scores on a server."""

    ids: Mapping[str, str]
    """By name of score."""
    problems: Mapping[str, str]
    """Why a score cannot be written, by its name."""
    project: str
    """The id of the project that the keys belong to; empty when the server does not say it."""


def score_configs(client: LangfuseClient) -> Configs:
    """Return the configs of all our scores, made where they are missing.

    A config of the same name that was made for something else is left alone, and named as the
    reason why that score is not written: a server drops in silence what a config forbids.

    Raises:
        LangfuseAwayError: the server cannot be asked.
        RequestRefusedError: it refuses to list them.
    """
    existing: dict[str, list[Mapping[str, Any]]] = {}
    for config in client.pages("/score-configs", limit=_LARGEST_PAGE):
        if not config.get("isArchived"):
            existing.setdefault(str(config.get("name")), []).append(config)
    ids, problems, project = {}, {}, ""
    for name in NAMES:
        request = config_request(name)
        fitting = [config for config in existing.get(name, ()) if _fits(config, request)]
        if name in existing and not fitting:
            problems[name] = (
                f"the score config {name!r} on the server has another type, range or categories;"
                " archive it there and run again"
            )
            continue
        try:
            config = fitting[0] if fitting else client.post("/score-configs", request)
        except LangfuseError as error:
            problems[name] = f"the score config {name!r} could not be made: {error.reason}"
            continue
        ids[name] = str(config["id"])
        project = project or str(config.get("projectId") or "")
    return Configs(ids, problems, project)


def config_request(name: str) -> dict[str, Any]:
    """Return the request that makes the config of a score."""
    dimension = BY_NAME.get(name)
    if dimension is None:
        parts = ", ".join(f"{other.name} ({other.weight:g})" for other in DIMENSIONS)
        description = f"Weighted mean of {parts}"
    else:
        anchors = (f"{a.label or format(a.value, 'g')}: {a.text}" for a in dimension.anchors)
        description = f"{dimension.question} {'; '.join(anchors)}"
    kind: dict[str, Any] = {"dataType": "NUMERIC", "minValue": 0, "maxValue": 1}
    if dimension is not None and dimension.kind == "categorical":
        categories = [{"label": a.label, "value": a.value} for a in dimension.anchors]
        kind = {"dataType": "CATEGORICAL", "categories": categories}
    return {"name": name, **kind, "description": description}


def _fits(config: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    if config.get("dataType") != request["dataType"]:
        return False
    if request["dataType"] == "NUMERIC":
        low, high = config.get("minValue"), config.get("maxValue")
        return (low is None or low <= 0) and (high is None or high >= 1)
    labels = {c.get("label"): c.get("value") for c in config.get("categories") or ()}
    return all(labels.get(c["label"]) == c["value"] for c in request["categories"])
