"""Keys of partitions (weeks, slugs) and digests of what rows were made from.

A session is filed under its week; its task follows from the folder that it worked in. Dagster
accepts keys that its UI cannot launch (``a|b``, commas, dots in a row) and a slash nests a folder
in the lake, so every task name becomes a slug before it becomes a key. Weeks are Monday to Sunday,
UTC.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

FIRST_WEEK = "2022-01-03"
SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}\Z")
_DIGEST_LENGTH = 16
_STAMPED = re.compile(rf".*\.[0-9a-f]{{{_DIGEST_LENGTH}}}\Z", re.DOTALL)
_ENCODER = msgspec.json.Encoder(order="deterministic")


def week_of(moment: datetime) -> str:
    """Return the week of ``moment`` as the ISO date of its Monday; naive times are UTC.

    >>> week_of(datetime(2026, 1, 4, 23, 59, tzinfo=UTC))
    '2025-12-29'
    """
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    day = moment.date()
    return (day - timedelta(days=day.weekday())).isoformat()


def is_week(key: str) -> bool:
    """Return whether ``key`` is the ISO date of a Monday."""
    try:
        day = date.fromisoformat(key)
    except ValueError:
        return False
    return day.weekday() == 0 and day.isoformat() == key


def week_after(week: str, weeks: int = 1) -> str:
    """Return the week that starts ``weeks`` weeks after ``week`` does."""
    return (date.fromisoformat(week) + timedelta(weeks=weeks)).isoformat()


def slugify(name: str) -> str:
    """Return the partition key of ``name``: itself when it is a slug already, else stamped.

    A name that has to be changed gets the first 16 hex digits of its SHA-256 behind a dot, and
    so does a slug that merely looks stamped; that is why two different names never share a key.

    >>> slugify("checkout-retries")
    'checkout-retries'
    >>> slugify("fix/bug")
    'fix-bug.ab5c93c9d21eb4b8'
    """
    plain = SLUG.match(name) and not _STAMPED.match(name) and ".." not in name
    if plain and not name.endswith("."):
        return name
    stamp = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[: 62 - _DIGEST_LENGTH].rstrip("-")
    return f"{stem or 'x'}.{stamp}"


def plain_name(name: str) -> str:
    """Return a name in small letters, with an underscore for spaces and hyphens.

    >>> plain_name(" Token-Efficiency")
    'token_efficiency'
    """
    return re.sub(r"[\s_-]+", "_", name.strip().casefold())


def digest_of(*values: Any) -> str:
    """Return the SHA-256, in hex, of ``values`` in their canonical JSON form.

    Takes whatever msgspec encodes: structs, builtins, dates. Keys are sorted, so the digest
    depends on the values alone.
    """
    return hashlib.sha256(_ENCODER.encode(values)).hexdigest()


_PLAN_HOMES = frozenset({".debrief", ".lw_coder", ".weft"})
_WORKTREE_FOLDERS = frozenset({"worktrees", ".worktrees"})
_WORKTREE_SUFFIX = "-worktrees"
_NAMELESS = frozenset({"", ".", "..", "~"})
_HOME = re.compile(r"(?:home|Users|[^/]*:/Users)/[^/]+|root")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


class Place(Struct, frozen=True):
    """Where a session worked."""

    task: str
    """A slug: the plan's id, else the repository's name, else ``unknown``."""
    repository: str
    """The repository's name; empty when it is not told."""


def place_of(cwd: str, repository: str = "") -> Place:
    """Return the place that ``cwd`` names, which need not exist on this machine.

    Worktrees are led back to the repository they belong to: ``repo/.worktrees/branch``,
    ``repo/.claude/worktrees/name`` and ``repo/.git/worktrees/name`` are ``repo``, and so is
    ``~/.tool/worktrees/repo/name``, where the tool keeps them all in the user's home, and
    ``repo-worktrees/name``.

    Args:
        cwd: a POSIX or Windows path.
        repository: the repository's name where the transcript tells it; wins over the path's.

    >>> place_of("/home/ann/shop/.debrief/worktrees/retry-queue")
    Place(task='retry-queue', repository='shop')
    >>> place_of("/home/ann/shop")
    Place(task='shop', repository='shop')
    """
    text = cwd.replace("\\", "/") if _WINDOWS.match(cwd) else cwd
    parts = [part for part in text.split("/") if part and part != "."]
    below = zip(parts, parts[1:], parts[2:], strict=False)
    plans = (plan for home, kind, plan in below if home in _PLAN_HOMES and kind == "worktrees")
    plan = next(plans, "")
    plan = "" if plan in _NAMELESS else plan
    name = repository or _repository(parts)
    return Place(task=slugify(plan or name) if plan or name else "unknown", repository=name)


def _repository(parts: list[str]) -> str:
    for index, part in enumerate(parts[:-1]):
        above, behind = parts[:index], parts[index + 1 :]
        if part in _WORKTREE_FOLDERS:
            tool = above.pop() if above and above[-1].startswith(".") else ""
            if _HOME.fullmatch("/".join(above)):  # Codex puts its own id before the repository.
                return behind[1] if tool == ".codex" and len(behind) > 1 else behind[0]
            if above:
                return above[-1]
        elif part.endswith(_WORKTREE_SUFFIX) and part != _WORKTREE_SUFFIX:
            return part.removesuffix(_WORKTREE_SUFFIX)
    last = parts[-1] if parts else ""
    return "" if last in _NAMELESS or last.endswith(":") else last
