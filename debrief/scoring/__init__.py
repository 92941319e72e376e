"""Scores of sessions: six dimensions, any length."""

from __future__ import annotations

from debrief.scoring.dimensions import calculate_overall_quality

__all__ = ["calculate_overall_quality"]
