"""The weekly report: what was done, what it cost, what failed, what changed; and its message."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Final, get_args
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from debrief.keys import is_week, week_after
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.models.usage import total_cost
from debrief.redaction.redactor import Redactor
from debrief.reports import Markdown
from debrief.reports import report as filled
from debrief.retry import TEMPORARY_STATUS, RetryPolicy, retrying
from debrief.rubrics.model import SETS, Rubric
from debrief.rubrics.shown import rubric_shown
from debrief.scoring.verdict import NOT_REVIEWED, VERDICT_LABELS
from debrief.signals.schema import TABLE as SIGNALS
from debrief.signals.schema import EventKind
from debrief.summary import Content, content_of


class Done(Struct, frozen=True, kw_only=True):
    """What a stage did for one of its partitions."""

    stage: str
    partition: str = ""
    """Empty for a stage without partitions."""
    rows: int = 0
    """All that the partition has now."""
    fresh: int = 0
    """Rows that were not there before, or not so."""
    failed: int = 0
    calls: int = 0
    """Of a language model."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """None when a price is not known."""


NOTHING_DONE = Done(stage="")

_ADDED = ("rows", "fresh", "failed", "calls", "input_tokens", "output_tokens")


def added_up(stage: str, parts: Iterable[Done]) -> Done:
    """Add up what a stage did; the cost is None as soon as one of them is not known."""
    found = list(parts)
    sums = {name: sum(getattr(part, name) for part in found) for name in _ADDED}
    return Done(stage=stage, **sums, cost_usd=total_cost(part.cost_usd for part in found))


def by_stage(parts: Iterable[Done]) -> list[Done]:
    """Return one sum a stage, in the order of the parts."""
    stages: dict[str, list[Done]] = {}
    for part in parts:
        stages.setdefault(part.stage, []).append(part)
    return [added_up(stage, found) for stage, found in stages.items()]


class WeekDone(Struct, frozen=True):
    """What the last run that did anything did for a week."""

    stages: tuple[Done, ...] | None
    """One a stage; None where an earlier version kept it in the words of its page alone."""


MOST_FAILURES = 20
DONE: Final = "weekly_done"


class _Event(Struct, frozen=True):
    kind: EventKind


class _Signals(Struct, frozen=True):
    """The columns of a session's signals that a report counts."""

    events: tuple[_Event, ...] = ()


class WeeklyReport(Struct, frozen=True, kw_only=True):
    """What a page about a week shows."""

    week: str
    week_before: str
    now: Content
    before: Content
    done: tuple[Done, ...] | None
    """What a run did for this week and for stages without weeks; see ``WeekDone``."""
    events: Mapping[EventKind, int]
    """Of how many sessions a person would want to look at which event."""
    events_before: Mapping[EventKind, int]
    rubrics: tuple[str, ...]
    """What changed about the final rubrics, in words."""

    @property
    def did_something(self) -> bool:
        """Return whether the run made a row or asked a question."""
        return any(part.fresh or part.calls for part in self.done or ())

    @property
    def whole(self) -> Done:
        """Return what all stages did; of what is not known, the cost is not known either."""
        whole = added_up("", self.done or ())
        return whole if self.done is not None else replace(whole, cost_usd=None)


def report_of(lake: Lake, week: str, done: Iterable[Done] = ()) -> WeeklyReport:
    """Return the report of a week.

    Args:
        lake: what it is made from.
        week: the week.
        done: what the run did, of all its weeks.
    """
    before = week_after(week, -1)
    return WeeklyReport(
        week=week,
        week_before=before,
        now=content_of(lake, [week]),
        before=content_of(lake, [before]),
        done=tuple(
            by_stage(part for part in done if part.partition == week or not is_week(part.partition))
        ),
        events=_events_of(lake, week),
        events_before=_events_of(lake, before),
        rubrics=tuple(_rubric_changes(lake, week)),
    )


def _events_of(lake: Lake, week: str) -> Mapping[EventKind, int]:
    rows = lake.read(SIGNALS, week, _Signals)
    return Counter(event.kind for row in rows for event in row.events)


def page_of(report: WeeklyReport, link: str = "") -> str:
    """Return the report as Markdown.

    Args:
        report: of the week.
        link: the address of the week's page of ``debrief view``, for the heading.
    """
    failures = report.now.failures
    more = Counter(row.stage for row in failures[MOST_FAILURES:])
    counts = attrgetter("rows", "fresh", "failed", "calls")
    return filled(
        "week",
        heading=Markdown(f"[{report.week}]({link})" if link else report.week),
        headline=headline(report),
        verdicts=report.now.verdicts.sentences(),
        is_known=report.done is not None,
        done=[(part.stage, *(f"{n:,}" for n in counts(part))) for part in report.done or ()],
        whole=report.whole,
        failures=failures,
        most=MOST_FAILURES,
        more_failures=more.most_common(),
        week=report.week,
        week_before=report.week_before,
        figures=_figures_rows(report),
        rubrics=report.rubrics,
    )


