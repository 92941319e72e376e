"""Draw which room of the house imports which into ``docs/pictures/imports.svg``.

Run ``python -m tools.imports_picture``; it prints how many rooms there are and how many arrows
between them. A room is a package or module below ``debrief``, or one of the packages above it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
from jinja2 import Environment, FileSystemLoader, StrictUndefined

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "imports.svg"
TOPS = ("debrief", "resources", "assets", "pipelines")

Imports = Mapping[str, set[str]]
"""By room, the rooms that it imports."""
_CELL, _TOP = 16, 20


def imports() -> Imports:
    """Return what the rooms import today, in functions and for types alone as well."""
    graph = grimp.build_graph(*TOPS, cache_dir=None)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module in graph.modules - {"debrief"}:
        for imported in graph.find_modules_directly_imported_by(module) - {"debrief"}:
            found[_room(module)].add(_room(imported))
    return {room: found[room] - {room} for room in found}


def from_the_ground(house: Imports) -> list[str]:
    """Return the rooms, each after all that it imports, and of those that may come next the first
    by name.

    Raises:
        graphlib.CycleError: some import each other in a circle.
    """
    sorter = TopologicalSorter({room: sorted(others) for room, others in house.items()})
    sorter.prepare()
    rooms: list[str] = []
    waiting: list[str] = []
    while sorter.is_active():
        waiting = sorted([*waiting, *sorter.get_ready()])
        rooms.append(waiting.pop(0))
        sorter.done(rooms[-1])
    return rooms


def picture(house: Imports) -> str:
    """Return the picture: a room's name ends its line, on which what it imports is marked."""
    rooms = from_the_ground(house)
    side = _CELL * len(rooms) + 20
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["place"] = str
    return environment.get_template("imports_picture.svg").render(
        title="Left of a room's name: what it imports. Below it: who imports it.",
        rooms=rooms,
        marks=sorted((rooms.index(a), rooms.index(b)) for a, b in arrows(house)),
        cell=_CELL,
        top=_TOP,
        width=side + 80,
        height=_TOP + side + 20,
        ink="#2d3748",
        grid="#e2e8f0",
    )


def arrows(house: Imports) -> list[tuple[str, str]]:
    """Return each room with each that it imports."""
    return [(room, other) for room, others in house.items() for other in others]


def _room(module: str) -> str:
    top, _, rest = module.partition(".")
    return rest.partition(".")[0] if top == "debrief" else top


if __name__ == "__main__":
    today = imports()
    PICTURE.write_text(picture(today), encoding="utf-8")
    print(f"{len(from_the_ground(today))} rooms, {len(arrows(today))} arrows between them")
