"""Fill in what a sample lacks, where something shows what it was.

Samples were kept before prompts and metadata were. What is filled in is listed in the metadata
under ``filled_in``, so that it can be left out where only records count. The rules:

- A folder without any record of a session gets nothing.
- A training sample was written by ``eval``, from a session of Claude Code. Its prompts are the
  active ones of the model that its metadata names; else of the model whose main prompt its trace
  begins with; else of the only model that has active ones, or of opus.
- Its eval fingerprint is that of the judges of today, unless it was judged by one that is gone.
- A session gets the prompts and the model that its own trace shows, and nothing else.
- ``recorded_at`` is the date of the commit that added the sample, else the trace's first moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from debrief.errors import DebriefError, InputError
from debrief.git import find_commit, git
from debrief.markdown import front_matter
from debrief.snapshots.capture import (
    CLAUDE_CODE,
    MAIN,
    METADATA,
    PROMPTS,
    metadata_bytes,
    read_metadata,
    read_text,
    session_ids_of,
)
from debrief.snapshots.captures import read_prompts
from debrief.snapshots.fingerprint import (
    FingerprintedJudge,
    compute_eval_fingerprint,
    compute_prompt_fingerprint,
)
from debrief.snapshots.migration.steps import EARLIER, MigrationStep
from debrief.snapshots.migration.worktrees import WORKTREES
from debrief.snapshots.model import PromptSnapshot

FILLED_IN = "filled_in"
"""The key of ``metadata.json`` that lists what a migration filled in."""
_EARLIER_VALUES = "before_migration"
_CODE = "code"
_PLAN = "plan.md"
_PLANS = ("plans", "tasks")
_ACTIVE = ("prompts/active/claude-code-cli", "prompts/active/claude-code")
_FALLBACK_MODEL = "opus"
_TRACES = ("code_trace.md", "code/trace.md", "trace.md")
_TRAINING_FILES = (
    *("code_trace.md", "human_feedback.md", "test_results_before.json"),
    "test_results_after.json",
)
_SESSION_ID = re.compile(r"^- \*\*Session ID\*\*: ([A-Za-z0-9-]+)[ \t]*$", re.MULTILINE)
_MOMENT = re.compile(r"^### \[(\d{4}-\d\d-\d\dT[\d:.]+Z)\]", re.MULTILINE)
_FIRST_MESSAGE = re.compile(r"^### \[[^\]\n]*\] User\s*\n(.*?)(?=^### \[|\Z)", re.MULTILINE | re.S)
_HEADING = re.compile(r"#.*")
_PLAN_ID = re.compile(r"^plan_id:[ \t]*[\"']?([^\"'\r\n]*?)[\"']?[ \t]*\r?$", re.MULTILINE)
_LITERALLY = {"GIT_LITERAL_PATHSPECS": "1"}

JudgesOf = Callable[[Path], Iterable[FingerprintedJudge]]
"""Loads the judges of a folder; may raise a DebriefError."""


def capture_of(sample: Path) -> Path:
    """Return the folder of a sample that has its prompts and metadata.

    Those of a session may be in its ``code/``, beside the folders of planning and judging.
    """
    inner = sample / _CODE
    is_inner = any((inner / name).exists() for name in (PROMPTS, METADATA))
    has_own = any((sample / name).exists() for name in (PROMPTS, METADATA))
    return inner if is_inner and not has_own and not inner.is_symlink() else sample


def ids_of(sample: Path) -> list[str]:
    """Return the ids of the sessions that a sample names: its metadata, else its trace."""
    named = _SESSION_ID.search(_trace(sample) or "")
    return [*session_ids_of(_metadata(sample, [])), *([named[1]] if named else [])]


def fill_in(
    sample: Path, folder: Path, home: Path, *, is_training: bool, judges_of: JudgesOf
) -> list[MigrationStep]:
    """Return what writes a sample's prompts, metadata and plan, and what of it is missing.

    Existing values are kept, but for fingerprints of another definition, which go to
    ``before_migration``.

    Args:
        sample: one folder of ``sessions/`` or ``training_data/``.
        folder: the ``.weft`` or ``.lw_coder`` folder it is in.
        home: the folder that the sample gets.
        is_training: whether it is a training sample, which has more parts than a session.
        judges_of: loads the judges of a folder.
    """
    if not any(path.is_file() for path in sample.rglob("*")):
        return [MigrationStep("left", sample, note="is empty, so nothing is filled in")]
    missing: list[tuple[str, str]] = []
    metadata = _metadata(sample, missing)
    has_record = _has_prompts_or_trace(sample) or (is_training and _is_judged(sample))
    written: list[tuple[str, bytes, str]] = []
    if metadata or has_record:
        written, lacking = _filled_in(sample, folder, metadata, judges_of if is_training else None)
        missing += lacking
    else:
        reason = "no record of a session is here, so nothing is filled in"
        missing += [(PROMPTS, reason), (METADATA, reason)]
    if is_training and not any((top / _PLAN).is_file() for top in (sample, home)):
        plan, source = _plan(folder, home, sample.name)
        if plan is None:
            missing.append((_PLAN, source))
        else:
            written.append((_PLAN, plan, f"from {source}"))
    if is_training:
        missing.extend((name, "") for name in _TRAINING_FILES if not (sample / name).is_file())
        if not any(sample.glob("judge_*.json")):
            missing.append(("judge_*.json", ""))
    return [
        *(
            MigrationStep("write", home / name, content=data, note=note)
            for name, data, note in written
        ),
        *(MigrationStep("missing", home / name, note=why) for name, why in missing),
    ]


def _filled_in(
    sample: Path, folder: Path, metadata: dict[str, Any], judges_of: JudgesOf | None
) -> tuple[list[tuple[str, bytes, str]], list[tuple[str, str]]]:
    """Return the files with what is filled in, and what is missing, each with a note.

    Args:
        sample: it has a record of a session.
        folder: the ``.weft`` or ``.lw_coder`` folder it is in.
        metadata: the sample's own.
        judges_of: loads judges; None for a session.
    """
    files: list[tuple[str, bytes, str]] = []
    missing: list[tuple[str, str]] = []
    filled: list[str] = []
    metadata = dict(metadata)

    def fill(key: str, value: Any) -> None:
        if value is not None and metadata.get(key) is None:
            metadata[key] = value
            filled.append(key)

    is_training = judges_of is not None
    trace = _trace(sample)
    prompts = _prompts(capture_of(sample) / PROMPTS)
    if prompts is None:
        active, why = _active(folder, metadata, trace, is_training=is_training)
        if active is None:
            missing.append((PROMPTS, why))
        else:
            prompts = _prompts(active)
            note = f"from {active.relative_to(folder)}: {why}"
            paths = sorted(active.glob("*.md"))
            files += [(f"{PROMPTS}/{path.name}", path.read_bytes(), note) for path in paths]
            filled.append(PROMPTS)
            fill("tool", CLAUDE_CODE)
            fill("model", active.name)
    if is_training:
        fill("tool", CLAUDE_CODE)
    moment = _MOMENT.search(trace or "")
    fill("recorded_at", _commit_date(sample) or _utc(moment and moment[1]))
    if trace and not session_ids_of(metadata):
        named = _SESSION_ID.search(trace)
        fill("session_id", named and named[1])
    missing += [
        (METADATA, f"nothing says its {key}")
        for key in ("model", "recorded_at")
        if key not in metadata
    ]
    found = {"prompt_fingerprint": compute_prompt_fingerprint(prompts) if prompts else None}
    if judges_of is not None:
        judges, why = _judges(sample, folder, judges_of)
        found["eval_fingerprint"] = compute_eval_fingerprint(judges) if judges else None
        if not judges:
            missing.append((METADATA, why))
    before = {key: metadata.get(key) for key in found}
    for key, value in found.items():
        fill(key, value)
        if before[key] is not None:
            metadata[key] = value
    before = {key: old for key, old in before.items() if old not in (None, metadata.get(key))}
    if before:
        metadata[_EARLIER_VALUES] = before
    note = f"with {', '.join(filled)} filled in" if filled else ""
    if filled:
        metadata[FILLED_IN] = filled
    files.append((METADATA, metadata_bytes(metadata), note))
    return files, missing


def _has_prompts_or_trace(sample: Path) -> bool:
    return _prompts(capture_of(sample) / PROMPTS) is not None or _trace(sample) is not None


def _trace(sample: Path) -> str | None:
    """Return the text of a sample's trace; None without one."""
    texts = (_text(sample / name) for name in _TRACES)
    return next((text for text in texts if text and text.strip()), None)


