"""Writing a capture: whole or not at all, never over another one, never through a link.

Standard library alone, as a hook writes through here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from debrief.errors import InputError
from debrief.snapshots.fingerprint import compute_prompt_fingerprint
from debrief.snapshots.prompts import MAIN, Prompts

PROMPTS, METADATA = "prompts", "metadata.json"
_KEY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,127}\Z")


def is_key(text: object) -> bool:
    """Return whether ``text`` can name a capture's folder: a plan id or a session id."""
    return isinstance(text, str) and _KEY.match(text) is not None


def utc_stamp(seconds: float) -> str:
    """Return a moment, in seconds since 1970, as ``2025-12-12T14:30:00Z``."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def metadata_of(
    tool: str, model: str | None, recorded_at: float, prompts: Prompts | None
) -> dict[str, Any]:
    """Return what ``metadata.json`` says when a session begins."""
    return {
        "tool": tool,
        "model": model,
        "recorded_at": utc_stamp(recorded_at),
        "prompt_fingerprint": compute_prompt_fingerprint(prompts) if prompts else None,
    }


def write_capture(folder: Path, prompts: Prompts | None, metadata: Mapping[str, Any]) -> None:
    """Write ``prompts/`` and ``metadata.json`` of a session to a folder that is not there yet.

    Args:
        folder: ``…/.debrief/sessions/<key>``.
        prompts: None when they could not be told; there is no ``prompts/`` then.
        metadata: the content of ``metadata.json``.

    Raises:
        InputError: the folder or one above it in ``.debrief`` is a symbolic link.
        FileExistsError: the folder is there already.
        OSError: it cannot be written.
    """
    for place in (folder.parent.parent, folder.parent, folder):
        refuse_link(place)
    if folder.exists():
        raise FileExistsError(f"{folder} is there already")
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = folder.parent / f".{folder.name}.{os.getpid()}"
    unfinished.mkdir(mode=0o700)
    try:
        if prompts is not None:
            (unfinished / PROMPTS).mkdir()
            (unfinished / PROMPTS / MAIN).write_bytes(prompts.main.encode())
            for name, text in prompts.subagents.items():
                (unfinished / PROMPTS / f"{name}.md").write_bytes(text.encode())
        (unfinished / METADATA).write_bytes(_json(metadata))
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def read_metadata(folder: Path) -> dict[str, Any]:
    """Return ``metadata.json`` as it is.

    Raises:
        ValueError: it is no JSON object.
        OSError: it cannot be read.
    """
    value = json.loads((folder / METADATA).read_bytes())
    if not isinstance(value, dict):
        raise ValueError(f"{folder / METADATA} holds no JSON object")
    return value


def add_metadata(folder: Path, changes: Mapping[str, Any]) -> None:
    """Set keys of a capture's ``metadata.json``, every other key kept.

    Raises:
        InputError: it is a symbolic link.
        ValueError: it is no JSON object.
        OSError: it cannot be read or written.
    """
    refuse_link(folder)
    refuse_link(folder / METADATA)
    changed = {**read_metadata(folder), **changes}
    unfinished = folder / f".{METADATA}.{os.getpid()}"
    unfinished.write_bytes(_json(changed))
    unfinished.replace(folder / METADATA)


def add_session_id(folder: Path, session_id: str) -> None:
    """Note in a capture that a session belongs to it; the first one noted stays the first.

    Raises:
        InputError, ValueError, OSError: as ``add_metadata`` does.
    """
    metadata = read_metadata(folder)
    known = session_ids_of(metadata)
    if session_id in known:
        return
    changes: dict[str, Any] = {"session_id": (*known, session_id)[0]}
    if known:
        changes["session_ids"] = [*known, session_id]
    add_metadata(folder, changes)


def session_ids_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sessions that ``metadata.json`` names, in order: usually one."""
    several = metadata.get("session_ids")
    named = [metadata.get("session_id"), *(several if isinstance(several, list) else ())]
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name))


def refuse_link(path: Path) -> None:
    """Refuse to write through a symbolic link, which may lead anywhere.

    Raises:
        InputError: ``path`` is one.
    """
    if path.is_symlink():
        raise InputError(
            str(path), "is a symbolic link, which nothing is written through", "Remove the link."
        )


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")
