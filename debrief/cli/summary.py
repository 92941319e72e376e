"""The summary that a run prints at its end, and the problems that it adds to its log."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from os.path import relpath
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.text import Text

from debrief.cli.asking import shown_tokens, shown_usd
from debrief.errors import ModelError
from debrief.evaluation import holds_answer
from debrief.friction.schema import RECURRING, RecurringFriction
from debrief.markdown import counted, shorten
from debrief.models.fencing import make_visible
from debrief.models.usage import BUDGET
from debrief.rubrics.model import ALL, SEARCHES, Rubric, RubricSearch
from debrief.rubrics.shown import rubric_shown
from debrief.scoring.verdict import NOT_REVIEWED
from debrief.summary import Content, SessionEvents, sessions_to_look_at, titles_of
from debrief.weekly import NOTHING_DONE, Done

if TYPE_CHECKING:
    from rich.console import Console

    from debrief.evaluators import Evaluators
    from debrief.lake import Lake
    from debrief.training.model import TrainingSetRow

_EACH, _FRICTION = 3, 2
"""Sessions to look at, and frictions, that are named."""
_TITLE = 40
_NEGLIGIBLE = 0.147
"""Of Cliff's delta; what may be as small as that holds weakly."""


def print_summary(
    lake: Lake,
    content: Content,
    console: Console,
    where: str = "",
    done: Done = NOTHING_DONE,
) -> None:
    """Print a run in a dozen lines: what was spent, who reviewed how many sessions, which sessions
    to look at and why, what holds on unseen sessions, what was left out, and how to look at it.

    Args:
        lake: what the run wrote.
        content: of the weeks that it took.
        console: to print on.
        where: options of ``debrief view`` that name the lake.
        done: by the run, with what it spent.
    """
    from debrief.training.manifest import stored_sets

    if done.calls:
        console.print(_spent_line(done))
    if content.failed_reviews:
        console.print(_failed_line(content), style="red")
    console.print(_headline(content))
    console.print(content.verdicts.sentences())
    for line in _lines_to_look_at(lake, content, console.width):
        console.print(line)
    for line in _friction_lines(lake, console.width):
        console.print(line)
    if holding := _holding(lake):
        console.print(holding)
    if sets := stored_sets(lake).sets:
        for line in _training_lines(lake, sets):
            console.print(line)
    if content.failures:
        first = content.failures[0]
        rest = f", and {len(content.failures) - 1} more" * (len(content.failures) > 1)
        line = f"Failed: {first.stage}: {_short(first.culprit)}: {first.reason}{rest}"
        console.print(Text(make_visible(line)), style="red")
    if content.passed_over:
        skipped = counted(len(content.passed_over), "transcript")
        console.print(f"Not read: {skipped} or parts of them; the log says which and why")
    console.print(f"Look at it: {command_name()} view{where}")


def command_name() -> str:
    """Return what to type for this very program: its name, or its path where that is not found."""
    program = Path(sys.executable).with_name("debrief")
    found = shutil.which("debrief")
    if not program.exists() or (found and Path(found).samefile(program)):
        return "debrief"
    return quote(min(str(program), relpath(program), key=len))


def _spent_line(done: Done) -> str:
    tokens = shown_tokens(done.input_tokens + done.output_tokens)
    what = f"{counted(done.calls, 'call')}, {tokens} tokens"
    if done.cost_usd is None:
        return f"Spent: {what}, at a price that is not known"
    return f"Spent: {shown_usd(done.cost_usd)} ({what})"


def _failed_line(content: Content) -> Text:
    """Say how many sessions a run could not have reviewed, why, and whose verdict stands there."""
    failed, verdicts = content.failed_reviews, content.verdict_of
    missing = Counter(why for id_, why in failed.items() if id_ not in verdicts)
    said = []
    if missing:
        (first, count), *_ = missing.most_common(1)
        rest = missing.total() - count
        more = f" (and {rest} more)" if rest else ""
        said.append(f"{missing.total():,} {NOT_REVIEWED}: {first.rstrip('.')}{more}.")
    kept = Counter(verdicts[id_].source for id_ in failed if id_ in verdicts)
    said += [
        f"{number:,} could not be reviewed again; what {source} said before stands."
        for source, number in kept.most_common()
    ]
    return Text(make_visible(" ".join(said)))


def _headline(content: Content) -> str:
    weeks = content.weeks
    span = f" ({weeks[0]} to {weeks[-1]})" if len(weeks) > 1 else f" ({weeks[0]})" if weeks else ""
    tools = ", ".join(f"{count} {tool}" for tool, count in content.by_tool)
    sessions = counted(len(content.heads), "session")
    return f"{sessions} in {counted(len(weeks), 'week')}{span}: {tools}"


def _lines_to_look_at(lake: Lake, content: Content, width: int) -> Iterator[str | Text]:
    """Yield how many sessions had something happen that a person would want to see, and the first
    of them."""
    found = sessions_to_look_at(lake, content.weeks)
    if not found:
        return
    yield f"{counted(len(found), 'session')} to look at:"
    for session in found[:_EACH]:
        titles = titles_of(lake, session.week, [session.session_id])
        yield _title_line(session, titles.get(session.session_id, ""))
        # Cut by hand: the console breaks no line, so that commands can be copied.
        yield Text(f"    {shorten(make_visible(session.reason), max(40, width - 4))}")


