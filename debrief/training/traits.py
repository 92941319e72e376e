"""What of a session decides whether and where it goes into a training set, without its turns.

Read off each session once and kept by its digest, so that choosing, splitting and removing
near-duplicates never decode a conversation again.

Copies, forks and continuations are recognised in two ways, both cheap enough for ten thousand
sessions: the share of five-word runs that two sessions have in common, estimated from MinHash
signatures (the error is about 3 points); and messages of the model that stand in both, since a fork
or a resumed session copies its history.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from debrief.offline.commands import check_of, shell_command, simple_commands
from debrief.sessions.model import Session, ToolCall
from debrief.sessions.readers.patches import edits_of_call
from debrief.training.conversations import conversation_of, is_answered, is_trained_on

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TRAITS = "5"
"""Raised when the same session gives other traits: all are read off again."""
_PERMUTATIONS = 256
SIGNATURE_BYTES = 4 * _PERMUTATIONS

_SEED = 20
_RUN = 5
_MOST_WORDS = 50_000
_MIX = 0x9E3779B97F4A7C15
_OPENING_MESSAGES = 32
_SAMPLED_MESSAGES = 32
_UNMISTAKABLE = 400
"""Characters from which a text of the model's is hardly ever written twice by chance."""

_SUFFIXES = """
    C: c h; C#: cs; C++: cc cpp cxx hpp hh; CSS: css scss sass less; Clojure: clj cljs;
    Dart: dart; Elixir: ex exs; Erlang: erl; Go: go; HTML: html htm; Haskell: hs; JSON: json
    jsonl; Java: java; JavaScript: js jsx mjs cjs; Julia: jl; Kotlin: kt kts; Lua: lua;
    Markdown: md mdx; Notebook: ipynb; PHP: php; Perl: pl pm; Python: py pyi; R: r; Ruby:
    rb; Rust: rs; SQL: sql; Scala: scala; Shell: sh bash zsh fish; Svelte: svelte; Swift:
    swift; TOML: toml; Terraform: tf; TypeScript: ts tsx mts cts; Vue: vue; YAML: yml yaml;
    Zig: zig
"""
_BY_SUFFIX = {
    suffix: language.strip()
    for language, _, suffixes in (entry.partition(":") for entry in _SUFFIXES.split(";"))
    for suffix in suffixes.split()
}


class LanguageLines(Struct, frozen=True, gc=False):
    """Lines added and removed in one language."""

    language: str
    lines: int


class SessionTraits(Struct, frozen=True, kw_only=True):
    """One row: a session by what it is chosen by."""

    session_id: str
    session_digest: str
    started: datetime
    tool: str
    model: str
    """The one that answered most; empty when none is named."""
    repository: str
    answered: bool
    """The model said or did something that was not taken back."""
    growth: int
    """Lines added plus lines removed."""
    asked: bool = True
    """Of something that the model did, it is known what the person had asked for."""
    validated: bool
    """A test, lint or type run or a build ran, whatever it said."""
    unsure_redactions: int
    languages: tuple[LanguageLines, ...] = ()
    signature: bytes = b""
    """MinHash of its words."""
    message_marks: bytes = b""
    """Hashes of its messages."""
    version: str = ""
    """Of the way they were read off."""


def traits_of(session: Session) -> SessionTraits:
    """Read the traits of a session."""
    messages = conversation_of(session).close()
    answered = is_answered(messages)
    return SessionTraits(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        tool=session.tool,
        model=session.models[0] if session.models else "",
        repository=session.repository,
        answered=answered,
        asked=is_trained_on(messages),
        growth=session.growth,
        validated=was_validated(session),
        unsure_redactions=session.unsure_redactions,
        languages=tuple(
            LanguageLines(language, lines) for language, lines in languages_of(session).items()
        ),
        signature=signature_of(session) if answered else b"",
        message_marks=message_marks(session) if answered else b"",
    )


def was_validated(session: Session) -> bool:
    """Return whether a test, lint or type run or a build ran in the session, whatever it said."""
    for turn in session.turns:
        for message in turn.messages:
            for call in message.calls:
                command = shell_command(call) if call.status in ("ok", "failed") else None
                if command and any(map(check_of, simple_commands(command))):
                    return True
    return False


def languages_of(session: Session) -> Counter[str]:
    """Return the lines added and removed by language; ``other`` for what is not in the table."""
    lines: Counter[str] = Counter()
    for call in _calls(session):
        for edit in edits_of_call(call):
            if not edit.added + edit.removed:
                continue
            name = edit.path.replace("\\", "/").rsplit("/", 1)[-1]
            suffix = name.rpartition(".")[2].lower() if "." in name else ""
            lines[_BY_SUFFIX.get(suffix, "other")] += edit.added + edit.removed
    return lines


def _calls(session: Session) -> Iterator[ToolCall]:
    for turn in session.turns:
        for message in turn.messages:
            yield from message.calls
    for subagent in session.subagents:
        for message in subagent.messages:
            yield from message.calls


def signature_of(session: Session) -> bytes:
    """Return the MinHash signature of a session's runs of words: 256 numbers of four bytes.

    Prompts, the model's texts and its calls count; results do not, as the same file is read in
    many sessions.
    """
    from rensa import RMinHash

    hashes = _run_hashes(list(islice(_words(session), _MOST_WORDS)))
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(
        hashes, [0, len(hashes)], _PERMUTATIONS, _SEED
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
