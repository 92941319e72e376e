"""``debrief execute``: sessions' checks run before and after their change, in a sandbox."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from debrief.cli.shared import AsJson, LakeUrl, console, exactly, existing_lake, print_json
from debrief.errors import InputError
from debrief.markdown import counted, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from debrief.execution.executing import ExecutionPlan, Executor
    from debrief.execution.model import Execution
    from debrief.lake import Lake
    from debrief.snapshots.clones import Clones

_LONGEST = 100
"""Characters of what came of a session, and of a reason."""
_DETAILS = 2
"""Files, commands, packages that are named of each reason."""


def execute(
    sessions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SESSION",
            help="Ids in the lake, or six characters of how they begin. Default: all of them.",
        ),
    ] = None,
    repositories: Annotated[
        list[Path] | None,
        typer.Option(
            help="A folder that is or holds clones of the repositories that sessions worked in; "
            "may be given more than once. Default: DEBRIEF_CLONES, and each session's own folder "
            "where it is still there.",
        ),
    ] = None,
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="First install what the checks need, by the repositories' lock files. Takes the "
            "network, and runs in the sandbox what packages run when they are installed.",
        ),
    ] = False,
    seconds: Annotated[
        int, typer.Option(min=1, help="The most that one run of a check may take.")
    ] = 300,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask whether these commands may run.")
    ] = False,
    as_json: AsJson = False,
    lake: LakeUrl = "",
) -> None:
    """Run the checks of sessions before and after their change, and keep what that says.

    A session's change is made again from the commit that it began from. Its checks (those that it
    ran, the repository's own, tests that it wrote, tests of later commits) run twice on each of the
    two trees, in a sandbox: a copy of the files, no network, no home, no keys. What would run is
    said first, and asked for. What was run before is not run again.
    """
    from debrief.conversion import open_lake
    from debrief.execution.executing import opened_executor, redacting
    from debrief.execution.sandbox import SandboxLimits, find_sandbox
    from debrief.redaction.redactor import redactor_of
    from debrief.settings import load_settings
    from debrief.snapshots.clones import find_clones

    settings, screen = load_settings(), console(stderr=True)
    opened = open_lake(existing_lake(lake) or settings.lake)
    sandbox = find_sandbox()
    for folder in repositories or ():
        if not folder.is_dir():
            raise InputError(str(folder), "is not a folder", "Name one that holds clones.")
    clones = find_clones(repositories or settings.clones)
    with opened_executor(
        settings,
        sandbox,
        SandboxLimits(seconds=seconds),
        redacting(redactor_of(settings)),
        network=prepare,
    ) as executor:
        work = _Work(opened, settings.home, executor, clones, screen, prepares=prepare)
        work.plan(sessions or ())
        if work.due and not yes:
            work.say()
            if not sys.stdin.isatty():
                raise InputError("nothing", "was run", "Add --yes if these commands may run.")
            typer.confirm("Run these commands in the sandbox?", abort=True, err=True)
        work.run()
    if as_json:
        print_json({"executions": work.rows, "without_a_repository": work.homeless})
    else:
        print_executions(console(), work.rows, work.homeless)
        if not prepare and any(row.reason == "not_prepared" for row in work.rows):
            console().print("With --prepare, what is missing is installed first.")


class _Work:
    """The sessions of a lake that are executed, and what came of it."""

    def __init__(
        self,
        lake: Lake,
        home: Path,
        executor: Executor,
        clones: Clones,
        screen: Console,
        *,
        prepares: bool,
    ) -> None:
        self._lake, self._executor, self._clones, self._screen = lake, executor, clones, screen
        self._home = home
        self._prepares = prepares
        self.due: list[tuple[str, ExecutionPlan]] = []
        """With the week of each."""
        self.rows: list[Execution] = []
        self.homeless = 0
        """Sessions of which no repository is at hand."""
        self._weeks: defaultdict[str, list[Execution]] = defaultdict(list)

    def plan(self, chosen: Sequence[str]) -> None:
        """Find out what is to be run of sessions; nothing runs yet."""
        from debrief.execution.executing import not_executed
        from debrief.execution.model import NotExecuted
        from debrief.execution.store import executions_by_session
        from debrief.keys import week_of
        from debrief.sessions.model import Session
        from debrief.sessions.store import SESSIONS_TABLE
        from debrief.snapshots.rows import repository_at_hand

        ids = _ids(self._lake, chosen)
        stored, now = executions_by_session(self._lake), datetime.now(UTC)
        with self._progress() as progress:
            bar = progress.add_task("Making changes again", total=len(ids))
            only = ("id", set(ids)) if chosen else None
            for partition in sorted(set(ids.values())):
                for session in self._lake.read(SESSIONS_TABLE, partition, Session, only):
                    progress.advance(bar)
                    clone = repository_at_hand(session, self._clones)
                    if clone is None:
                        self.homeless += 1
                        continue
                    plan = self._executor.plan(session, clone)
                    former, week = stored.get(session.id), week_of(session.started)
                    if former is not None and self._executor.holds(former, plan):
                        self.rows.append(former)
                    elif isinstance(plan, NotExecuted):
                        self._weeks[week].append(not_executed(plan, now))
                    else:
                        self.due.append((week, plan))

    def say(self) -> None:
        """Say what would be run: repositories, sessions, commands, how long at most."""
        from debrief.execution.preparing import NotPrepared

        by_repository: defaultdict[str, list[ExecutionPlan]] = defaultdict(list)
        for _, plan in self.due:
            by_repository[f"{plan.repository} ({plan.tree.clone})"].append(plan)
        for repository, plans in sorted(by_repository.items()):
            self._screen.print(f"{exactly(repository)}: {counted(len(plans), 'session')}")
            checks = (check for plan in plans for check in plan.checks)
            commands = Counter((check.command, check.folder) for check in checks)
            for (command, folder), count in commands.most_common():
                place = f" in {exactly(folder)}" if folder else ""
                self._screen.print(f"  {exactly(command)}  ({count}{place})")
        missing = sum(isinstance(plan.packages, NotPrepared) for _, plan in self.due)
        if self._prepares and missing:
            self._screen.print(
                f"First the packages of {counted(missing, 'session')} are installed, with network, "
                "which runs their own code in the sandbox."
            )
        longest = sum(self._executor.longest(plan) for _, plan in self.due)
        self._screen.print(
            f"Each command runs twice before and twice after the change, in the sandbox: without "
            f"network, home or keys, {longest / 60:,.0f} minutes at most."
        )

    def run(self) -> None:
        """Run what is due, and keep each row as it comes, so that a second start goes on there."""
        from debrief.execution.store import executed_labels, put_executions
        from debrief.outcomes.store import only_label_writer, put_labels

        for week, rows in self._weeks.items():
            put_executions(self._lake, week, rows)
            self.rows += rows
        with self._progress() as progress:
            bar = progress.add_task("Running checks", total=len(self.due))
            for week, plan in self.due:
                row = self._executor.run(plan, datetime.now(UTC))
                put_executions(self._lake, week, [row])
                self.rows.append(row)
                progress.advance(bar)
        with only_label_writer(self._lake, self._home):
            put_labels(self._lake, executed_labels(self._lake))

    def _progress(self) -> Progress:
        return Progress(console=self._screen, transient=True, disable=not self._screen.is_terminal)


def _ids(lake: Lake, chosen: Iterable[str]) -> Mapping[str, str]:
    """Return the partitions of the sessions that are meant, by their ids.

    Raises:
        InputError: an id is not in the lake, or several begin so.
    """
    from debrief.sessions.model import SessionHead
    from debrief.sessions.store import SESSIONS_TABLE, only_one

    weeks = {
        head.id: week
        for week in lake.partitions(SESSIONS_TABLE)
        for head in lake.read(SESSIONS_TABLE, week, SessionHead)
    }
    if not weeks:
        raise InputError(lake.url, "holds no session", "Run debrief run first.")
    found = {}
    for prefix in chosen:
        id_ = only_one(prefix, weeks)
        if id_ is None:
            raise InputError(prefix, f"is no session of {lake.url}", "Run debrief run first.")
        found[id_] = weeks[id_]
    return found or weeks


def print_executions(out: Console, rows: Sequence[Execution], homeless: int = 0) -> None:
    """Print what running says of sessions: before and after of those that it says something of,
    then the reasons of the others, counted."""
    from debrief.execution.shown import REASONS_SHOWN
    from debrief.execution.store import outcome_shown

    known = [row for row in rows if row.value]
    for row in sorted(known, key=lambda row: (row.value, row.session_id)):
        said = "done" if row.value == "yes" else "not done"
        out.print(f"  {row.session_id[:8]}  {said:8}  {shorten(outcome_shown(row), _LONGEST)}")
    yes = sum(row.value == "yes" for row in known)
    out.print(
        f"Checks were run before and after: {counted(len(known), 'session')} with an outcome, "
        f"{yes} done, {len(known) - yes} not."
    )
    reasons = Counter(row.reason for row in rows if row.reason)
    for reason, count in reasons.most_common():
        out.print(f"  {counted(count, 'session')}: {REASONS_SHOWN[reason]}")
        details = Counter(row.detail for row in rows if row.reason == reason and row.detail)
        for detail, _ in details.most_common(_DETAILS):
            out.print(f"    {shorten(detail, _LONGEST)}", style="dim")
        if len(details) > _DETAILS:
            out.print(f"    and {len(details) - _DETAILS} more", style="dim")
    if homeless:
        out.print(f"  {counted(homeless, 'session')}: {REASONS_SHOWN['no_repository']}")
