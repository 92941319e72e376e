"""What each stage's week is made from, as a digest: what decides whether there is work to do."""

from assets.weekly import upstream
from debrief.digests import digest_of
from debrief.evaluation import version_of
from debrief.evaluators import Evaluators
from debrief.lake import Lake
from debrief.rubrics.model import RUBRICS, Rubric
from debrief.rubrics.offline_miner import EARLIER_WEEKS
from debrief.scoring.model import SCORE_NAMES
from debrief.weeks import week_after


def judged_from(lake: Lake, evaluators: Evaluators, week: str) -> str:
    """Return a digest of all that a week's judgements are made from."""
    return digest_of(
        upstream(lake, "raw_sessions", week=week),
        evaluators.eval_digest,
        version_of(evaluators.change_judge),
    )


def scored_from(lake: Lake, evaluators: Evaluators, week: str) -> str:
    """Return a digest of all that a week's scores are made from."""
    return digest_of(upstream(lake, "raw_sessions", week=week), evaluators.scoring_fingerprint)


def mined_from(lake: Lake, evaluators: Evaluators, week: str) -> str:
    """Return a digest of all that a week's rubrics are mined from."""
    weeks = (*earlier_weeks(week), week)
    return digest_of(
        [upstream(lake, "raw_sessions", "session_scores", week=each) for each in weeks],
        evaluators.scoring_fingerprint,
        evaluators.miner.name,
        *words_of(evaluators.miner),
    )


def held_from(lake: Lake, evaluators: Evaluators, week: str, final: list[Rubric]) -> str:
    """Return a digest of all that a week's rubric evaluations are made from."""
    return digest_of(
        upstream(lake, "raw_sessions", week=week),
        final,
        evaluators.rubric_judge.model,
        *words_of(evaluators.rubric_judge),
    )


def final_rubrics(lake: Lake) -> list[Rubric]:
    """Return the final rubrics of every score name."""
    return [rubric for name in SCORE_NAMES for rubric in lake.read(RUBRICS, name, Rubric)]


def earlier_weeks(week: str) -> list[str]:
    """Return the weeks that a small week is mined together with."""
    return [week_after(week, -back) for back in range(EARLIER_WEEKS, 0, -1)]


def words_of(asked: object) -> list[str]:
    """Return the version of the words that a model is asked in; nothing for rules."""
    version = str(getattr(asked, "version", ""))
    return [version] if version else []
