"""Compute agreement from the lake's labels, store it, and show it on its page and in cards."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from debrief.errors import InputError
from debrief.judging.model import JudgeEvaluation
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.markdown import interval
from debrief.outcomes.store import (
    LABELS,
    PEOPLE,
    PROBLEMS,
    LabelProblem,
    Labels,
    Roll,
    all_labels,
    labelled_sessions,
    success_labels,
)
from debrief.reports import report
from debrief.rubrics.agreement import AGREEMENT, ALL, Agreement, AgreementRow, compare
from debrief.rubrics.measures import MeasureName, measures_of
from debrief.rubrics.model import Rubric, RubricEvaluation
from debrief.rubrics.probes import (
    FEWEST_LABELS,
    ORDER_PROBES,
    PROBES,
    Difference,
    OrderProbe,
    Probe,
    differences,
    probes_of,
)
from debrief.scoring.model import SessionScores
from debrief.sessions.model import SessionHead


def store_agreement(lake: Lake) -> Agreement:
    """Compare the labels of people that the lake holds with its scores, and write the rows.

    Raises:
        InputError: no label matches; the rows of an earlier time are taken away, so that nothing
            relies on them.
    """
    problems = tuple(row.text for row in lake.read(PROBLEMS, ALL, LabelProblem))
    labels = Labels(labels=tuple(all_labels(lake, PEOPLE)), problems=problems)
    agreement = Agreement(rows=(), labels=0, matched=0, unmatched=(), problems=problems)
    measures = measures_of(
        lake.rows("judge_evaluations", JudgeEvaluation),
        lake.rows("session_scores", SessionScores),
        lake.rows("rubric_evaluations", RubricEvaluation),
        lake.rows("rubrics", Rubric),
    )
    try:
        if labels.labels:
            agreement = compare(labels, measures, Roll(labelled_sessions(lake)))
    except InputError:
        lake.write(AGREEMENT, ALL, (), AgreementRow)
        raise
    compared = _compared(lake)
    lake.write(AGREEMENT, ALL, agreement.rows, AgreementRow, lambda: compared)
    made_from, stamp = _probed(lake), lake.stamp(PROBES, ALL)
    if stamp is None or stamp.inputs != made_from:
        success = success_labels(lake)
        heads = list(lake.rows("raw_sessions", SessionHead))
        probes = probes_of(
            measures,
            agreement.values,
            {id_: known.success for id_, known in success.items()},
            tasks={id_: known.task for id_, known in success.items()},
            lengths={head.id: head.usage.output for head in heads},
            models={head.id: head.models[0] for head in heads if head.models},
        )
        lake.write(PROBES, ALL, probes, Probe, lambda: made_from)
    return replace(
        agreement,
        probes=tuple(lake.read(PROBES, ALL, Probe)),
        differences=tuple(differences(measures)),
        order=tuple(lake.read(ORDER_PROBES, ALL, OrderProbe)),
    )


def agreement_is_current(lake: Lake) -> bool:
    """Return whether ``store_agreement`` would write the rows that are there, and not fail."""
    stamp = lake.stamp(AGREEMENT, ALL)
    return stamp is not None and stamp.inputs == _compared(lake)


def _compared(lake: Lake) -> str:
    """Return the digest of all that agreement and its page are made of."""
    beside = [lake.stamp(table, ALL) for table in (PROBLEMS, ORDER_PROBES)]
    return digest_of(_probed(lake), [stamp and stamp.digest for stamp in beside])


def _probed(lake: Lake) -> str:
    """Return the digest of all that probes are made of."""
    stamps = (
        (table, key, lake.stamp(table, key)) for table in _PROBED for key in lake.partitions(table)
    )
    return digest_of(
        _PROBES_FORM, [(table, key, stamp.digest) for table, key, stamp in stamps if stamp]
    )


MINIMUM = "DEBRIEF_MIN_AGREEMENT"
AGREEMENT_PAGE = "reports/judge_agreement.md"
_PROBES_FORM = "1"
"""Raised when the same rows give other probes."""
_PROBED = (
    *("raw_sessions", "judge_evaluations", "session_scores", "rubric_evaluations", "rubrics"),
    LABELS,
)


def agreement_text(lake: Lake, judged_by: Collection[str] = ()) -> str:
    """Return what is known of agreement with people, in a sentence for a card.

    Args:
        lake: with the table of ``judge_agreement``.
        judged_by: models whose judges and dimensions are meant; all when empty.

    Returns:
        An empty text when nobody labelled.
    """
    return "; ".join(
        f"{row.name} kappa {_estimate(row.kappa, row.kappa_low, row.kappa_high)}, "
        f"AC1 {_estimate(row.ac1, row.ac1_low, row.ac1_high)}, {row.labelled} of "
        f"{row.sessions} sessions labelled"
        + ("" if row.labelled >= FEWEST_LABELS else ", too few to rely on")
        for row in _rows(lake, judged_by)
    )


def agreement_shortfall(lake: Lake, minimum: float | None) -> str:
    """Return why agreement with people does not suffice; an empty text when it does.

    Every judge and dimension with enough labels has to reach the minimum, in Cohen's kappa, or
    in AC1 where kappa is not defined. With a minimum and no such judge or dimension, agreement
    is not known, and does not suffice.

    Args:
        lake: with the table of ``judge_agreement``.
        minimum: from 0 to 1; None asks for nothing.
    """
    if minimum is None:
        return ""
    rows = [row for row in _rows(lake, ()) if row.labelled >= FEWEST_LABELS]
    if not rows:
        return (
            f"an agreement of {minimum:g} with people is asked for, and no judge or dimension has "
            f"labels on {FEWEST_LABELS} sessions"
        )
    values = [(row, row.ac1 if row.kappa is None else row.kappa) for row in rows]
    return "; ".join(
        f"{row.name} agrees with people by {'nothing known' if value is None else f'{value:.2f}'}, "
        f"and {minimum:g} is asked for"
        for row, value in values
        if value is None or value < minimum
    )


def agreement_markdown(agreement: Agreement | None) -> str:
    """Return the page; None says that nobody labelled."""
    found = agreement or Agreement(rows=(), labels=0, matched=0, unmatched=(), problems=())
    return report(
        "agreement",
        labels=found.labels,
        matched=found.matched,
        rows=[*map(_cells, found.rows)],
        unmatched=[
            f"{lost.label.session_id}, {lost.label.name} ({lost.label.source}): {lost.reason}"
            + (f"; looks like session {lost.similar_to}" if lost.similar_to else "")
            for lost in found.unmatched
        ],
        problems=found.problems,
        probes=[*map(_probe, found.probes)],
        order=[*map(_asked_again, found.order)],
        differences=[*map(_difference, found.differences)],
    )


def _probe(row: Probe) -> tuple[str, ...]:
    return (
        *_who(row),
        f"{row.labelled} of {row.labels}" if row.labels else "",
        _change(row.brier, row.brier_calibrated),
        _change(row.error, row.error_calibrated),
        _estimate(row.length, row.length_low, row.length_high),
        _estimate(row.own, row.own_low, row.own_high),
    )


def _asked_again(row: OrderProbe) -> tuple[str, ...]:
    moves = (f"{row.repeated:.3f}", f"{row.turned:.3f}", f"{row.shift:+.3f}")
    return row.judge, row.judged_by, str(row.sessions), *moves


def _change(before: float | None, after: float | None) -> str:
    return "" if before is None or after is None else f"{before:.3f}, then {after:.3f}"


def _who(row: MeasureName) -> tuple[str, str]:
    mark = f" {row.fingerprint}" if row.fingerprint else ""
    return f"{row.kind} {row.name}", row.judged_by + mark


def _difference(row: Difference) -> tuple[str, ...]:
    kappa = row.kappa
    return (
        f"{row.kind} {row.name}",
        ", ".join(row.models),
        str(row.sessions),
        _estimate(kappa.value, kappa.low, kappa.high) if kappa else "not defined",
        f"{row.mean:+.2f}",
        "; ".join(f"{id_} {one:.2f} and {two:.2f}" for id_, one, two in row.farthest),
    )


def _rows(lake: Lake, judged_by: Collection[str]) -> list[AgreementRow]:
    """Return the rows of the judges and dimensions that these models answer; of all when empty."""
    return [
        row
        for row in lake.read(AGREEMENT, ALL, AgreementRow)
        if row.kind != "rubric" and (not judged_by or row.judged_by in judged_by)
    ]


def _cells(row: AgreementRow) -> list[str]:
    return [
        *_who(row),
        f"{row.labelled} of {row.sessions} ({row.coverage:.0%})",
        _estimate(row.kappa, row.kappa_low, row.kappa_high),
        _estimate(row.ac1, row.ac1_low, row.ac1_high),
        _share(row.agreed),
        "" if row.people_kappa is None else f"{row.people_kappa:.2f}",
        _share(row.people_rate),
        f"{_share(row.judge_rate)}, of all {_share(row.rate)}",
        _estimate(row.corrected_rate, row.corrected_low, row.corrected_high),
    ]


def _estimate(value: float | None, low: float | None, high: float | None) -> str:
    return interval(value, low, high, none="not defined")


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"
