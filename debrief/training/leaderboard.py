"""The leaderboard: how prompts, tools and models compare, where they can be compared.

What is compared is how many of the sessions with a verdict are done and checked. Rows of one group
were looked at by the same judges (eval fingerprint) and the same scorer (scoring fingerprint), and
within it like is compared with like: sessions on the same task, else in the same repository, of the
same kind and size. A row that shares too little of that with the best one has no rank.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, permutations
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from debrief.evaluation import OFFLINE
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.markdown import interval, plain
from debrief.outcomes.store import LabelledSession, Success, own_task, success_labels
from debrief.reports import Markdown, report
from debrief.scoring.model import SessionScores
from debrief.scoring.precedence import effective_rows
from debrief.snapshots.model import UNKNOWN, SessionMetadataRow
from debrief.stats import (
    NO_ESTIMATE,
    Estimate,
    MeanEstimate,
    StratifiedDifference,
    mean_of,
    share_of,
    stratified_difference,
)
from debrief.training.samples import judges_mean
from debrief.training.selection import verdict_by

MEASURES: dict[str, tuple[str, float | None]] = {
    "overall_quality": ("overall quality", 1.0),
    "judges": ("judges", 1.0),
    "token_efficiency": ("lasting lines per 1,000 tokens", None),
    "user_turn_efficiency": ("lasting lines per turn", None),
}
"""What is compared, in words, and the most that it can be."""
_FEWEST = 5
"""Sessions on the same work, of each of two rows, that a comparison takes."""
_SIZES = (0, 30, 200)
"""Changed lines up to which a session's work is of one size."""
_KEY = (
    *("eval_fingerprint", "scoring_fingerprint", "scoring_model"),
    *("prompt_fingerprint", "tool", "model"),
)


class JudgeEstimate(Struct, frozen=True, kw_only=True):
    """One judge's scores by themselves."""

    judge: str
    score: MeanEstimate
    """From 0 to 1, over the sessions that it did not fail on."""


Standing = Literal["best", "level", "behind", "other_work", "too_few", "no_verdict", "alone"]
"""How a row stands to the best one of its group: it is it; it cannot be told from it; it is behind
it; none of its sessions is on the same work; too few are; none of them has a verdict; or there is
no other row."""
RANKED: frozenset[Standing] = frozenset(["best", "level", "behind"])
STANDINGS: Mapping[Standing, str] = {
    "best": "the best of those compared",
    "level": "not told from the best",
    "behind": "behind the best",
    "other_work": "not comparable: no session on the same work",
    "too_few": f"not comparable: fewer than {_FEWEST} sessions each on the same work",
    "no_verdict": "not comparable: no session has a verdict",
    "alone": "nothing to compare it with",
}
"""Each standing in words."""


class LeaderboardRow(Struct, frozen=True, kw_only=True):
    """One prompt fingerprint with one tool and one model, inside a group."""

    eval_fingerprint: str
    scoring_fingerprint: str
    scoring_model: str
    rank: int | None = None
    """Within the group: 1 for the best and all that cannot be told from it, then the others by
    their difference from it; None: not comparable."""
    standing: Standing = "too_few"
    with_verdict: int = 0
    """Sessions with a verdict."""
    verified: int = 0
    """Of those, the ones that are done and checked."""
    done: Estimate | None = None
    """Their share, with Wilson's interval; None where no session has a verdict."""
    difference: StratifiedDifference = StratifiedDifference()
    """Of this share from the best row's, like compared with like; below 0: fewer."""
    prompt_fingerprint: str
    tool: str
    model: str
    sessions: int
    overall_quality: MeanEstimate
    """From 0 to 1."""
    judges: MeanEstimate
    """Weighted mean of all judges, from 0 to 1, over sessions that none of them failed on."""
    token_efficiency: MeanEstimate
    """Lasting lines per 1,000 input and output tokens."""
    user_turn_efficiency: MeanEstimate
    """Lasting lines per human turn."""
    by_judge: tuple[JudgeEstimate, ...] = ()
    """Each judge by itself, by name."""

    @property
    def group(self) -> tuple[str, str]:
        """What the row can be compared within."""
        return self.eval_fingerprint, self.scoring_fingerprint

    @property
    def name(self) -> str:
        """Prompt fingerprint, tool and model in one line."""
        return f"{self.prompt_fingerprint} · {self.tool} · {self.model}"

    @property
    def compared(self) -> str:
        """Return how it compares with the best row, in words and as a difference."""
        found, words = self.difference, STANDINGS[self.standing]
        if found.value is None:
            return words
        return f"{interval(found.value, found.low, found.high, '+.2f')}: {words}"


