"""The card beside a training set: what a careful person asks before tuning a model on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, TypeVar

from debrief.markdown import plain, table
from debrief.redaction.finder import find
from debrief.scoring.dimensions import DIMENSIONS
from debrief.scoring.verdict import SHOWN, VERDICT_NAMES
from debrief.sessions.readers import READERS
from debrief.training.model import LineRow, NotTrained, SampleMetadata, SkippedSessions
from debrief.training.options import TrainingOptions
from debrief.training.selection import by_verdict

_Key = TypeVar("_Key")

HOW_TO_LOAD = "## How to load it\n\n"
"""Begins the last part."""
_MOST_ROWS = 15
_SESSIONS_NAMED = 5
_SHORTEST = 1 << 10
_NOT = {True: "", False: "not "}


_OF_A_SESSION = {
    "turns": "human turns",
    "calls": "tool calls",
    "lines_added": "lines added",
    "lines_removed": "lines removed",
    "redactions": "secrets replaced by placeholders",
    "stand_ins": "texts that stand for what was not recorded",
    "machine_texts": "texts in requests that no person wrote",
}


class SetCounts:
    """What a training set comes to, counted as its lines go by: no text of one has to be kept."""

    def __init__(self) -> None:
        self.rows: list[LineRow] = []
        """Of the sessions' own lines."""
        self.subagents: list[LineRow] = []
        """Of subagents' own conversations, which count in nothing else."""
        self.subagents_left_out: Counter[str] = Counter()
        """Lines of these that were left out, by reason; their sessions' own lines stay."""
        self.personal = 0
        """Lines, subagents' included, with home folders, mail addresses or phone numbers."""
        self.totals: Counter[str] = Counter()
        """What is counted once a session, whatever its windows."""
        self.by: defaultdict[str, Counter[Any]] = defaultdict(Counter)
        """Lines by a part of the metadata."""
        self.languages: Counter[str] = Counter()
        """Changed lines of code."""
        self.not_trained: Counter[str] = Counter()
        """Turns with answers that are not trained on, by why."""
        self._untrained: set[tuple[str, int, str]] = set()
        self.judges: dict[tuple[str, str, float], list[float]] = defaultdict(list)

    @property
    def train(self) -> list[LineRow]:
        """The lines that are not held out."""
        return [row for row in self.rows if row.split == "train"]

    def add_line(
        self, sample: SampleMetadata, not_trained: Iterable[NotTrained], row: LineRow
    ) -> None:
        """Count a line in."""
        if sample.parent_session:
            self.subagents.append(row)
            return
        self.rows.append(row)
        repository, by = sample.repository or "unknown", self.by
        by["day"][sample.started[:10]] += 1
        by["source"][sample.source, sample.tool, sample.model or "unknown", repository] += 1
        by["licence"][repository, sample.licence] += 1
        by["scorer"][sample.scoring_model, sample.scoring_fingerprint] += 1
        for name in ("prompt_origin", "system_prompt", "tool_schemas", "base_commit_origin"):
            by[name][getattr(sample, name)] += 1
        untrained = {(sample.session_id, why.turn, why.kind) for why in not_trained}
        self.not_trained.update(kind for _, _, kind in untrained - self._untrained)
        self._untrained |= untrained
        if sample.window == 1:
            self.totals.update({name: getattr(sample, name) for name in _OF_A_SESSION})
            for entry in sample.scores:
                if entry.kind == "judge":
                    self.judges[entry.name, entry.model, entry.weight].append(entry.value)
            self.totals["cut"] += sample.cut_turns > 0
            if sample.windows > 1:
                self.totals.update(split_sessions=1, windows=sample.windows)


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
        _replaced(counts),
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


def _replaced(counts: SetCounts) -> str:
    lines = len(counts.rows) + len(counts.subagents)
    return (
        "## What was replaced, and what was not\n\n"
        "Passwords and tokens were replaced by placeholders (`<secret:kind:…>`) where a form, "
        "a name or a command gives them away; letters and digits made by chance kept a session out "
        "until a person released them. A password that nothing gives away stays.\n\n"
        f"Of {lines} lines, {counts.personal} hold names of home folders, mail addresses or phone "
        "numbers. `DEBRIEF_PERSONAL_DATA=replace` puts stand-ins for these and for the git user's "
        "name in sessions that are read from then on. Other names, postal addresses, account and "
        "card numbers, and what people say of themselves are never replaced."
    )


def _summary(
    task: str,
    fingerprint: str,
    considered: int,
    counts: SetCounts,
    left_out: Sequence[SkippedSessions],
) -> str:
    prompt, _, judges = fingerprint.rpartition("-")
    samples, train = len(counts.rows), len(counts.train)
    parts = [
        f"# Training set {plain(task)}, {plain(fingerprint)}",
        f"{samples} samples from {considered} sessions of one task, one prompt "
        f"fingerprint (`{plain(prompt)}`) and one eval fingerprint (`{plain(judges)}`): "
        f"{train} train, {samples - train} eval; "
        f"{sum(row.count for row in left_out)} sessions were left out, "
        f"{sum(row.count for row in by_verdict(left_out))} of them for their verdict.",
    ]
    if samples:
        qualities = [row.quality for row in counts.rows if row.quality is not None]
        known = (
            f"overall quality {min(qualities):.2f} to {max(qualities):.2f}, mean "
            f"{fmean(qualities):.2f}, of the {len(qualities)} samples that have one"
            if qualities
            else "no sample has an overall quality, as nothing shows one"
        )
        days, verdicts = counts.by["day"], Counter(row.verdict for row in counts.rows)
        said = ", ".join(f"{verdicts[n]} {SHOWN[n]}" for n in VERDICT_NAMES if verdicts[n])
        ready = sum(row.status == "ready" for row in counts.rows)
        parts.append(
            f"Sessions of {min(days)} to {max(days)}; by verdict: {said}; {known}; {ready} "
            "samples are `ready` (something was changed, a validation command ran, no redaction "
            "needs a look)."
        )
    if samples and train in (0, samples):
        side = "eval" if train else "train"
        parts.append(
            f"**The {side} side is empty.** Sides go by repository and week, and none of this "
            f"set's falls on {side}: train on other sets as well, or ask for another eval share."
        )
    return "\n\n".join(parts)


