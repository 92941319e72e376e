"""``debrief run``: select stages and weeks, estimate, agree, run, sum up."""

from __future__ import annotations

import logging
import shlex
import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from msgspec import Struct
from msgspec.structs import replace

from debrief.cli.asking import AskingEstimate, agree, estimate_of, print_notes
from debrief.cli.progress import ShownProgress, shown_progress, stopped
from debrief.cli.run_options import Places, RunOptions
from debrief.cli.shared import console, warn
from debrief.cli.summary import EVALUATED, check_answers, print_problems, print_summary
from debrief.conditions import Where
from debrief.conversion import open_lake
from debrief.errors import DebriefError, InputError, readable
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.models.recorded import is_recorded
from debrief.scope import Scope, values_by_session
from debrief.sessions.store import scan_into, weeks_in
from debrief.settings import Settings
from debrief.stages.due import Due, due
from debrief.stages.lost_rows import lost_rows
from debrief.stages.rehearsal import SCORES, Rehearsal, rehearse
from debrief.stages.rehearsal import added_up as asked_together
from debrief.stages.run import StageRun
from debrief.stages.sessions import RAW_SESSIONS
from debrief.stages.training import PROMPT_CANDIDATES, TRAINING_SETS, settle, stale_pairs
from debrief.summary import Content, content_of
from debrief.training.manifest import current_pairs
from debrief.training.optimisation import OptimiserOptions
from debrief.weekly import Done, added_up
from pipelines.configuration import RunConfiguration, configuration_of
from pipelines.home import CONFIGURATION, dagster_home

if TYPE_CHECKING:
    import dagster as dg

_progress = logging.getLogger("debrief.progress")
_NOTHING_ASKED = "Nothing is asked: no model has anything to do."
_BY_TAG = "user"
"""Dagster's tag of who launched a run; without it, its pages say "manually"."""
_OF_CODE_TAG = ".dagster/repository"
"""Dagster's tag of the code that a run is of; without it, the job's page does not list the run."""
_APART = {
    "labels_labels_were_read",
    "raw_sessions_servers_were_read",
    "langfuse_scores_scores_are_written",
}
"""Steps that training sets do not need: when they fail, the run goes on to its end, and fails."""
_MARGIN_WITH_RUBRICS = 2.0
"""As ``USUAL_MARGIN``, for rubrics as well, which are mined from what is still to be scored."""
_SHOWN = 10
"""Values that an error offers."""


def run_stages(options: RunOptions, *, of_demo: bool = False) -> None:
    """Run stages and print what came of it.

    Sessions are read before a model is asked, so that what asking takes is counted and not
    guessed; it is said, and asked for.

    Args:
        options: of the command.
        of_demo: the sessions are the samples.

    Raises:
        DebriefError: an option is wrong, nobody agreed to the cost, somebody stopped it, or a
            stage or every question of one failed.
    """
    where, weeks = options.conditions, options.weeks
    with options.applied() as settings:
        configuration = configuration_of(settings).over(str(where), force=options.force)
        if options.is_partial:
            _run_selected(settings, configuration, options)
        else:
            _run_all(settings, configuration, options, weeks, of_demo=of_demo)


