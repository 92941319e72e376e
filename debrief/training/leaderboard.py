"""How models and prompts compare: by verdicts, with what their sessions cost and took beside.

Models are compared by families. A share has an interval from five reviewed sessions on; what a
session costs and takes is known without a review.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import fmean, median
from typing import Any

from msgspec import Struct

from debrief.lake import Lake
from debrief.markdown import interval
from debrief.outcomes.store import LabelledSession, own_task, success_labels
from debrief.reports import report
from debrief.scoring.verdict import COMPLETE, SessionVerdict
from debrief.signals.schema import TABLE as SIGNALS
from debrief.snapshots.model import UNKNOWN, SessionMetadataRow
from debrief.stats import Estimate, share_of
from debrief.training.comparison import FEWEST, ComparedSession, answers
from debrief.training.families import family_of


class LeaderboardRow(Struct, frozen=True, kw_only=True):
    """How the sessions of one prompt fingerprint with one tool and one family of models went."""

    prompt_fingerprint: str = ""
    """Empty for all prompts, as the tool is for all tools."""
    tool: str = ""
    model: str
    """The family."""
    sessions: int
    reviewed: int
    """Sessions with a verdict that is not ``undetermined``."""
    complete: int
    """Of those."""
    share: Estimate | None
    """Of complete among reviewed sessions, with Wilson's interval; None under five reviewed."""
    cost_usd: float | None
    """Mean of a session, of those whose price is known; None where none is."""
    minutes: float | None
    """Median of a session."""


class Leaderboard(Struct, frozen=True, kw_only=True):
    """The comparison of models and of prompts, with an answer for each."""

    models: tuple[LeaderboardRow, ...]
    about_models: tuple[str, ...]
    """Answers in sentences, the one that matters most first."""
    prompts: tuple[LeaderboardRow, ...]
    about_prompts: tuple[str, ...]


class _Signals(Struct, frozen=True, kw_only=True):
    """The columns of a session's signals that say what it cost and took."""

    session_id: str
    started: datetime
    ended: datetime
    cost_usd: float | None = None


def tasks_of(lake: Lake) -> dict[str, str]:
    """Return the task of each session that is on one which several may try, by session id."""
    known = success_labels(lake)
    found = {}
    for row in lake.rows("raw_sessions", LabelledSession):
        task = known[row.id].task if row.id in known else own_task(row)
        if task != row.id:
            found[row.id] = task
    return found


def compared_sessions(
    lake: Lake, verdicts: Mapping[str, SessionVerdict], tasks: Mapping[str, str]
) -> list[ComparedSession]:
    """Return what each session with metadata is compared by.

    Args:
        lake: with metadata and signals.
        verdicts: by session id.
        tasks: as ``tasks_of`` returns them.
    """
    signals = {row.session_id: row for row in lake.rows(SIGNALS, _Signals)}
    found = []
    for row in lake.rows("session_metadata", SessionMetadataRow):
        verdict, own = verdicts.get(row.session_id), signals.get(row.session_id)
        task = tasks.get(row.session_id, "")
        found.append(
            ComparedSession(
                prompt_fingerprint=row.prompt_fingerprint,
                tool=row.tool,
                model=family_of(row.model) if row.model else UNKNOWN,
                place=f"task {task}" if task else row.repository,
                is_complete=verdict.verdict in COMPLETE if verdict and verdict.is_known else None,
                cost_usd=own.cost_usd if own else None,
                minutes=(own.ended - own.started).total_seconds() / 60 if own else None,
            )
        )
    return found


