"""Agreement: whether judges, dimensions and rubrics say what people say."""

from itertools import islice
from operator import attrgetter

import dagster as dg
from pydantic import Field

from assets import versions
from assets.evaluations import judge_evaluations, session_scores
from assets.partitions import all_of
from assets.presentation import markdown, page_address, preview
from assets.rubrics import rubric_evaluations
from assets.weekly import KINDS, OWNERS
from debrief.errors import InputError
from debrief.judging.dspy_judge import DspyJudge
from debrief.markdown import plain
from debrief.outcomes.gathering import outcomes_beside
from debrief.outcomes.store import put_labels
from debrief.rubrics.agreement import AGREEMENT, ALL, AgreementRow
from debrief.rubrics.agreement_report import (
    MINIMUM,
    agreement_markdown,
    agreement_shortfall,
    read_labels,
    store_agreement,
)
from debrief.rubrics.probes import ORDER_PROBES, OrderProbe, order_probes
from debrief.sessions.model import Session
from debrief.settings import load_settings
from resources.services import EvaluatorResource, LangfuseResource
from resources.storage import LakeResource

PAGE = "reports/judge_agreement.md"
_MEASURED = attrgetter("kind", "name", "judged_by", "kappa", "ac1", "labelled")
_UNMATCHED = attrgetter("label.session_id", "label.name", "label.place", "reason", "similar_to")


class Probing(dg.Config):
    """Whether judges are asked again to see how far their scores can be relied on."""

    sessions: int = Field(
        default=0,
        ge=0,
        description=(
            "Sessions of the last week on which each judge is asked once more, and once with the "
            "changes before the plan: two questions a session and judge, each answered as often "
            "as the run's number of samples says. 0: the last results stay."
        ),
    )


@dg.asset(
    group_name="reports",
    code_version=versions.AGREEMENT,
    owners=OWNERS,
    kinds=KINDS,
    deps=[all_of(judge_evaluations), all_of(session_scores), all_of(rubric_evaluations)],
    description=(
        "How judges, dimensions and rubrics agree with people: Cohen's kappa, Gwet's AC1, base "
        "rates, and the rate of good sessions corrected for the judge's mistakes. What labels "
        "make of scores, whether they go by length, order or the judge's own kind of model, and "
        "where two models differ. Labels come "
        "from Langfuse annotations, `human_feedback.md` files and CSV files (`DEBRIEF_LABELS`), "
        "and are kept beside what attributions and rewards by the transcripts say of success. "
        "It fails when there are labels and none matches a session."
    ),
)
def judge_agreement(
    context: dg.AssetExecutionContext,
    config: Probing,
    lake: LakeResource,
    langfuse: LangfuseResource,
    evaluator: EvaluatorResource,
) -> dg.MaterializeResult[None]:
    """Compare people's labels with what was judged."""
    tables = lake.open()
    if config.sessions and tables.partitions("raw_sessions"):
        by = evaluator.open(context.run)
        week = tables.partitions("raw_sessions")[-1]
        sessions = islice(tables.read("raw_sessions", week, Session), config.sessions)
        if isinstance(by.change_judge, DspyJudge) and not by.dry_run:
            probed = order_probes(sessions, by.judges, by.change_judge)
            tables.write(ORDER_PROBES, ALL, probed, OrderProbe)
    labels = read_labels(load_settings(), langfuse.open(), evaluator.repository_folder())
    put_labels(tables, outcomes_beside(tables))
    try:
        agreement = store_agreement(tables, labels)
    except InputError as error:
        tables.write_bytes(PAGE, f"Agreement could not be measured. {plain(str(error))}\n".encode())
        raise
    page = agreement_markdown(agreement)
    tables.write_bytes(PAGE, page.encode())
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(agreement.rows),
            "agreement": markdown(page),
            "shown_at": dg.MetadataValue.url(page_address("/labels/next")),
            "labels": agreement.labels,
            "matched": agreement.matched,
            "unmatched": len(agreement.unmatched),
            "unmatched_labels": preview(
                ("session", "name", "where", "reason", "looks like"),
                [*map(_UNMATCHED, agreement.unmatched)],
            ),
            "not_read": len(agreement.problems),
        }
    )


@dg.asset_check(
    asset=judge_agreement,
    description=(
        "Judges and dimensions agree with people at least as far as DEBRIEF_MIN_AGREEMENT asks; "
        "passes when nothing is asked. While it fails, no training set is written."
    ),
)
def agreement_suffices(lake: LakeResource) -> dg.AssetCheckResult:
    """Look at the stored rows."""
    tables = lake.open()
    minimum = load_settings().min_agreement
    shortfall = agreement_shortfall(tables, minimum)
    return dg.AssetCheckResult(
        passed=not shortfall,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={
            "asked_for": f"nothing ({MINIMUM} is not set)" if minimum is None else minimum,
            "shortfall": shortfall or "none",
            "kappa": preview(
                ("what", "name", "by", "kappa", "AC1", "labelled"),
                [*map(_MEASURED, tables.read(AGREEMENT, ALL, AgreementRow))],
            ),
        },
    )
