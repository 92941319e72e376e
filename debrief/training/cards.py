"""The card beside a training set: what a careful person asks before tuning a model on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from debrief.scoring.dimensions import DIMENSIONS
from debrief.training.model import LeftOut, SampleMetadata
from debrief.training.selection import TrainingOptions

_Key = TypeVar("_Key")

_MOST_ROWS = 15
_SESSIONS_NAMED = 5


class CardFacts(Struct, frozen=True, kw_only=True):
    """What a card is written from."""

    task: str
    fingerprint: str
    options: TrainingOptions
    considered: int
    samples: tuple[SampleMetadata, ...]
    size: int
    """Bytes of the file."""
    messages: int
    tokens: int
    languages: dict[str, int]
    """Lines added and removed, by language."""
    left_out: tuple[LeftOut, ...]
    agreement: str
    """With people, in words; empty when nobody labelled."""


def training_card(facts: CardFacts) -> str:
    """Return the card as Markdown; it holds no time of writing, so it only changes with its set."""
    parts = [
        _summary(facts),
        _sources(facts.samples),
        _filters(facts.options),
        _judges(facts),
        _left_out(facts),
        _content(facts),
        _loading(facts),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(facts: CardFacts) -> str:
    samples = facts.samples
    train = sum(sample.split == "train" for sample in samples)
    prompt, _, judges = facts.fingerprint.rpartition("-")
    lines = [
        f"# Training set {_plain(facts.task)}, {_plain(facts.fingerprint)}",
        "",
        f"{len(samples)} samples from {facts.considered} sessions of one task, one prompt "
        f"fingerprint (`{_plain(prompt)}`) and one eval fingerprint (`{_plain(judges)}`): "
        f"{train} train, {len(samples) - train} eval; {sum(r.count for r in facts.left_out)} "
        "sessions were left out.",
    ]
    if samples:
        starts = sorted(sample.started for sample in samples)
        values = sorted(sample.overall_quality for sample in samples)
        lines += [
            "",
            f"Sessions of {starts[0][:10]} to {starts[-1][:10]}; overall quality "
            f"{values[0]:.2f} to {values[-1]:.2f}, mean {sum(values) / len(values):.2f}.",
        ]
    if samples and train in (0, len(samples)):
        side = "eval" if train else "train"
        lines += [
            "",
            f"**The {side} side is empty.** Sides go by repository and week, and none of this "
            f"set's falls on {side}: train on other sets as well, or ask for another eval share.",
        ]
    return "\n".join(lines)


def _sources(samples: Sequence[SampleMetadata]) -> str:
    rows = Counter(
        (sample.source, sample.tool, sample.model or "unknown", sample.repository or "unknown")
        for sample in samples
    )
    origins = Counter(sample.prompt_origin for sample in samples)
    body = _table(
        ("source", "tool", "model", "repository", "samples"),
        [(*key, str(count)) for key, count in _ranked(rows)],
    )
    told = ", ".join(f"{count} {origin}" for origin, count in _ranked(origins)) or "none"
    return (
        f"## Where they are from\n\n{body}\n\nPrompts in force: {told}. "
        "The licences of the repositories are not recorded: check them before publishing."
    )


def _filters(options: TrainingOptions) -> str:
    chosen = {
        "minimum overall quality": f"{options.min_overall_quality:g}",
        "a change was made": "required" if options.require_change else "not required",
        "a validation command ran": "required" if options.require_validation else "not required",
        "unsure redactions": "allowed" if options.allow_unsure_redactions else "not allowed",
        "tools": ", ".join(options.tools) or "all",
        "models": ", ".join(options.models) or "all",
        "dates": f"{options.since or 'any'} to {options.until or 'any'}",
        "most of one repository": str(options.max_per_repository or "no limit"),
        "most tokens of a line": str(options.max_tokens or "no limit"),
        "near-duplicates": options.near_duplicates,
        "eval share": f"{options.eval_share:g} of all pairs of repository and week",
    }
    return "## Filters\n\n" + _table(("filter", "chosen"), list(chosen.items()))


def _judges(facts: CardFacts) -> str:
    by_judge: dict[tuple[str, str, float], list[float]] = {}
    for sample in facts.samples:
        for entry in sample.scores:
            if entry.kind == "judge":
                by_judge.setdefault((entry.name, entry.model, entry.weight), []).append(entry.value)
    judges = _table(
        ("judge", "model", "weight", "sessions", "mean (0 to 1)"),
        [
            (name, model, f"{weight:g}", str(len(values)), f"{sum(values) / len(values):.2f}")
            for (name, model, weight), values in sorted(by_judge.items())
        ],
        "No judge's result is known for these sessions.",
    )
    scorers = Counter(
        (sample.scoring_model, sample.scoring_fingerprint) for sample in facts.samples
    )
    scored = ", ".join(f"{model} (`{print_}`)" for (model, print_), _ in _ranked(scorers))
    weights = ", ".join(f"{item.name} {item.weight:g}" for item in DIMENSIONS)
    return (
        f"## Who judged\n\n{judges}\n\nOverall quality is the weighted mean of the six "
        f"dimensions ({weights}), scored by {scored or 'nobody'}.\n\n"
        f"Agreement with people: {facts.agreement or 'no human labels yet'}."
    )


def _left_out(facts: CardFacts) -> str:
    rows = []
    for row in facts.left_out:
        named = ", ".join(row.sessions[:_SESSIONS_NAMED])
        more = row.count - _SESSIONS_NAMED
        rows.append((row.reason, str(row.count), named + (f" and {more} more" if more > 0 else "")))
    return "## Left out\n\n" + _table(("why", "sessions", "which"), rows, "Nothing was left out.")


def _content(facts: CardFacts) -> str:
    samples = [sample for sample in facts.samples if sample.window == 1]
    total = sum(facts.languages.values())
    languages = ", ".join(
        f"{name} {count / total:.0%}" for name, count in _ranked(facts.languages)[:_MOST_ROWS]
    )
    stand_ins = sum(sample.stand_ins for sample in samples)
    split = [sample for sample in samples if sample.windows > 1]
    form = "One session a line"
    if split:
        form += f" but for {len(split)} long ones, split into {sum(s.windows for s in split)}"
    rows = [
        ("size", f"{facts.size:,} bytes"),
        ("tokens (o200k_base, messages and arguments)", f"{facts.tokens:,}"),
        ("messages", f"{facts.messages:,}"),
        ("human turns", f"{sum(sample.turns for sample in samples):,}"),
        ("tool calls", f"{sum(sample.calls for sample in samples):,}"),
        ("lines added", f"{sum(sample.lines_added for sample in samples):,}"),
        ("lines removed", f"{sum(sample.lines_removed for sample in samples):,}"),
        ("languages, by changed lines", languages or "no edit recorded"),
        ("secrets replaced by placeholders", f"{sum(s.redactions for s in samples):,}"),
        ("texts that stand for what was not recorded", f"{stand_ins:,}"),
    ]
    return (
        "## What is in it\n\n" + _table(("", ""), rows) + "\n\n"
        f"{form}, subagents' own messages apart. Where a transcript lacks a prompt, a "
        "result or the end of a turn, a text in round brackets stands for it; an assistant "
        "message of that kind has `weight` 0. Tool names keep letters, digits, `_` and `-`; a "
        "dot has become `_`. Schemas of tools that we know are ours, others are read off the "
        "calls. `metadata.scores` holds every score with its kind and range: dimensions and "
        "judges 0 to 1, rubrics 1 to 5."
    )


def _loading(facts: CardFacts) -> str:
    return (
        "## How to load it\n\n```python\n"
        "from datasets import load_dataset\n\n"
        f'samples = load_dataset("json", data_files="{_plain(facts.fingerprint)}.jsonl", '
        'split="train")\n'
        'train = samples.filter(lambda sample: sample["metadata"]["split"] == "train")\n'
        "```\n\n`datasets` 4.7 or newer. The `split` given to the loader is its own word for the "
        "whole file; the sides are in the metadata."
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "None.") -> str:
    if not rows:
        return empty
    lines = [_row(heads), _row(["---"] * len(heads)), *map(_row, rows[:_MOST_ROWS])]
    if len(rows) > _MOST_ROWS:
        lines.append(_row([f"and {len(rows) - _MOST_ROWS} more", *[""] * (len(heads) - 1)]))
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    """Return a name so that it cannot break out of its place in the Markdown."""
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    for letter in "\\`|<>[]":
        text = text.replace(letter, f"\\{letter}")
    return text.strip()


def _ranked(counts: Mapping[_Key, int]) -> list[tuple[_Key, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
