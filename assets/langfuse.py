"""Langfuse: the week's scores on the server, and what it confirmed."""

from assets import versions
from assets.evaluations import session_scores
from assets.presentation import preview
from assets.weekly import COUNT, Metadata, StageRun, weekly_asset
from debrief.langfuse.outgoing import ScoreReceipt
from debrief.langfuse.scores import write_scores
from debrief.scoring.model import SessionScores

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
def langfuse_scores(run: StageRun, week: str) -> Metadata | None:
    """Send a week's scores."""
    lake = run.lake
    if lake.stamp("session_scores", week) is None:
        return None
    client = run.once("client", run.langfuse.open)
    stored = list(lake.read(TABLE, week, ScoreReceipt))
    if client is None:
        lake.write(TABLE, week, stored, ScoreReceipt)
        return {COUNT: len(stored), "server": NOT_CONFIGURED, "summary": "no server configured"}
    fingerprint = run.evaluators.scoring_fingerprint
    scores = lake.read("session_scores", week, SessionScores)
    receipts = write_scores(
        client,
        [row for row in scores if row.scoring_fingerprint == fingerprint],
        stored,
        options=run.langfuse.options(),
        redact=lambda text: run.redactor.redact(text).text,
    )
    lake.write(TABLE, week, receipts, ScoreReceipt)
    written = sum(receipt.status == "written" for receipt in receipts)
    return {
        COUNT: len(receipts),
        "server": client.host,
        "written": written,
        "receipts": preview(
            ("session", "score", "value", "status", "reason"),
            [(r.session_id, r.name, r.value, r.status, r.reason) for r in receipts],
        ),
        "summary": f"{written} of {len(receipts)} confirmed by {client.host}",
    }
