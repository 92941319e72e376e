"""``debrief show``: one session as people read it, in the terminal or as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.finding import SESSION_HELP, find_session, made_whole
from debrief.cli.shared import LakeUrl, console
from debrief.errors import InputError

if TYPE_CHECKING:
    from debrief.lake import Lake
    from debrief.sessions.model import Session
    from debrief.view.assessment import Assessment


def show(
    session: Annotated[str, typer.Argument(help=f"{SESSION_HELP}.")],
    turn: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="That turn alone, with all it printed.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write one HTML file instead, which loads nothing."),
    ] = None,
    lake: LakeUrl = "",
) -> None:
    """Show a session turn by turn, with its signals, its verdict and where each reason is seen.

    Calls are shown with the beginning and the end of what they printed; **--turn** shows all of it.
    """
    from debrief.conversion import open_lake
    from debrief.redaction.redactor import redactor_of
    from debrief.settings import load_settings
    from debrief.view.figures import figure_of
    from debrief.view.session import file_of
    from debrief.view.transcript import ShownTranscript

    settings = load_settings()
    redact = made_whole(redactor_of(settings))
    place = open_lake(lake or settings.lake)
    found = find_session(session, settings, place, redact)
    transcript = ShownTranscript(found, _assessed(found, place))
    figure = figure_of(transcript, settings.prices)
    if html is not None:
        try:
            html.write_text(file_of(transcript, figure), "utf-8")
        except OSError as error:
            raise InputError(str(html), f"cannot be written: {error.strerror}") from None
        console().print(f"{html}: {found.id}")
        return
    from debrief.cli.show_text import print_session

    if turn is not None and turn not in [turn.number for turn in found.turns]:
        raise InputError("--turn", f"{found.id} has no turn {turn}")
    print_session(console(), transcript, figure, turn)


def _assessed(session: Session, lake: Lake) -> Assessment:
    """Return what the lake says of a session; of one that it has not, its signals alone."""
    from msgspec.structs import replace

    from debrief.keys import week_of
    from debrief.outcomes.store import labels_of
    from debrief.signals.extract import session_signals
    from debrief.view.assessment import labels_shown, read_assessment

    labels = labels_shown(labels_of(lake, session.id))
    assessment = read_assessment(lake, week_of(session.started), session.id, labels)
    if assessment.signals is not None:
        return assessment
    return replace(assessment, signals=session_signals(session))
