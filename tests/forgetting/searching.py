"""The search after forgetting: every file, whatever its form, for sentences of a session.

It shares nothing with what forgets but the escapes that redaction knows. Parquet is decoded,
compressed files are opened, all else, SQLite and Postgres included, is read as bytes.
"""

from __future__ import annotations

import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from debrief.redaction.views import CODES, VIEW_ANCHORS, View, decoded
from debrief.sessions.model import Session, texts_of

SENTENCE = 32
"""Letters and digits from which a line of a session is looked for."""
_BETWEEN = re.compile(r"[\n\r]|(?<=[.!?])\s")
_ANCHORS = {
    name: re.compile("|".join(f"(?:{each})" for kind, each in VIEW_ANCHORS if kind == name))
    for name in ("base64", "hex")
}


_SIGNS = bytes(code for code in range(128) if not chr(code).isalnum())


def letters(text: str) -> str:
    """What stays of a text when nothing but letters and digits counts."""
    bare = text.casefold().encode("utf-8", "surrogatepass").translate(None, _SIGNS)
    left = bare.decode("utf-8", "surrogatepass")
    return left if left.isascii() else re.sub(r"\W+", "", left)


def sentences(session: Session) -> set[str]:
    """The lines and sentences of a session that are long enough to be nobody else's by chance."""
    bare = msgspec.structs.replace(
        session, system_prompt=msgspec.UNSET, instructions=msgspec.UNSET, branch="", cwd=""
    )
    pieces = (letters(each) for text in texts_of(bare) for each in _BETWEEN.split(text))
    return {piece for piece in pieces if len(piece) >= SENTENCE}


def sentences_of_some(sessions: Iterable[Session], ids: Collection[str]) -> set[str]:
    """Those that some of many sessions say, and no other."""
    left: set[str] = set()
    others = []
    for session in sessions:
        if session.id in ids:
            left |= sentences(session)
        else:
            others.append(session)
    for other in others:
        left.difference_update(Needles(left).found_in(_of_session(msgspec.json.encode(other))))
    return left


@lru_cache(maxsize=100)
def _of_session(data: bytes) -> Said:
    """Return all that a session says; many tests ask for the same ones."""
    return Said.of(_strings(msgspec.json.decode(data), 0))


def found_in(folders: Iterable[Path], needles: Iterable[str]) -> dict[str, list[str]]:
    """Return by file what of some needles it holds."""
    wanted = Needles(needles)
    found: dict[str, list[str]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                said = _kept(data) if len(data) < _SMALL else _read(data)
                if hits := wanted.found_in(said):
                    found[str(path.relative_to(folder))] = hits
    return found


class Said(NamedTuple):
    """The letters of a file, and its pieces, which lie end to end."""

    text: str
    pieces: frozenset[str]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Said:
        text = "\0".join(map(letters, texts))
        return cls(text, frozenset(text[at : at + _PIECE] for at in range(0, len(text), _PIECE)))


class Needles:
    """Thousands of sentences that are looked for in each of hundreds of files.

    Whatever is as long as two pieces but one letter holds a whole piece of a file wherever it
    stands there, so those that can be in a file are known by the pieces that both have.
    """

    def __init__(self, needles: Iterable[str]) -> None:
        self.short: list[str] = []
        self.by_piece: dict[str, set[str]] = {}
        for needle in needles:
            if len(needle) < 2 * _PIECE - 1:
                self.short.append(needle)
                continue
            for at in range(_PIECE):
                self.by_piece.setdefault(needle[at : at + _PIECE], set()).add(needle)

    def found_in(self, said: Said) -> list[str]:
        possible = set(self.short)
        for piece in self.by_piece.keys() & said.pieces:
            possible |= self.by_piece[piece]
        return sorted(needle for needle in possible if needle in said.text)


_PIECE = 16
_SMALL = 1_000_000
"""Bytes below which a file is decoded once for all searches: most are the same before and after."""


def _read(data: bytes) -> Said:
    return Said.of(readings(data))


_kept = lru_cache(maxsize=2_000)(_read)


def readings(data: bytes, depth: int = 0) -> Iterator[str]:
    """Yield all texts that bytes can be read as."""
    if data[:4] == b"PAR1":
        for row in pq.read_table(io.BytesIO(data)).to_pylist():
            yield from _strings(row, depth)
        return
    for mark, opened in _PACKED.items():
        if data.startswith(mark) and depth < 4:
            try:
                for each in opened(data):
                    yield from readings(each, depth + 1)
            except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, ValueError):
                continue
            return
    text = data.decode("utf-8", "replace")
    yield from _views(text, depth)
    if b"\0" in data[:4096]:
        yield from _views(data.decode("utf-16-le", "replace"), 4)


def _strings(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield from _views(value, depth)
    elif isinstance(value, bytes):
        yield from readings(value, depth + 1)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield str(key)
            yield from _strings(each, depth)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each, depth)


def _views(text: str, depth: int) -> Iterator[str]:
    """Yield a text as it is, with its escapes undone, and what is encoded in it."""
    yield text
    plain = text
    for name, signs in _VIEWED:
        for _ in range(3):  # JSON in JSON in JSON
            if not all(any(sign in plain for sign in each) for each in signs):
                break
            seen = View(name, plain, [(0, len(plain))])
            if not seen.changes:
                break
            plain = seen.text
            yield plain
        plain = text
    for run in _RUN.finditer(text) if depth < 3 else ():
        for name in CODES:
            for anchor in _ANCHORS[name].finditer(text, max(0, run.start() - 1), run.end()):
                start = anchor.start() if name == "hex" else anchor.end() - CODES[name]
                _, _, shown = decoded(name, text, max(0, start))
                if shown:
                    yield from _views(shown, depth + 1)


_RUN = re.compile(rf"[A-Za-z0-9+/_\-]{{{min(CODES.values())},}}")
"""What holds all that the anchors of a code match, but for the sign before it."""
_VIEWED = (
    ("escape", ("\\%&\x1b\u200b\u200c\u200d\u2060\ufeff\u00ad",)),
    ("quoted", ("=",)),
    ("delta", ('"', "\n", "{")),
    ("join", ("'\"`",)),
)
"""Views, and signs of which a text has one each where the view changes anything."""


def _unzipped(data: bytes) -> Iterator[bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        for name in packed.namelist():
            yield packed.read(name)


_PACKED: dict[bytes, Callable[[bytes], Iterable[bytes]]] = {
    b"\x1f\x8b": lambda data: [gzip.decompress(data)],
    b"\x28\xb5\x2f\xfd": lambda data: [
        pa.input_stream(io.BytesIO(data), compression="zstd").read()
    ],
    b"\xfd7zXZ": lambda data: [lzma.decompress(data)],
    b"PK\x03\x04": _unzipped,
}
