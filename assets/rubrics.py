"""Rubrics: mined by week, consolidated over all weeks, and every session judged on them."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import dagster as dg
from msgspec import structs
from pydantic import Field

from assets import versions
from assets.evaluations import evaluation_stage, score_check, session_scores
from assets.partitions import all_of
from assets.presentation import listed, markdown, measured, preview
from assets.sessions import raw_sessions
from assets.weekly import (
    MODEL_POOL,
    Filled,
    Metadata,
    StageRun,
    check,
    fill,
    stage,
    upstream,
    weekly_stage,
)
from debrief.errors import ModelError
from debrief.evaluation import version_of
from debrief.keys import digest_of, week_after, week_of
from debrief.lake import Lake, Row
from debrief.rubrics.judging import evaluate_rubrics
from debrief.rubrics.linting import lint
from debrief.rubrics.model import (
    ALL,
    CANDIDATES,
    DROPPED,
    EVALUATIONS,
    EXTRACTED,
    RUBRICS,
    SEARCHES,
    SETS,
    TRIALS,
    UNMINED,
    DroppedRubric,
    ExtractedRubric,
    Rubric,
    RubricEvaluation,
    RubricSearch,
    RubricTrial,
    UnminedSession,
)
from debrief.rubrics.offline_miner import EARLIER_WEEKS
from debrief.rubrics.page import rubrics_markdown
from debrief.rubrics.trial import (
    MOST_JUDGEMENTS,
    MOST_OFFLINE,
    Split,
    final_rubrics,
    looked_at,
    searches_of,
    settle,
    split_of,
    try_rubrics,
)
from debrief.scoring.model import SCORE_NAMES, ScoreName, SessionScores
from debrief.scoring.speaking import speaking_rows
from debrief.sessions.model import Session
from debrief.summary import Evaluated


def _rows(
    run: StageRun, table: str, row_type: type[Row], only: tuple[str, str], weeks: Iterable[str] = ()
) -> list[Row]:
    """Return the rows with a value in a column, of all weeks if none is named."""
    column, value = only
    chosen = weeks or run.lake.partitions(table)
    read = partial(run.lake.read, table, row_type=row_type, only=(column, [value]))
    return [row for week in chosen for row in read(week)]


def _scores(run: StageRun, *weeks: str) -> list[SessionScores]:
    """Return the row that speaks for each session, of all weeks if none is named."""
    chosen = weeks or run.lake.partitions("session_scores")
    return list(speaking_rows(run.lake.rows("session_scores", SessionScores, chosen)))


def _split(run: StageRun) -> Split:
    """Return which sessions are mined, by how many scored ones each week has."""
    weeks = run.lake.partitions("session_scores")
    counts = ((week, sum(row.status == "ok" for row in _scores(run, week))) for week in weeks)
    return run.once("split", lambda: split_of(counts))


def _mined(run: StageRun, week: str) -> Iterator[tuple[Session, SessionScores]]:
    mines = _split(run).mines
    scores = {row.session_id: row for row in _scores(run, week) if mines(row)}
    for session in run.lake.read("raw_sessions", week, Session):
        if session.id in scores:
            yield session, scores[session.id]


def _final_rubrics(run: StageRun) -> list[Rubric]:
    return run.once("rubrics", lambda: list(run.lake.rows(RUBRICS, Rubric, SCORE_NAMES)))


def _mining_inputs(run: StageRun, week: str) -> str:
    by = run.evaluators
    weeks = [week_after(week, -back) for back in range(EARLIER_WEEKS, -1, -1)]
    return digest_of(
        [upstream(run.lake, "raw_sessions", "session_scores", week=each) for each in weeks],
        by.scoring_fingerprint,
        by.miner.name,
        version_of(by.miner),
        _split(run),
    )


def _mine(run: StageRun, week: str, stored: list[ExtractedRubric]) -> Iterator[ExtractedRubric]:
    """Yield a week's rubrics; file what was dropped, and the sessions that could not be mined."""
    miner = run.evaluators.miner
    mined = [miner.extract(week, name, partial(_mined, run)) for name in SCORE_NAMES]
    yield from (row for each in mined for row in each.rubrics)
    yield from (row for row in stored if row.extractor != miner.name)
    if run.evaluators.dry_run:
        return
    _file(run, DROPPED, week, DroppedRubric, [row for each in mined for row in each.dropped])
    _file(run, UNMINED, week, UnminedSession, [row for each in mined for row in each.unmined])


def _file(run: StageRun, table: str, week: str, row_type: type[Row], rows: list[Row]) -> None:
    """Write the rows of the run's miner beside those of others."""
    stored: Iterable[Any] = run.lake.read(table, week, row_type)
    others = [row for row in stored if row.extractor != run.evaluators.miner.name]
    run.lake.write(table, week, [*rows, *others], row_type)


def _of_miner(run: StageRun, table: str, row_type: type[Row], *weeks: str) -> list[Row]:
    return _rows(run, table, row_type, ("extractor", run.evaluators.miner.name), weeks)


