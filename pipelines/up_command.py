"""Commands that run an instance and look after it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from debrief.cli.app import TEAM, app

runs = typer.Typer(no_args_is_help=True, help="What Dagster remembers of runs, looked after.")
app.add_typer(runs, name="runs", rich_help_panel=TEAM)

Port = Annotated[int, typer.Option("--port", min=1, max=65535, help="Of Dagster's UI.")]


@app.command(rich_help_panel=TEAM)
def up(
    port: Port = 3000,
    api_port: Annotated[int, typer.Option(min=1, max=65535, help="Of the recorder's API.")] = 8484,
    metrics_port: Annotated[int, typer.Option(min=1, max=65535, help="Of the metrics.")] = 9464,
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="Listen on all addresses, not only on 127.0.0.1. The UI has no login."
        ),
    ] = False,
) -> None:
    """Start Dagster's UI and daemon, the recorder's API and the metrics, on one Postgres.

    Without DATABASE_URL, Postgres comes along and is started here. What ends is started again;
    Ctrl-C, SIGTERM or **debrief down** ends all of it.
    """
    from pipelines.up import Ports
    from pipelines.up import up as start

    start(Ports(ui=port, api=api_port, metrics=metrics_port, public=public))


@app.command(rich_help_panel=TEAM)
def down() -> None:
    """End what **debrief up** started, and wait until it has ended."""
    from pipelines.up import down as end

    typer.echo("Debrief is down." if end() else "Debrief was not up.")


@app.command(rich_help_panel=TEAM)
def metrics(
    serve: Annotated[
        bool, typer.Option("--serve", help="Keep giving them out, for Prometheus to scrape.")
    ] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 9464,
) -> None:
    """Print the figures of runs, calls, costs and failures in Prometheus' form.

    With **--serve** they are at `/metrics`, and `/health` says whether all of them can be had.
    """
    import signal
    from contextlib import ExitStack, suppress

    from debrief.settings import load_settings
    from pipelines.metrics import Metrics, exposition, make_exporter, sources

    with ExitStack() as stack:
        collected = Metrics(sources(load_settings(), stack))
        if not serve:
            sys.stdout.write(exposition(collected).decode())
            return
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with make_exporter(collected, host, port) as server:
            typer.echo(f"http://{host}:{port}/metrics")
            with suppress(KeyboardInterrupt):
                server.serve_forever()


@runs.command()
def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", help="Such as 90d; DEBRIEF_KEEP_RUNS_DAYS, else 90d.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell.")] = False,
) -> None:
    """Delete old runs and their events from Dagster's storage; the lake is not touched.

    Runs stay that made what is newest of a partition. The job **prune_runs** does the same every
    night.
    """
    from debrief.errors import InputError
    from debrief.settings import load_settings
    from pipelines.instance import open_instance
    from pipelines.pruning import prune as delete

    number = older_than.removesuffix("d")
    if older_than and not (number.isascii() and number.isdecimal()):
        raise InputError(f"--older-than {older_than}", "is no number of days", "Such as 90d.")
    settings = load_settings()
    with open_instance(settings) as instance:
        done = delete(instance, float(number or settings.keep_runs_days), dry_run=dry_run)
    verb = "would go" if dry_run else "are gone"
    typer.echo(f"{len(done.runs)} runs {verb}; {done.kept} old ones are still needed.")


@runs.command()
def migrate() -> None:
    """Bring Dagster's tables to what the installed Dagster works with. Make a backup first."""
    from debrief.settings import load_settings
    from pipelines.instance import open_instance

    with open_instance(load_settings()) as instance:
        instance.upgrade(typer.echo)
    typer.echo("Dagster's tables are as this Dagster needs them.")
