"""Where stages say how they get on."""

PROGRESS = "debrief.progress"
"""Logger of single steps forward. Not the run's own log: Dagster stores each of its lines as an
event, which costs more than a week of a cheap stage does."""
