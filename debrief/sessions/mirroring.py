"""Transcripts in an object store: brought here before they are searched, new and changed ones only.

A mirrored transcript is known by its address in the store wherever its path would be kept, so that
every machine that mirrors the same store comes to the same rows.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from debrief.errors import InputError
from debrief.lake.files import FileStore
from debrief.sessions.scanning import Origin

_AT_ONCE = 8
_FILES, _INDEX, _ORIGIN = "files", "index.json", "origin"
_BETWEEN_PLACES = re.compile(rf"{re.escape(os.pathsep)}(?!//)")


def split_places(told: str) -> list[str]:
    """Return the folders and URLs that a setting names, separated as ``PATH`` is.

    >>> split_places("/home/ann/a:s3://team/transcripts:/b")
    ['/home/ann/a', 's3://team/transcripts', '/b']
    """
    return [place for place in _BETWEEN_PLACES.split(told) if place]


def places_here(places: Iterable[str], home: Path) -> list[Path]:
    """Return the folders that ``places`` are on this machine; URLs are mirrored first.

    Args:
        places: folders and fsspec URLs.
        home: ``DEBRIEF_HOME``, in which mirrors are kept.

    Raises:
        ConfigurationError: a store is not known, is not there or refuses.
        LakeError: a store is away.
    """
    return [
        mirror(place, home) if "://" in place else Path(place).expanduser().absolute()
        for place in places
    ]


def mirror(url: str, home: Path) -> Path:
    """Bring the transcripts below a URL to this machine; return their folder.

    What is unchanged by the store's own mark is not brought again; what is gone there is removed
    here.

    Raises:
        InputError: there is nothing below the URL.
        ConfigurationError: the store is not known, is not there or refuses.
        LakeError: the store is away.
    """
    url = url.rstrip("/")
    place = home / "mirror" / hashlib.sha256(url.encode()).hexdigest()[:16]
    files = place / _FILES
    files.mkdir(parents=True, exist_ok=True, mode=0o700)
    (place / _ORIGIN).write_text(url, encoding="utf-8")
    store = FileStore(url)
    start = len(store.root) + 1
    there = {
        path[start:]: _mark(told)
        for path, told in store.find(store.root).items()
        if _is_inside(path[start:])
    }
    if not there:
        raise InputError(url, "holds no transcripts", "debrief push brings them there.")
    here = _index(place)
    wanted = [
        name
        for name, mark in there.items()
        if here.get(name) != mark or not (files / name).is_file()
    ]

    def bring(name: str) -> None:
        target = files / name
        target.parent.mkdir(parents=True, exist_ok=True)
        near = target.with_name(f".{uuid4().hex}")
        try:
            store.fetch(f"{store.root.rstrip('/')}/{name}", near)
            changed = there[name][1]
            os.utime(near, ns=(changed, changed))
            near.replace(target)
        finally:
            near.unlink(missing_ok=True)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(bring, wanted):
            pass
    for path in files.rglob("*"):
        if path.is_file() and str(path.relative_to(files)) not in there:
            path.unlink(missing_ok=True)
    near = place / f".{uuid4().hex}"
    near.write_bytes(msgspec.json.encode(there))
    near.replace(place / _INDEX)
    return files


def origins_of(folders: Iterable[Path]) -> tuple[Origin, ...]:
    """Return where the folders that are mirrors come from."""
    found = []
    for folder in folders:
        origin = folder.parent / _ORIGIN
        if folder.name == _FILES and origin.is_file():
            found.append(Origin(f"{folder}/", f"{origin.read_text(encoding='utf-8')}/"))
    return tuple(found)


def _index(place: Path) -> dict[str, tuple[str, int]]:
    try:
        return msgspec.json.decode((place / _INDEX).read_bytes(), type=dict[str, tuple[str, int]])
    except (OSError, msgspec.DecodeError):
        return {}


def _mark(told: dict[str, Any]) -> tuple[str, int]:
    """Return what changes when an object does, and the time of its last change in nanoseconds."""
    changed = told.get("LastModified") or told.get("mtime") or told.get("created")
    moment = int(changed.timestamp()) if isinstance(changed, datetime) else 0
    mark = told.get("ETag") or told.get("etag") or told.get("md5Hash") or told.get("size")
    return str(mark), moment * 1_000_000_000


def _is_inside(name: str) -> bool:
    return bool(name) and not name.startswith("/") and ".." not in name.split("/")
