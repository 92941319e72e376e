"""One table of all rules, and the prefilter that says which of them to try where."""

from __future__ import annotations

from functools import cache

from debrief.redaction import views
from debrief.redaction.contexts import CONTEXTS, Context
from debrief.redaction.formats import FORMATS, Format
from debrief.redaction.prefilter import Prefilter

VIEW_ANCHORS: tuple[tuple[str, str, bool], ...] = (
    *(("noise", anchor, True) for anchor in views.NOISE_ANCHORS),
    *(("escape", anchor, True) for anchor in views.ESCAPE_ANCHORS),
    ("join", views.JOIN_ANCHOR, False),
    ("delta", views.DELTA_ANCHOR, True),
    ("base64", views.BASE64_ANCHOR, True),
    ("hex", views.HEX_ANCHOR, True),
)
"""Where a text may hide a secret behind an encoding: the view that shows it, its anchor, and
whether the engine tracks where it starts."""

Rule = Format | Context | str
"""A known format, a context, or the name of a view to look through."""

RULES: tuple[Rule, ...] = (*FORMATS, *CONTEXTS, *(view for view, _, _ in VIEW_ANCHORS))


VERSION = "2"
"""Raised when the careful rules change in a way that their anchors do not show."""


def anchors() -> list[str]:
    """Return what the prefilter looks for, in the order of ``RULES``."""
    return [
        *(rule.start for rule in FORMATS),
        *(rule.anchor for rule in CONTEXTS),
        *(anchor for _, anchor, _ in VIEW_ANCHORS),
    ]


@cache
def prefilter() -> Prefilter:
    """Return the prefilter over all rules, compiled once a process (a tenth of a second)."""
    tracked = [
        *(True for _ in FORMATS),
        *(rule.tracked for rule in CONTEXTS),
        *(flag for _, _, flag in VIEW_ANCHORS),
    ]
    return Prefilter(anchors(), untracked=[i for i, flag in enumerate(tracked) if not flag])


def may_hold_secret(json_text: str) -> bool:
    """Return whether the strings of a JSON text have to be looked at one by one."""
    data = json_text.encode("utf-8", "surrogatepass")
    return b"\\/" in data or bool(prefilter().scan(data))
