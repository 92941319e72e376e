"""Samples for the prompt optimiser, from training sets and from judged plans.

A plan's folder is ``.debrief/training_data/<plan_id>/``. The folders of earlier tools
(``.lw_coder``, ``.weft``) have the same layout with parts missing. A part that is missing is None
and is named in a warning; a part that is broken likewise, so that one bad file never costs the
sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct
from pydantic import TypeAdapter, ValidationError

from debrief.errors import InputError
from debrief.execution.model import Execution
from debrief.execution.store import executions_by_session, results_before_and_after
from debrief.keys import slugify, week_of
from debrief.lake import Lake
from debrief.markdown import shorten
from debrief.sessions.model import Problem, Session
from debrief.sessions.store import SESSIONS_TABLE
from debrief.signals.request import points_elsewhere, request_of
from debrief.snapshots.capture import MAIN, PLAN, PROMPTS
from debrief.snapshots.captures import read_capture
from debrief.snapshots.fingerprint import compute_prompt_fingerprint
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
from debrief.training.options import EVAL_SHARE
from debrief.training.splits import BY_WEEK

TRACE, FEEDBACK = "code_trace.md", "human_feedback.md"
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


class PlanLessons(Struct, frozen=True):
    """The samples of judged plans."""

    samples: tuple[TrainingSample, ...] = ()
    unusable: tuple[Problem, ...] = ()
    """Folders of which no sample can be made, each with what it lacks."""


def plan_lessons(folder: Path, chosen: LessonFilter, eval_share: float = EVAL_SHARE) -> PlanLessons:
    """Return the samples that ``eval`` filed or ``migrate`` brought, by plan id.

    Each plan is on a side of its own by a hash of its id: it stays there whatever else is filed.

    Args:
        folder: ``.debrief/training_data``; it need not be there.
        chosen: which samples.
        eval_share: the share of plans that is held out.
    """
    samples, unusable = [], []
    for place in sorted(folder.iterdir()) if folder.is_dir() else ():
        if place.name.startswith(".") or chosen.task not in ("", slugify(place.name)):
            continue
        try:
            loaded = load_training_sample(place)
        except InputError as error:
            unusable.append(Problem(path=str(place), line=0, reason=error.reason))
            continue
        sample, lacks = loaded.sample, "; ".join(_lacks(place, loaded))
        prompt, judges = sample.prompt_fingerprint, sample.eval_fingerprint
        if not prompt and sample.used_prompts:
            prompt = compute_prompt_fingerprint(sample.used_prompts)
        if chosen.fingerprint not in ("", prompt, f"{prompt}-{judges}") or not chosen.takes(sample):
            continue
        if lacks:
            unusable.append(Problem(path=str(place), line=0, reason=lacks))
            continue
        side = BY_WEEK.side_of(place.name, _ANY_DAY, eval_share)
        samples.append(sample.model_copy(update={"split": side, "prompt_fingerprint": prompt}))
    return PlanLessons(tuple(samples), tuple(unusable))


def _lacks(folder: Path, loaded: LoadedSample) -> Iterator[str]:
    """Yield what a sample lacks to be trained on: the plan or the prompts."""
    sample = loaded.sample
    parts = (
        (PLAN, sample.plan_content or ""),
        (PROMPTS, sample.used_prompts.main if sample.used_prompts else ""),
    )
    for name, text in parts:
        if text.strip():
            continue
        place = folder / name
        found = [each for each in loaded.warnings if Path(each.path).is_relative_to(place)]
        yield from (f"{Path(each.path).relative_to(folder)} {each.reason}" for each in found)
        if not found:
            yield f"{name if name == PLAN else f'{PROMPTS}/{MAIN}'} is empty"


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
    plan = folder / PLAN
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
        "code_trace": read(folder / TRACE, bytes.decode),
        "human_feedback": read(folder / FEEDBACK, bytes.decode),
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
