"""The export form of single answers labelled desirable or not, and where the label comes from.

The verdict says it of a session's end; the person's next words say it of an answer before. A
session on which nobody gave a verdict is neither good nor bad.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from debrief.scoring.verdict import COMPLETE, INCOMPLETE, VERDICT_LABELS
from debrief.signals.user_feedback import correction_in
from debrief.training.model import SampleMetadata, Split
from debrief.training.publishing.form import Form, StoredLine, template_messages
from debrief.training.publishing.rows import (
    Messages,
    is_trained,
    is_untrained,
    rows_of,
    up_to_the_last_answer,
    without_ends,
)

_CUT_SHORT = ("open", "interrupted", "limit")
"""Endings that are not in a line whose last answer is whole: what is bad came after it."""


def _kto(line: StoredLine) -> Iterator[dict[str, Any]]:
    """Yield the answers of a line that are known to be desirable or not."""
    messages, about = without_ends(line.messages), line.about
    is_last = about.window == about.windows
    asked = [place for place, message in enumerate(messages) if message.role == "user"]
    for start, end in zip(asked, [*asked[1:], len(messages)], strict=True):
        label: bool | None = None
        source = reason = ""
        if end < len(messages):
            if said := correction(messages, end):
                label, source, reason = False, "correction", said
        elif is_last and about.verdict and any(map(is_trained, messages[start:])):
            label, source = is_complete(about), about.verdict_basis
            reason = f"{VERDICT_LABELS[about.verdict]}. {about.scores[0].comment}"
            if label is False and about.ending in _CUT_SHORT and is_trained(line.messages[-1]):
                label = None
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


def is_complete(about: SampleMetadata) -> bool | None:
    """Return whether a session is complete; None where nobody says that it is or is not."""
    return about.verdict in COMPLETE if about.verdict in COMPLETE | INCOMPLETE else None


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
        "session is desirable when its verdict is complete, and not when it is partial or failed. "
        "Where nobody gave a verdict, or it is undetermined, there is no label. Nothing is "
        "desirable that is not trained on elsewhere. `label_source` says who gave the label: "
        "`person`, `outcome` or `review`, or `correction` of the person's next words. The results "
        "of calls are in `completion`: keep them out of the loss."
    ),
    convert=_kto,
    of_labels=True,
)


_WORDS = {True: "desirable", False: "undesirable"}


class LabelCounts:
    """The labels of an export, counted by what they are by, as its lines go by."""

    def __init__(self) -> None:
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