def _run_all(
    settings: Settings,
    configuration: RunConfiguration,
    options: RunOptions,
    weeks: Sequence[str],
    *,
    of_demo: bool,
) -> None:
    started, screen, evaluators = time.monotonic(), console(), None
    if configuration.has_model:
        # Found out now, and not a minute into the run, that a judge or a key is wrong.
        evaluators = configuration.stages.evaluator.open()
        print_notes(evaluators.models)
    screen.print(f"Debrief: sessions → {settings.lake}")
    runs: list[RunOutcome] = []
    with shown_progress(settings) as shown:
        lake = open_lake(settings.lake)
        found = weeks_with_sessions(lake, configuration, weeks)
        work = _due(settings, lake, found, configuration)
        if options.dry_run and work is not Due.WEEKS:
            console(stderr=True).print(_NOTHING_ASKED)
            return
        if work is Due.NOTHING:
            settle(lake)
        else:
            # Dagster takes seconds to load, and is not needed where there is nothing to do.
            from pipelines.instance import open_instance

            with open_instance(settings) as instance:
                model = configuration.stages.evaluator.model
                is_paid = configuration.has_model and not is_recorded(model)
                if work is Due.WEEKS:
                    if options.dry_run or is_paid:
                        _read_first(instance, lake, found, configuration)
                    if is_paid:
                        if lost := lost_rows(lake, found, model):
                            warn(f"{lost} That goes with this run.")
                        configuration = _agreed(
                            lake, found, configuration, settings, shown, options
                        )
                    if options.dry_run:
                        console(stderr=True).print(_NOTHING_ASKED)
                        return
                taken = found if work is Due.WEEKS else found[-1:]
                runs.extend(_whole_graph(instance, lake, taken, found, configuration))
        content = content_of(lake, found)
        with shown.log.open("a", encoding="utf-8") as file:
            print_problems(content, console(file=file))
    where = " --demo" if of_demo else f" --lake {shlex.quote(options.lake)}" * bool(options.lake)
    print_summary(lake, content, screen, where, added_up("", _parts(runs)))
    screen.print(f"Took {time.monotonic() - started:.0f} s. All lines: {readable(str(shown.log))}")
    for run in runs:
        run.check()
    if evaluators is not None:
        check_answers(content, evaluators)


def run_quietly(options: Places) -> Content:
    """Run the whole graph for somebody who is doing something else; return what there is then.

    The settings of this process are afterwards what they were.

    Raises:
        DebriefError: there is no session, somebody stopped it, or a stage failed as a whole.
    """
    with options.applied() as settings, shown_progress(settings):
        configuration, lake = configuration_of(settings), open_lake(settings.lake)
        found = weeks_with_sessions(lake, configuration)
        if _due(settings, lake, found, configuration) is not Due.NOTHING:
            from pipelines.instance import open_instance

            with open_instance(settings) as instance:
                for run in _whole_graph(instance, lake, found, found, configuration):
                    run.check()
        return content_of(lake, found)


def _due(
    settings: Settings, lake: Lake, weeks: Sequence[str], configuration: RunConfiguration
) -> Due:
    """Return what there is to do; Dagster's storage may be new, and then is filled."""
    run = StageRun.of(lake, configuration.stages, weeks)
    is_new = not (dagster_home(settings) / CONFIGURATION).exists()
    if weeks and is_new:
        return Due.WEEKS
    return due(run, configuration.stages.evaluator.repository_folder())


def _whole_graph(
    instance: dg.DagsterInstance,
    lake: Lake,
    taken: Sequence[str],
    found: Sequence[str],
    configuration: RunConfiguration,
) -> Iterator[RunOutcome]:
    """Carry out the whole graph over some weeks, then the training sets that follow from all.

    Args:
        instance: where runs are recorded.
        lake: that is filled.
        taken: the weeks to take.
        found: all weeks.
        configuration: of the runs; its limits hold for all runs together.
    """
    from assets.partitions import pair_key

    made: list[RunOutcome] = []
    for assets, weeks in _runs(lake, taken):
        config = configuration.after(_parts(made)).for_dagster()
        made.append(carry_out(instance, "whole_graph", weeks, config, assets))
        if not made[-1].failed_steps <= _APART:
            made[-1].check()
        yield made[-1]
    if stale := sorted(pair_key(*pair) for pair in stale_pairs(lake, found)):
        for pairs in _pair_ranges(instance, stale):
            carry_out(instance, "training_sets_job", pairs, configuration.for_dagster()).check()
    settle(lake)


def _agreed(
    lake: Lake,
    weeks: Sequence[str],
    configuration: RunConfiguration,
    settings: Settings,
    shown: ShownProgress,
    options: RunOptions,
) -> RunConfiguration:
    """Count what models would be asked, have it agreed to, and return the limits that hold.

    Raises:
        ConfigurationError: nobody is there to agree.
    """
    counting = configuration.with_evaluator(dry_run=True)
    found = rehearse(StageRun.of(lake, counting.stages, weeks))
    waiting = next(rehearsal.sessions for rehearsal in found if rehearsal.stage == SCORES)
    estimate = _estimate(configuration, found, len(waiting), margin=_MARGIN_WITH_RUBRICS)
    with shown.pause():
        limited = agree(estimate, settings, yes=options.yes, dry_run=options.dry_run)
    shown.expect(estimate.calls)
    return configuration.within(limited)


