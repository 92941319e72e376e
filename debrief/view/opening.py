"""A session ready to be shown, and as one HTML file that holds everything."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from debrief.markdown import shorten
from debrief.sessions.model import Session
from debrief.settings import Settings
from debrief.view.assessment import Assessment, reasons_of
from debrief.view.figures import Figure, figure_of
from debrief.view.session_view import OF_A_FILE, SessionView
from debrief.view.templating import environment
from debrief.view.transcript import ShownTranscript

_STATIC = Path(__file__).parent / "static"


class Opened(Struct, frozen=True, kw_only=True):
    """A session with what was said of it."""

    session: Session
    transcript: ShownTranscript
    assessment: Assessment
    figure: Figure | None


def opened(session: Session, assessment: Assessment, settings: Settings) -> Opened:
    """Return a session ready to be shown."""
    transcript = ShownTranscript(session, reasons_of(assessment))
    return Opened(
        session=session,
        transcript=transcript,
        assessment=assessment,
        figure=figure_of(transcript, settings.prices),
    )


def file_of(one: Opened) -> str:
    """Return a session as one HTML file, which loads nothing and needs no script."""
    styles = "\n".join((_STATIC / name).read_text("utf-8") for name in ("style.css", "session.css"))
    view = SessionView(
        one.transcript,
        one.assessment,
        shown=[part.number for part in one.transcript.parts],
        limits=OF_A_FILE,
    )
    return (
        environment()
        .get_template("session/file.html")
        .render(
            title=title_of(one.session),
            view=view,
            figure=one.figure,
            styles=styles,
            row=None,
            agent=0,
        )
    )


def title_of(session: Session) -> str:
    """Return what a session is called: by itself, else by its first prompt."""
    first = next((turn.prompt for turn in session.turns if turn.prompt.strip()), "")
    return shorten(session.title or first, 160) or session.id


def label_words(labels: Iterable[tuple[str, str, str, str]]) -> tuple[str, ...]:
    """Return labels in words: of each its name, its value, its source and who gave it."""
    return tuple(
        f"{name}: {value} ({', '.join(filter(None, (source, who)))})"
        for name, value, source, who in labels
    )
