"""What became of every session of the exported sets, each counted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from debrief.markdown import counted
from debrief.training.conversations import label
from debrief.training.model import LineRow, TrainingSetRow
from debrief.training.publishing.narrowing import session_of

_NOT_ASKED = "another filter of this export"
_NO_PLACE = "the form has no place for it"
_MOST_REASONS = 5


class SessionAccount:
    """The sessions of some sets, and why those that an export is without are left out.

    Args:
        sets: the sets, with what they leave out themselves.
    """

    def __init__(self, sets: Iterable[TrainingSetRow]) -> None:
        self._reasons: dict[str, str] = {}
        self._made: set[str] = set()
        self._unreviewed: set[str] = set()
        for row in sets:
            for group in row.left_out:
                self._reasons |= dict.fromkeys(map(label, group.sessions), group.reason)

    def explain(self, reasons: Mapping[str, str]) -> None:
        """Note why sessions are left out that were looked at again, by id."""
        self._reasons |= {label(name): reason for name, reason in reasons.items()}

    def offer(self, rows: Iterable[LineRow]) -> None:
        """Note lines that there are to choose from."""
        self._reasons |= {session_of(row): _NOT_ASKED for row in rows}

    def choose(self, rows: Iterable[LineRow]) -> None:
        """Note lines that were chosen."""
        self._reasons |= {session_of(row): _NO_PLACE for row in rows}

    def leave(self, row: LineRow, reason: str) -> None:
        """Note why a chosen line was left out."""
        self._reasons[session_of(row)] = reason

    def make(self, *rows: LineRow) -> None:
        """Note lines that something was made of."""
        self._made.update(map(session_of, rows))
        self._unreviewed.update(session_of(row) for row in rows if not row.verdict)

    @property
    def sessions(self) -> int:
        """How many sessions there are."""
        return len(self._reasons)

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Return the reasons with their sessions, behind those that are in the export."""
        unreviewed = len(self._unreviewed)
        return [
            ("in these files", str(len(self._made))),
            *([("of these, not reviewed", str(unreviewed))] if unreviewed else []),
            *((f"left out: {why}", str(count)) for why, count in self._left_out),
        ]

    def summary(self) -> str:
        """Return it in a sentence."""
        made, left_out = counted(len(self._made), "session"), self._left_out
        unreviewed = (
            f" ({len(self._unreviewed):,} of them not reviewed)" if self._unreviewed else ""
        )
        why = "; ".join(f"{reason} ({count:,})" for reason, count in left_out[:_MOST_REASONS])
        rest = sum(count for _, count in left_out[_MOST_REASONS:])
        why += f"; other reasons ({rest:,})" if rest else ""
        left = f"; left out {sum(count for _, count in left_out):,}: {why}" if left_out else ""
        return f"From {made}{unreviewed}{left}."

    @property
    def _left_out(self) -> list[tuple[str, int]]:
        left = Counter(why for name, why in self._reasons.items() if name not in self._made)
        return sorted(left.items(), key=lambda item: (-item[1], item[0]))
