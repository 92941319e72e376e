"""Judged plans as ``.debrief/training_data/<plan_id>/`` folders: written, and read, old ones too.

The folders of earlier tools (``.lw_coder``, ``.weft``) have the same layout with parts missing.
A part that is missing is None and is named in a warning; a part that is broken likewise, so that
one bad file never costs the sample.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, to_builtins
from pydantic import TypeAdapter, ValidationError

from debrief.errors import InputError
from debrief.files import write_folder
from debrief.judging.model import JudgeEvaluation
from debrief.judging.suites import SuiteRun
from debrief.redaction.redactor import Redactor
from debrief.redaction.sessions import redact_session
from debrief.sessions.model import Problem, Session
from debrief.sessions.rendering import render_session
from debrief.sessions.sources import read_week, scan
from debrief.snapshots.capture import METADATA, PROMPTS, read_metadata, refuse_link
from debrief.snapshots.captures import TRANSCRIPTS, read_capture
from debrief.training.model import JudgeResult, TrainingSample


class LoadedSample(Struct, frozen=True):
    """A sample, and what its folder lacks."""

    sample: TrainingSample
    warnings: tuple[Problem, ...]


_Part = TypeVar("_Part")
_RESULTS: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])
_FROM_METADATA = {"tool", "model", "prompt_fingerprint", "eval_fingerprint"}


def load_training_sample(folder: Path) -> LoadedSample:
    """Read one folder.

    Raises:
        InputError: it is not there, or holds no part of a sample at all.
    """
    if not folder.is_dir():
        raise InputError(str(folder), "is no folder", "Name a folder of .debrief/training_data.")
    capture = read_capture(folder)
    warnings = list(capture.problems)

    def read(path: Path, decode: Callable[[bytes], _Part]) -> _Part | None:
        try:
            return decode(path.read_bytes())
        except FileNotFoundError:
            reason = "is missing"
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
        except UnicodeDecodeError as error:
            reason = f"is not UTF-8: {error.reason} at byte {error.start}"
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            reason = ": ".join([*map(str, first["loc"]), first["msg"]])
        warnings.append(Problem(path=str(path), line=0, reason=reason))
        return None

    judged = [
        read(path, JudgeResult.model_validate_json) for path in sorted(folder.glob("judge_*.json"))
    ]
    results = tuple(result for result in judged if result is not None)
    if not results:
        reason = "holds no judge_*.json that can be read"
        warnings.append(Problem(path=str(folder), line=0, reason=reason))
    parts = {
        "plan_content": read(folder / "plan.md", bytes.decode),
        "code_trace": read(folder / "code_trace.md", bytes.decode),
        "human_feedback": read(folder / "human_feedback.md", bytes.decode),
        "test_results_before": read(folder / "test_results_before.json", _RESULTS.validate_json),
        "test_results_after": read(folder / "test_results_after.json", _RESULTS.validate_json),
        "used_prompts": capture.snapshot,
    }
    metadata = capture.metadata
    if not results and metadata is None and not any(one is not None for one in parts.values()):
        raise InputError(str(folder), "holds no part of a training sample")
    known = metadata.model_dump(include=_FROM_METADATA) if metadata else {}
    sample = TrainingSample(plan_id=folder.name, judge_results=results, **parts, **known)
    return LoadedSample(sample, tuple(warnings))


FEEDBACK = "human_feedback.md"


class JudgedPlan(Struct, frozen=True, kw_only=True):
    """A plan's work and all that was said of it."""

    plan_id: str
    plan: str
    base: str
    """The commit that the work began from."""
    evaluations: tuple[JudgeEvaluation, ...]
    eval_fingerprint: str
    eval_digest: str
    tests_before: SuiteRun | None = None
    tests_after: SuiteRun | None = None
    feedback: str | None = None
    """A person's; None keeps what an earlier export holds."""


class Exported(Struct, frozen=True):
    """Where the sample is, and what it lacks."""

    folder: Path
    files: tuple[str, ...]
    warnings: tuple[str, ...]