class WorkedOn(Struct, frozen=True, kw_only=True):
    """What a session worked on, as far as sessions are compared by it."""

    task: str = ""
    """The benchmark's or the plan's; empty where it is on a task of its own."""
    growth: int = 0
    """Lines added plus lines removed."""


class _WorkRow(LabelledSession, frozen=True, kw_only=True):
    lines_added: int = 0
    lines_removed: int = 0


def work_of(lake: Lake) -> dict[str, WorkedOn]:
    """Return what each session of a lake worked on, by its id."""
    known = success_labels(lake)
    found = {}
    for row in lake.rows("raw_sessions", _WorkRow):
        task = known[row.id].task if row.id in known else own_task(row)
        growth = row.lines_added + row.lines_removed
        found[row.id] = WorkedOn(task="" if task == row.id else task, growth=growth)
    return found


_Who = tuple[str, ...]
"""Prompt fingerprint, tool and model."""
_Compared = list[tuple[tuple[str, ...], float]]
"""What each session with a verdict can be compared within, and 1 where it is done and checked."""


class _Entry(NamedTuple):
    """A session of a row."""

    scores: SessionScores
    judges: list[JudgeEvaluation]
    strata: tuple[str, ...]
    """The task that it is on, and the repository with kind and size of the work: none where it is
    not known."""


def leaderboard(
    scores: Iterable[SessionScores],
    metadata: Iterable[SessionMetadataRow],
    judgements: Iterable[JudgeEvaluation] = (),
    work: Mapping[str, WorkedOn] = {},
) -> list[LeaderboardRow]:
    """Return the rows, the largest group first and the best of each group first.

    A session that nothing was scored of, or without metadata, is not counted. Of several scorers
    the one that speaks for it counts; one that two sets of judges judged counts in both groups.

    Args:
        scores: of all sessions.
        metadata: of them.
        judgements: of them.
        work: what each of them worked on, by its id.
    """
    judged: dict[str, dict[str, list[JudgeEvaluation]]] = defaultdict(lambda: defaultdict(list))
    for judgement in judgements:
        judged[judgement.session_id][judgement.eval_fingerprint].append(judgement)
    groups: dict[tuple[str, ...], dict[_Who, list[_Entry]]]
    groups = defaultdict(lambda: defaultdict(list))
    for row, known in _known(effective_rows(scores), metadata):
        who = (known.prompt_fingerprint, known.tool, known.model or UNKNOWN)
        strata = _strata(row, known, work.get(row.session_id))
        for eval_fingerprint, beside in _judges_beside(row, judged.get(row.session_id, {})).items():
            group = (eval_fingerprint, row.scoring_fingerprint, row.model)
            groups[group][who].append(_Entry(row, beside, strata))
    in_order = sorted(groups, key=lambda group: (-sum(map(len, groups[group].values())), group))
    return [row for group in in_order for row in _ranked(group, groups[group])]


def resting_on(
    scores: Iterable[SessionScores], outcomes: Mapping[str, Success]
) -> Iterator[SessionScores]:
    """Yield the scores with the verdicts that outcomes give, and no verdict where none does.

    Args:
        scores: of all sessions.
        outcomes: by session, of the sources that are to count, such as executed checks alone.
    """
    for row in scores:
        known = outcomes.get(row.session_id)
        yield replace(row, verdict=verdict_by(row, known) if known is not None else None)


def known_scores(
    scores: Iterable[SessionScores], metadata: Iterable[SessionMetadataRow]
) -> Iterator[tuple[SessionScores, SessionMetadataRow]]:
    """Yield the scores of each session with an overall quality that has metadata, with these, by id
    and scorer."""
    for row, known in _known(scores, metadata):
        if row.overall_quality is not None:
            yield row, known


def _known(
    scores: Iterable[SessionScores], metadata: Iterable[SessionMetadataRow]
) -> Iterator[tuple[SessionScores, SessionMetadataRow]]:
    known = {row.session_id: row for row in metadata}
    for row in sorted(scores, key=lambda row: (row.session_id, row.scoring_fingerprint)):
        if row.session_id in known and row.status == "ok":
            yield row, known[row.session_id]


