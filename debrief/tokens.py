"""Token counts: o200k_base, without a network, for any text.

The vocabulary comes with litellm's wheel, which is looked up and never imported (that costs four
seconds). Text is counted in blocks that are cut where the tokeniser itself always ends a token,
so the count is that of the whole text; only a run of over 65,536 characters without such a place
(a megabyte of one letter) is cut inside, since there the tokeniser's expression runs out of stack.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from debrief.errors import ConfigurationError

ENCODING = "o200k_base"

_VOCABULARY_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"
_VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_BLOCK = 65_536
_CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"
_LOADING = threading.Lock()

_TOKEN_ENDS = re.compile(r"[A-Za-z0-9](?=\s)|[\r\n](?=[A-Za-z0-9\[{(<\"'-])")
"""Between these two characters o200k_base never has one token: no alternative of its expression
takes a whitespace after a letter or digit, nor any of these characters after a line end."""


def count_tokens(text: str) -> int:
    """Return the number of o200k_base tokens of ``text``.

    The names of special tokens are counted as the plain text that they are in a transcript, and
    lone surrogates as the replacement character that is sent in their place.

    Raises:
        ConfigurationError: the vocabulary is not on this machine.
    """
    total = 0
    start = 0
    while start < len(text):
        end = _end_of_block(text, start)
        total += _count(text[start:end])
        start = end
    return total


def _end_of_block(text: str, start: int) -> int:
    limit = start + _BLOCK
    if limit >= len(text):
        return len(text)
    for reach in (512, 8_192, _BLOCK):
        ends = [match.end() for match in _TOKEN_ENDS.finditer(text, limit - reach, limit)]
        if ends:
            return ends[-1]
    return limit


def _count(text: str) -> int:
    with _LOADING:
        encoder = _encoder()
    try:
        return len(encoder.encode_to_numpy(text, disallowed_special=()))
    except UnicodeEncodeError:
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return len(encoder.encode_to_numpy(whole, disallowed_special=()))


@cache
def _encoder() -> Any:
    import tiktoken
    from tiktoken_ext.openai_public import o200k_base

    before = os.environ.get(_CACHE_VARIABLE)
    os.environ[_CACHE_VARIABLE] = str(_vocabulary_folder())
    try:
        parts = o200k_base()
    finally:
        if before is None:
            del os.environ[_CACHE_VARIABLE]
        else:
            os.environ[_CACHE_VARIABLE] = before
    return tiktoken.Encoding(**parts)


def _vocabulary_folder() -> Path:
    """Return the first folder that holds the right vocabulary.

    tiktoken deletes a file with another digest and turns to the network, so what it is handed
    has been checked.
    """
    named = [os.environ.get(name) for name in (_CACHE_VARIABLE, "CUSTOM_TIKTOKEN_CACHE_DIR")]
    folders = [Path(folder) for folder in named if folder]
    spec = find_spec("litellm")
    places = (spec.submodule_search_locations if spec else None) or ()
    folders += [Path(place) / "litellm_core_utils" / "tokenizers" for place in places]
    for folder in folders:
        file = folder / _VOCABULARY_FILE
        data = file.read_bytes() if file.is_file() else b""
        if hashlib.sha256(data).hexdigest() == _VOCABULARY_SHA256:
            return folder
    looked = ", ".join(map(str, folders)) or "no folder"
    raise ConfigurationError(
        ENCODING,
        f"the tokeniser's vocabulary is not on this machine (looked in {looked})",
        f"Reinstall litellm, which carries it, or set {_CACHE_VARIABLE} to a folder with it.",
    )
