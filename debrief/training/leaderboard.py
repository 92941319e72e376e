"""The leaderboard: how prompts, tools and models compare, where they can be compared; its picture.

Two sessions' qualities are comparable when the same judges (eval fingerprint) and the same scorer
(scoring fingerprint) looked at them. Rows of one such group are ranked among themselves only.

Pictures are PNG bytes that are the same for the same numbers, drawn with matplotlib's object
interface on its Agg canvas: pyplot keeps global state that threads of one process would share.
"""

from __future__ import annotations

import io
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.markdown import interval, plain, shorten, table
from debrief.scoring.model import SessionScores
from debrief.snapshots.model import UNKNOWN, SessionMetadataRow
from debrief.stats import NO_ESTIMATE, MeanEstimate, mean_of
from debrief.training.samples import judges_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MEASURES: dict[str, tuple[str, float | None]] = {
    "overall_quality": ("overall quality", 1.0),
    "judges": ("judges", 1.0),
    "token_efficiency": ("lasting lines per 1,000 tokens", None),
    "user_turn_efficiency": ("lasting lines per turn", None),
}
"""What is compared, in words, and the most that it can be."""
_KEY = (
    *("eval_fingerprint", "scoring_fingerprint", "scoring_model"),
    *("prompt_fingerprint", "tool", "model"),
)

_OFFLINE = "offline"


class JudgeEstimate(Struct, frozen=True, kw_only=True):
    """One judge's scores by themselves."""

    judge: str
    score: MeanEstimate
    """From 0 to 1, over the sessions that it did not fail on."""


class LeaderboardRow(Struct, frozen=True, kw_only=True):
    """One prompt fingerprint with one tool and one model, inside a group."""

    eval_fingerprint: str
    scoring_fingerprint: str
    scoring_model: str
    rank: int
    """Within the group, from 1: by mean overall quality, those without an interval last."""
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


def leaderboard(
    scores: Iterable[SessionScores],
    metadata: Iterable[SessionMetadataRow],
    judgements: Iterable[JudgeEvaluation] = (),
) -> list[LeaderboardRow]:
    """Return the rows, the largest group first and the best of each group first.

    A session that was not scored, or has no metadata, is not counted; one that two sets of
    judges judged counts in both groups.
    """
    judged: dict[str, dict[str, list[JudgeEvaluation]]] = defaultdict(lambda: defaultdict(list))
    for judgement in judgements:
        judged[judgement.session_id][judgement.eval_fingerprint].append(judgement)
    members: dict[tuple[str, ...], list[tuple[SessionScores, list[JudgeEvaluation]]]]
    members = defaultdict(list)
    for row, known in known_scores(scores, metadata):
        who = (known.prompt_fingerprint, known.tool, known.model or UNKNOWN)
        for eval_fingerprint, beside in _judges_beside(row, judged.get(row.session_id, {})).items():
            key = (eval_fingerprint, row.scoring_fingerprint, row.model, *who)
            members[key].append((row, beside))
    return _ranked([_row(key, sessions) for key, sessions in members.items()])


def known_scores(
    scores: Iterable[SessionScores], metadata: Iterable[SessionMetadataRow]
) -> Iterator[tuple[SessionScores, SessionMetadataRow]]:
    """Yield the scores of each scored session that has metadata, with these, by id and scorer."""
    known = {row.session_id: row for row in metadata}
    for row in sorted(scores, key=lambda row: (row.session_id, row.scoring_fingerprint)):
        if row.session_id in known and row.status == "ok" and row.overall_quality is not None:
            yield row, known[row.session_id]