def _strata(
    row: SessionScores, known: SessionMetadataRow, work: WorkedOn | None
) -> tuple[str, ...]:
    """Return what a session can be compared within, the closest first."""
    found = []
    if work is not None and work.task:
        found.append(f"task {work.task}")
    if work is not None and known.repository and row.kind != "unknown":
        size = bisect_left(_SIZES, work.growth)
        found.append(f"repository {known.repository} {row.kind} {size}")
    return tuple(found)


def _ranked(
    group: tuple[str, ...], entries: Mapping[_Who, Sequence[_Entry]]
) -> Iterator[LeaderboardRow]:
    """Yield the rows of a group: those that can be compared by rank, then the others by size."""
    known = {who: _with_verdict(sessions) for who, sessions in entries.items()}
    best, against = _best(known)
    rows = []
    for who, sessions in entries.items():
        row = _row((*group, *who), sessions)
        difference = against.get(who, StratifiedDifference())
        standing: Standing = "level"
        if len(entries) == 1:
            standing = "alone"
        elif not known[who]:
            standing = "no_verdict"
        elif who == best:
            standing = "best"
        elif who not in against:
            others = [best] if best is not None else [other for other in known if other != who]
            shared = any(_alike(known[other], known[who]) for other in others)
            standing = "too_few" if shared else "other_work"
        elif difference.high is not None and difference.high < 0:
            standing = "behind"
        rows.append(replace(row, standing=standing, difference=difference))

    def order(row: LeaderboardRow) -> tuple[object, ...]:
        far = {"best": 0, "level": 1, "behind": 2}.get(row.standing, 3)
        key = tuple(getattr(row, name) for name in _KEY)
        return far, -(row.difference.value or 0.0), -row.with_verdict, -row.sessions, key

    behind = 1
    for row in sorted(rows, key=order):
        behind += row.standing == "behind"
        yield replace(row, rank=behind) if row.standing in RANKED else row


def _with_verdict(sessions: Iterable[_Entry]) -> _Compared:
    known = ((session.strata, session.scores.verdict) for session in sessions)
    return [
        (strata, float(verdict.verdict == "complete_verified"))
        for strata, verdict in known
        if verdict is not None and verdict.is_known
    ]


def _alike(best: _Compared, other: _Compared) -> list[tuple[str, float, bool]]:
    """Return the sessions of two rows that are on the same work: its name, whether each is done and
    checked, and whether it is the other row's."""
    both = set.intersection(
        *({name for names, _ in side for name in names} for side in (best, other))
    )
    placed = [
        (next((name for name in names if name in both), ""), value, is_other)
        for is_other, side in ((False, best), (True, other))
        for names, value in side
    ]
    sides = [{name for name, _, side in placed if side is which} for which in (False, True)]
    return [one for one in placed if one[0] and one[0] in sides[0] & sides[1]]


def _is_enough(alike: Sequence[tuple[str, float, bool]]) -> bool:
    of_other = sum(is_other for *_, is_other in alike)
    return min(of_other, len(alike) - of_other) >= _FEWEST


def _best(known: Mapping[_Who, _Compared]) -> tuple[_Who | None, dict[_Who, StratifiedDifference]]:
    """Return the row that none which can be compared with it is ahead of, and how these differ.

    The search begins with the row of most sessions. Where chance has rows ahead of each other in a
    circle, it ends with the last of them.
    """
    pairs: dict[_Who, dict[_Who, list[tuple[str, float, bool]]]] = {}
    for who, other in permutations(known, 2):
        alike = _alike(known[who], known[other])
        if _is_enough(alike):
            pairs.setdefault(who, {})[other] = alike
    if not pairs:
        return None, {}
    best, seen = max(pairs, key=lambda who: (len(known[who]), who)), set[_Who]()
    while True:
        against = {other: _difference(alike) for other, alike in pairs[best].items()}
        ahead = [
            (found.value, other)
            for other, found in against.items()
            if found.value is not None and found.value > 0 and other not in seen
        ]
        if not ahead:
            return best, against
        seen.add(best)
        best = max(ahead)[1]