def headline(report: WeeklyReport) -> str:
    """Return the week in one line."""
    now, verdicts = report.now, report.now.verdicts
    known = NOT_REVIEWED
    if verdicts.known:
        each = "; ".join(f"{count} {said}" for _, said, count in verdicts.verdicts_shown)
        known = f"{verdicts.known} with a verdict ({each})"
        if verdicts.not_reviewed:
            known += f", {verdicts.not_reviewed} {NOT_REVIEWED}"
    whole = report.whole
    cost = "cost not known" if whole.cost_usd is None else f"${whole.cost_usd:.2f} spent"
    failed = f"{len(now.failures)} failed" if now.failures else "nothing failed"
    sessions = counted(len(now.heads), "session")
    return f"Week of {report.week}: {sessions}, {known}, {failed}, {cost}"


def _rubric_changes(lake: Lake, week: str) -> Iterator[str]:
    """Compare the sets of rubrics that were made up to this week with those up to the one before.

    A set is kept under the last week that it was mined from.
    """

    def on_unseen(rubric: Rubric) -> str:
        effect = rubric_shown(rubric).effect_shown
        return f", {effect} on unseen sessions" if effect else ""

    sets = lake.partitions(SETS)
    for name in dict.fromkeys(each.rpartition(".")[0] for each in sets):
        own = sorted(each.rpartition(".")[2] for each in sets if each.startswith(f"{name}."))
        earlier = [each for each in own if each < week]
        if week not in own or not earlier:
            continue
        before = list(lake.read(SETS, f"{name}.{earlier[-1]}", Rubric))
        after = list(lake.read(SETS, f"{name}.{week}", Rubric))
        old, new = {rubric.key for rubric in before}, {rubric.key for rubric in after}
        changes = [f"new: {r.name}{on_unseen(r)}" for r in after if r.key not in old]
        changes += [f"gone: {r.name}" for r in before if r.key not in new]
        if changes:
            yield f"{name}: {'; '.join(changes)}"


def _figures_rows(report: WeeklyReport) -> Iterator[tuple[str, str, str]]:
    names = (
        *("sessions", "by tool", *VERDICT_LABELS.values(), NOT_REVIEWED),
        *("overall quality, mean of the reviewed", "judges' mean", "lines added and removed"),
        *("tokens written", "failed", "cost of what stands, USD"),
    )
    yield from zip(names, _figures(report.now), _figures(report.before), strict=True)
    for kind in get_args(EventKind):
        now, before = report.events.get(kind, 0), report.events_before.get(kind, 0)
        if now or before:
            yield f"sessions with: {kind.replace('_', ' ')}", f"{now:,}", f"{before:,}"


def _figures(content: Content) -> tuple[str, ...]:
    def number(value: float | None, form: str) -> str:
        return "–" if value is None else format(value, form)

    heads, verdicts = content.heads, content.verdicts
    return (
        f"{len(heads):,}",
        ", ".join(f"{tool} {count}" for tool, count in content.by_tool) or "–",
        *(f"{verdicts.by_verdict.get(name, 0):,}" for name in VERDICT_LABELS),
        f"{verdicts.not_reviewed:,}",
        number(content.quality, ".3f"),
        number(content.judges_mean, ".3f"),
        f"{sum(head.lines_added + head.lines_removed for head in heads):,}",
        f"{sum(head.usage.output for head in heads):,}",
        f"{len(content.failures):,}",
        number(content.cost_usd, ".4f"),
    )


LONGEST = 3_000
"""Characters of a message."""
ATTEMPTS = 3
SECONDS = 10.0
"""For one attempt."""


def send(
    url: str,
    text: str,
    redactor: Redactor,
    *,
    timeout: float = SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Send a message to a webhook, in the form that Slack's take; return why it did not arrive.

    Whatever goes wrong costs a run nothing. The address itself is a secret and is never logged;
    the server's name is.

    Args:
        url: the webhook.
        text: the message; secrets are taken out of it, and it is cut to ``LONGEST``.
        redactor: takes the secrets out.
        timeout: seconds for one of three attempts.
        sleep: waits between them.
    """
    import httpx

    try:
        place = urlsplit(url)
        known = place.scheme in ("http", "https") and bool(place.hostname)
    except ValueError:
        known = False
    if not known:
        return "DEBRIEF_WEBHOOK_URL is no address of a web server"

    def reason(error: BaseException) -> str:
        if isinstance(error, httpx.HTTPStatusError):
            return f"{place.hostname} answered {error.response.status_code}"
        return f"{place.hostname} could not be reached: {type(error).__name__}"

    def is_temporary(error: BaseException) -> bool:
        if isinstance(error, httpx.HTTPStatusError):
            return error.response.status_code in TEMPORARY_STATUS
        return True

    text = redactor.redact(text).text
    body = {"text": text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"}
    policy = RetryPolicy(attempts=ATTEMPTS, longest_retry_after=SECONDS, sleep=sleep)
    try:
        for attempt in retrying(policy, is_temporary, describe=reason):
            with attempt:
                httpx.post(url, json=body, timeout=timeout).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return reason(error)
    return ""
