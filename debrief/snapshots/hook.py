"""What Claude Code runs when a session starts: the capture of a session nobody announced.

Run as ``python -m debrief.snapshots.hook`` with the hook's JSON on standard input. It prints
nothing (what a hook prints becomes part of the conversation), always ends with exit code 0, gives
up after two seconds, and logs errors to ``~/.debrief/logs/hooks.log`` alone. Standard
library only: it is done in a tenth of a second.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from debrief.errors import InputError
from debrief.snapshots.capture import (
    CLAUDE_CODE,
    HOME,
    SESSIONS,
    Prompts,
    add_session_ids,
    find_repository,
    is_key,
    keep_out_of_history,
    metadata_of,
    prompts_in,
    write_capture,
)

CAPTURE_VARIABLE = "DEBRIEF_CAPTURE"
"""Names the capture that was written before the tool was started; the hook then only adds to it."""
TIME_LIMIT = 2.0
"""Seconds."""
_LARGEST_INPUT = 1 << 20
_LARGEST_LOG = 1 << 20


def main() -> None:
    """Capture the session that starts; never fail, whatever happens."""
    try:
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, TIME_LIMIT)
        capture(_event(sys.stdin.buffer.read(_LARGEST_INPUT + 1)), os.environ)
    except BaseException as error:
        _log(error)
    finally:
        os._exit(0)


def capture(event: Mapping[str, Any], environ: Mapping[str, str]) -> Path | None:
    """Write the capture that a hook's event calls for, and return its folder.

    None when there is nothing to do: another event than ``SessionStart``, or a session that has
    its capture already (it was resumed, or its context compacted). What was in force when the
    session began is what counts.

    Args:
        event: the hook's input: ``session_id``, ``cwd``, ``hook_event_name``, ``model`` …
        environ: the environment.

    Raises:
        ValueError: the event names no usable session.
        InputError, OSError: prompts cannot be read or the capture not be written.
    """
    if event.get("hook_event_name") != "SessionStart":
        return None
    session_id = event.get("session_id")
    if not isinstance(session_id, str) or not is_key(session_id):
        raise ValueError(f"no usable session_id: {str(session_id)[:80]!r}")
    model = event.get("model")
    if isinstance(model, dict):
        model = model.get("id")
    model = model if isinstance(model, str) and model else None
    announced = environ.get(CAPTURE_VARIABLE)
    if announced and Path(announced).is_dir():
        add_session_ids(Path(announced), [session_id], model)
        return Path(announced)
    cwd = _folder(event, environ)
    repository = find_repository(cwd)
    root, top = (repository.root, repository.top) if repository else (cwd, cwd)
    folder = root / HOME / SESSIONS / session_id
    if folder.exists():
        return None
    if repository is not None:
        keep_out_of_history(repository)
    failure: InputError | None = None
    prompts: Prompts | None = None
    try:
        prompts = prompts_in(top, CLAUDE_CODE) or prompts_in(cwd, CLAUDE_CODE) or Prompts("")
    except InputError as error:
        failure = error
    metadata = metadata_of(CLAUDE_CODE, model, time.time(), prompts)
    write_capture(folder, prompts, {**metadata, "session_id": session_id})
    if failure is not None:
        raise failure
    return folder


def _event(data: bytes) -> dict[str, Any]:
    if len(data) > _LARGEST_INPUT:
        raise ValueError("the hook's input is over 1 MB")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the hook's input is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("the hook's input is no JSON object")
    return value


def _folder(event: Mapping[str, Any], environ: Mapping[str, str]) -> Path:
    for named in (event.get("cwd"), environ.get("CLAUDE_PROJECT_DIR")):
        if isinstance(named, str) and Path(named).is_absolute() and Path(named).is_dir():
            return Path(named)
    return Path.cwd()


def _give_up(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"took over {TIME_LIMIT:g} s")


def log_file(environ: Mapping[str, str]) -> Path:
    """Return where the hook logs its errors."""
    home = environ.get("DEBRIEF_HOME")
    return (Path(home).expanduser() if home else Path.home() / HOME) / "logs" / "hooks.log"


def _log(error: BaseException) -> None:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        path = log_file(os.environ)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > _LARGEST_LOG:
            path.replace(path.with_suffix(".log.1"))
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = " ".join(f"{moment} {type(error).__name__}: {error}".splitlines())
        with path.open("ab") as file:
            file.write(f"{line}\n".encode("utf-8", "replace"))
    except BaseException:
        return


if __name__ == "__main__":
    main()
