"""Write ``docs/settings.md`` from the docstrings of the fields in ``debrief.settings``.

Run ``python -m tools.settings_page``. What comes after the tables is written by hand and kept.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from pathlib import Path

from pydantic.fields import FieldInfo

from debrief.settings import Settings, variable_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
BY_HAND = "## The `.debrief` folder"
INTRODUCTION = """\
# Settings

From the environment, else from `~/.debrief/.env` (mode 600: it holds keys), else the default. An
empty variable counts as not set. `python -m tools.settings_page` makes these tables from
`recorder/debrief/settings.py`.
"""
SECTIONS = {
    "home": "Where things are",
    "launch": "[Past one machine](scaling.md)",
    "no_model": "Models",
    "state_url": "What processes and machines share",
    "langfuse_host": "Langfuse",
    "score_names": "Rubrics",
    "labels": "Training sets and people's labels",
    "recorder": "The recorder",
    "dagster_database_url": "A team's instance ([operations](operations.md))",
    "webhook_url": "Messages",
    "view_url": "The pages and who may use them ([operations](operations.md#people))",
    "claude_command": "Capture",
}
"""The title of each table, by its first field."""
FAMILIES = {
    "no_model": "| `<PROVIDER>_API_KEY` | key, such as `OPENROUTER_API_KEY` | none |",
    "labels": (
        "| `DEBRIEF_TRAINING_<OPTION>` | what is taken into training sets, in every run that does "
        "not choose at launch: the options of `training_sets` in the launchpad, in capitals, such "
        "as `DEBRIEF_TRAINING_MAX_TOKENS=8192`, `…_STATUS=ready`, "
        "`…_VERDICTS=complete_verified`, `…_TOOLS=claude-code,codex` | complete sessions that a "
        "model can learn from |"
    ),
}
"""Rows for variables whose names hold another name, before the field that they precede."""


def settings_page(page: str) -> str:
    """Return the page with its tables as the model describes them.

    Args:
        page: as it is; what it says after the tables is kept.
    """
    lines = [INTRODUCTION.rstrip()]
    for name, text in _docstrings().items():
        if name in SECTIONS:
            lines += ["", f"| {SECTIONS[name]} | | Default |", "|---|---|---|"]
        if name in FAMILIES:
            lines.append(FAMILIES[name])
        description, _, default = text.partition(". Default: ")
        default = default or _default(Settings.model_fields[name])
        lines.append(f"| `{variable_of(name)}` | {description} | {default} |")
    return "\n".join([*lines, "", page[page.index(BY_HAND) :]])


def _docstrings() -> dict[str, str]:
    """Return the docstring of each field on one line, by the field's name."""
    body = ast.parse(textwrap.dedent(inspect.getsource(Settings))).body[0]
    assert isinstance(body, ast.ClassDef)
    texts: dict[str, str] = {}
    for field, text in pairwise(body.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(words))
            ):
                texts[name] = " ".join(words.split())
    return texts


def _default(field: FieldInfo) -> str:
    if isinstance(field.default, bool):
        return "on" if field.default else "off"
    if field.default in ("", (), None):
        return "none"
    return f"`{field.default}`" if isinstance(field.default, str) else str(field.default)


if __name__ == "__main__":
    PAGE.write_text(settings_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
