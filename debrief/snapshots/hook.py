"""Install and run Claude Code's session-start hook, which captures each session's prompts.

Run as ``python -m debrief.snapshots.hook`` with the hook's JSON on standard input. It prints
nothing (what a hook prints becomes part of the conversation), always ends with exit code 0, gives
up after two seconds, and logs errors to ``~/.debrief/logs/hooks.log`` alone. Standard
library only: it is done in a tenth of a second.

Installed it is in Claude Code's settings. A settings file belongs to its owner: it is read as a
whole, changed in one place, and replaced in one step. What cannot be read without loss is
refused, not repaired.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple

from debrief.errors import ConfigurationError, InputError
from debrief.files import atomic, make_private
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
_TAIL = 1 << 18
"""Bytes at a transcript's end in which its model is looked for."""
_MODEL = re.compile(rb'"model"\s*:\s*"(claude[A-Za-z0-9._-]{1,60})"')


def main() -> None:
    """Capture the session that starts; never fail, whatever happens."""
    try:
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, TIME_LIMIT)
        data = sys.stdin.buffer.read(_LARGEST_INPUT + 1)
        if len(data) > _LARGEST_INPUT:
            raise ValueError("the hook's input is over 1 MB")
        capture(json.loads(data), os.environ)
    except BaseException as error:
        _log(error)
    finally:
        os._exit(0)


def capture(event: Mapping[str, Any], environ: Mapping[str, str]) -> Path | None:
    """Write the capture that a hook's event calls for, and return its folder.

    None when there is nothing to do: another event than ``EVENTS``, or a session that ended and
    has no capture. Of one that has its capture already (it was resumed, its context compacted, or
    it ended) only the model is added, which is seldom known at the start. What was in force when
    the session began is what counts.

    Args:
        event: the hook's input: ``session_id``, ``cwd``, ``hook_event_name``, ``transcript_path``,
            ``model`` …
        environ: the environment.

    Raises:
        ValueError: the event names no usable session.
        InputError, OSError: prompts cannot be read or the capture not be written.
    """
    if event.get("hook_event_name") not in EVENTS:
        return None
    session_id = event.get("session_id")
    if not is_key(session_id):
        raise ValueError(f"no usable session_id: {str(session_id)[:80]!r}")
    model = event.get("model")
    if isinstance(model, dict):
        model = model.get("id")
    model = model if isinstance(model, str) and model else _model_in(event.get("transcript_path"))
    announced = environ.get(CAPTURE_VARIABLE)
    if announced and Path(announced).is_dir():
        add_session_ids(Path(announced), [session_id], model)
        return Path(announced)
    cwd = _folder(event, environ)
    repository = find_repository(cwd)
    root, top = (repository.root, repository.top) if repository else (cwd, cwd)
    folder = root / HOME / SESSIONS / session_id
    if folder.exists() or event["hook_event_name"] == _END:
        if model and folder.exists():
            add_session_ids(folder, [], model)
        return folder if folder.exists() else None
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


def _model_in(transcript: object) -> str | None:
    """Return the model that answered last in a transcript; None when none is named there."""
    with suppress(OSError, ValueError):
        path = Path(str(transcript))
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            models = _MODEL.findall(file.read())
        return models[-1].decode() if models else None
    return None


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
        make_private(path.parent)
        if path.exists() and path.stat().st_size > _LARGEST_LOG:
            path.replace(path.with_suffix(".log.1"))
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = " ".join(f"{moment} {type(error).__name__}: {error}".splitlines())
        with path.open("ab") as file:
            file.write(f"{line}\n".encode("utf-8", "replace"))
    except BaseException:
        return


MODULE = "debrief.snapshots.hook"
EVENTS = _START, _END = "SessionStart", "SessionEnd"
"""When the prompts are captured, and when the model is known."""
_TIMEOUT = 5
"""Seconds after which Claude Code itself ends the hook, which gives up well before."""

