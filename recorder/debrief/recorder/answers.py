"""What ``debrief record … --json`` answers: the recorder as an editor sees it.

An editor shows these answers and decides nothing itself: what may be run, whether a session
can start, and what a record lacks are the recorder's own answers. ``docs/recorder.md`` says what
each name in them means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from debrief.errors import DebriefError, InputError
from debrief.recorder.checks import ReadyRule
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
from debrief.recorder.encoding import decode_record
from debrief.recorder.local_session import RanCommand, SentRecord, rules_of, shown_output
from debrief.recorder.repository import baseline_of, worktree_of
from debrief.recorder.session import utc_now
from debrief.recorder.state import LocalSession, RecorderHome
from debrief.recorder.status import status_of

if TYPE_CHECKING:
    from debrief.recorder.client import RecorderClient

Answer = dict[str, Any]
"""A JSON object, with its names in camel case."""
_MOST_OUTPUT = 4_000
"""Characters of a command's output that a status has, from its end."""
_OF_THE_START = (
    *("id", "task_id", "system", "prompt", "contents", "worktree", "repo_name", "branch"),
    *("base_ref", "started_at"),
)


def error_answer(error: DebriefError) -> Answer:
    """Return an error as JSON has it."""
    return {
        "code": error.code,
        "culprit": error.culprit,
        "reason": error.reason,
        "nextMove": error.next_move,
        "message": str(error),
        "facts": dict(error.facts),
    }


def status_answer(
    home: RecorderHome, folder: Path, rule: ReadyRule, ignore: Sequence[str]
) -> Answer:
    """Describe the worktree that ``folder`` lies in, and its session.

    Raises:
        InputError: it is no worktree, or its session cannot be read.
    """
    baseline = baseline_of(folder)
    session, not_clean = None, []
    if found := home.session(baseline.worktree):
        session = session_answer(found, rule)
    else:
        not_clean = uncommitted_paths(folder, ignore)
    return {
        "worktree": str(baseline.worktree),
        "repoName": baseline.repo_name,
        "repoRemote": baseline.repo_remote,
        "branch": baseline.branch,
        "head": baseline.base_ref,
        "session": session,
        "notClean": not_clean,
        "waiting": len(home.unsent()),
    }


def session_answer(session: LocalSession, rule: ReadyRule) -> Answer:
    """Describe a session as it is now; errors as for ``status_of``."""
    started, now = session.started, utc_now()
    is_stopped = session.record() is not None
    is_busy = not is_stopped and session.home.is_busy(session.worktree)
    rules = rules_of(started)
    commands = [
        command_answer(command, rules, is_running=is_busy) for command in session.commands()
    ]
    is_running = bool(commands) and commands[-1]["state"] == "running"
    status = None if is_stopped else status_of(session, rule)
    return {
        **{to_camel(name): getattr(started, name) for name in _OF_THE_START},
        "elapsedSeconds": (now - started.started_at).total_seconds(),
        "state": "stopped" if is_stopped else "running" if is_running else "recording",
        "commands": commands,
        "changes": [plain(change) for change in status.changes] if status else [],
        "skipped": [plain(skipped) for skipped in status.skipped] if status else [],
        "warnings": status.warnings if status else [],
        "notReady": status.not_ready if status else [],
    }


def command_answer(
    command: RanCommand, rules: CommandRules | None, *, is_running: bool = False
) -> Answer:
    """Describe a command; ``is_running``: one that has not ended is running."""
    unended = "running" if is_running else "interrupted"
    return {
        "cmd": command.cmd,
        "args": command.args,
        "cwd": command.cwd,
        "state": "ended" if command.is_over else unended,
        "exitCode": command.exit_code,
        "ending": "" if is_running and not command.is_over else command.ending.strip("()"),
        "durationMs": command.duration_ms,
        "isCheck": is_validation(command.cmd, command.args, rules),
        "output": shown_output(command)[-_MOST_OUTPUT:],
    }


def rules_here(home: RecorderHome, folder: Path) -> CommandRules | None:
    """Return the repository's own rules: those of the session under way, else of its file.

    Raises:
        InputError: ``folder`` lies in no worktree, or the rules are wrong.
    """
    worktree = worktree_of(folder)
    session = home.session(worktree)
    return rules_of(session.started) if session else read_rules(worktree)


def commands_answer(
    home: RecorderHome,
    folder: Path,
    asked: Sequence[str] = (),
    values: Mapping[str, Sequence[str]] | None = None,
) -> Answer:
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
    return {
        "source": RULES_FILE if rules else None,
        "digest": rules.digest if rules else None,
        "agreed": rules is None or home.has_agreed(rules.digest),
        "kinds": table().words,
        "commands": [
            {
                "program": rule.program,
                "arguments": rule.arguments,
                "isCheck": rule.check,
                "timeLimit": rule.time_limit,
                "own": number >= len(default_rules()),
                "filled": _filled(rule, cwd, rules, values or {}),
            }
            for number, rule in enumerate((*default_rules(), *own))
        ],
        "asked": _asked(asked, cwd, rules) if asked else None,
    }


def _filled(
    rule: CommandRule, cwd: str, rules: CommandRules | None, values: Mapping[str, Sequence[str]]
) -> Answer | None:
    """Return the command that a rule is with some values; None where one is missing."""
    command = [rule.program]
    for word in rule.arguments:
        kind = re.fullmatch(r"<(.+)>\+?", word)
        given = values.get(kind[1], ()) if kind else [word]
        if not given:
            return None
        command += given
    return _asked(command, cwd, rules)


def _asked(command: Sequence[str], cwd: str, rules: CommandRules | None) -> Answer:
    """Return what the validator says of a command."""
    is_check, refusal = False, None
    try:
        is_check = check_command(command[0], command[1:], cwd, rules).check
    except InputError as error:
        refusal = error
    return {
        "command": command,
        "accepted": refusal is None,
        "reason": refusal.reason if refusal else "",
        "nextMove": refusal.next_move if refusal else "",
        "isCheck": is_check,
    }


def history_answer(home: RecorderHome, server: RecorderClient | None, most: int) -> Answer:
    """Return what waits and what was sent, with the statuses that the server has by now.

    Args:
        home: the recorder's folders.
        server: is asked for the status of what it took; None: nobody is asked.
        most: entries at most, of those that were sent.

    Raises:
        InputError: a file of them cannot be read.
    """
    entries: list[Answer] = []
    for session in home.unsent():
        if data := session.record():
            waiting = SentRecord.of(decode_record(data).meta, len(data))
            entries.append(_in_history(waiting, "waiting"))
    problem: Answer | None = None
    for sent in home.sent(most):
        if server is not None and problem is None and server.url == sent.server:
            try:
                receipt = server.status_of(sent.session_id)
                sent = structs.replace(sent, status=receipt.status, not_ready=receipt.not_ready)
            except DebriefError as error:
                if error.code != "not-found":
                    problem = error_answer(error)
        entries.append(_in_history(sent, "sent"))
    entries.sort(key=lambda entry: entry["stoppedAt"], reverse=True)
    return {"sessions": entries, "error": problem}


def _in_history(record: SentRecord, state: str) -> Answer:
    facts = {to_camel(name): value for name, value in structs.asdict(record).items()}
    return {**facts, "state": state}


def plain(model: BaseModel) -> Any:
    """Return a model of the contract as JSON has it."""
    return model.model_dump(mode="json", by_alias=True)
