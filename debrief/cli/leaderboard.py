"""``debrief leaderboard``: how prompts, tools and models compare, in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from debrief.cli.shared import AsJson, LakeUrl, console, existing_lake, print_json
from debrief.errors import InputError


def leaderboard(
    outcomes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="Compare only on what these sources of outcomes say, such as execution; may be "
            "given more than once. Default: on every verdict.",
        ),
    ] = None,
    as_json: AsJson = False,
    lake: LakeUrl = "",
) -> None:
    """Compare prompts, tools and models: how many of their sessions are done and checked.

    With **--outcomes execution** only sessions count whose checks were run before and after their
    change (**debrief execute**), by how those ended.
    """
    from debrief.judging.model import JudgeEvaluation
    from debrief.lake import Lake
    from debrief.outcomes.store import DECIDING, success_labels
    from debrief.scoring.model import SessionScores
    from debrief.settings import load_settings
    from debrief.snapshots.model import SessionMetadataRow, fingerprint_names
    from debrief.training import leaderboard as board

    for source in outcomes or ():
        if source not in DECIDING:
            raise InputError(
                f"--outcomes {source}",
                "is no source that decides",
                f"Known: {', '.join(DECIDING)}.",
            )
    opened = Lake(existing_lake(lake) or load_settings().lake)
    scores = opened.rows("session_scores", SessionScores)
    if outcomes:
        scores = board.resting_on(scores, success_labels(opened, outcomes))
    rows = board.leaderboard(
        scores,
        opened.rows("session_metadata", SessionMetadataRow),
        opened.rows("judge_evaluations", JudgeEvaluation),
        board.work_of(opened),
    )
    if as_json:
        print_json(rows)
        return
    console().print(board.leaderboard_markdown(rows, fingerprint_names(opened)))
