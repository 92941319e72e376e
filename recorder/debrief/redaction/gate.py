"""The last search for secrets: finished lines, for values that look random.

It shares no code and no rule with what takes secrets out: it knows no name, no command and no
format of a secret, only that keys are made by chance. What looks so, and is no id of a known form,
is held back until a person has looked at it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from itertools import pairwise

from debrief.errors import InputError

UNSEEN = "holds letters and digits made by chance, which no rule names"
_VERSION = "5"
_SHORTEST, _LONGEST = 20, 200
"""Characters of a token. Longer ones are pictures, files and signatures."""
_FEWEST_DIGITS = 2
_LEAST_CHANGES = 0.3
"""Changes of kind (small, large, digit) a character: .4 to .6 by chance, below .2 in words."""
_OURS = re.compile(r"<secret:[a-z-]{1,40}:[0-9a-f]{6}>")
_ESCAPE = re.compile(
    r"(?:\\{1,8}(?:u001b|x1b|033|e)|\x1b)\[[0-9;]{0,12}m|\\{1,8}(?:u[0-9a-f]{4}|.)"
)
_RUN = re.compile(rf"[A-Za-z0-9_+/\-]{{{_SHORTEST},}}={{0,2}}")
_ID = re.compile(
    r"(?:^|[^A-Za-z0-9])(?:toolu|srvtoolu|tooluse|msg|req|call|fco?|rs|resp|ctco?|prt|ses|session"
    r"|item|run|thread|asst|file|batch|step|evt|exec|ws|cse|gen|cmpl|chatcmpl|agent|PRRC?|IC|PR)[_-]"
    r"(?:vrtx_|bdrk_|\d\d_|ET_){0,2}\Z"  # of calls, messages, reviews
    r"|(?:sha\d{1,3}-|h1:)(?:[A-Za-z0-9+/]{0,40}/)?\Z|var/folders/[\w+/]{1,14}\Z"
)
"""The beginnings of ids and digests of known forms."""
_KNOWN = re.compile(r"sha\d{1,3}-|AAAA[BCE]|iVBORw0KGgo|/9j/|(?:[A-Z]{1,5}_)?kwDO")
"""Beginnings of digests, public keys, pictures and ids of GitHub."""
_HEX = re.compile(r"[0-9a-fA-F-]+\Z")
"""UUIDs, hashes of commits, digests."""
_CUID = re.compile(r"c[h-o][0-9a-z]{7}0[0-9a-z]{15}\Z")
"""Of rows of databases: ``c``, a time of 2012 to 2031 in base 36, a counter below 46,656 and 12
more."""
_BETWEEN = re.compile(r"[/_+=\-]")
_WORD, _MOST_IN_WORDS = re.compile(r"[A-Z][a-z]{2,}"), 0.75
"""Of names such as ``TestBase64Literal2``: the share that words may have of what chance made."""
_PLAIN = re.compile(r"(?:[A-Za-z]{3,}|[0-9a-f]{7,}|\d+)\Z")
"""Parts of paths and names."""


def random_tokens(line: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield what is made by chance in a line of a file, with 60 characters before and behind it."""
    text = _ESCAPE.sub(" ", _OURS.sub(" ", line.decode("utf-8", "replace")))
    for run in _RUN.finditer(text):
        if len(run[0]) > _LONGEST or _KNOWN.match(run[0]):
            continue
        parts = [part for part in _BETWEEN.split(run[0]) if part]
        is_name = any(map(_PLAIN.match, parts))
        for part in parts if is_name else [run[0]]:
            if len(part) >= _SHORTEST and _is_random(part):
                at = text.index(part, run.start())
                end = at + len(part)
                if _ID.search(text, max(0, at - 60), at):
                    continue
                yield part, text[max(0, at - 60) : at], text[end : end + 60]


def _is_random(token: str) -> bool:
    if _HEX.match(token) or _CUID.match(token) or sum(map(str.isdigit, token)) < _FEWEST_DIGITS:
        return False
    if sum(map(len, _WORD.findall(token))) >= _MOST_IN_WORDS * len(token):
        return False
    kinds = [(c.isdigit(), c.isupper()) for c in token if c.isalnum()]
    changes = sum(a != b for a, b in pairwise(kinds))
    return changes >= _LEAST_CHANGES * (len(kinds) - 1)


def digest_of_token(token: str) -> str:
    """Return what a decision names a token by."""
    return hashlib.sha256(token.encode()).hexdigest()


def refuse_random(name: str, data: bytes) -> None:
    """Refuse a file, or a line, that nobody can be asked about, such as a proposed prompt.

    Args:
        name: of the file.
        data: one line or several.

    Raises:
        InputError: a line holds what is made by chance; names file and line.
    """
    for place, line in enumerate(data.splitlines(), 1):
        if next(random_tokens(line), None):
            raise InputError(f"{name}, line {place}", UNSEEN, "Look at the line.")


def gate_digest() -> str:
    """Return a digest of what is looked for: what has passed need not be searched again while it
    is the same."""
    parts = (
        _VERSION,
        _ESCAPE,
        _RUN,
        _ID,
        _KNOWN,
        _HEX,
        _CUID,
        _WORD,
        _PLAIN,
        _LONGEST,
        _LEAST_CHANGES,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()