HookState = Literal["installed", "outdated", "not installed", "broken"]
Change = Literal["installed", "updated", "unchanged", "removed", "not there"]


class HookStatus(NamedTuple):
    """What a settings file says of our hook."""

    path: Path
    state: HookState
    note: str = ""


def settings_file(*, user: bool = False, local: bool = False, folder: Path = Path()) -> Path:
    """Return the settings file that is meant; ``CLAUDE_CONFIG_DIR`` moves the user's.

    Args:
        user: the user's own, for every repository; else the repository's.
        local: the repository's ``settings.local.json``, which is not committed: the hook names
            this machine's interpreter.
        folder: inside the repository.

    Raises:
        ConfigurationError: ``folder`` lies in no repository.
    """
    if user:
        moved = os.environ.get("CLAUDE_CONFIG_DIR")
        return (Path(moved).expanduser() if moved else Path.home() / ".claude") / "settings.json"
    repository = find_repository(folder)
    if repository is None:
        raise ConfigurationError(
            str(folder.resolve()),
            "lies in no git repository",
            "Name one with --repo, or install for every repository with --user.",
        )
    return repository.top / ".claude" / ("settings.local.json" if local else "settings.json")


def hook_command(interpreter: str = sys.executable) -> str:
    """Return the shell command that Claude Code is to run when a session starts.

    The interpreter takes nothing from the session's folder or ``PYTHON*`` variables, where a file
    named as one of ours would be run instead; and whatever becomes of it, even if it has been
    deleted since, the session notices nothing.
    """
    return f"{shlex.quote(interpreter)} -E -P -m {MODULE} >/dev/null 2>&1 || :"


_CACHE_TAG = "CACHEDIR.TAG"
"""Marks a folder that may be emptied at any time; uv has it in its cache, pipx has not."""


def is_short_lived(prefix: Path) -> bool:
    """Return whether a Python's environment lies in the cache of ``uvx`` or ``pipx run``: a hook
    that names it works until the cache is emptied, and then stops without a word."""
    is_of_pipx = "pipx" in prefix.parts and not {".cache", "Caches"}.isdisjoint(prefix.parts)
    return is_of_pipx or any((folder / _CACHE_TAG).is_file() for folder in prefix.parents)


def lasting_debrief(search_path: str) -> Path | None:
    """Return the first ``debrief`` of a search path that stays; None without one."""
    for folder in search_path.split(os.pathsep):
        found = Path(folder, "debrief")
        if os.access(found, os.X_OK) and not is_short_lived(found.resolve().parent.parent):
            return found.absolute()
    return None


def install(path: Path, command: str) -> Change:
    """Put our hook into a settings file, once; every other key and hook is kept.

    Raises:
        ConfigurationError: the file is no JSON that can be kept as it is, or cannot be written.
    """
    text, settings, groups = _read(path)
    hook = {"type": "command", "command": command, "timeout": _TIMEOUT}
    existing = [_ours(groups[event]) for event in EVENTS]
    if all(ours == [hook] for ours in existing):
        return "unchanged"
    hooks = settings.setdefault("hooks", {})
    for event in EVENTS:
        hooks[event] = _with_ours(groups[event], hook)
    _write(path, settings, text)
    return "updated" if any(existing) else "installed"


def remove(path: Path) -> Change:
    """Take our hook out of a settings file, and what was only there to hold it.

    A file that held nothing else is deleted.

    Raises:
        ConfigurationError: as ``install`` does.
    """
    text, settings, groups = _read(path)
    installed = [event for event in EVENTS if _ours(groups[event])]
    if not installed:
        return "not there"
    hooks = settings["hooks"]
    for event in installed:
        hooks[event] = _with_ours(groups[event], None)
    for holder, key in (*((hooks, event) for event in installed), (settings, "hooks")):
        if not holder[key]:
            del holder[key]
    if settings:
        _write(path, settings, text)
    else:
        _refuse_read_only(path)
        path.unlink()
    return "removed"


