"""Discover transcripts, detect which changed, and tell which sessions belong to a week.

A scan lists folders and opens only the files that are new or changed; reading goes week by week
and session by session, so that memory is bounded by the largest session. Every file that is or
should have been a transcript ends up in a session or in an ``UnreadTranscript``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from debrief.errors import InputError, LangfuseError
from debrief.keys import week_of
from debrief.markdown import counted
from debrief.opening import MARK, is_ours
from debrief.sessions.actions import with_actions
from debrief.sessions.model import Session, UnreadCause, UnreadTranscript
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import (
    Beginning,
    BrokenTranscript,
    Head,
    NoSession,
    Reader,
    SessionReader,
    Transcript,
    claims_of,
)
from debrief.sessions.readers.databases import LOG
from debrief.sessions.readers.documents import first_line_error
from debrief.sessions.readers.files import SUFFIX, FileStamp, Walk, head_of, opened, reason_of, walk
from debrief.sessions.readers.forks import Branch, as_fork
from debrief.sessions.readers.values import moment_of_change, time_without_records
from debrief.sessions.scanning import (
    MirrorOrigin,
    Scan,
    ScanEntry,
    identified,
    is_reported,
    with_digest,
    with_unique_calls,
    without_twins,
)

Redact = Callable[[Session], Session]
RedactRows = Callable[[Sequence[Any]], Sequence[Any]]
"""Takes structs of one type."""

_DATABASE, _ARCHIVE = "a database that no reader knows", "an archive"
_KINDS = {
    "*.json": "no known tool's session is in it",
    **dict.fromkeys(("*.db", "*.db3", "*.sqlite", "*.sqlite3", "*.vscdb"), _DATABASE),
    **dict.fromkeys(
        ("*.zst", "*.gz", "*.tgz", "*.bz2", "*.xz", "*.zip", "*.tar", "*.7z"), _ARCHIVE
    ),
    "tool-results/*.txt": "long results that Claude Code keeps beside its transcripts",
    ".specstory/history/*.md": "SpecStory's Markdown, which holds a conversation without its calls",
    "*.cast": "a terminal's recording, which holds a screen and no calls",
}


def default_folders(home: Path, environ: Mapping[str, str]) -> list[Path]:
    """Return the folders of every known tool's transcripts that exist for a user.

    Args:
        home: the user's.
        environ: the environment's variables, of which a tool's own may name another place.
    """
    usual = (folder for reader in READERS.values() for folder in reader.folders(home, environ))
    return [folder for folder in dict.fromkeys(usual) if folder.is_dir()]


def scan(
    folders: Iterable[Path],
    remembered: Iterable[ScanEntry] = (),
    *,
    origins: tuple[MirrorOrigin, ...] = (),
    redact_rows: RedactRows = lambda rows: rows,
) -> Scan:
    """Find the transcripts of all sources at any depth below ``folders``.

    Args:
        folders: to search; one that is not there is reported as an unread transcript.
        remembered: the entries of the last scan and what was gone then; files whose size and
            time of change are the same are not opened again.
        origins: of the folders that are mirrors.
        redact_rows: takes the secrets out of names and ids; leaves them in by default.
    """
    sources = tuple(READERS)
    # What failed is tried again: a lock or a permission changes without a change of the file.
    previous = [e for e in remembered if e.source in sources or e.looked_for == sources]
    previous = [e for e in previous if e.session_id or e.expected or not e.reason]
    walks = [walk(folder) for folder in _outermost(folders)]
    real = _real_paths([file for found in walks for file in found.files], redact_rows)
    known = [_with_paths(entry, real) for entry in previous] if real else previous
    entries: dict[str, ScanEntry] = {}
    seen = [entry for found in walks for entry in _scan_folder(found, known)]
    for entry in redact_rows(seen):
        entries.setdefault(entry.path, entry)
    second_hand = {name: reader.original for name, reader in READERS.items() if reader.drops}
    everything = (*without_twins(entries.values(), second_hand), *_gone(previous, entries))
    former = {entry.path: entry for entry in previous if entry.session_id}
    settled = identified(everything, origins, branch=partial(_branch, real=real), former=former)
    here = tuple(entry for entry in settled if entry.path in entries)
    kinds = redact_rows([kind for found in walks for kind in _kinds(found, here)])
    sessions = {entry.session_id for entry in here}
    left = (entry for entry in settled if entry.path not in entries)
    gone = tuple(entry for entry in left if entry.session_id in sessions)
    ordered = sorted((*here, *kinds), key=lambda entry: entry.path)
    return Scan(tuple(ordered), origins, gone, real)


def _branch(entry: ScanEntry, real: Mapping[str, str]) -> Branch | None:
    """Read the branch of a transcript; None of one that cannot be read, as it is gone."""
    transcript = _transcript(entry, real)
    try:
        return READERS[entry.source].branch(transcript)
    except Exception:  # reading it for the tables tells what is wrong
        return None


def _transcript(entry: ScanEntry, real: Mapping[str, str]) -> Transcript:
    at = _with_paths(entry, real) if real else entry
    companions = tuple(stamp.path for stamp in at.companions)
    return Transcript(source=entry.source, path=at.path, companions=companions)


def reasons_for_none(found: Scan) -> Counter[str] | None:
    """Read transcripts until one of them gives a session, and return None then.

    A scan looks at beginnings alone, so that a file may seem to hold a session that nothing is
    said in. Without any session, return how many transcripts give none for which reason.
    """
    if any(entry.is_on_server for entry in found.entries):
        return None
    reasons = Counter[str]()
    for week in found.weeks():
        for item in read_week(found, week):
            if isinstance(item, Session):
                return None
            reasons[item.reason] += bool(item.source)
    return +reasons


def no_session_in(folders: Iterable[Path], reasons: Mapping[str, int] | None = None) -> InputError:
    """Return the error for folders in which nothing can be read.

    Args:
        folders: that were searched.
        reasons: of the transcripts in them, with how many have each; may be empty.
    """
    named = ", ".join(map(str, folders))
    if not named:
        return InputError(
            str(Path.home()),
            "holds no known tool's transcripts",
            "Name the folders: debrief run --sessions FOLDER, or DEBRIEF_SESSIONS.",
        )
    reason = "no session is in it that can be read"
    if reasons:
        (first, count), *others = Counter(reasons).most_common()
        most = f", {count} of them: {first}" if others else f": {first}"
        reason += f". Found {counted(sum(reasons.values()), 'transcript')}{most}"
    return InputError(named, reason, "debrief sources FOLDER lists what is there.")


def _kinds(found: Walk, settled: Sequence[ScanEntry]) -> Iterator[ScanEntry]:
    """Yield an entry a kind of the files below a folder that nobody reads, or a file where alone.

    It is filed under the first week that the folder has a session of, and so makes none of its own.
    """
    inside = [entry for entry in settled if entry.path.startswith(f"{found.folder}/")]
    kinds = dict(found.others)
    for entry in inside:
        if is_reported(entry) or entry.path.endswith(LOG):
            continue
        kind = f"*{Path(entry.path).suffix}"
        kinds[kind] = (*kinds.get(kind, ()), entry.path)[:2]
    sessions = [entry.started for entry in inside if entry.session_id]
    for kind, (path, *more) in sorted(kinds.items()):
        with suppress(OSError):
            if not sessions:
                sessions = [moment_of_change(Path(path).stat().st_mtime_ns)]
            started = min(sessions)
            yield ScanEntry(
                source="",
                path=f"{found.folder}/**/{kind}" if more else path,
                started=started,
                week=week_of(started),
                reason=f"not read: {_KINDS.get(kind, 'no known session has this form')}",
                expected=True,
            )


def _real_paths(files: Sequence[FileStamp], redact_rows: RedactRows) -> dict[str, str]:
    pairs = zip(redact_rows(files), files, strict=True)
    return {shown.path: file.path for shown, file in pairs if shown is not file}


def _with_paths(entry: ScanEntry, paths: Mapping[str, str]) -> ScanEntry:
    path = paths.get(entry.path, entry.path)
    stamps = (
        replace(companion, path=paths.get(companion.path, companion.path))
        for companion in entry.companions
    )
    return replace(entry, path=path, companions=tuple(stamps))


def read_week(
    scan: Scan,
    week: str,
    redact: Redact | None = None,
    *,
    servers: Mapping[str, SessionReader] | None = None,
) -> Iterator[Session | UnreadTranscript]:
    """Yield the sessions that started in ``week``, by start and id, and what could not be read.

    One session is held at a time. Each has its digest set, over its redacted form.

    Args:
        scan: as ``scan`` returned it.
        week: ISO date of a Monday.
        redact: applied to every session before its digest is taken; nothing by default.
        servers: what reads the sessions that are on servers, by source.
    """
    groups: dict[str, list[ScanEntry]] = {}
    for entry in scan.of_week(week):
        if entry.session_id:
            groups.setdefault(entry.session_id, []).append(entry)
        else:
            yield _unread(entry)
    for group in sorted(groups.values(), key=lambda group: (group[0].started, group[0].session_id)):
        yield from _read_group(group, servers or {}, redact, scan.real_paths)


def _read_group(
    group: list[ScanEntry],
    servers: Mapping[str, SessionReader],
    redact: Redact | None,
    real: Mapping[str, str],
) -> Iterator[Session | UnreadTranscript]:
    failures: list[UnreadTranscript] = []
    entries = {_transcript(entry, real): entry for entry in group}

    def failed(transcript: Transcript, error: Exception) -> None:
        failures.append(_unread(_failed(entries[transcript], error)))

    session = _read(entries, servers, failed)
    yield from failures
    if session is None:
        return
    if _opens_with_ours(session):  # of a source whose beginning tells nothing
        own = (replace(scan_entry, reason=OWN_QUESTION, expected=True) for scan_entry in group)
        yield from map(_unread, own)
        return
    first = group[0]
    try:
        if first.own_from:
            session = as_fork(session, first.relative_of, first.own_from)
        session = replace(session, id=first.session_id, digest="")
        if redact is not None:
            session = redact(session)
        session = with_digest(with_actions(with_unique_calls(session)))
    except Exception as error:  # one session must never cost the week
        reason = f"not kept: {type(error).__name__}: {error}"
        yield from (_unread(replace(entry, reason=reason)) for entry in group)
        return
    yield session


def _read(
    entries: Mapping[Transcript, ScanEntry],
    servers: Mapping[str, SessionReader],
    failed: Callable[[Transcript, Exception], None],
) -> Session | None:
    """Read one session; ``failed`` gets each transcript that cannot be read."""
    transcripts = list(entries)
    entry = entries[transcripts[0]]
    try:
        if len(entries) > 1:
            return READERS[entry.source].read_all(transcripts, failed)
        readers: Mapping[str, SessionReader] = servers if entry.is_on_server else READERS
        return readers[entry.source].read(transcripts[0])
    except Exception as error:  # one session must never cost the week
        for transcript in transcripts:
            failed(transcript, error)
    return None


def _failed(entry: ScanEntry, error: Exception) -> ScanEntry:
    """Return the entry of a transcript that could not be read, and why."""
    line = error.line if isinstance(error, BrokenTranscript) else 0
    if isinstance(error, InputError | LangfuseError):
        reason = error.reason
    elif isinstance(error, OSError):
        reason = reason_of(error)
    else:
        reason = f"its reader failed: {type(error).__name__}: {error}"
    cause: UnreadCause = "server" if isinstance(error, LangfuseError) else "transcript"
    is_none = isinstance(error, NoSession)
    return replace(entry, reason=reason, line=line, expected=is_none, cause=cause)


def _unread(entry: ScanEntry) -> UnreadTranscript:
    fields = {name: getattr(entry, name) for name in UnreadTranscript.__struct_fields__}
    return UnreadTranscript(**fields)


def _gone(known: Iterable[ScanEntry], entries: Mapping[str, ScanEntry]) -> Iterator[ScanEntry]:
    """Yield the transcripts that are here no more, and neither is one with all that they held."""
    sizes: dict[tuple[object, ...], int] = {}
    for entry in entries.values():
        key = (entry.source, entry.own_id, entry.own_started)
        sizes[key] = max(entry.size, sizes.get(key, -1))
    for entry in known:
        if not entry.session_id or entry.version or entry.path in entries:
            continue
        if sizes.get((entry.source, entry.own_id, entry.own_started), -1) < entry.size:
            yield entry


def _outermost(folders: Iterable[Path]) -> list[Path]:
    """Return the folders without those that lie in another one of them."""
    chosen: list[Path] = []
    for folder in sorted({Path(os.path.abspath(folder)) for folder in folders}):  # noqa: PTH100
        if not any(folder.is_relative_to(other) for other in chosen):
            chosen.append(folder)
    return chosen


def _scan_folder(found: Walk, previous: Sequence[ScanEntry]) -> Iterator[ScanEntry]:
    """Yield an entry a file, or a part of one, companions apart; opens only what changed."""
    for problem in found.unreachable:
        yield replace(_entry(FileStamp(problem.path, 0, 0)), reason=problem.reason)
    stamps = {file.path: file for file in found.files}
    unchanged = {
        entry.path: entry
        for entry in previous
        if all(stamps.get(file.path) == file for file in entry.files)
    }
    stamped = {FileStamp(e.path, e.size, e.mtime_ns): e for e in previous if e.is_part}
    sources = {file.path: entry.source for entry in unchanged.values() for file in entry.files}
    if len(sources) == len(stamps):
        yield from unchanged.values()
        return
    parts = {path: entry for path, entry in unchanged.items() if entry.is_part}
    yield from parts.values()
    done = {file.path for entry in parts.values() for file in entry.files}
    found = replace(found, sources={**sources, **dict.fromkeys(done, "")})
    claims = claims_of(found, READERS.values())
    for reader in READERS.values():
        own = claims[reader.source]
        for transcript in _transcripts(reader, found, claims):
            if transcript.path in done or (transcript.file or transcript.path) not in stamps:
                continue
            file = transcript.stamp or stamps[transcript.file or transcript.path]
            companions = tuple(stamps[path] for path in transcript.companions if path in stamps)
            done.update((transcript.path, *(stamp.path for stamp in companions)))
            entry = unchanged.get(transcript.path)
            if transcript.stamp:
                entry = stamped.get(transcript.stamp)
                entry = entry and replace(entry, companions=companions)
            if entry and (entry.source, entry.companions) == (transcript.source, companions):
                yield entry
            else:
                entry = replace(_entry(file), path=transcript.path, source=transcript.source)
                entry = replace(entry, companions=companions)
                beginning = own.get(transcript.on_disk, Beginning(may_be_ours=True))
                yield _peeked(reader, transcript, entry, beginning)
        for path, beginning in own.items():
            if beginning.failure is not None and path not in done:
                done.add(path)
                entry = replace(_entry(stamps[path]), source=reader.source)
                yield _failed(entry, beginning.failure)
    for path in sorted(stamps.keys() - done):
        entry = unchanged.get(path)
        if entry and not entry.source:
            yield entry
        else:
            yield replace(_unclaimed(stamps[path]), looked_for=tuple(READERS))


def _transcripts(
    reader: Reader, found: Walk, claims: dict[str, dict[str, Beginning]]
) -> list[Transcript]:
    """Return a reader's transcripts; where it fails, its files are those that it failed with."""
    try:
        return list(reader.transcripts(found, claims))
    except Exception as error:  # one reader must never cost the scan
        claims[reader.source] |= dict.fromkeys(claims[reader.source], Beginning(failure=error))
        return []


