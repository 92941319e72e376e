"""What became of a session's work, as its own calls and its repository's history say."""

from __future__ import annotations

import re
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from msgspec import Struct

from debrief.errors import InputError
from debrief.git import Scratch, find_commit
from debrief.offline.shell import simple_commands
from debrief.outcomes.store import Label, Source, outcome
from debrief.sessions.model import Session, calls_of
from debrief.sessions.readers.patches import edits_of_call

_COMMITTED = re.compile(r"^\[[^\]\n]*?\b([0-9a-f]{7,40})\] ", re.MULTILINE)
_PULL = re.compile(r"https://\S+?/(?:pull|pulls|merge_requests)/(\d+)")
_STATE = re.compile(r'(?:^state:\s*|"state":\s*")(MERGED|CLOSED)', re.MULTILINE)
_FAILED = re.compile(
    r'\tfail\t|"(?:conclusion|bucket|state)":\s*"(?:failure|fail)"|^X |completed with \'failure\'',
    re.MULTILINE | re.IGNORECASE,
)
_WAITING = re.compile(r'\tpending\t|"(?:in_progress|queued|pending)"|^\* ', re.MULTILINE)
_PASSED = re.compile(
    r'\tpass\t|"(?:conclusion|bucket|state)":\s*"(?:success|pass)"|^✓ |completed with \'success\'',
    re.MULTILINE | re.IGNORECASE,
)
MOST_NAMED = 4
"""Commits that a label names."""
_SENT = (("git", "commit"), ("git", "push"))


class Shipped(Struct):
    """What a session committed and asked to have merged."""

    commits: list[str] = []
    """As the calls' results name them, mostly the first digits."""
    pulls: dict[str, str] = {}
    """The addresses of its pull requests by number."""
    pull_state: str = "open"
    """``yes``: merged; ``no``: closed."""
    ci: str = ""
    """``yes`` or ``no``: what CI said after the last commit or push; empty when nothing did."""

    def outcomes(self, session: Session) -> Iterator[Label]:
        """Yield what became of the work, as far as the session itself saw it."""
        pull, named = next(reversed(self.pulls.values()), ""), ", ".join(self.commits[-MOST_NAMED:])
        seen: tuple[tuple[Source, str, str], ...] = (
            ("pull-request", self.pull_state if pull else "", pull),
            ("commit", "made" if named else "", named),
            ("ci", self.ci, "what the session saw last"),
        )
        for source, value, detail in seen:
            if value:
                yield outcome(session.id, source, value, detail, "transcript", session.ended)


def shipped_in(session: Session) -> Shipped:
    """Return what a session's calls say that it committed, and what became of it."""
    found = Shipped()
    for call in calls_of(session):
        result = call.result or ""
        if call.name.endswith("create_pull_request"):
            found.pulls.update((number[1], number[0]) for number in _PULL.finditer(result))
        for words in simple_commands(call.command):
            if words[:2] in _SENT:
                found.ci = ""
                found.commits += _COMMITTED.findall(result) if words[1] == "commit" else []
            elif words[:2] == ("gh", "pr") and len(words) > 2:
                _see_pull(found, words, result, call.status == "ok")
            if words[:3] in (("gh", "pr", "checks"), ("gh", "run", "watch"), ("gh", "run", "view")):
                _see_ci(found, result)
    return found


def _see_pull(found: Shipped, words: tuple[str, ...], result: str, is_ok: bool) -> None:
    verb = words[2]
    if verb == "create":
        found.ci = ""
        found.pulls.update((number[1], number[0]) for number in _PULL.finditer(result))
        return
    of_another = words[3:4] and words[3].isdecimal() and words[3] not in found.pulls
    if not found.pulls or not is_ok or of_another:
        return
    if verb in ("merge", "close") and "--auto" not in words:
        found.pull_state = "yes" if verb == "merge" else "no"
    elif verb == "view" and (state := _STATE.search(result)):
        found.pull_state = "yes" if state[1] == "MERGED" else "no"


def _see_ci(found: Shipped, result: str) -> None:
    if found.commits or found.pulls:
        if _FAILED.search(result):
            found.ci = "no"
        elif _PASSED.search(result) and not _WAITING.search(result):
            found.ci = "yes"


