"""Rebuild sessions' changes, run their checks on both trees, and keep what came of it.

Nothing of a session or repository runs while a plan is made: a plan is what somebody agrees to.
What was run before on the same trees, with the same checks and packages, is not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError, flat
from debrief.execution.checks import checks_of, future_tests
from debrief.execution.model import (
    Check,
    ExecutedCheck,
    Execution,
    NotExecuted,
    RebuiltTree,
    SandboxRun,
)
from debrief.execution.preparing import NotPrepared, Prepared, packages_of, prepare
from debrief.execution.rebuilding import rebuild
from debrief.execution.running import Decision, decided_by, execute_check
from debrief.execution.sandbox import Sandbox, SandboxLimits
from debrief.execution.trees import lay_out
from debrief.keys import digest_of
from debrief.redaction.personal import without_personal_data
from debrief.redaction.redactor import Redactor
from debrief.sessions.model import Session
from debrief.settings import Settings

FORM = "4"
"""Raised when the same session in the same repository gives another row."""
_GRACE = 5.0
"""Seconds that a run may take to be ended."""
_RUNS = 4
"""Of each check: two on each tree."""


class ExecutionPlan(Struct, frozen=True, kw_only=True):
    """What is to be run of a session."""

    repository: str
    tree: RebuiltTree
    checks: tuple[Check, ...]
    packages: Prepared | NotPrepared
    """What the checks need, as far as it is here."""

    @property
    def session_id(self) -> str:
        """Return whose it is."""
        return self.tree.session_id

    @property
    def key(self) -> str:
        """Return what ``Execution.key`` is of its runs."""
        packages = self.packages
        kept = packages if isinstance(packages, NotPrepared) else packages.key
        trees = self.tree.base_tree, self.tree.final_tree
        return digest_of(FORM, trees, self.checks, kept)


class Executor:
    """Plans what is run of sessions, and runs it.

    Args:
        sandbox: where.
        store: a folder for the trees that are made. They hold words of sessions: whoever made it
            removes it.
        prepared: the folder that keeps packages that were installed for checks; or packages that
            all checks run with.
        limits: of one run of a check.
        redact: takes secrets out of what checks print.
        network: packages may be installed, over the network, where they are missing.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        store: Path,
        prepared: Path | Prepared,
        limits: SandboxLimits,
        redact: Callable[[str], str],
        *,
        network: bool = False,
    ) -> None:
        self._sandbox, self._store, self._prepared = sandbox, store, prepared
        self._redact, self._network = redact, network
        self.limits = limits

    def plan(self, session: Session, clone: Path) -> ExecutionPlan | NotExecuted:
        """Return what is to be run of a session, or why nothing can be; nothing is run yet."""
        try:
            return self._plan(session, clone)
        except InputError as error:
            return self._not_rebuilt(session.id, error)

    def _plan(self, session: Session, clone: Path) -> ExecutionPlan | NotExecuted:
        tree = rebuild(session, clone, self._store)
        if isinstance(tree, NotExecuted):
            return tree
        future = future_tests(clone, tree.base, tree.files)
        with self._laid_out(tree, tree.final_tree) as (final,):
            checks = checks_of(session, final, tree.files, future)
            if not checks:
                return NotExecuted(session_id=session.id, reason="no_check")
            packages = self._packages(clone, final, checks, network=False)
        return ExecutionPlan(
            repository=session.repository,
            tree=tree,
            checks=checks,
            packages=packages,
        )

    def run(self, plan: ExecutionPlan, now: datetime) -> Execution:
        """Run the checks of a plan on both of its trees."""
        try:
            return self._run(plan, now)
        except InputError as error:
            return not_executed(self._not_rebuilt(plan.session_id, error), now)

    def _not_rebuilt(self, session_id: str, error: InputError) -> NotExecuted:
        """Return that a tree cannot be laid out, such as of a clone without all of its files."""
        detail = self._redact(flat(error.reason))
        return NotExecuted(session_id=session_id, reason="not_rebuilt", detail=detail)

    def _run(self, plan: ExecutionPlan, now: datetime) -> Execution:
        tree = plan.tree
        with self._laid_out(tree, tree.base_tree, tree.final_tree) as (base, final):
            packages = self._packages(Path(tree.clone), final, plan.checks, network=self._network)
            row = Execution(
                session_id=plan.session_id,
                executed_at=now,
                tree=plan.tree,
                key=replace(plan, packages=packages).key,
            )
            if isinstance(packages, NotPrepared):
                return replace(row, reason="not_prepared", detail=self._redact(packages.missing))
            checks = tuple(
                execute_check(
                    base, final, check, packages, self._sandbox, self._redact, self.limits
                )
                for check in plan.checks
            )
        said = decided_by(checks, tree.files, final)
        if said.value == "no" and tree.differing:  # what broke may be what could not be rebuilt
            said = Decision(reason="not_rebuilt", detail=" ".join(tree.differing))
        return replace(
            row,
            checks=tuple(without_secrets(check, self._redact) for check in checks),
            value=said.value,
            reason=said.reason,
            detail=self._redact(said.detail),
        )

    def holds(self, row: Execution, plan: ExecutionPlan | NotExecuted) -> bool:
        """Return whether a row of before says what running the plan would say."""
        key = digest_of(FORM, plan) if isinstance(plan, NotExecuted) else plan.key
        may_be_prepared = self._network and row.reason == "not_prepared"
        runs = (run for check in row.checks for run in (*check.before, *check.after))
        longest = max((run.seconds for run in runs if run.end == "timed_out"), default=0.0)
        has_more_time = row.reason == "timed_out" and longest + _GRACE < self.limits.seconds
        return row.key == key and not may_be_prepared and not has_more_time

    def longest(self, plan: ExecutionPlan) -> float:
        """Return the most seconds that a plan can take, packages apart."""
        return _RUNS * len(plan.checks) * self.limits.seconds

    def _packages(
        self, clone: Path, tree: Path, checks: Sequence[Check], *, network: bool
    ) -> Prepared | NotPrepared:
        if isinstance(self._prepared, Prepared):
            return self._prepared
        folders = sorted({check.folder for check in checks})
        cache = packages_of(clone, self._prepared)
        return prepare(tree, cache, self._sandbox, network=network, folders=folders)

    @contextmanager
    def _laid_out(self, of: RebuiltTree, *trees: str) -> Iterator[list[Path]]:
        """Lay trees out as folders, for as long as they are needed."""
        with TemporaryDirectory(prefix="debrief-trees-") as folder:
            places = [Path(folder) / str(number) for number in range(len(trees))]
            for tree, place in zip(trees, places, strict=True):
                lay_out(tree, Path(of.clone), self._store, place)
            yield places


