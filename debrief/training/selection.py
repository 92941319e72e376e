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
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from debrief.scoring.order import OrderPlace
from debrief.scoring.verdict import VERDICT_LABELS, SessionVerdict, VerdictName
from debrief.snapshots.fingerprint import comparison_key
from debrief.snapshots.model import UNKNOWN, SessionMetadataRow
from debrief.training.closed import broke_off
from debrief.training.kinship import Kinship, SessionTraits
from debrief.training.model import Exclusion, SkippedSessions, Split, Status
from debrief.training.options import TrainingOptions
from debrief.training.splits import BY_WEEK

NO_METADATA = Exclusion("no_metadata")
NOT_SCORED = Exclusion("not_scored")
NO_ANSWER = Exclusion("no_answer")
NO_REQUEST = Exclusion("no_request")
SUSPECTED = Exclusion("suspected")
NO_CHANGE = Exclusion("no_change")
NO_VALIDATION = Exclusion("no_validation")
UNSURE = Exclusion("unsure")
READ_AS_UNFIT = Exclusion("reading")
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
    has_scores: bool
    """It was scored, and that did not fail."""
    quality: float | None = None
    """Overall quality; None where nothing shows one."""
    verdict: VerdictName = "undetermined"
    """By an outcome, else as the session shows it."""
    is_cut: bool = False
    """It broke off, and only its turns up to the last closed one are trained on."""
    place: OrderPlace | None = None
    """In the order of the person's own sessions; None where it cannot be compared."""
    outcome: Success | None = None
    """As a label says it; None when none does."""
    read_as_unfit: bool = False
    """The model that read it would train on nothing of it."""
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
    place: OrderPlace | None = None,
) -> Candidate:
    """Return what a session is chosen by."""
    verdict = verdict_by(scores, outcome)
    said = (*((scores,) if scores else ()), *rubric_evaluations, *judgements)
    return Candidate(
        traits=traits,
        tool=metadata.tool if metadata else traits.tool,
        model=(metadata.model if metadata else None) or traits.model,
        repository=(metadata.repository if metadata else "") or traits.repository,
        has_metadata=metadata is not None,
        has_scores=scores is not None and scores.status == "ok",
        quality=scores.overall_quality if scores else None,
        verdict=verdict.verdict if verdict else "undetermined",
        is_cut=traits.closed and broke_off(verdict),
        place=place,
        outcome=outcome,
        read_as_unfit=_trains_nothing(scores),
        suspected=any(row.injection_suspected for row in said),
        held_as=metadata.status if metadata else "",
        withheld=metadata.withheld if metadata else "",
    )


def _trains_nothing(scores: SessionScores | None) -> bool:
    reading = scores.review if scores is not None else None
    return reading is not None and reading.train is not None and reading.train.what == "none"


def verdict_by(scores: SessionScores | None, outcome: Success | None) -> SessionVerdict | None:
    """Return the verdict that an outcome gives, which may be known only since the session was
    scored; else that of its scores, None where there is none."""
    known = scores.verdict if scores is not None else None
    if outcome is None:
        return known
    verdict: VerdictName = "complete_verified" if outcome.success else "failed"
    if known is not None and (known.verdict, known.basis) == (verdict, "outcome"):
        return known
    return SessionVerdict(verdict=verdict, basis="outcome", source=outcome.source)


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
    quality, place = candidate.quality or 0.0, candidate.place
    probability = (place.probability if place else None) or 0.0
    released = candidate.held_as == "ready"
    needs_change = options.require_change if released else options.needs_change
    needs_validation = options.require_validation if released else options.needs_validation
    likely, lowest, least = (
        options.min_probability,
        options.min_place,
        options.min_overall_quality,
    )
    is_success = candidate.outcome is not None and candidate.outcome.success
    verdict = candidate.verdict
    asked = verdict in (options.verdicts or VERDICT_LABELS) or (
        released and verdict == "undetermined"
    )
    asked = asked or candidate.is_cut  # of which the closed turns' own verdict decides
    reasons = (
        (not candidate.has_metadata, NO_METADATA),
        (not candidate.has_scores, NOT_SCORED),
        (candidate.withheld, Exclusion("withheld", candidate.withheld)),
        (not traits.answered, NO_ANSWER),
        (not traits.asked, NO_REQUEST),
        (candidate.suspected and not options.allow_suspected_injections, SUSPECTED),
        (options.tools and candidate.tool not in options.tools, OTHER_TOOL),
        (options.models and candidate.model not in options.models, OTHER_MODEL),
        (day < (options.since or day) or day > (options.until or day), OUT_OF_DATES),
        (options.outcome == "succeeded" and not is_success, NOT_SUCCEEDED),
        (probability < likely, Exclusion("probability", f"{likely:g}")),
        ((place.place if place else 0.0) < lowest, Exclusion("place", f"{lowest:g}")),
        (quality < least, Exclusion("quality", f"{least:g}")),
        (options.status == "ready" and candidate.held_as == "draft", DRAFT),
        (needs_change and not traits.growth, NO_CHANGE),
        (needs_validation and not traits.validated, NO_VALIDATION),
        (traits.unsure_redactions and not options.allow_unsure_redactions, UNSURE),
        (not asked, Exclusion("verdict", VERDICT_LABELS[verdict])),
        (candidate.read_as_unfit and not released, READ_AS_UNFIT),
    )
    return next((reason for applies, reason in reasons if applies), None)


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
    return _BEST_FIRST.index(candidate.verdict), -(candidate.quality or 0.0)
