"""What a repository's checks need of packages, made ready before they run without network."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from debrief.execution.sandbox import Limits, Mount, Sandbox


class Prepared(Struct, frozen=True, kw_only=True):
    """What the runs of a tree's checks see beside the tree."""

    key: str
    """Digest of what decides it: lock files and versions of the programs."""
    mounts: tuple[Mount, ...] = ()
    environment: dict[str, str] = {}
    path: tuple[str, ...] = ()
    """Folders in the sandbox, before the system's in ``PATH``."""


class NotPrepared(Struct, frozen=True, kw_only=True):
    """What is missing of what a tree's checks need."""

    missing: str
    """For a person: a program, or the packages of a file."""


def prepare(
    tree: Path,
    cache: Path,
    sandbox: Sandbox,
    *,
    network: bool,
    limits: Limits | None = None,
) -> Prepared | NotPrepared:
    """Return what the checks of a tree need, from the cache or made now.

    Args:
        tree: a repository's files, without ``.git``.
        cache: the folder that keeps what was prepared.
        sandbox: where packages are installed: doing so runs their code.
        network: whether it may be made now, over the network; else only what the cache has.
        limits: of making it.

    Raises:
        ConfigurationError: the sandbox does not work, or the cache cannot be written.
    """
    return Prepared(key="")
