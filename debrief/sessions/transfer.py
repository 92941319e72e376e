"""Push transcripts to an object store, and mirror them from there for a team's workers.

What leaves the machine is redacted, line by line and in the transcript's own format, so that the
store holds no secret and every reader reads it as it would the file itself. A mirrored transcript
is known by its address in the store wherever its path would be kept, so that every machine that
mirrors the same store comes to the same rows. Both ways, only new and changed files are carried.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from debrief.errors import InputError
from debrief.files import atomic, make_private
from debrief.lake.files import FileStore
from debrief.redaction.redactor import Redactor
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import Transcript
from debrief.sessions.readers.files import DATABASES, SUFFIX, opened
from debrief.sessions.redaction import redact_name
from debrief.sessions.scanning import MIRRORED_FILES, ORIGIN, MirrorOrigin, ScanEntry
from debrief.sessions.sources import scan

_AT_ONCE = 8
_INDEX, _LEFT_OUT = "index.json", "left_out.json"
T = TypeVar("T")

Version = tuple[int, int, str]
"""Size and time of change of a file, and what it was redacted by."""


class Pushed(Struct, frozen=True, kw_only=True):
    """What a push came to."""

    url: str
    """Below which this person's transcripts are."""
    files: int
    """New or changed."""
    unchanged: int
    secrets: int
    """That were replaced."""


def mirror(url: str, home: Path) -> Path:
    """Bring the transcripts below a URL to this machine; return their folder.

    What the store says is unchanged is not fetched again; what is gone there is removed here, and
    what was left out (``leave_out_of_mirror``) is not brought here.

    Args:
        home: ``DEBRIEF_HOME``, in which mirrors are kept.

    Raises:
        InputError: there is nothing below the URL.
        ConfigurationError: the store is not known, is not there or refuses.
        LakeError: the store is away.
    """
    url = url.rstrip("/")
    folder = home / "mirror" / _digest(url)
    files = folder / MIRRORED_FILES
    make_private(files)
    (folder / ORIGIN).write_text(url, encoding="utf-8")
    store = FileStore(url)
    stored = {
        name: _object_version(entry)
        for path, entry in store.find(store.root).items()
        if (name := path[len(store.root) + 1 :]) and ".." not in name.split("/")
    }
    if not stored:
        raise InputError(url, "holds no transcripts", "debrief push brings them there.")
    left_out = _load(folder / _LEFT_OUT, set[str])
    stored = {name: version for name, version in stored.items() if _digest(name) not in left_out}
    index = _load(folder / _INDEX, dict[str, tuple[str, int]])
    changed = [
        name
        for name, version in stored.items()
        if index.get(name) != version or not (files / name).is_file()
    ]

    def fetch(name: str) -> None:
        path, modified = files / name, stored[name][1]
        make_private(path.parent)
        with store.opened(f"{store.root}/{name}") as source:
            if source is None:  # it was removed a moment ago
                return
            with atomic(path, durable=False) as file:
                shutil.copyfileobj(source, file)
                file.flush()
                os.utime(file.fileno(), ns=(modified, modified))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(fetch, changed))
    for path in files.rglob("*"):
        if path.is_file() and str(path.relative_to(files)) not in stored:
            path.unlink(missing_ok=True)
    _save(folder / _INDEX, stored)
    return files


def leave_out_of_mirror(origins: Iterable[MirrorOrigin], path: str) -> bool:
    """Remove a file from the mirror that it is in, and have it not brought here again.

    Return whether it was in one. The name is kept as a digest.

    Args:
        origins: of the mirrors.
        path: of a file of this machine.
    """
    for origin in origins:
        if path.startswith(origin.here):
            name = path.removeprefix(origin.here)
            folder = Path(origin.here).parent
            left_out = _load(folder / _LEFT_OUT, set[str])
            _save(folder / _LEFT_OUT, sorted({*left_out, _digest(name)}))
            index = _load(folder / _INDEX, dict[str, tuple[str, int]])
            _save(folder / _INDEX, {one: at for one, at in index.items() if one != name})
            Path(path).unlink(missing_ok=True)
            return True
    return False


def _object_version(entry: dict[str, Any]) -> tuple[str, int]:
    """Return what changes when an object does, and the time of its last change in nanoseconds."""
    changed = entry.get("LastModified") or entry.get("mtime") or entry.get("created")
    moment = int(changed.timestamp()) if isinstance(changed, datetime) else 0
    tag = entry.get("ETag") or entry.get("etag") or entry.get("md5Hash") or entry.get("size")
    return str(tag), moment * 1_000_000_000


