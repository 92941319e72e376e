"""Mining without a model: which troubles good sessions have less of than bad ones.

Good are the sessions that are done and checked, bad those that are partly or not done; by an
efficiency, they are the two ends. They are compared kind by kind of trouble. One that the good
ones have clearly less of is a candidate, "Avoids …", no more: whether it holds for other sessions
is for the trial to say. Whether the search finds rubrics where there are none is seen by dealing
the verdicts and scores out anew, again and again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

from msgspec import Struct, structs

from debrief.evaluation import OFFLINE
from debrief.keys import week_after, week_of
from debrief.rubrics.avoiding import (
    AVOIDED,
    VERSION,
    AvoidedTrouble,
    Look,
    Looking,
    look_at,
)
from debrief.rubrics.contrast import SessionValues, sides_of
from debrief.rubrics.judging import OfflineRubricJudge
from debrief.rubrics.model import (
    MOST,
    DroppedRubric,
    ExtractedRubric,
    Mined,
    ReadWeek,
    Rubric,
    RubricEvidence,
    RubricTrial,
)
from debrief.rubrics.trial import MOST_OFFLINE, looked_at, settle, split_of, try_rubrics
from debrief.sessions.model import Session
from debrief.stats import cliffs_delta

EARLIER_WEEKS = 3
"""How many earlier weeks a small week may borrow sessions from."""


_SHARE = 0.25
"""Of the sessions, at each end of an efficiency."""
_MINIMUM = 4
"""Sessions on each side."""
_ENOUGH = 20
"""Sessions of a week, with a value, that stand alone; a smaller one takes earlier ones in."""
_LEAST_EFFECT = 0.33
"""Cliff's delta of a medium effect."""
_MOST_EVIDENCE = 3
SHARED = "the score is made of the same signals"


class _Seen(Struct, frozen=True):
    id: str
    week: str
    scores: SessionValues
    look: Look

    def level(self, avoided: AvoidedTrouble) -> int:
        return self.look.levels[avoided.key]


@dataclass(eq=False, repr=False)
class OfflineMiner:
    """Finds candidates by contrast of troubles; reads each week's sessions once."""

    look: Looking = look_at
    name = OFFLINE
    version = VERSION
    _weeks: dict[str, list[_Seen]] = field(default_factory=dict)

    def extract(self, week: str, score_name: str, read_week: ReadWeek) -> Mined:
        """Return the troubles that the week's good sessions avoid, and those that they do not.

        A week with fewer than 20 sessions that are good or bad by the score name is too small to
        be compared alone. The sessions of the three weeks before are taken in; when none of the
        week's own sessions is on either side, the week has nothing new to say of a trouble.

        Args:
            week: the ISO date of its Monday.
            score_name: what good means.
            read_week: gives the sessions of a week that are mined, with their scores; a session
                without a usable score is left out.

        Returns:
            Candidates, the strongest effect first; and each trouble that gives none, with why.
        """
        seen = {session.id: session for session in self._see(week, read_week)}
        known = (score_name in session.scores.values for session in seen.values())
        if sum(known) < _ENOUGH:
            for back in range(EARLIER_WEEKS, 0, -1):
                for session in self._see(week_after(week, -back), read_week):
                    seen.setdefault(session.id, session)
        rubrics: list[ExtractedRubric] = []
        dropped: list[DroppedRubric] = []
        for avoided in AVOIDED:
            found = _contrast(avoided, score_name, week, seen)
            if isinstance(found, ExtractedRubric):
                rubrics.append(found)
            elif found is not None:
                dropped.append(found)
        rubrics.sort(key=lambda row: (-(row.effect_size or 0.0), row.avoids))
        return Mined(rubrics=tuple(rubrics), dropped=tuple(dropped))

    def _see(self, week: str, read_week: ReadWeek) -> list[_Seen]:
        """Look at a week's sessions, once for all score names and the weeks that borrow them."""
        if week not in self._weeks:
            if len(self._weeks) > EARLIER_WEEKS:
                del self._weeks[min(self._weeks)]
            self._weeks[week] = [
                _Seen(session.id, week, scores, self.look(session))
                for session, scores in read_week(week)
            ]
        return self._weeks[week]

    def consolidate(
        self,
        extracted: Iterable[ExtractedRubric],
        score_name: str,
        previous: Iterable[Rubric] = (),
    ) -> list[Rubric]:
        """Merge what was mined into the candidates of a score name, ten at most.

        The same trouble of several weeks is one candidate, and its own key. It weighs as much as
        its effects together, so that what shows every week outweighs what showed once; the heaviest
        is tried first.
        """
        groups: dict[str, list[ExtractedRubric]] = {}
        for row in sorted(extracted, key=lambda row: (row.week, row.id)):
            groups.setdefault(row.avoids, []).append(row)
        weights = {
            key: fsum(row.effect_size or 0.0 for row in rows) for key, rows in groups.items()
        }
        heaviest = sorted(groups, key=lambda key: (-weights[key], key))[:MOST]
        return [
            Rubric(
                id=f"rubric_{place:03}",
                key=key,
                score_name=score_name,
                name=groups[key][-1].name,
                description=groups[key][-1].description,
                scoring_criteria=groups[key][-1].scoring_criteria,
                weight=max(0.01, round(weights[key] / weights[heaviest[0]], 2)),
                avoids=key,
                sources=tuple(row.id for row in groups[key]),
                sessions=tuple(dict.fromkeys(id_ for row in groups[key] for id_ in row.sessions)),
            )
            for place, key in enumerate(heaviest, 1)
        ]


