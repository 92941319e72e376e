"""The life of a recorded session until it is stopped: start, run, discard.

One process at a time changes a worktree's session; a second one is refused, not made to wait.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from msgspec import structs
from pydantic import TypeAdapter, ValidationError

from debrief.errors import ConfigurationError, InputError
from debrief.git import scratch_of
from debrief.recorder.changes import keep_state
from debrief.recorder.commands import (
    RULES_FILE,
    NotStartedError,
    check_command,
    default_rules,
    execute,
    read_rules,
)
from debrief.recorder.comparison import IgnoreRules, check_clean
from debrief.recorder.contracts import MAX_STRING, CommandRules, TaskId
from debrief.recorder.local_session import CommandEnd, CommandStart, NewSession, Started, rules_of
from debrief.recorder.repository import base_of, baseline_of, head_commit, reflog_size, worktree_of
from debrief.recorder.state import OUTPUT_KEPT, LocalSession, RecorderHome

_GRACE = 5.0
"""Seconds between the request to a command to end, and the end by force."""


def utc_now() -> datetime:
    """Return the moment it is."""
    return datetime.now(UTC)


def start(home: RecorderHome, folder: Path, new: NewSession) -> Started:
    """Start a session in the worktree that ``folder`` lies in.

    Raises:
        InputError: there is a session, no repository or no commit; the worktree is not clean; its
            file of rules is wrong; or ``new`` is not of the contract.
        ConfigurationError: sessions would be kept in the worktree.
    """
    _check(new)
    baseline = baseline_of(folder)
    worktree = baseline.worktree
    if home.path.resolve().is_relative_to(worktree):
        raise ConfigurationError(
            str(home.path),
            "holds the sessions, and lies in the worktree to be recorded",
            "Set DEBRIEF_HOME to a folder outside of it.",
        )
    with home.lock_worktree(worktree):
        if session := home.session(worktree):
            earlier = session.started
            since = f"of task {earlier.task_id}, since {earlier.started_at:%F %T} UTC"
            move = "End it with: debrief record stop, or: debrief record discard"
            error = InputError(earlier.worktree, f"has a session already, {since}", move)
            raise error.known_as("session-exists", sessionId=earlier.id)
        check_clean(worktree, new.ignore)
        rules = read_rules(worktree)
        readable = os.fsencode(worktree).decode("utf-8", "replace")
        started = Started(
            id=str(uuid4()),
            started_at=utc_now(),
            reflog_size=reflog_size(worktree),
            rules=rules.model_dump_json(by_alias=True) if rules else "",
            **structs.asdict(new),
            **{**structs.asdict(baseline), "worktree": readable},
        )
        if head_commit(worktree) != baseline.base_ref:
            raise InputError(str(worktree), "got another commit just now", "Start again.")
        home.open(worktree, started)
    return started


def run(
    home: RecorderHome,
    folder: Path,
    command: Sequence[str],
    *,
    show: Callable[[bytes], None],
    time_limit: float | None = None,
    agrees: Callable[[CommandRules], bool] = lambda rules: False,
) -> CommandEnd:
    """Run a command of the allowlist in ``folder`` and record it with its output.

    It is stored before it starts, with the files as they are then; its output as it comes, its end
    as soon as it ended.

    Args:
        home: the recorder's folders.
        folder: where it runs, in the worktree of a session.
        command: program and arguments.
        show: is called with each piece of output as it comes.
        time_limit: seconds, after which it is ended with all that it started; its rule's if None.
        agrees: asks the person about a repository's rules, once for each digest.

    Raises:
        InputError: there is no session, no rule has the command, or it is one of the repository's
            own and the person has not agreed to them.
        ConfigurationError: the program is not there.
    """
    if not command:
        move = "As: debrief record run -- pnpm test"
        raise InputError("run", "there is no command", move).known_as("command-refused")
    with opened(home, folder) as session:
        started, worktree = session.started, session.worktree
        cwd = folder.resolve().relative_to(worktree).as_posix()
        rules = rules_of(started)
        rule = check_command(command[0], command[1:], cwd, rules)
        time_limit = rule.time_limit if time_limit is None else time_limit
        if rules is not None and rule not in default_rules():
            _check_agreement(home, rules, agrees)
        if session.record() is not None:
            raise InputError(
                "the session", "is stopped, and its record is made", "debrief record stop sends it."
            ).known_as("session-stopped")
        with scratch_of(worktree) as scratch:
            base = base_of(worktree, started.base_ref, started.reflog_size).commit
            state, blobs = keep_state(scratch, base, started.ignore)
        program = shutil.which(command[0])
        if program is None:
            move = "Install it, or mend PATH."
            error = ConfigurationError(command[0], "is not installed", move)
            raise error.known_as("program-missing")
        starting = CommandStart(
            cmd=command[0],
            args=tuple(command[1:]),
            cwd=cwd,
            started_at=utc_now(),
            time_limit=time_limit,
            state=state,
        )
        number = session.add_command(starting, blobs)
        try:
            with session.output_of(number) as store:
                end = execute(
                    [str(Path(program).absolute()), *command[1:]],
                    folder,
                    time_limit=time_limit,
                    store=store,
                    keep=OUTPUT_KEPT,
                    show=show,
                    grace=_GRACE,
                )
        except NotStartedError:
            session.remove_command(number)
            raise
        session.end_command(number, end)
    return end


def _check_agreement(
    home: RecorderHome, rules: CommandRules, agrees: Callable[[CommandRules], bool]
) -> None:
    """Refuse a command of rules that nobody agreed to: the repository may be anybody's."""
    if home.has_agreed(rules.digest):
        return
    if not agrees(rules):
        move = "See them, and agree with: debrief record commands --yes"
        error = InputError(RULES_FILE, "has commands that nobody here agreed to", move)
        raise error.known_as("rules-not-agreed", digest=rules.digest)
    home.agree(rules)


