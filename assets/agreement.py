"""Agreement: whether judges, dimensions and rubrics say what people say."""

from itertools import islice

import dagster as dg
from pydantic import Field

from assets import versions
from assets.evaluations import judge_evaluations, session_scores
from assets.outcomes import labels
from assets.partitions import all_of
from assets.presentation import listed, markdown
from assets.rubrics import rubric_evaluations, rubrics
from assets.sessions import raw_sessions
from assets.weekly import check, shown_at, stage
from debrief.errors import InputError
from debrief.judging.dspy_judge import DspyJudge
from debrief.lake import Lake
from debrief.markdown import plain
from debrief.rubrics.agreement import AGREEMENT, ALL, AgreementRow
from debrief.rubrics.agreement_report import (
    AGREEMENT_PAGE,
    MINIMUM,
    agreement_markdown,
    agreement_shortfall,
    store_agreement,
)
from debrief.rubrics.probes import ORDER_PROBES, OrderProbe, order_probes
from debrief.sessions.model import Session
from debrief.settings import load_settings
from resources import EvaluatorResource, LakeResource


class Probing(dg.Config):
    """Whether judges are asked again to see how far their scores can be relied on."""

    sessions: int = Field(
        default=0,
        ge=0,
        description=(
            "Sessions of the last week on which each judge is asked once more, and once with the "
            "changes before the plan: two questions a session and judge. 0: the last results stay."
        ),
    )


@stage(
    group_name="reports",
    code_version=versions.AGREEMENT,
    deps=[
        *(labels, rubrics),
        *map(all_of, (raw_sessions, judge_evaluations, session_scores, rubric_evaluations)),
    ],
)
def judge_agreement(
    context: dg.AssetExecutionContext,
    config: Probing,
    lake: LakeResource,
    evaluator: EvaluatorResource,
) -> dg.MaterializeResult[None]:
    """How judges, dimensions and rubrics agree with people: Cohen's kappa, Gwet's AC1, base rates,
    and the rate of good sessions corrected for the judge's mistakes.

    What labels make of scores, whether they go by length, order or the judge's own kind of model,
    and where two models differ. It fails when there are labels and none matches a session.
    """
    tables = lake.open()
    if config.sessions and tables.partitions("raw_sessions"):
        by = evaluator.open(context.run)
        week = tables.partitions("raw_sessions")[-1]
        sessions = islice(tables.read("raw_sessions", week, Session), config.sessions)
        if isinstance(by.change_judge, DspyJudge) and not by.dry_run:
            probed = order_probes(sessions, by.judges, by.change_judge)
            tables.write(ORDER_PROBES, ALL, probed, OrderProbe)
    try:
        agreement = store_agreement(tables)
    except InputError as error:
        tables.write_bytes(
            AGREEMENT_PAGE, f"Agreement could not be measured. {plain(str(error))}\n".encode()
        )
        raise
    page = agreement_markdown(agreement)
    tables.write_bytes(AGREEMENT_PAGE, page.encode())
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(agreement.rows),
            "agreement": markdown(page),
            **shown_at("/labels/next"),
            "labels": agreement.labels,
            "matched": agreement.matched,
            "unmatched": len(agreement.unmatched),
            "unmatched_labels": listed(
                agreement.unmatched,
                *("session=label.session_id", "name=label.name", "where=label.place"),
                *("reason", "looks like=similar_to"),
            ),
            "not_read": len(agreement.problems),
        }
    )


@check(judge_agreement)
def agreement_suffices(lake: Lake, _keys: list[str]) -> dg.AssetCheckResult:
    """Judges and dimensions agree with people at least as far as DEBRIEF_MIN_AGREEMENT asks; passes
    when nothing is asked. While it fails, no training set is written."""
    minimum = load_settings().min_agreement
    shortfall = agreement_shortfall(lake, minimum)
    return dg.AssetCheckResult(
        passed=not shortfall,
        metadata={
            "asked_for": f"nothing ({MINIMUM} is not set)" if minimum is None else minimum,
            "shortfall": shortfall or "none",
            "kappa": listed(
                list(lake.read(AGREEMENT, ALL, AgreementRow)),
                *("what=kind", "name", "by=judged_by", "kappa", "AC1=ac1", "labelled"),
            ),
        },
    )