def _title_line(session: SessionEvents, title: str) -> Text:
    said = NOT_REVIEWED if session.verdict is None else session.verdict.label
    name = make_visible(shorten(title or session.session_id, _TITLE))
    return Text.assemble(f"  {session.session_id[:8]}  ", (name, "bold"), f"  ({said})")


def _friction_lines(lake: Lake, width: int) -> Iterator[Text]:
    """Yield the line of what recurs, seen last first; ``debrief advice`` has the rest."""
    rows = sorted(lake.read(RECURRING, ALL, RecurringFriction), key=lambda row: row.last_seen)
    for row in rows[::-1][:_FRICTION]:
        line = Text.assemble(f"  {'comes again':13}  {row.repository}  ")
        yield line.append(shorten(make_visible(row.line), max(20, width - line.cell_len)))


def _holding(lake: Lake) -> str:
    """Say which rubrics there are, and what unseen sessions say of them; nothing without any."""
    every = list(lake.rows("rubrics", Rubric))
    rubrics = [rubric for rubric in every if rubric.finding == "tells"]
    if not rubrics:
        if not every:
            return ""
        searches = lake.read(SEARCHES, ALL, RubricSearch)
        needed = max((search.needed for search in searches), default=0)
        more = f"; about {counted(needed, 'more session')} are needed" if needed else ""
        found = counted(len(every), "rubric")
        return f"{found}: on unseen sessions, nothing distinguishes good from bad yet{more}."
    rubrics.sort(key=lambda rubric: -(rubric.held_out_low or 0.0))
    first = rubrics[0]
    effect = rubric_shown(first).effect_shown
    holds = "Holds" if (first.held_out_low or 0.0) >= _NEGLIGIBLE else "May hold weakly"
    rest = f" and {counted(len(rubrics) - 1, 'more')}" * (len(rubrics) > 1)
    rest += f"; {counted(len(every), 'rubric')} in all"
    return f"{holds} on unseen sessions: {make_visible(first.name)}, effect {effect}{rest}"


def _training_lines(lake: Lake, rows: Sequence[TrainingSetRow]) -> Iterator[str]:
    """Yield what became of all sessions of the lake, and which sets came out empty."""
    from debrief.training.manifest import counts_in
    from debrief.training.model import left_out_shown

    counts = counts_in(lake)
    samples = counted(sum(row.samples for row in rows), "sample")
    sets = counted(sum(row.samples > 0 for row in rows), "set")
    sessions = f"{counts.trained:,} of {counted(counts.sessions, 'session')}"
    out = left_out_shown(counts.left_out)
    left = f"; left out {counts.left_out.total():,}: {'; '.join(out)}" if out else ""
    yield f"Training sets: {samples} in {sets}, from {sessions}{left}"
    if counts.empty:
        named = [
            f"{row.task} {row.fingerprint} ({'; '.join(left_out_shown(row.reasons))})"
            for row in counts.empty[:_EACH]
        ]
        more = len(counts.empty) - _EACH
        rest = f", and {more:,} more on the page Training sets" if more > 0 else ""
        yield f"Empty sets: {make_visible(', '.join(named))}{rest}"


EVALUATED = ("judge_evaluations", "session_scores")
"""Tables of what evaluators were asked of each session."""


def check_answers(
    content: Content, evaluators: Evaluators, tables: Collection[str] = EVALUATED
) -> None:
    """Raise when every question of judging or of scoring failed.

    What was not asked does not count: sessions without a change, and what a limit left out.

    Args:
        content: of the weeks that were evaluated.
        evaluators: who was asked.
        tables: those of ``EVALUATED`` that were made.

    Raises:
        ModelError: there is no answer by them to any question of a stage.
    """
    judging, scoring = evaluators.eval_fingerprint, evaluators.scoring_fingerprint
    judged = [row for row in content.judged if row.eval_fingerprint == judging]
    scored = [row for row in content.scored if row.scoring_fingerprint == scoring]
    for table, stage, rows in zip(EVALUATED, ("judging", "scoring"), (judged, scored), strict=True):
        asked = [
            row for row in rows if row.status != "no_change" and not row.failure.startswith(BUDGET)
        ]
        failed = [row for row in asked if row.status == "failed"]
        if table in tables and failed and not any(map(holds_answer, asked)):
            ((reason, _),) = Counter(row.failure for row in failed).most_common(1)
            said = f"every question failed ({len(failed)}); {reason}".rstrip(".")
            raise ModelError(stage, said)


def print_problems(content: Content, console: Console) -> None:
    """Print all that failed or was skipped, with the reason: the summary has the first of them."""
    for title, problems in (
        ("Failed", content.failures),
        ("Skipped, while all around it was read", content.passed_over),
    ):
        if problems:
            console.print(f"{title} ({len(problems)}):")
        for problem in problems:
            line = f"  {problem.stage}: {_short(problem.culprit)}: {problem.reason}"
            # A path or an id that is broken can be looked for no more.
            console.print(line, soft_wrap=True)


def _short(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
