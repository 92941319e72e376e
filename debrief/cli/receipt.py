"""The receipt of ``debrief forget`` as terminal text: what was removed, and what could not be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from debrief.cli.shared import print_unwrapped
from debrief.markdown import counted

if TYPE_CHECKING:
    from rich.console import Console

    from debrief.forgetting.forget import ForgetReceipt, Remaining

_SHOWN = 5
_LINES: dict[str, str] = {
    "transcript": "the tool's own transcript, which is only read: {}",
    "capture": "a capture among transcripts, which are only read: {}",
    "object": "the transcript in the object store, which is only read: {}",
    "on_server": "{count} on the Langfuse server {}: the originals, and labels given there",
    "labels_file": "{count} lines of {}, which no run takes in any more",
    "other_machine": "an export on another machine; forget it there, or remove it: {}",
    "pushed": "a dataset of the Hugging Face Hub that an export was sent to: {}",
    "old_answers": "{count} answers of models in {} that quote nothing of it, and of which nobody "
    "noted what they are about: debrief cache prune --days 0 removes all answers",
}
_MORE: dict[str, str] = {
    "transcript": "transcripts",
    "capture": "files of captures",
    "object": "transcripts in the object store",
    "labels_file": "files with labels",
    "other_machine": "exports on other machines",
    "pushed": "datasets",
}
_ALWAYS = (
    "backups, an object store's own versions, a database server's own log and archives",
    "files that were handed out: pages and tables that were saved or sent, clones of exports",
    "figures over many sessions (leaderboard, agreement, cards): the next run makes them anew",
)


def print_receipt(receipt: ForgetReceipt, out: Console) -> None:
    """Print what was forgotten, where it was, and what remains; or what would be."""
    out.print(_headline(receipt))
    table = Table("where", "what", box=box.SIMPLE_HEAD, pad_edge=False)
    for found in receipt.found:
        table.add_row(f"{found.place}: {found.where}", counted(found.count, found.what))
    if receipt.found:
        print_unwrapped(out, table)
    else:
        out.print("Nothing of it is in any place that Debrief knows of.")
    if any(found.place == "Langfuse" for found in receipt.found) and receipt.is_done:
        out.print("The Langfuse server has taken the deletions on and carries them out by and by.")
    out.print("What remains:" if receipt.is_done else "What would remain:")
    for line in (*_remaining(receipt), *_ALWAYS):
        out.print(f"  {line}")
    if receipt.is_done and receipt.weeks:
        out.print(
            f"{counted(len(receipt.weeks), 'week')} held them and are stale: the next "
            "`debrief run` makes rubrics, figures and reports without them."
        )


def _headline(receipt: ForgetReceipt) -> str:
    parts = []
    if receipt.sessions:
        shown = ", ".join(receipt.sessions[:_SHOWN])
        more = len(receipt.sessions) - _SHOWN
        shown += f" and {more} more" if more > 0 else ""
        parts.append(f"{counted(len(receipt.sessions), 'session')}: {shown}")
    if receipt.relatives:
        parts.append(f"of these, {len(receipt.relatives)} are copies or forks of the others")
    if receipt.person:
        parts.append(f"the labels of {receipt.person}")
    return f"{'Forgotten' if receipt.is_done else 'To be forgotten'}: {'; '.join(parts)}"


def _remaining(receipt: ForgetReceipt) -> Iterator[str]:
    """Yield a line for each thing that remains, and one for what is too many to name."""
    counts: Counter[str] = Counter()
    for remaining in receipt.remaining:
        counts[remaining.what] += 1
        if counts[remaining.what] <= _SHOWN:
            yield _line(remaining)
    for what, count in counts.items():
        if count > _SHOWN:
            yield f"and {count - _SHOWN} more {_MORE[what]}"


def _line(remaining: Remaining) -> str:
    return _LINES[remaining.what].format(remaining.where, count=remaining.count)
