"""What was said of one session: scores, judges, rubrics and labels, as reasons with places; and the
marks that show the words that they cite.

A mark is where the words of a quotation stand in a text, or in the HTML that was made of it. White
space and case do not count, and signs need not: a quotation has often been shortened, and Markdown
takes signs away.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from html import unescape
from typing import Final, Literal

from markupsafe import Markup, escape
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import without_controls
from debrief.execution.model import Execution
from debrief.execution.store import execution_of
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.models.fencing import LOOK_FIRST
from debrief.rubrics.calibrating import UNCALIBRATED, Calibrations, calibrations_in
from debrief.rubrics.model import EVALUATIONS, RUBRICS, Rubric, RubricEvaluation
from debrief.scoring.dimensions import BY_NAME
from debrief.scoring.model import SCORE_NAMES, SessionScores
from debrief.scoring.reading import (
    STATES_SHOWN,
    Attitude,
    ClaimState,
    RequestState,
    SessionReading,
)
from debrief.scoring.shown import mean_shown, reason_shown, value_shown
from debrief.scoring.speaking import in_order, speaking_judgements
from debrief.scoring.verdict import SessionVerdict, VerdictName, ground_shown
from debrief.sessions.model import Evidence

Group = Literal[
    "verdict",
    "other",
    "request",
    "claim",
    "incident",
    "trouble",
    "person",
    "dimension",
    "judge",
    "rubric",
]
"""``other``: the verdict of a scorer that does not speak for the session."""
OF_READING: Final[Collection[Group]] = (
    "other",
    "request",
    "claim",
    "incident",
    "trouble",
    "person",
)
"""What comes between the verdict and the dimensions."""
Tone = Literal["good", "calm", "fair", "bad", "none", ""]
_LEAST, _RANGE = 1, 4
"""Of a rubric's scale from 1 to 5: its lowest score, and how far it goes."""
_LETTER = re.compile(r"[^\W_]")
_NO_LETTER = re.compile(r"[\W_]+")
_NO_TEXT = re.compile(r"<[^>]*>|&#?\w+;")
_CUT = re.compile(r"…|: ")
_FEWEST = 6
"""Letters of a part of a quotation that are not found by chance."""
_LONG_LINE = 200
_MOST = 400
"""Letters of a quotation that are looked for."""


VERDICT_TONES: Mapping[VerdictName, Tone] = {
    "done_verified": "good",
    "done_unverified": "calm",
    "partly": "fair",
    "not_done": "bad",
    "cannot_tell": "none",
}
"""How each verdict is coloured."""
_STATE_TONES: Mapping[RequestState, Tone] = {
    "done_seen": "good",
    "done_unseen": "calm",
    "partly": "fair",
    "not": "bad",
    "withdrawn": "none",
}
_CLAIM_TONES: Mapping[ClaimState, Tone] = {
    "supported": "good",
    "unsupported": "fair",
    "contradicted": "bad",
}
_ATTITUDES: Mapping[Attitude, tuple[str, Tone]] = {
    "approval": ("approves", "good"),
    "correction": ("corrects", "fair"),
}
_NOT_JUDGED = "not judged"
_NOT_ASKED = "The session changed nothing, so this judge was not asked."
_UNSEEN = "The session does not show what it asks for."


class ShownReason(Struct, frozen=True, kw_only=True):
    """Why a session got a verdict or a score."""

    group: Group
    name: str
    value: float | None = None
    """From 0 to 1, whatever the scale is; None without a score."""
    shown: str = ""
    """The score on its own scale."""
    weight: float | None = None
    text: str = ""
    by: str = ""
    evidence: tuple[Evidence, ...] = ()
    failure: str = ""
    """Why there is no score; empty when there is one."""
    tone: Tone = ""
    """How what is shown is coloured, where that is no score."""
    turn: int = 0
    """Of a request, the turn that asks for it; 0 where that is not known."""
    rule: str = ""
    """Of a trouble, the line for a prompt file that would stop it."""
    is_second: bool = False
    """Somebody else speaks for the session on this."""
    id: str = ""
    """Of the element that shows it."""


