"""The report of ``debrief validity`` as Markdown, as a terminal shows it.

Where an interval holds what guessing gives, it says that the figure cannot be told from chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from debrief import stats
from debrief.markdown import counted, interval
from debrief.reports import Markdown, report
from debrief.scoring.verdict import VERDICT_NAMES
from debrief.stats import Estimate
from debrief.validity.figures import SHARE, TOO_FEW, ModelAgreement, Statistic, ValidityReport


def report_markdown(found: ValidityReport) -> str:
    """Return the report. Names in it are shown as they are, for a terminal makes no markup."""
    sections = (
        ("What is covered", found.coverage),
        ("Agreement with those who know", found.agreement),
        ("The order", found.order),
        (f"{found.model} against the offline verdict, on the same sessions", found.paired),
    )
    return report(
        "validity",
        labels=found.labels,
        model=Markdown(found.model),
        worth=Markdown(_worth(found.model, found.agrees)) if found.agrees is not None else "",
        sections=[
            (Markdown(title), [*_rows(statistics, found.labels)])
            for title, statistics in sections
            if statistics
        ],
        reversed_families=Markdown(", ".join(found.reversed_families)),
        crossed_head=("Debrief, readers →", *map(Markdown, VERDICT_NAMES)),
        crossed=[
            (Markdown(ours), *(str(theirs.get(name, 0)) for name in VERDICT_NAMES))
            for ours, theirs in found.crossed.items()
        ],
        moves=[
            _cells(
                move.change,
                f"must {move.must}",
                counted(move.count, "session"),
                _interval(stats.share_of(move.held, move.count), SHARE),
            )
            for move in found.moves
        ],
        failures=[_cells(reason, str(count)) for reason, count in found.failures.items()],
    )


def _worth(model: str, worth: ModelAgreement) -> str:
    """Return whether the model's word is worth more than none on these sessions, in a sentence."""
    where = f"On {counted(worth.sessions, 'session')} with a label"
    if worth.kappa is None:
        return f"{where} it cannot be told what {model}'s word is worth: {TOO_FEW}."
    kappa = f"κ {_interval(worth.kappa, '.2f')}"
    if not worth.is_more_than_none:
        return f"{where}, {model}'s verdict cannot be told from chance ({kappa})."
    more = worth.over_offline
    if more is None or more.low <= 0:
        beside = "that it is worth more than the offline rules cannot be told"
    else:
        beside = f"and more than the offline rules' (by {_interval(more, '.2f')})"
    return f"{where}, {model}'s word is worth more than none ({kappa}), {beside}."


def _rows(statistics: Sequence[Statistic], labels: int) -> Iterator[tuple[Markdown, ...]]:
    """Yield a row of cells for each figure."""
    for statistic in statistics:
        remark = ""
        if statistic.value is None:
            remark = statistic.missing
        elif statistic.is_chance:
            remark = f"with your {counted(labels, 'label')} this cannot be told from chance"
        chance = statistic.chance
        yield _cells(
            statistic.name,
            counted(statistic.count, statistic.noun),
            _interval(statistic.value, statistic.form),
            "" if chance is None else f"{chance:{statistic.form}}",
            remark,
        )


def _cells(*texts: str) -> tuple[Markdown, ...]:
    return tuple(map(Markdown, texts))


def _interval(value: Estimate | None, form: str) -> str:
    return "–" if value is None else interval(value.value, value.low, value.high, form)
