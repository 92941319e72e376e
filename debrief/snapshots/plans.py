"""Plans, one Markdown file each, which ``debrief code`` carries out in a worktree of their own.

The plan's text is the tool's first prompt. The capture is written before the tool starts, since
plans and prompts may be edited while it runs. It is
``.debrief/sessions/<plan id>/``; that of an earlier run of the same plan is renamed first, to the
id of its session, so that the plan's own name always is the latest run and nothing is lost.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import Any

from msgspec import Struct

from debrief.errors import InputError
from debrief.files import locked
from debrief.git import find_commit, git, scratch_of
from debrief.git.repository import without_hooks
from debrief.keys import slugify
from debrief.markdown import front_matter
from debrief.snapshots.capture import (
    CLAUDE_CODE,
    HOME,
    PLAN,
    SESSIONS,
    Prompts,
    RepositoryPaths,
    active_prompts,
    find_repository,
    is_key,
    keep_out_of_history,
    metadata_of,
    prompts_in,
    read_metadata,
    read_text,
    refuse_link,
    session_ids_of,
    write_capture,
)
from debrief.snapshots.captures import add_sessions, sessions_since
from debrief.snapshots.fingerprint import compute_prompt_fingerprint

POINTER = f"Read {PLAN} in this folder and carry it out from beginning to end."
"""The prompt in place of a plan that is too long for an argument."""
LONGEST = 120_000
"""Bytes of a plan that is handed over as an argument: Linux takes 131,072 in one."""
_LEAD = "Carry out this plan:\n\n"
_SIGNS = ("-", "/", "!", "@", "&")
"""What a program may take for an option, a command of its own or the mention of a file."""
_PLAN_ID = re.compile(r"^plan_id:[ \t]*[\"']?([^\"'\r\n]*?)[\"']?[ \t]*\r?$", re.MULTILINE)


class PlannedRun(Struct, frozen=True, kw_only=True):
    """A plan that is ready to be carried out, its capture written."""

    tool: str
    capture: Path
    worktree: Path
    is_new: bool
    """The worktree was made for this run."""
    with_filters: Mapping[str, int] = {}
    """How many files of a new worktree have each filter: they are as the repository stores them."""
    fingerprint: str
    subagents: int
    arguments: tuple[str, ...]
    """What the tool is started with, after its own name."""
    started_ns: int


def repository_of(folder: Path) -> RepositoryPaths:
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
    names = {path.stem for path in folder.glob("*.md")}
    names |= {path.parent.name for path in folder.glob(f"*/{PLAN}")}
    return sorted(name for name in names if slugify(name) == name)


def find_plan(root: Path, plan_id: str, worktree: Path) -> Path:
    """Return the file of a plan.

    The first that exists of ``.debrief/plans/<plan id>.md``, ``.debrief/plans/<plan
    id>/plan.md``, the ``plan.md`` of the plan's worktree, and the repository's own ``plan.md``.

    Raises:
        InputError: none of them exists, the plan cannot be read, or its front matter names
            another plan.
    """
    plans = root / HOME / "plans"
    paths = (plans / f"{plan_id}.md", plans / plan_id / PLAN, worktree / PLAN, root / PLAN)
    path = next((path for path in paths if path.is_file()), None)
    move = f"Write the plan {plan_id} to {paths[0]}."
    if path is None:
        raise InputError(f"plan {plan_id}", "was not found", move)
    named = _PLAN_ID.search(front_matter(read_text(path))[0])
    if named and named[1] not in ("", plan_id):
        raise InputError(str(path), f"is the plan {named[1]}", move)
    return path


def worktree_folder(root: Path, plan_id: str) -> Path:
    """Return where a plan's worktree is or would be."""
    return root / HOME / "worktrees" / plan_id


def ensure_worktree(repository: RepositoryPaths, plan_id: str) -> bool:
    """Make a plan's worktree on a branch named as the plan; True when it did not exist.

    An existing worktree is used as it is; an existing branch is checked out, otherwise it starts
    at the repository's HEAD. No hook and no filter is run: files of Git LFS are pointers.

    Raises:
        InputError: the folder is something else, the repository has no commit yet, or git
            refuses, as when the branch is checked out elsewhere.
    """
    root, folder = repository.root, worktree_folder(repository.root, plan_id)
    if folder.is_symlink():
        raise InputError(str(folder), "is a symbolic link, not a worktree", "Remove the link.")
    listing = git(root, "worktree", "list", "--porcelain").decode("utf-8", "surrogateescape")
    lines = [line for line in listing.splitlines() if line.startswith("worktree ")]
    is_worktree = folder.resolve() in {Path(line[len("worktree ") :]).resolve() for line in lines}
    if folder.exists() and not is_worktree:
        raise InputError(str(folder), "is there, and no worktree", "Move it away.")
    if not folder.exists():
        _add_worktree(root, folder, plan_id, is_worktree)
    with scratch_of(folder) as scratch:
        index = scratch.repository.git_dir / "index"
        is_new = not index.is_file()
        if is_new:
            commit = git(folder, "rev-parse", "HEAD").decode().strip()
            scratch.read_tree(commit, index, folder)
    return is_new


def _add_worktree(root: Path, folder: Path, plan_id: str, is_known: bool) -> None:
    """Have git know a worktree, which has no file yet."""
    if find_commit(root, "HEAD") is None:
        raise InputError(str(root), "has no commit yet", "Commit something first.")
    if is_known:
        git(root, "worktree", "prune")
    folder.parent.mkdir(parents=True, exist_ok=True)
    is_branch = find_commit(root, f"refs/heads/{plan_id}") is not None
    what = [str(folder), plan_id] if is_branch else ["-b", plan_id, str(folder), "HEAD"]
    options = ("--quiet", "--no-checkout")
    git(root, "worktree", "add", *options, *what, environment=without_hooks(root))


