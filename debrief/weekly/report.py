"""The page about a week: what a run did, what it cost, what failed and why, what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from debrief.lake import Lake
from debrief.rubrics.model import SETS, Rubric
from debrief.rubrics.page import compare_rubrics, plain
from debrief.scoring.model import SCORE_NAMES
from debrief.summary import Content, Failure, content_of
from debrief.training.decomposition import WeeklyMove, moves_markdown
from debrief.weekly.model import Done, added_up, by_stage
from debrief.weeks import week_after

MOST_FAILURES = 20
MOVES = "weekly_moves"


class WeekFigures(Struct, frozen=True, kw_only=True):
    """A week in numbers."""

    week: str
    sessions: int
    tools: tuple[tuple[str, int], ...]
    quality: float | None
    """Mean of ``overall_quality``."""
    judged: float | None
    """Mean of the judges' scores, each judgement weighted by its judge."""
    lines: int
    """Added and removed by the sessions."""
    output_tokens: int
    """Written by the sessions' own models."""
    failed: int
    """Transcripts, judgements, scores and rubric evaluations."""
    cost_usd: float | None
    """Of the week's rows: judgements, scores, rubric evaluations."""


class WeeklyReport(Struct, frozen=True, kw_only=True):
    """What a page about a week shows."""

    now: WeekFigures
    before: WeekFigures
    done: tuple[Done, ...]
    """What the run did for this week and for stages without weeks, one a stage."""
    failures: tuple[Failure, ...]
    move: WeeklyMove | None
    """How the mean came about from that of the week before; None without one to compare with."""
    rubrics: tuple[str, ...]
    """What changed about the final rubrics, in words."""

    @property
    def did_something(self) -> bool:
        """Return whether the run made a row or asked a question."""
        return any(part.fresh or part.calls for part in self.done)


def report_of(lake: Lake, week: str, done: Iterable[Done] = ()) -> WeeklyReport:
    """Return the report of a week.

    Args:
        lake: what it is made from.
        week: the week.
        done: what the run did, of all its weeks.
    """
    content = content_of(lake, [week])
    move = next((m for m in lake.read(MOVES, "all", WeeklyMove) if m.week == week), None)
    before = move.before if move else week_after(week, -1)
    return WeeklyReport(
        now=_figures(week, content),
        before=_figures(before, content_of(lake, [before])),
        done=tuple(by_stage(part for part in done if part.partition == week or _is_whole(part))),
        failures=content.failures,
        move=move,
        rubrics=tuple(_rubric_changes(lake, week)),
    )


