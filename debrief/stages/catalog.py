"""All stages, in the order in which one follows from another."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from debrief import stages
from debrief.stages.stage import Stage


def _declared() -> dict[str, Stage[Any]]:
    """Return the stages that the modules of this folder declare, by name."""
    modules = (
        import_module(f"{stages.__name__}.{module.name}")
        for module in iter_modules(stages.__path__)
    )
    values = (value for module in modules for value in vars(module).values())
    return by_name(value for value in values if isinstance(value, Stage))


def by_name(stages: Iterable[Stage[Any]]) -> dict[str, Stage[Any]]:
    """Return stages by name.

    Raises:
        ValueError: two have the same name.
    """
    found: dict[str, Stage[Any]] = {}
    for stage in stages:
        if found.setdefault(stage.name, stage) is not stage:
            raise ValueError(f"two stages have the name {stage.name}")
    return found


def _in_order(declared: dict[str, Stage[Any]]) -> list[Stage[Any]]:
    before = {name: [read.name for read in declared[name].read_stages] for name in sorted(declared)}
    return [declared[name] for name in TopologicalSorter(before).static_order()]


@cache
def all_stages() -> tuple[Stage[Any], ...]:
    """Return the stages, each after those that it reads."""
    return tuple(_in_order(_declared()))


def weekly_tables() -> tuple[Stage[Any], ...]:
    """Return the stages that make a table week by week."""
    return tuple(
        stage for stage in all_stages() if stage.partitions == "week" and stage.make is not None
    )


def place_of(name: str) -> int:
    """Return a number by which stages stand in order; what is no stage comes last."""
    names = [stage.name for stage in all_stages()]
    return names.index(name) if name in names else len(names)