def _entry(file: FileStamp) -> ScanEntry:
    changed, facts = moment_of_change(file.mtime_ns), asdict(file)
    return ScanEntry(source="", started=changed, week=week_of(changed), **facts)


def _peeked(
    reader: Reader, transcript: Transcript, entry: ScanEntry, beginning: Beginning
) -> ScanEntry:
    try:
        peek = reader.peek(transcript)
        if peek is not None and beginning.may_be_ours and _is_own_question(reader, transcript):
            at = peek.started or entry.started
            own = replace(entry, reason=OWN_QUESTION, expected=True)
            return replace(own, started=at, week=week_of(at))
        if peek is not None:
            started = peek.started or _time_read(reader, transcript)
            return replace(entry, own_id=peek.session_id, root=peek.root, own_started=started)
        # A file without a session is filed under the week of its first time, if it has any: that
        # of its last change would be the time of a clone or a copy as often as not.
        started = Head.of(entry.path).first_time()
        if started is not None:
            entry = replace(entry, started=started, week=week_of(started))
        reader.read(transcript)
    except Exception as error:  # one transcript must never cost the scan
        return _failed(entry, error)
    return replace(entry, reason="no session was found in it")


def _time_read(reader: Reader, transcript: Transcript) -> datetime | None:
    """Return when a session began whose beginning does not tell; None where no record does."""
    try:
        started = reader.read(transcript).started
    except Exception:  # reading it for the tables tells what is wrong
        return None
    return None if started == time_without_records(transcript.path) else started


