"""Plans: what a session of ``debrief code`` is to carry out, one Markdown file each."""

from __future__ import annotations

import re
from pathlib import Path

from debrief.errors import InputError
from debrief.slugs import slugify
from debrief.snapshots.repositories import HOME

PLAN = "plan.md"
_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_PLAN_ID = re.compile(r"^plan_id:[ \t]*[\"']?([^\"'\r\n]*?)[\"']?[ \t]*\r?$", re.MULTILINE)


def checked_plan_id(plan_id: str) -> str:
    """Return ``plan_id``, which names a folder, a branch and a partition.

    Raises:
        InputError: it is no slug, as with a slash or ``..`` in it.
    """
    if slugify(plan_id) != plan_id:
        raise InputError(
            repr(plan_id),
            "is no plan id: lower-case letters, digits, '.', '_' and '-', a letter or digit "
            "first, at most 63",
        )
    return plan_id


def plan_ids(root: Path) -> list[str]:
    """Return the ids of the plans that a repository holds, in order."""
    folder = root / HOME / "plans"
    if not folder.is_dir():
        return []
    names = [path.stem for path in folder.glob("*.md")]
    names += [path.parent.name for path in folder.glob(f"*/{PLAN}")]
    return sorted(name for name in set(names) if slugify(name) == name)


def find_plan(root: Path, plan_id: str, worktree: Path) -> Path:
    """Return the file of a plan.

    The first that is there of ``.debrief/plans/<plan id>.md``, ``.debrief/plans/<plan
    id>/plan.md``, the ``plan.md`` of the plan's worktree, and the repository's own ``plan.md``.

    Raises:
        InputError: none of them is there, the plan cannot be read, or its front matter names
            another plan.
    """
    plans = root / HOME / "plans"
    places = (plans / f"{plan_id}.md", plans / plan_id / PLAN, worktree / PLAN, root / PLAN)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise InputError(f"plan {plan_id}", "was not found", f"Write it to {places[0]}.")
    named = _named(found)
    if named and named != plan_id:
        raise InputError(
            str(found), f"is the plan {named}", f"Write the plan {plan_id} to {places[0]}."
        )
    return found


def _named(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8: {error.reason} at byte {error.start}"
        raise InputError(str(path), reason, "Save it as UTF-8.") from error
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error
    head = _FRONT_MATTER.match(text)
    named = _PLAN_ID.search(head.group(1)) if head else None
    return named.group(1) if named else ""
