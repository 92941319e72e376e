"""Find copies, forks and continuations among a lake's sessions.

Being related is passed on from earlier to later: a fork of a fork goes back to what the first one
goes back to. What a session goes back to depends on earlier ones alone, so that one which starts
later changes nothing about it, not even as a relative of two that are no relatives themselves.

Related sessions have one of three things in common: a share of their five-word runs, estimated from
MinHash signatures (the error is about 3 points); such a share of the runs of their first requests,
whatever was done on them; and messages of the model, since a fork or a resumed session copies its
history. Where a transcript shows what a session was forked from, that is enough. Candidates are
found by bands of their signatures (locality-sensitive hashing), so that ten thousand sessions take
seconds, and checked by their whole signatures. What all this needs of a session, and what else it
is chosen by, are its traits, read off once and kept by its digest: no conversation is decoded again
for it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, groupby, islice, pairwise
from operator import itemgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from debrief.facts.shell import check_of, simple_commands
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.sessions.readers.patches import edits_of_call
from debrief.training.closed import until_closed
from debrief.training.conversations import conversation_of, is_answered, is_trained_on

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TRAITS_TABLE = "training_traits"
DUPLICATE = 0.85
"""Likeness from which two sessions are the same work twice."""
ALIKE = 0.6
"""Likeness from which two sessions must not be on both sides of a split."""

_BAND = 4 * 4
"""Bytes of 4 numbers of 256: two sessions of likeness 0.6 miss each other in all 64 bands once in
seven thousand."""
_ALL_PAIRS = 12
_CHUNK = 20_000


class OriginSession(Struct, frozen=True, kw_only=True, gc=False):
    """A session without an earlier relative."""

    session_id: str
    repository: str
    started: datetime


class Kin(Struct, frozen=True, kw_only=True):
    """A session's place among its relatives."""

    heads: tuple[OriginSession, ...]
    """The sessions that it goes back to, in order: itself when it has no earlier relative, and
    several when it brings families together."""
    copy_groups: tuple[str, ...]
    """The earliest sessions that it is a copy of, or a copy of a copy; itself as a rule."""


class Kinship:
    """The families of a lake's sessions."""

    def __init__(self, traits: Iterable[SessionTraits]) -> None:
        ordered = sorted(traits, key=lambda row: (row.started, row.session_id))
        self.traits = {
            row.session_id: replace(row, signature=b"", request_signature=b"", message_marks=b"")
            for row in ordered
        }
        """By session id; signatures and hashes of messages left out."""
        known = [row for row in ordered if row.answered]
        families: dict[int, set[int]] = defaultdict(set)
        copies: dict[int, set[int]] = defaultdict(set)
        for earlier, later in (*_sharing_messages(known), *_forks(known)):
            families[later].add(earlier)
        for earlier, later, likeness in _alike([row.signature for row in known]):
            families[later].add(earlier)
            if likeness >= DUPLICATE:
                copies[later].add(earlier)
        asked = [number for number, row in enumerate(known) if row.request_signature]
        for earlier, later, _ in _alike([known[number].request_signature for number in asked]):
            families[asked[later]].add(asked[earlier])
        heads, groups = _origins(len(known), families), _origins(len(known), copies)
        origins = [
            OriginSession(session_id=row.session_id, repository=row.repository, started=row.started)
            for row in known
        ]
        self._kin = {
            row.session_id: Kin(
                heads=tuple(origins[head] for head in heads[number]),
                copy_groups=tuple(known[group].session_id for group in groups[number]),
            )
            for number, row in enumerate(known)
        }

    def of(self, session_id: str) -> Kin | None:
        """Return a session's place; None for one that is not known or was never answered."""
        return self._kin.get(session_id)


def _origins(count: int, earlier: Mapping[int, set[int]]) -> list[tuple[int, ...]]:
    """Return for each number what it goes back to through smaller ones; itself without any."""
    found: list[tuple[int, ...]] = []
    for number in range(count):
        before = {found[other] for other in earlier.get(number, ())}
        if len(before) == 1:
            found += before
        else:
            found.append(tuple(sorted({one for many in before for one in many})) or (number,))
    return found


def _sharing_messages(rows: Sequence[SessionTraits]) -> set[tuple[int, int]]:
    marks = (
        (row.message_marks[start : start + 8], number)
        for number, row in enumerate(rows)
        for start in range(0, len(row.message_marks), 8)
    )
    return {pair for members in _equal(marks) for pair in pairwise(members)}


