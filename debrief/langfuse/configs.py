"""Score configs: what Langfuse holds a score against. Made once, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from debrief.errors import LangfuseError
from debrief.langfuse.client import LangfuseClient
from debrief.scoring.dimensions import BY_NAME, DIMENSIONS, Dimension

OVERALL = "overall_quality"
NAMES: tuple[str, ...] = (*BY_NAME, OVERALL)
"""The scores that a session gets."""

_LARGEST_PAGE = 100


class ConfigProblem(Struct, frozen=True):
    """Why a score cannot be written under its name."""

    reason: str


class Configs(Struct, frozen=True):
    """The configs of our scores on a server."""

    ids: Mapping[str, str | ConfigProblem]
    """By name of score: the config's id, or why there is none."""
    project: str
    """The id of the project that the keys belong to; empty when the server does not tell it."""


def score_configs(client: LangfuseClient) -> Configs:
    """Return the configs of all our scores, made where they are missing.

    A config of the same name that was made for something else is left alone, and named as the
    reason why that score is not written: a server drops in silence what a config forbids.

    Raises:
        ServerAwayError: the server cannot be asked.
        RequestRefusedError: it refuses to list them.
    """
    there: dict[str, list[Mapping[str, Any]]] = {}
    for config in client.pages("/score-configs", limit=_LARGEST_PAGE):
        there.setdefault(str(config.get("name")), []).append(config)
    found = {name: _config(client, name, there.get(name, [])) for name in NAMES}
    ids = {n: c if isinstance(c, ConfigProblem) else str(c["id"]) for n, c in found.items()}
    configs = [config for config in found.values() if not isinstance(config, ConfigProblem)]
    project = next((str(c["projectId"]) for c in configs if c.get("projectId")), "")
    return Configs(ids, project)


def _config(
    client: LangfuseClient, name: str, there: list[Mapping[str, Any]]
) -> Mapping[str, Any] | ConfigProblem:
    wanted = wanted_config(name)
    living = [config for config in there if not config.get("isArchived")]
    for config in living:
        if _fits(config, wanted):
            return config
    if living:
        return ConfigProblem(
            f"the score config {name!r} on the server has another type, range or categories;"
            " archive it there and run again"
        )
    try:
        made: Mapping[str, Any] = client.post("/score-configs", wanted)
    except LangfuseError as error:
        return ConfigProblem(f"the score config {name!r} could not be made: {error.reason}")
    return made


def wanted_config(name: str) -> dict[str, Any]:
    """Return the request that makes the config of a score."""
    dimension = BY_NAME.get(name)
    if dimension is not None and dimension.kind == "categorical":
        return {
            "name": name,
            "dataType": "CATEGORICAL",
            "categories": [{"label": a.label, "value": a.value} for a in dimension.anchors],
            "description": _description(dimension),
        }
    description = (
        _description(dimension)
        if dimension
        else "Weighted mean of "
        + ", ".join(f"{other.name} ({other.weight:g})" for other in DIMENSIONS)
    )
    return {
        "name": name,
        "dataType": "NUMERIC",
        "minValue": 0,
        "maxValue": 1,
        "description": description,
    }


def _description(dimension: Dimension) -> str:
    anchors = "; ".join(f"{a.label or format(a.value, 'g')}: {a.text}" for a in dimension.anchors)
    return f"{dimension.question} {anchors}"


def _fits(config: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    if config.get("dataType") != wanted["dataType"]:
        return False
    if wanted["dataType"] == "NUMERIC":
        low, high = config.get("minValue"), config.get("maxValue")
        return (low is None or low <= 0) and (high is None or high >= 1)
    labels = {c.get("label"): c.get("value") for c in config.get("categories") or ()}
    return all(labels.get(c["label"]) == c["value"] for c in wanted["categories"])
