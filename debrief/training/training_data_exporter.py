"""Write the training sample of a judged plan: ``.debrief/training_data/<plan_id>/``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from debrief.files import write_folder
from debrief.judging.model import JudgeEvaluation
from debrief.judging.suites import SuiteRun
from debrief.models.fencing import LOOK_FIRST
from debrief.redaction.redactor import Redactor
from debrief.sessions.model import Session
from debrief.sessions.redaction import redact_session
from debrief.sessions.rendering import render_session
from debrief.sessions.sources import read_week, scan
from debrief.snapshots.capture import METADATA, PLAN, PROMPTS, read_metadata, refuse_link
from debrief.snapshots.captures import TRANSCRIPTS, Capture, read_capture
from debrief.training.lessons import FEEDBACK, TRACE

TRAINING_DATA = "training_data"


def sample_folder(debrief_folder: Path, plan_id: str) -> Path:
    """Return where a plan's training sample is filed."""
    return debrief_folder / TRAINING_DATA / plan_id


def create_training_data(
    debrief_folder: Path,
    redactor: Redactor,
    *,
    plan_id: str,
    plan: str,
    base: str,
    evaluations: Iterable[JudgeEvaluation],
    eval_fingerprint: str,
    eval_digest: str,
    tests: Mapping[str, SuiteRun | None],
    feedback: str | None,
) -> tuple[Path, int, list[str]]:
    """Write a plan's training sample, whole or not at all; one of the same plan is replaced.

    What is missing becomes a warning. No secret is written.

    Args:
        debrief_folder: the repository's ``.debrief``.
        redactor: of this machine.
        plan_id: names the folder.
        plan: its text.
        base: the commit that the work began from.
        evaluations: of its judges.
        eval_fingerprint: of the judges.
        eval_digest: the whole digest.
        tests: their outcome ``before`` and ``after``; None where they did not run.
        feedback: a person's; None keeps that of an earlier sample.

    Returns:
        The folder, how many files it holds, and what the sample lacks.

    Raises:
        InputError: the folder or one above it is a symbolic link.
        OSError: it cannot be written.
    """
    target = sample_folder(debrief_folder, plan_id)
    refuse_link(debrief_folder, target.parent, target)
    session = debrief_folder / "sessions" / plan_id
    capture = read_capture(session)
    warnings = [f"{problem.path} {problem.reason}" for problem in capture.problems]

    def redact(text: str) -> str:
        return redactor.redact(text).text

    files = {
        PLAN: redact(plan),
        **copy_prompts(capture, redact),
        **copy_and_update_metadata(
            capture, eval_fingerprint, eval_digest=eval_digest, base_commit=base
        ),
    }
    if trace := _trace(session / TRANSCRIPTS, redactor, warnings):
        files[TRACE] = trace
    for row in evaluations:
        files[f"judge_{row.judge}.json"] = _json(_result(row, redact))
        files[f"judge_{row.judge}.md"] = _page(row, redact)
    for name, run in tests.items():
        if run is not None:
            files[f"test_results_{name}.json"] = _json(msgspec.to_builtins(run))
    if feedback is None and (target / FEEDBACK).is_file():
        feedback = (target / FEEDBACK).read_bytes().decode("utf-8", "replace")
    if feedback and feedback.strip():
        files[FEEDBACK] = redact(feedback.strip() + "\n")
    written = {name: text.encode("utf-8", "replace") for name, text in files.items()}
    write_folder(target, written, replace=True)
    return target, len(files), warnings


def copy_prompts(capture: Capture, redact: Callable[[str], str]) -> dict[str, str]:
    """Return the prompts of a session as files of its sample; none where none were captured."""
    if capture.snapshot is None:
        return {}
    prompts = {"main": capture.snapshot.main, **capture.snapshot.subagents}
    return {f"{PROMPTS}/{name}.md": redact(text) for name, text in prompts.items()}


def copy_and_update_metadata(
    capture: Capture, eval_fingerprint: str, **more: str
) -> dict[str, str]:
    """Return a session's ``metadata.json`` with the eval fingerprint; every other key is kept.

    Without metadata of the session it holds nothing else.

    Args:
        capture: of the session.
        eval_fingerprint: of the judges.
        more: further keys.
    """
    known = read_metadata(Path(capture.folder)) if capture.metadata else {}
    return {METADATA: _json({**known, "eval_fingerprint": eval_fingerprint, **more})}


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


_OF_A_JUDGEMENT = (
    *("eval_fingerprint", "injection_suspected", "input_tokens", "output_tokens", "cost_usd"),
)


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
    by = f"weight {row.weight:g}, {row.answered_by or row.model}"
    warning = f"{LOOK_FIRST}\n\n" if row.injection_suspected else ""
    words = redact(row.feedback).strip()
    return f"# {row.judge}\n\nScore: {row.score:.2f} ({by})\n\n{warning}{words}\n"


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
