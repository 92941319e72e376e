"""Find the programs that somebody is logged in to on this machine, without starting them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from debrief.models.programs import ProgramModel, installed


def logged_in(environ: Mapping[str, str] = os.environ) -> list[ProgramModel]:
    """Return the programs that can be started here and that keep a login.

    A login that has expired is kept too, so a program may still refuse to answer.

    Args:
        environ: with the search path, the home folder and the folders of the programs' settings.
    """
    kept = _logins(environ)
    return [
        program
        for program in installed(environ.get("PATH"))
        if any(_holds(file, words) for file, words in kept[program.name])
    ]


def _logins(environ: Mapping[str, str]) -> Mapping[str, tuple[tuple[Path, bytes], ...]]:
    """Return the files in which each program keeps a login, and what such a file holds."""
    home = Path(environ.get("HOME") or Path.home())
    claude, codex = environ.get("CLAUDE_CONFIG_DIR"), environ.get("CODEX_HOME")
    return {
        "claude-code": (
            (Path(claude or home / ".claude", ".credentials.json"), b"claudeAiOauth"),
            # On macOS the key is in the keychain, and this file names the account alone.
            (Path(claude or home, ".claude.json"), b'"oauthAccount"'),
        ),
        "codex": ((Path(codex or home / ".codex", "auth.json"), b"{"),),
        "gemini-cli": ((home / ".gemini" / "oauth_creds.json", b"{"),),
    }


def _holds(file: Path, words: bytes) -> bool:
    try:
        return words in file.read_bytes()
    except OSError:
        return False