def _is_judged(sample: Path) -> bool:
    """Return whether a training sample has what a judge, a test run or a person said."""
    found = (*sample.glob("judge_*.json"), *(sample / name for name in _TRAINING_FILES))
    return any(path.is_file() and path.stat().st_size > 0 for path in found)


def _metadata(sample: Path, missing: list[tuple[str, str]]) -> dict[str, Any]:
    try:
        return read_metadata(capture_of(sample))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        missing.append((METADATA, f"cannot be read, and is made anew: {error}"))
        return {}


def _prompts(folder: Path) -> PromptSnapshot | None:
    with suppress(InputError):
        return None if folder.is_symlink() else read_prompts(folder)
    return None


def _active(
    folder: Path, metadata: dict[str, Any], trace: str | None, *, is_training: bool
) -> tuple[Path | None, str]:
    """Return the folder of active prompts that a sample was made with, and what shows it."""
    paths = (path for name in _ACTIVE for path in sorted((folder / name).glob("*/")))
    by_model = {path.name: path for path in paths if _prompts(path) is not None}
    model, tool = metadata.get("model"), metadata.get("tool")
    unknown = "nothing says which prompts were in force"
    if tool not in (None, CLAUDE_CODE):
        return None, unknown
    begins = _begun_with(trace or "", by_model)
    if is_training and isinstance(model, str) and model:
        found = by_model.get(model)
        return found, f"its metadata names {model}" if found else unknown
    if begins is not None and model in (None, begins.name):
        return begins, "its trace begins with them"
    if is_training and len(by_model) == 1:
        return next(iter(by_model.values())), "there are no others"
    if is_training and _FALLBACK_MODEL in by_model:
        return by_model[_FALLBACK_MODEL], "nothing says the model"
    return None, unknown