OWN_QUESTION = "a question that Debrief asked a program, no session"


def _is_own_question(reader: Reader, transcript: Transcript) -> bool:
    """Return whether a file is what a program kept of a question of ours; read only if it may be.

    Raises:
        OSError: it cannot be read.
    """
    if MARK.encode() not in head_of(transcript.file or transcript.path):
        return False
    return _opens_with_ours(reader.read(transcript))


def _opens_with_ours(session: Session) -> bool:
    prompts = (turn.prompt for turn in session.turns if turn.prompt)
    return is_ours(next(prompts, ""))


def _unclaimed(file: FileStamp) -> ScanEntry:
    """Return the entry of a file that no reader knows: reported if it looks like a transcript."""
    entry = _entry(file)
    if not file.path.removesuffix(SUFFIX).endswith(".jsonl"):
        return entry
    if file.size == 0:
        return replace(entry, reason="the file is empty", expected=True)
    try:
        with opened(file.path) as content:
            content.read(1)
            head = head_of(file.path)
    except OSError as error:
        return _failed(entry, error)
    is_whole = file.size <= len(head) or content.taken == file.size
    broken = (not head and content.fault) or first_line_error(head, is_whole)
    if broken is None:
        reason = "not the transcript of a tool that is known"
        return replace(entry, reason=reason, expected=True)
    return replace(entry, reason=f"no known tool's transcript: {broken}", line=1)