def export_plan(judged: JudgedPlan, debrief_folder: Path, redactor: Redactor) -> Exported:
    """Write a plan's training data folder, whole or not at all; one of the same plan is replaced.

    Whatever is missing becomes a warning. No secret is written.

    Args:
        judged: the plan.
        debrief_folder: the repository's ``.debrief``.
        redactor: of this machine.

    Raises:
        InputError: the folder or one above it is a symbolic link.
        OSError: it cannot be written.
    """
    target = debrief_folder / "training_data" / judged.plan_id
    refuse_link(debrief_folder, target.parent, target)
    folder = debrief_folder / "sessions" / judged.plan_id
    capture = read_capture(folder)
    warnings = [f"{problem.path} {problem.reason}" for problem in capture.problems]

    def redact(text: str) -> str:
        return redactor.redact(text).text

    metadata = {
        **(read_metadata(folder) if capture.metadata else {}),
        "eval_fingerprint": judged.eval_fingerprint,
        "eval_digest": judged.eval_digest,
        "base_commit": judged.base,
    }
    files = {"plan.md": redact(judged.plan), METADATA: _json(metadata)}
    if capture.snapshot:
        prompts = {"main": capture.snapshot.main, **capture.snapshot.subagents}
        files |= {f"{PROMPTS}/{name}.md": redact(text) for name, text in prompts.items()}
    trace = _trace(folder / TRANSCRIPTS, redactor, warnings)
    if trace:
        files["code_trace.md"] = trace
    for row in judged.evaluations:
        files[f"judge_{row.judge}.json"] = _json(_result(row, redact))
        files[f"judge_{row.judge}.md"] = _page(row, redact)
    for name, run in (("before", judged.tests_before), ("after", judged.tests_after)):
        if run is not None:
            files[f"test_results_{name}.json"] = _json(to_builtins(run))
    feedback = judged.feedback
    if feedback is None and (target / FEEDBACK).is_file():
        feedback = (target / FEEDBACK).read_bytes().decode("utf-8", "replace")
    if feedback and feedback.strip():
        files[FEEDBACK] = redact(feedback.strip() + "\n")
    written = {name: text.encode("utf-8", "replace") for name, text in files.items()}
    write_folder(target, written, replace=True)
    return Exported(target, tuple(sorted(files)), tuple(warnings))


def _trace(folder: Path, redactor: Redactor, warnings: list[str]) -> str:
    """Return the sessions that were filed under the plan, as text, in the order they began."""
    if not folder.is_dir():
        warnings.append(f"{folder} is missing: there is no trace of the session")
        return ""
    found, sessions = scan([folder]), []
    for week in found.weeks():
        for item in read_week(found, week, lambda session: redact_session(session, redactor)):
            if isinstance(item, Session):
                sessions.append(item)
            elif not item.expected:
                warnings.append(f"{item.path}:{item.line}: {item.reason}")
    if not sessions:
        warnings.append(f"{folder} holds no session")
    sessions.sort(key=lambda session: (session.started, session.id))
    return "".join(f"{render_session(session)}\n" for session in sessions)


_OF_A_JUDGEMENT = ("eval_fingerprint", "input_tokens", "output_tokens", "cost_usd")


def _result(row: JudgeEvaluation, redact: Callable[[str], str]) -> dict[str, Any]:
    return {
        "judge_name": row.judge,
        "score": row.score,
        "weight": row.weight,
        "feedback": redact(row.feedback),
        "model": row.answered_by or row.model,
        **{name: getattr(row, name) for name in _OF_A_JUDGEMENT},
    }


def _page(row: JudgeEvaluation, redact: Callable[[str], str]) -> str:
    return (
        f"# {row.judge}\n\nScore: {row.score:.2f} (weight {row.weight:g}, "
        f"{row.answered_by or row.model})\n\n{redact(row.feedback).strip()}\n"
    )


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