HORIZONS = (7, 30)
"""Days after which is looked whether lines are still there."""
_WAIT = timedelta(days=HORIZONS[0])
"""Time in which work is committed or is not any more."""
_SHORTEST = 4
"""Characters of a line that tells whose it is."""
_SHARE = 0.5
_MARK = f"\x01{secrets.token_hex(16)} "
"""Begins an entry of a log; nobody who writes a commit can know it."""
_REVERTED = re.compile(r"This reverts commit ([0-9a-f]{7,40})")
_NOTED = re.compile(
    r"\b(?:ci|status|build|checks?)\b\W{1,3}(success|passed|failure|failed)\b", re.IGNORECASE
)
_BLAMED = re.compile(r"^([0-9a-f]{40}) \d+ \d+", re.MULTILINE)


_Outcome = Callable[[Source, bool, str, datetime], Label]


class Commit(Struct, frozen=True):
    """A commit, and the lines that it adds by file."""

    id: str
    at: datetime
    added: dict[str, list[str]]

    @property
    def lines(self) -> set[str]:
        """Return the lines that tell whose they are, without indentation."""
        return {line for lines in self.added.values() for line in _distinctive(lines)}


def _distinctive(lines: Iterable[str]) -> Iterator[str]:
    return (line.strip() for line in lines if len(line.strip()) >= _SHORTEST)


