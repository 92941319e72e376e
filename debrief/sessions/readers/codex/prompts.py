"""Which user messages of a Codex rollout a person wrote, and which words of them."""

from __future__ import annotations

import re

from debrief.sessions.readers.elements import without

_NOTICE = "<subagent_notification>"
_MACHINE = (
    "<environment_context>",
    "<user_instructions>",
    "<user_action>",
    "<turn_aborted>",
    "<skill>",
    _NOTICE,
    "<user_shell_command>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<system-reminder>",
    "<INSTRUCTIONS>",
    "# AGENTS.md",
    "Warning: apply_patch was requested via",
)
_CONTEXT = "# Context from my IDE setup:"
_CHOSEN = re.compile(
    r"^(?=# Files mentioned by the user:|## Active selection of the file:)", re.MULTILINE
)
_REQUEST = re.compile(r"^## My request(?: for Codex)?:\n", re.MULTILINE)
_CITATION = "oai-mem-citation"


def is_human(text: str) -> bool:
    """Return whether a user message among the response items may be a person's."""
    text = text.lstrip()
    return bool(text) and not text.startswith(_MACHINE)


def is_notice(text: str) -> bool:
    """Return whether a user message tells the model what another agent came to."""
    return text.lstrip().startswith(_NOTICE)


def own_words(text: str) -> str:
    """Return the prompt without what an editor told of the files that were open.

    What the person selected or dropped in stays: the words that follow speak of it.
    """
    if not text.lstrip().startswith(_CONTEXT):
        return text
    match = _CHOSEN.search(text) or _REQUEST.search(text)
    return text[match.end() :].strip() if match else text


def without_citations(text: str) -> str:
    """Return what the model said without the notes of its memory that nobody was shown."""
    return without(text, (_CITATION,))
