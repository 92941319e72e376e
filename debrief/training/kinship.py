"""Find the families of a lake's sessions: copies, forks, continuations and requests made twice.

A family is what a chain of pairs connects. Two sessions are a pair when one of these holds:

- A message of the model is in both, since a fork or a resumed session copies its history, or the
  transcript shows that one was forked from the other.
- Their words are alike: all words, and those of the model alone. Requests that are known to differ
  rule this out, as little work says little.
- Their first requests are the same, whatever boilerplate they stand in: see ``requests``.

Members of a family are on one side of a split. What all this needs of a session, and what else it
is chosen by, are its traits, read off once and kept by its digest: no conversation is decoded again
for it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice, pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.sessions.readers.patches import FileEdit, edits_of_call
from debrief.sessions.readers.values import is_made_up
from debrief.signals.shell import check_of, simple_commands
from debrief.training.conversations import conversation_of, is_answered, is_trained_on
from debrief.training.minhash import alike, groups_of, likeness, signatures
from debrief.training.requests import FirstRequests, request_words, shares_files

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TRAITS_TABLE = "training_traits"
DUPLICATE = 0.85
"""Likeness from which two sessions are the same work twice."""
ALIKE = 0.6
"""Likeness from which two sessions are a pair."""


class OriginSession(Struct, frozen=True, kw_only=True, gc=False):
    """The oldest session of a family."""

    session_id: str
    repository: str
    started: datetime


class Kin(Struct, frozen=True, kw_only=True):
    """A session's place among its relatives."""

    head: OriginSession
    """The oldest of its family; itself where it has no older relative."""
    copy_groups: tuple[str, ...]
    """The earliest sessions that it is a copy of, or a copy of a copy; itself as a rule."""


class Kinship:
    """The families of a lake's sessions."""

    def __init__(self, traits: Iterable[SessionTraits]) -> None:
        ordered = sorted(traits, key=lambda row: (row.started, row.session_id))
        self.traits = {row.session_id: _without_marks(row) for row in ordered}
        """By session id; signatures and hashes left out."""
        known = [row for row in ordered if row.answered]
        pairs, copies = _pairs(known)
        heads, groups = _heads(len(known), pairs), _origins(len(known), copies)
        origins = [
            OriginSession(session_id=row.session_id, repository=row.repository, started=row.started)
            for row in known
        ]
        self._kin = {
            row.session_id: Kin(
                head=origins[heads[number]],
                copy_groups=tuple(known[group].session_id for group in groups[number]),
            )
            for number, row in enumerate(known)
        }
        self._latest = {
            known[head].session_id: row.started for head, row in zip(heads, known, strict=True)
        }

    def of(self, session_id: str) -> Kin | None:
        """Return a session's place; None for one that is not known or was never answered."""
        return self._kin.get(session_id)

    def span_of(self, session_id: str) -> tuple[OriginSession, datetime]:
        """Return the oldest session of a known session's family, and when the latest began."""
        kin, row = self._kin.get(session_id), self.traits[session_id]
        if kin is None:
            head = OriginSession(
                session_id=session_id, repository=row.repository, started=row.started
            )
            return head, row.started
        return kin.head, self._latest[kin.head.session_id]


def _without_marks(row: SessionTraits) -> SessionTraits:
    return replace(
        row, signature=b"", work_signature=b"", request_words=b"", message_marks=b"", files=()
    )


def _pairs(
    rows: Sequence[SessionTraits],
) -> tuple[set[tuple[int, int]], dict[int, set[int]]]:
    """Return the pairs of related sessions, and of each the earlier ones that it is a copy of."""
    pairs = {*_sharing_messages(rows), *_forks(rows)}
    similar = [
        (one, other, least)
        for one, other, share in alike([row.signature for row in rows], ALIKE)
        if (least := min(share, likeness(rows[one].work_signature, rows[other].work_signature)))
        >= ALIKE
    ]
    # A session without files does not show that its work is other work.
    repeated = set(_same_request_and_files(rows))
    works = _heads(len(rows), {*pairs, *repeated, *((one, other) for one, other, _ in similar)})
    requests = FirstRequests(
        [row.request_words for row in rows],
        [work if row.files else _NO_FILES for work, row in zip(works, rows, strict=True)],
        [row.files for row in rows],
    )
    copies: dict[int, set[int]] = defaultdict(set)
    for one, other, share in similar:
        if not requests.differ(one, other):
            pairs.add((one, other))
            if share >= DUPLICATE:
                copies[other].add(one)
    return {*pairs, *repeated, *requests.pairs()}, copies


