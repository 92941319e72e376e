"""Discovery: which transcripts there are, which of them changed, and the sessions of a week.

A scan lists folders and opens only the files that are new or changed; reading goes week by week
and session by session, so that memory is bounded by the largest session. Every file that is or
should have been a transcript ends up in a session or in an ``UnreadTranscript``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from debrief.errors import InputError
from debrief.sessions.model import Session, UnreadTranscript
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import BrokenTranscript, NoSession, Reader, Transcript
from debrief.sessions.readers.finding import FoundFile, Walk, head_of, looking_once, shown, walk
from debrief.sessions.readers.jsonl import decodes
from debrief.sessions.readers.moments import moment, moment_of_change
from debrief.sessions.scanning import FileStamp, Origin, Scan, ScanEntry, identified
from debrief.sessions.uniting import united, with_digest
from debrief.weeks import FIRST_WEEK, week_of

__all__ = ["Scan", "ScanEntry", "default_folders", "read_week", "scan"]

Progress = Callable[[int], None]
"""Told how many transcripts are done so far."""

Redact = Callable[[Session], Session]

_TIMESTAMP = re.compile(rb'"timestamp"\s*:\s*"([^"\\]{10,40})"')


def default_folders(home: Path, readers: Mapping[str, Reader] | None = None) -> list[Path]:
    """Return the usual places of every known tool's transcripts that exist below ``home``."""
    readers = READERS if readers is None else readers
    usual = (folder for reader in readers.values() for folder in reader.folders(home))
    return [folder for folder in dict.fromkeys(usual) if folder.is_dir()]


def scan(
    folders: Iterable[Path],
    remembered: Iterable[ScanEntry] = (),
    *,
    readers: Mapping[str, Reader] | None = None,
    progress: Progress | None = None,
    origins: tuple[Origin, ...] = (),
) -> Scan:
    """Find the transcripts of all sources at any depth below ``folders``.

    Args:
        folders: to search; one that is not there is reported as an unread transcript.
        remembered: the entries of the last scan and what was gone then; files whose size and
            time of change are the same are not opened again.
        readers: the sources to look for; all of them by default.
        progress: told now and then how many transcripts were found.
        origins: of the folders that are mirrors.
    """
    readers = READERS if readers is None else readers
    sources = tuple(readers)
    known = {
        entry.path: entry
        for entry in remembered
        if entry.source in readers or entry.looked_for == sources
    }
    known_files = {
        stamp.path: (stamp, entry.source)
        for entry in known.values()
        for stamp in (entry.stamp, *entry.companions)
    }
    parts = _parts(known.values())
    entries: dict[str, ScanEntry] = {}
    opened = 0
    for folder in _outermost(folders):
        found = walk(folder)
        for entry in _unreachable(found):
            entries.setdefault(entry.path, entry)
        reused = _reused(found, known, known_files, parts)
        if reused is not None:
            entries.update(reused)
            if progress is not None:
                progress(len(entries))
            continue
        settled = {
            file.path: known_files[file.path][1]
            for file in found.files
            if _is_unchanged(file, known_files)
        }
        for entry, was_opened in _look(folder, found, known, readers, settled, parts):
            entries.setdefault(entry.path, entry)
            opened += was_opened
            if progress is not None and len(entries) % 50 == 0:
                progress(len(entries))
    if progress is not None:
        progress(len(entries))
    return _with_gone(entries, _gone(known.values(), entries), opened, origins)


def read_week(
    scan: Scan,
    week: str,
    redact: Redact | None = None,
    *,
    readers: Mapping[str, Reader] | None = None,
    progress: Progress | None = None,
) -> Iterator[Session | UnreadTranscript]:
    """Yield the sessions that started in ``week``, by start and id, and what could not be read.

    One session is held at a time. Each has its digest set, over its redacted form.

    Args:
        scan: as ``scan`` returned it.
        week: ISO date of a Monday.
        redact: applied to every session before its digest is taken; nothing by default.
        readers: of the sources in ``scan``; all of them by default.
        progress: told how many of the week's transcripts are done.
    """
    readers = READERS if readers is None else readers
    groups: dict[str, list[ScanEntry]] = {}
    done = 0
    for entry in scan.of_week(week):
        if entry.session_id:
            groups.setdefault(entry.session_id, []).append(entry)
        else:
            done += 1
            yield _unread(entry, entry.reason, entry.line, entry.expected)
    for group in sorted(groups.values(), key=lambda group: (group[0].started, group[0].session_id)):
        yield from _read_group(group, readers, redact)
        done += len(group)
        if progress is not None:
            progress(done)


