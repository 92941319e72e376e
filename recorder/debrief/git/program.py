"""The git program, for commands that read the names and the history of a repository.

The repository's configuration is in force here. What it names for hooks, monitors, transport and
signatures is switched off, and pagers, editors and askers have no terminal. That is all that a
command can run which neither looks at a working tree nor shows a change: ``cat-file``, ``config``,
``for-each-ref``, ``ls-tree``, ``merge-base``, ``rev-list``, ``rev-parse``, ``symbolic-ref``, and
``diff-tree`` and ``log`` as long as they print no patch. The others (``status``, ``diff``,
``blame``, ``log -p``, ``add``, ``checkout``) run filters, drivers and the programs of submodules,
one by one hard to name; ``debrief.git.scratch`` is for them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from debrief.errors import InputError

_HARDENED = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "log.showSignature=false",
)
_VARIABLES = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # older git does not know the one above
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}


def git(
    folder: Path,
    *arguments: str,
    data: bytes = b"",
    timeout: float = 60.0,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """Run git in ``folder`` and return its standard output.

    Optional locks are off, so that not even the index is refreshed; nothing is fetched, not even
    what a partial clone lacks; and no object is taken for another one. Inherited ``GIT_*``
    variables are dropped, so that the folder alone decides which repository is meant; unless
    ``environment``, which is added to the rest, says more.

    Raises:
        InputError: git is not installed, failed, or took longer than ``timeout`` seconds.
    """
    options = [part for setting in _HARDENED for part in ("-c", setting)]
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *options, *arguments],
            cwd=folder,
            env={**inherited, **_VARIABLES, **(environment or {})},
            input=data,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        culprit = "git" if folder.is_dir() else str(folder)
        raise InputError(culprit, "not found", "Install git, or name another folder.") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(str(folder), f"git {arguments[0]} took over {timeout:g} s") from error
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        # What it dies of, where hints follow: at the end of a file system it says how to go beyond.
        reason = next((line for line in lines if line.startswith("fatal: ")), lines[-1])
        raise InputError(str(folder), f"git {arguments[0]} failed: {reason}")
    return done.stdout


def settings_in(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which git takes settings, whatever its files say of them."""
    pairs = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        pairs |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return pairs


def find_commit(
    folder: Path, revision: str, environment: Mapping[str, str] | None = None
) -> str | None:
    """Return the id of a commit of a folder's repository; None where it does not have it."""
    arguments = ("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    try:
        return git(folder, *arguments, environment=environment).decode().strip()
    except InputError:
        return None