class Assessment(Struct, frozen=True, kw_only=True):
    """All that was said of one session."""

    scores: tuple[SessionScores, ...] = ()
    """One for each scorer; the one that speaks for the session first."""
    judgements: tuple[JudgeEvaluation, ...] = ()
    rubrics: tuple[tuple[RubricEvaluation, str], ...] = ()
    """With the rubric's name."""
    labels: tuple[str, ...] = ()
    """What is known of the session from outside, in words."""
    execution: Execution | None = None
    """What running its checks says; None where nobody ran them."""
    calibrations: Calibrations = UNCALIBRATED
    """That numbers are shown by, beside the raw ones."""

    @property
    def main(self) -> SessionScores | None:
        """Return the scores that are shown first; None for a session that nobody scored."""
        return next(iter(self.scores), None)

    @property
    def verdict(self) -> SessionVerdict | None:
        """Return whether what was asked was done; None where nobody looked."""
        return next((row.verdict for row in self.scores if row.verdict is not None), None)

    @property
    def reading(self) -> SessionReading | None:
        """Return what the model that speaks for the session read in it; None where none did."""
        return None if self.main is None else self.main.reading

    @property
    def reading_shown(self) -> str:
        """Return how sure the model is, and its two numbers; empty without a reading."""
        read = self.reading
        if read is None:
            return ""
        sure = [f"confidence {read.confidence}"] if read.confidence is not None else []
        numbers = (("quality", read.quality), ("effort", read.effort))
        found = [f"{name} {value:.2f}" for name, value in numbers if value is not None]
        return ", ".join([*sure, *found])

    @property
    def mean_shown(self) -> str:
        """Return the mean of the dimensions, marked where some have no value, with the calibrated
        number before it where there is one; a dash and why where there is none."""
        if self.main is None:
            return "–"
        known, raw = self.calibrations.of_quality(self.main), mean_shown(self.main)
        if known is None or self.main.overall_quality is None:
            return raw
        worth = known.worth(self.main.overall_quality)
        return f"{worth:.2f}, calibrated by {known.labelled} labels; raw {raw}"

    @property
    def warning(self) -> str:
        """Return what to know of every score; empty as a rule."""
        flags = (
            *(row.injection_suspected for row in self.scores),
            *(row.injection_suspected for row in self.judgements),
            *(row.injection_suspected for row, _ in self.rubrics),
        )
        return LOOK_FIRST if any(flags) else ""


def read_assessment(
    lake: Lake, week: str, session_id: str, labels: Iterable[str] = ()
) -> Assessment:
    """Read what a lake's tables say of one session.

    Args:
        lake: where they are.
        week: the session's.
        session_id: whose.
        labels: what is known of it from outside, in words.
    """
    only = ("session_id", {session_id})
    scores = lake.read("session_scores", week, SessionScores, only)
    judgements = lake.read("judge_evaluations", week, JudgeEvaluation, only)
    held = list(lake.read(EVALUATIONS, week, RubricEvaluation, only))
    names = {
        (name, rubric.key): rubric.name
        for name in (SCORE_NAMES if held else ())
        for rubric in lake.read(RUBRICS, name, Rubric)
    }
    return Assessment(
        scores=tuple(in_order(scores)),
        judgements=tuple(sorted(in_order(judgements), key=lambda row: row.judge)),
        rubrics=tuple(
            (row, names.get((row.score_name, row.rubric_key), row.rubric_key)) for row in held
        ),
        labels=tuple(labels),
        execution=execution_of(lake, week, session_id),
        calibrations=calibrations_in(lake),
    )


