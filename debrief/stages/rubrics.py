"""Rubrics: mined by week, consolidated over all weeks, tried, and every session judged on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import structs

from debrief.errors import ModelError
from debrief.evaluation import version_of
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.outcomes.store import label_values
from debrief.outcomes.verdicts import verdicts_in
from debrief.rubrics.contrast import SessionValues, is_by_labels, session_values
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
from debrief.rubrics.page import rubrics_markdown
from debrief.rubrics.trial import (
    Split,
    final_rubrics,
    searches_of,
    settle,
    split_of,
    try_rubrics,
)
from debrief.scoring.model import SessionScores
from debrief.scoring.precedence import effective_rows
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.model import Session
from debrief.stages.evaluations import (
    MODEL_POOL,
    SESSION_SCORES,
    evaluated_rows,
    none_open,
    why_no_model,
)
from debrief.stages.outcomes import LABELS
from debrief.stages.run import StageRun
from debrief.stages.sessions import RAW_SESSIONS
from debrief.stages.shown import Shown, ShownPage, ShownTable, listed, measured
from debrief.stages.stage import FilledTable, Read, Row, Stage, upstream
from debrief.stages.versions import prompt_texts


def of_miner(run: StageRun, table: str, row_type: type[Row], *weeks: str) -> list[Row]:
    """Return the rows that the run's miner gave, of all weeks if none is named."""
    return _rows(run, table, row_type, ("extractor", run.evaluators.miner.name), weeks)


def _rows(
    run: StageRun, table: str, row_type: type[Row], only: tuple[str, str], weeks: Iterable[str] = ()
) -> list[Row]:
    """Return the rows with a value in a column, of all weeks if none is named."""
    column, value = only
    chosen = weeks or run.lake.partitions(table)
    read = partial(run.lake.read, table, row_type=row_type, only=(column, [value]))
    return [row for week in chosen for row in read(week)]


def _scores(run: StageRun, *weeks: str) -> list[SessionScores]:
    """Return the row that counts for each session, of all weeks if none is named."""
    chosen = weeks or run.lake.partitions("session_scores")
    return list(effective_rows(run.lake.rows("session_scores", SessionScores, chosen)))


def _labelled(run: StageRun) -> dict[str, dict[str, float]]:
    """Return the values of score names that labels give, by name and session id."""
    names = [name for name in run.evaluators.score_names if is_by_labels(name)]
    return run.once("labelled", lambda: label_values(run.lake, names))


def _scored(run: StageRun, *weeks: str) -> list[SessionValues]:
    """Return each session's values by the score names of the run, of all weeks if none is named."""
    names, labelled = run.evaluators.score_names, _labelled(run)
    verdicts = _verdicts(run)
    return [
        session_values(row, names, verdicts.get(row.session_id), labelled)
        for row in _scores(run, *weeks)
    ]


def _verdicts(run: StageRun) -> dict[str, SessionVerdict]:
    return run.once("verdicts", lambda: verdicts_in(run.lake))


def _labelled_in(run: StageRun, weeks: Sequence[str]) -> list[tuple[str, str, float]]:
    """Return the values that labels give to sessions of some weeks."""
    labelled = _labelled(run)
    ids = {row.session_id for row in _scores(run, *weeks)} if any(labelled.values()) else set()
    return [
        (name, id_, value)
        for name, values in labelled.items()
        for id_, value in sorted(values.items())
        if id_ in ids
    ]


def _said_in(run: StageRun, week: str) -> list[tuple[str, str]]:
    """Return the verdicts on the sessions of a week, whoever gave them."""
    verdicts = _verdicts(run)
    ids = (row.session_id for row in _scores(run, week))
    return [(id_, verdicts[id_].verdict) for id_ in ids if id_ in verdicts]


def _split(run: StageRun) -> Split:
    """Return which sessions are mined, by how many scored ones each week has."""

    def found() -> Split:
        weeks = run.lake.partitions("session_scores")
        return split_of(
            (week, sum(row.status == "ok" for row in _scores(run, week))) for week in weeks
        )

    return run.once("split", found)


