"""What the rubric stages show of themselves in the UI."""

from collections.abc import Sequence

from assets.presentation import markdown, preview
from assets.weekly import counted
from debrief.rubrics.linting import lint
from debrief.rubrics.model import (
    DroppedRubric,
    ExtractedRubric,
    Rubric,
    RubricEvaluation,
    RubricTrial,
    UnminedSession,
)
from debrief.rubrics.page import rubrics_markdown

Shown = dict[str, object]


def mined_shown(
    rows: Sequence[ExtractedRubric],
    dropped: Sequence[DroppedRubric],
    unmined: Sequence[UnminedSession],
) -> Shown:
    """Return the metadata of a week that was mined."""
    return {
        **counted(rows),
        "rubrics": preview(
            ("score name", "rubric", "effect", "in halves", "best/worst", "evidence"),
            [
                (
                    row.score_name,
                    row.name,
                    row.effect_size,
                    row.held_out_effect,
                    f"{row.best_count}/{row.worst_count}",
                    row.evidence[0].quote if row.evidence else "",
                )
                for row in rows
            ],
        ),
        "dropped": preview(
            ("score name", "what", "effect", "why"),
            [(row.score_name, row.name, row.effect, row.reason) for row in dropped],
            limit=60,
        ),
        "unmined": len(unmined),
        "unmined_sessions": preview(
            ("session", "score name", "reason"),
            [(row.session_id, row.score_name, row.reason) for row in unmined],
        ),
    }


def set_shown(
    rows: Sequence[Rubric], source: Sequence[ExtractedRubric], trials: Sequence[RubricTrial]
) -> Shown:
    """Return the metadata of a final set."""
    marks = lint(rows)
    page = rubrics_markdown(rows, extracted=source, marks=marks, trials=trials)
    return {
        **counted(rows),
        "page": markdown(page),
        "held_out_effects": preview(
            ("rubric", "effect", "low", "high", "p", "best/worst", "kept", "why"),
            [
                (
                    trial.name,
                    trial.effect,
                    trial.low,
                    trial.high,
                    trial.p_value,
                    f"{trial.best_count}/{trial.worst_count}",
                    "yes" if trial.kept else "no",
                    trial.reason,
                )
                for trial in trials
            ],
        ),
        "linter": preview(
            ("rubric", "rule", "what"), [(m.rubric_id, m.rule, m.message) for m in marks]
        ),
        "mined": len(source),
        "dropped_on_held_out_sessions": sum(not trial.kept for trial in trials),
    }


def judged_shown(rows: Sequence[RubricEvaluation]) -> Shown:
    """Return the metadata of a week that was held against the rubrics."""
    suspected = {row.session_id for row in rows if row.injection_suspected}
    return {
        **counted(rows),
        "evaluations": preview(
            ("session", "score name", "rubric", "score", "reasoning or failure"),
            [
                (r.session_id, r.score_name, r.rubric_key, r.score, r.reasoning or r.failure)
                for r in rows
            ],
        ),
        "failed": sum(row.status == "failed" for row in rows),
        "no_occasion": sum(row.status == "no_occasion" for row in rows),
        "injection_suspected": len(suspected),
        "injection_suspected_sessions": preview(
            ("session",), [(id_,) for id_ in sorted(suspected)]
        ),
    }
