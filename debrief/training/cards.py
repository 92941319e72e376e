"""The card of a training set: what to know before training a model on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, TypeVar

from debrief.redaction.finder import find
from debrief.reports import report, table
from debrief.scoring.dimensions import DIMENSIONS
from debrief.scoring.verdict import BASIS_LABELS, VERDICT_LABELS, VERDICT_NAMES
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
        if sample.scoring_model:
            by["scorer"][sample.scoring_model, sample.scoring_fingerprint] += 1
        by["basis"][sample.verdict_basis] += 1
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
            if sample.windows > 1:
                self.totals.update(split_sessions=1, windows=sample.windows)


def training_card(
    task: str,
    fingerprint: str,
    options: TrainingOptions,
    considered: int,
    counts: SetCounts,
    left_out: Sequence[SkippedSessions],
    certificates: Mapping[str, str] = {},
) -> str:
    """Return the card as Markdown; it holds no time of writing, so it only changes with its set.

    Args:
        task: the set's task.
        fingerprint: the set's fingerprints.
        options: how sessions were selected.
        considered: sessions that there were to select from.
        counts: of the lines.
        left_out: the sessions that were not selected, by reason.
        certificates: by reviewer, how well it agrees with people, in a sentence.
    """
    prompt, _, judges = fingerprint.rpartition("-")
    rows = counts.rows
    qualities = [row.quality for row in rows if row.quality is not None]
    scorers = {model for model, _ in counts.by["scorer"]}
    days, verdicts = counts.by["day"], Counter(row.verdict for row in rows)
    licences = ranked(counts.by["licence"])
    card = report(
        "training_card",
        rows=_rows,
        task=task,
        fingerprint=fingerprint,
        prompt=prompt,
        judges_of=judges,
        considered=considered,
        samples=len(rows),
        train=len(counts.train),
        left_out_count=sum(row.count for row in left_out),
        left_out_for_verdict=sum(row.count for row in by_verdict(left_out)),
        first_day=min(days, default=""),
        last_day=max(days, default=""),
        verdicts=[f"{verdicts[n]} {VERDICT_LABELS[n]}" for n in VERDICT_NAMES if verdicts[n]],
        bases=[
            f"{BASIS_LABELS[basis]} ({count})"
            for basis, count in ranked(counts.by["basis"])
            if basis
        ],
        unreviewed=verdicts[""],
        qualities=qualities,
        mean_quality=fmean(qualities) if qualities else None,
        ready=sum(row.status == "ready" for row in rows),
        sources=[(*key, str(count)) for key, count in ranked(counts.by["source"])],
        second_hand=_second_hand(counts),
        prompt_origins=_listed(counts.by["prompt_origin"]),
        system_prompts=_listed(counts.by["system_prompt"]),
        tool_schemas=_listed(counts.by["tool_schemas"]),
        base_commits=_listed(counts.by["base_commit_origin"]),
        licences=[(name, licence or "not known", str(n)) for (name, licence), n in licences],
        unlicensed=sum(count for (_, licence), count in licences if not licence),
        filters=_filters(options),
        judges=[
            (name, model, f"{weight:g}", str(len(scores)), f"{fmean(scores):.2f}")
            for (name, model, weight), scores in sorted(counts.judges.items())
        ],
        weights=", ".join(f"{item.name} {item.weight:g}" for item in DIMENSIONS),
        scorers=[scorer for scorer, _ in ranked(counts.by["scorer"])],
        certificates=[certificates[model] for model in sorted(scorers) if model in certificates],
        left_out=[(row.reason, str(row.count), _named(row)) for row in left_out],
        subagents_left_out=[(why, str(n)) for why, n in ranked(counts.subagents_left_out)],
        content=_content(counts),
        totals=counts.totals,
        lines=len(rows) + len(counts.subagents),
        personal=counts.personal,
    )
    return _without_secrets(card)


def _without_secrets(card: str) -> str:
    """Return a card without the secrets in it, such as the name of a session that was left out
    for one."""
    kept: list[str] = []
    last = 0
    for span in find(card):
        kept += (card[last : span.start], f"({span.kind})")
        last = span.end
    return "".join([*kept, card[last:]])


def _second_hand(counts: SetCounts) -> list[dict[str, str]]:
    """Return what archives of other programs' sessions do not keep."""
    sources = {source for source, *_ in counts.by["source"]}
    named = ((name, READERS[name].drops) for name in sorted(sources) if name in READERS)
    return [{"name": name, "drops": drops} for name, drops in named if drops]


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in ranked(counts) if name) or "none"


