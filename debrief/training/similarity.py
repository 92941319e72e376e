"""What a session is recognised by when a copy, a fork or a continuation of it turns up.

Two looks, both cheap enough for ten thousand sessions: the share of five-word runs that two
sessions have in common, estimated from MinHash signatures (the error is about 3 points); and
messages of the model that stand in both, since a fork or a resumed session copies its history.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from debrief.sessions.model import Session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PERMUTATIONS = 256
SIGNATURE_BYTES = 4 * PERMUTATIONS

_SEED = 20
_RUN = 5
_MOST_WORDS = 50_000
_MIX = 0x9E3779B97F4A7C15
_OPENING_MESSAGES = 32
_SAMPLED_MESSAGES = 32
_UNMISTAKABLE = 400
"""Characters from which a text of the model's is hardly ever written twice by chance."""


def signature_of(session: Session) -> bytes:
    """Return the MinHash signature of a session's runs of words: 256 numbers of four bytes.

    Prompts, the model's texts and its calls count; results do not, as the same file is read in
    many sessions.
    """
    from rensa import RMinHash

    hashes = _run_hashes(list(islice(_words(session), _MOST_WORDS)))
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(
        hashes, [0, len(hashes)], PERMUTATIONS, _SEED
    )
    return b"".join(value.to_bytes(4, "little") for value in matrix.to_rows()[0])


def message_marks(session: Session) -> bytes:
    """Return hashes of the model's messages, eight bytes each: at most 64 of a session.

    A message is known by its id and content, and one of over 400 characters by its content
    alone, as some tools give a copy new ids. Of a long session the first 32 are taken, where a
    fork's history is, and the 32 smallest hashes, which any long stretch in common shares.
    """
    found = list(dict.fromkeys(_message_hashes(session)))
    taken = {*found[:_OPENING_MESSAGES], *sorted(found)[:_SAMPLED_MESSAGES]}
    return b"".join(sorted(taken))


def _run_hashes(words: list[str]) -> NDArray[np.uint64]:
    """Return the hashes of the runs of ``words``."""
    import numpy as np

    if len(words) <= _RUN:
        return np.frombuffer(_hash(words), np.uint64)
    hashes = np.array([zlib.crc32(word.encode("utf-8", "replace")) for word in words], np.uint64)
    runs = np.zeros(len(hashes) - _RUN + 1, np.uint64)
    with np.errstate(over="ignore"):
        for offset in range(_RUN):
            runs = (runs + hashes[offset : offset + len(runs)]) * np.uint64(_MIX)
            runs ^= runs >> np.uint64(29)
    return runs


def _hash(parts: Iterable[str]) -> bytes:
    data = "\n".join(parts).encode("utf-8", "replace")
    return hashlib.blake2b(data, digest_size=8).digest()


def _words(session: Session) -> Iterator[str]:
    for turn in session.turns:
        yield from turn.prompt.lower().split()
        for message in turn.messages:
            yield from message.text.lower().split()
            for call in message.calls:
                yield call.name
                yield from call.input.lower().split()


def _message_hashes(session: Session) -> Iterator[bytes]:
    for turn in session.turns:
        for message in turn.messages:
            if len(message.text) >= _UNMISTAKABLE:
                yield _hash(["text", message.text])
            elif message.id:
                yield _hash([message.id, message.text, *(call.input for call in message.calls)])
