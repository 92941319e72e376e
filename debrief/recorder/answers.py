"""What ``debrief record … --json`` answers: the recorder as an editor sees it.

An editor shows these answers and decides nothing itself: what may be run, whether a session
can start, and what a record lacks are the recorder's own answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, structs
from pydantic import BaseModel

from debrief.errors import DebriefError, InputError
from debrief.recorder.assembly import shown_output
from debrief.recorder.checks import ReadyRule, readiness
from debrief.recorder.client import RecorderClient
from debrief.recorder.commands import (
    RULES_FILE,
    check_command,
    default_rules,
    is_validation,
    read_rules,
    table,
)
from debrief.recorder.comparison import uncommitted_paths
from debrief.recorder.contracts import CommandRule, CommandRules
from debrief.recorder.repository import baseline_of, worktree_of
from debrief.recorder.session import OpenSession, utc_now
from debrief.recorder.session_facts import RanCommand, rules_of
from debrief.recorder.state import RecorderHome, SessionFolder
from debrief.recorder.stopping import record_so_far
from debrief.redaction import Redactor


class _Answer(Struct, frozen=True, kw_only=True, rename="camel"):
    """What all answers share: the names of JSON are in camel case."""


class ErrorAnswer(_Answer, frozen=True, kw_only=True):
    """An error, for programs."""

    code: str
    culprit: str
    reason: str
    next_move: str
    message: str
    """All three in one line."""
    facts: dict[str, Any]


class CommandAnswer(_Answer, frozen=True, kw_only=True):
    """A command of the session under way."""

    cmd: str
    args: tuple[str, ...]
    cwd: str
    state: str
    """``running``, ``ended``, or ``interrupted``: nobody saw its end."""
    exit_code: int | None
    ending: str
    """How it ended where there is no exit code."""
    duration_ms: int
    is_check: bool
    output: str
    """Its end, at most 4,000 characters."""


class SessionAnswer(_Answer, frozen=True, kw_only=True):
    """The session under way."""

    id: str
    task_id: str
    system: str | None
    prompt: str
    contents: str
    worktree: str
    repo_name: str
    branch: str | None
    base_ref: str
    started_at: datetime
    elapsed_seconds: float
    state: str
    """``recording``, ``running`` a command, or ``stopped``: its record is made, and not sent."""
    commands: list[CommandAnswer]
    changes: list[Any]
    skipped: list[Any]
    warnings: list[str]
    redactions: int
    not_ready: list[str]
    """Why it would be a draft if it were stopped now."""


class StatusAnswer(_Answer, frozen=True, kw_only=True):
    """A worktree, and its session if there is one."""

    worktree: str
    repo_name: str
    repo_remote: str | None
    branch: str | None
    head: str
    session: SessionAnswer | None
    not_clean: list[str]
    """What keeps a session from being started; empty while there is one."""
    waiting: int
    """Records of this machine that wait to be sent."""


class AskedAnswer(_Answer, frozen=True, kw_only=True):
    """What the validator says of one command."""

    command: list[str]
    accepted: bool
    reason: str = ""
    next_move: str = ""
    is_check: bool = False


class RuleAnswer(_Answer, frozen=True, kw_only=True):
    """A command that may be run."""

    program: str
    arguments: list[str]
    """Words; ``<kind>`` stands for one argument of that kind, ``<kind>+`` for one or more."""
    is_check: bool
    time_limit: float
    own: bool
    """It is one of the repository's own rules."""
    filled: AskedAnswer | None
    """The command that it is with the values that were given; None where one is missing."""


class CommandsAnswer(_Answer, frozen=True, kw_only=True):
    """Which commands may be run here."""

    source: str | None
    """The file of the repository's own rules; None without one."""
    digest: str | None
    """Of the repository's own rules."""
    agreed: bool
    """Its owner agreed to the repository's own rules; true where there are none."""
    kinds: dict[str, str]
    """A regular expression for each ``<kind>``; it matches the whole argument."""
    commands: list[RuleAnswer]
    asked: AskedAnswer | None = None


