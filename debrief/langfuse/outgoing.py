"""The scores sent for a session: its verdict, and seven of its review; and receipts.

A session on which nobody gave a verdict and that no model reviewed has none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import quote
from uuid import UUID, uuid5

from msgspec import Struct

from debrief.keys import digest_of, week_of
from debrief.langfuse.client import timestamp
from debrief.models.fencing import LOOK_FIRST
from debrief.scoring.dimensions import (
    BY_NAME,
    DIMENSIONS,
    OVERALL,
    dimension_score,
)
from debrief.scoring.model import SessionScores
from debrief.scoring.shown import known_shown, value_shown
from debrief.scoring.verdict import (
    VERDICT_NAMES,
    WORST_FIRST,
    SessionVerdict,
    basis_with_turns,
)
from debrief.sessions.model import Evidence
from debrief.settings import ScoreTarget

if TYPE_CHECKING:
    from langfuse.api.scores.types.create_score_request import CreateScoreRequest

Redact = Callable[[str], str]

VERDICT = "verdict"
NAMES: tuple[str, ...] = (VERDICT, *BY_NAME, OVERALL)
"""The scores that a session gets."""
_WITHOUT_ORDER = -1
"""The number of ``undetermined`` among a server's categories: it is neither above nor below."""
_YES_OR_NO = "success"
_NAME = re.compile(r"[A-Za-z0-9_ .()-]{1,35}\Z")

LONGEST_COMMENT = 4_000
CONTENT = "content_digest"
"""Key of metadata: what was sent, so that it is recognised when it is read back."""
_NAMESPACE = UUID("6c1f6b2c-4d5f-5f0e-9d4c-1d1f3a8f5b7e")
_SCHEME = re.compile(r"\b([a-z][a-z0-9+.-]*):(?=//)", re.IGNORECASE)
_MARKUP = str.maketrans({"<": "‹", ">": "›", "[": "(", "]": ")", "`": "'"})


def config_request(name: str) -> dict[str, Any]:
    """Return what the SDK makes the config of a score with.

    What is neither the verdict, a dimension nor ``success`` is a label of a judge or a rubric: any
    number.
    """
    dimension = BY_NAME.get(name)
    kind: dict[str, Any] = {"data_type": "NUMERIC", "min_value": 0, "max_value": 1}
    if dimension is not None:
        anchors = (f"{a.label or format(a.value, 'g')}: {a.text}" for a in dimension.anchors)
        description = f"{dimension.question} {'; '.join(anchors)}"
        if dimension.kind == "categorical":
            categories = [{"label": a.label, "value": a.value} for a in dimension.anchors]
            kind = {"data_type": "CATEGORICAL", "categories": categories}
    elif name == VERDICT:
        description = "Whether what was asked was done, and whether something shows it"
        numbers = {verdict: number for number, verdict in enumerate(WORST_FIRST)}
        numbers["undetermined"] = _WITHOUT_ORDER
        categories = [{"label": verdict, "value": numbers[verdict]} for verdict in VERDICT_NAMES]
        kind = {"data_type": "CATEGORICAL", "categories": categories}
    elif name == OVERALL:
        parts = ", ".join(f"{other.name} ({other.weight:g})" for other in DIMENSIONS)
        description = f"Weighted mean of those that have a value of {parts}"
    elif name == _YES_OR_NO:
        kind, description = {"data_type": "BOOLEAN"}, "Whether the session did what was asked for"
    else:
        kind, description = {"data_type": "NUMERIC"}, f"What people say of {name}"
    return {"name": name, **kind, "description": description}


def can_name_a_config(name: str) -> bool:
    """Return whether a server takes ``name`` as a config's."""
    return _NAME.match(name) is not None


class ScoreReceipt(Struct, frozen=True, kw_only=True):
    """One row: one score of one session, and whether the server has it."""

    score_id: str
    session_id: str
    name: str
    value: str
    """The number, or the category, as it was sent."""
    status: Literal["written", "unconfirmed", "failed", "kept"]
    """``written`` only after it was read back from the server. ``kept``: not sent, for the server
    has nothing of the session."""
    reason: str = ""
    host: str = ""
    content_digest: str = ""
    """Of what was sent: the same digest on a written row is not sent again."""
    checked: datetime | None = None
    """When the server was last asked for it."""

    @property
    def is_missing(self) -> bool:
        """Whether the server should have it, and does not show it."""
        return self.status in ("failed", "unconfirmed")