def not_executed(why: NotExecuted, now: datetime) -> Execution:
    """Return the row of a session of which nothing can be run."""
    return Execution(
        session_id=why.session_id,
        executed_at=now,
        key=digest_of(FORM, why),
        reason=why.reason,
        detail=why.detail,
    )


def redacting(redactor: Redactor) -> Callable[[str], str]:
    """Return what takes secrets, and personal data where that is asked for, out of a text."""

    def redact(text: str) -> str:
        clean = redactor.redact(text).text
        people = redactor.people
        return clean if people is None else without_personal_data(clean, people, redactor.stand)

    return redact


def prepared_folder(settings: Settings) -> Path:
    """Return where packages for checks are kept on this machine."""
    return settings.home / "cache" / "prepared"


def prepared_now(settings: Settings) -> list[str]:
    """Return the names of the packages that are kept: what may make another try worth it."""
    place = prepared_folder(settings)
    return sorted(str(path.relative_to(place)) for path in place.glob("*/*"))


@contextmanager
def opened_executor(
    settings: Settings,
    sandbox: Sandbox,
    limits: SandboxLimits,
    redact: Callable[[str], str],
    *,
    network: bool = False,
    prepared: Prepared | None = None,
) -> Iterator[Executor]:
    """Yield an executor, as ``Executor`` says; the trees that it made are gone afterwards."""
    packages = prepared or prepared_folder(settings)
    with TemporaryDirectory(prefix="debrief-execution-") as store:
        yield Executor(sandbox, Path(store), packages, limits, redact, network=network)


def execute(
    session: Session, clone: Path, by: Executor, stored: Execution | None, now: datetime
) -> Execution:
    """Return what running says of a session: what is stored, where that holds still.

    Args:
        session: whole, redacted.
        clone: of its repository.
        by: plans and runs.
        stored: the row of before; None without one.
        now: when it is run.
    """
    plan = by.plan(session, clone)
    if stored is not None and by.holds(stored, plan):
        return stored
    return not_executed(plan, now) if isinstance(plan, NotExecuted) else by.run(plan, now)


def without_secrets(check: ExecutedCheck, redact: Callable[[str], str]) -> ExecutedCheck:
    """Return an executed check whose tests' names hold no secret; what it printed holds none."""

    def clean(runs: tuple[SandboxRun, ...]) -> tuple[SandboxRun, ...]:
        return tuple(
            replace(run, tests={redact(name): status for name, status in run.tests.items()})
            for run in runs
        )

    return replace(check, before=clean(check.before), after=clean(check.after))