class StoppedAnswer(_Answer, frozen=True, kw_only=True):
    """A session that is over."""

    session_id: str
    sent: bool
    file: str | None
    status: str
    not_ready: list[str]
    size: int
    meta: Any
    """The record's own ``meta``."""


class HistoryEntry(_Answer, frozen=True, kw_only=True):
    """A record of this machine."""

    session_id: str
    task_id: str
    repo_name: str
    stopped_at: datetime
    state: str
    """``waiting`` to be sent, or ``sent``."""
    status: str = ""
    """``draft`` or ``ready``; empty while it waits."""
    not_ready: list[str] = []
    size: int
    server: str = ""


class HistoryAnswer(_Answer, frozen=True, kw_only=True):
    """The records of this machine, the latest first."""

    sessions: list[HistoryEntry]
    error: ErrorAnswer | None
    """Why the statuses are those of when the records were sent; None when the server was asked."""


_MOST_OUTPUT = 4_000
"""Characters of a command's output that a status has, from its end."""


def error_answer(error: DebriefError) -> ErrorAnswer:
    """Return an error as JSON has it."""
    return ErrorAnswer(
        code=error.code,
        culprit=error.culprit,
        reason=error.reason,
        next_move=error.next_move,
        message=str(error),
        facts=dict(error.facts),
    )


def status_answer(
    home: RecorderHome, folder: Path, redactor: Redactor, rule: ReadyRule, ignore: Sequence[str]
) -> StatusAnswer:
    """Describe the worktree that ``folder`` lies in, and its session.

    Raises:
        InputError: it is no worktree, or its session cannot be read.
    """
    baseline = baseline_of(folder)
    session = home.session(baseline.worktree)
    opened = OpenSession(baseline.worktree, session) if session.exists else None
    return StatusAnswer(
        worktree=str(baseline.worktree),
        repo_name=baseline.repo_name,
        repo_remote=baseline.repo_remote,
        branch=baseline.branch,
        head=baseline.base_ref,
        session=session_answer(home, opened, redactor, rule) if opened else None,
        not_clean=[]
        if opened
        else uncommitted_paths(folder, ignore, home.scratch(baseline.worktree)),
        waiting=len(home.unsent()),
    )


def session_answer(
    home: RecorderHome, opened: OpenSession, redactor: Redactor, rule: ReadyRule
) -> SessionAnswer:
    """Describe a session as it is now; errors as for ``record_so_far``."""
    started, now = opened.folder.started(), utc_now()
    is_stopped = opened.folder.record() is not None
    is_busy = not is_stopped and home.is_busy(opened.worktree)
    commands = opened.folder.commands()
    rules = rules_of(started)
    answers = [command_answer(each, rules, is_running=is_busy) for each in commands]
    record = None if is_stopped else record_so_far(opened, redactor, now)
    is_running = bool(answers) and answers[-1].state == "running"
    facts = structs.asdict(started)
    shared = SessionAnswer.__struct_fields__
    return SessionAnswer(
        **{name: value for name, value in facts.items() if name in shared},
        elapsed_seconds=(now - started.started_at).total_seconds(),
        state="stopped" if is_stopped else "running" if is_running else "recording",
        commands=answers,
        changes=[plain(each) for each in record.meta.changes] if record else [],
        skipped=[plain(each) for each in record.meta.skipped] if record else [],
        warnings=record.meta.warnings if record else [],
        redactions=record.meta.redactions.count if record else 0,
        not_ready=readiness(record, rule) if record else [],
    )


def command_answer(
    command: RanCommand, rules: CommandRules | None, *, is_running: bool = False
) -> CommandAnswer:
    """Describe a command; ``is_running``: one that has not ended is running."""
    unended = "running" if is_running else "interrupted"
    return CommandAnswer(
        cmd=command.cmd,
        args=command.args,
        cwd=command.cwd,
        state="ended" if command.is_over else unended,
        exit_code=command.exit_code,
        ending="" if is_running and not command.is_over else command.ending.strip("()"),
        duration_ms=command.duration_ms,
        is_check=is_validation(command.cmd, command.args, rules),
        output=shown_output(command)[0][-_MOST_OUTPUT:],
    )