def _forks(rows: Sequence[SessionTraits]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a fork and what it was forked from, the earlier one first."""
    numbers = {row.session_id: number for number, row in enumerate(rows)}
    for number, row in enumerate(rows):
        if (other := numbers.get(row.relative_of, number)) != number:
            yield min(number, other), max(number, other)


def _alike(signatures: Sequence[bytes]) -> list[tuple[int, int, float]]:
    """Return the pairs (earlier, later) with at least ``ALIKE`` in common, and how much."""
    import numpy as np

    if len(signatures) < 2:
        return []
    matrix = np.frombuffer(b"".join(signatures), np.uint32)
    matrix = matrix.reshape(len(signatures), SIGNATURE_BYTES // 4)
    candidates: set[tuple[int, int]] = set()
    for band in (slice(start, start + _BAND) for start in range(0, SIGNATURE_BYTES, _BAND)):
        for members in _equal((each[band], number) for number, each in enumerate(signatures)):
            first = members[:_ALL_PAIRS]
            candidates.update((a, b) for n, a in enumerate(first) for b in first[n + 1 :])
            # Of many that are alike the others need only be seen beside two of them.
            candidates.update(pairwise(members[_ALL_PAIRS - 1 :]))
            candidates.update((members[0], other) for other in members[_ALL_PAIRS:])
    pairs = np.array(sorted(candidates), np.int64).reshape(-1, 2)
    found: list[tuple[int, int, float]] = []
    for start in range(0, len(pairs), _CHUNK):
        part = pairs[start : start + _CHUNK]
        shares = (matrix[part[:, 0]] == matrix[part[:, 1]]).mean(axis=1)
        found += [
            (first, second, share)
            for (first, second), share in zip(part.tolist(), shares.tolist(), strict=True)
            if share >= ALIKE
        ]
    return found


def _equal(keys: Iterable[tuple[bytes, int]]) -> Iterator[list[int]]:
    """Yield the owners of each key that several have, in order; no owner has a key twice."""
    for _, found in groupby(sorted(keys), itemgetter(0)):
        members = [owner for _, owner in found]
        if len(members) > 1:
            yield members


def read_kinship(lake: Lake) -> Kinship:
    """Return the traits and kinship of all sessions.

    Traits of weeks that changed are read anew, and all when our version of them or the MinHash
    library's is another, which are not comparable.
    """
    from rensa import RMinHash

    version = f"{TRAITS}.{RMinHash.ALGORITHM_VERSION}"
    found: list[SessionTraits] = []
    for week in lake.partitions("raw_sessions"):
        raw, stamp = lake.stamp("raw_sessions", week), lake.stamp(TRAITS_TABLE, week)
        inputs = digest_of(version, raw.digest if raw else "")
        if stamp is None or stamp.inputs != inputs:
            rows = [
                replace(traits_of(session), version=version)
                for session in lake.read("raw_sessions", week, Session)
            ]
            rows.sort(key=lambda row: row.session_id)
            lake.write(TRAITS_TABLE, week, rows, SessionTraits, lambda: inputs)  # noqa: B023
        found += lake.read(TRAITS_TABLE, week, SessionTraits)
    return Kinship(found)


TRAITS = "9"
"""Raised when the same session gives other traits: all are read off again."""
_PERMUTATIONS = 256
SIGNATURE_BYTES = 4 * _PERMUTATIONS

_SEED = 20
_RUN = 5
_MOST_WORDS = 50_000
_FEWEST_WORDS = 8
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
    closed: bool = False
    """Were it to have broken off, there is a closed turn before."""
    asked: bool = True
    """Of something that the model did, it is known what the person had asked for."""
    validated: bool
    """A test, lint or type run or a build ran, whatever it said."""
    unsure_redactions: int
    relative_of: str = ""
    """The session that it was forked from; empty when it was not."""
    languages: tuple[LanguageLines, ...] = ()
    signature: bytes = b""
    """MinHash of its words."""
    request_signature: bytes = b""
    """MinHash of the words of its first request; empty where that is too short to be known by."""
    message_marks: bytes = b""
    """Hashes of its messages."""
    version: str = ""
    """Of the way they were read off."""


def traits_of(session: Session, *, compared: bool = True) -> SessionTraits:
    """Read the traits of a session; without those that only comparisons with others need, if it is
    not to be ``compared``."""
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
        closed=until_closed(session) is not None,
        asked=is_trained_on(messages),
        growth=session.growth,
        validated=was_validated(session),
        unsure_redactions=session.unsure_redactions,
        relative_of=session.relative_of or "",
        languages=tuple(
            LanguageLines(language, lines) for language, lines in languages_of(session).items()
        ),
        signature=signature_of(session) if answered and compared else b"",
        request_signature=request_signature_of(session) if answered and compared else b"",
        message_marks=message_marks(session) if answered and compared else b"",
    )


def was_validated(session: Session) -> bool:
    """Return whether a test, lint or type run or a build ran in the session, whatever it said."""
    return next(validation_commands(session), None) is not None


def validation_commands(session: Session) -> Iterator[str]:
    """Yield the shell commands of a session that test, lint, check types or build, in order."""
    commands = (
        call.command
        for turn in session.turns
        for message in turn.messages
        for call in message.calls
        if call.status in ("ok", "failed")
    )
    return (text for text in commands if text and any(map(check_of, simple_commands(text))))


def languages_of(session: Session) -> Counter[str]:
    """Return the lines added and removed by language; ``other`` for what is not in the table."""
    lines: Counter[str] = Counter()
    own = [turn.messages for turn in session.turns]
    for message in chain(*own, *(subagent.messages for subagent in session.subagents)):
        for edit in chain.from_iterable(map(edits_of_call, message.calls)):
            suffix = PurePosixPath(edit.path.replace("\\", "/")).suffix[1:].lower()
            lines[_BY_SUFFIX.get(suffix, "other")] += edit.added + edit.removed
    return +lines


def signature_of(session: Session) -> bytes:
    """Return the MinHash signature of a session's runs of words: 256 numbers of four bytes.

    Prompts, the model's texts and its calls count; results do not, as the same file is read in
    many sessions.
    """
    return _signature(list(islice(_words(session), _MOST_WORDS)))


def request_signature_of(session: Session) -> bytes:
    """Return the MinHash signature of the first request that was not taken back; empty for one of
    fewer than eight words, as "run the tests" is asked for in any work."""
    prompts = (turn.prompt for turn in session.turns if turn.prompt and not turn.rewound)
    words = next(prompts, "").lower().split()
    return _signature(words[:_MOST_WORDS]) if len(words) >= _FEWEST_WORDS else b""


def _signature(words: list[str]) -> bytes:
    from rensa import RMinHash

    hashes = _run_hashes(words)
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
