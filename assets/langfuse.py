"""Langfuse: the week's scores on the server, and what it confirmed."""

import dagster as dg

from assets import versions
from assets.presentation import preview
from assets.scoring import session_scores
from assets.weekly import Metadata, counted, each_week, weekly_asset
from debrief.langfuse.model import ScoreReceipt
from debrief.langfuse.scores import write_scores
from debrief.scoring.model import SessionScores
from resources.evaluator import EvaluatorResource
from resources.lake import LakeResource
from resources.langfuse import LangfuseResource
from resources.sessions import SessionStore

TABLE = "langfuse_scores"
POOL = "langfuse"
"""Of what writes to the server: a limit on it holds over all runs of an instance."""
NOT_CONFIGURED = (
    "No Langfuse server is configured, so the scores stay in the lake. Set LANGFUSE_HOST, "
    "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY and materialise this again."
)


@weekly_asset(
    group_name="scoring",
    code_version=versions.LANGFUSE,
    pool=POOL,
    deps=[session_scores],
    description=(
        "Receipts: which scores were written to the Langfuse sessions they belong to, and read "
        "back. A repeat updates in place. Without a configured server it says so and writes "
        "nothing."
    ),
)
def langfuse_scores(
    context: dg.AssetExecutionContext,
    lake: LakeResource,
    evaluator: EvaluatorResource,
    langfuse: LangfuseResource,
    sessions: SessionStore,
) -> dg.MaterializeResult[None]:
    """Send the weeks' scores."""
    tables = lake.open()
    client = langfuse.open()
    mark = evaluator.open().scoring_fingerprint
    redactor = sessions.redactor()

    def one_week(week: str) -> Metadata:
        previous = list(tables.read(TABLE, week, ScoreReceipt))
        if client is None:
            tables.write(TABLE, week, previous, ScoreReceipt)
            return {**counted(previous), "server": NOT_CONFIGURED, "told": "no server configured"}
        scores = [
            row
            for row in tables.read("session_scores", week, SessionScores)
            if row.scoring_fingerprint == mark
        ]
        receipts = write_scores(
            client,
            scores,
            previous,
            options=langfuse.options(),
            redact=lambda text: redactor.redact(text).text,
        )
        tables.write(TABLE, week, receipts, ScoreReceipt)
        written = sum(receipt.status == "written" for receipt in receipts)
        return {
            **counted(receipts),
            "server": client.host,
            "written": written,
            "receipts": preview(
                ("session", "score", "value", "status", "reason"),
                [(r.session_id, r.name, r.value, r.status, r.reason) for r in receipts],
            ),
            "told": f"{written} of {len(receipts)} confirmed by {client.host}",
        }

    return each_week(context, tables, one_week)