def _read_group(
    group: list[ScanEntry], readers: Mapping[str, Reader], redact: Redact | None
) -> Iterator[Session | UnreadTranscript]:
    readings: list[Session] = []
    for entry in group:
        transcript = Transcript(
            source=entry.source,
            path=entry.path,
            companions=tuple(stamp.path for stamp in entry.companions),
        )
        try:
            readings.append(readers[entry.source].read(transcript))
        except NoSession as error:
            yield _unread(entry, error.reason, 0, True)
        except InputError as error:
            yield _unread(entry, error.reason, _line_of(error), False)
        except Exception as error:  # one transcript must never cost the week
            yield _unread(entry, f"its reader failed: {type(error).__name__}: {error}", 0, False)
    if not readings:
        return
    try:
        session = readings[0] if len(readings) == 1 else united(readings)
        session = replace(session, id=group[0].session_id, digest="")
        if redact is not None:
            session = redact(session)
        session = with_digest(session)
    except Exception as error:  # one session must never cost the week
        for entry in group:
            yield _unread(entry, f"not kept: {type(error).__name__}: {error}", 0, False)
        return
    yield session


def _line_of(error: InputError) -> int:
    return error.line if isinstance(error, BrokenTranscript) else 0


def _unread(entry: ScanEntry, reason: str, line: int, expected: bool) -> UnreadTranscript:
    return UnreadTranscript(
        path=entry.path,
        source=entry.source,
        week=entry.week,
        line=line,
        reason=reason,
        expected=expected,
    )


def _gone(known: Iterable[ScanEntry], entries: Mapping[str, ScanEntry]) -> Iterator[ScanEntry]:
    """Yield the transcripts that are here no more, and neither is one with all that they held."""
    missing = [
        entry
        for entry in known
        if entry.session_id and not entry.version and entry.path not in entries
    ]
    sizes: dict[tuple[object, ...], int] = {}
    for entry in entries.values() if missing else ():
        key = (entry.source, entry.own_id, entry.own_started)
        sizes[key] = max(entry.size, sizes.get(key, -1))
    for entry in missing:
        if sizes.get((entry.source, entry.own_id, entry.own_started), -1) < entry.size:
            yield entry


def _with_gone(
    entries: Mapping[str, ScanEntry],
    gone: Iterable[ScanEntry],
    opened: int,
    origins: tuple[Origin, ...],
) -> Scan:
    settled = identified((*entries.values(), *gone), origins)
    here = tuple(entry for entry in settled if entry.path in entries)
    sessions = {entry.session_id for entry in here}
    left = (entry for entry in settled if entry.path not in entries)
    of_these = tuple(entry for entry in left if entry.session_id in sessions)
    return Scan(here, opened, origins, of_these)


def _outermost(folders: Iterable[Path]) -> list[Path]:
    """Return the folders without those that lie in another one of them."""
    chosen: list[Path] = []
    for folder in sorted({Path(os.path.abspath(folder)) for folder in folders}):  # noqa: PTH100
        if not any(folder.is_relative_to(other) for other in chosen):
            chosen.append(folder)
    return chosen


def _reused(
    found: Walk,
    known: Mapping[str, ScanEntry],
    known_files: Mapping[str, tuple[FileStamp, str]],
    parts: Mapping[str, list[ScanEntry]],
) -> dict[str, ScanEntry] | None:
    """Return the remembered entries of a walk when none of its files is new, changed or gone."""
    entries: dict[str, ScanEntry] = {}
    stamps = 0
    for file in found.files:
        if not _is_unchanged(file, known_files):
            return None
        if file.path in parts:
            entries.update({entry.path: entry for entry in parts[file.path]})
            stamps += 1
            continue
        entry = known.get(file.path)
        if entry is not None:
            entries[file.path] = entry
            stamps += 1 + len(entry.companions)
    return entries if stamps == len(found.files) else None


def _parts(entries: Iterable[ScanEntry]) -> dict[str, list[ScanEntry]]:
    """Return the entries that are parts of a file with several, by that file."""
    found: dict[str, list[ScanEntry]] = {}
    for entry in entries:
        if entry.is_part:
            found.setdefault(entry.path.rpartition("#")[0], []).append(entry)
    return found


def _is_unchanged(file: FoundFile, known_files: Mapping[str, tuple[FileStamp, str]]) -> bool:
    remembered = known_files.get(file.path)
    return remembered is not None and (
        remembered[0].size == file.size and remembered[0].mtime_ns == file.mtime_ns
    )


