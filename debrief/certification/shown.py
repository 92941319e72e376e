"""Say in words what a certificate rests on, for the page and the command alike."""

from __future__ import annotations

from collections.abc import Iterator

from debrief.certification.certificate import Certificate
from debrief.markdown import counted


def certificate_lines(one: Certificate) -> Iterator[tuple[str, str]]:
    """Yield each figure of a certificate: what it is, and its value in words."""
    yield "Labelled blind", f"{one.sessions} of {counted(one.reviews, 'reviewed session')}"
    yield "Complete, and it says so", one.complete_hit.shown
    yield "Incomplete, and it says so", one.incomplete_hit.shown
    if one.undetermined:
        yield "It leaves undetermined", f"{one.undetermined}, no hit and no miss"
    if one.kappa is not None:
        yield "Cohen's kappa of the two", f"{one.kappa:.2f}"
    if one.exact.of:
        yield "The same verdict exactly", one.exact.shown
    if not one.is_certified and not one.is_refuted:
        yield "Missing, if it is right on all", _missing(one)
    if (rate := one.corrected) is not None:
        said = f"it says {one.reviewed.value:.0%}; corrected for its mistakes {rate.value:.0%}"
        yield "Complete, of all it reviewed", f"{said} ({rate.low:.0%} to {rate.high:.0%})"
    if one.disagreements:
        misses = sum(each.is_miss for each in one.disagreements)
        sessions = counted(len(one.disagreements), "session")
        yield "Label and review differ on", f"{sessions}; complete against incomplete: {misses}"


def _missing(one: Certificate) -> str:
    sides = (
        f"{side.missing} {name}"
        for name, side in (("complete", one.complete_hit), ("incomplete", one.incomplete_hit))
        if side.missing
    )
    text = " and ".join(sides)
    if one.likely is None:
        return text
    return f"{text}; about {counted(one.likely, 'session')} drawn by chance hold as many"