def page_of(report: WeeklyReport) -> str:
    """Return the report as Markdown."""
    now, whole = report.now, added_up("", report.done)
    parts = [
        f"# The week of {now.week}",
        headline(report) + ".",
        "## What was done",
        _done_table(report.done) if report.done else "Nothing but this page was made.",
        "## What it cost",
        _cost(whole),
        "## What failed, and why",
        _failures(report.failures),
        "## What changed since the week before",
        _figures_table(now, report.before),
        moves_markdown([report.move]) if report.move else "No week before it to explain it by.",
        "\n".join(f"- {line}" for line in report.rubrics) or "The rubrics are what they were.",
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def headline(report: WeeklyReport) -> str:
    """Return the week in one line."""
    now, before = report.now, report.before
    quality = "not scored"
    if now.quality is not None:
        quality = f"mean quality {now.quality:.2f}"
        if before.quality is not None:
            quality += f" ({now.quality - before.quality:+.2f})"
    whole = added_up("", report.done)
    cost = "cost not known" if whole.cost_usd is None else f"${whole.cost_usd:.2f} spent"
    failed = f"{now.failed} failed" if now.failed else "nothing failed"
    return f"Week of {now.week}: {now.sessions} sessions, {quality}, {failed}, {cost}"


def _is_whole(part: Done) -> bool:
    """Return whether a stage's partition is not a week."""
    return len(part.partition) != 10 or not part.partition[:4].isdigit()


def _figures(week: str, content: Content) -> WeekFigures:
    heads = content.heads
    marks = [row.overall_quality for row in content.scored if row.overall_quality is not None]
    weights = [(row.weight, row.score) for row in content.judged if row.score is not None]
    weight = sum(each for each, _ in weights)
    return WeekFigures(
        week=week,
        sessions=len(heads),
        tools=tuple(Counter(head.tool for head in heads).most_common()),
        quality=sum(marks) / len(marks) if marks else None,
        judged=sum(each * score for each, score in weights) / weight if weight else None,
        lines=sum(head.lines_added + head.lines_removed for head in heads),
        output_tokens=sum(head.usage.output for head in heads),
        failed=len(content.failures),
        cost_usd=content.cost_usd,
    )


def _rubric_changes(lake: Lake, week: str) -> Iterator[str]:
    """Compare the sets of rubrics that were made up to this week with those up to the one before.

    A set is kept under the last week that it was mined from.
    """
    sets = lake.partitions(SETS)
    for name in SCORE_NAMES:
        own = sorted(each.rpartition(".")[2] for each in sets if each.startswith(f"{name}."))
        earlier = [each for each in own if each < week]
        if week not in own or not earlier:
            continue
        before = list(lake.read(SETS, f"{name}.{earlier[-1]}", Rubric))
        after = list(lake.read(SETS, f"{name}.{week}", Rubric))
        old, new = {rubric.key for rubric in before}, {rubric.key for rubric in after}
        changes = [f"new: {plain(r.name)}" for r in after if r.key not in old]
        changes += [f"gone: {plain(r.name)}" for r in before if r.key not in new]
        if changes and compare_rubrics(before, after):
            yield f"{name}: {'; '.join(changes)}"


def _done_table(done: Sequence[Done]) -> str:
    rows = [
        (part.stage, f"{part.rows:,}", f"{part.fresh:,}", f"{part.failed:,}", f"{part.calls:,}")
        for part in done
    ]
    return _table(("stage", "rows", "new or changed", "failed", "calls"), rows)


def _cost(whole: Done) -> str:
    if not whole.calls:
        return "Nothing: no model was asked."
    cost = (
        "not known, a price being missing" if whole.cost_usd is None else f"${whole.cost_usd:.4f}"
    )
    tokens = f"{whole.input_tokens:,} tokens in and {whole.output_tokens:,} out"
    return f"{whole.calls:,} calls, {tokens}: {cost}."


def _failures(failures: Sequence[Failure]) -> str:
    if not failures:
        return "Nothing."
    lines = [
        f"- {row.stage}: {plain(row.culprit)}: {plain(row.reason)}"
        for row in failures[:MOST_FAILURES]
    ]
    rest = Counter(row.stage for row in failures[MOST_FAILURES:])
    lines += [f"- and {count} more in {stage}" for stage, count in rest.most_common()]
    return "\n".join([*lines, "", "The next run tries them again."])


def _figures_table(now: WeekFigures, before: WeekFigures) -> str:
    def number(value: float | None, form: str) -> str:
        return "–" if value is None else format(value, form)

    def tools(figures: WeekFigures) -> str:
        return ", ".join(f"{plain(tool)} {count}" for tool, count in figures.tools) or "–"

    rows = [
        ("sessions", f"{now.sessions:,}", f"{before.sessions:,}"),
        ("by tool", tools(now), tools(before)),
        ("mean quality", number(now.quality, ".3f"), number(before.quality, ".3f")),
        ("judges' mean", number(now.judged, ".3f"), number(before.judged, ".3f")),
        ("lines added and removed", f"{now.lines:,}", f"{before.lines:,}"),
        ("tokens written", f"{now.output_tokens:,}", f"{before.output_tokens:,}"),
        ("failed", f"{now.failed:,}", f"{before.failed:,}"),
        ("cost of what stands, USD", number(now.cost_usd, ".4f"), number(before.cost_usd, ".4f")),
    ]
    return _table(("", now.week, before.week), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(heads), " | ".join("---" for _ in heads), *(" | ".join(r) for r in rows)]
    return "\n".join(f"| {line} |" for line in lines)