def status(path: Path, command: str) -> HookStatus:
    """Return whether a settings file has our hook, and whether it would work."""
    try:
        _, settings, groups = _read(path)
    except ConfigurationError as error:
        return HookStatus(path, "broken", error.reason)
    hooks = [_ours(groups[event]) for event in EVENTS]
    if not any(hooks):
        return HookStatus(path, "not installed")
    if settings.get("disableAllHooks") is True:
        return HookStatus(path, "installed", "and switched off there by disableAllHooks")
    if any(len(ours) > 1 for ours in hooks):
        return HookStatus(path, "outdated", "is there more than once; install again")
    if any(not ours or ours[0].get("command") != command for ours in hooks):
        return HookStatus(path, "outdated", "runs another interpreter or version; install again")
    return HookStatus(path, "installed")


def check_interpreter(interpreter: str = sys.executable) -> None:
    """Make sure that an interpreter finds the hook from any folder.

    Raises:
        ConfigurationError: it does not, so that installing it would capture nothing.
    """
    import subprocess

    command = [interpreter, "-E", "-P", "-c", f"import {MODULE}"]
    try:
        subprocess.run(command, cwd="/", check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigurationError(
            interpreter,
            "does not find debrief from another folder",
            "Install debrief into this interpreter's environment first.",
        ) from error


def _read(path: Path) -> tuple[str, dict[str, Any], dict[str, list[Any]]]:
    """Return a settings file's text, its settings and its groups of hooks by event; empty if not
    there."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        settings = json.loads(text, object_pairs_hook=_each_key_once) if text.strip() else {}
    except FileNotFoundError:
        return "", {}, {event: [] for event in EVENTS}
    except OSError as error:
        raise _broken(path, f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _broken(path, f"is no JSON that can be kept as it is: {error}") from error
    if not isinstance(settings, dict):
        raise _broken(path, "holds no JSON object")
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise _broken(path, "its hooks are no JSON object")
    groups = {event: hooks.get(event, []) for event in EVENTS}
    for event, of_event in groups.items():
        if not isinstance(of_event, list):
            raise _broken(path, f"its hooks.{event} is no list")
    return text, settings, groups


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key is given twice")
    return value


def _hooks_of(group: object) -> list[Any]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _ours(groups: list[Any]) -> list[dict[str, Any]]:
    return [hook for group in groups for hook in _hooks_of(group) if _is_ours(hook)]


def _with_ours(groups: list[Any], ours: dict[str, Any] | None) -> list[Any]:
    """Return the groups with our hook, in the place of an older one, or without it."""
    kept = []
    for group in groups:
        hooks = []
        for hook in _hooks_of(group):
            if not _is_ours(hook):
                hooks.append(hook)
            elif ours is not None:
                hooks.append(ours)
                ours = None
        if hooks:
            kept.append({**group, "hooks": hooks})
        elif not _hooks_of(group):
            kept.append(group)
    return kept if ours is None else [*kept, {"hooks": [ours]}]


def _is_ours(hook: object) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and f" -m {MODULE} " in f"{command} "


def _write(path: Path, settings: dict[str, Any], before: str) -> None:
    target = path.resolve()
    _refuse_read_only(target)
    indented = re.search(r"\n(\t| +)[ \t]*\S", before)
    indent = indented[1] if indented else 2
    text = json.dumps(settings, indent=indent, ensure_ascii=False) + "\n"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic(target, mode=0o666) as file:
            file.write(text.encode())
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError(str(path), f"cannot be written: {reason}") from error


def _refuse_read_only(path: Path) -> None:
    if path.exists() and not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigurationError(
            str(path), "is read-only, and was left as it is", f"To change it: chmod u+w {path}"
        )


def _broken(path: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(str(path), reason, "It was left as it is; correct it first.")


if __name__ == "__main__":
    main()