def discard(home: RecorderHome, folder: Path) -> None:
    """End the worktree's session and forget it; the worktree stays as it is.

    Raises:
        InputError: there is no session, or a command of it is running.
    """
    with opened(home, folder) as session:
        home.remove(session)


@contextmanager
def opened(home: RecorderHome, folder: Path) -> Iterator[LocalSession]:
    """Lock the session of the worktree that ``folder`` lies in.

    Raises:
        InputError: there is none, or another process has it locked.
    """
    worktree = worktree_of(folder)
    with home.lock_worktree(worktree):
        yield _session_of(home, worktree)


def session_of(home: RecorderHome, folder: Path) -> LocalSession:
    """Return the session of the worktree that ``folder`` lies in, only to read it.

    Raises:
        InputError: there is none.
    """
    return _session_of(home, worktree_of(folder))


def _session_of(home: RecorderHome, worktree: Path) -> LocalSession:
    if session := home.session(worktree):
        return session
    raise _missing(home, worktree)


def check_text(name: str, text: str) -> None:
    """Refuse a text that no record can hold.

    Raises:
        InputError: says what is wrong with it.
    """
    if not text.strip():
        raise InputError(name, "is empty", "Say in words what is to be done.")
    if "\0" in text or not text.encode("utf-8", "replace").decode() == text:
        raise InputError(name, "holds characters that no text file has")
    if len(text) > MAX_STRING:
        raise InputError(name, f"is longer than {MAX_STRING:,} characters")


def _check(new: NewSession) -> None:
    try:
        TypeAdapter(TaskId).validate_python(new.task_id)
    except ValidationError as error:
        raise InputError(
            repr(new.task_id),
            "is no task's id",
            "Lower-case letters, digits and hyphens, at most 64: rsc-convert.",
        ) from error
    check_text("the prompt", new.prompt)
    if new.system is not None:
        check_text("the system prompt", new.system)
    IgnoreRules(new.ignore)


def _missing(home: RecorderHome, worktree: Path) -> InputError:
    begin = "debrief record start --task TASK"
    if any(session.worktree == worktree for session in home.waiting()):
        return InputError(
            str(worktree),
            "has no session under way; the record of an earlier one is made and waits",
            f"Send it: debrief record upload. Or start another session: {begin}",
        ).known_as("no-session")
    others = ". Those of other folders: debrief record status --all" if home.opened() else ""
    error = InputError(str(worktree), "has no session", f"Start one: {begin}{others}")
    return error.known_as("no-session")
