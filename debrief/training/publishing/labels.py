"""The export form of single answers labelled desirable or not, and where the label comes from.

The verdict says it of a session's end, which an outcome decides where there is one; the person's
next words say it of an answer before. A session of which nothing is known is neither good nor bad.
Scores of one scorer are comparable with one another and with nothing else, and may all be low: the
best and the worst sessions by them are labelled only when that is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from debrief.scoring.verdict import INCOMPLETE, VERDICT_LABELS
from debrief.signals.user_feedback import correction_in
from debrief.training.model import SampleMetadata, Split
from debrief.training.publishing.form import Form, Standing, StoredLine, template_messages
from debrief.training.publishing.preferences import GOOD
from debrief.training.publishing.rows import (
    Messages,
    is_trained,
    is_untrained,
    rows_of,
    up_to_the_last_answer,
    without_ends,
)

MIN_MARGIN = 0.1
"""Of overall quality, 0 to 1: less is within what one scorer varies by."""
_BROKEN_OFF = ("open_end", "stopped")
"""Grounds of a verdict that are of the very end: where the line's last answer is whole, the end is
not in it, and nothing is said of that answer."""


def _kto(line: StoredLine) -> Iterator[dict[str, Any]]:
    """Yield the answers of a line that are known to be desirable or not."""
    messages, about = without_ends(line.messages), line.about
    asked = [place for place, message in enumerate(messages) if message.role == "user"]
    for start, end in zip(asked, [*asked[1:], len(messages)], strict=True):
        label: bool | None = None
        source = reason = ""
        if end < len(messages):
            if said := correction(messages, end):
                label, source, reason = False, "correction", said
        elif about.window == about.windows and any(map(is_trained, messages[start:])):
            label, source, reason = _ending(about, line)
        begin = _last_stretch(messages, start + 1) if label else start + 1
        answers = up_to_the_last_answer(messages[begin:end])
        if label is not None and answers:
            yield {
                "prompt": template_messages(messages[:begin]),
                "completion": template_messages(answers),
                "label": label,
                "label_source": source,
                "tools": bytes(line.tools).decode(),
                "reason": reason,
                "session_id": about.session_id,
            }


def _last_stretch(messages: Messages, start: int) -> int:
    """Return where the answers begin that are trained on up to the end."""
    row = rows_of(messages)[-1]
    begin = max(start, len(row.history))
    return begin if not any(map(is_untrained, messages[begin:])) else len(messages)


def correction(messages: Messages, place: int) -> str | None:
    """Return the words of a prompt that correct the work before it, which then has weight 0."""
    if messages[place - 1].weight != 0:
        return None
    return correction_in(messages[place].content)


def _is_good(about: SampleMetadata) -> bool | None:
    """Return whether a session is done and checked; None where it neither is nor falls short."""
    return about.verdict == GOOD if about.verdict in {GOOD, *INCOMPLETE} else None


def _ending(about: SampleMetadata, line: StoredLine) -> tuple[bool | None, str, str]:
    """Return whether a session's end is desirable, by what, and why: by its verdict, else by where
    its overall quality stands, if that was asked for; None when neither says so."""
    is_good = _is_good(about)
    if is_good is not None:
        if about.verdict_ground in _BROKEN_OFF and is_trained(line.messages[-1]):
            return None, "", ""
        source = "outcome" if about.verdict_ground == "outcome" else "verdict"
        return is_good, source, f"{VERDICT_LABELS[about.verdict]}. {about.scores[0].comment}"
    if not line.standing:
        return None, "", ""
    reason = f"{about.quality or 0.0:.2f}, among the {line.standing} ones of this export"
    return line.standing == "high", "overall quality", reason


KTO = Form(
    name="kto",
    reader="TRL's `KTOTrainer`",
    columns={
        "prompt": ["json"],
        "completion": ["json"],
        "label": "bool",
        **dict.fromkeys(("label_source", "tools", "reason", "session_id"), "string"),
    },
    note=(
        "Answers that are desirable or not, unpaired, each with all that came before it. Not "
        "desirable is what the person's next words reject, undo or correct. The last answer of a "
        "session is desirable when the session is done and checked, and not when it is partly or "
        "not done, as one that fails its last check or breaks off; what became of it decides where "
        "that is known. Nothing is desirable that is not trained on elsewhere. Any other is left "
        "out, unless labels by overall quality were asked for: then it is desirable at the upper "
        "end of this export, and not at the lower one. `label_source` says which it was. The "
        "results of calls are in `completion`: keep them out of the loss."
    ),
    convert=_kto,
    of_labels=True,
)


_WORDS = {True: "desirable", False: "undesirable"}


def standings(qualities: Mapping[str, float], share: float) -> dict[str, Standing]:
    """Return where sessions stand that are among the best or the worst of an export.

    There are fewer, or none, where the two ends are less than ``MIN_MARGIN`` apart.

    Args:
        qualities: overall qualities by session, of those that have one.
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
        self.share = share
        """Of the sessions at each end of overall quality that got a label; 0 for none."""
        self._counts: Counter[tuple[str, bool]] = Counter()

    def counted(
        self, lines: Iterable[tuple[Split, dict[str, Any]]]
    ) -> Iterator[tuple[Split, dict[str, Any]]]:
        """Yield labelled lines, with their sides, as they are."""
        for side, line in lines:
            self._counts[line["label_source"], line["label"]] += 1
            yield side, line

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Return what labels are by, with how many are desirable and how many are not."""
        return [
            (source, *(str(self._counts[source, label]) for label in _WORDS))
            for source in sorted({source for source, _ in self._counts})
        ]

    def warnings(self) -> Iterator[str]:
        """Yield what to know before training."""
        found = {label for _, label in self._counts}
        if len(found) == 1:
            yield (
                f"all {self._counts.total()} labels are {_WORDS[found.pop()]}: there is nothing to "
                "tell apart"
            )