def _look(
    folder: Path,
    found: Walk,
    known: Mapping[str, ScanEntry],
    readers: Mapping[str, Reader],
    settled: Mapping[str, str],
    parts: Mapping[str, list[ScanEntry]],
) -> Iterator[tuple[ScanEntry, bool]]:
    """Yield an entry a file, or a part of one, companions apart, and whether it was opened."""
    files = {file.path: file for file in found.files}
    claimed = {path for path in parts if path in settled}
    for path in sorted(claimed):
        yield from ((entry, False) for entry in parts[path])
    with looking_once({str(folder): found}, {**settled, **dict.fromkeys(claimed, "")}):
        for reader in readers.values():
            for transcript in reader.find(folder):
                whole = transcript.file or transcript.path
                if transcript.path in claimed or whole not in files:
                    continue
                file = files[whole]
                companions = tuple(
                    FileStamp(path, files[path].size, files[path].mtime_ns)
                    for path in transcript.companions
                    if path in files
                )
                claimed.add(transcript.path)
                claimed.update(stamp.path for stamp in companions)
                entry = known.get(transcript.path)
                if (
                    entry is not None
                    and transcript.path in settled
                    and entry.source == transcript.source
                    and entry.companions == companions
                ):
                    yield entry, False
                else:
                    yield _peeked(reader, transcript, file, companions), True
    for path, file in files.items():
        if path not in claimed:
            entry = known.get(path)
            if entry is not None and path in settled and not entry.source:
                yield entry, False
            else:
                yield replace(_unclaimed(file), looked_for=tuple(readers)), True


def _peeked(
    reader: Reader, transcript: Transcript, file: FoundFile, companions: tuple[FileStamp, ...]
) -> ScanEntry:
    changed = moment_of_change(file.mtime_ns)
    entry = ScanEntry(
        source=transcript.source,
        path=transcript.path,
        size=file.size,
        mtime_ns=file.mtime_ns,
        companions=companions,
        started=changed,
        week=week_of(changed),
    )
    try:
        peek = reader.peek(transcript)
    except OSError as error:
        return replace(entry, reason=_why(error))
    except Exception as error:  # one transcript must never cost the scan
        return replace(entry, reason=f"its reader failed: {type(error).__name__}: {error}")
    if peek is not None:
        return replace(entry, own_id=peek.session_id, root=peek.root, own_started=peek.started)
    entry = _dated(entry)
    try:
        reader.read(transcript)
    except NoSession as error:
        return replace(entry, reason=error.reason, expected=True)
    except InputError as error:
        return replace(entry, reason=error.reason, line=_line_of(error))
    except Exception as error:  # one transcript must never cost the scan
        return replace(entry, reason=f"its reader failed: {type(error).__name__}: {error}")
    return replace(entry, reason="no session was found in it")


def _dated(entry: ScanEntry) -> ScanEntry:
    """Put a file without a session into the week that its first timestamp tells, if any does.

    The time of its last change would be that of a clone or a copy as often as not.
    """
    told = _TIMESTAMP.search(head_of(entry.path))
    started = moment(told[1].decode("ascii", "replace")) if told else None
    return entry if started is None else replace(entry, started=started, week=week_of(started))


def _unclaimed(file: FoundFile) -> ScanEntry:
    """Return the entry of a file that no reader knows: told when it looks like a transcript."""
    changed = moment_of_change(file.mtime_ns)
    entry = ScanEntry(
        source="",
        path=file.path,
        size=file.size,
        mtime_ns=file.mtime_ns,
        started=changed,
        week=week_of(changed),
    )
    if not file.path.endswith(".jsonl"):
        return entry
    if file.size == 0:
        return replace(entry, reason="the file is empty", expected=True)
    try:
        with open(file.path, "rb"):  # noqa: PTH123
            head = head_of(file.path)
    except OSError as error:
        return replace(entry, reason=_why(error))
    broken = decodes(head, whole=file.size <= len(head))
    if broken is None:
        reason = "not the transcript of a tool that is known"
        return replace(entry, reason=reason, expected=True)
    return replace(entry, reason=f"no known tool's transcript: {broken}", line=1)


def _unreachable(found: Walk) -> Iterator[ScanEntry]:
    for each in found.unreachable:
        yield ScanEntry(
            source="",
            path=each.path,
            started=moment_of_change(0),
            week=FIRST_WEEK,
            reason=each.reason,
        )


def _why(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "no permission to read it"
    return shown(error.strerror or str(error)).lower()
