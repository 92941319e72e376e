"""Find the commit that a session's change began from, and say how it is known.

A record names it. A transcript may name the commit at its beginning; and what its own git commands
print shows where HEAD was before it changed a file. Else it is inferred: the last commit of the
branch before the session began, or one near it. Such a commit is a guess until the session's
edits and reads are seen to fit it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from msgspec import Struct

from debrief.errors import InputError
from debrief.execution.file_events import calls_in_order
from debrief.execution.model import BaseSource
from debrief.git import Scratch
from debrief.outcomes.history import COMMITTED
from debrief.sessions.model import Session, ToolCall
from debrief.signals.shell import simple_commands

_HASH = re.compile(r"(?:commit )?([0-9a-f]{7,40})\b")
_MOVES = re.compile(r"(?:checkout|switch|pull|merge|rebase|reset|cherry-pick|revert|am|clone)$")
_NARROWS = re.compile(
    r"--(?:all|branches|remotes|tags|author|grep|reverse|since|until|after|before|follow|merges"
    r"|format|pretty|graph|no-merges)|-[SGn]?$|-[SG].|--$"
)
_LISTED, _NEAR = 400, 24
"""Commits to the session's own files that are looked at, and those nearest to its beginning, which
are tried."""
WAIT = timedelta(days=7)
"""Time in which work is committed."""
WORK = ("--exclude=entire/*", "--branches", "--exclude=*/entire/*", "--remotes", "--tags")
"""Where work is kept: in stashes and in the checkpoints that a tool takes by itself it is not."""


class BaseCommit(Struct, frozen=True):
    """A commit that a session may have begun from."""

    commit: str
    source: BaseSource


def named_bases(session: Session) -> Iterator[BaseCommit]:
    """Yield what a record or the transcript itself says, the surest first.

    A commit has the name that it has there, mostly its first digits; ``X^`` is the one before X.
    """
    if session.recorded:
        yield BaseCommit(session.recorded.base_commit, "recorded")
        return
    if named := _head_at_first_edit([call for _, call in calls_in_order(session)]):
        yield BaseCommit(named, "transcript")
    if session.base_commit:
        yield BaseCommit(session.base_commit, "transcript")


def _head_at_first_edit(calls: Sequence[ToolCall]) -> str:
    """Return where HEAD was when the first file was changed, as git commands print it."""
    named, is_edited = "", False
    for call in calls:
        is_edited = is_edited or bool(call.path and call.status == "ok")
        commands = simple_commands(call.command) if call.action == "run" else ()
        for number, words in enumerate(commands):
            if words[:1] != ("git",) or len(words) < 2:
                continue
            result = call.result or ""
            if words[1] == "commit" and (found := COMMITTED.search(result)):
                return "" if "--amend" in words else f"{found[1]}^"
            if _moves_head(words) and is_edited:
                return named
            if _moves_head(words):
                named = ""
            elif not named and _is_first(commands, number) and _shows_head(words):
                head = _HASH.match(result.strip())
                named = head[1] if head else ""
        if named and is_edited:
            return named
    return ""


def _is_first(commands: Sequence[tuple[str, ...]], number: int) -> bool:
    """Return whether nothing before a command prints anything."""
    return all(words[:1] == ("cd",) for words in commands[:number])


def _moves_head(words: tuple[str, ...]) -> bool:
    plain = [word for word in words[2:] if not word.startswith("-")]
    if words[1] in ("checkout", "switch") and {"-b", "-c"} & set(words):
        return len(plain) > 1
    return bool(_MOVES.match(words[1])) and "--" not in words


def _shows_head(words: tuple[str, ...]) -> bool:
    rest = words[2:]
    plain = [word for word in rest if not word.startswith("-")]
    if words[1] == "rev-parse":
        return plain == ["HEAD"] and not any("abbrev-ref" in word for word in rest)
    if words[1] not in ("log", "show") or any(_NARROWS.match(word) for word in rest):
        return False
    return all(word == "HEAD" or word.endswith("..HEAD") or word.isdecimal() for word in plain)


def inferred_bases(
    session: Session, scratch: Scratch, files: Iterable[str], landed: str
) -> Iterator[BaseCommit]:
    """Yield commits that the session may have begun from, the likeliest first.

    Args:
        session: whose.
        scratch: over its repository, with the names of branches.
        files: below the repository's top, that the session read or changed.
        landed: the first commit that holds its work; empty for none.
    """
    seen = set[str]()
    for commit in _likely(session, scratch, sorted(files), landed):
        if commit and commit not in seen:
            seen.add(commit)
            yield BaseCommit(commit, "inferred")


def _likely(session: Session, scratch: Scratch, files: Sequence[str], landed: str) -> Iterator[str]:
    def listed(*arguments: str, paths: Sequence[str] = ()) -> list[list[str]]:
        try:
            lines = log_of(scratch, ("--format=%H %ct", *arguments), paths).splitlines()
        except InputError:
            return []  # an empty repository, or a branch that it does not have
        return [line.split() for line in lines]

    began = int(session.started.timestamp())
    for name in (session.branch, f"origin/{session.branch}", "HEAD"):
        if name and not name.startswith(("-", "origin/-")) and name != "origin/":
            yield from (commit for commit, _ in listed("-1", f"--before={began}", name))
    if landed:
        yield from (commit for commit, _ in listed("-1", f"{landed}^"))
    if files:
        until = f"--before={int((session.ended + WAIT).timestamp())}"
        near = listed(until, f"-{_LISTED}", *WORK, paths=files)
        near.sort(key=lambda each: abs(int(each[1]) - began))
        yield from (commit for commit, _ in near[:_NEAR])


def log_of(scratch: Scratch, arguments: Sequence[str], paths: Sequence[str] = ()) -> str:
    """Return what ``git log`` prints of the commits to some files; of all where none is named.

    Raises:
        InputError: a revision is not there.
    """
    given = "".join(f"{path}\n" for path in paths if "\n" not in path)
    asked = ("--literal-pathspecs", "log", *arguments, *(("--stdin",) if paths else ("--",)))
    shown = scratch.git(*asked, data=f"--\n{given}".encode("utf-8", "surrogateescape"))
    return shown.decode("utf-8", "surrogateescape")