@weekly_stage(
    ExtractedRubric,
    inputs=_mining_inputs,
    make=_mine,
    is_final=lambda run, week, rows: not _of_miner(run, UNMINED, UnminedSession, week),
    calls_models=True,
    group_name="rubrics",
    code_version=versions.MINING,
    deps=[raw_sessions, session_scores],
)
def extracted_rubrics(run: StageRun, week: str, filled: Filled[ExtractedRubric]) -> Metadata:
    """What sets the week's good sessions apart from its bad ones, for each score name: candidates
    for rubrics, with evidence that was found in the sessions quoted.

    Every other week is set aside for trials; every other session while there are few. A small week
    is ranked together with the three before it. What was looked at and dropped is listed as well,
    and which sessions could not be mined: the next run tries them again.
    """
    dropped = _of_miner(run, DROPPED, DroppedRubric, week)
    unmined = _of_miner(run, UNMINED, UnminedSession, week)
    summary = f"{len(filled.rows)} candidates, {len(dropped)} dropped"
    return {
        "candidates": preview(
            ("score name", "candidate", "quotations"),
            [(row.score_name, row.name, len(row.evidence)) for row in filled.rows],
        ),
        "dropped": listed(dropped, "score name=score_name", "what=name", "why=reason", limit=60),
        "unmined": len(unmined),
        "unmined_sessions": listed(
            unmined, "session=session_id", "score name=score_name", "reason"
        ),
        "summary": summary + (f", {len(unmined)} sessions not mined" if unmined else ""),
    }


@check(extracted_rubrics)
def every_session_mined(lake: Lake, weeks: list[str]) -> dg.AssetCheckResult:
    """Every session that was to be mined was; the next run tries the others again."""
    rows = list(lake.rows(UNMINED, UnminedSession, weeks))
    return dg.AssetCheckResult(
        passed=not rows,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "unmined": listed(
                rows, "session=session_id", "score name=score_name", "by=extractor", "reason"
            )
        },
    )


class Trials(dg.Config):
    """How rubrics are tried before they are kept."""

    most_judgements: int = Field(
        default=MOST_JUDGEMENTS,
        description=(
            "Judgements that a model gives, for each score name, to try candidates on sessions "
            "that nothing was mined from; they serve rubric_evaluations as well. What is not tried "
            "becomes no rubric. Offline costs nothing and is not bound by it."
        ),
    )


@stage(
    group_name="rubrics",
    pool=MODEL_POOL,
    code_version=versions.RUBRICS,
    deps=[all_of(extracted_rubrics), all_of(raw_sessions), all_of(session_scores)],
)
def rubrics(context: dg.AssetExecutionContext, config: Trials) -> dg.MaterializeResult[None]:
    """The final rubrics of each score name: what to do to get sessions that are better in that
    sense.

    Candidates are merged over all weeks and tried on sessions that nothing was mined from; one is
    kept when it tells the good ones of these from the bad ones, corrected for all candidates that
    were looked at. Each rubric's effect is the one seen there.
    """
    run = StageRun(context)
    lake = run.lake
    mined = _of_miner(run, EXTRACTED, ExtractedRubric)
    failures: dict[ScoreName, str] = {}
    for score_name in SCORE_NAMES:
        try:
            _consolidate(run, score_name, [row for row in mined if row.score_name == score_name])
        except ModelError as error:
            failures[score_name] = str(error)
            context.log.error(f"rubrics {score_name} stay as they were: {error}")
    trials = _try(run, mined, config.most_judgements)
    fresh = 0
    for score_name in SCORE_NAMES:
        if score_name in failures or run.evaluators.dry_run:
            continue
        own = [trial for trial in trials.rows if trial.score_name == score_name]
        final = final_rubrics(own)
        filled = fill(run, RUBRICS, score_name, Rubric, digest_of(final), lambda _: final)  # noqa: B023
        weeks = [row.week for row in mined if row.score_name == score_name]
        if weeks and not filled.skipped:
            lake.write(SETS, f"{score_name}.{max(weeks)}", filled.rows, Rubric)
        fresh += filled.fresh
        unchanged = " (unchanged)" if filled.skipped else ""
        run.log_progress(f"{score_name}: {len(filled.rows)} of {len(own)} candidates{unchanged}")
    rows = _final_rubrics(run)
    searches = list(lake.read(SEARCHES, ALL, RubricSearch))
    marks = [
        (name, *structs.astuple(mark))
        for name in SCORE_NAMES
        for mark in lint([row for row in rows if row.score_name == name])
    ]
    page = rubrics_markdown(rows, trials=trials.rows, searches=searches)
    digest = digest_of([upstream(lake, RUBRICS, week=name) for name in SCORE_NAMES])
    return dg.MaterializeResult(
        data_version=dg.DataVersion(digest[:16]),
        metadata={
            "dagster/row_count": len(rows),
            "made_now": fresh,
            "page": markdown(page),
            "shown_at": dg.MetadataValue.url("/rubrics"),
            "linter": preview(("score name", "rubric", "rule", "what"), marks),
            "mined": len(mined),
            "dropped_on_unseen_sessions": sum(not trial.kept for trial in trials.rows),
            **run.spending(),
            **{f"failure_{name}": reason for name, reason in failures.items()},
        },
    )


