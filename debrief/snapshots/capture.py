"""``debrief code``: a plan carried out by a coding agent, with all that its session ran with kept.

The capture is written before the tool starts, since prompts may be edited while it runs. It is
``.debrief/sessions/<plan id>/``; that of an earlier run of the same plan is renamed first, to the
id of its session, so that the plan's own name always is the latest run and nothing is lost.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from debrief.errors import InputError
from debrief.git import git
from debrief.snapshots.filing import Stamps, file_sessions, recent_stamps, sessions_since
from debrief.snapshots.fingerprint import compute_prompt_fingerprint
from debrief.snapshots.plans import PLAN, checked_plan_id, find_plan
from debrief.snapshots.prompts import CLAUDE_CODE, Prompts, active_prompts, prompts_in
from debrief.snapshots.repositories import (
    HOME,
    Repository,
    find_repository,
    keep_out_of_history,
)
from debrief.snapshots.worktrees import ensure_worktree, worktree_folder
from debrief.snapshots.writing import (
    is_key,
    metadata_of,
    read_metadata,
    refuse_link,
    session_ids_of,
    write_capture,
)

OPENING = f"Read {PLAN} in this folder and carry it out from beginning to end."


class PlannedRun(Struct, frozen=True, kw_only=True):
    """A plan that is ready to be carried out, its capture written."""

    plan_id: str
    tool: str
    capture: Path
    worktree: Path
    is_new: bool
    """The worktree was made for this run."""
    fingerprint: str
    subagents: int
    arguments: tuple[str, ...]
    """What the tool is started with, after its own name."""
    started_ns: int
    known: Stamps
    """Transcripts of others that had changed right before."""


def repository_of(folder: Path) -> Repository:
    """Return the repository that ``folder`` lies in.

    Raises:
        InputError: it lies in none.
    """
    repository = find_repository(folder)
    if repository is None:
        raise InputError(
            str(folder.resolve()), "lies in no git repository", "Name one with --repo."
        )
    git(repository.root, "rev-parse", "--git-dir")
    return repository


def prepare(
    repository: Repository,
    plan_id: str,
    tool: str,
    model: str | None,
    *,
    transcripts_in: Sequence[Path] = (),
) -> PlannedRun:
    """Make the worktree with the plan in it, and write the capture; start nothing.

    Args:
        repository: the plan's.
        plan_id: a slug.
        tool: ``claude-code`` or ``droid``.
        model: as the tool names it; None for the tool's own default.
        transcripts_in: where the tool keeps its transcripts, to tell the run's from those of
            others, and to file an earlier run that was ended before it could be filed.

    Raises:
        InputError: the plan id, the plan, the worktree or a prompt cannot be used.
    """
    root = repository.root
    worktree = worktree_folder(root, checked_plan_id(plan_id))
    plan = find_plan(root, plan_id, worktree)
    capture = root / HOME / "sessions" / plan_id
    for place in (root / HOME, capture.parent, worktree.parent, capture):
        refuse_link(place)
    keep_out_of_history(repository)
    is_new = ensure_worktree(repository, plan_id)
    _put_plan(plan, worktree / PLAN)
    chosen = active_prompts(root, tool, model)
    prompts, given = _in_force(root, worktree, tool, chosen)
    started_ns = time.time_ns()
    if capture.exists():
        _keep_earlier(capture, worktree, transcripts_in)
    write_capture(capture, prompts, metadata_of(tool, model, started_ns / 1e9, prompts))
    return PlannedRun(
        plan_id=plan_id,
        tool=tool,
        capture=capture,
        worktree=worktree,
        is_new=is_new,
        fingerprint=compute_prompt_fingerprint(prompts),
        subagents=len(prompts.subagents),
        arguments=_arguments(tool, model, chosen, given),
        started_ns=started_ns,
        known=recent_stamps(transcripts_in, started_ns),
    )


def file_run(run: PlannedRun, transcripts_in: Sequence[Path]) -> tuple[str, ...]:
    """File what the tool wrote under the plan; return the ids of the sessions, in order.

    Raises:
        InputError, OSError, ValueError: the capture cannot be written any more.
    """
    found = sessions_since(run.tool, transcripts_in, run.worktree, run.started_ns, run.known)
    return file_sessions(run.capture, found)


@contextlib.contextmanager
def only_run_of(root: Path, plan_id: str) -> Iterator[None]:
    """Keep a plan to one run at a time: two agents in one worktree undo each other's work.

    Raises:
        InputError: another run of the plan has not ended yet, or the lock cannot be taken.
    """
    import fcntl

    place = root / HOME / "worktrees"
    for folder in (root / HOME, place):
        refuse_link(folder)
    path = place / f".{checked_plan_id(plan_id)}.lock"
    refuse_link(path)
    place.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            reason = "is being carried out by another debrief code"
            raise InputError(f"plan {plan_id}", reason, "Wait for its end.") from error
        yield


def _in_force(
    root: Path, worktree: Path, tool: str, chosen: Prompts | None
) -> tuple[Prompts, Mapping[str, str]]:
    """Return the prompts in force, and the subagents that have to be handed to the tool.

    Chosen prompts come first. Without any it is the worktree's, and where that has none, the
    repository's, which may not have been committed.
    """
    if chosen is not None:
        return chosen, chosen.subagents
    here = prompts_in(worktree, tool) or Prompts("")
    above = prompts_in(root, tool) or Prompts("")
    given = {} if here.subagents else above.subagents
    return Prompts(here.main or above.main, here.subagents or above.subagents), given


def _arguments(
    tool: str, model: str | None, chosen: Prompts | None, given: Mapping[str, str]
) -> tuple[str, ...]:
    options: tuple[str, ...] = ("--model", model) if model else ()
    if tool == CLAUDE_CODE and given:
        agents = {name: _agent(name, text) for name, text in given.items()}
        options += ("--agents", json.dumps(agents, ensure_ascii=False))
    opening = chosen.main if chosen is not None and chosen.main.strip() else OPENING
    return (*options, opening)


def _agent(name: str, text: str) -> dict[str, Any]:
    """Return a subagent as Claude Code's ``--agents`` takes it, front matter read if it has any."""
    import yaml

    head, body = {}, text
    if text.startswith("---\n") and "\n---\n" in text[3:]:
        front, _, rest = text[4:].partition("\n---\n")
        with contextlib.suppress(yaml.YAMLError):
            loaded = yaml.safe_load(front)
            if isinstance(loaded, dict):
                head, body = loaded, rest
    agent: dict[str, Any] = {
        "description": str(head.get("description") or name.replace("-", " ")),
        "prompt": body,
    }
    tools = head.get("tools")
    if isinstance(tools, str):
        tools = [tool.strip() for tool in tools.split(",") if tool.strip()]
    if isinstance(tools, list) and tools:
        agent["tools"] = [str(tool) for tool in tools]
    if isinstance(head.get("model"), str):
        agent["model"] = head["model"]
    return agent