def _estimate(
    configuration: RunConfiguration, found: Sequence[Rehearsal], sessions: int, **options: float
) -> AskingEstimate:
    model = configuration.stages.evaluator.model or "the judges' models"
    return estimate_of(model, asked_together(found), sessions, **options)


def _read_first(
    instance: dg.DagsterInstance,
    lake: Lake,
    weeks: Sequence[str],
    configuration: RunConfiguration,
) -> None:
    """Read the sessions of some weeks, and nothing else.

    Raises:
        DebriefError: somebody stopped it, or the stage failed as a whole.
    """
    for assets, some in _runs(lake, weeks, [RAW_SESSIONS.name]):
        outcome = carry_out(instance, "", some, configuration.for_dagster(), assets)
        if not outcome.failed_steps <= _APART:
            outcome.check()


def carry_out_over(
    settings: Settings,
    lake: Lake,
    weeks: Sequence[str],
    configuration: RunConfiguration,
    assets: Sequence[str],
) -> None:
    """Make some assets over weeks.

    Raises:
        DebriefError: somebody stopped it, or a stage failed.
    """
    from pipelines.instance import open_instance

    with open_instance(settings) as instance:
        for names, some in _runs(lake, weeks, assets):
            carry_out(instance, "", some, configuration.for_dagster(), names).check()


def _run_selected(settings: Settings, configuration: RunConfiguration, options: RunOptions) -> None:
    """Bring the selected stages up to date.

    Raises:
        InputError: there is no such stage, or no partition that the options fit.
        DebriefError: a run failed, or every question of a stage.
        ConfigurationError: it costs something and nobody agreed.
    """
    lake = open_lake(settings.lake)
    found = weeks_with_sessions(lake, configuration) if _may_read(options.select) else ()
    # Dagster is loaded only now: the weeks that the lake knows are its partitions from then on.
    from assets.partitions import add_pairs, pair_of
    from pipelines.instance import open_instance

    stages, of_pairs = _selected(options.select)
    known = set(lake.partitions(RAW_SESSIONS.table))
    if RAW_SESSIONS.name in stages:
        known.update(found)
    weeks = _weeks(lake, options, known)
    if not (weeks if stages else _pairs(lake, options, weeks)):
        raise _nothing_to_take(lake, options, sorted(known))
    runs: list[RunOutcome] = []
    with open_instance(settings) as instance:
        configuration = _agreed_to_selected(
            lake, options, stages, of_pairs, weeks, configuration, settings
        )

        def make(assets: Sequence[str], partitions: Sequence[str]) -> None:
            ops: dict[str, Any] = {}
            if PROMPT_CANDIDATES.name in assets:  # It was named, and its cost agreed to.
                ops[PROMPT_CANDIDATES.name] = {"trials": OptimiserOptions().trials}
            config = configuration.after(_parts(runs)).for_dagster(**ops)
            runs.append(carry_out(instance, "", partitions, config, assets))
            runs[-1].check()

        with shown_progress(settings):
            for assets, some in _runs(lake, weeks, stages) if stages else ():
                make(assets, some)
            if of_pairs:
                pairs = sorted(_pairs(lake, options, weeks))
                add_pairs(instance, map(pair_of, pairs))
                for some in _pair_ranges(instance, pairs):
                    make(of_pairs, some)
    done = added_up("", _parts(runs))
    asked = f", {done.calls} calls, {_cost(done.cost_usd)}" if done.calls else ""
    failed = f", {done.failed} failed: the next run tries them again" if done.failed else ""
    console().print(f"Done: {done.fresh} rows new or changed{asked}{failed}.")
    if configuration.has_model and (evaluated := set(EVALUATED) & set(stages)):
        check_answers(content_of(lake, weeks), configuration.stages.evaluator.open(), evaluated)


