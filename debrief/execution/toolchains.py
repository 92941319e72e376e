"""Find the toolchains on this machine that checks need, and how these reach package registries.

A person's tools often lie in the home folder, which no run sees; what is seen of it is the folder
of the tool alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from debrief.errors import ConfigurationError
from debrief.execution.sandbox import Mount

_VARIABLES = re.compile(
    r"(?:HTTPS?|ALL|NO)_PROXY|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|PIP_CERT"
    r"|NODE_EXTRA_CA_CERTS|CARGO_HTTP_CAINFO|GO(?:PROXY|NOPROXY|SUMDB|NOSUMDB|PRIVATE)"
    r"|UV_(?:DEFAULT_INDEX|NO_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|PYTHON_INSTALL_MIRROR)"
    r"|npm_config_(?:registry|cafile)",
    re.IGNORECASE,
)
"""Variables by which the usual clients find proxies, certificates and registries."""
_SECRET = re.compile(r"(?://|(?:^|[\s,])[^/\s@]*:)[^/\s@]*@")
_TIMEOUT = 30.0
_OLDEST_PYTHON = 9


class Toolchain(Struct, frozen=True, kw_only=True):
    """Programs that a run can start."""

    version: str
    mounts: tuple[Mount, ...] = ()
    path: tuple[str, ...] = ()


def toolchain(name: str, version: str = "--version") -> Toolchain | None:
    """Return a toolchain of this machine; None where it is not installed.

    Args:
        name: ``uv``, ``npm``, ``go`` or ``cargo``.
        version: the argument by which it says its version.
    """
    beside = Path(sys.executable).parent
    found = shutil.which(name) or shutil.which(name, path=str(beside))
    if found is None:
        return None
    if name == "cargo" and (rustc := shutil.which("rustc")):
        home = Path(_said([rustc, "--print", "sysroot"]))
    elif name == "go":
        home = Path(_said([found, "env", "GOROOT"]))
    else:
        home = Path(found).resolve().parent
    said = _said([found, version])
    if name == "uv":
        file = Path(found).resolve()
        homes = _pythons()
        return Toolchain(
            version=" ".join([said, sys.version, *(home.source.name for home in homes)]),
            mounts=(Mount(source=file, target="/opt/uv/bin/uv"), *homes),
            path=("/opt/uv/bin", *(f"{home.target}/bin" for home in homes)),
        )
    if name == "npm":  # a script of Node.js, which is beside it
        node = shutil.which("node")
        if node is None:
            return None
        said = f"{said} {_said([node, '--version'])}"
        home = Path(node).resolve().parent.parent
    return _with_home(said, home)


def _with_home(version: str, home: Path) -> Toolchain | None:
    """Return a toolchain by its folder; None where the home folder is in that."""
    if home.is_relative_to("/usr"):
        return Toolchain(version=version)
    if Path.home().is_relative_to(home) or not (home / "bin").is_dir():
        return None
    mount = Mount(source=home, target=str(home))
    return Toolchain(version=version, mounts=(mount,), path=(str(home / "bin"),))


def _pythons() -> list[Mount]:
    """Return the folders of Python that lie outside ``/usr``: our own, then those of pyenv and uv,
    the newest first."""
    home = Path.home()
    kept = (
        Path(os.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions",
        Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or home / ".local/share/uv/python"),
    )
    others = {
        path.resolve()
        for folder in kept
        for path in folder.glob("*3.*")
        if any(path.glob("bin/python3.*")) and _minor(path) >= _OLDEST_PYTHON
    }
    found = [Path(sys.base_prefix).resolve(), *sorted(others, key=_minor, reverse=True)]
    return [
        Mount(source=fromkey, target=str(fromkey))
        for fromkey in dict.fromkeys(found)
        if not fromkey.is_relative_to("/usr") and not home.is_relative_to(fromkey)
    ]


def _minor(folder: Path) -> int:
    """Return the second number of a Python's version, by the name of its folder."""
    found = re.search(r"3\.(\d+)", folder.name)
    return int(found[1]) if found else 0


def registries() -> tuple[dict[str, str], tuple[Mount, ...]]:
    """Return how the usual clients reach their registries: variables, and files that these name.

    Raises:
        ConfigurationError: an address holds a password, which no stranger's code may see.
    """
    found = {name: value for name, value in os.environ.items() if _VARIABLES.fullmatch(name)}
    if npm := shutil.which("npm"):
        for key in ("registry", "cafile", "nodedir"):
            if (value := _said([npm, "config", "get", key])) not in ("", "null", "undefined"):
                found.setdefault(f"npm_config_{key}", value)
    if go := shutil.which("go"):
        for name in ("GOPROXY", "GONOSUMDB", "GOSUMDB"):
            found.setdefault(name, _said([go, "env", name]))
    if pip := shutil.which("pip3") or shutil.which("pip"):
        found = {**_of_pip(_said([pip, "config", "list"])), **found}
    for name, value in found.items():
        if _SECRET.search(value):
            raise ConfigurationError(
                name,
                "names an address with a password, which installed code could read",
                "Name one without, such as that of a proxy that knows the password.",
            )
    found = {name: value for name, value in found.items() if value}
    return found, tuple(_files_of(found.values()))


def _of_pip(config: str) -> dict[str, str]:
    """Return pip's settings as those of uv, which reads no ``pip.conf``."""
    names = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_EXTRA_INDEX_URL"}
    names |= {"find-links": "UV_FIND_LINKS", "cert": "SSL_CERT_FILE"}
    found = {}
    for line in config.splitlines():
        key, _, value = line.partition("=")
        if variable := names.get(key.rpartition(".")[2]):
            found[variable] = " ".join(value.strip("'\"").replace("\\n", " ").split())
    if "UV_EXTRA_INDEX_URL" in found:
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip takes them
    return found


def _files_of(values: Iterable[str]) -> list[Mount]:
    """Return the folders and files that settings name, but those of the home folder."""
    paths = {
        Path(word.removeprefix("file://"))
        for value in values
        for word in re.split(r"[\s,]+", value)
        if word.startswith(("/", "file:///"))
    }
    # The pages of an index name files beside it.
    paths = {path.parent if path.name == "simple" else path for path in paths}
    home = Path.home()
    return [
        Mount(source=path, target=str(path))
        for path in sorted(paths)
        if path.exists() and not path.is_relative_to(home) and not home.is_relative_to(path)
        if not path.is_relative_to("/etc/ssl") and not path.is_relative_to("/usr")
    ]


def _said(command: list[str]) -> str:
    """Return what a program of the person's own says; empty where it fails."""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT
        )
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "replace").strip()
    return ""
