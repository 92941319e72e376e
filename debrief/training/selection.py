"""Which sessions become samples, and why the others do not.

Every session that is considered ends up selected or left out for exactly one reason, the first
that applies in the order of this module.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.outcomes.store import Success
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores, SuccessEstimate
from debrief.snapshots.fingerprint import comparison_key
from debrief.snapshots.model import UNKNOWN, SessionMetadataRow
from debrief.training.kinship import Kinship, SessionTraits
from debrief.training.model import BELOW_BAR, Exclusion, SkippedSessions, Split, Status
from debrief.training.options import EVAL_SHARE, TrainingOptions

NO_METADATA = Exclusion("no_metadata")
NOT_SCORED = Exclusion("not_scored")
NO_ANSWER = Exclusion("no_answer")
NO_REQUEST = Exclusion("no_request")
SUSPECTED = Exclusion("suspected")
NO_CHANGE = Exclusion("no_change")
NO_VALIDATION = Exclusion("no_validation")
UNSURE = Exclusion("unsure")
DRAFT = Exclusion("draft")
BROKE_OFF = Exclusion("broke_off")
FAILED = Exclusion("failed")
UNKNOWN_SUCCESS = Exclusion("unknown_success")
NOT_SUCCEEDED = Exclusion("not_succeeded")
OTHER_TOOL = Exclusion("other_tool")
OTHER_MODEL = Exclusion("other_model")
OUT_OF_DATES = Exclusion("out_of_dates")
NEAR_DUPLICATE = Exclusion("near_duplicate")
ACROSS = Exclusion("across")


Pair = tuple[str, str]
"""Task and fingerprint."""
Members = dict[str, set[str]]
"""Session ids by week."""


class _Metadata(Struct, frozen=True):
    session_id: str
    task: str
    prompt_fingerprint: str


class _Judged(Struct, frozen=True):
    session_id: str
    eval_fingerprint: str


def observed_pairs(lake: Lake, weeks: Iterable[str] | None = None) -> dict[Pair, Members]:
    """Return every pair observed in ``weeks`` (all, when None), with its sessions by week.

    A session that was judged by two sets of judges belongs to two pairs; one that was not judged
    at all belongs to the pair whose eval fingerprint is ``unknown``.
    """
    found: dict[Pair, Members] = defaultdict(lambda: defaultdict(set))
    for week in lake.partitions("session_metadata") if weeks is None else weeks:
        judged: dict[str, set[str]] = defaultdict(set)
        for judgement in lake.read("judge_evaluations", week, _Judged):
            judged[judgement.session_id].add(judgement.eval_fingerprint)
        for row in lake.read("session_metadata", week, _Metadata):
            for name in judged.get(row.session_id) or {UNKNOWN}:
                pair = row.task, comparison_key(row.prompt_fingerprint, name)
                found[pair][week].add(row.session_id)
    return dict(found)


class Candidate(Struct, frozen=True, kw_only=True):
    """A session with what it is chosen by."""

    traits: SessionTraits
    """Among them the repository that its transcript names, which its side goes by in every training
    set."""
    tool: str
    model: str
    """The model it is filed under; empty when none is known."""
    repository: str
    """The repository it is filed under; empty when none is known."""
    has_metadata: bool
    quality: float | None
    """Overall quality; None when it was not scored."""
    completion: str = ""
    """The category of task_completion; empty when nothing speaks for one."""
    success: SuccessEstimate | None = None
    """As its facts show it; None when it was not scored."""
    outcome: Success | None = None
    """As a label says it; None when none does."""
    suspected: bool
    """Whoever scored it found words in it that look made for a judge."""
    held_as: Literal["", "draft", "ready"] = ""
    """What a recorder holds of it; empty when none does."""
    withheld: str = ""
    """Why nothing of it can be trained on; empty when something can."""
    split: Split = "train"

    @property
    def session_id(self) -> str:
        """Return the session's id."""
        return self.traits.session_id

    @property
    def shortcoming(self) -> Exclusion | None:
        """Return what keeps the session below the default bar; None when nothing does.

        What a recorder's owner released counts as accepted where nothing tells.
        """
        if self.outcome is not None and not self.outcome.success:
            return Exclusion("failed_by_outcome", self.outcome.source)
        released = self.held_as == "ready"
        if self.traits.broke_off and not released:
            return BROKE_OFF
        if self.outcome is not None:
            return None
        if self.completion == "failed":
            return FAILED
        known = self.completion and self.success is not None and not self.success.cannot_tell
        return None if known or released else UNKNOWN_SUCCESS

    @property
    def status(self) -> Status:
        """``ready`` when nothing has to be done to it before a model is trained on it."""
        done = self.traits.growth and self.traits.validated
        fit = self.held_as == "ready" if self.held_as else done
        return "ready" if fit and not self.traits.unsure_redactions else "draft"