def _with_filters(worktree: Path) -> dict[str, int]:
    """Return how many files of a worktree have each filter that was not run for them."""
    with scratch_of(worktree) as scratch:
        scratch.take_index()
        paths = scratch.git("ls-files", "-z").split(b"\0")[:-1]
        return dict(sorted(Counter(scratch.filters_of(paths).values()).items()))


def prepare(
    repository: RepositoryPaths,
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
        transcripts_in: where the tool keeps its transcripts, to file an earlier run that was
            ended before it could be filed.

    Raises:
        InputError: the plan id, the plan, the worktree or a prompt cannot be used.
    """
    root = repository.root
    worktree = worktree_folder(root, checked_plan_id(plan_id))
    plan = find_plan(root, plan_id, worktree)
    text = read_text(plan)
    prompt = _prompt(plan, text)
    capture = root / HOME / SESSIONS / plan_id
    refuse_link(root / HOME, capture.parent, worktree.parent, capture)
    keep_out_of_history(repository)
    is_new = ensure_worktree(repository, plan_id)
    refuse_link(worktree / PLAN)
    (worktree / PLAN).write_bytes(text.encode())
    chosen = active_prompts(root, tool, model)
    prompts, given = _prompts_in_force(root, worktree, tool, chosen)
    started_ns = time.time_ns()
    if capture.exists():
        _rename_earlier(capture, worktree, transcripts_in)
    write_capture(capture, prompts, metadata_of(tool, model, started_ns / 1e9, prompts), text)
    return PlannedRun(
        tool=tool,
        capture=capture,
        worktree=worktree,
        is_new=is_new,
        with_filters=_with_filters(worktree) if is_new else {},
        fingerprint=compute_prompt_fingerprint(prompts),
        subagents=len(prompts.subagents),
        arguments=(*_options(tool, model, chosen, given), prompt),
        started_ns=started_ns,
    )


def file_run(run: PlannedRun, transcripts_in: Sequence[Path]) -> tuple[str, ...]:
    """File what the tool wrote under the plan; return the ids of the sessions, in order.

    Raises:
        InputError, OSError, ValueError: the capture cannot be written any more.
    """
    sessions = sessions_since(run.tool, transcripts_in, run.worktree, run.started_ns)
    return add_sessions(run.capture, sessions)


@contextlib.contextmanager
def only_run_of(root: Path, plan_id: str) -> Iterator[None]:
    """Keep a plan to one run at a time: two agents in one worktree undo each other's work.

    Raises:
        InputError: another run of the plan has not ended yet, or the lock cannot be taken.
    """
    path = root / HOME / "worktrees" / f".{checked_plan_id(plan_id)}.lock"
    refuse_link(root / HOME, path.parent, path)
    with locked(path) as is_mine:
        if not is_mine:
            reason = "is being carried out by another debrief code"
            raise InputError(f"plan {plan_id}", reason, "Wait for its end.")
        yield


def _prompts_in_force(
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


def _prompt(path: Path, plan: str) -> str:
    """Return a plan as the prompt that a tool is started with: its text without front matter.

    Raises:
        InputError: nothing stands below the front matter, or it holds a null character.
    """
    text = front_matter(plan)[1].strip()
    if not text:
        raise InputError(str(path), "says nothing of what is to be done", "Write it there.")
    if "\0" in text:
        raise InputError(str(path), "holds a null character", "Save it as text.")
    if text.startswith(_SIGNS):
        text = f"{_LEAD}{text}"
    return text if len(text.encode()) <= LONGEST else POINTER


def _options(
    tool: str, model: str | None, chosen: Prompts | None, given: Mapping[str, str]
) -> tuple[str, ...]:
    options: tuple[str, ...] = ("--model", model) if model else ()
    if chosen is not None and chosen.main.strip():
        options += ("--append-system-prompt", chosen.main)
    if tool == CLAUDE_CODE and given:
        agents = {name: _agent(name, text) for name, text in given.items()}
        options += ("--agents", json.dumps(agents, ensure_ascii=False))
    return options


def _agent(name: str, text: str) -> dict[str, Any]:
    """Return a subagent as Claude Code's ``--agents`` takes it, front matter read if it has any."""
    from debrief.fields import FieldsError, fields_of

    front, body = front_matter(text)
    head: Mapping[str, Any]
    try:
        head = fields_of(front)
    except FieldsError:
        head, body = {}, text
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


def _rename_earlier(capture: Path, worktree: Path, transcripts_in: Sequence[Path]) -> None:
    """Rename an earlier run's capture to its session's id, else to the time it was made at."""
    recorded = capture.stat().st_mtime
    ids: tuple[str, ...] = ()
    with contextlib.suppress(KeyError, TypeError, ValueError, OSError, InputError):
        metadata = read_metadata(capture)
        ids = session_ids_of(metadata)
        recorded = datetime.fromisoformat(metadata["recorded_at"]).timestamp()
        if not ids:
            since = int(recorded * 1e9)
            sessions = sessions_since(metadata["tool"], transcripts_in, worktree, since)
            ids = add_sessions(capture, sessions)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(recorded))
    name = ids[0] if ids and is_key(ids[0]) else f"{capture.name}.{stamp}"
    names = chain([name], (f"{name}.{number}" for number in count(2)))
    targets = (capture.with_name(name) for name in names)
    capture.rename(next(target for target in targets if not target.exists()))
