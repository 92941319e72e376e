"""The recipes of docs/training-sets.md: what is shown there is what is run."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

PAGE = Path(__file__).parents[2] / "docs" / "training-sets.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Recipe(Struct, frozen=True, kw_only=True):
    """What a trainer needs to take a form."""

    trainer: str
    export: str
    """The command that writes the form."""
    form: str
    text: str
    """A program, a configuration, or a command of the trainer's own."""


def recipes() -> dict[str, Recipe]:
    """Return the recipes by their trainers' names, as their headings have them."""
    _, _, page = PAGE.read_text(encoding="utf-8").partition("\n## Recipes\n")
    part = page.partition("\n## ")[0]
    found = {}
    for section in part.split("\n### ")[1:]:
        trainer, _, body = section.partition("\n")
        (_, commands), *rest = _BLOCK.findall(body)
        export, _, command = commands.partition("\n")
        text = rest[0][1] if rest else command.replace("\\\n", " ")
        form = export.split("--form ")[1].split()[0]
        found[trainer] = Recipe(trainer=trainer, export=export, form=form, text=text)
    return found