def push(
    folders: Iterable[Path],
    url: str,
    owner: str,
    redactor: Redactor,
    home: Path,
    report: Callable[[str], None] = lambda line: None,
    *,
    captures: Iterable[Path] = (),
    is_left_out: Callable[[ScanEntry], bool] = lambda entry: False,
) -> Pushed:
    """Bring transcripts that are new or changed since the last push to a store.

    Args:
        folders: with transcripts; files of no known tool stay where they are.
        url: an fsspec URL; what is pushed goes below ``<url>/<owner>``.
        owner: whose transcripts these are.
        redactor: takes the secrets out.
        home: ``DEBRIEF_HOME``, which remembers what was pushed.
        report: called with a line for each file.
        captures: folders of captures. Their prompts, metadata and plan go along;
            transcripts in them do only if they are below ``folders``.
        is_left_out: says which transcripts stay here, such as those of forgotten sessions.

    Raises:
        ConfigurationError: the store is not known, is not there or refuses.
        LakeError: the store is away.
    """
    target = f"{url.rstrip('/')}/{owner}"
    store = FileStore(target)
    memory = home / "pushed" / f"{_digest(target)}.json"
    pushed = _load(memory, dict[str, Version])
    stored = {path[len(store.root) + 1 :] for path in store.find(store.root)}
    versions: dict[str, Version] = {}
    files = secrets = 0
    try:
        for outgoing in _outgoing(list(folders), captures, is_left_out):
            name = redact_name(outgoing.name, redactor).text
            version = (outgoing.size, outgoing.mtime_ns, redactor.identity)
            if pushed.get(name) != version or name not in stored:
                for part, lines in outgoing.contents():
                    shown = redact_name(part, redactor).text
                    count = _put(store, lines, f"{store.root}/{shown}", redactor)
                    files, secrets = files + 1, secrets + count
                    report(f"{shown}: {count} secrets replaced" if count else shown)
                    versions[shown] = version
            versions[name] = version
    finally:
        _save(memory, {**pushed, **versions})
    return Pushed(url=target, files=files, unchanged=len(versions) - files, secrets=secrets)


class _Outgoing(Struct, frozen=True):
    """What is to be pushed: a file, or a session of a database, as files that hold it."""

    name: str
    """Of the file, or of the first of them, in the store."""
    size: int
    mtime_ns: int
    contents: Callable[[], Iterable[tuple[str, Iterable[bytes]]]]
    """Gives each file's name, and it in parts that are JSON each."""


def _outgoing(
    folders: list[Path], captures: Iterable[Path], is_left_out: Callable[[ScanEntry], bool]
) -> Iterator[_Outgoing]:
    """Yield what is to be pushed, each once. A digest keeps folders of one name apart."""
    found = [entry for entry in scan(folders).entries if entry.source]
    staying = {e.session_id for e in found if e.session_id and is_left_out(e)}
    entries = [e for e in found if e.session_id not in staying and not is_left_out(e)]

    def name_of(path: Path) -> str:
        folder = next(folder for folder in folders if path.is_relative_to(folder))
        return f"{folder.name or 'root'}-{_digest(str(folder))[:8]}/{path.relative_to(folder)}"

    files = (file for entry in entries for file in entry.files)
    paths = dict.fromkeys(Path(file.path) for file in files)
    for path in paths:
        is_twin = path.suffix == SUFFIX and path.with_suffix("") in paths
        if not path.name.endswith(DATABASES) and not is_twin:
            yield _file(path, name_of(path).removesuffix(SUFFIX))
    for entry in entries:
        if entry.is_part and entry.companions[0].path.endswith(DATABASES):
            database = entry.companions[0].path
            folder = f"{name_of(Path(database))}{entry.path[len(database) :].replace('#', '/')}"
            contents = partial(_documents, entry, folder)
            yield _Outgoing(f"{folder}.json", entry.size, entry.mtime_ns, contents)
    for capture in captures:
        if capture.name in staying:
            continue
        home = capture.parents[2]
        prompts = sorted((capture / "prompts").rglob("*"))
        for path in (*prompts, capture / "metadata.json", capture / "plan.md"):
            if path.is_file() and not path.is_symlink():
                yield _file(path, f"captures-{_digest(str(home))[:8]}/{path.relative_to(home)}")


def _file(path: Path, name: str) -> _Outgoing:
    status = path.stat()
    return _Outgoing(name, status.st_size, status.st_mtime_ns, lambda: [(name, _parts(path))])


def _parts(path: Path) -> Iterator[bytes]:
    with io.BufferedReader(opened(str(path))) as source:
        # A JSON file may run over many lines; a line of JSON lines is a whole of its own.
        is_lines = path.name.removesuffix(SUFFIX).endswith(".jsonl")
        yield from source if is_lines else [source.read()]


def _documents(entry: ScanEntry, name: str) -> Iterator[tuple[str, Iterable[bytes]]]:
    companions = tuple(stamp.path for stamp in entry.companions)
    transcript = Transcript(source=entry.source, path=entry.path, companions=companions)
    for number, document in enumerate(READERS[entry.source].documents(transcript)):
        yield f"{name}-{number}.json" if number else f"{name}.json", [document]


def _put(store: FileStore, parts: Iterable[bytes], target: str, redactor: Redactor) -> int:
    secrets = 0
    with store.writing(target) as file:
        for part in parts:
            clean, count = _redacted(part, redactor)
            file.write(clean)
            secrets += count
    return secrets


def _redacted(part: bytes, redactor: Redactor) -> tuple[bytes, int]:
    """Return a JSON text without its secrets, and how many there were; other text too."""
    end = b"\n" if part.endswith(b"\n") else b""
    try:
        result = redactor.redact_json(part.removesuffix(b"\n").decode())
    except UnicodeDecodeError:
        result = redactor.redact(part.removesuffix(b"\n").decode(errors="replace"))
    if not result.findings:
        return part, 0
    return result.text.encode(errors="replace") + end, len(result.findings)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _load(path: Path, type: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=type)
    except (OSError, msgspec.DecodeError):
        return type()


def _save(path: Path, value: object) -> None:
    make_private(path.parent)
    with atomic(path, durable=False) as file:
        file.write(msgspec.json.encode(value))
