"""Names of the rubrics' tables in the lake."""

from __future__ import annotations

EXTRACTED = "extracted_rubrics"
DROPPED = "dropped_rubrics"
"""What mining looked at and dropped, by week."""
UNMINED = "unmined_sessions"
"""Sessions that could not be mined, by week."""
RUBRICS = "rubrics"
TRIALS = "rubric_trials"
"""How each rubric did on sessions that it was not mined from, by score name."""
SETS = "rubric_sets"
"""Final sets as they were, by score name and the last week mined: ``excellence.2026-03-02``."""
EVALUATIONS = "rubric_evaluations"
