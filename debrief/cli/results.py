"""What ``debrief score`` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from debrief.cli.shared import cost_text, print_unwrapped
from debrief.markdown import counted, shorten
from debrief.models.fencing import LOOK_FIRST, make_visible
from debrief.scoring.dimensions import BY_NAME
from debrief.scoring.invariance import Movement, flips_table
from debrief.scoring.model import DimensionScore, SessionScores
from debrief.scoring.reading import STATES_SHOWN, SessionReading
from debrief.scoring.second_opinion import UNSURE_SHOWN
from debrief.scoring.shown import DASH, mean_shown, reason_shown, value_shown
from debrief.scoring.verdict import SHOWN, SessionVerdict, ground_with_turns
from debrief.sessions.model import Evidence, Session
from debrief.summary import counted_verdicts

if TYPE_CHECKING:
    from rich.console import Console

    from debrief.langfuse.outgoing import ScoreReceipt
    from debrief.outcomes.store import Label
    from debrief.scoring.pairwise import SessionComparison

_TURNS_SHOWN = 4
_WARNINGS = {
    "uncertain": "Uncertain: the parts of the session disagree; look at their rationales.",
    "injection_suspected": LOOK_FIRST,
}
"""By what is true of a session's scores."""
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
    out.print(_plain(f"{session.id}  {session.tool}, {session.task}, {session.started:%Y-%m-%d}"))
    turns, parts = counted(session.prompt_count, "turn"), counted(len(row.chunks), "part")
    shown = f"{row.tokens:,} tokens in {parts}" if row.tokens else "read whole"
    out.print(f"{turns}, {shown}", style="dim")
    out.print(f"scored by {row.model} ({row.scoring_fingerprint})", style="dim")
    if (first := row.first_opinion) is not None:
        said = f"; it said: {SHOWN[first.verdict]}" if first.verdict else ""
        reason = UNSURE_SHOWN[first.reason]
        out.print(
            _plain(f"{first.model} read it first and was unsure: {reason}{said}"), style="dim"
        )
    if row.second_failure:
        out.print(_plain(f"no second opinion: {row.second_failure}"), style="yellow")
    out.print()
    if row.verdict is not None:
        out.print(verdict_line(row.verdict))
        out.print(Padding(_plain(ground_with_turns(row.verdict)), (0, 0, 0, 4)), soft_wrap=False)
        out.print()
    if row.reading is not None:
        print_reading(out, row.reading)
    for verdict in row.verdicts:
        weight = BY_NAME[verdict.dimension].weight
        out.print(
            Text.assemble(
                (f"{verdict.dimension:20} ", "bold"),
                (value_shown(verdict), "bold cyan"),
                ("" if verdict.spread is None else f" ± {verdict.spread:.2f}", "cyan"),
                (f"  weight {weight:.2f}", "dim"),
            )
        )
        out.print(Padding(_plain(reason_shown(verdict)), (0, 0, 0, 4)), soft_wrap=False)
        evidence = evidence_of(session, verdict)
        for seen in evidence[:_TURNS_SHOWN]:
            line = _plain(f"turn {seen.turn}: {seen.prompt or '(no words)'}")
            if seen.failed_calls:
                line.append(f"  ({counted(seen.failed_calls, 'failed call')})")
            line.stylize("dim")
            out.print(Padding(line, (0, 0, 0, 6)), soft_wrap=False)
        if len(evidence) > _TURNS_SHOWN:
            more = f"and {counted(len(evidence) - _TURNS_SHOWN, 'other turn')}"
            out.print(Padding(Text(more, "dim"), (0, 0, 0, 6)), soft_wrap=False)
    out.print()
    for name, value in _whole_session(row):
        out.print(Text.assemble((f"{name:20} ", "bold"), value))
    for label in labels:
        words = f"{label.name}: {label.value}  ({label.source}; {label.detail or label.place})"
        out.print(Text("label  ", "bold"), _plain(words))
    for field, warning in _WARNINGS.items():
        if getattr(row, field):
            out.print(warning, style="yellow")


def print_comparison(out: Console, compared: SessionComparison) -> None:
    """Print which of two sessions did better, on what grounds, and what each could learn."""
    from debrief.scoring.pairwise import FINDINGS_SHOWN

    one, other = compared.sessions
    out.print(_plain(FINDINGS_SHOWN[compared.finding].format(a=one, b=other)), style="bold")
    used = compared.usage
    spent = f"{used.input_tokens:,} + {used.output_tokens:,} tokens, {cost_text(used.cost_usd)}"
    out.print(_plain(f"asked of {compared.model} in both orders: {spent}\n"), style="dim")
    for said in compared.orders:
        better = f"{said.better} did better" if said.better else "neither did better"
        out.print(_plain(f"{said.shown_first} first: {better}"), style="bold cyan")
        for ground in said.grounds:
            line = f"{ground.what} ({ground.session_id}, turn {ground.place.turn}: "
            shown = _plain(f"{line}“{ground.place.quote}”)")
            out.print(Padding(shown, (0, 0, 0, 4)), soft_wrap=False)
        for session_id, lesson in said.lessons.items():
            shown = _plain(f"{session_id} could learn: {lesson}")
            out.print(Padding(shown, (0, 0, 0, 4)), soft_wrap=False)
    if compared.injection_suspected:
        out.print(LOOK_FIRST, style="yellow")


