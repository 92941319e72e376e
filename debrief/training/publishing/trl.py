"""For TRL: conversations that its trainers render with a model's own chat template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from debrief.training.publishing.form import (
    Form,
    StoredLine,
    template_messages,
    trained_messages,
)


def convert(line: StoredLine, _: object = None) -> Iterator[dict[str, Any]]:
    """Yield the stored line as TRL takes it."""
    yield {
        "messages": template_messages(trained_messages(line.messages)),
        "tools": bytes(line.tools).decode(),
        "session_id": line.rating.session_id,
    }


FORM = Form(
    name="trl",
    reader="TRL's `SFTTrainer`",
    columns={"messages": ["json"], "tools": "string", "session_id": "string"},
    note=(
        "`arguments` are objects, as chat templates want them, and `tools` is JSON text, which TRL "
        "reads. There are no weights: answers to a request that is not known are left out. A line "
        "whose end the transcript lacks ends on calls; a turn within it that has no end, on "
        "results."
    ),
    convert=convert,
    of_records=True,
)