def _mined(run: StageRun, week: str) -> Iterator[tuple[Session, SessionValues]]:
    mines = _split(run).mines
    scored = {row.session_id: row for row in _scored(run, week) if mines(row)}
    for session in run.lake.read("raw_sessions", week, Session):
        if session.id in scored:
            yield session, scored[session.id]


def _miner(run: StageRun, week: str) -> object:
    by = run.evaluators
    miner = by.miner
    return by.scoring_fingerprint, miner.name, version_of(miner), by.score_names, _split(run)


def _verdicts_of_week(run: StageRun, week: str) -> object:
    return _labelled_in(run, [week]), _said_in(run, week)


def _mine(run: StageRun, week: str, stored: list[ExtractedRubric]) -> Iterator[ExtractedRubric]:
    """Yield a week's rubrics; file what was dropped, and the sessions that could not be mined."""
    miner = run.evaluators.miner
    mined = [miner.extract(week, name, partial(_mined, run)) for name in run.evaluators.score_names]
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


def _none_unmined(run: StageRun, week: str, rows: Sequence[ExtractedRubric]) -> bool:
    return not of_miner(run, UNMINED, UnminedSession, week)


def _extracted_shown(run: StageRun, week: str, rows: list[ExtractedRubric]) -> Shown:
    dropped = of_miner(run, DROPPED, DroppedRubric, week)
    unmined = of_miner(run, UNMINED, UnminedSession, week)
    candidates = [(row.score_name, row.name, len(row.evidence)) for row in rows]
    return Shown(
        f"{len(rows)} candidates, {len(dropped)} dropped"
        + f", {len(unmined)} sessions not mined" * bool(unmined),
        {
            "candidates": ShownTable(("score name", "candidate", "quotations"), candidates),
            "dropped": listed(dropped, "score name=score_name", "what=name", "why=reason"),
            "unmined": len(unmined),
            "unmined_sessions": listed(
                unmined, "session=session_id", "score name=score_name", "reason"
            ),
        },
    )


EXTRACTED_RUBRICS = Stage(
    table=EXTRACTED,
    doc="""Rubrics that a model extracts from the week's good sessions, one session at a time, for
each score name, with evidence that was found in the session quoted.

Every other week is set aside for the test; every other session while there are few. Rubrics whose
evidence was not found are listed as dropped. Sessions that could not be mined are listed too, and
the next run tries them again. None without a model.""",
    group="rubrics",
    row_type=ExtractedRubric,
    version=lambda: prompt_texts("rubric_*.txt"),
    reads=(RAW_SESSIONS, SESSION_SCORES, Read(LABELS, _verdicts_of_week)),
    made_from=_miner,
    make=_mine,
    is_final=_none_unmined,
    why_off=why_no_model,
    calls_models=True,
    shown=_extracted_shown,
    page="/rubrics",
    pool=MODEL_POOL,
    may_quote=True,
)


def all_mined(run: StageRun) -> list[ExtractedRubric]:
    """Return what the run's miner found in all weeks."""
    return run.once("mined", lambda: of_miner(run, EXTRACTED, ExtractedRubric))


def _of_score_name(run: StageRun, score_name: str) -> list[ExtractedRubric]:
    return [row for row in all_mined(run) if row.score_name == score_name]


def _candidate_inputs(run: StageRun, score_name: str) -> object:
    miner = run.evaluators.miner
    return miner.name, version_of(miner), _of_score_name(run, score_name)


def _consolidate(run: StageRun, score_name: str, stored: list[Rubric]) -> Iterable[Rubric]:
    rows = _of_score_name(run, score_name)
    if not rows and of_miner(run, UNMINED, UnminedSession):
        return stored  # the miner answered nothing yet: what another one found stays
    return run.evaluators.miner.consolidate(rows, score_name, stored)


RUBRIC_CANDIDATES = FilledTable(
    table=CANDIDATES,
    row_type=Rubric,
    made_from=_candidate_inputs,
    make=_consolidate,
    why_off=why_no_model,
    calls_models=True,
)
"""By score name: what was extracted in all weeks, consolidated."""


