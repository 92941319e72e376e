"""A console of rich's that shows characters which a terminal would obey, instead of sending them.

It is loaded by the first line that is printed: a command that answers in JSON starts without rich.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from debrief.errors import without_controls


class PlainConsole(Console):
    """A console that prints no control characters but its own."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render what is printed, control characters in words."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else without_controls(segment.text)
            yield segment._replace(text=text)