def _difference(alike: Sequence[tuple[str, float, bool]]) -> StratifiedDifference:
    strata, values, groups = zip(*alike, strict=True)
    found = stratified_difference(values, groups, strata)
    ends = {name: getattr(found, name) for name in ("value", "low", "high")}
    # What a regression leaves of equal shares is no difference, in either direction.
    rounded = {name: round(end, 6) + 0.0 for name, end in ends.items() if end is not None}
    return replace(found, **rounded)


def _row(key: tuple[str, ...], sessions: Sequence[_Entry]) -> LeaderboardRow:
    """Return the row of sessions that can be compared, each with its judges; not ranked yet."""
    fields: dict[str, Any] = dict(zip(_KEY, key, strict=True))
    for name, (_, upper) in MEASURES.items():
        values = (
            judges_mean(session.judges) if name == "judges" else getattr(session.scores, name)
            for session in sessions
        )
        fields[name] = mean_of([value for value in values if value is not None], upper)
    by_judge: dict[str, list[float]] = defaultdict(list)
    for evaluation in chain.from_iterable(session.judges for session in sessions):
        if evaluation.status == "ok" and evaluation.score is not None:
            by_judge[evaluation.judge].append(evaluation.score)
    judges = tuple(
        JudgeEstimate(judge=judge, score=mean_of(scored, 1.0))
        for judge, scored in sorted(by_judge.items())
    )
    verdicts = [
        session.scores.verdict for session in sessions if session.scores.verdict is not None
    ]
    with_verdict = sum(verdict.is_known for verdict in verdicts)
    verified = sum(verdict.verdict == "complete_verified" for verdict in verdicts)
    return LeaderboardRow(
        sessions=len(sessions),
        with_verdict=with_verdict,
        verified=verified,
        done=share_of(verified, with_verdict),
        by_judge=judges,
        **fields,
    )


def leaderboard_markdown(rows: Sequence[LeaderboardRow], names: Mapping[str, str] = {}) -> str:
    """Return the leaderboard as Markdown, a table for each group.

    Args:
        rows: in order.
        names: of prompts, by fingerprint.
    """
    return report(
        "leaderboard",
        groups=[_group(group, names) for group in groups_of(rows)],
        measures=[words for words, _ in MEASURES.values()],
    )


def _group(group: Sequence[LeaderboardRow], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a group for the template; with its judges where there are several."""
    judges = sorted({estimate.judge for row in group for estimate in row.by_judge})
    by_judge = []
    for row in group:
        scores = {estimate.judge: estimate.score for estimate in row.by_judge}
        means = (_cell(scores.get(name, NO_ESTIMATE)) for name in judges)
        by_judge.append((*_who(row, names), *means))
    return {
        "first": group[0],
        "sessions": sum(row.sessions for row in group),
        "rows": [
            (
                *_who(row, names),
                row.sessions,
                row.with_verdict,
                interval_shown(row.done),
                row.compared,
                *(_cell(getattr(row, name)) for name in MEASURES),
            )
            for row in group
        ],
        "judges": judges if len(judges) > 1 else [],
        "by_judge": by_judge,
    }


def _who(row: LeaderboardRow, names: Mapping[str, str]) -> tuple[str, ...]:
    key = row.prompt_fingerprint
    name = names.get(key, "")
    prompts = plain(name) if name.endswith(key) else f"{plain(name)} `{key}`".strip()
    return str(row.rank or "–"), Markdown(prompts), row.tool, row.model


def groups_of(rows: Iterable[LeaderboardRow]) -> list[list[LeaderboardRow]]:
    """Return the rows by group, in the order given."""
    groups: dict[tuple[str, str], list[LeaderboardRow]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return list(groups.values())


def _judges_beside(
    row: SessionScores, sets: dict[str, list[JudgeEvaluation]]
) -> dict[str, list[JudgeEvaluation]]:
    """Return the sets of judges to show beside a session's scores.

    The offline evaluator's judges go with its scores and a model's with a model's, where a
    session has both.
    """
    alike = {
        name: rows
        for name, rows in sets.items()
        if any(row.model == OFFLINE for row in rows) == (row.model == OFFLINE)
    }
    return alike or sets or {UNKNOWN: []}


def interval_shown(value: Estimate | None) -> str:
    """Return a share with its interval; a dash without one."""
    return "–" if value is None else interval(value.value, value.low, value.high)


def _cell(value: MeanEstimate) -> str:
    return interval(value.mean, value.low, value.high, none="–")
