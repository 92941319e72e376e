"""For OpenAI's fine-tuning: nothing on a line but what its rules name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from debrief.training.model import ToolSchema
from debrief.training.publishing.form import Form, StoredLine

MIN_LINES = 10
"""Lines that a file must have."""
LONGEST_DESCRIPTION = 1_024
"""Characters of a function's description; with more, the service refuses all functions."""
_CUT = " …"
_TOOLS = msgspec.json.Decoder(tuple[ToolSchema, ...])


def convert(line: StoredLine, _: object = None) -> Iterator[dict[str, Any]]:
    """Yield the stored line without its metadata, its tools' descriptions cut where too long."""
    yield {"messages": line.messages, "tools": _shortened(bytes(line.tools))}


@lru_cache(maxsize=32)
def _shortened(tools: bytes) -> Raw | list[ToolSchema]:
    declared = _TOOLS.decode(tools)
    if all(len(tool.function.description) <= LONGEST_DESCRIPTION for tool in declared):
        return Raw(tools)
    return [_with_short_description(tool) for tool in declared]


def _with_short_description(tool: ToolSchema) -> ToolSchema:
    description = tool.function.description
    if len(description) <= LONGEST_DESCRIPTION:
        return tool
    kept = description[: LONGEST_DESCRIPTION - len(_CUT)]
    words = kept.rpartition(" ")[0] or kept
    return replace(tool, function=replace(tool.function, description=words + _CUT))


FORM = Form(
    name="openai",
    reader="OpenAI's fine-tuning service",
    columns={"messages": ["json"], "tools": ["json"]},
    note=(
        f"`messages` and `tools` alone. The service asks for at least {MIN_LINES} lines a file and "
        "cuts lines that are over its model's limit of tokens: split long sessions with "
        "`max_tokens` when the training set is made. `weight` 0 marks what is not trained on. "
        f"Descriptions of tools are cut at {LONGEST_DESCRIPTION:,} characters, more of which the "
        "service does not take."
    ),
    convert=convert,
    of_records=True,
    min_lines=MIN_LINES,
)