def _consolidate(run: StageRun, score_name: ScoreName, source: list[ExtractedRubric]) -> None:
    """Fill the candidates of a score name."""
    miner = run.evaluators.miner
    inputs = digest_of(miner.name, version_of(miner), source)
    merge = partial(miner.consolidate, source, score_name)
    fill(run, CANDIDATES, score_name, Rubric, inputs, merge, calls_models=True)


def _try(run: StageRun, mined: list[ExtractedRubric], most_judgements: int) -> Filled[RubricTrial]:
    """Fill the trials of all candidates; what the search came to is filed beside them."""
    lake, by = run.lake, run.evaluators
    weeks = lake.partitions("session_scores")
    candidates = {name: list(lake.read(CANDIDATES, name, Rubric)) for name in SCORE_NAMES}
    split = _split(run)

    def make(stored: list[RubricTrial]) -> list[RubricTrial]:
        scores = _scores(run)
        judged = _rows(run, EVALUATIONS, RubricEvaluation, ("model", by.rubric_judge.model))
        trials = [
            trial
            for own in candidates.values()
            for trial in try_rubrics(
                own,
                partial(_sessions, lake, scores),
                [row for row in scores if not split.mines(row)],
                by.rubric_judge,
                judged,
                most_judgements=MOST_OFFLINE if by.models is None else most_judgements,
                workers=by.concurrency,
            )
        ]
        count = looked_at(trials, mined, _of_miner(run, DROPPED, DroppedRubric))
        settled = settle(trials, count)
        if not by.dry_run:
            lake.write(SEARCHES, ALL, searches_of(settled, scores, split, count), RubricSearch)
        return settled

    inputs = digest_of(
        candidates,
        [upstream(lake, "raw_sessions", "session_scores", DROPPED, week=week) for week in weeks],
        by.scoring_fingerprint,
        by.rubric_judge.model,
        version_of(by.rubric_judge),
        most_judgements,
        split,
    )
    return fill(run, TRIALS, ALL, RubricTrial, inputs, make, _all_judged, calls_models=True)


def rehearse_rubrics(run: StageRun) -> None:
    """Consolidate and try what the lake holds of candidates, with evaluators that only count."""
    mined = _of_miner(run, EXTRACTED, ExtractedRubric)
    for score_name in SCORE_NAMES:
        own = [row for row in mined if row.score_name == score_name]
        with suppress(ModelError):
            _consolidate(run, score_name, own)
    with suppress(ModelError):
        _try(run, mined, MOST_JUDGEMENTS)


def _all_judged(trials: Iterable[RubricTrial]) -> bool:
    return not any(trial.failed for trial in trials)


def _sessions(lake: Lake, scores: list[SessionScores], ids: Collection[str]) -> Iterator[Session]:
    weeks = {week_of(row.started) for row in scores if row.session_id in set(ids)}
    for week in sorted(weeks):
        yield from lake.read("raw_sessions", week, Session, only=("id", ids))


@evaluation_stage(
    RubricEvaluation,
    lambda run: (
        _final_rubrics(run),
        run.evaluators.rubric_judge.model,
        version_of(run.evaluators.rubric_judge),
    ),
    lambda run, by, sessions, stored: evaluate_rubrics(
        sessions, _final_rubrics(run), by.rubric_judge, stored, workers=by.concurrency
    ),
    second=False,
    group_name="rubrics",
    code_version=versions.RUBRIC_EVALUATIONS,
    deps=[raw_sessions, rubrics],
)
def rubric_evaluations(run: StageRun, week: str, filled: Filled[RubricEvaluation]) -> Metadata:
    """Each session of the week on each rubric, from 1 to 5, with the reasoning."""
    rows = filled.rows
    failed = sum(row.status == "failed" for row in rows)
    suspected = sorted({row.session_id for row in rows if row.injection_suspected})
    summary = f"{len(rows)} evaluations on {len(_final_rubrics(run))} rubrics"
    summary += f", {failed} failed" if failed else ""
    return {
        "evaluations": measured(
            "rubric", ((f"{row.score_name}/{row.rubric_key}", row.score) for row in rows)
        ),
        "failed": failed,
        "no_occasion": sum(row.status == "no_occasion" for row in rows),
        "injection_suspected": len(suspected),
        "injection_suspected_sessions": preview(("session",), [(id_,) for id_ in suspected]),
        "summary": summary + (f", {len(suspected)} sessions to look at" if suspected else ""),
    }


@score_check(rubric_evaluations, Evaluated)
def rubric_scores_within_range(row: Evaluated) -> str:
    """Every rubric score is 1 to 5."""
    is_wrong = row.status == "ok" and row.score not in range(1, 6)
    return f"{row.rubric_id}: {row.score}" if is_wrong else ""