def _row(
    key: tuple[str, ...], sessions: Sequence[tuple[SessionScores, list[JudgeEvaluation]]]
) -> LeaderboardRow:
    """Return the row of sessions that can be compared, each with its judges; not ranked yet."""
    fields: dict[str, Any] = dict(zip(_KEY, key, strict=True))
    for name, (_, upper) in MEASURES.items():
        values = (
            judges_mean(beside) if name == "judges" else getattr(row, name)
            for row, beside in sessions
        )
        fields[name] = mean_of([value for value in values if value is not None], upper)
    by_judge: dict[str, list[float]] = defaultdict(list)
    for one in chain.from_iterable(beside for _, beside in sessions):
        if one.status == "ok" and one.score is not None:
            by_judge[one.judge].append(one.score)
    judges = tuple(
        JudgeEstimate(judge=judge, score=mean_of(scored, 1.0))
        for judge, scored in sorted(by_judge.items())
    )
    return LeaderboardRow(rank=0, sessions=len(sessions), by_judge=judges, **fields)


def _ranked(rows: Sequence[LeaderboardRow]) -> list[LeaderboardRow]:
    sizes: Counter[tuple[str, str]] = Counter()
    for row in rows:
        sizes[row.group] += row.sessions

    def order(row: LeaderboardRow) -> tuple[object, ...]:
        quality, key = row.overall_quality, tuple(getattr(row, name) for name in _KEY)
        unsure = quality.low is None
        return -sizes[row.group], row.group, unsure, -(quality.mean or 0.0), -row.sessions, key

    groups = groups_of(sorted(rows, key=order))
    return [replace(row, rank=rank) for group in groups for rank, row in enumerate(group, 1)]


def leaderboard_markdown(rows: Sequence[LeaderboardRow], names: Mapping[str, str] = {}) -> str:
    """Return the leaderboard as Markdown, a table for each group.

    Args:
        rows: in order.
        names: of prompts, by fingerprint.
    """
    if not rows:
        return "No scored session yet: score a week first.\n"
    parts = []
    header = ["#", "prompts", "tool", "model", "n", *(words for words, _ in MEASURES.values())]
    for group in groups_of(rows):
        first = group[0]
        sessions = sum(row.sessions for row in group)
        rows_of_group = (
            [
                *_who(row, names),
                str(row.sessions),
                *(_cell(getattr(row, name)) for name in MEASURES),
            ]
            for row in group
        )
        parts.append(
            f"### Eval fingerprint `{first.eval_fingerprint}`, scored by "
            f"{plain(first.scoring_model)} (`{first.scoring_fingerprint}`): "
            f"{sessions} sessions\n\n{table(header, rows_of_group)}"
        )
        parts += _each_judge(group, names)
    note = (
        "Means with 95 % intervals over sessions (Student's t); no interval below two sessions. "
        "Overlapping intervals do not tell which is better. Groups are not comparable."
    )
    return "\n\n".join([*parts, note]) + "\n"


def _each_judge(group: Sequence[LeaderboardRow], names: Mapping[str, str]) -> Iterator[str]:
    """Yield a table of the judges of a group, where there are several."""
    judges = sorted({one.judge for row in group for one in row.by_judge})
    if len(judges) < 2:
        return
    rows = []
    for row in group:
        scores = {one.judge: one.score for one in row.by_judge}
        rows.append([*_who(row, names), *(_cell(scores.get(name, NO_ESTIMATE)) for name in judges)])
    yield "Each judge by itself:\n\n" + table(
        ["#", "prompts", "tool", "model", *map(plain, judges)], rows
    )


def _who(row: LeaderboardRow, names: Mapping[str, str]) -> list[str]:
    key = row.prompt_fingerprint
    name = names.get(key, "")
    prompts = plain(name) if name.endswith(key) else f"{plain(name)} `{key}`".strip()
    return [str(row.rank), prompts, plain(row.tool), plain(row.model)]


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
        if any(one.model == _OFFLINE for one in rows) == (row.model == _OFFLINE)
    }
    return alike or sets or {UNKNOWN: []}


def _cell(value: MeanEstimate) -> str:
    return interval(value.mean, value.low, value.high, none="–")


COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#805ad5", "#b7791f", "#c53030")
INK, GRID, GREY = "#2d3748", "#e2e8f0", "#a0aec0"
_DPI = 112
_MOST_ROWS = 20
_LONGEST_NAME = 58
_POINT: dict[str, Any] = {"fmt": "o", "capsize": 4, "markersize": 7, "linewidth": 2}
_BESIDE: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": 9}


