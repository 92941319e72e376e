"""Select the sessions that become training samples, with a reason for each that does not.

Every session that is considered ends up selected or left out for exactly one reason, the first
that applies in the order of this module.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.outcomes.store import Success
from debrief.outcomes.verdicts import labelled_verdict
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import VERDICT_LABELS, SessionVerdict, VerdictName
from debrief.signals.schema import EventKind, SessionSignals
from debrief.snapshots.fingerprint import comparison_key
from debrief.snapshots.model import UNKNOWN, SessionMetadataRow
from debrief.training.kinship import Kinship, SessionTraits
from debrief.training.model import Exclusion, SkippedSessions, Split, Status
from debrief.training.options import TrainingOptions
from debrief.training.splits import BY_WEEK

NO_METADATA = Exclusion("no_metadata")
NOT_REVIEWED = Exclusion("not_reviewed")
NO_ANSWER = Exclusion("no_answer")
NO_REQUEST = Exclusion("no_request")
SUSPECTED = Exclusion("suspected")
NO_CHANGE = Exclusion("no_change")
NO_VALIDATION = Exclusion("no_validation")
UNSURE = Exclusion("unsure")
CONTRADICTED = Exclusion("contradicted")
UNFIT = Exclusion("review")
DRAFT = Exclusion("draft")
NOT_SUCCEEDED = Exclusion("not_succeeded")
OTHER_TOOL = Exclusion("other_tool")
OTHER_MODEL = Exclusion("other_model")
OUT_OF_DATES = Exclusion("out_of_dates")
NO_SET = Exclusion("no_set")
NEAR_DUPLICATE = Exclusion("near_duplicate")


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
    status: str


def observed_pairs(lake: Lake, weeks: Iterable[str] | None = None) -> dict[Pair, Members]:
    """Return every pair observed in ``weeks`` (all, when None), with its sessions by week.

    A session that was judged by two sets of judges belongs to two pairs; one that nobody judged, or
    tried in vain, belongs to the pair whose eval fingerprint is ``unknown``.
    """
    found: dict[Pair, Members] = defaultdict(lambda: defaultdict(set))
    for week in lake.partitions("session_metadata") if weeks is None else weeks:
        judged: dict[str, set[str]] = defaultdict(set)
        for judgement in lake.read("judge_evaluations", week, _Judged):
            if judgement.status != "failed":
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
    quality: float | None = None
    """Overall quality; None where no review gives one."""
    verdict: SessionVerdict | None = None
    """None where nobody gave one."""
    against: str = ""
    """The signal that speaks against a session without a verdict; empty where none does."""
    outcome: Success | None = None
    """As a label says it; None when none does."""
    is_unfit: bool = False
    """Whoever reviewed it would train on nothing of it."""
    suspected: bool
    """Whoever reviewed it found words in it that look made for a judge."""
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
    signals: SessionSignals | None = None,
) -> Candidate:
    """Return what a session is chosen by."""
    said = (*((scores,) if scores else ()), *rubric_evaluations, *judgements)
    return Candidate(
        traits=traits,
        tool=metadata.tool if metadata else traits.tool,
        model=(metadata.model if metadata else None) or traits.model,
        repository=(metadata.repository if metadata else "") or traits.repository,
        has_metadata=metadata is not None,
        quality=scores.overall_quality if scores else None,
        verdict=verdict_by(scores, outcome),
        against=signal_against(signals),
        outcome=outcome,
        is_unfit=_trains_nothing(scores),
        suspected=any(row.injection_suspected for row in said),
        held_as=metadata.status if metadata else "",
        withheld=metadata.withheld if metadata else "",
    )


def _trains_nothing(scores: SessionScores | None) -> bool:
    review = scores.review if scores is not None else None
    return review is not None and review.train is not None and review.train.what == "none"


def verdict_by(scores: SessionScores | None, outcome: Success | None) -> SessionVerdict | None:
    """Return the verdict of a label, else of a review; None where neither gives one."""
    if outcome is not None:
        return labelled_verdict(outcome)
    return scores.verdict if scores is not None else None


_AGAINST: frozenset[EventKind] = frozenset(
    ["foreign_files", "destructive", "correction", "failed_check", "refused_change", "open_request"]
)
"""Events for which a session that nobody reviewed is not trained on."""


def signal_against(signals: SessionSignals | None) -> str:
    """Return the first signal that speaks against training on a session; empty where none does."""
    if signals is None:
        return "no signals yet"
    events = (event.kind.replace("_", " ") for event in signals.events if event.kind in _AGAINST)
    if found := next(events, ""):
        return found
    if signals.last_check is not None and signals.last_check.passed is False:
        return "failed check"
    return "" if signals.ending == "answered" else f"ending: {signals.ending}"


class _Reviewed(Struct, frozen=True):
    status: str


def resolve_unreviewed(lake: Lake, options: TrainingOptions) -> TrainingOptions:
    """Return the options with ``unreviewed`` decided: sessions without a verdict are taken where
    that was asked for, else only while no model has reviewed a session of the lake."""
    if options.unreviewed is not None:
        return options
    reviewed = any(row.status == "ok" for row in lake.rows("session_scores", _Reviewed))
    return options.model_copy(update={"unreviewed": not reviewed})


def select(
    candidates: Iterable[Candidate], options: TrainingOptions, kinship: Kinship
) -> SelectionResult:
    """Choose among candidates and put each on its side of the split.

    Args:
        candidates: sessions of one task and fingerprint.
        options: what was chosen at launch.
        kinship: of all sessions of the lake, so that a family's members are on one side in all
            training sets.
    """
    ordered = sorted(candidates, key=lambda item: (item.traits.started, item.session_id))
    left_out = {
        candidate.session_id: reason
        for candidate in ordered
        if (reason := reason_against(candidate, options)) is not None
    }
    fitting = [candidate for candidate in ordered if candidate.session_id not in left_out]
    apart = list(_on_sides(fitting, options, kinship, left_out))
    return SelectionResult(selected=tuple(_capped(apart, options, left_out)), left_out=left_out)


def reason_against(candidate: Candidate, options: TrainingOptions) -> Exclusion | None:
    """Return why a session is left out for what it is itself; None when nothing speaks against."""
    traits = candidate.traits
    day = traits.started.astimezone(UTC).date()
    released = candidate.held_as == "ready"
    needs_change = options.require_change if released else options.needs_change
    needs_validation = options.require_validation if released else options.needs_validation
    least = options.min_overall_quality
    is_success = candidate.outcome is not None and candidate.outcome.success
    reasons = (
        (not candidate.has_metadata, NO_METADATA),
        (candidate.withheld, Exclusion("withheld", candidate.withheld)),
        (not traits.answered, NO_ANSWER),
        (not traits.asked, NO_REQUEST),
        (candidate.suspected and not options.allow_suspected_injections, SUSPECTED),
        (options.tools and candidate.tool not in options.tools, OTHER_TOOL),
        (options.models and candidate.model not in options.models, OTHER_MODEL),
        (day < (options.since or day) or day > (options.until or day), OUT_OF_DATES),
        (options.outcome == "succeeded" and not is_success, NOT_SUCCEEDED),
        ((candidate.quality or 0.0) < least, Exclusion("quality", f"{least:g}")),
        (options.status == "ready" and candidate.held_as == "draft", DRAFT),
        (needs_change and not traits.growth, NO_CHANGE),
        (needs_validation and not traits.validated, NO_VALIDATION),
        (traits.unsure_redactions and not options.allow_unsure_redactions, UNSURE),
    )
    found = next((reason for applies, reason in reasons if applies), None)
    found = found or _reason_by_verdict(candidate, options)
    return found or (UNFIT if candidate.is_unfit and not released else None)


def _reason_by_verdict(candidate: Candidate, options: TrainingOptions) -> Exclusion | None:
    verdict = candidate.verdict
    if candidate.held_as == "ready" and (verdict is None or not verdict.is_known):
        return None  # its owner released it
    if verdict is None:
        if not options.unreviewed:
            return NOT_REVIEWED
        return Exclusion("signals", candidate.against) if candidate.against else None
    if verdict.is_contradicted:
        return CONTRADICTED
    is_asked = verdict.verdict in (options.verdicts or VERDICT_LABELS)
    return None if is_asked else Exclusion("verdict", verdict.label)


def by_verdict(left_out: Iterable[SkippedSessions]) -> list[SkippedSessions]:
    """Return what was left out for its verdict."""
    return [row for row in left_out if row.kind == "verdict"]


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


def _on_sides(
    candidates: Iterable[Candidate],
    options: TrainingOptions,
    kinship: Kinship,
    left_out: dict[str, Exclusion],
) -> Iterator[Candidate]:
    """Yield candidates with the sides of their families, without copies of earlier ones."""
    copied: set[str] = set()
    for candidate in candidates:
        kin = kinship.of(candidate.session_id)
        if kin is not None:
            if options.near_duplicates == "drop" and not copied.isdisjoint(kin.copy_groups):
                left_out[candidate.session_id] = NEAR_DUPLICATE
                continue
            copied.update(kin.copy_groups)
        side = BY_WEEK.side_of_family(*kinship.span_of(candidate.session_id), options.eval_share)
        yield replace(candidate, split=side)


def _capped(
    candidates: list[Candidate], options: TrainingOptions, left_out: dict[str, Exclusion]
) -> list[Candidate]:
    cap = options.max_per_repository
    if cap is None:
        return candidates
    taken: Counter[str] = Counter()
    for candidate in sorted(candidates, key=_preferred):
        taken[candidate.repository] += 1
        if taken[candidate.repository] > cap:
            left_out[candidate.session_id] = Exclusion("cap", str(cap))
    return [candidate for candidate in candidates if candidate.session_id not in left_out]


_BEST_FIRST: tuple[VerdictName, ...] = (
    *("complete_verified", "complete_unverified", "undetermined", "partial", "failed"),
)


def _preferred(candidate: Candidate) -> tuple[int, float]:
    verdict = candidate.verdict.verdict if candidate.verdict is not None else "undetermined"
    return _BEST_FIRST.index(verdict), -(candidate.quality or 0.0)