def label_words(labels: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return labels in words: of each its name, its value, its source and who gave it."""
    return tuple(
        f"{name}: {value} ({', '.join(filter(None, (source, who)))})"
        for name, value, source, who in labels
    )


def reasons_of(assessment: Assessment) -> tuple[ShownReason, ...]:
    """Return each reason, in the order in which pages show them."""
    heard = list(speaking_judgements(assessment.judgements))
    found = [
        *(_of_verdict(verdict) for verdict in [assessment.verdict] if verdict is not None),
        *_of_others(assessment),
        *(_of_reading(assessment.reading) if assessment.reading is not None else ()),
        *(
            replace(reason, is_second=row is not assessment.main)
            for row in assessment.scores
            for reason in _of_scores(row, assessment.calibrations.applied(row))
        ),
        *(
            replace(
                _of_judge(row, assessment.calibrations.applied_to_judgement(row)),
                is_second=all(row is not one for one in heard),
            )
            for row in assessment.judgements
        ),
        *(_of_rubric(row, name) for row, name in assessment.rubrics if row.status != "no_occasion"),
    ]
    return tuple(replace(reason, id=f"reason-{n}") for n, reason in enumerate(found, 1))


def _of_verdict(verdict: SessionVerdict) -> ShownReason:
    return ShownReason(
        group="verdict",
        name="verdict",
        shown=verdict.shown,
        text=ground_shown(verdict),
        evidence=verdict.evidence,
    )


def _of_others(assessment: Assessment) -> Iterator[ShownReason]:
    """Yield each verdict beside the one that counts: what other models and the rules say, and,
    where an outcome decided, what the model read."""
    for row in assessment.scores:
        said = row.verdict
        if row.reading is not None and (said is None or said.ground != "model"):
            said = SessionVerdict(
                verdict=row.reading.verdict,
                ground="model",
                source=row.model,
                evidence=row.reading.proofs,
            )
        if said is not None and said.ground != "outcome" and said != assessment.verdict:
            yield ShownReason(
                group="other",
                name=f"verdict by {row.model}",
                shown=said.shown,
                tone=VERDICT_TONES[said.verdict],
                text=ground_shown(said),
                by=row.model,
                evidence=said.evidence,
            )


def _of_reading(reading: SessionReading) -> Iterator[ShownReason]:
    for number, request in enumerate(reading.requests, 1):
        yield ShownReason(
            group="request",
            name=f"request {number}",
            shown=STATES_SHOWN[request.state],
            tone=_STATE_TONES[request.state],
            text=request.asked,
            turn=request.turn,
            evidence=tuple(filter(None, [request.proof])),
        )
    for claim in reading.claims:
        yield ShownReason(
            group="claim",
            name="claim",
            shown=claim.state,
            tone=_CLAIM_TONES[claim.state],
            text=f"“{claim.quote}”" if claim.quote else "",
            evidence=(claim.place, *filter(None, [claim.proof])),
        )
    for incident in reading.incidents:
        yield ShownReason(
            group="incident", name="incident", text=incident.what, evidence=(incident.place,)
        )
    for trouble in reading.troubles:
        yield ShownReason(
            group="trouble",
            name=trouble.kind.replace("_", " "),
            text=trouble.what,
            rule=trouble.rule,
            evidence=(trouble.place,),
        )
    for words in reading.person:
        shown, tone = _ATTITUDES[words.says]
        yield ShownReason(
            group="person",
            name="the person",
            shown=shown,
            tone=tone,
            text=f"“{words.quote}”" if words.quote else "",
            evidence=(words.place,),
        )


def _of_scores(row: SessionScores, calibrated: SessionScores) -> Iterator[ShownReason]:
    for verdict, worth in zip(row.verdicts, calibrated.verdicts, strict=True):
        shown = value_shown(verdict)
        shown = f"{shown} ± {verdict.spread:.2f}" if verdict.spread is not None else shown
        yield ShownReason(
            group="dimension",
            name=verdict.dimension.replace("_", " "),
            value=worth.value,
            shown=_beside_raw(worth.value, verdict.value, shown),
            weight=BY_NAME[verdict.dimension].weight,
            text=reason_shown(verdict),
            by=row.model,
            evidence=verdict.evidence,
        )


def _beside_raw(calibrated: float | None, raw: float | None, shown: str) -> str:
    """Return a calibrated number with the raw one, where they differ."""
    return shown if calibrated is None or calibrated == raw else f"{calibrated:.2f} (raw {shown})"


def _of_judge(row: JudgeEvaluation, calibrated: JudgeEvaluation) -> ShownReason:
    nothing = "failed" if row.status == "failed" else _NOT_JUDGED
    shown = nothing if row.score is None else f"{row.score:.2f}"
    text = row.feedback
    if row.score is None and row.status != "failed":
        text = _NOT_ASKED if row.status == "no_change" else row.feedback or _UNSEEN
    shown = f"{shown} ± {row.spread:.2f}" if row.spread is not None else shown
    return ShownReason(
        group="judge",
        name=row.judge,
        value=calibrated.score,
        shown=_beside_raw(calibrated.score, row.score, shown),
        weight=row.weight,
        text=text,
        by=row.answered_by or row.model,
        evidence=row.evidence,
        failure=row.failure,
    )


def _of_rubric(row: RubricEvaluation, name: str) -> ShownReason:
    return ShownReason(
        group="rubric",
        name=name,
        value=None if row.score is None else (row.score - _LEAST) / _RANGE,
        shown="failed" if row.score is None else f"{row.score} of 5",
        text=row.reasoning,
        by=row.model,
        evidence=row.evidence,
        failure=row.failure,
    )


class Back(Struct, frozen=True):
    """A way back from a mark to a reason."""

    href: str
    name: str


class EvidenceMark(Struct, frozen=True, kw_only=True):
    """A place in a session that reasons cite."""

    number: int
    """From 1, in the order of the transcript."""
    turn: int
    quote: str = ""
    backs: tuple[Back, ...] = ()
    """The reasons."""

    @property
    def anchor(self) -> str:
        """Return the id of the element that stands for it."""
        return f"mark-{self.number}"


def find(text: str, quote: str) -> tuple[int, int] | None:
    """Return where a quotation is in a text; None where nowhere.

    Signs count where that finds it, else letters alone; and of one with something left out in its
    middle, the longest part.

    >>> find("It **is** done.", "is done…")
    (5, 14)
    """
    for part in (quote, *sorted(_CUT.split(quote), key=len, reverse=True)):
        letters = _LETTER.findall(part)[:_MOST]
        if not letters or "".join(letters).lower() not in _letters_of(text):
            continue
        if part is quote or len(letters) >= _FEWEST:
            signs = "".join(part.strip("… ").split())[:_MOST]
            found = _pattern(signs, r"\s*+").search(text)
            found = found or _pattern("".join(letters), r"[\W_]*+").search(text)
            if found:
                return found.span()
    return None


@lru_cache(maxsize=64)
def _letters_of(text: str) -> str:
    """Return the letters of a text, which tell at once that a quotation is not in it."""
    return _NO_LETTER.sub("", text).lower()


@lru_cache(maxsize=512)
def _pattern(signs: str, between: str) -> re.Pattern[str]:
    return re.compile(between.join(map(re.escape, signs)), re.IGNORECASE)


def marked(html: str, marks: Iterable[EvidenceMark]) -> Markup:
    """Return HTML in which the words of each mark stand out and lead back to its reasons.

    A mark whose words are not there stands before everything.
    """
    before = ""
    for mark in marks:
        visible = _NO_TEXT.sub(_seen, html)
        place = find(visible, mark.quote)
        backs = _backs(mark)
        if place is None:
            before += f'<p class="evidence-here" id="{mark.anchor}">{_note(mark)}{backs}</p>'
        else:
            html = _wrapped(html, _uncut(html, place), mark, backs)
    return Markup(f"{before}{html}")


def _uncut(html: str, place: tuple[int, int]) -> tuple[int, int]:
    """Return a stretch that ends with the tag or the entity that it would end within."""
    start, end = place
    ends = (each.end() for each in _NO_TEXT.finditer(html) if each.start() < end < each.end())
    return start, next(ends, end)


def _seen(found: re.Match[str]) -> str:
    """Return what is seen of a tag or an entity, in as many characters."""
    return ("" if found[0].startswith("<") else unescape(found[0])).ljust(len(found[0]))


def _note(mark: EvidenceMark) -> str:
    return _shown(f"Evidence: “{mark.quote}” " if mark.quote else "Evidence: ")


def _shown(text: str) -> str:
    return escape(without_controls(text))


def _backs(mark: EvidenceMark) -> str:
    return "".join(
        f'<a class="back" href="{escape(back.href)}" title="Back to the reason">'
        f"{_shown(back.name)}</a>"
        for back in mark.backs
    )


def _wrapped(html: str, place: tuple[int, int], mark: EvidenceMark, backs: str) -> str:
    """Wrap the text between two places, piece by piece, for tags may begin or end there."""
    parts, identity = [html[: place[0]]], f' id="{mark.anchor}"'
    inside = html[place[0] : place[1]]
    for piece in re.split(r"(<[^>]*>)", inside):
        if piece.startswith("<") or not piece:
            parts.append(piece)
        else:
            parts.append(f'<mark class="evidence"{identity}>{piece}</mark>')
            identity = ""
    after = html[place[1] :]
    for opened, closed in (("<a ", "</a>"), ("<summary", "</summary>")):  # no link may be in these
        begun = "".join(parts)
        if begun.count(opened) > begun.count(closed):
            head, tag, after = after.partition(closed)
            parts += [head, tag]
    return "".join([*parts, backs, after])


class Gap(Struct, frozen=True):
    """How many characters are left out of a long text."""

    characters: int


def clipped(text: str, head: int, tail: int, quotes: Sequence[str] = ()) -> list[str | Gap]:
    """Return the beginning and the end of a long text and what is around quotations, in order.

    Args:
        text: however long.
        head: characters of its beginning.
        tail: characters of its end.
        quotes: that must not be left out.
    """
    if len(text) <= head + tail:
        return [text]
    spans = [(0, head), (len(text) - tail, len(text))]
    for quote in quotes:
        place = find(text, quote)
        if place is not None:
            spans.append((max(0, place[0] - tail // 2), min(len(text), place[1] + tail // 2)))
    spans = [_whole_lines(text, *span) for span in spans]
    parts: list[str | Gap] = []
    end = 0
    for start, stop in sorted(spans):
        if start > end:
            between = text[end:start]
            parts.append(Gap(len(between)) if between.strip() else between)
        if stop > end:
            parts.append(text[max(start, end) : stop])
            end = stop
    return parts


def _whole_lines(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return a stretch that begins and ends with lines, where lines are not too long for that."""
    before = text.rfind("\n", max(0, start - _LONG_LINE), start) + 1 if start else 0
    after = text.find("\n", stop, stop + _LONG_LINE)
    return before or start, stop if after < 0 else after
