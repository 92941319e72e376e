"""Which user messages of a Codex rollout a person wrote, and which words of them."""

from __future__ import annotations

import re

_MACHINE = (
    "<environment_context>",
    "<user_instructions>",
    "<user_action>",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "<user_shell_command>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<system-reminder>",
    "<INSTRUCTIONS>",
    "# AGENTS.md",
    "Warning: apply_patch was requested via",
)
_REQUEST = re.compile(r"^## My request for Codex:\n", re.MULTILINE)
_CONTEXT = ("# Context from my IDE setup:", "# Files mentioned by the user:")


def is_human(text: str) -> bool:
    """Tell whether a user message among the response items may be a person's."""
    text = text.lstrip()
    return bool(text) and not text.startswith(_MACHINE)


def own_words(text: str) -> str:
    """Return the prompt without the context that an editor put before it."""
    if text.lstrip().startswith(_CONTEXT):
        match = _REQUEST.search(text)
        if match:
            return text[match.end() :].strip()
    return text
