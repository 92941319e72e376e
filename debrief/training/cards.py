"""The card beside a training set: what a careful person asks before tuning a model on it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from debrief.markdown import plain, table
from debrief.redaction.finder import find
from debrief.scoring.dimensions import DIMENSIONS
from debrief.training.kinship import LanguageLines
from debrief.training.model import SampleMetadata, SkippedSessions
from debrief.training.options import TrainingOptions
from debrief.training.selection import below_bar

_Key = TypeVar("_Key")

HOW_TO_LOAD = "## How to load it\n\n"
"""Begins the last part."""
_MOST_ROWS = 15
_SESSIONS_NAMED = 5
_SHORTEST = 1 << 10
_REASONS = re.compile(r"(?:^|; )turn \d+: ([^:;]+)")
_NOT = {True: "", False: "not "}


_OF_A_SESSION = ("turns", "calls", "lines_added", "lines_removed", "redactions", "stand_ins")


class SetCounts:
    """What a training set comes to, counted as its lines go by, so that none has to be kept."""

    def __init__(self) -> None:
        self.samples = self.train = self.sessions = self.ready = 0
        self.size = self.tokens = self.train_tokens = self.longest = self.messages = 0
        self.subagent_lines = self.subagent_tokens = 0
        """Of subagents' own conversations, which count in nothing else."""
        self.subagents_left_out: Counter[str] = Counter()
        """Lines of these that were left out, by reason; their sessions' own lines stay."""
        self.lengths: Counter[int] = Counter()
        """Lines by a power of two that their tokens are at most."""
        self.totals: Counter[str] = Counter()
        """What is counted once a session, whatever its windows."""
        self.split_sessions = self.windows = 0
        self.days: set[str] = set()
        self.qualities: list[float] = []
        self.sources: Counter[tuple[str, str, str, str]] = Counter()
        self.licences: Counter[tuple[str, str]] = Counter()
        self.origins: Counter[str] = Counter()
        self.base_commits: Counter[str] = Counter()
        self.system_prompts: Counter[str] = Counter()
        self.tool_schemas: Counter[str] = Counter()
        self.scorers: Counter[tuple[str, str]] = Counter()
        self.languages: Counter[str] = Counter()
        self.not_trained: Counter[str] = Counter()
        """Turns with answers that are not trained on, by why."""
        self.judges: dict[tuple[str, str, float], list[float]] = defaultdict(list)

    @property
    def eval(self) -> int:
        """Lines on the held-out side."""
        return self.samples - self.train

    def add_session(self, languages: Iterable[LanguageLines]) -> None:
        """Count a session in."""
        self.sessions += 1
        for item in languages:
            self.languages[item.language] += item.lines

    def add_line(self, sample: SampleMetadata, size: int, messages: int, tokens: int) -> None:
        """Count a line in.

        Args:
            sample: its metadata.
            size: its bytes, line end included.
            messages: how many it has.
            tokens: of its messages' texts and calls.
        """
        if sample.parent_session:
            self.subagent_lines += 1
            self.subagent_tokens += tokens
            return
        self.samples += 1
        self.ready += sample.status == "ready"
        self.size += size
        self.messages += messages
        self.tokens += tokens
        if sample.split == "train":
            self.train += 1
            self.train_tokens += tokens
        self.longest = max(self.longest, tokens)
        self.lengths[max(_SHORTEST, 1 << max(0, tokens - 1).bit_length())] += 1
        self.days.add(sample.started[:10])
        self.qualities.append(sample.overall_quality)
        repository = sample.repository or "unknown"
        self.sources[sample.source, sample.tool, sample.model or "unknown", repository] += 1
        self.licences[repository, sample.licence] += 1
        self.origins[sample.prompt_origin] += 1
        self.system_prompts[sample.system_prompt] += 1
        self.tool_schemas[sample.tool_schemas] += 1
        if sample.base_commit:
            self.base_commits[sample.base_commit_origin] += 1
        self.scorers[sample.scoring_model, sample.scoring_fingerprint] += 1
        if sample.window == 1:
            self.totals.update({name: getattr(sample, name) for name in _OF_A_SESSION})
            for entry in sample.scores:
                if entry.kind == "judge":
                    self.judges[entry.name, entry.model, entry.weight].append(entry.value)
            self.not_trained.update(_REASONS.findall(sample.not_trained))
            if sample.windows > 1:
                self.split_sessions += 1
                self.windows += sample.windows


def training_card(
    task: str,
    fingerprint: str,
    options: TrainingOptions,
    considered: int,
    counts: SetCounts,
    left_out: Sequence[SkippedSessions],
    agreement: str,
) -> str:
    """Return the card as Markdown; it holds no time of writing, so it only changes with its set.

    Args:
        task: the set's task.
        fingerprint: the set's fingerprints.
        options: how sessions were selected.
        considered: sessions that there were to select from.
        counts: of the lines.
        left_out: the sessions that were not selected, by reason.
        agreement: of the judges with people, in words; empty when nobody labelled.
    """
    parts = [
        _summary(task, fingerprint, considered, counts, left_out),
        _sources(counts),
        _filters(options),
        _judges(counts, agreement),
        _left_out(left_out, counts),
        _content(counts),
        _loading(fingerprint),
    ]
    return _without_secrets("\n\n".join(parts) + "\n")


