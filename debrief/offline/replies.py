"""What a person's words say about the work before them: corrections and approval.

Lexical rules, a file a language in ``words/``, kept narrow: a missed correction costs less than
an invented one. Only the person's own words count, so pasted code, logs and quotations are taken
out first, and only the beginning is looked at, because long prompts are new work, not verdicts.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_LOOKED_AT = 400
_NOT_OWN_WORDS = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*[>|][^\n]*$|^[ \t]*at [^\n]*$|^[ \t]*File \"[^\n]*$"
    r"|https?://\S+|^[ \t]*\d+[→:\t|][^\n]*$|^[\[{][^\n]*$|<([\w-]+)[^>]*>.*?</\1>"
    r"|[\"“„][^\"”“\n]{12,}[\"”“]",
    re.DOTALL | re.MULTILINE,
)
"""Fences and tags go over lines; all else is of one."""
_REPORTED = re.compile(
    r"\b(?:review(?:er)?|comment|issue|ticket|feedback|customer|user)s?\b[^.\n]{0,30}"
    r"\b(?:says?|said|reads?|asks?|wrote|claims?|reports?)\b[^\n]*",
    re.IGNORECASE,
)


def correction_in(words: str) -> str | None:
    """Return the words that correct the agent, as a short quote; None when nothing does."""
    return _first("corrections", words)


def approval_in(words: str) -> str | None:
    """Return the words that thank, approve, or accept the work; None when nothing does."""
    found = _first("approvals", words)
    return None if found and re.search(r"\bnot?\b|n't\b|\bnicht\b", found, re.I) else found


def own_words(prompt: str) -> str:
    """Return the beginning of what the person typed: no code, log, quotation or report."""
    text = _NOT_OWN_WORDS.sub(" ", prompt[: 4 * _LOOKED_AT])
    return _REPORTED.sub(" ", text).replace("’", "'").strip()[:_LOOKED_AT]


@cache
def _rules() -> dict[str, tuple[re.Pattern[str], ...]]:
    """Read the rules of every language: a file each in ``words/``."""
    rules: dict[str, list[re.Pattern[str]]] = {}
    folder = resources.files("debrief.offline") / "words"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        section = ""
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("[") and line.endswith("]"):
                section = line[1:-1]
            elif line and not line.startswith("#"):
                compiled = re.compile(line, re.IGNORECASE | re.MULTILINE)
                rules.setdefault(section, []).append(compiled)
    return {section: tuple(patterns) for section, patterns in rules.items()}


def _first(section: str, prompt: str) -> str | None:
    words = own_words(prompt)
    for pattern in _rules()[section]:
        found = pattern.search(words)
        if found:
            return _sentence(words, found.start())
    return None


def _sentence(words: str, at: int) -> str:
    start = max(words.rfind(mark, 0, at) for mark in ("\n", ". ", "! ", "? ")) + 1
    line = " ".join(words[start:].split("\n")[0].split())
    return line if len(line) <= 100 else line[:99] + "…"
