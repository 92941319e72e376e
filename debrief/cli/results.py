"""What ``debrief score`` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from debrief.cli.shared import print_unwrapped
from debrief.markdown import counted, shorten
from debrief.models.fencing import make_visible
from debrief.scoring.model import DimensionScore, SessionScores
from debrief.scoring.shown import DASH
from debrief.scoring.verdict import NOT_REVIEWED
from debrief.sessions.model import Session
from debrief.summary import counted_verdicts

if TYPE_CHECKING:
    from rich.console import Console

    from debrief.langfuse.outgoing import ScoreReceipt
    from debrief.outcomes.store import Label

_PROMPT_SHOWN = 90


class CitedTurn(msgspec.Struct, frozen=True):
    """A turn that shows what a rationale says."""

    turn: int
    prompt: str
    """Its first words."""
    failed_calls: int


def evidence_of(session: Session, verdict: DimensionScore) -> list[CitedTurn]:
    """Return the turns of a verdict's evidence that the session has, in order."""
    cited = {place.turn for place in verdict.evidence}
    return [
        CitedTurn(
            turn.number,
            shorten(turn.prompt, _PROMPT_SHOWN),
            sum(call.status == "failed" for message in turn.messages for call in message.calls),
        )
        for turn in session.turns
        if turn.number in cited
    ]


def print_scores(
    out: Console, session: Session, row: SessionScores, labels: Sequence[Label] = ()
) -> None:
    """Print the verdict on one session and its scores, each with its rationale and the turns that
    show it, and what is known of the session from outside."""
    from debrief.cli.assessment_text import print_assessment, print_line
    from debrief.signals.extract import session_signals
    from debrief.view.assessment import Assessment, labels_shown
    from debrief.view.transcript import ShownTranscript

    said = Assessment(
        verdict=row.verdict,
        signals=session_signals(session),
        scores=(row,),
        labels=labels_shown(labels),
    )
    print_assessment(out, ShownTranscript(session, said), None)
    parts = counted(len(row.chunks), "part")
    shown = f"{row.tokens:,} tokens in {parts}" if row.tokens else "read whole"
    print_line(out, f"scored {shown}, scoring fingerprint {row.scoring_fingerprint}", style="dim")


def print_many(out: Console, rows: Sequence[SessionScores], target: int) -> None:
    """Print one line a session, and what holds for all of them."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("session", no_wrap=True)
    table.add_column("task", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for name in ("mean", "parts", "tokens", "agreement"):
        table.add_column(name, justify="right")
    table.add_column("", max_width=60)
    for row in rows:
        if row.status == "failed":
            named = _plain(row.session_id), row.task, _said(row)
            table.add_row(*named, "", "", "", "", _plain(row.failure))
            continue
        agreement = "" if row.chunk_agreement is None else f"{row.chunk_agreement:.2f}"
        notes = ["uncertain"] if row.uncertain else []
        notes += ["words for a judge"] if row.injection_suspected else []
        table.add_row(
            _plain(row.session_id),
            row.task,
            _said(row),
            DASH if row.overall_quality is None else f"{row.overall_quality:.2f}",
            str(len(row.chunks)),
            f"{row.tokens:,}",
            agreement,
            ", ".join(notes),
        )
    print_unwrapped(out, table)
    good = [row for row in rows if row.status == "ok"]
    chunks = [chunk for row in good for chunk in row.chunks]
    over = sum(chunk.tokens > target for chunk in chunks)
    several = sum(len(row.chunks) > 1 for row in good)
    uncertain = sum(row.uncertain for row in good)
    out.print(f"{counted(len(good), 'session')} reviewed, {len(rows) - len(good)} failed")
    out.print(
        f"{counted(len(chunks), 'part')}, {over} of them over {target:,} tokens; "
        f"{counted(several, 'session')} in several parts, {uncertain} uncertain"
    )
    said = (row.verdict for row in rows if row.verdict is not None)
    heads = ((one.verdict, one.basis, one.source, 1) for one in said)
    out.print(counted_verdicts(len(rows), heads).sentences())
    if good:
        largest = max(good, key=lambda row: row.tokens)
        parts = f"{largest.tokens:,} tokens in {counted(len(largest.chunks), 'part')}"
        out.print(f"the largest, {largest.session_id}: {parts}")


def _said(row: SessionScores) -> str:
    return NOT_REVIEWED if row.verdict is None else row.verdict.label


def print_receipts(out: Console, receipts: Sequence[ScoreReceipt]) -> None:
    """Print what a server confirmed."""
    written = sum(receipt.status == "written" for receipt in receipts)
    missing = [receipt for receipt in receipts if receipt.is_missing]
    host = next((receipt.host for receipt in receipts), "the server: no score has a value")
    out.print(f"\n{written} of {written + len(missing)} scores confirmed by {host}")
    for receipt in missing:
        out.print(f"  {receipt.name}: {receipt.status}: {receipt.reason}", style="red")
    for (status, reason), count in Counter((r.status, r.reason) for r in receipts).items():
        if status == "kept":
            out.print(f"  {counted(count, 'score')} {status}: {reason}", style="yellow")


def report_of(
    session: Session,
    row: SessionScores,
    receipts: Sequence[ScoreReceipt] = (),
    labels: Sequence[Label] = (),
) -> dict[str, Any]:
    """Return all that is known of one session's scores, for JSON."""
    names = ("id", "source", "tool", "task", "started", "ended")
    return {
        "session": {name: getattr(session, name) for name in names}
        | {"turns": session.prompt_count},
        "scores": row,
        "evidence": {v.dimension: evidence_of(session, v) for v in row.dimension_scores},
        **({"receipts": receipts} if receipts else {}),
        **({"labels": labels} if labels else {}),
    }


def _plain(text: str) -> Text:
    """Return text that cannot move a terminal's cursor, whatever a session holds."""
    return Text(make_visible(text))
