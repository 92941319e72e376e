"""Training samples out of ``.debrief/training_data/<plan_id>/`` folders, old ones too.

The folders of earlier tools (``.lw_coder``, ``.weft``) have the same layout with parts missing.
A part that is missing is None and is named in a warning; a part that is broken likewise, so that
one bad file never costs the sample.
"""

from __future__ import annotations

from pathlib import Path

import orjson
from msgspec import Struct
from pydantic import ValidationError

from debrief.errors import InputError
from debrief.sessions.model import Problem
from debrief.snapshots.captures import read_capture
from debrief.training.model import JudgeResult, TrainingSample


class LoadedSample(Struct, frozen=True):
    """A sample, and what its folder lacks."""

    sample: TrainingSample
    warnings: tuple[Problem, ...]


def load_training_sample(folder: Path) -> LoadedSample:
    """Read one folder.

    Raises:
        InputError: it is not there, or holds no part of a sample at all.
    """
    if not folder.is_dir():
        raise InputError(str(folder), "is no folder", "Name a folder of .debrief/training_data.")
    capture = read_capture(folder)
    warnings = list(capture.problems)
    texts = {
        name: _text(folder / f"{name}.md", warnings)
        for name in ("plan", "code_trace", "human_feedback")
    }
    results = {
        name: _object(folder / f"{name}.json", warnings)
        for name in ("test_results_before", "test_results_after")
    }
    judged = tuple(_judge_results(folder, warnings))
    if not judged:
        warnings.append(_problem(folder, "holds no judge_*.json"))
    metadata = capture.metadata
    parts = (*texts.values(), *results.values(), capture.snapshot, metadata)
    if not judged and all(part is None for part in parts):
        raise InputError(str(folder), "holds no part of a training sample")
    known = {} if metadata is None else metadata.model_dump(include=_FROM_METADATA)
    sample = TrainingSample(
        plan_id=folder.name,
        plan_content=texts["plan"],
        code_trace=texts["code_trace"],
        human_feedback=texts["human_feedback"],
        test_results_before=results["test_results_before"],
        test_results_after=results["test_results_after"],
        judge_results=judged,
        used_prompts=capture.snapshot,
        **known,
    )
    return LoadedSample(sample, tuple(warnings))


_FROM_METADATA = {"tool", "model", "prompt_fingerprint", "eval_fingerprint"}


def _judge_results(folder: Path, warnings: list[Problem]) -> list[JudgeResult]:
    found = []
    for path in sorted(folder.glob("judge_*.json")):
        try:
            found.append(JudgeResult.model_validate_json(path.read_bytes()))
        except OSError as error:
            warnings.append(_problem(path, f"cannot be read: {error.strerror}"))
        except ValidationError as error:
            warnings.append(_problem(path, f"is no judge's result: {_reason(error)}"))
    return found


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]


def _text(path: Path, warnings: list[Problem]) -> str | None:
    data = _bytes(path, warnings)
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        warnings.append(_problem(path, f"is not UTF-8: {error.reason} at byte {error.start}"))
        return None


def _object(path: Path, warnings: list[Problem]) -> dict[str, object] | None:
    data = _bytes(path, warnings)
    if data is None:
        return None
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        warnings.append(_problem(path, f"is not JSON: {error}"))
        return None
    if not isinstance(value, dict):
        warnings.append(_problem(path, "is not a JSON object"))
        return None
    return value


def _bytes(path: Path, warnings: list[Problem]) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        warnings.append(_problem(path, "is missing"))
    except OSError as error:
        warnings.append(_problem(path, f"cannot be read: {error.strerror}"))
    return None


def _problem(path: Path, reason: str) -> Problem:
    return Problem(path=str(path), line=0, reason=reason)