def rules_here(home: RecorderHome, folder: Path) -> CommandRules | None:
    """Return the repository's own rules: those of the session under way, else of its file.

    Raises:
        InputError: ``folder`` lies in no worktree, or the rules are wrong.
    """
    worktree = worktree_of(folder)
    session = home.session(worktree)
    return rules_of(session.started()) if session.exists else read_rules(worktree)


def commands_answer(
    home: RecorderHome,
    folder: Path,
    asked: Sequence[str] = (),
    values: Mapping[str, Sequence[str]] | None = None,
) -> CommandsAnswer:
    """Describe what may be run, and what the validator says of ``asked``.

    Args:
        home: the recorder's folders.
        folder: where it would run.
        asked: a command.
        values: for each kind of argument, what the rules are filled with.

    Raises:
        InputError: the repository's rules are wrong.
    """
    rules, cwd = None, "."
    try:
        cwd = folder.resolve().relative_to(worktree_of(folder)).as_posix()
        rules = rules_here(home, folder)
    except InputError as error:
        if error.code != "not-a-repository":
            raise
    own = rules.commands if rules else []
    return CommandsAnswer(
        source=RULES_FILE if rules else None,
        digest=rules.digest if rules else None,
        agreed=rules is None or home.has_agreed(rules.digest),
        kinds=table().words,
        commands=[
            RuleAnswer(
                program=rule.program,
                arguments=rule.arguments,
                is_check=rule.check,
                time_limit=rule.time_limit,
                own=number >= len(default_rules()),
                filled=_filled(rule, cwd, rules, values or {}),
            )
            for number, rule in enumerate((*default_rules(), *own))
        ],
        asked=_asked(asked, cwd, rules) if asked else None,
    )


def _filled(
    rule: CommandRule, cwd: str, rules: CommandRules | None, values: Mapping[str, Sequence[str]]
) -> AskedAnswer | None:
    command = [rule.program]
    for word in rule.arguments:
        kind = re.fullmatch(r"<(.+)>\+?", word)
        given = values.get(kind[1], ()) if kind else [word]
        if not given:
            return None
        command += given
    return _asked(command, cwd, rules)


def _asked(command: Sequence[str], cwd: str, rules: CommandRules | None) -> AskedAnswer:
    try:
        rule = check_command(command[0], command[1:], cwd, rules)
    except InputError as error:
        return AskedAnswer(
            command=list(command), accepted=False, reason=error.reason, next_move=error.next_move
        )
    return AskedAnswer(command=list(command), accepted=True, is_check=rule.check)


def history_answer(home: RecorderHome, server: RecorderClient | None, most: int) -> HistoryAnswer:
    """Return what waits and what was sent, with the statuses that the server has by now.

    Args:
        home: the recorder's folders.
        server: is asked for the status of what it took; None: nobody is asked.
        most: entries at most, of those that were sent.

    Raises:
        InputError: a file of them cannot be read.
    """
    entries = [entry for session in home.unsent() if (entry := _waiting(session))]
    problem: ErrorAnswer | None = None
    for sent in home.sent(most):
        if server is not None and problem is None and server.url == sent.server:
            try:
                receipt = server.status_of(sent.session_id)
                sent = structs.replace(sent, status=receipt.status, not_ready=receipt.not_ready)
            except DebriefError as error:
                if error.code != "not-found":
                    problem = error_answer(error)
        entries.append(HistoryEntry(**structs.asdict(sent), state="sent"))
    entries.sort(key=lambda entry: entry.stopped_at, reverse=True)
    return HistoryAnswer(sessions=entries, error=problem)


def _waiting(session: SessionFolder) -> HistoryEntry | None:
    from debrief.sessions.readers.recorder.records import decode_meta

    data = session.record()
    if data is None:
        return None
    meta = decode_meta(data)
    return HistoryEntry(
        session_id=meta.session_id,
        task_id=meta.task_id,
        repo_name=meta.repo_name,
        stopped_at=meta.stopped_at,
        state="waiting",
        size=len(data),
    )


def plain(model: BaseModel) -> Any:
    """Return a model of the contract as JSON has it."""
    return model.model_dump(mode="json", by_alias=True)
