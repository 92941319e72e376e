"""Samples for the prompt optimiser, from training sets and from judged plans.

A plan's folder is ``.debrief/training_data/<plan_id>/``. The folders of earlier tools
(``.lw_coder``, ``.weft``) have the same layout with parts missing. A part that is missing is None
and is named in a warning; a part that is broken likewise, so that one bad file never costs the
sample.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from pydantic import TypeAdapter, ValidationError

from debrief.errors import InputError
from debrief.execution.model import Execution
from debrief.execution.store import executions_by_session, results_before_and_after
from debrief.facts.request import points_elsewhere, request_of
from debrief.files import write_folder
from debrief.judging.model import JudgeEvaluation
from debrief.judging.suites import SuiteRun
from debrief.keys import slugify, week_of
from debrief.lake import Lake
from debrief.markdown import shorten
from debrief.models.fencing import LOOK_FIRST
from debrief.redaction.redactor import Redactor
from debrief.sessions.model import Problem, Session
from debrief.sessions.redaction import redact_session
from debrief.sessions.rendering import render_session
from debrief.sessions.sources import read_week, scan
from debrief.sessions.store import SESSIONS_TABLE
from debrief.snapshots.capture import METADATA, PROMPTS, read_metadata, refuse_link
from debrief.snapshots.captures import TRANSCRIPTS, read_capture
from debrief.snapshots.model import PromptSnapshot
from debrief.training.conversations import NO_PROMPT
from debrief.training.given import without_reminder
from debrief.training.manifest import stored_sets
from debrief.training.model import (
    LINES,
    JudgeResult,
    LineRow,
    SampleLine,
    SampleMetadata,
    TrainingSample,
    TrainingSetRow,
    training_path,
)
from debrief.training.splits import BY_WEEK

FEEDBACK = "human_feedback.md"
_Part = TypeVar("_Part")
_RESULTS: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])
_FROM_METADATA = {"tool", "model", "prompt_fingerprint", "eval_fingerprint"}
_LINES = msgspec.json.Decoder(SampleLine)
_LONGEST_REQUEST = 60_000
_LONGEST_COMMENT = 600
_ANY_DAY = datetime(2026, 1, 5, tzinfo=UTC)
"""Plans have no week of their own: the same one for all."""


class LessonFilter(Struct, frozen=True, kw_only=True):
    """Which samples; empty for all."""

    task: str = ""
    tool: str = ""
    model: str = ""
    fingerprint: str = ""
    """A prompt fingerprint, or a pair of prompt and eval fingerprint."""

    def takes_set(self, row: TrainingSetRow) -> bool:
        """Return whether a training set can hold such samples."""
        prompt = row.fingerprint.rpartition("-")[0]
        return self.task in ("", row.task) and self.fingerprint in ("", row.fingerprint, prompt)

    def takes(self, sample: TrainingSample) -> bool:
        """Return whether a sample is one of them."""
        return self.tool in ("", sample.tool) and self.model in ("", sample.model or "")


def lessons_of(lake: Lake, chosen: LessonFilter) -> Iterator[TrainingSample]:
    """Yield the samples of a lake's training sets, in the order of their lines.

    Of a session in windows the first is taken, where the request stands.
    """
    executions = executions_by_session(lake)
    for row in stored_sets(lake).sets:
        if chosen.takes_set(row):
            yield from filter(chosen.takes, _samples(lake, row, executions))


def plan_lessons(folder: Path, chosen: LessonFilter) -> Iterator[TrainingSample]:
    """Yield the samples that ``eval --export`` wrote, by plan id, each on a side of its own.

    A plan's side is a hash of its id: it stays there whatever else is exported. Samples without
    a plan or prompts, and folders that hold no sample, are passed over.

    Args:
        folder: ``.debrief/training_data``; it need not be there.
        chosen: which samples.
    """
    for place in sorted(folder.iterdir()) if folder.is_dir() else ():
        if place.name.startswith(".") or chosen.task not in ("", slugify(place.name)):
            continue
        try:
            sample = load_training_sample(place).sample
        except InputError:
            continue
        prompt, judges = sample.prompt_fingerprint, sample.eval_fingerprint
        named = chosen.fingerprint in ("", prompt, f"{prompt}-{judges}")
        if named and sample.plan_content and sample.used_prompts and chosen.takes(sample):
            yield sample.model_copy(update={"split": BY_WEEK.side_of(place.name, _ANY_DAY)})


def findings_of(sample: TrainingSample) -> str:
    """Return what was found of a session, in lines: who found it, the score, and why."""
    lines = [
        f"- {result.judge_name}: {result.score:.2f} of 1"
        + (f". {shorten(result.feedback, _LONGEST_COMMENT)}" if result.feedback.strip() else "")
        for result in sample.judge_results
    ]
    if sample.human_feedback:
        lines.append(f"- the person: {shorten(sample.human_feedback, _LONGEST_COMMENT)}")
    return "\n".join(lines)


def _samples(
    lake: Lake, row: TrainingSetRow, executions: Mapping[str, Execution]
) -> Iterator[TrainingSample]:
    with lake.open_bytes(training_path(row.task, row.fingerprint)) as file:
        for line in lake.read(LINES, f"{row.task}/{row.fingerprint}", LineRow):
            if file is not None and line.window == 1 and not line.parent_session:
                file.seek(line.offset)
                sample = _LINES.decode(file.read(line.size))
                yield _sample(sample, executions.get(line.session_id), lake)


def _sample(line: SampleLine, execution: Execution | None, lake: Lake) -> TrainingSample:
    metadata = line.metadata
    before, after = (execution and results_before_and_after(execution)) or (None, None)
    asked = (message.content for message in line.messages if message.role == "user")
    texts = map(without_reminder, asked)
    request = next((text for text in texts if text != NO_PROMPT), "")
    if points_elsewhere(request):
        request = _task_of(lake, metadata) or request
    main, *subagents = metadata.prompts
    theirs = {prompt.name: prompt.text for prompt in subagents}
    prompts = PromptSnapshot(main=main.text, subagents=theirs)
    return TrainingSample(
        plan_id=metadata.session_id,
        plan_content=request[:_LONGEST_REQUEST],
        test_results_before=before,
        test_results_after=after,
        judge_results=tuple(
            JudgeResult(
                judge_name=entry.name,
                score=entry.value,
                weight=entry.weight,
                feedback=entry.comment,
            )
            for entry in metadata.scores
            if entry.kind in ("judge", "dimension")
        ),
        used_prompts=prompts if main.text.strip() else None,
        tool=metadata.tool,
        model=metadata.model or None,
        prompt_fingerprint=metadata.prompt_fingerprint,
        eval_fingerprint=metadata.eval_fingerprint,
        split=metadata.split,
    )


def _task_of(lake: Lake, metadata: SampleMetadata) -> str:
    """Return the task of a session whose first message only points to it; empty if unknown."""
    week = week_of(datetime.fromisoformat(metadata.started))
    sessions = lake.read(SESSIONS_TABLE, week, Session, ("id", {metadata.session_id}))
    asked = next((request_of(session) for session in sessions), None)
    return asked.text if asked is not None else ""


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
    plan = folder / "plan.md"
    warnings = [problem for problem in capture.problems if problem.path != str(plan)]

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

    judged = sorted(folder.glob("judge_*.json"))
    results = tuple(filter(None, (read(path, JudgeResult.model_validate_json) for path in judged)))
    if not results:
        reason = "holds no judge_*.json that can be read"
        warnings.append(Problem(path=str(folder), line=0, reason=reason))
    parts = {
        "plan_content": read(plan, bytes.decode),
        "code_trace": read(folder / "code_trace.md", bytes.decode),
        "human_feedback": read(folder / "human_feedback.md", bytes.decode),
        "test_results_before": read(folder / "test_results_before.json", _RESULTS.validate_json),
        "test_results_after": read(folder / "test_results_after.json", _RESULTS.validate_json),
        "used_prompts": capture.snapshot,
    }
    metadata = capture.metadata
    if not results and metadata is None and not any(part is not None for part in parts.values()):
        raise InputError(str(folder), "holds no part of a training sample")
    known = metadata.model_dump(include=_FROM_METADATA) if metadata else {}
    sample = TrainingSample(plan_id=folder.name, judge_results=results, **parts, **known)
    return LoadedSample(sample, tuple(warnings))


def export_plan(
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
    """Write a plan's training data folder, whole or not at all; one of the same plan is replaced.

    Whatever is missing becomes a warning. No secret is written.

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
        feedback: a person's; None keeps what an earlier export holds.

    Returns:
        The folder, how many files it holds, and what the sample lacks.

    Raises:
        InputError: the folder or one above it is a symbolic link.
        OSError: it cannot be written.
    """
    target = debrief_folder / "training_data" / plan_id
    refuse_link(debrief_folder, target.parent, target)
    folder = debrief_folder / "sessions" / plan_id
    capture = read_capture(folder)
    warnings = [f"{problem.path} {problem.reason}" for problem in capture.problems]

    def redact(text: str) -> str:
        return redactor.redact(text).text

    metadata = {
        **(read_metadata(folder) if capture.metadata else {}),
        "eval_fingerprint": eval_fingerprint,
        "eval_digest": eval_digest,
        "base_commit": base,
    }
    files = {"plan.md": redact(plan), METADATA: _json(metadata)}
    if capture.snapshot:
        prompts = {"main": capture.snapshot.main, **capture.snapshot.subagents}
        files |= {f"{PROMPTS}/{name}.md": redact(text) for name, text in prompts.items()}
    trace = _trace(folder / TRANSCRIPTS, redactor, warnings)
    if trace:
        files["code_trace.md"] = trace
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