def _begun_with(trace: str, by_model: dict[str, Path]) -> Path | None:
    """Return the active prompts whose main one, or its heading, is what a trace begins with."""
    message = _FIRST_MESSAGE.search(trace)
    first = message[1].strip() if message else ""
    mains = {path: (_text(path / MAIN) or "").strip() for path in by_model.values()}
    whole = [path for path, main in mains.items() if main and first.startswith(main)]
    heading = _HEADING.match(first)
    titled = [
        path for path, main in mains.items() if heading and main.partition("\n")[0] == heading[0]
    ]
    return next((found[0] for found in (whole, titled) if len(found) == 1), None)


def _judges(
    sample: Path, folder: Path, judges_of: JudgesOf
) -> tuple[list[FingerprintedJudge] | None, str]:
    """Return the judges that a sample was judged by, or why they are not known."""
    try:
        judges = list(judges_of(folder / "judges"))
    except DebriefError as error:
        return None, f"its eval_fingerprint is not known: {error.culprit} {error.reason}"
    judged = {path.stem.removeprefix("judge_") for path in sample.glob("judge_*.json")}
    gone = sorted(judged - {judge.name for judge in judges})
    if gone:
        return None, f"its eval_fingerprint is not known: the judge {gone[0]} is gone"
    return judges or None, "its eval_fingerprint is not known: there is no judge"


def _plan(folder: Path, home: Path, plan_id: str) -> tuple[bytes | None, str]:
    """Return a plan and where it is from; None and what would complete the sample without one."""
    debrief = home.parent.parent
    names = [
        name for kind in _PLANS for name in (f"{kind}/{plan_id}.md", f"{kind}/{plan_id}/{_PLAN}")
    ]
    paths = [
        *(folder / name for name in names),
        *(top / WORKTREES / plan_id / _PLAN for top in (folder, debrief)),
    ]
    for path in paths:
        text = None if path.is_symlink() else _text(path)
        if text is not None and _is_plan(text, plan_id):
            top = folder if path.is_relative_to(folder) else debrief
            return text.encode(), f"{top.name}/{path.relative_to(top)}"
    for commit, name in _in_history(folder, plan_id, names):
        with suppress(InputError, UnicodeDecodeError):
            data = git(folder.parent, "cat-file", "blob", f"{commit}:{name}")
            if _is_plan(data.decode(), plan_id, must_say_so=name == _PLAN):
                return data, f"the git history: {commit[:12]}:{name}"
    return None, (
        "write it, as from the trace: no plan of this id is in plans, tasks, a worktree or the git "
        "history, and debrief train passes over a sample without one"
    )


def _is_plan(text: str, plan_id: str, *, must_say_so: bool = False) -> bool:
    """Return whether a text is a plan: not empty, and its front matter names no other one."""
    named = _PLAN_ID.search(front_matter(text)[0])
    said = named[1] if named else ""
    return bool(text.strip()) and said in ((plan_id,) if must_say_so else ("", plan_id))


def _in_history(folder: Path, plan_id: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the commits, of any branch or backup, that had a plan last, with its path there."""
    kept = [*names, f"training_data/{plan_id}/{_PLAN}"]
    paths = [f"{top}/{name}" for top in EARLIER for name in kept]
    options = ("--all", "-1", "--diff-filter=d", "--no-renames", "--format=%H", "--name-only")
    with suppress(InputError):
        log = git(folder.parent, "log", *options, "--", *paths, environment=_LITERALLY)
        commit, *found = log.decode("utf-8", "surrogateescape").split("\n")
        yield from ((commit, path) for path in found if path)
    commit = find_commit(folder.parent, f"refs/heads/{plan_id}") or ""
    if commit:
        yield commit, _PLAN


def _commit_date(sample: Path) -> str | None:
    """Return when the commit that added a sample was made; None when git does not know it."""
    with suppress(InputError):
        log = git(sample, "log", "--diff-filter=A", "--format=%cI", "--", ".")
        found = re.search(r"(\S+)\s*\Z", log.decode("ascii", "replace"))
        return _utc(found and found[1])
    return None


def _utc(text: str | None) -> str | None:
    """Return a moment in UTC."""
    with suppress(ValueError):
        moment = datetime.fromisoformat(text) if text else None
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None
    return None


def _text(path: Path) -> str | None:
    with suppress(InputError):
        return read_text(path)
    return None