def _contrast(
    avoided: AvoidedTrouble, score_name: str, week: str, seen: Mapping[str, _Seen]
) -> ExtractedRubric | DroppedRubric | None:
    """Compare the sessions that give a trouble occasion; None when they are too few to say more."""
    values = {
        one.id: one.scores.values[score_name]
        for one in seen.values()
        if avoided.key in one.look.levels and score_name in one.scores.values
    }
    sides = sides_of(values, score_name, share=_SHARE, minimum=_MINIMUM)
    if sides is None or all(seen[id_].week != week for id_ in (*sides.best, *sides.worst)):
        return None
    best, worst = ([seen[id_] for id_ in ids] for ids in (sides.best, sides.worst))
    delta = cliffs_delta(
        [session.level(avoided) for session in best],
        [session.level(avoided) for session in worst],
    ).value
    shared = score_name in avoided.shares
    if shared or delta < _LEAST_EFFECT:
        return DroppedRubric(
            score_name=score_name,
            extractor=OFFLINE,
            name=avoided.name,
            effect=None if shared else round(delta, 4),
            reason=SHARED if shared else "good sessions do not avoid it clearly more",
        )
    return ExtractedRubric(
        id=f"{week}.{score_name}.{avoided.key}",
        score_name=score_name,
        week=week,
        name=avoided.name,
        description=avoided.description,
        scoring_criteria=avoided.scoring_criteria,
        evidence=_evidence(avoided, worst, week),
        extractor=OFFLINE,
        avoids=avoided.key,
        effect_size=round(delta, 4),
        best_count=len(best),
        worst_count=len(worst),
        sessions=(*sides.best, *sides.worst),
    )


def _evidence(
    avoided: AvoidedTrouble, worst: Iterable[_Seen], week: str
) -> tuple[RubricEvidence, ...]:
    """Quote the bad sessions that had the trouble most, the week's own before borrowed ones."""
    troubled = [session for session in worst if session.look.events[avoided.key]]
    troubled.sort(key=lambda seen: (seen.level(avoided), seen.week != week))
    firsts = (session.look.events[avoided.key][0] for session in troubled[:_MOST_EVIDENCE])
    return tuple(
        RubricEvidence(session_id=e.session_id, turn=e.evidence.turn, quote=e.evidence.quote)
        for e in firsts
    )


Scored = Sequence[tuple[Session, SessionValues]]


class Shuffles(Struct, frozen=True, kw_only=True):
    """What was found in true verdicts and scores, and in shuffled ones."""

    sessions: int
    true: dict[str, int]
    """Rubrics that tell good from bad with the scores as they are, by score name."""
    shuffled: tuple[int, ...]
    """Rubrics that seem to in each shuffle, of all score names."""

    @property
    def share(self) -> float:
        """Return the share of shuffles in which any seems to."""
        return sum(map(bool, self.shuffled)) / max(1, len(self.shuffled))


def false_discoveries(
    scored: Scored,
    shuffles: int = 100,
    seed: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> Shuffles:
    """Search for rubrics with true verdicts and scores, and with these shuffled among the sessions.

    Shuffled, nothing distinguishes anything. The whole search is run each time: mining,
    consolidation, trial and correction; what sessions show of each trouble is looked at once.

    Args:
        scored: sessions of any weeks with their scores.
        shuffles: how many.
        seed: of the shuffling.
        progress: called with 1 after each.
    """
    seen = {session.id: look_at(session) for session, _ in scored}
    chance = random.Random(seed)
    true = Counter(trial.score_name for trial in search(scored, seen) if trial.finding == "tells")
    shuffled = []
    for _ in range(shuffles):
        rows = chance.sample([row for _, row in scored], len(scored))
        dealt = [
            (to, structs.replace(row, session_id=to.id, started=to.started))
            for (to, _), row in zip(scored, rows, strict=True)
        ]
        shuffled.append(sum(trial.finding == "tells" for trial in search(dealt, seen)))
        progress(1)
    return Shuffles(
        sessions=len(scored),
        true={name: true[name] for name in _names(scored)},
        shuffled=tuple(shuffled),
    )


def search(scored: Scored, seen: Mapping[str, Look]) -> list[RubricTrial]:
    """Search sessions for rubrics offline, as a run does, and return every trial.

    Args:
        scored: sessions with their scores.
        seen: what each session shows, by its id.
    """
    weeks: dict[str, list[tuple[Session, SessionValues]]] = {}
    for session, row in sorted(scored, key=lambda pair: pair[0].id):
        weeks.setdefault(week_of(row.started), []).append((session, row))
    split = split_of((week, len(weeks[week])) for week in sorted(weeks))

    def read_week(week: str) -> Iterator[tuple[Session, SessionValues]]:
        return (pair for pair in weeks.get(week, ()) if split.mines(pair[1]))

    def read_sessions(ids: Collection[str]) -> Iterator[Session]:
        chosen = set(ids)
        return (session for session, _ in scored if session.id in chosen)

    miner, names = OfflineMiner(lambda session: seen[session.id]), _names(scored)
    judge = OfflineRubricJudge(lambda session: seen[session.id])
    aside = [row for _, row in scored if not split.mines(row)]
    mined = [miner.extract(week, name, read_week) for week in sorted(weeks) for name in names]
    extracted = [row for each in mined for row in each.rubrics]
    trials = []
    for name in names:
        own = miner.consolidate([row for row in extracted if row.score_name == name], name)
        trials += try_rubrics(own, read_sessions, aside, judge, most_judgements=MOST_OFFLINE)
    return settle(trials, looked_at(trials, extracted, [row for m in mined for row in m.dropped]))


def _names(scored: Scored) -> list[str]:
    return list(dict.fromkeys(name for _, row in scored for name in row.values))
