"""Training samples to improve prompts with: what was asked, and what was found of how it went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.markdown import shorten
from debrief.slugs import slugify
from debrief.snapshots.model import UNKNOWN, PromptSnapshot
from debrief.training.cards import ranked
from debrief.training.conversations import NO_PROMPT
from debrief.training.model import JudgeResult, SampleLine, TrainingSample
from debrief.training.plans import load_training_sample
from debrief.training.selection import side_of
from debrief.training.store import INDEX, LINES, LineRow, TrainingSetRow, training_path

_LINES = msgspec.json.Decoder(SampleLine)
_LONGEST_REQUEST = 12_000
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
    for partition in lake.partitions(INDEX):
        for row in lake.read(INDEX, partition, TrainingSetRow):
            if chosen.takes_set(row):
                yield from filter(chosen.takes, _samples(lake, row, partition))


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
            yield sample.model_copy(update={"split": side_of(place.name, _ANY_DAY)})


def prompts_of(samples: Iterable[TrainingSample]) -> dict[str, int]:
    """Return how many samples there are of each known prompt fingerprint, the most first."""
    counts = Counter(sample.prompt_fingerprint for sample in samples if sample.used_prompts)
    return {name: count for name, count in ranked(counts) if name and name != UNKNOWN}


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


def _samples(lake: Lake, row: TrainingSetRow, partition: str) -> Iterator[TrainingSample]:
    with lake.open_bytes(training_path(row.task, row.fingerprint)) as file:
        for line in lake.read(LINES, partition, LineRow):
            if file is not None and line.window == 1:
                file.seek(line.offset)
                yield _sample(_LINES.decode(file.read(line.size)))


def _sample(line: SampleLine) -> TrainingSample:
    metadata = line.metadata
    texts = (message.content for message in line.messages if message.role == "user")
    request = next((text for text in texts if text != NO_PROMPT), "")
    main, *subagents = metadata.prompts
    known = bool(main.text.strip())
    return TrainingSample(
        plan_id=metadata.session_id,
        plan_content=request[:_LONGEST_REQUEST],
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
        used_prompts=PromptSnapshot(
            main=main.text, subagents={prompt.name: prompt.text for prompt in subagents}
        )
        if known
        else None,
        tool=metadata.tool,
        model=metadata.model or None,
        prompt_fingerprint=metadata.prompt_fingerprint,
        eval_fingerprint=metadata.eval_fingerprint,
        split=metadata.split,
    )
