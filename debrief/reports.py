"""Reports: Markdown for people, from Jinja templates in ``content/reports``.

Text from outside is shown as it is, whatever is in it: every value that a template prints is made
plain, unless code says that it is Markdown already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from debrief.content import folder
from debrief.markdown import counted, interval, plain
from debrief.markdown import table as markdown_table

if TYPE_CHECKING:
    from jinja2 import Environment

_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")


class Markdown(str):
    """A text that is Markdown already, with nothing from outside in it that is not made plain."""

    __slots__ = ()


def report(name: str, **values: Any) -> str:
    """Return a report: a template filled, with one blank line where it leaves several.

    Args:
        name: of the template, without ``.md``.
        values: that it names; one that is missing is an error.
    """
    text = _environment().get_template(f"{name}.md").render(values)
    return _BLANK_LINES.sub("\n\n", text).strip("\n") + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Markdown:
    """Return a table whose cells are made plain where they are no Markdown."""
    return Markdown(markdown_table(head, [[str(_finished(cell)) for cell in row] for row in rows]))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(folder("reports")),
        autoescape=False,
        undefined=StrictUndefined,
        finalize=_finished,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["table"] = table
    made.filters |= {"counted": counted, "interval": interval}
    return made


def _finished(value: Any) -> Any:
    return plain(value) if isinstance(value, str) and not isinstance(value, Markdown) else value
