"""Labels of an export: where sessions stand in it, and how many of each label there are.

Scores of one scorer are comparable with one another and with nothing else, and may all be low. So
where nothing better tells, the best and the worst sessions of the export itself are labelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from debrief.markdown import table
from debrief.training.model import Split
from debrief.training.publishing.form import Standing
from debrief.training.publishing.outcome_forms import MIN_MARGIN

LABEL_SHARE = 1 / 3
_WORDS = {True: "desirable", False: "undesirable"}


def standings(qualities: Mapping[str, float], share: float) -> dict[str, Standing]:
    """Return where sessions stand that are among the best or the worst of an export.

    There are fewer, or none, where the two ends are less than ``MIN_MARGIN`` apart.

    Args:
        qualities: overall qualities by session.
        share: of all sessions, at each end.
    """
    ranked = sorted(qualities, key=lambda name: (qualities[name], name))
    count = int(len(ranked) * share)
    while count and qualities[ranked[-count]] - qualities[ranked[count - 1]] < MIN_MARGIN:
        count -= 1
    ends: dict[str, Standing] = dict.fromkeys(ranked[:count], "low")
    return ends | dict.fromkeys(ranked[len(ranked) - count :], "high")


class LabelCounts:
    """The labels of an export, counted by what they are by, as its lines go by."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._counts: Counter[tuple[str, bool]] = Counter()

    def counted(
        self, lines: Iterable[tuple[Split, dict[str, Any]]]
    ) -> Iterator[tuple[Split, dict[str, Any]]]:
        """Yield labelled lines, with their sides, as they are."""
        for side, line in lines:
            self._counts[line["label_source"], line["label"]] += 1
            yield side, line

    def note(self) -> str:
        """Return the part of an export's page that says how many labels there are."""
        rows = [
            (source, *(str(self._counts[source, label]) for label in _WORDS))
            for source in sorted({source for source, _ in self._counts})
        ]
        return (
            f"## Labels\n\n{table(('by', *_WORDS.values()), rows)}\n\nBy overall quality the best "
            f"and the worst {self._share:.0%} of the sessions are labelled, where neither an "
            "outcome nor P(success) is known."
        )

    def warnings(self) -> Iterator[str]:
        """Yield what to know before training."""
        found = {label for _, label in self._counts}
        if len(found) == 1:
            yield (
                f"all {self._counts.total()} labels are {_WORDS[found.pop()]}: there is nothing to "
                "tell apart"
            )
