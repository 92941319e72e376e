"""Tools of the usual agents: what each does and takes, as ``known_tools.toml`` lists them."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from msgspec import Struct


class KnownTool(Struct, frozen=True):
    """A tool whose arguments are known: ``path*`` is required, ``:`` names a type other than
    string, ``[]`` an array of it."""

    description: str
    arguments: str


TABLES: dict[str, dict[str, KnownTool]] = {
    agent: {name: KnownTool(*entry) for name, entry in tools.items()}
    for agent, tools in tomllib.loads(
        files("debrief.training").joinpath("known_tools.toml").read_text("utf-8")
    ).items()
}
"""By agent, as a session's ``tool`` names it."""
OF_ANY_AGENT = TABLES.pop("any")
"""What a person is there for, whatever the agent."""