class OutgoingScore(Struct, frozen=True, kw_only=True):
    """One score as it is sent, target and config apart."""

    id: str
    session_id: str
    name: str
    value: str | float
    comment: str
    metadata: dict[str, str | int | float | bool]
    timestamp: str
    source: Literal["API", "ANNOTATION"] = "API"

    @property
    def digest(self) -> str:
        """SHA-256 of the content: the same one need not be sent again."""
        return digest_of(self)

    def request(self, place: Destination, config_id: str, link: str = "") -> CreateScoreRequest:
        """Return the request that writes it.

        Args:
            place: where it goes.
            config_id: of the score's config.
            link: to where the evidence can be looked at.
        """
        from langfuse.api.scores.types.create_score_request import CreateScoreRequest

        return CreateScoreRequest(
            id=self.id,
            **place.subject,
            name=self.name,
            value=self.value,
            data_type=config_request(self.name)["data_type"],
            config_id=config_id,
            comment=f"{self.comment}\n{link}" if link else self.comment,
            metadata={**self.metadata, CONTENT: self.digest},
            timestamp=self.timestamp,
            **({"source": self.source} if self.source != "API" else {}),
            **({"environment": place.environment} if place.environment else {}),
        )


class Destination(Struct, frozen=True):
    """Where on the server a session's scores go."""

    subject: dict[str, str]
    """The session, or the trace, as the SDK names it."""
    environment: str = ""
    """Of the session's traces; empty when the server does not say it."""


class UnreviewedSession(Struct, frozen=True, kw_only=True):
    """A session that no model reviewed: a person or an outcome may speak of it all the same."""

    session_id: str
    started: datetime
    task: str
    tool: str


ToScore: TypeAlias = SessionScores | UnreviewedSession


def outgoing_scores(
    row: ToScore, redact: Redact = str, verdict: SessionVerdict | None = None
) -> Iterator[OutgoingScore]:
    """Yield the scores of one session: its verdict, and of its review the dimensions that have a
    value, and the overall quality.

    Args:
        row: a review with status ``ok``, or a session without one.
        redact: takes secrets out of a comment, as the last gate before it leaves the machine.
        verdict: of a person or an outcome, before whom that of the review does not count; None
            where nobody but the review speaks.

    Raises:
        DimensionError: a category or a number that is not one of its dimension's; a server would
            take it and drop it in silence.
    """
    review = row if isinstance(row, SessionScores) else None
    said = verdict or (review.verdict if review is not None else None)
    scores: list[tuple[str, str | float, str, Sequence[Evidence]]] = []
    if review is not None:
        scores += _of_review(review)
    if said is not None:
        by = review if said.basis == "review" else None
        yield OutgoingScore(
            id=score_id(row.session_id, VERDICT),
            session_id=row.session_id,
            name=VERDICT,
            value=said.verdict,
            comment=_comment(row, by, basis_with_turns(said), redact, said.evidence),
            metadata=_metadata(row, by, said.basis),
            timestamp=timestamp(row.started),
        )
    for name, value, why, evidence in scores:
        yield OutgoingScore(
            id=score_id(row.session_id, name),
            session_id=row.session_id,
            name=name,
            value=value,
            comment=_comment(row, review, why, redact, evidence),
            metadata=_metadata(row, review, "review"),
            timestamp=timestamp(row.started),
        )


def _of_review(row: SessionScores) -> Iterator[tuple[str, str | float, str, Sequence[Evidence]]]:
    """Yield name, value, reason and evidence of each score that a review gives."""
    for scored in row.dimension_scores:
        if scored.value is None:
            continue
        given = scored.category if scored.category is not None else scored.value
        checked = dimension_score(scored.dimension, given)
        value = checked.category or checked.value or 0.0
        yield scored.dimension, value, scored.rationale, scored.evidence
    if row.overall_quality is not None:
        of = [f"Mean {known}" for known in [known_shown(row)] if known]
        parts = (f"{scored.dimension}: {value_shown(scored)}" for scored in row.dimension_scores)
        overall = min(1.0, max(0.0, row.overall_quality))
        yield OVERALL, overall, "\n".join([*of, *parts]), ()


