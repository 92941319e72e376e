"""What is known of a session's work by rebuilding it and running its checks."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

BaseSource = Literal["recorded", "transcript", "inferred"]
"""How the base commit is known: by a record, by the transcript, or as the last commit of the
branch before the session began."""
CheckOrigin = Literal["session", "repository", "written", "future"]
"""``session``: ran it itself. ``repository``: its own test command. ``written``: tests that the
session wrote. ``future``: test files of later commits that touch what the session changed."""
TestStatus = Literal["passed", "failed", "skipped"]
RunEnd = Literal["ended", "timed_out", "killed"]
"""``killed``: by a limit of the sandbox, or by its own signal."""
RunLimit = Literal["time", "memory", "processes", "disk", "output", "signal"]
"""What ended a run. ``signal``: it killed the shell that ran it."""

NoOutcome = Literal[
    "no_repository",
    "no_base",
    "base_gone",
    "shallow_clone",
    "submodules",
    "lfs_pointers",
    "nothing_changed",
    "not_rebuilt",
    "no_check",
    "not_prepared",
    "not_runnable",
    "timed_out",
    "killed",
    "flaky",
    "tests_changed",
    "same_before",
]
"""Why running says nothing of a session. ``not_prepared``: what its checks need was not made ready.
``not_runnable``: a check ends before it tests anything, on both trees. ``tests_changed``: the
session changed tests, and no check shows that what passes now was not changed to pass.
``same_before``: no test tells the trees apart."""


class NotExecuted(Struct, frozen=True, kw_only=True):
    """Why a session's work cannot be rebuilt, or not be run."""

    session_id: str
    reason: NoOutcome
    detail: str = ""
    """What the reason is about: a file, a commit, a command."""


class RebuiltTree(Struct, frozen=True, kw_only=True):
    """A session's change, made again in its repository. Ids are of git objects, in hex."""

    session_id: str
    clone: str
    """The repository's folder on this machine."""
    base: str
    """The commit."""
    base_source: BaseSource
    base_tree: str
    final_tree: str
    files: tuple[str, ...] = ()
    """That the session changed, below the repository's top."""
    exact: bool = False
    """The final tree equals what is known of the end, for each file of ``files``."""
    seen_in: str = ""
    """What is known of the end: a commit, ``read`` (a later read of the files) or ``record``;
    empty where nothing is."""
    differing: tuple[str, ...] = ()
    """Files that do not equal it, or could not be rebuilt."""
    landed: str = ""
    """The last commit of the repository that holds the session's work; empty where none is known.
    It may hold more than the session's."""


class Check(Struct, frozen=True, kw_only=True):
    """A command that shows whether the work is right."""

    command: str
    """For ``sh -c``."""
    origin: CheckOrigin
    folder: str = ""
    """Below the repository's top; empty for the top."""
    added: dict[str, str] = {}
    """Files that it brings, by path: blobs of ``future`` tests."""


class SandboxRun(Struct, frozen=True, kw_only=True):
    """One run of a check on one tree."""

    exit_code: int | None
    """None where it did not end by itself."""
    end: RunEnd
    limit: RunLimit | Literal[""] = ""
    """What ended it; empty where it ended by itself."""
    seconds: float
    tests: dict[str, TestStatus] = {}
    """By the test's name; empty where the framework does not tell."""
    output: str = ""
    """The last of what it printed, redacted."""


class ExecutedCheck(Struct, frozen=True, kw_only=True):
    """A check's runs on the base and on the final tree, two of each."""

    check: Check
    before: tuple[SandboxRun, ...]
    after: tuple[SandboxRun, ...]


class Execution(Struct, frozen=True, kw_only=True):
    """What running says of a session. A row of ``executed_outcomes``, a partition a week."""

    session_id: str
    executed_at: datetime
    key: str
    """Digest of trees, checks and prepared environment: what makes running it again needless."""
    tree: RebuiltTree | None = None
    checks: tuple[ExecutedCheck, ...] = ()
    value: Literal["yes", "no", ""] = ""
    """``yes``: a test that failed passes now, and none that passed fails. ``no``: one that passed
    fails now. Empty: it says nothing, for ``reason``."""
    reason: NoOutcome | Literal[""] = ""
    """Why there is no value; empty with one."""
    detail: str = ""
    """What the reason is about: a file, a commit, a command."""