def _without_secrets(card: str) -> str:
    """Return a card without the secrets in it, such as the name of a session that was left out
    for one."""
    kept: list[str] = []
    last = 0
    for span in find(card):
        kept += (card[last : span.start], f"({span.kind})")
        last = span.end
    return "".join([*kept, card[last:]])


def _summary(
    task: str,
    fingerprint: str,
    considered: int,
    counts: SetCounts,
    left_out: Sequence[SkippedSessions],
) -> str:
    prompt, _, judges = fingerprint.rpartition("-")
    parts = [
        f"# Training set {plain(task)}, {plain(fingerprint)}",
        f"{counts.samples} samples from {considered} sessions of one task, one prompt "
        f"fingerprint (`{plain(prompt)}`) and one eval fingerprint (`{plain(judges)}`): "
        f"{counts.train} train, {counts.eval} eval; "
        f"{sum(row.count for row in left_out)} sessions were left out, "
        f"{sum(row.count for row in below_bar(left_out))} of them by the bar.",
    ]
    if counts.samples:
        parts.append(
            f"Sessions of {min(counts.days)} to {max(counts.days)}; overall quality "
            f"{min(counts.qualities):.2f} to {max(counts.qualities):.2f}, mean "
            f"{_mean(counts.qualities):.2f}; {counts.ready} samples are `ready` (something was "
            "changed, a validation command ran, no redaction needs a look)."
        )
    if counts.samples and counts.train in (0, counts.samples):
        side = "eval" if counts.train else "train"
        parts.append(
            f"**The {side} side is empty.** Sides go by repository and week, and none of this "
            f"set's falls on {side}: train on other sets as well, or ask for another eval share."
        )
    return "\n\n".join(parts)


def _sources(counts: SetCounts) -> str:
    body = _table(
        ("source", "tool", "model", "repository", "samples"),
        [(*key, str(count)) for key, count in ranked(counts.sources)],
    )
    origins, system_prompts, tool_schemas, commits = (
        ", ".join(f"{count} {origin}" for origin, count in ranked(each)) or "none"
        for each in (
            *(counts.origins, counts.system_prompts),
            *(counts.tool_schemas, counts.base_commits),
        )
    )
    licences = _table(
        ("repository", "licence", "samples"),
        [(name, known or "not known", str(n)) for (name, known), n in ranked(counts.licences)],
    )
    unknown = sum(count for (_, licence), count in counts.licences.items() if not licence)
    note = (
        f"Of {unknown} samples the licence is not known: their repositories were not at hand, or "
        "say nothing. Check before publishing."
        if unknown
        else "As the repositories' own files say; check before publishing."
    )
    return (
        f"## Where they are from\n\n{body}\n\nThe person's own prompts: {origins}. "
        f"System prompts: {system_prompts}. Tools: {tool_schemas}. "
        f"Samples whose base commit is known, by who names it: {commits}.\n\n"
        f"{licences}\n\n{note}"
    )


def _filters(options: TrainingOptions) -> str:
    chosen = {
        "left out by the bar": options.bar,
        "outcome": options.outcome,
        "minimum P(success)": f"{options.min_success_probability:g}",
        "minimum order of success": str(options.min_success_order or "no limit"),
        "status": options.status,
        "minimum overall quality": f"{options.min_overall_quality:g}",
        "a change was made": f"{_NOT[options.needs_change]}required",
        "a validation command ran": f"{_NOT[options.needs_validation]}required",
        "unsure redactions": f"{_NOT[options.allow_unsure_redactions]}allowed",
        "words made for a judge": f"{_NOT[options.allow_suspected_injections]}allowed",
        "tools": ", ".join(options.tools) or "all",
        "models": ", ".join(options.models) or "all",
        "dates": f"{options.since or 'any'} to {options.until or 'any'}",
        "most of one repository": str(options.max_per_repository or "no limit"),
        "most tokens of a line, with its tools": str(options.max_tokens or "no limit"),
        "near-duplicates": options.near_duplicates,
        "system prompt": options.system_prompt,
        "weights of lines": options.sample_weight,
        "eval share": f"{options.eval_share:g} of all pairs of repository and week",
    }
    return "## Filters\n\n" + _table(("filter", "chosen"), list(chosen.items()))


def _judges(counts: SetCounts, agreement: str) -> str:
    judges = _table(
        ("judge", "model", "weight", "sessions", "mean (0 to 1)"),
        [
            (name, model, f"{weight:g}", str(len(scores)), f"{_mean(scores):.2f}")
            for (name, model, weight), scores in sorted(counts.judges.items())
        ],
        "No judge's result is known for these sessions.",
    )
    scored = ", ".join(
        f"{plain(model)} (`{print_}`)" for (model, print_), _ in ranked(counts.scorers)
    )
    weights = ", ".join(f"{item.name} {item.weight:g}" for item in DIMENSIONS)
    return (
        f"## Who judged\n\n{judges}\n\nOverall quality is the weighted mean of the six "
        f"dimensions ({weights}), scored by {scored or 'nobody'}.\n\n"
        f"Agreement with people: {agreement.rstrip('.') or 'no human labels yet'}."
    )


