"""What a training set comes to, counted as its lines go by, so that none has to be kept."""

from __future__ import annotations

from collections import Counter

from debrief.training.model import SampleMetadata
from debrief.training.traits import LanguageLines

_SHORTEST = 1 << 10


class Mean:
    """A mean that grows."""

    def __init__(self) -> None:
        self.count = 0
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Take one more value in."""
        self.count += 1
        self._sum += value

    @property
    def value(self) -> float:
        """The mean so far; 0 of nothing."""
        return self._sum / self.count if self.count else 0.0


class SetCounts:
    """Counts over the lines of a training set; what is a session's counts once a session."""

    def __init__(self) -> None:
        self.samples = self.train = self.sessions = self.ready = 0
        self.size = self.tokens = self.train_tokens = self.longest = self.messages = 0
        self.lengths: Counter[int] = Counter()
        """Lines by a power of two that their tokens are at most."""
        self.turns = self.calls = self.lines_added = self.lines_removed = 0
        self.redactions = self.stand_ins = self.with_base_commit = 0
        self.split_sessions = self.windows = 0
        self.first_day = self.last_day = ""
        self.worst = self.best = 0.0
        self.sources: Counter[tuple[str, str, str, str]] = Counter()
        self.licences: Counter[tuple[str, str]] = Counter()
        self.origins: Counter[str] = Counter()
        self.scorers: Counter[tuple[str, str]] = Counter()
        self.languages: Counter[str] = Counter()
        self.judges: dict[tuple[str, str, float], Mean] = {}
        self._quality = Mean()

    @property
    def eval(self) -> int:
        """Lines on the held-out side."""
        return self.samples - self.train

    @property
    def mean_quality(self) -> float:
        """Mean overall quality of the lines; 0 of none."""
        return self._quality.value

    def add_session(self, languages: tuple[LanguageLines, ...]) -> None:
        """Count a session in."""
        self.sessions += 1
        for item in languages:
            self.languages[item.language] += item.lines

    def add_line(self, sample: SampleMetadata, *, size: int, messages: int, tokens: int) -> None:
        """Count a line in.

        Args:
            sample: its metadata.
            size: its bytes, line end included.
            messages: how many it has.
            tokens: of its messages' texts and calls.
        """
        day = sample.started[:10]
        first = self.samples == 0
        self.samples += 1
        self.train += sample.split == "train"
        self.ready += sample.status == "ready"
        self.size += size
        self.messages += messages
        self.tokens += tokens
        self.train_tokens += tokens if sample.split == "train" else 0
        self.longest = max(self.longest, tokens)
        self.lengths[max(_SHORTEST, 1 << max(0, tokens - 1).bit_length())] += 1
        self.first_day = day if first else min(self.first_day, day)
        self.last_day = max(self.last_day, day)
        self.worst = sample.overall_quality if first else min(self.worst, sample.overall_quality)
        self.best = max(self.best, sample.overall_quality)
        self._quality.add(sample.overall_quality)
        repository = sample.repository or "unknown"
        self.sources[sample.source, sample.tool, sample.model or "unknown", repository] += 1
        self.licences[repository, sample.licence] += 1
        self.origins[sample.prompt_origin] += 1
        self.with_base_commit += bool(sample.base_commit)
        self.scorers[sample.scoring_model, sample.scoring_fingerprint] += 1
        if sample.window == 1:
            self._add_first_window(sample)

    def _add_first_window(self, sample: SampleMetadata) -> None:
        self.turns += sample.turns
        self.calls += sample.calls
        self.lines_added += sample.lines_added
        self.lines_removed += sample.lines_removed
        self.redactions += sample.redactions
        self.stand_ins += sample.stand_ins
        for entry in sample.scores:
            if entry.kind == "judge":
                key = (entry.name, entry.model, entry.weight)
                self.judges.setdefault(key, Mean()).add(entry.value)
        if sample.windows > 1:
            self.split_sessions += 1
            self.windows += sample.windows
