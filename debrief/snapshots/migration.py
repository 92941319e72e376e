"""Copy ``.lw_coder/`` and ``.weft/`` folders of earlier tools into ``.debrief/``.

Nothing is overwritten and nothing is removed. A plan of every step comes first; to apply it is to
write the files that do not exist yet. Samples were kept before prompts and metadata were: what a
sample lacks is filled in from what is around it, and named in the metadata, so that it can be
left out where only records count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from debrief.errors import DebriefError, InputError
from debrief.git import git
from debrief.snapshots.capture import (
    CLAUDE_CODE,
    HOME,
    MAIN,
    METADATA,
    PROMPTS,
    metadata_bytes,
    read_metadata,
    read_text,
    refuse_link,
    session_ids_of,
    shown,
)
from debrief.snapshots.captures import read_prompts
from debrief.snapshots.fingerprint import (
    FingerprintedJudge,
    compute_eval_fingerprint,
    compute_prompt_fingerprint,
)
from debrief.snapshots.model import PromptSnapshot

EARLIER = (".weft", ".lw_coder")
"""Names of the folders, the newer tool's first."""
_TAKEN = ("sessions", "training_data", "judges", "plans", "prompts")
_RENAMED = {"tasks": "plans", "claude-code-cli": "claude-code"}
_WITH_METADATA = ("sessions", "training_data")
_SKIPPED = frozenset({".git", "node_modules", ".venv", HOME})


def earlier_folders(place: Path) -> list[Path]:
    """Return the folders of earlier tools: ``place`` itself, in it, or at any depth below.

    Raises:
        InputError: ``place`` is no folder, or there is none.
    """
    if not place.is_dir():
        raise InputError(str(place), "is no folder", "Name a repository with .weft or .lw_coder.")
    if place.name in EARLIER:
        return [place]
    found: list[Path] = []
    for parent, folders, _ in os.walk(place):
        found += [Path(parent, name) for name in EARLIER if name in folders]
        folders[:] = sorted(set(folders) - _SKIPPED - set(EARLIER))
    if not found:
        raise InputError(str(place), "holds no .weft or .lw_coder folder", "Name another one.")
    return found


def plan_migration(
    folder: Path,
    target: Path,
    judges_of: JudgesOf,
    is_left_out: Callable[[Iterable[str]], bool] = lambda ids: False,
) -> list[MigrationStep]:
    """Return every step that makes ``target`` of ``folder``; writes nothing.

    Args:
        folder: a ``.weft`` or ``.lw_coder`` folder.
        target: the ``.debrief`` folder, which may be there already.
        judges_of: loads judges, for the eval fingerprint of samples that lack one.
        is_left_out: says by its ids whether a sample stays behind, as a forgotten session's does.
    """
    steps: list[MigrationStep] = []
    staying = {
        sample
        for kind in _WITH_METADATA
        for sample in (folder / kind).glob("*/")
        if is_left_out([sample.name, *_ids_of(sample)])
    }
    for path, why_not in _files(folder):
        place = _target(path.relative_to(folder))
        if not staying.isdisjoint(path.parents):
            steps.append(MigrationStep("left", path, path, note="is of a forgotten session"))
        elif why_not or place is None:
            note = why_not or "is of no use to Debrief"
            steps.append(MigrationStep("left", path, path, note=note))
        elif place.parts[0] not in _WITH_METADATA or place.parts[2:] != (METADATA,):
            steps.append(MigrationStep("copy", target / place, path))
    for kind in _WITH_METADATA:
        for sample in sorted((folder / kind).glob("*/")):
            if not sample.is_symlink() and sample not in staying:
                home = target / kind / sample.name
                is_training = kind == "training_data"
                steps += fill_in(sample, folder, home, is_training=is_training, judges_of=judges_of)
    taken: set[Path] = set()
    return [_settled(step, taken) for step in steps]


def apply(steps: Iterable[MigrationStep]) -> int:
    """Carry out what a plan says; return how many files were written.

    Raises:
        InputError: a file cannot be written, or a place to write to is a symbolic link.
    """
    written = 0
    for step in steps:
        if step.action not in ("copy", "write"):
            continue
        try:
            for path in (step.target, *step.target.parents):
                refuse_link(path)
                if path.name == HOME:
                    break
            data = step.content if step.source is None else step.source.read_bytes()
            step.target.parent.mkdir(parents=True, exist_ok=True)
            with step.target.open("xb") as file:
                file.write(data or b"")
        except FileExistsError:
            continue
        except OSError as error:
            reason = f"cannot be written: {error.strerror}"
            raise InputError(str(step.target), reason, "What was written before stays.") from error
        written += 1
    return written


