"""Settings of this machine: from the environment, else ``~/.debrief/.env``, else the default."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from debrief.errors import ConfigurationError


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that is configured outside the project's own files."""

    home: Path
    """``DEBRIEF_HOME``: this machine's key, cache and environment file; ``~/.debrief``."""
    lake: str
    """``DEBRIEF_LAKE``: a folder or an fsspec URL; ``<home>/lake``."""
    values: Mapping[str, str]
    """The environment laid over the environment file."""

    def get(self, name: str, default: str = "") -> str:
        """Return a setting by its environment variable's name; empty counts as not set."""
        return self.values.get(name) or default


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings.

    Args:
        environ: the environment; this process's own by default.

    Raises:
        ConfigurationError: the environment file can be read by other users of the machine.
    """
    environ = os.environ if environ is None else environ
    home = Path(environ.get("DEBRIEF_HOME") or Path.home() / ".debrief").expanduser()
    values = {**_environment_file(home / ".env"), **{k: v for k, v in environ.items() if v}}
    lake = values.get("DEBRIEF_LAKE") or str(home / "lake")
    if "://" not in lake:
        lake = str(Path(lake).expanduser().absolute())
    return Settings(home=home, lake=lake, values=values)


def _environment_file(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    from dotenv import dotenv_values

    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigurationError(
            str(path), "holds keys and can be read by others", f"Run: chmod 600 {path}"
        )
    return {key: value for key, value in dotenv_values(path).items() if value}