def _put_plan(plan: Path, place: Path) -> None:
    refuse_link(place)
    data = plan.read_bytes()
    if not place.is_file() or place.read_bytes() != data:
        place.write_bytes(data)


def _keep_earlier(capture: Path, worktree: Path, transcripts_in: Sequence[Path]) -> None:
    """Rename an earlier run's capture to its session's id, else to the time it was made at."""
    try:
        metadata = read_metadata(capture)
    except (OSError, ValueError):
        metadata = {}
    recorded = _recorded_ns(metadata)
    ids = session_ids_of(metadata)
    if not ids and recorded is not None and isinstance(metadata.get("tool"), str):
        with contextlib.suppress(KeyError, InputError, OSError, ValueError):
            found = sessions_since(metadata["tool"], transcripts_in, worktree, recorded)
            ids = file_sessions(capture, found)
    seconds = capture.stat().st_mtime if recorded is None else recorded / 1e9
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))
    name = ids[0] if ids and is_key(ids[0]) else f"{capture.name}.{stamp}"
    places = (capture.with_name(name if n == 1 else f"{name}.{n}") for n in range(1, 1_000_000))
    capture.rename(next(place for place in places if not place.exists()))


def _recorded_ns(metadata: Mapping[str, Any]) -> int | None:
    try:
        return int(datetime.fromisoformat(metadata["recorded_at"]).timestamp() * 1e9)
    except (KeyError, TypeError, ValueError):
        return None
