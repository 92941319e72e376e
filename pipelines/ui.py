"""``debrief ui``: the pages of a lake, with Dagster's UI, kept running until they are stopped."""

from __future__ import annotations

import os
import webbrowser

from debrief.cli.shared import console
from debrief.errors import ConfigurationError
from debrief.files import locked
from debrief.processes import make_socket_folder
from debrief.settings import DAGSTER_PATH, variable_of
from pipelines.dead_runs import end_dead_runs
from pipelines.instance import open_instance, prepare_home, prepare_workspace
from pipelines.options import RunOptions
from pipelines.programs import LOCAL, check_free, code_server, daemon, pages_address, web
from pipelines.supervising import Restarts, Supervisor


def start_ui(options: RunOptions, port: int, *, open_page: bool) -> None:
    """Start everything, say the address when it answers, and wait until the end.

    Raises:
        ConfigurationError: the port is taken, or another ``debrief ui`` shows this lake: two
            daemons on one storage would do the same work twice.
        GaveUpError: a program ended by itself.
    """
    settings, out = options.apply(), console()
    check_free(LOCAL, port, "--port")
    logs = settings.home / "logs"
    home = prepare_home(settings)
    address, lock = f"http://{LOCAL}:{port}", home / ".ui"
    with locked(lock) as is_alone:
        if not is_alone:
            raise ConfigurationError(
                settings.lake, "is shown already", f"Look at {lock.read_text()}"
            )
        lock.write_text(address, encoding="utf-8")
        with open_instance(settings) as instance:
            end_dead_runs(instance)
        code = make_socket_folder(home) / "code.sock"
        workspace = prepare_workspace(home, code)
        os.environ |= {
            "PYTHONWARNINGS": "ignore",
            variable_of("view_url"): pages_address(settings, port),
        }
        programs = [
            code_server(code),
            daemon(workspace),
            web(workspace, LOCAL, port),
        ]

        def say() -> None:
            out.print(f"{address}  the pages: read sessions, scores, prompts  (Ctrl-C stops it)")
            out.print(f"{address}{DAGSTER_PATH}  Dagster: run things")
            if open_page:
                webbrowser.open(address)

        out.print(f"Starting the UI on {settings.lake}; its logs are in {logs}")
        Supervisor(programs, logs, restarts=Restarts(most=0), report=out.print).run(say)
