"""How a session stands: its worktree compared with its baseline, and no record made of it.

An editor asks for it after each save. What only the making of a record shows is not in it: secrets,
the steps between commands, and whether the patches rebuild the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from debrief.git import scratch_of
from debrief.git.scratch import Scratch, entry_of
from debrief.recorder.changes import EXACT, hunks_in, left_out_of, warnings_of
from debrief.recorder.checks import RanCheck, ReadyFacts, ReadyRule, missing_for
from debrief.recorder.commands import is_validation
from debrief.recorder.comparison import ChangedFile, IgnoreRules, change_of, compare
from debrief.recorder.contracts import CommandRules, FileChange, Skipped
from debrief.recorder.local_session import KeptFile, RanCommand, rules_of
from debrief.recorder.repository import base_of, warning_of
from debrief.recorder.state import LocalSession

_PATHS_A_CALL = 1_000


class SessionStatus(Struct, frozen=True, kw_only=True):
    """What a session changed so far."""

    changes: tuple[FileChange, ...]
    """By path; secrets that are the only change of a file are not looked for."""
    skipped: tuple[Skipped, ...]
    """By path: changes that no record would hold."""
    warnings: tuple[str, ...]
    not_ready: tuple[str, ...]
    """What a record would lack before it may train a model, as far as that is known by now."""


def status_of(session: LocalSession, rule: ReadyRule) -> SessionStatus:
    """Compare a session's worktree with its baseline; nothing is stored.

    Raises:
        InputError: the commit that it began at is gone, or git cannot read the working tree.
    """
    started = session.started
    base = base_of(session.worktree, started.base_ref, started.reflog_size)
    with scratch_of(session.worktree) as scratch:
        scratch.add_all()
        comparison = compare(scratch, base.commit, IgnoreRules(started.ignore))
        lines = _changed_lines(scratch, base.commit, comparison.files)
    changes = [change_of(file, *lines.get(_blobs(file), (0, 0))) for file in comparison.files]
    skipped = [Skipped(path=path, reason=reason) for path, reason in left_out_of(comparison)]
    others = [warning_of(base.commit, base.others)] if base.others else []
    rules = rules_of(started)
    facts = ReadyFacts(
        contents=started.contents,
        changes=len(changes),
        mixed=base.others.mixed if base.others else "",
        skipped=sum(not item.is_ignored for item in skipped),
        prompt=started.prompt,
        checks=tuple(_checks(session.commands(), rules, comparison.files)),
        rules=rules,
    )
    return SessionStatus(
        changes=tuple(changes),
        skipped=tuple(skipped),
        warnings=(*others, *warnings_of(comparison.files, len(skipped))),
        not_ready=tuple(missing_for(facts, rule)),
    )


def _checks(
    commands: Sequence[RanCommand], rules: CommandRules | None, files: Sequence[ChangedFile]
) -> Iterator[RanCheck]:
    """Yield the checks that were run, the last first."""
    now = [KeptFile(file.path, entry_of(file.before), entry_of(file.after)) for file in files]
    is_as_now = True
    for command in reversed(commands):
        is_as_now = is_as_now and command.state is not None and list(command.state.files) == now
        if is_validation(command.cmd, command.args, rules):
            yield RanCheck(is_as_now, command.exit_code)


def _blobs(file: ChangedFile) -> tuple[str, ...]:
    return tuple(side.id for side in (file.before, file.after) if side)


def _changed_lines(
    scratch: Scratch, base: str, files: Sequence[ChangedFile]
) -> dict[tuple[str, ...], tuple[int, int]]:
    """Return how many lines were added and removed, by the ids of the blobs before and after."""
    paths = [f":(top,literal){file.path}" for file in files if file.is_update]
    counts = {}
    for start in range(0, len(paths), _PATHS_A_CALL):
        some = paths[start : start + _PATHS_A_CALL]
        patch = scratch.git("diff-index", "--cached", *EXACT, "-U0", base, "--", *some)
        for ids, hunks in hunks_in(patch):
            counts[ids] = (hunks.count("\n+"), hunks.count("\n-"))
    return counts