def print_reading(out: Console, reading: SessionReading) -> None:
    """Print what a model read: requests and claims with their proof, incidents, troubles."""
    for request in reading.requests:
        _print_read(out, STATES_SHOWN[request.state], request.asked, request.turn, request.proof)
    for claim in reading.claims:
        if claim.state != "supported":
            words = f"“{claim.quote}”"
            _print_read(out, f"claim {claim.state}", words, claim.turn, claim.proof)
    for incident in reading.incidents:
        _print_read(out, "incident", incident.what, incident.turn, incident.place)
    for trouble in reading.troubles:
        _print_read(out, "trouble", trouble.what, trouble.turn, trouble.place)
        if trouble.rule:
            out.print(Padding(_plain(f"rule: {trouble.rule}"), (0, 0, 0, 4)), soft_wrap=False)
    out.print()


def _print_read(out: Console, title: str, words: str, turn: int, proof: Evidence | None) -> None:
    where = f"turn {turn}: " if turn else ""
    line = Text.assemble((f"{title:20} ", "bold"), _plain(f"{where}{words}"))
    out.print(line, soft_wrap=False)
    if proof is not None and proof.quote:
        shown = _plain(f"turn {proof.turn}: “{shorten(proof.quote, _PROMPT_SHOWN)}”")
        shown.stylize("dim")
        out.print(Padding(shown, (0, 0, 0, 6)), soft_wrap=False)


_STYLES = {"done_verified": "bold green", "not_done": "bold red", "partly": "bold yellow"}


def verdict_line(verdict: SessionVerdict) -> Text:
    """Return the verdict in a few words, for a line of its own."""
    style = _STYLES.get(verdict.verdict, "bold")
    return Text.assemble((f"{'verdict':20} ", "bold"), (verdict.shown, style))


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
    out.print(f"{counted(len(good), 'session')} scored, {len(rows) - len(good)} failed")
    out.print(
        f"{counted(len(chunks), 'part')}, {over} of them over {target:,} tokens; "
        f"{counted(several, 'session')} in several parts, {uncertain} uncertain"
    )
    heads = ((row.verdict.verdict, row.verdict.ground, 1) for row in rows if row.verdict)
    out.print(counted_verdicts(len(rows), heads).sentences())
    if good:
        largest = max(good, key=lambda row: row.tokens)
        parts = f"{largest.tokens:,} tokens in {counted(len(largest.chunks), 'part')}"
        out.print(f"the largest, {largest.session_id}: {parts}")


def _said(row: SessionScores) -> str:
    return DASH if row.verdict is None else row.verdict.shown


def print_movements(out: Console, movements: Sequence[Movement], sessions: int) -> None:
    """Print how far scores move when sessions are cut, against the same sessions uncut."""
    cut = {movement.session_id for movement in movements}
    out.print(f"{len(cut)} of {sessions} sessions do not fit into one part at every size.")
    if cut:
        out.print(flips_table(movements))


def print_receipts(out: Console, receipts: Sequence[ScoreReceipt]) -> None:
    """Print what a server confirmed."""
    written = sum(receipt.status == "written" for receipt in receipts)
    missing = [receipt for receipt in receipts if receipt.is_missing]
    host = next((receipt.host for receipt in receipts), "the server: no score has a value")
    out.print(f"\n{written} of {written + len(missing)} scores confirmed by {host}")
    for receipt in missing:
        out.print(f"  {receipt.name}: {receipt.status}: {receipt.reason}", style="red")
    for (status, reason), count in Counter((r.status, r.reason) for r in receipts).items():
        if status in ("kept", "replaced"):
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
        "evidence": {v.dimension: evidence_of(session, v) for v in row.verdicts},
        **({"receipts": receipts} if receipts else {}),
        **({"labels": labels} if labels else {}),
    }


def _whole_session(row: SessionScores) -> list[tuple[str, str]]:
    figures = (
        ("overall_quality", mean_shown(row), "{}"),
        ("chunk_agreement", row.chunk_agreement, "{:.2f}"),
        ("token_efficiency", row.token_efficiency, "{:.1f} lines per 1,000 tokens"),
        ("user_turn_efficiency", row.user_turn_efficiency, "{:.1f} lines per turn"),
        ("cost", row.cost_usd or None, "{:.4f} US dollars"),
    )
    return [(name, form.format(value)) for name, value, form in figures if value is not None]


def _plain(text: str) -> Text:
    """Return text that cannot move a terminal's cursor, whatever a session holds."""
    return Text(make_visible(text))