def _filters(options: TrainingOptions) -> list[tuple[str, str]]:
    return [
        ("verdicts", "; ".join(VERDICT_LABELS[name] for name in options.verdicts) or "any"),
        ("outcome", options.outcome),
        ("not reviewed, no signal against it", "taken" if options.unreviewed else "left out"),
        ("status", options.status),
        ("minimum overall quality", f"{options.min_overall_quality:g}"),
        ("a change was made", f"{_NOT[options.needs_change]}required"),
        ("a validation command ran", f"{_NOT[options.needs_validation]}required"),
        ("unsure redactions", f"{_NOT[options.allow_unsure_redactions]}allowed"),
        ("words made for a judge", f"{_NOT[options.allow_suspected_injections]}allowed"),
        ("tools", ", ".join(options.tools) or "all"),
        ("models", ", ".join(options.models) or "all"),
        ("dates", f"{options.since or 'any'} to {options.until or 'any'}"),
        ("most of one repository", str(options.max_per_repository or "no limit")),
        ("most tokens of a line, with its tools", str(options.max_tokens or "no limit")),
        ("near-duplicates", options.near_duplicates),
        ("system prompt", options.system_prompt),
        ("eval share", f"{options.eval_share:g} of all pairs of repository and week"),
        ("related sessions", "on the side of the oldest of them"),
    ]


def _named(row: SkippedSessions) -> str:
    """Return the first sessions that were left out for a reason, and how many more they are."""
    more = row.count - _SESSIONS_NAMED
    return ", ".join(row.sessions[:_SESSIONS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _content(counts: SetCounts) -> list[tuple[str, str]]:
    total, rows = counts.languages.total(), counts.rows
    languages = ", ".join(
        f"{name} {count / total:.0%}" for name, count in ranked(counts.languages)[:_MOST_ROWS]
    )
    powers = Counter(max(_SHORTEST, 1 << max(0, row.tokens - 1).bit_length()) for row in rows)
    lengths = ", ".join(f"{count} up to {most:,}" for most, count in sorted(powers.items()))
    tokens, train = (sum(row.tokens for row in some) for some in (rows, counts.train))
    not_trained = "; ".join(f"{count:,}: {why}" for why, count in ranked(counts.not_trained))
    subagents = counts.subagents
    totals = [(words, f"{counts.totals[name]:,}") for name, words in _OF_A_SESSION.items()]
    return [
        ("size", f"{sum(row.size for row in rows):,} bytes"),
        (
            "tokens (o200k_base, messages and arguments)",
            f"{tokens:,}: {train:,} train, {tokens - train:,} eval",
        ),
        ("tokens of the longest line", f"{max((row.tokens for row in rows), default=0):,}"),
        ("lines by tokens", lengths or "none"),
        ("messages", f"{sum(row.messages for row in rows):,}"),
        *totals[:4],
        ("languages, by changed lines", languages or "no edit recorded"),
        *totals[4:],
        ("turns with answers that carry weight 0, and why", not_trained or "none"),
        (
            "subagents' own conversations, counted in nothing above",
            f"{len(subagents):,} lines of {sum(row.tokens for row in subagents):,} tokens",
        ),
    ]


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "None.") -> str:
    """Return a table of at most 15 rows; ``empty`` when there is none."""
    if not rows:
        return empty
    more = len(rows) - _MOST_ROWS
    rest = [(f"and {more} more", *[""] * (len(head) - 1))] if more > 0 else []
    return table(head, [*rows[:_MOST_ROWS], *rest])


def ranked(counts: Mapping[_Key, int]) -> list[tuple[_Key, int]]:
    """Return counts with the greatest first."""
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
