"""Find corrections and approval in what a person writes.

The rules are a file a language in ``words/``, and narrow: a missed correction costs less than an
invented one. Only the person's own words count, so pasted code, logs and quotations are taken out
first, and only the beginning is looked at, because long prompts are new work. They are shown and
rank sessions; no verdict rests on them.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from debrief.markdown import shorten

_BEGINNING = 400
"""Characters of a reply that may hold a verdict."""
_COURTEOUS = 80
"""Characters of words that ask for nothing more."""
_NOT_OWN_WORDS = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*[>|][^\n]*$|^[ \t]*at [^\n]*$|^[ \t]*File \"[^\n]*$"
    r"|https?://\S+|^[ \t]*\d+[→:\t|][^\n]*$|^[\[{][^\n]*$|<([\w-]+)[^>]*>.*?</\1>"
    r"|[\"“„][^\"”“\n]{12,}[\"”“]",
    re.DOTALL | re.MULTILINE,
)
"""Fences and tags go over lines; all else is of one."""
_REQUEST = re.compile(r"^(?:## My request(?: for [^\n:]+)?:\n|<(?:user_query|userRequest)>)", re.M)
"""Behind what an editor puts before the person's words: the files that are open, a selection."""
_TAGGED = re.compile(
    r"<(?P<tag>ide_\w+|environment_context|system-reminder|attached_files|context)>"
    r".*?</(?P=tag)>",
    re.DOTALL,
)
"""What an editor puts beside them."""
_REPORTED = re.compile(
    r"\b(?:review(?:er)?|comment|issue|ticket|feedback|customer|user)s?\b[^.\n]{0,30}"
    r"\b(?:says?|said|reads?|asks?|wrote|claims?|reports?)\b[^\n]*",
    re.IGNORECASE,
)


def correction_in(words: str) -> str | None:
    """Return the words that correct the agent, as a short quote; None when nothing does."""
    return _sentence("corrections", words)


def approval_in(words: str) -> str | None:
    """Return the words that approve or accept the work; None when nothing does."""
    found = _sentence("approvals", words)
    return None if found and re.search(r"\bnot?\b|n't\b|\bnicht\b", found, re.I) else found


def typed_words(prompt: str) -> str:
    """Return what the person typed, without what an editor puts beside it."""
    pasted = _REQUEST.search(prompt)
    return _TAGGED.sub(" ", prompt[pasted.end() :] if pasted else prompt)


def is_courtesy(prompt: str) -> bool:
    """Return whether a person only thanks, approves or takes leave, and asks for nothing."""
    words = own_words(prompt)
    return len(words) < _COURTEOUS and any(rule.search(words) for rule in rules()["courtesies"])


def own_words(prompt: str) -> str:
    """Return the beginning of what the person typed: no code, log, quotation or report."""
    text = _NOT_OWN_WORDS.sub(" ", typed_words(prompt)[: 4 * _BEGINNING])
    return _REPORTED.sub(" ", text).replace("’", "'").strip()[:_BEGINNING]


@cache
def rules(package: str = "debrief.signals") -> dict[str, tuple[re.Pattern[str], ...]]:
    """Return the vocabulary of a package by section: a file a language in its ``words/``."""
    found: dict[str, list[re.Pattern[str]]] = {}
    folder = resources.files(package) / "words"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        section = ""
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("[") and line.endswith("]"):
                section = line[1:-1]
                found.setdefault(section, [])
            elif line and not line.startswith("#"):
                found[section].append(re.compile(line, re.IGNORECASE | re.MULTILINE))
    return {section: tuple(patterns) for section, patterns in found.items()}


def _sentence(section: str, prompt: str) -> str | None:
    """Return the sentence that matches a rule of ``section``."""
    words = own_words(prompt)
    found = next((found for rule in rules()[section] if (found := rule.search(words))), None)
    if found is None:
        return None
    start = max(words.rfind(mark, 0, found.start()) for mark in ("\n", ". ", "! ", "? ")) + 1
    return shorten(words[start:].partition("\n")[0], 100)