def _sources(counts: SetCounts) -> str:
    body = _table(
        ("source", "tool", "model", "repository", "samples"),
        [(*key, str(count)) for key, count in ranked(counts.by["source"])],
    )
    known = counts.by["licence"]
    licences = _table(
        ("repository", "licence", "samples"),
        [(name, licence or "not known", str(n)) for (name, licence), n in ranked(known)],
    )
    unknown = sum(count for (_, licence), count in known.items() if not licence)
    note = (
        f"Of {unknown} samples the licence is not known: their repositories were not at hand, or "
        "say nothing. Check before publishing."
        if unknown
        else "As the repositories' own files say; check before publishing."
    )
    return (
        f"## Where they are from\n\n{body}\n\n{_second_hand(counts)}"
        f"The person's own prompts: {_listed(counts.by['prompt_origin'])}. "
        f"System prompts: {_listed(counts.by['system_prompt'])}. "
        f"Tools: {_listed(counts.by['tool_schemas'])}. Samples whose base commit is known, by "
        f"who names it: {_listed(counts.by['base_commit_origin'])}.\n\n"
        f"{licences}\n\n{note}"
    )


def _second_hand(counts: SetCounts) -> str:
    """Return what archives of other programs' sessions do not keep; empty without any."""
    sources = {source for source, *_ in counts.by["source"]}
    named = ((name, READERS[name].drops) for name in sorted(sources) if name in READERS)
    return "".join(
        f"The samples from {name} are second-hand: it drops {drops}.\n\n"
        for name, drops in named
        if drops
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in ranked(counts) if name) or "none"


def _filters(options: TrainingOptions) -> str:
    chosen = {
        "verdicts": "; ".join(SHOWN[name] for name in options.verdicts) or "any",
        "outcome": options.outcome,
        "minimum probability that it was done": f"{options.min_probability:g}",
        "minimum place in the order": f"{options.min_place:g}",
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
            (name, model, f"{weight:g}", str(len(scores)), f"{fmean(scores):.2f}")
            for (name, model, weight), scores in sorted(counts.judges.items())
        ],
        "No judge's result is known for these sessions.",
    )
    scored = ", ".join(
        f"{plain(model)} (`{print_}`)" for (model, print_), _ in ranked(counts.by["scorer"])
    )
    weights = ", ".join(f"{item.name} {item.weight:g}" for item in DIMENSIONS)
    return (
        f"## Who judged\n\n{judges}\n\nOverall quality, where there is one, is the weighted mean "
        f"of the six dimensions ({weights}), scored by {scored or 'nobody'}.\n\n"
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
    total, rows = counts.languages.total(), counts.rows
    languages = ", ".join(
        f"{name} {count / total:.0%}" for name, count in ranked(counts.languages)[:_MOST_ROWS]
    )
    powers = Counter(max(_SHORTEST, 1 << max(0, row.tokens - 1).bit_length()) for row in rows)
    lengths = ", ".join(f"{count} up to {most:,}" for most, count in sorted(powers.items()))
    form = "One session a line"
    if number := counts.totals["split_sessions"]:
        form += f" but for {number} long ones, split into {counts.totals['windows']}"
    cut = f"Sessions that broke off, cut at the last closed turn: {counts.totals['cut']:,}. "
    tokens, train = (sum(row.tokens for row in some) for some in (rows, counts.train))
    of_sides = f"{tokens:,}: {train:,} train, {tokens - train:,} eval"
    not_trained = "; ".join(f"{count:,}: {why}" for why, count in ranked(counts.not_trained))
    theirs = counts.subagents
    of_subagents = f"{len(theirs):,} lines of {sum(row.tokens for row in theirs):,} tokens"
    totals = [(words, f"{counts.totals[name]:,}") for name, words in _OF_A_SESSION.items()]
    shown = [
        ("size", f"{sum(row.size for row in rows):,} bytes"),
        ("tokens (o200k_base, messages and arguments)", of_sides),
        ("tokens of the longest line", f"{max((row.tokens for row in rows), default=0):,}"),
        ("lines by tokens", lengths or "none"),
        ("messages", f"{sum(row.messages for row in rows):,}"),
        *totals[:4],
        ("languages, by changed lines", languages or "no edit recorded"),
        *totals[4:],
        ("turns with answers that carry weight 0, and why", not_trained or "none"),
        ("subagents' own conversations, counted in nothing above", of_subagents),
    ]
    return (
        "## What is in it\n\n" + _table(("", ""), shown) + "\n\n"
        f"{cut}{form}; what subagents said and did is in lines of their own, which name the "
        "session as `parent_session`. What the model thought is in `reasoning_content`, where the "
        "transcript has it. What else was in its requests, such as notices, hooks' context and the "
        "output of commands that the person ran, stands there in the program's own tags: no "
        "person wrote it. "
        "Where a transcript lacks a "
        "prompt, a result or the end of a turn, a text in round brackets stands for it. An "
        "assistant message of that kind, one that the person interrupted, one whose call was "
        "refused or has no result, what the person then rejected or corrected, and what was said "
        "on a prompt or a notice that is not known, has `weight` 0. A "
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


def ranked(counts: Mapping[_Key, int]) -> list[tuple[_Key, int]]:
    """Return counts with the greatest first."""
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
