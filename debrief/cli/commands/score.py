"""``debrief score``."""

from __future__ import annotations

from typing import Annotated

import typer

from debrief.cli.commands.options import LakeUrl
from debrief.cli.console import told

app = typer.Typer()


@app.command()
@told
def score(
    session: Annotated[
        str,
        typer.Argument(
            help="An id in the lake or among this machine's transcripts (its beginning will do), "
            "a transcript, or a folder of them."
        ),
    ] = "",
    langfuse: Annotated[
        str, typer.Option("--langfuse", help="The id of a session on the Langfuse server.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Every session of the lake.")] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no model: the deterministic offline evaluator.")
    ] = False,
    model: Annotated[str, typer.Option(help="A LiteLLM model name.")] = "",
    store: Annotated[
        bool,
        typer.Option("--store", help="Write the scores to the Langfuse server and read them back."),
    ] = False,
    invariance: Annotated[
        bool,
        typer.Option(
            "--invariance", help="How far scores move when sessions are cut at 80, 100 and 120 %."
        ),
    ] = False,
    answers: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Write the prompts there, and take the answers that a coding agent leaves there.",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    lake: LakeUrl = "",
) -> None:
    """Score a session in six dimensions, each with a rationale and the turns that show it.

    A session of any length is cut into parts by tokens and put together again; how far the
    parts agree is told. Nothing is kept but with **--store**. Exit code 1 when a session cannot
    be scored or the server does not confirm a score.
    """
    from debrief.cli.score import Wanted
    from debrief.cli.score import score as score_wanted

    wanted = Wanted(
        session=session,
        langfuse=langfuse,
        everything=everything,
        offline=offline,
        model=model,
        store=store,
        invariance=invariance,
        as_json=as_json,
        answers=answers,
        lake=lake,
    )
    raise typer.Exit(score_wanted(wanted))