def _ids_of(sample: Path) -> list[str]:
    """Return the ids of the sessions that a sample names: its metadata, else its trace."""
    metadata = _metadata(sample, [])
    traces = (text for name in _TRACES if (text := _text(sample / name)) is not None)
    named = _SESSION_ID.search(next(traces, ""))
    return [*session_ids_of(metadata), *([named[1]] if named else [])]


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield every file, and why it cannot be taken over; a worktree counts as one."""
    for parent, folders, names in os.walk(folder):
        at = Path(parent)
        if at == folder / "worktrees":
            for name in sorted(folders):
                why = "is a git worktree: its sessions are found by its name, git keeps its files"
                yield at / name, why
            folders.clear()
        folders.sort()
        for name in sorted({*names, *(folder for folder in folders if (at / folder).is_symlink())}):
            path = at / name
            if path.is_symlink():
                yield path, "is a symbolic link"
            elif not path.is_file():
                yield path, "is no ordinary file"
            elif shown(str(path)) != str(path):
                yield path, "has a name that is not UTF-8"
            else:
                yield path, ""


def _target(path: Path) -> Path | None:
    """Return where a file goes below ``.debrief``; None when Debrief has no use for it."""
    top = _RENAMED.get(path.parts[0], path.parts[0])
    if top not in _TAKEN or len(path.parts) < 2:
        return None
    rest = (_RENAMED.get(part, part) if top == "prompts" else part for part in path.parts[1:])
    return Path(top, *rest)


def _settled(step: MigrationStep, taken: set[Path]) -> MigrationStep:
    """Return a step, or in its place the one that leaves alone what is in its way.

    Args:
        step: of any action.
        taken: where the steps before it write; its own target is added.
    """
    if step.action not in ("copy", "write"):
        return step
    left = step.source or step.target
    try:
        if step.target.exists():
            data = step.source.read_bytes() if step.source else step.content
            if step.target.is_file() and step.target.read_bytes() == data:
                return MigrationStep("same", step.target)
            note = "is there already, and stays as it is"
            return MigrationStep("differs", step.target, note=note)
    except OSError as error:
        return MigrationStep("left", left, note=f"cannot be read: {error.strerror}")
    if step.target in taken:
        return MigrationStep("left", left, note=f"another file goes to {step.target}")
    taken.add(step.target)
    return step


FILLED_IN = "filled_in"
"""The key of ``metadata.json`` that lists what a migration filled in."""
_EARLIER_VALUES = "before_migration"
_ACTIVE = ("prompts/active/claude-code-cli", "prompts/active/claude-code")
_FALLBACK_MODEL = "opus"
_TRACES = ("code_trace.md", "code/trace.md", "trace.md")
_TRAINING_FILES = (
    *("code_trace.md", "human_feedback.md", "test_results_before.json"),
    "test_results_after.json",
)
_SESSION_ID = re.compile(r"^- \*\*Session ID\*\*: ([A-Za-z0-9-]+)[ \t]*$", re.MULTILINE)
_MOMENT = re.compile(r"^### \[(\d{4}-\d\d-\d\dT[\d:.]+Z)\]", re.MULTILINE)
_HEADING = re.compile(r"^#.*$", re.MULTILINE)

JudgesOf = Callable[[Path], Iterable[FingerprintedJudge]]
"""Loads the judges of a folder; may raise a DebriefError."""


class MigrationStep(Struct, frozen=True):
    """What becomes of one file.

    ``copy`` and ``write`` (a file with ``content`` of ours) are done; ``same`` and ``differs`` are
    files that exist already and stay; ``left`` stays behind; ``missing`` is a part that nobody
    has.
    """

    action: Literal["copy", "write", "same", "differs", "left", "missing"]
    target: Path
    source: Path | None = None
    content: bytes | None = None
    note: str = ""


def fill_in(
    sample: Path, folder: Path, home: Path, *, is_training: bool, judges_of: JudgesOf
) -> list[MigrationStep]:
    """Return what writes a sample's prompts, metadata and plan, and what of it is missing.

    Existing values are kept, but for fingerprints of another definition, which go to
    ``before_migration``. Otherwise: prompts from the active ones of Claude Code, those of the
    model whose main prompt the trace begins with; model and tool from there; the moment from the
    commit that added the sample, else from its trace; the plan from the plan of the same id.

    Args:
        sample: one folder of ``sessions/`` or ``training_data/``.
        folder: the ``.weft`` or ``.lw_coder`` folder it lies in.
        home: the folder that the sample gets.
        is_training: whether it is a training sample, which has more parts than a session.
        judges_of: loads the judges of a folder.
    """
    steps: list[MigrationStep] = []
    missing: list[tuple[str, str]] = []

    def write(name: str, content: bytes, note: str) -> None:
        steps.append(MigrationStep("write", home / name, content=content, note=note))

    metadata = _metadata(sample, missing)
    trace = next((text for name in _TRACES if (text := _text(sample / name)) is not None), None)
    filled: list[str] = []

    def fill(key: str, value: Any) -> None:
        if value is not None and metadata.get(key) is None:
            metadata[key] = value
            filled.append(key)

    prompts = _prompts(sample / PROMPTS)
    if prompts is None:
        active = _active(folder, metadata.get("model"), trace)
        if active is None:
            missing.append((PROMPTS, "nothing says which prompts were in force"))
        else:
            prompts = _prompts(active)
            note = f"from the prompts active for {active.name}"
            for path in sorted(active.glob("*.md")):
                write(f"{PROMPTS}/{path.name}", path.read_bytes(), note)
            filled.append(PROMPTS)
            fill("tool", CLAUDE_CODE)
            fill("model", active.name)
    fill("tool", CLAUDE_CODE)
    fill("recorded_at", _commit_date(sample) or _utc(_MOMENT.search(trace or "")))
    if trace and not session_ids_of(metadata):
        named = _SESSION_ID.search(trace)
        fill("session_id", named and named[1])
    fingerprints = {
        "prompt_fingerprint": compute_prompt_fingerprint(prompts) if prompts else None,
        "eval_fingerprint": _eval_fingerprint(folder, judges_of) if is_training else None,
    }
    stated = {key: metadata.get(key) for key in fingerprints}
    for key, value in fingerprints.items():
        fill(key, value)
        if stated[key] is not None:
            metadata[key] = value
    before = {key: stated[key] for key in stated if stated[key] not in (None, metadata.get(key))}
    if before:
        metadata[_EARLIER_VALUES] = before
    needed = ["model", "recorded_at", *(["eval_fingerprint"] if is_training else [])]
    lacking = (key for key in needed if metadata.get(key) is None)
    missing.extend((METADATA, f"nothing says its {key}") for key in lacking)
    if filled:
        metadata[FILLED_IN] = filled
    note = f"with {', '.join(filled)} filled in" if filled else ""
    write(METADATA, metadata_bytes(metadata), note)
    if is_training and not (sample / "plan.md").is_file():
        paths = (folder / name / f"{sample.name}.md" for name in ("plans", "tasks"))
        plan = next((path for path in paths if path.is_file() and not path.is_symlink()), None)
        if plan is None:
            missing.append(("plan.md", "no plan of this id is there either"))
        else:
            write("plan.md", plan.read_bytes(), f"from {plan.parent.name}/{plan.name}")
    if is_training:
        missing.extend((name, "") for name in _TRAINING_FILES if not (sample / name).is_file())
        if not any(sample.glob("judge_*.json")):
            missing.append(("judge_*.json", ""))
    return [*steps, *(MigrationStep("missing", home / name, note=why) for name, why in missing)]


def _metadata(sample: Path, missing: list[tuple[str, str]]) -> dict[str, Any]:
    try:
        return read_metadata(sample)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        missing.append((METADATA, f"cannot be read, and is made anew: {error}"))
        return {}


def _prompts(folder: Path) -> PromptSnapshot | None:
    with suppress(InputError):
        return None if folder.is_symlink() else read_prompts(folder)
    return None


def _active(folder: Path, model: object, trace: str | None) -> Path | None:
    """Return the folder of the active prompts of the model that a sample was made with."""
    paths = (path for name in _ACTIVE for path in sorted((folder / name).glob("*/")))
    by_model = {path.name: path for path in paths if _prompts(path) is not None}
    if isinstance(model, str) and model:
        return by_model.get(model)
    for path in by_model.values() if trace else ():
        heading = _HEADING.search(_text(path / MAIN) or "")
        if heading is not None and f"\n{heading[0]}\n" in (trace or ""):
            return path
    if len(by_model) == 1:
        return next(iter(by_model.values()))
    return by_model.get(_FALLBACK_MODEL)


def _eval_fingerprint(folder: Path, judges_of: JudgesOf) -> str | None:
    with suppress(DebriefError):
        return compute_eval_fingerprint(judges_of(folder / "judges"))
    return None


def _commit_date(sample: Path) -> str | None:
    """Return when the commit that added a sample was made; None when git does not know it."""
    with suppress(InputError):
        log = git(sample, "log", "--diff-filter=A", "--format=%cI", "--", ".")
        return _utc(re.search(r"(\S+)\s*\Z", log.decode("ascii", "replace")))
    return None


def _utc(match: re.Match[str] | None) -> str | None:
    """Return the moment in a match's first group, in UTC."""
    with suppress(ValueError):
        moment = datetime.fromisoformat(match[1]) if match else None
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None
    return None


def _text(path: Path) -> str | None:
    with suppress(InputError):
        return read_text(path)
    return None
