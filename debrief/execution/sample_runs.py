"""Run the checks of a few sample sessions, at the end of the demo.

Their checks run with the Python and the packages of this very program, which the samples need no
more than; nothing is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import DebriefError
from debrief.execution.comparing import compared_tests
from debrief.execution.executing import ExecutionPlan, Executor, opened_executor, redacting
from debrief.execution.model import Execution
from debrief.execution.preparing import Prepared
from debrief.execution.sandbox import TREE, Mount, SandboxLimits, find_sandbox, why_unavailable
from debrief.execution.store import execution_of, put_executions
from debrief.keys import digest_of, week_of
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.redaction.redactor import Redactor, redactor_of
from debrief.samples import folder, lay_out_repositories
from debrief.sessions.forgotten import Forgotten
from debrief.sessions.redaction import redact_session
from debrief.sessions.store import session_in_folders
from debrief.settings import Settings

CHOSEN = (
    "3478a5f6-78ba-5d7e-9321-4722e333d86a",
    "09f0ea95-46d9-5175-88b1-08895c19c161",
    "4d1da1fd-aa04-5035-9790-48c61acd164b",
)
"""Sample sessions that are executed; the others take as long each."""
_LIMITS = SandboxLimits(seconds=60)
_NO_PYTEST = "pytest is not installed; pip install 'agent-debrief[sandbox]' brings it"


class SampleRuns(Struct, frozen=True, kw_only=True):
    """What came of executing sample sessions."""

    runs: tuple[tuple[str, Execution], ...] = ()
    """With the title of each."""
    why_not: str = ""
    """Why none was; empty where some were."""

    def lines(self) -> Iterator[str]:
        """Yield what to print of it."""
        if self.why_not:
            yield f"No session's tests were run again: {self.why_not}."
            return
        sessions = counted(len(self.runs), "session")
        yield f"{sessions} run again in a sandbox, before and after the change:"
        for title, row in self.runs:
            tests = [test for check in row.checks for test in compared_tests(check)]
            before, after = (
                sum(getattr(test, side) == "passed" for test in tests)
                for side in ("before", "after")
            )
            yield f"  {title}: {before} of {counted(len(tests), 'test')} passed, then {after}"


def execute_samples(lake: Lake, settings: Settings) -> SampleRuns:
    """Execute the chosen sample sessions, and keep their rows in a lake.

    A sandbox or a program that is missing is no error here.
    """
    if why := why_unavailable():
        return SampleRuns(why_not=f"there is no sandbox: {why}")
    try:
        packages = own_packages()
    except PackageNotFoundError:
        return SampleRuns(why_not=_NO_PYTEST)
    redactor = redactor_of(settings)
    places = {place.name: place for place in lay_out_repositories(settings.home / "samples")}
    try:
        with opened_executor(
            settings, find_sandbox(), _LIMITS, redacting(redactor), prepared=packages
        ) as executor:
            runs = tuple(_runs(lake, redactor, places, executor))
    except DebriefError as error:
        return SampleRuns(why_not=str(error).rstrip("."))
    return SampleRuns(runs=runs, why_not="" if runs else "none of those chosen is there")


def _runs(
    lake: Lake, redactor: Redactor, places: Mapping[str, Path], executor: Executor
) -> Iterator[tuple[str, Execution]]:
    forgotten = Forgotten.of(lake, redactor)
    for id_ in CHOSEN:
        session = session_in_folders(
            [folder()], id_, lambda session: redact_session(session, redactor)
        )
        if session is None or forgotten.session(id_):
            continue
        plan = executor.plan(session, places[session.repository])
        if isinstance(plan, ExecutionPlan):
            written = [check for check in plan.checks if check.origin == "written"]
            plan = replace(plan, checks=tuple(written[:1]))
            week = week_of(session.started)
            row = execution_of(lake, week, id_)
            if row is None or not executor.holds(row, plan):
                row = executor.run(plan, datetime.now(UTC))
                put_executions(lake, week, [row])
            yield session.title, row


def own_packages() -> Prepared:
    """Return the Python and the packages that this program runs with, for checks to run with.

    Raises:
        PackageNotFoundError: pytest is not among them.
    """
    folders = dict.fromkeys([sys.base_prefix, sys.prefix])
    return Prepared(
        key=digest_of(sys.version, version("pytest")),
        mounts=tuple(Mount(source=Path(each), target=each) for each in folders if each != "/usr"),
        # Its plugins take seconds to load, and samples need none.
        environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": TREE},
        path=(f"{sys.prefix}/bin",),
    )
