"""``debrief ui``: Dagster's UI on a lake, kept running until it is stopped."""

from __future__ import annotations

import sys
import webbrowser

from debrief.cli.shared import console
from debrief.errors import ConfigurationError
from debrief.files import locked
from pipelines.instance import open_instance, prepare_home, prepare_workspace
from pipelines.launching import end_dead_runs
from pipelines.options import RunOptions
from pipelines.up import LOCAL, Program, Restarts, Supervisor, answers, check_free


def start_ui(options: RunOptions, port: int, *, open_page: bool) -> None:
    """Start the UI with its daemon, say its address when it answers, and wait until it is stopped.

    Raises:
        ConfigurationError: the port is taken, or another ``debrief ui`` shows this lake: two
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
        lock.write_text(address, encoding="utf-8")
        with open_instance(settings) as instance:
            end_dead_runs(instance)
        command = ["-m", "dagster", "dev", "-w", str(prepare_workspace(home))]
        command += ["-h", LOCAL, "-p", str(port), "--log-level", "warning"]
        dagster = Program(
            name="dagster",
            command=(sys.executable, *command),
            environment={**options.environment(), "PYTHONWARNINGS": "ignore"},
            ready=lambda: answers(port, "/server_info"),
        )

        def say() -> None:
            out.print(f"{address}  (Ctrl-C stops it)")
            if open_page:
                webbrowser.open(address)

        out.print(f"Starting Dagster's UI on {settings.lake}; its log is {logs / 'dagster.log'}")
        Supervisor([dagster], logs, restarts=Restarts(most=0), report=out.print).run(say)