def _may_read(select: str) -> bool:
    """Return whether a selection may hold the stage that reads sessions.

    A stage's name, with what follows it, does not.
    """
    name = select.rstrip("+")
    return not name.isidentifier() or name == RAW_SESSIONS.name


def _selected(select: str) -> tuple[list[str], list[str]]:
    """Return the stages of weeks or without partitions, and those of pairs.

    Prompt candidates cost many calls, so they are selected only by their own name.

    Raises:
        InputError: it is no selection of Dagster's, or names no stage.
    """
    import dagster as dg
    from dagster import DagsterError

    from pipelines.definitions import defs

    graph = defs.resolve_asset_graph()
    names = sorted(key.to_user_string() for key in graph.materializable_asset_keys)
    try:
        keys = dg.AssetSelection.from_string(select or "*").resolve(graph)
        if not keys:
            raise ValueError("no stage is in all parts of it")
    except (DagsterError, ValueError) as error:
        close = get_close_matches(select, names, n=1)
        move = f"There are: {', '.join(names)}; session_scores+ takes what follows, too."
        move = f"Did you mean {close[0]}? {move}" if close else move
        raise InputError(f"--select {select}", "selects no stage", move) from error
    if PROMPT_CANDIDATES.name not in select:
        keys -= {dg.AssetKey(PROMPT_CANDIDATES.name)}
    made = [key.to_user_string() for key in graph.toposorted_asset_keys if key in keys]
    of_pairs = [name for name in made if name in (TRAINING_SETS.name, PROMPT_CANDIDATES.name)]
    return [name for name in made if name not in of_pairs], of_pairs