def _left_out(left_out: Sequence[SkippedSessions], counts: SetCounts) -> str:
    rows = []
    for row in left_out:
        named = ", ".join(row.sessions[:_SESSIONS_NAMED])
        more = row.count - _SESSIONS_NAMED
        rows.append((row.reason, str(row.count), named + (f" and {more} more" if more > 0 else "")))
    parts = ["## Left out", _table(("why", "sessions", "which"), rows, "Nothing was left out.")]
    if counts.subagents_left_out:
        reasons = [(reason, str(count)) for reason, count in ranked(counts.subagents_left_out)]
        parts.append(_table(("why", "lines of subagents, whose sessions are in it"), reasons))
    return "\n\n".join(parts)


def _content(counts: SetCounts) -> str:
    total = sum(counts.languages.values())
    languages = ", ".join(
        f"{name} {count / total:.0%}" for name, count in ranked(counts.languages)[:_MOST_ROWS]
    )
    lengths = ", ".join(f"{count} up to {most:,}" for most, count in sorted(counts.lengths.items()))
    form = "One session a line"
    if counts.split_sessions:
        form += f" but for {counts.split_sessions} long ones, split into {counts.windows}"
    rows = [
        ("size", f"{counts.size:,} bytes"),
        (
            "tokens (o200k_base, messages and arguments)",
            f"{counts.tokens:,}: {counts.train_tokens:,} train, "
            f"{counts.tokens - counts.train_tokens:,} eval",
        ),
        ("tokens of the longest line", f"{counts.longest:,}"),
        ("lines by tokens", lengths or "none"),
        ("messages", f"{counts.messages:,}"),
        ("human turns", f"{counts.totals['turns']:,}"),
        ("tool calls", f"{counts.totals['calls']:,}"),
        ("lines added", f"{counts.totals['lines_added']:,}"),
        ("lines removed", f"{counts.totals['lines_removed']:,}"),
        ("languages, by changed lines", languages or "no edit recorded"),
        ("secrets replaced by placeholders", f"{counts.totals['redactions']:,}"),
        ("texts that stand for what was not recorded", f"{counts.totals['stand_ins']:,}"),
        (
            "turns with answers that carry weight 0, and why",
            "; ".join(f"{count:,}: {why}" for why, count in ranked(counts.not_trained)) or "none",
        ),
        (
            "subagents' own conversations, counted in nothing above",
            f"{counts.subagent_lines:,} lines of {counts.subagent_tokens:,} tokens",
        ),
    ]
    return (
        "## What is in it\n\n" + _table(("", ""), rows) + "\n\n"
        f"{form}; what subagents said and did is in lines of their own, which name the session as "
        "`parent_session`. What the model thought is in `reasoning_content`, where the transcript "
        "has it; the agent's reminders to its model are in no line. Where a transcript lacks a "
        "prompt, a result or the end of a turn, a text in round brackets stands for it. An "
        "assistant message of that kind, one that the person interrupted, one whose call was "
        "refused or has no result, what the person then rejected or corrected, and what was said "
        "on a prompt that is not known, or on news of work in the background, has `weight` 0. A "
        "line declares the tools that its session called, and those that its source describes; "
        "their names keep letters, digits, `_` and `-`, and a dot has become `_`. A schema is the "
        "source's own where it has one, else ours of tools that we know, else read off the calls. "
        "`metadata.scores` holds every score with its kind and range: dimensions and judges 0 to "
        "1, rubrics 1 to 5.\n\n"
        "Secrets are replaced; names of people, addresses and paths of their machines are as the "
        "sessions have them. What a model may be tuned on is also for the terms of whoever offers "
        "the models above to say."
    )


def _loading(fingerprint: str) -> str:
    return (
        f"{HOW_TO_LOAD}```python\n"
        "from datasets import load_dataset\n\n"
        f'samples = load_dataset("json", data_files="{plain(fingerprint)}.jsonl", '
        'split="train")\n'
        'train = samples.filter(lambda sample: sample["metadata"]["split"] == "train")\n'
        "```\n\n`datasets` 4.7 or newer. The `split` given to the loader is its own word for the "
        "whole file; the sides are in the metadata. `debrief export` writes a folder that loads "
        "as splits, in this and other formats."
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "None.") -> str:
    """Return a Markdown table of at most 15 rows; ``empty`` when there is none."""
    if not rows:
        return empty
    cells = [[plain(cell) for cell in row] for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        cells.append([f"and {len(rows) - _MOST_ROWS} more", *[""] * (len(header) - 1)])
    return table(header, cells)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def ranked(counts: Mapping[_Key, int]) -> list[tuple[_Key, int]]:
    """Return counts with the greatest first."""
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