def leaderboard_plot(rows: Sequence[LeaderboardRow]) -> bytes:
    """Return a plot of overall quality with 95 % intervals: a row a candidate, a panel a group.

    At most 20 rows are drawn, the first of each group; the title says so when there are more.
    """
    if not rows:
        return notice("No scored session yet")
    groups = groups_of(rows)[:_MOST_ROWS]
    groups = [group[: _MOST_ROWS // len(groups)] for group in groups]
    heights = [len(group) + 1.4 for group in groups]
    figure = new_figure(9.5, 1.0 + 0.42 * sum(heights))
    grid = figure.add_gridspec(len(groups), 1, height_ratios=heights)
    shown = sum(map(len, groups))
    title = "Overall quality by prompts, tool and model: mean and 95 % interval"
    if shown < len(rows):
        title += f"\n({shown} of {len(rows)} rows)"
    figure.suptitle(title, fontsize=12, color=INK, fontweight="bold")
    for number, group in enumerate(groups):
        axes = figure.add_subplot(grid[number, 0])
        _draw_group(axes, group, last=number == len(groups) - 1)
    return png_of(figure)


def _draw_group(axes: Axes, group: list[LeaderboardRow], *, last: bool) -> None:
    places = list(range(len(group)))[::-1]
    for place, row in zip(places, group, strict=True):
        value = row.overall_quality
        if value.mean is None:
            continue
        colour = COLOURS[0] if value.low is not None else GREY
        axes.errorbar([value.mean], [place], xerr=error_bars([value]), color=colour, **_POINT)
        text = f"{value.mean:.2f}   n = {row.sessions}"
        axes.annotate(text, (1.02, place), color=INK, **_BESIDE)
    first = group[0]
    scorer = f"{shorten(first.scoring_model, 40)} ({first.scoring_fingerprint})"
    style_axes(axes, f"eval {first.eval_fingerprint}, scored by {scorer}", size=9)
    axes.set_yticks(places, [shorten(row.name, _LONGEST_NAME) for row in group], fontsize=9)
    axes.set(ylim=(-0.7, len(group) - 0.3), xlim=(0, 1), xticks=[0, 0.2, 0.4, 0.6, 0.8, 1.0])
    if last:
        axes.set_xlabel("overall quality (0 to 1)", color=INK)


def error_bars(estimates: Sequence[MeanEstimate]) -> list[list[float]]:
    """Return the distances from the means down and up, not a number where none is known."""
    reaches = [
        (max(0.0, value.mean - value.low), max(0.0, value.high - value.mean))
        if value.mean is not None and value.low is not None and value.high is not None
        else (math.nan, math.nan)
        for value in estimates
    ]
    return [list(side) for side in zip(*reaches, strict=True)]


def new_figure(width: float, height: float) -> Figure:
    """Return an empty picture, its size in inches."""
    from matplotlib import rcParams
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    rcParams["text.parse_math"] = False  # a model's name is no formula
    margins = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
    figure = Figure(figsize=(width, height), dpi=_DPI, layout=margins, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes: Axes, title: str, size: int = 12) -> None:
    """Give axes their title, and the look of all our pictures."""
    axes.set_title(title, fontsize=size, color=INK, loc="left")
    axes.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for name in ("top", "right"):
        axes.spines[name].set_visible(False)
    for name in ("left", "bottom"):
        axes.spines[name].set_color(GRID)
    axes.tick_params(colors=INK, length=0)


def notice(text: str) -> bytes:
    """Return a picture that says why there is nothing to draw."""
    figure = new_figure(6, 1.6)
    figure.text(0.5, 0.5, text, ha="center", va="center", fontsize=12, color=INK)
    return png_of(figure)


def png_of(figure: Figure) -> bytes:
    """Return a picture as PNG, without the time at which it was drawn."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None, "Creation Time": None})
    return picture.getvalue()