def leaderboard(sessions: Sequence[ComparedSession], names: Mapping[str, str] = {}) -> Leaderboard:
    """Compare sessions by the family of their model, and by their prompts.

    Args:
        sessions: as ``compared_sessions`` returns them.
        names: of prompts, by fingerprint.
    """
    by_family: dict[str, list[ComparedSession]] = defaultdict(list)
    by_prompt: dict[str, list[ComparedSession]] = defaultdict(list)
    by_row: dict[tuple[str, str, str], list[ComparedSession]] = defaultdict(list)
    for one in sessions:
        by_family[one.model].append(one)
        by_row[one.prompt_fingerprint, one.tool, one.model].append(one)
        if one.prompt_fingerprint != UNKNOWN:
            by_prompt[names.get(one.prompt_fingerprint, one.prompt_fingerprint)].append(one)
    known = {name: own for name, own in by_family.items() if name != UNKNOWN}
    return Leaderboard(
        models=_ordered(_row(own, model=name) for name, own in by_family.items()),
        about_models=tuple(answers(known)) if known else (),
        prompts=_ordered(
            _row(own, prompt_fingerprint=prompt, tool=tool, model=model)
            for (prompt, tool, model), own in by_row.items()
        ),
        about_prompts=tuple(answers(by_prompt)) if by_prompt else (),
    )


def _row(sessions: Sequence[ComparedSession], **key: str) -> LeaderboardRow:
    known = [one.is_complete for one in sessions if one.is_complete is not None]
    costs = [one.cost_usd for one in sessions if one.cost_usd is not None]
    minutes = [one.minutes for one in sessions if one.minutes is not None]
    return LeaderboardRow(
        sessions=len(sessions),
        reviewed=len(known),
        complete=sum(known),
        share=share_of(sum(known), len(known)) if len(known) >= FEWEST else None,
        cost_usd=fmean(costs) if costs else None,
        minutes=median(minutes) if minutes else None,
        **key,
    )


def _ordered(rows: Iterable[LeaderboardRow]) -> tuple[LeaderboardRow, ...]:
    """Return rows with the one of most reviewed sessions first."""

    def order(row: LeaderboardRow) -> tuple[object, ...]:
        return -row.reviewed, -row.sessions, row.model, row.tool, row.prompt_fingerprint

    return tuple(sorted(rows, key=order))


HEADINGS = ("sessions", "reviewed", "complete", "share", "USD a session", "minutes")


def cells(row: LeaderboardRow) -> tuple[str, ...]:
    """Return a row's figures as text, under ``HEADINGS``."""
    share = row.share
    return (
        f"{row.sessions:,}",
        f"{row.reviewed:,}",
        f"{row.complete:,}" if row.reviewed else "–",
        interval(share.value, share.low, share.high) if share else "–",
        "–" if row.cost_usd is None else f"{row.cost_usd:.2f}",
        "–" if row.minutes is None else f"{row.minutes:.0f}",
    )


def folded(rows: Iterable[LeaderboardRow]) -> tuple[list[LeaderboardRow], int, int]:
    """Return the rows of five sessions or more, and how many the others are, with their
    sessions."""
    found = list(rows)
    few = [row.sessions for row in found if row.sessions < FEWEST]
    return [row for row in found if row.sessions >= FEWEST], len(few), sum(few)


def leaderboard_markdown(board: Leaderboard, names: Mapping[str, str] = {}) -> str:
    """Return the comparison as Markdown.

    Args:
        board: the comparison.
        names: of prompts, by fingerprint.
    """

    def part(title: str, said: Sequence[str], rows: Sequence[LeaderboardRow], *head: str) -> Any:
        shown, few, sessions = folded(rows)
        who = [
            (names.get(row.prompt_fingerprint, row.prompt_fingerprint), row.tool, row.model)
            for row in shown
        ]
        return {
            "title": title,
            "answers": said,
            "head": (*head, *HEADINGS),
            "rows": [
                (*key[-len(head) :], *cells(row)) for key, row in zip(who, shown, strict=True)
            ],
            "few": few,
            "few_sessions": sessions,
        }

    return report(
        "leaderboard",
        parts=[
            part("Models", board.about_models, board.models, "model"),
            part("Prompts", board.about_prompts, board.prompts, "prompts", "tool", "model"),
        ],
        fewest=FEWEST,
    )