class SelectionResult(Struct, frozen=True, kw_only=True):
    """The outcome."""

    selected: tuple[Candidate, ...]
    """By start and id, each with its side of the split."""
    left_out: dict[str, Exclusion]
    """By session id."""


def candidate_of(
    traits: SessionTraits,
    metadata: SessionMetadataRow | None,
    scores: SessionScores | None,
    rubric_evaluations: Iterable[RubricEvaluation] = (),
    outcome: Success | None = None,
    judgements: Iterable[JudgeEvaluation] = (),
) -> Candidate:
    """Return what a session is chosen by."""
    said = (*((scores,) if scores else ()), *rubric_evaluations, *judgements)
    return Candidate(
        traits=traits,
        tool=metadata.tool if metadata else traits.tool,
        model=(metadata.model if metadata else None) or traits.model,
        repository=(metadata.repository if metadata else "") or traits.repository,
        has_metadata=metadata is not None,
        quality=scores.overall_quality if scores and scores.status == "ok" else None,
        completion=completion_of(scores),
        success=scores.success if scores else None,
        outcome=outcome,
        suspected=any(row.injection_suspected for row in said),
        held_as=metadata.status if metadata else "",
        withheld=metadata.withheld if metadata else "",
    )


def completion_of(scores: SessionScores | None) -> str:
    """Return the category of a session's task_completion; empty without one."""
    verdicts = scores.verdicts if scores is not None else ()
    return next((v.category or "" for v in verdicts if v.dimension == "task_completion"), "")


def select(
    candidates: Iterable[Candidate], options: TrainingOptions, kinship: Kinship
) -> SelectionResult:
    """Choose among candidates and put each on its side of the split.

    Args:
        candidates: sessions of one task and fingerprint.
        options: what was chosen at launch.
        kinship: of all sessions of the lake, so that no relative of another training set's
            session is on the other side either.
    """
    ordered = sorted(candidates, key=lambda item: (item.traits.started, item.session_id))
    left_out = {
        candidate.session_id: reason
        for candidate in ordered
        if (reason := reason_against(candidate, options)) is not None
    }
    fitting = [candidate for candidate in ordered if candidate.session_id not in left_out]
    apart = list(_kept_apart(fitting, options, kinship, left_out))
    return SelectionResult(selected=tuple(_capped(apart, options, left_out)), left_out=left_out)


def reason_against(candidate: Candidate, options: TrainingOptions) -> Exclusion | None:
    """Return why a session is left out for what it is itself; None when nothing speaks against."""
    traits = candidate.traits
    day = traits.started.astimezone(UTC).date()
    quality, least = candidate.quality, options.min_overall_quality
    released = candidate.held_as == "ready"
    needs_change = options.require_change if released else options.needs_change
    needs_validation = options.require_validation if released else options.needs_validation
    success, short = candidate.success, candidate.shortcoming
    probability = (success.probability if success else None) or 0.0
    likely, lowest = options.min_success_probability, options.min_success_order
    order = success.order if success else None
    is_lower = lowest is not None and (order is None or order < lowest)
    is_success = candidate.outcome is not None and candidate.outcome.success
    reasons = (
        (not candidate.has_metadata, NO_METADATA),
        (quality is None, NOT_SCORED),
        (candidate.withheld, Exclusion("withheld", candidate.withheld)),
        (not traits.answered, NO_ANSWER),
        (not traits.asked, NO_REQUEST),
        (candidate.suspected and not options.allow_suspected_injections, SUSPECTED),
        (options.tools and candidate.tool not in options.tools, OTHER_TOOL),
        (options.models and candidate.model not in options.models, OTHER_MODEL),
        (day < (options.since or day) or day > (options.until or day), OUT_OF_DATES),
        (options.outcome == "succeeded" and not is_success, NOT_SUCCEEDED),
        (probability < likely, Exclusion("probability", f"{likely:g}")),
        (is_lower, Exclusion("order", f"{lowest or 0:g}")),
        ((quality or 0.0) < least, Exclusion("quality", f"{least:g}")),
        (options.status == "ready" and candidate.held_as == "draft", DRAFT),
        (needs_change and not traits.growth, NO_CHANGE),
        (needs_validation and not traits.validated, NO_VALIDATION),
        (traits.unsure_redactions and not options.allow_unsure_redactions, UNSURE),
        (short is not None and not options.allows(short.kind), short),
    )
    return next((reason for applies, reason in reasons if applies), None)


