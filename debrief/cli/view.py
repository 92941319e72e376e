"""``debrief view``: the pages that show what a lake holds."""

from __future__ import annotations

from typing import Annotated

import typer

from debrief.cli.shared import LakeUrl, console, existing_lake, warn

OPEN_WARNING = (
    "Other machines can reach this port, and whoever reaches it by a name of these pages can read "
    "them: put a login proxy with TLS in front, and name its header in DEBRIEF_IDENTITY_HEADER."
)


def view(
    lake: LakeUrl = "",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any that is free.")] = 3000,
    of_demo: Annotated[bool, typer.Option("--demo", help="Show the demo's lake.")] = False,
) -> None:
    """Show sessions, scores, prompts, rubrics and training sets in a browser.

    It answers only to the names of this machine. A team puts a login proxy in front, and names its
    address in DEBRIEF_VIEW_URL, its header in DEBRIEF_IDENTITY_HEADER. Ctrl-C or SIGTERM stops it.
    """
    from debrief.door.app import Door
    from debrief.door.requests import LOCAL
    from debrief.lake import Lake
    from debrief.recorder.service.running import ServiceLimits, listen, run, url_of
    from debrief.settings import load_settings
    from debrief.view.app import make_app

    settings = load_settings()
    with listen(host, port) as listener:
        shown = existing_lake(lake) or (str(settings.home / "demo") if of_demo else settings.lake)
        opened = Lake(shown)
        if host not in LOCAL and not settings.identity_header:
            warn(OPEN_WARNING)
        run(
            Door(make_app(opened, settings), settings, lake=opened),
            ServiceLimits(),
            listener,
            lambda: console().print(f"{url_of(listener)}  (Ctrl-C stops it)"),
        )