def _heads(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return of each number the smallest that a chain of pairs connects it with."""
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    edges = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count))
    _, labels = connected_components(edges, directed=False)
    _, first, places = np.unique(labels, return_index=True, return_inverse=True)
    heads: list[int] = first[places].tolist()
    return heads


def _origins(count: int, earlier: Mapping[int, set[int]]) -> list[tuple[int, ...]]:
    """Return for each number what it goes back to through smaller ones; itself without any."""
    found: list[tuple[int, ...]] = []
    for number in range(count):
        before = {one for other in earlier.get(number, ()) for one in found[other]}
        found.append(tuple(sorted(before)) or (number,))
    return found


def _sharing_messages(rows: Sequence[SessionTraits]) -> Iterator[tuple[int, int]]:
    return _sharing([row.message_marks for row in rows])


def _sharing(keys: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield pairs with a key of eight bytes in common, enough to connect all that have it."""
    import numpy as np

    hashes = np.frombuffer(b"".join(keys), np.uint64)
    owners = np.repeat(np.arange(len(keys)), [len(each) // 8 for each in keys]).tolist()
    for members in groups_of(hashes):
        yield from pairwise(owners[place] for place in members)


def _forks(rows: Sequence[SessionTraits]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a fork and what it was forked from, the earlier one first."""
    numbers = {row.session_id: number for number, row in enumerate(rows)}
    for number, row in enumerate(rows):
        if (other := numbers.get(row.relative_of, number)) != number:
            yield min(number, other), max(number, other)


def _same_request_and_files(rows: Sequence[SessionTraits]) -> Iterator[tuple[int, int]]:
    """Yield pairs that were asked for the same in the same words, and changed the same files."""
    keys = [
        b"".join(_hash_of(row.request_words + key) for key in row.files if row.request_words)
        for row in rows
    ]
    for one, other in _sharing(keys):
        if shares_files(rows[one].files, rows[other].files):
            yield one, other


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


TRAITS = "11"
"""Raised when the same session gives other traits: all are read off again."""

_RUN = 5
_MOST_WORDS = 50_000
_MOST_FILES = 64
_NO_FILES = -1
_DOCUMENTS = ("md", "mdx", "rst", "txt", "lock")
_MIX = 0x9E3779B97F4A7C15
_SHORTEST_ID = 12
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
    relative_of: str = ""
    """The session that it was forked from; empty when it was not."""
    languages: tuple[LanguageLines, ...] = ()
    signature: bytes = b""
    """MinHash of its words."""
    work_signature: bytes = b""
    """MinHash of what the model said and called."""
    request_words: bytes = b""
    """Hashes of the words of its first request; empty where that is too short to be known by."""
    files: tuple[bytes, ...] = ()
    """Keys of the files that it worked on."""
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
        asked=is_trained_on(messages),
        growth=session.growth,
        validated=was_validated(session),
        unsure_redactions=session.unsure_redactions,
        relative_of=session.relative_of or "",
        languages=tuple(
            LanguageLines(language, lines) for language, lines in languages_of(session).items()
        ),
        signature=signature_of(session) if answered and compared else b"",
        work_signature=work_signature_of(session) if answered and compared else b"",
        request_words=request_words(session) if answered and compared else b"",
        files=tuple(files_of(session)) if answered and compared else (),
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
    for edit in _edits(session):
        lines[_BY_SUFFIX.get(_suffix(edit.path), "other")] += edit.added + edit.removed
    return +lines


def files_of(session: Session) -> list[bytes]:
    """Return keys of the files that a session worked on, at most 64: of the repository, and the
    path below the session's folder.

    These are the files that it changed, documents apart, since a list of tasks or of changes is
    edited in work of any kind; else the documents; else the files that its calls name.
    """
    folder = session.cwd.replace("\\", "/").rstrip("/")
    changed = [edit.path for edit in _edits(session)]
    code = [path for path in changed if _suffix(path) not in _DOCUMENTS]
    named = (call.path for turn in session.turns for each in turn.messages for call in each.calls)
    paths = dict.fromkeys(code or changed or filter(None, named))
    return [
        _hash([session.repository, path.replace("\\", "/").removeprefix(f"{folder}/")])
        for path in islice(paths, _MOST_FILES)
    ]


def _edits(session: Session) -> Iterator[FileEdit]:
    own = [turn.messages for turn in session.turns]
    for message in chain(*own, *(subagent.messages for subagent in session.subagents)):
        yield from chain.from_iterable(map(edits_of_call, message.calls))


def _suffix(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).suffix[1:].lower()


def signature_of(session: Session) -> bytes:
    """Return the MinHash signature of a session's runs of words.

    Prompts, the model's texts and its calls count; results do not, as the same file is read in
    many sessions.
    """
    return _signature(_words(session, prompts=True))


def work_signature_of(session: Session) -> bytes:
    """Return the MinHash signature of the runs of words that the model said and called."""
    return _signature(_words(session, prompts=False))


def _signature(words: Iterator[str]) -> bytes:
    return signatures([_run_hashes(list(islice(words, _MOST_WORDS)))])[0]


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
    return _hash_of("\n".join(parts).encode("utf-8", "replace"))


def _hash_of(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()


def _words(session: Session, *, prompts: bool) -> Iterator[str]:
    for turn in session.turns:
        if prompts:
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
                inputs = (call.input for call in message.calls)
                when = "" if _is_unmistakable(message.id) else str(message.at)
                yield _hash([message.id, when, message.text, *inputs])


def _is_unmistakable(id: str) -> bool:
    """Return whether no two messages have an id by chance, as with a number of the session's own
    (``msg_3``), which gateways and exports give."""
    return len(id) >= _SHORTEST_ID and is_made_up(id)
