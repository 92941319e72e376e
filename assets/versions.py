"""Code versions, by which Dagster tells which assets are stale after a change of our code.

A judge, a prompt and a form of rows are code as much as Python is. Each asset's version covers
what its rows are made by, and the versions of the assets that it is made from: Dagster does not
follow staleness through a dependency on all weeks, which most reports and training sets have.
"""

from importlib import resources
from pathlib import Path

from debrief.content import folder
from debrief.evaluators import judges_folder
from debrief.execution.executing import FORM
from debrief.friction import failed_commands, grouping, line_effects
from debrief.keys import digest_of
from debrief.scoring.scorer import verdict_version
from debrief.sessions.store import NORMAL_FORM
from debrief.settings import load_settings
from debrief.signals import extract
from debrief.snapshots.rows import ROWS
from debrief.stages.reports import report_version
from debrief.training.store import LINE_FORMAT

_LENGTH = 16


def _version(*parts: object) -> str:
    return digest_of(*parts)[:_LENGTH]


def _texts(directory: Path, pattern: str) -> list[tuple[str, str]]:
    """Return the texts of a folder by name, a README apart, so that each one counts."""
    return [
        (path.name, path.read_text(encoding="utf-8", errors="replace"))
        for path in sorted(directory.glob(pattern))
        if path.name != "README.md"
    ]


def _prompts(*patterns: str) -> list[tuple[str, str]]:
    """Return the texts of prompts; a file of ``DEBRIEF_PROMPTS`` wins."""
    places = [folder("prompts"), *filter(None, [load_settings().prompts])]
    return [
        text
        for pattern in patterns
        for text in sorted(
            dict(text for place in places for text in _texts(place, pattern)).items()
        )
    ]


def _packaged(package: str, name: str) -> str:
    """Return the text of a file that lies beside the code."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


_JUDGES = _texts(judges_folder(load_settings()), "*.md")
_SCORER = _prompts("session_scorer.txt", "dimensions.toml")
"""One call asks a session's dimensions, and the judges that can ride along."""
_MINER = _prompts("rubric_*.txt")

SESSIONS = _version("sessions", NORMAL_FORM)
EXECUTION = _version("execution", FORM, SESSIONS)
LABELS = _version("labels", EXECUTION)
SNAPSHOTS = _version("snapshots", SESSIONS)
METADATA = _version("metadata", ROWS, SNAPSHOTS)
JUDGING = _version("judging", _JUDGES, _SCORER, METADATA)
SIGNALS = _version("signals", extract.VERSION, SESSIONS)
SCORING = _version("scoring", _SCORER, _JUDGES, verdict_version(), SIGNALS)
FRICTION_EVENTS = _version("friction events", failed_commands.VERSION, SCORING)
RECURRING_FRICTION = _version(
    "recurring friction", grouping.VERSION, _prompts("friction_*.txt"), FRICTION_EVENTS, SNAPSHOTS
)
LINE_EFFECTS = _version("line effects", line_effects.VERSION, RECURRING_FRICTION)
LANGFUSE = _version("langfuse", SCORING, LABELS)
MINING = _version("mining", _MINER, LABELS, SCORING)
RUBRICS = _version("rubrics", _prompts("judge_template.txt"), MINING)
RUBRIC_EVALUATIONS = _version("rubric evaluations", _prompts("judge_template.txt"), RUBRICS)
TRAINING = _version(
    "training",
    LINE_FORMAT,
    _packaged("debrief.training", "known_tools.toml"),
    JUDGING,
    LABELS,
    SCORING,
    RUBRIC_EVALUATIONS,
)
CANDIDATES = _version("candidates", _prompts("candidate_*.txt"), TRAINING)
LEADERBOARD = _version("leaderboard", JUDGING, LABELS, SCORING)
WEEKLY_REPORT = _version("weekly report", report_version(), LABELS, SCORING, RUBRIC_EVALUATIONS)
