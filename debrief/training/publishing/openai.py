"""For OpenAI's fine-tuning: nothing on a line but what its rules name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from debrief.training.model import ToolSchema
from debrief.training.outlines import TOOLS
from debrief.training.publishing.conversations import ENCODER, Made, StoredLine
from debrief.training.validation import StrictMessage, conversation_problems

FEWEST = 10
"""Lines that a file must have."""
LONGEST_DESCRIPTION = 1_024
"""Characters of what a function is said to do; with more, the service refuses all functions."""
NOTE = (
    f"`messages` and `tools` alone. The service asks for at least {FEWEST} lines a file and cuts "
    "lines that are over its model's limit of tokens: split long sessions with `max_tokens` when "
    "the training set is made. `weight` 0 marks what is not trained on. Descriptions of tools are "
    f"cut at {LONGEST_DESCRIPTION:,} characters, more of which the service does not take."
)
_CUT = " …"


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    messages: tuple[StrictMessage, ...]
    tools: Raw


_CHECKED = msgspec.json.Decoder(_Line)


_TOOLS = msgspec.json.Decoder(tuple[ToolSchema, ...])


def convert(stored: StoredLine, _: object = None) -> Iterator[Made]:
    """Yield the stored line without its metadata.

    Its messages and tools passed these very rules when it was stored, and it is read with its
    checksum.
    """
    outline = stored.outline
    tools = stored.tools
    shorter = _cut(bytes(tools)) if len(tools) > LONGEST_DESCRIPTION else None
    if shorter is None:
        yield (stored.line[: outline.tools_end], b"}\n"), ()
    else:
        yield (stored.line[: outline.messages_end], TOOLS, shorter, b"}\n"), ()


@lru_cache(maxsize=32)
def _cut(tools: bytes) -> bytes | None:
    """Return tools with descriptions that are no longer than the service takes; None for the same
    ones."""
    declared = _TOOLS.decode(tools)
    if not any(_is_long(tool) for tool in declared):
        return None
    return ENCODER.encode([_shortened(tool) if _is_long(tool) else tool for tool in declared])


def _is_long(tool: ToolSchema) -> bool:
    return len(tool.function.description) > LONGEST_DESCRIPTION


def _shortened(tool: ToolSchema) -> ToolSchema:
    kept = tool.function.description[: LONGEST_DESCRIPTION - len(_CUT)]
    words = kept.rpartition(" ")[0] or kept
    return replace(tool, function=replace(tool.function, description=words + _CUT))


def problems(line: bytes) -> Iterator[str]:
    """Yield what the fine-tuning rules forbid."""
    try:
        made = _CHECKED.decode(line)
        yield from conversation_problems(made.messages, made.tools)
        declared = _TOOLS.decode(made.tools)
    except msgspec.DecodeError as error:
        yield f"not a line of the expected shape: {error}"
        return
    for tool in declared:
        if _is_long(tool):
            length = len(tool.function.description)
            yield f"tool {tool.function.name}: a description of {length:,} characters"