def below_bar(left_out: Iterable[SkippedSessions]) -> list[SkippedSessions]:
    """Return what the bar left out."""
    return [row for row in left_out if row.kind in BELOW_BAR]


def counted(left_out: Mapping[str, Exclusion]) -> tuple[SkippedSessions, ...]:
    """Return the reasons with their sessions, the most frequent first."""
    sessions: dict[Exclusion, list[str]] = defaultdict(list)
    for session_id in sorted(left_out):
        sessions[left_out[session_id]].append(session_id)
    rows = [
        SkippedSessions(kind=why.kind, detail=why.detail, count=len(ids), sessions=tuple(ids))
        for why, ids in sessions.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.count, row.reason)))


def _kept_apart(
    candidates: Iterable[Candidate],
    options: TrainingOptions,
    kinship: Kinship,
    left_out: dict[str, Exclusion],
) -> Iterator[Candidate]:
    """Yield candidates with their sides so that no two related ones are on different sides.

    A session stays when its own side is that of every session that it goes back to, wherever in
    the lake that is. Those are earlier ones, so no later session makes an old one leave.
    """
    copied: set[str] = set()
    for candidate in candidates:
        traits = candidate.traits
        side = side_of(traits.repository, traits.started, options.eval_share)
        kin = kinship.of(candidate.session_id)
        if kin is not None:
            if any(
                head.session_id != candidate.session_id
                and side_of(head.repository, head.started, options.eval_share) != side
                for head in kin.heads
            ):
                left_out[candidate.session_id] = ACROSS
                continue
            if options.near_duplicates == "drop" and not copied.isdisjoint(kin.copy_groups):
                left_out[candidate.session_id] = NEAR_DUPLICATE
                continue
            copied.update(kin.copy_groups)
        yield replace(candidate, split=side)


def _capped(
    candidates: list[Candidate], options: TrainingOptions, left_out: dict[str, Exclusion]
) -> list[Candidate]:
    cap = options.max_per_repository
    if cap is None:
        return candidates
    taken: Counter[str] = Counter()
    for candidate in sorted(candidates, key=lambda item: -(item.quality or 0.0)):
        taken[candidate.repository] += 1
        if taken[candidate.repository] > cap:
            left_out[candidate.session_id] = Exclusion("cap", str(cap))
    return [candidate for candidate in candidates if candidate.session_id not in left_out]


def side_of(repository: str, started: datetime, eval_share: float = EVAL_SHARE) -> Split:
    """Return which side of the train/eval split a session is on.

    That is a hash of its repository and its week, and of nothing else: so what was worked on
    together stays together, and no session that comes later moves one that was there. Forks,
    continuations and near-duplicates mostly fall into one week. One that does not is left out
    rather than moved: of two relatives the one that started later. The week is part of the hash
    whatever the tables are partitioned by: another width would move the sides of all earlier
    sessions.

    Args:
        repository: its name; sessions without one share the empty name.
        started: time of its first record.
        eval_share: the share of all (repository, week) pairs that is held out, 0 to 1. A greater
            one moves pairs from ``train`` to ``eval`` and none the other way.
    """
    bucket = f"{week_of(started)} {repository}".encode("utf-8", "surrogatepass")
    draw = int.from_bytes(hashlib.sha256(bucket).digest()[:8])
    return "eval" if draw < eval_share * 2**64 else "train"