def _candidates(run: StageRun) -> dict[str, list[Rubric]]:
    return {
        name: list(run.lake.read(CANDIDATES, name, Rubric)) for name in run.evaluators.score_names
    }


def _trial_inputs(run: StageRun, partition: str) -> object:
    lake, by = run.lake, run.evaluators
    weeks = lake.partitions("session_scores")
    return (
        _candidates(run),
        [upstream(lake, "raw_sessions", "session_scores", DROPPED, week=week) for week in weeks],
        by.scoring_fingerprint,
        by.rubric_judge.model,
        version_of(by.rubric_judge),
        run.most_judgements,
        _labelled(run),
        sorted((id_, said.verdict) for id_, said in _verdicts(run).items()),
        _split(run),
    )


def _try(run: StageRun, partition: str, stored: list[RubricTrial]) -> list[RubricTrial]:
    """Return the trials of all candidates; what the search came to is filed beside them."""
    lake, by, split = run.lake, run.evaluators, _split(run)
    scores = _scored(run)
    judged = _rows(run, EVALUATIONS, RubricEvaluation, ("model", by.rubric_judge.model))
    trials = [
        trial
        for own in _candidates(run).values()
        for trial in try_rubrics(
            own,
            partial(_sessions, lake, scores),
            [row for row in scores if not split.mines(row)],
            by.rubric_judge,
            judged,
            most_judgements=run.most_judgements,
            workers=by.concurrency,
        )
    ]
    settled = settle(trials)
    if not by.dry_run:
        searches = searches_of(by.score_names, settled, scores, split, len(trials))
        lake.write(SEARCHES, ALL, searches, RubricSearch)
    return settled


def _sessions(lake: Lake, scores: list[SessionValues], ids: Collection[str]) -> Iterator[Session]:
    weeks = {week_of(row.started) for row in scores if row.session_id in set(ids)}
    for week in sorted(weeks):
        yield from lake.read("raw_sessions", week, Session, only=("id", ids))


def _none_failed(run: StageRun, partition: str, trials: Sequence[RubricTrial]) -> bool:
    return not any(trial.failed for trial in trials)


RUBRIC_TRIALS = FilledTable(
    table=TRIALS,
    row_type=RubricTrial,
    made_from=_trial_inputs,
    make=_try,
    is_final=_none_failed,
    why_off=why_no_model,
    calls_models=True,
)


def _final(run: StageRun, score_name: str) -> list[Rubric]:
    trials = run.lake.read(TRIALS, ALL, RubricTrial)
    return final_rubrics([trial for trial in trials if trial.score_name == score_name])


FINAL_RUBRICS = FilledTable(
    table=RUBRICS,
    row_type=Rubric,
    made_from=_final,
    make=lambda run, score_name, stored: _final(run, score_name),
)
"""By score name: the candidates, each with what unseen sessions say of it."""


def final_rubrics_of(run: StageRun) -> list[Rubric]:
    """Return the final rubrics of the run's score names."""
    names = run.evaluators.score_names
    return run.once("rubrics", lambda: list(run.lake.rows(RUBRICS, Rubric, names)))


def drop_other_rubrics(run: StageRun) -> None:
    """Take away the rubrics of score names that are no longer configured."""
    for table in (CANDIDATES, RUBRICS):
        for name in run.lake.partitions(table):
            if name not in run.evaluators.score_names:
                run.lake.drop(table, name)


def rubrics_are_current(run: StageRun) -> bool:
    """Return whether consolidating and trying would leave the rubrics as they are."""
    if why_no_model(run):
        return True
    return RUBRIC_TRIALS.is_current(run, ALL) and all(
        stage.is_current(run, name)
        for name in run.evaluators.score_names
        for stage in (RUBRIC_CANDIDATES, FINAL_RUBRICS)
    )


