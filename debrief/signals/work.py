"""What kind of work a session was, by what it changed and what it ran."""

from __future__ import annotations

import re

from debrief.sessions.model import Session, calls_of
from debrief.signals.check_commands import language_of
from debrief.signals.schema import Change, WorkKind
from debrief.signals.shell import simple_commands

_TEXTS = re.compile(
    r"\.(?:md|mdx|markdown|rst|adoc|org|txt|tex|docx?|pdf|csv|png|jpe?g|svg|gif|webp|html?)$"
    r"|(?:^|/)(?:LICENSE|NOTICE|AUTHORS|CHANGELOG|README)$",
    re.IGNORECASE,
)
"""Documents, and the pictures in them."""
_PACKAGES = re.compile(
    r"^(?:go (?:get|mod)|cargo (?:add|remove)|(?:npm|pnpm|yarn|bun|uv|poetry|bundle"
    r"|composer|dotnet) \S+)"
)
_OPERATES = re.compile(
    r"^(?:git (?:commit|push|pull|merge|rebase|checkout|switch|reset|clone|rm|mv|init|am"
    r"|cherry-pick|revert|restore|clean|worktree (?:add|remove)|stash (?:pop|drop|push)|tag \S) "
    r"|gh (?:pr|issue|release|repo|run) (?:create|edit|merge|close|comment|rerun|review)"
    r"|(?:mv|cp|chmod|ln|kill|pkill|systemctl|kubectl|helm|terraform|scp|rsync|brew|apt|apt-get"
    r"|pip|pip3) |(?:npm|pnpm|yarn|bun|uv|poetry) (?:install|publish|add|sync|ci)\b)"
)
"""Commands that do something beside looking."""


_LOOKED = 3
"""Calls from which on a session without a word has looked into something."""


def work_of(session: Session, change: Change) -> WorkKind:
    """Return what was worked on, by files where any changed, else by what was run and said."""
    paths = [*change.files, *change.deleted]
    if any(map(language_of, paths)):
        return "code"
    if paths:
        return "text" if all(map(_TEXTS.search, paths)) else "settings"
    if change.commands:
        return "settings" if all(map(_PACKAGES.match, change.commands)) else "code"
    if change.commits or any(
        map(_operates, (call.command for call in calls_of(session) if call.status == "ok"))
    ):
        return "operations"
    said = any(message.text.strip() for turn in session.turns for message in turn.messages)
    looked = sum(call.status == "ok" for call in calls_of(session)) >= _LOOKED
    return "answer" if said or looked else "nothing"


def _operates(command: str) -> bool:
    return any(_OPERATES.match(f"{' '.join(words)} ") for words in simple_commands(command))