def _runs(
    lake: Lake, weeks: Sequence[str], assets: Sequence[str] = ()
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Yield the assets and the weeks of each run that it takes to make assets over weeks.

    A run takes a range of weeks. Weeks without a session part no neighbours. Weeks that are no
    neighbours take a run each, and assets without weeks one in between, as in Dagster's backfills.

    Args:
        lake: knows the weeks that hold sessions.
        weeks: to take.
        assets: those that are made; all of ``whole_graph`` if none is named.
    """
    import dagster as dg

    from assets.partitions import neighbours, not_listed
    from pipelines.definitions import defs
    from pipelines.jobs import IN_WHOLE_GRAPH

    graph = defs.resolve_asset_graph()
    made = {dg.AssetKey(name) for name in assets} or IN_WHOLE_GRAPH.resolve(graph)
    keys = [key for key in graph.toposorted_asset_keys if key in made]
    if others := not_listed(weeks):
        raise InputError("weeks", "are not known to this process", others)
    has_weeks = any(graph.get(key).is_partitioned for key in keys)
    found = neighbours(sorted({*weeks_in(lake), *weeks}), set(weeks)) if has_weeks else [[]]
    if len(found) == 1:
        yield assets, found[0]
        return
    for is_partitioned, group in groupby(keys, lambda key: graph.get(key).is_partitioned):
        names = [key.to_user_string() for key in group]
        for some in found if is_partitioned else [[]]:
            yield names, some


def _pair_ranges(instance: dg.DagsterInstance, pairs: Sequence[str]) -> list[list[str]]:
    """Return pairs in ranges of Dagster's partitions."""
    from assets.partitions import neighbours

    return neighbours(instance.get_dynamic_partitions("pair"), set(pairs))


def _weeks(lake: Lake, options: RunOptions, known: set[str]) -> list[str]:
    """Return the weeks to take: those with a session that the conditions hold for.

    Conditions are known to hold only once sessions were read, so weeks that are not read yet are
    taken.
    """
    weeks = sorted(known & set(options.weeks)) if options.weeks else sorted(known)
    if not options.conditions:
        return weeks
    read, scope = set(lake.partitions(RAW_SESSIONS.table)), Scope(options.conditions)
    return [week for week in weeks if week not in read or scope.ids(lake, week)]


def _pairs(lake: Lake, options: RunOptions, weeks: Sequence[str]) -> set[str]:
    from assets.partitions import pair_key

    scope = Scope(options.conditions)
    ids = {week: scope.ids(lake, week) for week in weeks} if options.conditions else {}
    return {
        pair_key(task, fingerprint)
        for (task, fingerprint), members in current_pairs(lake, weeks).items()
        if options.conditions.of("task").takes({"task": [task]})
        and (not options.conditions or any(found & ids[week] for week, found in members.items()))
    }


def _agreed_to_selected(
    lake: Lake,
    options: RunOptions,
    stages: list[str],
    of_pairs: list[str],
    weeks: Sequence[str],
    configuration: RunConfiguration,
    settings: Settings,
) -> RunConfiguration:
    """Show what is due and what it would cost; return the limits that hold.

    Raises:
        ConfigurationError: it may cost money and nobody agreed.
        click.exceptions.Exit: it was only to be shown.
    """
    screen = console()
    counting = configuration.with_evaluator(dry_run=True)
    run = StageRun.of(lake, counting.stages, weeks)
    found = {rehearsal.stage: rehearsal for rehearsal in rehearse(run, stages)} if stages else {}
    for stage in (*stages, *of_pairs):
        if stage not in found:
            force = "is made again" if options.force else "what is up to date is skipped"
            screen.print(f"{stage}: {force}")
            continue
        screen.print(f"{stage}: {_due_text(found[stage], weeks)}")
        if not configuration.has_model:
            continue
        asked = found[stage].asked
        tokens = f"{asked.usage.input_tokens:,} + {asked.usage.output_tokens:,} tokens"
        cost = _cost(asked.usage.cost_usd)
        screen.print(f"  estimate · {stage}: {asked.calls:,} calls, {tokens}, {cost}")
    if len(stages) > 1:
        screen.print("What follows a stage that is due is known once that was done.")
    if options.dry_run:
        raise typer.Exit
    if not configuration.has_model:
        return configuration
    print_notes(run.evaluators.models)
    sessions = found[SCORES].sessions if SCORES in found else ()
    estimate = _estimate(configuration, list(found.values()), len(sessions))
    is_open = len(stages) > 1 or PROMPT_CANDIDATES.name in of_pairs
    return configuration.within(
        agree(replace(estimate, is_open=is_open), settings, yes=options.yes)
    )


def _due_text(found: Rehearsal, weeks: Sequence[str]) -> str:
    if found.off:
        return f"off: {found.off}"
    if not found.due and not found.current:
        return "made of all weeks"
    counts = f"{counted(len(found.due), 'week')} to make, {found.current} up to date"
    return f"{weeks[0]} … {weeks[-1]}: {counts}"


def _cost(cost_usd: float | None) -> str:
    return "cost not known" if cost_usd is None else f"${cost_usd:.4f}"


def _nothing_to_take(lake: Lake, options: RunOptions, known: list[str]) -> InputError:
    """Return the error that names what no session fits, and what there is instead."""
    where, weeks = options.conditions, [week for week in known if week in (options.weeks or known)]
    if not known:
        move = "debrief sources lists what there is to read, debrief run reads it."
        return InputError(lake.url, "holds no session", move)
    if not weeks:
        return _no_such_week(options.weeks, known)
    facts = [each for week in weeks for _, each in values_by_session(lake, week)] if where else []
    for condition in where.conditions:
        alone = Where((condition,))
        if not any(map(alone.takes, facts)):
            there = Counter(value for fact in facts for value in fact.get(condition[0], ()))
            none = f"Of no session a {condition[0]} is known."
            return InputError(f"--where {alone}", "fits no session", _listed(there) or none)
    if where:
        reason = "fits no session: each has some, and none has all"
        return InputError(f"--where {where}", reason, "Leave one out.")
    move = "debrief run makes what comes before it."
    return InputError(options.select, "has no partition yet", move)


def _no_such_week(weeks: Sequence[str], known: Sequence[str]) -> InputError:
    asked = weeks[0] if len(weeks) == 1 else f"{weeks[0]}..{weeks[-1]}"
    there = f"There are sessions from {known[0]} to {known[-1]}." if known else ""
    return InputError(f"--week {asked}", "holds no session", there)


def _listed(there: Counter[str]) -> str:
    """Return the values that there are, the most frequent first; empty when there are none."""
    values = [value or "(none)" for value, _ in there.most_common(_SHOWN)]
    more = f" and {len(there) - len(values)} more" if len(there) > len(values) else ""
    return f"There are: {', '.join(values)}{more}." if values else ""


def weeks_with_sessions(
    lake: Lake, configuration: RunConfiguration, weeks: Sequence[str] = ()
) -> list[str]:
    """Search the folders, and return the weeks that hold sessions, among ``weeks`` if given.

    Raises:
        InputError: no session is anywhere, in the lake neither, or none in ``weeks``.
    """
    from debrief.sessions.scanning import is_reported
    from debrief.sessions.sources import no_session_in, reasons_for_none

    sources = configuration.stages.sessions
    places = sources.places()
    scan = scan_into(lake, places, sources.redactor(), sources.servers())
    known = scan.weeks()
    stamps = (lake.stamp(RAW_SESSIONS.table, week) for week in lake.partitions(RAW_SESSIONS.table))
    is_filled = any(stamp is None or stamp.rows for stamp in stamps)  # None: damaged, and made anew
    if not is_filled and (reasons := reasons_for_none(scan)) is not None:
        raise no_session_in(places, reasons)
    taken = [week for week in known if week in weeks or not weeks]
    if weeks and not taken:
        raise _no_such_week(weeks, known)
    count = sum(map(is_reported, scan.entries))
    _progress.info(
        "found %s in %s; taking %s",
        counted(count, "transcript"),
        counted(len(known), "week"),
        counted(len(taken), "week"),
    )
    return taken


class RunOutcome(Struct, frozen=True):
    """How a run ended."""

    job: str
    run_id: str
    success: bool
    events: Sequence[dg.DagsterEvent]

    @property
    def failed_steps(self) -> set[str]:
        """Return the steps that failed; the run itself when none of them did."""
        failed = {str(event.step_key) for event in self.events if event.is_step_failure}
        return failed or (set() if self.success else {self.job})

    def check(self) -> None:
        """Raise why the run failed.

        Raises:
            DebriefError: it did.
        """
        from pipelines.jobs import failure_in, was_interrupted

        if was_interrupted(self.events):
            raise stopped()
        if not self.success:
            step, reason = failure_in(self.events, self.job)
            raise DebriefError(
                step, reason.rstrip("."), f"The whole story is in run {self.run_id}."
            )


def _parts(runs: Collection[RunOutcome]) -> list[Done]:
    """Return what the stages of runs did."""
    if not runs:
        return []
    from assets.reports import done_in

    return [part for run in runs for part in done_in(run.events)]


def carry_out(
    instance: dg.DagsterInstance,
    job: str,
    partitions: Sequence[str],
    config: Mapping[str, Any],
    assets: Sequence[str] = (),
) -> RunOutcome:
    """Run a job, or some assets of it or of all, over a range of partitions, in this process.

    Args:
        instance: where the run is recorded.
        job: its name; empty for a run over ``assets`` of any.
        partitions: neighbours, in Dagster's order; none for assets without.
        config: of the run.
        assets: those that are made; all of the job if none is named.
    """
    import dagster as dg

    from pipelines.definitions import defs
    from pipelines.instance import tags_of_this_process
    from pipelines.jobs import range_tags

    definition = defs.resolve_job_def(job) if job else defs.resolve_implicit_global_asset_job_def()
    with _events_kept_open(instance):
        result = definition.execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey(name) for name in assets] or None,
            tags={
                **tags_of_this_process(),
                _BY_TAG: "the debrief command",
                _OF_CODE_TAG: "__repository__@debrief",
                **(range_tags(partitions[0], partitions[-1]) if partitions else {}),
            },
            run_config=dict(config),
            raise_on_error=False,
        )
    name = job or ", ".join(assets)
    return RunOutcome(name, result.run_id, result.success, result.all_events)


@contextmanager
def _events_kept_open(instance: dg.DagsterInstance) -> Iterator[None]:
    """Hold a connection to a local instance's events within the block.

    Dagster opens and closes one for each statement, and SQLite merges and deletes its write-ahead
    log whenever the last connection closes: that doubles the cost of an event.
    """
    file = Path(instance.root_directory, "event_log.db")
    if not file.exists():
        yield
        return
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA schema_version").fetchone()
        yield