def rehearse_rubrics(run: StageRun) -> None:
    """Consolidate and try what the lake holds of candidates, with evaluators that only count."""
    for score_name in run.evaluators.score_names:
        with suppress(ModelError):
            RUBRIC_CANDIDATES.fill(run, score_name)
    with suppress(ModelError):
        RUBRIC_TRIALS.fill(run, ALL)


def rubrics_shown(run: StageRun, partition: str, rows: list[Rubric]) -> Shown:
    """Return what is shown of the final rubrics of all score names."""
    searches = list(run.lake.read(SEARCHES, ALL, RubricSearch))
    marks = [
        (name, *structs.astuple(mark))
        for name in run.evaluators.score_names
        for mark in lint([row for row in rows if row.score_name == name])
    ]
    return Shown(
        f"{len(rows)} rubrics",
        {
            "page": ShownPage(rubrics_markdown(rows, searches=searches)),
            "linter": ShownTable(("score name", "rubric", "rule", "what"), marks),
            "mined": len(all_mined(run)),
            "tell_good_from_bad": sum(row.finding == "tells" for row in rows),
        },
    )


FINAL = Stage(
    table=RUBRICS,
    doc="""The final five to ten rubrics of each score name.

What was extracted in all weeks is consolidated, and tested on sessions that nothing was mined from.
Every rubric is kept, with what these say of it: it tells good ones from bad ones, it does not, or
they are too few to tell. Corrected for all candidates that were looked at.""",
    group="rubrics",
    row_type=Rubric,
    partitions="all",
    version=lambda: prompt_texts("judge_template.txt"),
    reads=(EXTRACTED_RUBRICS, RAW_SESSIONS, SESSION_SCORES, LABELS),
    why_off=why_no_model,
    calls_models=True,
    shown=rubrics_shown,
    page="/rubrics",
    pool=MODEL_POOL,
    may_quote=True,
)


def _judge(run: StageRun, week: str) -> object:
    judge = run.evaluators.rubric_judge
    return judge.model, version_of(judge)


def _evaluate(
    run: StageRun, week: str, stored: list[RubricEvaluation]
) -> Iterable[RubricEvaluation]:
    by = run.evaluators

    def evaluate(
        sessions: Iterable[Session], known: Sequence[RubricEvaluation]
    ) -> Iterable[RubricEvaluation]:
        return evaluate_rubrics(
            sessions, final_rubrics_of(run), by.rubric_judge, known, workers=by.concurrency
        )

    rows = evaluated_rows(run, week, stored, evaluate, lambda row: True)
    if rows and all(row.status == "failed" for row in rows):
        # The judge answered nothing: what another one said stays until it does.
        rows += [row for row in stored if row.status != "failed"]
    return rows


def _evaluations_shown(run: StageRun, week: str, rows: list[RubricEvaluation]) -> Shown:
    failed = sum(row.status == "failed" for row in rows)
    suspected = sorted({row.session_id for row in rows if row.injection_suspected})
    scores = ((f"{row.score_name}/{row.rubric_key}", row.score) for row in rows)
    return Shown(
        f"{len(rows)} evaluations on {len(final_rubrics_of(run))} rubrics"
        + f", {failed} failed" * bool(failed)
        + f", {len(suspected)} sessions to look at" * bool(suspected),
        {
            "evaluations": measured("rubric", scores),
            "failed": failed,
            "injection_suspected": len(suspected),
            "injection_suspected_sessions": ShownTable(("session",), [(id_,) for id_ in suspected]),
        },
    )


RUBRIC_EVALUATIONS = Stage(
    table=EVALUATIONS,
    doc="Each session of the week on each rubric, from 1 to 5, with the reasoning.",
    group="rubrics",
    row_type=RubricEvaluation,
    version=lambda: prompt_texts("judge_template.txt"),
    reads=(RAW_SESSIONS, Read(FINAL, lambda run, week: final_rubrics_of(run))),
    made_from=_judge,
    make=_evaluate,
    is_final=none_open,
    why_off=why_no_model,
    calls_models=True,
    is_scoped=True,
    shown=_evaluations_shown,
    page="/rubrics",
    pool=MODEL_POOL,
)
