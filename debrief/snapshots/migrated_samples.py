"""What a session or training sample of an earlier tool lacks, filled in from what lies around it.

Samples were kept before prompts and metadata were; what can be told afterwards is told, and what
was filled in is named in the metadata, so that it can be left out where only records count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from debrief.errors import DebriefError, InputError
from debrief.git import git
from debrief.snapshots.fingerprint import (
    FingerprintedJudge,
    compute_eval_fingerprint,
    compute_prompt_fingerprint,
)
from debrief.snapshots.prompts import CLAUDE_CODE, MAIN
from debrief.snapshots.writing import METADATA, PROMPTS, session_ids_of

FOUND_ELSEWHERE = "filled_in"
"""The key of ``metadata.json`` that lists what a migration filled in."""
_EARLIER_VALUES = "before_migration"
_ACTIVE = ("prompts/active/claude-code-cli", "prompts/active/claude-code")
_FALLBACK_MODEL = "opus"
_PLANS = ("plans", "tasks")
_TRACES = ("code_trace.md", "code/trace.md", "trace.md")
_TRAINING_PARTS = (
    "code_trace.md",
    "human_feedback.md",
    "test_results_before.json",
    "test_results_after.json",
)
_SESSION_ID = re.compile(r"^- \*\*Session ID\*\*: ([A-Za-z0-9-]+)[ \t]*$", re.MULTILINE)
_MOMENT = re.compile(r"^### \[(\d{4}-\d\d-\d\dT[\d:.]+Z)\]", re.MULTILINE)
_HEADING = re.compile(r"^#.*$", re.MULTILINE)


class Part(Struct, frozen=True):
    """A file that a sample gets."""

    path: PurePosixPath
    content: bytes
    note: str


class FilledIn(Struct, frozen=True):
    """What a sample gets, and what nobody can tell: each part with the reason."""

    parts: tuple[Part, ...]
    missing: tuple[tuple[str, str], ...]


def fill_in(
    sample: Path,
    folder: Path,
    *,
    is_training: bool,
    judges_of: Callable[[Path], Iterable[FingerprintedJudge]],
) -> FilledIn:
    """Return the prompts, metadata and plan of a sample as far as they can be told.

    Values that are there are kept, but for fingerprints of another definition, which go to
    ``before_migration``. Otherwise: prompts from the active ones of Claude Code, those of the
    model whose main prompt the trace begins with; model and tool from there; the moment from the
    commit that added the sample, else from its trace; the plan from the plan of the same id.

    Args:
        sample: one folder of ``sessions/`` or ``training_data/``.
        folder: the ``.weft`` or ``.lw_coder`` folder it lies in.
        is_training: whether it is a training sample, which has more parts than a session.
        judges_of: loads the judges of a folder.
    """
    parts: list[Part] = []
    missing: list[tuple[str, str]] = []
    metadata, broken = _metadata(sample / METADATA)
    if broken:
        missing.append((METADATA, broken))
    trace = next((text for name in _TRACES if (text := _text(sample / name)) is not None), None)
    filled: list[str] = []

    def tell(key: str, value: Any) -> None:
        if value is not None and metadata.get(key) is None:
            metadata[key] = value
            filled.append(key)

    prompts = _prompts(sample / PROMPTS)
    if prompts is None:
        active = _active(folder, metadata.get("model"), trace)
        if active is None:
            missing.append((PROMPTS, "nothing tells which prompts were in force"))
        else:
            prompts = _prompts(active)
            for path in sorted(active.glob("*.md")):
                note = f"from the prompts active for {active.name}"
                parts.append(Part(PurePosixPath(PROMPTS, path.name), path.read_bytes(), note))
            filled.append(PROMPTS)
            tell("tool", CLAUDE_CODE)
            tell("model", active.name)
    tell("tool", CLAUDE_CODE)
    tell("recorded_at", _commit_date(sample) or _traced_at(trace))
    if trace and not session_ids_of(metadata):
        named = _SESSION_ID.search(trace)
        tell("session_id", named and named[1])
    eval_fingerprint = _eval_fingerprint(folder, judges_of) if is_training else None
    _put_fingerprints(
        metadata,
        {
            "prompt_fingerprint": compute_prompt_fingerprint(prompts) if prompts else None,
            "eval_fingerprint": eval_fingerprint,
        },
        filled,
    )
    wanted = ("model", "recorded_at", *(("eval_fingerprint",) if is_training else ()))
    untold = [key for key in wanted if metadata.get(key) is None]
    missing += [(METADATA, f"nothing tells its {key}") for key in untold]
    if filled:
        metadata[FOUND_ELSEWHERE] = filled
    note = f"with {', '.join(filled)} filled in" if filled else ""
    parts.append(Part(PurePosixPath(METADATA), _json(metadata), note))
    if is_training:
        _complete(sample, folder, parts, missing)
    return FilledIn(tuple(parts), tuple(missing))


def _complete(
    sample: Path, folder: Path, parts: list[Part], missing: list[tuple[str, str]]
) -> None:
    if not (sample / "plan.md").is_file():
        plan = _plan(folder, sample.name)
        if plan is None:
            missing.append(("plan.md", "no plan of this id is there either"))
        else:
            note = f"from {plan.parent.name}/{plan.name}"
            parts.append(Part(PurePosixPath("plan.md"), plan.read_bytes(), note))
    missing += [(name, "") for name in _TRAINING_PARTS if not (sample / name).is_file()]
    if not any(sample.glob("judge_*.json")):
        missing.append(("judge_*.json", ""))


class _Found(Struct, frozen=True):
    main: str
    subagents: dict[str, str]


def _metadata(path: Path) -> tuple[dict[str, Any], str]:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, RecursionError) as error:
        return {}, f"cannot be read, and is made anew: {error}"
    if not isinstance(value, dict):
        return {}, "is no JSON object, and is made anew"
    return value, ""


def _prompts(folder: Path) -> _Found | None:
    if folder.is_symlink():
        return None
    texts = {
        path.name: _text(path) for path in sorted(folder.glob("*.md")) if not path.is_symlink()
    }
    main = texts.pop(MAIN, None)
    if main is None or None in texts.values():
        return None
    subagents = {name.removesuffix(".md"): text or "" for name, text in texts.items()}
    return _Found(main, subagents)


def _active(folder: Path, model: object, trace: str | None) -> Path | None:
    places = [place for name in _ACTIVE if (place := folder / name).is_dir()]
    by_model = {
        path.name: path
        for place in places
        for path in sorted(place.iterdir())
        if path.is_dir() and _prompts(path) is not None
    }
    if isinstance(model, str) and model:
        return by_model.get(model)
    if trace:
        for path in by_model.values():
            heading = _HEADING.search(_text(path / MAIN) or "")
            if heading is not None and f"\n{heading[0]}\n" in trace:
                return path
    if len(by_model) == 1:
        return next(iter(by_model.values()))
    return by_model.get(_FALLBACK_MODEL)


def _put_fingerprints(
    metadata: dict[str, Any], computed: dict[str, str | None], filled: list[str]
) -> None:
    before = {}
    for key, value in computed.items():
        stated = metadata.get(key)
        if value is None and stated is None:
            continue
        if stated is None:
            filled.append(key)
        elif stated != value:
            before[key] = stated
        metadata[key] = value
    if before:
        metadata[_EARLIER_VALUES] = before


def _eval_fingerprint(
    folder: Path, judges_of: Callable[[Path], Iterable[FingerprintedJudge]]
) -> str | None:
    try:
        return compute_eval_fingerprint(judges_of(folder / "judges"))
    except DebriefError:
        return None


def _commit_date(sample: Path) -> str | None:
    """Return when the commit that added a sample was made; None when git does not know it."""
    arguments = ("log", "--diff-filter=A", "--format=%cI", "--", ".")
    try:
        dates = git(sample, *arguments).decode("ascii", "replace").split()
    except InputError:
        return None
    return _utc(dates[-1]) if dates else None


def _traced_at(trace: str | None) -> str | None:
    found = _MOMENT.search(trace or "")
    return _utc(found[1]) if found else None


def _utc(text: str) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _plan(folder: Path, plan_id: str) -> Path | None:
    places = (folder / name / f"{plan_id}.md" for name in _PLANS)
    return next((place for place in places if place.is_file() and not place.is_symlink()), None)


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")
