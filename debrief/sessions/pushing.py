"""One person's transcripts to an object store, from which a team's workers read them.

What leaves the machine is redacted, line by line and in the transcript's own format, so that the
store holds no secret and every reader reads it as it would the file itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct

from debrief.lake.files import FileStore
from debrief.redaction.redactor import Redactor
from debrief.sessions.readers.files import FileStamp
from debrief.sessions.sources import scan

Mark = tuple[int, int, str]
"""Size and time of change of the file, and what it was redacted by."""


class Pushed(Struct, frozen=True, kw_only=True):
    """What a push came to."""

    url: str
    """Below which this person's transcripts are."""
    files: int
    """New or changed."""
    unchanged: int
    secrets: int
    """That were replaced."""


def push(
    folders: Iterable[Path],
    url: str,
    owner: str,
    redactor: Redactor,
    home: Path,
    told: Callable[[str], None] = lambda line: None,
    *,
    captures: Iterable[Path] = (),
) -> Pushed:
    """Bring transcripts that are new or changed since the last push to a store.

    Args:
        folders: with transcripts; files of no known tool stay where they are.
        url: an fsspec URL; what is pushed goes below ``<url>/<owner>``.
        owner: whose transcripts these are.
        redactor: takes the secrets out.
        home: ``DEBRIEF_HOME``, which remembers what was pushed.
        told: told of each file.
        captures: folders of captured prompts. The prompts and what is told of the session go
            along; transcripts in them do only if they are below ``folders``.

    Raises:
        ConfigurationError: the store is not known, is not there or refuses.
        LakeError: the store is away.
    """
    folders = list(folders)
    place = f"{url.rstrip('/')}/{owner}"
    store = FileStore(place)
    root = store.root
    memory = home / "pushed" / f"{hashlib.sha256(place.encode()).hexdigest()[:16]}.json"
    before = _remembered(memory)
    there = {path[len(root) + 1 :] for path in store.find(root)}
    marks: dict[str, Mark] = {}
    files = secrets = 0
    try:
        for path, name, size, mtime_ns in _files(folders, captures):
            mark: Mark = (size, mtime_ns, redactor.identity)
            if before.get(name) != mark or name not in there:
                found = _put(store, path, f"{root}/{name}", redactor)
                files, secrets = files + 1, secrets + found
                told(f"{name}: {found} secrets replaced" if found else name)
            marks[name] = mark
    finally:
        _remember(memory, {**before, **marks})
    return Pushed(url=place, files=files, unchanged=len(marks) - files, secrets=secrets)


def _files(folders: list[Path], captures: Iterable[Path]) -> Iterator[tuple[Path, str, int, int]]:
    """Yield what is to be pushed: the file, its name in the store, its size, its last change."""
    for stamp in _transcripts(folders):
        yield Path(stamp.path), _name(Path(stamp.path), folders), stamp.size, stamp.mtime_ns
    for capture in captures:
        home = capture.parents[2]
        mark = hashlib.sha256(str(home).encode()).hexdigest()[:8]
        for path in (*sorted((capture / "prompts").rglob("*")), capture / "metadata.json"):
            if path.is_file() and not path.is_symlink():
                found = path.stat()
                name = f"captures-{mark}/{path.relative_to(home)}"
                yield path, name, found.st_size, found.st_mtime_ns


def _transcripts(folders: Iterable[Path]) -> Iterator[FileStamp]:
    """Yield the files of known tools, each once; parts of a file are that file."""
    seen: set[str] = set()
    for entry in scan(folders).entries:
        for stamp in entry.files if entry.source else ():
            if stamp.path not in seen:
                seen.add(stamp.path)
                yield stamp


def _name(path: Path, folders: Iterable[Path]) -> str:
    """Return a file's name below its folder, which a mark tells from others of that name."""
    folder = next(each for each in folders if path.is_relative_to(each))
    mark = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    return f"{folder.name or 'root'}-{mark}/{path.relative_to(folder)}"


def _put(store: FileStore, path: Path, target: str, redactor: Redactor) -> int:
    scratch = store.scratch(target)
    try:
        secrets = 0
        with path.open("rb") as source, scratch.open("wb") as sink:
            # A JSON file may run over many lines; a line of JSON lines is a whole of its own.
            parts = source if path.suffix == ".jsonl" else iter([source.read()])
            for part in parts:
                clean, found = redacted(part, redactor)
                sink.write(clean)
                secrets += found
        store.put(scratch, target)
        return secrets
    finally:
        scratch.unlink(missing_ok=True)


def redacted(part: bytes, redactor: Redactor) -> tuple[bytes, int]:
    """Return a JSON text without its secrets, and how many there were; other text too."""
    end = b"\n" if part.endswith(b"\n") else b""
    try:
        result = redactor.redact_json(part.removesuffix(b"\n").decode())
    except UnicodeDecodeError:
        result = redactor.redact(part.removesuffix(b"\n").decode(errors="replace"))
    if not result.findings:
        return part, 0
    return result.text.encode(errors="replace") + end, len(result.findings)


def _remembered(memory: Path) -> dict[str, Mark]:
    try:
        return msgspec.json.decode(memory.read_bytes(), type=dict[str, Mark])
    except (OSError, msgspec.DecodeError):
        return {}


def _remember(memory: Path, marks: dict[str, Mark]) -> None:
    memory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    near = memory.with_name(f".{uuid4().hex}")
    near.write_bytes(msgspec.json.encode(marks))
    near.replace(memory)