class History:
    """A repository's history, asked what became of sessions' work in it.

    Args:
        scratch: over the repository.
        root: the repository's top folder.
        now: no outcome is given before its time is up.
    """

    def __init__(self, scratch: Scratch, root: Path, now: datetime) -> None:
        self._scratch, self.root, self._now = scratch, root, now
        scratch.take_names()
        self._reverts: list[tuple[str, str]] = []
        """What a revert names the undone commit with, and its own id: those that stand."""
        form = ("--topo-order", "--grep=This reverts commit", f"--format={_MARK}%H%n%b")
        undone: set[str] = set()
        for entry in self._git("log", "--all", *form).split(_MARK)[1:]:
            if (id_ := entry[:40]) not in undone:
                named = _REVERTED.findall(entry)
                undone.update(named)
                self._reverts += ((old, id_) for old in named)

    def _git(self, *arguments: str) -> str:
        try:
            return self._scratch.git(*arguments).decode("utf-8", "replace")
        except InputError:
            return ""  # an empty repository, or a revision that it does not have

    def outcomes(self, session: Session, shipped: Shipped) -> Iterator[Label]:
        """Yield what became of a session's work."""
        commits = sorted(self._commits(session, shipped), key=lambda commit: commit.at)
        ids = [commit.id for commit in commits]

        def label(source: Source, value: bool, detail: str, at: datetime) -> Label:
            return outcome(session.id, source, value, detail, str(self.root), at)

        if not commits:
            lines, due = _lines_of(session), session.ended + _WAIT
            moved_on = self._git("rev-list", "-1", "--all", f"--since={_seconds(due)}")
            if lines and due < self._now and moved_on:
                yield label("commit", False, f"no commit in {_WAIT.days} days holds its lines", due)
        else:
            named = ", ".join(id_[:8] for id_ in ids[-MOST_NAMED:])
            yield label("commit", True, f"{len(ids)} commits: {named}", commits[-1].at)
            yield from self._reverted(label, session, ids)
            yield from self._noted(label, commits[-1])
            yield from self._surviving(label, commits)
        yield from self._merged(label, shipped)

    def _commits(self, session: Session, shipped: Shipped) -> Iterator[Commit]:
        """Yield the commits that the session made, and those that consist of its lines."""
        own = {id_ for name in shipped.commits if (id_ := find_commit(self.root, name))}
        if own:
            yield from self._read("--no-walk=unsorted", *sorted(own))
        files = _lines_of(session)
        names = sorted({PurePosixPath(path.replace("\\", "/")).name for path in files})
        lines = {line for added in files.values() for line in added}
        if not lines:
            return
        since = f"--since={_seconds(session.started)}"
        until = f"--until={_seconds(session.ended + _WAIT)}"
        paths = [":(glob)**/" + re.sub(r"([*?[])", r"[\1]", name) for name in names]
        for commit in self._read("--all", "--no-merges", since, until, "--", *paths):
            same = len(commit.lines & lines)
            if commit.id not in own and same and same >= _SHARE * len(commit.lines):
                yield commit

    def _read(self, *which: str) -> Iterator[Commit]:
        form = f"--format={_MARK}%H %ct"
        shape = ("-p", "-U0", "--no-renames", "--no-prefix")
        for entry in self._git("log", form, *shape, *which).split(_MARK)[1:]:
            head, _, patch = entry.partition("\n")
            id_, at = head.split()
            added: dict[str, list[str]] = defaultdict(list)
            path, is_head = "", True
            for line in patch.split("\n"):
                if is_head and line.startswith("+++ "):
                    path = line[4:].rstrip("\t")
                elif line.startswith(("diff --git ", "@@ ")):
                    is_head = line.startswith("diff")
                elif line.startswith("+") and path != "/dev/null":
                    added[path].append(line[1:])
            yield Commit(id_, datetime.fromtimestamp(int(at), UTC), dict(added))

    def _reverted(self, label: _Outcome, session: Session, ids: Iterable[str]) -> Iterator[Label]:
        by = [(id_, new) for old, new in self._reverts for id_ in ids if id_.startswith(old)]
        for id_, revert in by:
            for commit in self._read("--no-walk", revert):
                if commit.at > session.ended:
                    yield label("revert", False, f"{revert[:8]} reverts {id_[:8]}", commit.at)
                    return

    def _noted(self, label: _Outcome, last: Commit) -> Iterator[Label]:
        notes = self._git("log", "--no-walk", "--notes=*", "--format=%N", last.id)
        if said := _NOTED.findall(notes):
            passed = all(word.lower() in ("success", "passed") for word in said)
            yield label("ci", passed, f"a note on {last.id[:8]}", last.at)

    def _surviving(self, label: _Outcome, commits: list[Commit]) -> Iterator[Label]:
        """Yield what share of the lines is still there after the longest time that has passed."""
        began, ended = commits[0].at, commits[-1].at
        for days in sorted(HORIZONS, reverse=True):
            due = ended + timedelta(days=days)
            revision = self._git("rev-list", "-1", f"--before={_seconds(due)}", "HEAD").strip()
            if due > self._now or not revision:
                continue
            since = f"--since={_seconds(began)}"
            later = set(self._git("rev-list", since, revision).split())
            merged = [commit for commit in commits if commit.id in later]
            if not merged and not later:
                continue  # nothing has happened there since: this copy may be an old one
            total = sum(len(lines) for commit in merged for lines in commit.added.values())
            there = self._there(revision, merged)
            if merged and not total:
                return  # they only remove lines
            share = there / total if total else 0.0
            said = f"{there} of {total} lines are still there after {days} days"
            said = said if merged else f"not on the branch after {days} days"
            yield label("survival", share >= _SHARE, said, due)
            return

    def _there(self, revision: str, merged: list[Commit]) -> int:
        """Return how many lines of a revision are by some commits, in renamed files too."""
        if not merged:
            return 0
        ids, paths = {commit.id for commit in merged}, {p for c in merged for p in c.added}
        shape = ("--name-status", "--diff-filter=R", "-M", "-z")
        moves = self._git("diff", *shape, merged[-1].id, revision).split("\0")
        renamed = dict(zip(moves[1::3], moves[2::3], strict=False))
        form = ("--porcelain", "-w", revision, "--")
        blames = (self._git("blame", *form, renamed.get(path, path)) for path in sorted(paths))
        return sum(id_ in ids for blame in blames for id_ in _BLAMED.findall(blame))

    def _merged(self, label: _Outcome, shipped: Shipped) -> Iterator[Label]:
        for number, address in shipped.pulls.items():
            words = rf"^Merge pull request #{number} |\(#{number}\)$"
            form = ("-1", "--format=%H %ct", "-E", f"--grep={words}", "HEAD")
            if entry := self._git("log", *form).split():
                at = datetime.fromtimestamp(int(entry[1]), UTC)
                yield label("pull-request", True, f"{address} merged by {entry[0][:8]}", at)


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _lines_of(session: Session) -> dict[str, set[str]]:
    """Return the lines that a session's edits add, by file, as far as they tell whose they are."""
    lines: dict[str, set[str]] = defaultdict(set)
    for call in calls_of(session):
        for edit in edits_of_call(call):
            added = (line[1:] for line in edit.patch.split("\n") if line.startswith("+"))
            lines[edit.path] |= set(_distinctive(added))
    return {path: found for path, found in lines.items() if found}
