"""Score sessions on six dimensions, in chunks where they are long."""

from __future__ import annotations

from debrief.scoring.dimensions import calculate_overall_quality

__all__ = ["calculate_overall_quality"]