def outdated_score(row: ToScore, name: str, value: str, redact: Redact = str) -> OutgoingScore:
    """Return what takes the place of a score that was given before, and now is not.

    A server cannot be made to delete it without losing a later one of its id: so its value stays,
    and it says that it is outdated.

    Args:
        row: the latest review, or the session without one.
        name: of the score.
        value: as the server shows it.
        redact: as for ``outgoing_scores``.
    """
    is_category = config_request(name)["data_type"] == "CATEGORICAL"
    review = row if isinstance(row, SessionScores) else None
    dimensions = review.dimension_scores if review is not None else ()
    now = next((scored for scored in dimensions if scored.dimension == name), None)
    why = f"Outdated: nobody gives this now. {now.rationale if now else ''}".rstrip()
    return OutgoingScore(
        id=score_id(row.session_id, name),
        session_id=row.session_id,
        name=name,
        value=value if is_category else float(value),
        comment=_comment(row, review, why, redact, now.evidence if now else ()),
        metadata={**_metadata(row, review, ""), "outdated": True},
        timestamp=timestamp(row.started),
    )


def score_id(session_id: str, name: str, *label: str) -> str:
    """Return the one id of a session's score, whoever scores.

    Args:
        session_id: of the session.
        name: of the score.
        label: of a person's label: where it was given, and by whom.
    """
    return str(uuid5(_NAMESPACE, "\0".join((session_id, name, *label))))


def id_on(target: ScoreTarget, identity: str) -> str:
    """Return the id that a score has where it is written on ``target``.

    A server never moves a score from a session to a trace or back, whatever is sent under its id.

    Args:
        target: what it is written on.
        identity: the score's id on its session.
    """
    return identity if target == "session" else str(uuid5(_NAMESPACE, f"{identity}\0{target}"))


def plain_comment(text: str) -> str:
    """Return ``text`` without anything that a browser or a Markdown view would act on.

    A rationale may quote a session, and a session may hold HTML, images and links.
    """
    hidden = ("Cc", "Cf", "Cs")
    visible = (c for c in text if c in "\n\t" or unicodedata.category(c) not in hidden)
    return _SCHEME.sub(r"\1 :", "".join(visible).translate(_MARKUP)).strip()


def evidence_link(host: str, project: str, subject: dict[str, str]) -> str:
    """Return the address of the server's own page of a session or trace; empty without a project.

    The page shows the turns that a comment cites, and the scores beside them.
    """
    if not project:
        return ""
    kind, identity = next(iter(subject.items()))
    page = {"session_id": "sessions", "trace_id": "traces"}[kind]
    return f"{host}/project/{quote(project, safe='')}/{page}/{quote(identity, safe='')}"


def _comment(
    row: ToScore,
    review: SessionScores | None,
    why: str,
    redact: Redact,
    evidence: Sequence[Evidence],
) -> str:
    turns = sorted({place.turn for place in evidence})
    seen = f"Evidence: session {row.session_id}"
    if turns:
        word = "turn" if len(turns) == 1 else "turns"
        seen += f", {word} {', '.join(map(str, turns[:20]))}"
    notes = [seen]
    if review is not None:
        parts = f", in {len(review.chunks)} parts" if len(review.chunks) > 1 else ""
        by = f"Reviewed by {review.model} ({review.scoring_fingerprint}){parts}"
        notes = [*_notes(review), seen, by]
    foot = safe("\n".join(notes), redact)
    text = safe(why, redact)
    room = LONGEST_COMMENT - len(foot) - 2
    if len(text) > room:
        text = f"{text[: room - 3]}..."
    return f"{text}\n\n{foot}"


def _notes(row: SessionScores) -> Iterator[str]:
    if row.uncertain:
        agreement = row.chunk_agreement or 0.0
        yield f"Uncertain: its {len(row.chunks)} parts disagree (agreement {agreement:.2f})."
    if row.injection_suspected:
        yield LOOK_FIRST


def safe(text: str, redact: Redact) -> str:
    """Make text plain, and take secrets out of what it is then: both can uncover what was split."""
    return plain_comment(redact(plain_comment(text)))


def _metadata(
    row: ToScore, review: SessionScores | None, basis: str
) -> dict[str, str | int | float | bool]:
    """Return always the same keys: a server keeps those of before that it is not sent again."""
    agreement = review.chunk_agreement if review is not None else None
    return {
        "basis": basis,
        "scorer": review.model if review is not None else "",
        "scoring_fingerprint": review.scoring_fingerprint if review is not None else "",
        "week": week_of(row.started),
        "task": row.task,
        "tool": row.tool,
        "parts": len(review.chunks) if review is not None else 0,
        "uncertain": review is not None and review.uncertain,
        "injection_suspected": review is not None and review.injection_suspected,
        "chunk_agreement": "" if agreement is None else agreement,
        "outdated": False,
    }
