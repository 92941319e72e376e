"""``debrief ui``: Dagster's UI and the pages on a lake, kept running until they are stopped."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from functools import partial
from typing import Any

from debrief.cli.shared import console
from debrief.errors import ConfigurationError, DebriefError
from debrief.files import locked
from debrief.lake import Lake
from debrief.sessions.store import weeks_in
from debrief.settings import Settings
from pipelines.instance import open_instance, prepare_home, prepare_workspace
from pipelines.launching import end_dead_runs, weeks_with_sessions
from pipelines.options import RunOptions
from pipelines.supervising import Restarts, Supervisor
from pipelines.up import LOCAL, check_free, module_of, view_url

_INFO, _STYLE = "/server_info", "/static/style.css"
"""What answers once Dagster's UI is ready, and the pages."""


def start_ui(options: RunOptions, port: int, view_port: int, *, open_page: bool) -> None:
    """Start UI, daemon and pages, say their addresses when they answer, and wait until the end.

    Raises:
        ConfigurationError: a port is taken, or another ``debrief ui`` shows this lake: two
            daemons on one storage would do the same work twice.
        GaveUpError: Dagster ended by itself.
    """
    settings, out = options.settings(), console()
    check_free(LOCAL, port, "--port")
    logs = settings.home / "logs"
    home = prepare_home(settings)
    address, lock = f"http://{LOCAL}:{port}", home / ".ui"
    with locked(lock) as is_alone:
        if not is_alone:
            raise ConfigurationError(
                settings.lake, "is shown already", f"Look at {lock.read_text()}"
            )
        check_free(LOCAL, view_port, "--view-port")
        lock.write_text(address, encoding="utf-8")
        with open_instance(settings) as instance:
            end_dead_runs(instance)
        dev = ("dev", "-w", str(prepare_workspace(home)), "-h", LOCAL, "-p", str(port))
        view = ("pipelines.command", "view", "--port", str(view_port))
        pages = view_url(settings, view_port)
        environment = {
            **options.environment(),
            "PYTHONWARNINGS": "ignore",
            "DEBRIEF_LAKE": settings.lake,
            "DEBRIEF_FIRST_WEEK": first_week(settings, options.resources(settings)),
            "DEBRIEF_UI_URL": settings.ui_url or address,
            "DEBRIEF_VIEW_URL": pages,
        }
        program = partial(module_of, environment=environment)
        servers = [
            program("dagster", "dagster", *dev, "--log-level", "warning", port=port, path=_INFO),
            program("view", *view, port=view_port, path=_STYLE),
        ]

        def say() -> None:
            out.print(f"{address}  Dagster: run things  (Ctrl-C stops it)")
            out.print(f"{pages}  the pages: read sessions, scores, prompts")
            if open_page:
                webbrowser.open(address)

        out.print(f"Starting Dagster's UI on {settings.lake}; its log is {logs / 'dagster.log'}")
        Supervisor(servers, logs, restarts=Restarts(most=0), report=out.print).run(say)


def first_week(settings: Settings, resources: dict[str, dict[str, Any]]) -> str:
    """Return the first week that the UI lists: that of the settings, else the first with sessions.

    Args:
        settings: of this machine.
        resources: say where to look for sessions if the lake knows of none.
    """
    if "first_week" in settings.model_fields_set:
        return settings.first_week
    lake = Lake(settings.lake)
    weeks = weeks_in(lake)
    if not weeks:
        with suppress(DebriefError):
            weeks = {*weeks_with_sessions(lake, resources)}
    return min(weeks, default=settings.first_week)
