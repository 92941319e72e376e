"""Whether a session's work was merged or reverted or still stands, by the repository's history."""

from __future__ import annotations

import re
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path, PurePosixPath

from msgspec import Struct

from debrief.errors import InputError
from debrief.git import Scratch, find_commit
from debrief.outcomes.store import Label, Source, outcome
from debrief.sessions.model import Session, calls_of
from debrief.sessions.readers.patches import edits_of_call
from debrief.signals.shell import simple_commands
from debrief.signals.termination import PUBLISHES

COMMITTED = re.compile(r"^\[[^\]\n]*?\b([0-9a-f]{7,40})\] ", re.MULTILINE)
"""What git prints of a commit that it made."""
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
            if words[:2] in PUBLISHES:
                found.ci = ""
                found.commits += COMMITTED.findall(result) if words[1] == "commit" else []
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
"""Time in which work is committed."""
_SHORTEST = 4
"""Characters of a line that tells whose it is."""
_FEWEST = 3
"""Lines of a session's own of which a share says something."""
_KEPT = 0.8
"""Share of a session's own lines that shows it kept."""
_SURVIVES = 0.5
_ITS_OWN = 0.5
"""Share of what a commit adds to one file that makes the session the one who wrote it there."""
_TREES = 4
"""Revisions whose lists of files are kept."""
_MARK = f"\x01{secrets.token_hex(16)} "
"""Begins an entry of a log; nobody who writes a commit can know it."""
_REVERTED = re.compile(r"This reverts commit ([0-9a-f]{7,40})")
_NOTED = re.compile(
    r"\b(?:ci|status|build|checks?)\b\W{1,3}(success|passed|failure|failed)\b", re.IGNORECASE
)
_BLAMED = re.compile(r"([0-9a-f]{40}) \d+ \d+")


_PLACES = (
    *("--exclude=entire/*", "--branches", "--exclude=*/entire/*", "--remotes", "--tags"),
    "--glob=refs/checked-out/*",
)
"""Where work is kept: in stashes and in the checkpoints that a tool takes by itself it is not."""


_Outcome = Callable[[Source, bool | str, str, datetime], Label]
Lines = dict[str, set[str]]
"""Lines that tell whose they are, without indentation, by file."""


class Commit(Struct, frozen=True):
    """A commit, and the lines that it adds by file."""

    id: str
    at: datetime
    added: dict[str, list[str]]


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
        self._paths_at = lru_cache(_TREES)(self._list)
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
        """Yield what became of a session's work.

        Only its own lines count: what else is in the same commits changes nothing.
        """
        written = own_lines(session)
        near = self._near(session, written)
        commits = self._own_of(shipped, near, written)
        ids = [commit.id for commit in commits]

        def label(source: Source, value: bool | str, detail: str, at: datetime) -> Label:
            return outcome(session.id, source, value, detail, str(self.root), at)

        own = self._new(session, written, commits)
        yield from self._kept(label, session, own, near)
        if commits:
            yield from self._reverted(label, session, ids)
            yield from self._noted(label, commits[-1])
            yield from self._surviving(label, commits, own)
        yield from self._merged(label, shipped)

    def commits_of(self, session: Session) -> list[Commit]:
        """Return the commits that hold a session's work, by time; see ``Commit``."""
        written = own_lines(session)
        return self._own_of(shipped_in(session), self._near(session, written), written)

    def _own_of(self, shipped: Shipped, near: Sequence[Commit], written: Lines) -> list[Commit]:
        return sorted(self._own(shipped, near, written), key=lambda commit: commit.at)

    def _near(self, session: Session, written: Lines) -> list[Commit]:
        """Return the commits of a session's time, and a week after, to files of its files' names.

        Other files of these commits are left out.
        """
        names = sorted({_name(path) for path in written})
        if not names:
            return []
        since = f"--since={_seconds(session.started)}"
        until = f"--until={_seconds(session.ended + _WAIT)}"
        paths = [":(glob)**/" + re.sub(r"([*?[])", r"[\1]", name) for name in names]
        return list(self._read(*_PLACES, "--no-merges", since, until, "--", *paths))

    def _own(self, shipped: Shipped, near: Sequence[Commit], written: Lines) -> Iterator[Commit]:
        """Yield the commits that the session made, and those that hold its work in some file."""
        own = {id_ for name in shipped.commits if (id_ := find_commit(self.root, name))}
        if own:
            yield from self._read("--no-walk=unsorted", *sorted(own))
        lines = _by_name(written)
        for commit in near:
            added = (
                (lines[_name(path)], set(_distinctive(new))) for path, new in commit.added.items()
            )
            if commit.id not in own and any(_wrote(*each) for each in added):
                yield commit

    def _new(self, session: Session, written: Lines, commits: Sequence[Commit]) -> Lines:
        """Return a session's own lines without those that its files held before it."""
        before = f"--before={_seconds(session.started)}"
        bases = [self._git("rev-list", "-1", before, "HEAD").strip()]
        bases += [f"{commit.id}^" for commit in commits[:1]]
        found = {
            path: lines.difference(*(self._lines_at(base, path) for base in bases if base))
            for path, lines in written.items()
        }
        return {path: lines for path, lines in found.items() if lines}

    def _lines_at(self, revision: str, written: str) -> set[str]:
        """Return the lines that a revision has in the file that a session calls ``written``."""
        path = written.replace("\\", "/").removeprefix("./")
        inside = path.removeprefix(f"{self.root.as_posix()}/")
        paths = [inside]
        if inside == path:  # another machine's, or in another working tree
            known = self._paths_at(revision)
            ends = [each for each in known if f"/{path}".endswith(f"/{each}")]
            begins = [each for each in known if f"/{each}".endswith(f"/{path}")]
            paths = [max(ends, key=len)] if ends else begins
        texts = (self._git("cat-file", "blob", f"{revision}:{path}") for path in paths)
        return {line for text in texts for line in _distinctive(text.split("\n"))}

    def _list(self, revision: str) -> list[str]:
        listed = self._git("ls-tree", "-r", "-z", "--name-only", "--full-tree", revision)
        return listed.split("\0")[:-1]

    def _kept(
        self, label: _Outcome, session: Session, own: Lines, near: Sequence[Commit]
    ) -> Iterator[Label]:
        """Yield what share of a session's own lines was committed, or is in the tree of today.

        A high share shows that the work was kept; a low one shows nothing.
        """
        total = sum(map(len, own.values()))
        if not total:
            return
        committed: Lines = defaultdict(set)
        holding: Counter[str] = Counter()
        lines = _by_name(own)
        for commit in near:
            for path, added in commit.added.items():
                if found := lines[_name(path)].intersection(_distinctive(added)):
                    committed[_name(path)] |= found
                    holding[commit.id] += len(found)
        head = self._git("log", "-1", "--format=%ct", f"--since={_seconds(session.ended)}", "HEAD")
        kept = 0
        for path, new in own.items():
            there = new & committed[_name(path)]
            if head and len(there) < len(new):
                there |= new & self._lines_at("HEAD", path)
            kept += len(there)
        most = [id_ for id_, _ in holding.most_common(MOST_NAMED)]
        at = max((commit.at for commit in near if commit.id in most), default=session.ended)
        named = f" in {', '.join(id_[:8] for id_ in most)}" if most else ""
        is_kept = total >= _FEWEST and kept >= _KEPT * total
        said = f"{kept} of {total} own lines were kept{named}"
        yield label("kept", is_kept or "open", said, at)

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

    def _surviving(self, label: _Outcome, commits: Sequence[Commit], own: Lines) -> Iterator[Label]:
        """Yield what share of its own lines is still there after the longest time that passed."""
        began, ended, lines = commits[0].at, commits[-1].at, _by_name(own)
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
            total = sum(len(new) for c in merged or commits for _, new in _of(c, lines))
            if total < _FEWEST:
                return  # hardly anything of what the session wrote itself is in them
            there = self._there(revision, merged, lines)
            said = f"{there} of {total} own lines are still there after {days} days"
            said = said if merged else f"not on the branch after {days} days"
            yield label("survival", there / total >= _SURVIVES, said, due)
            return

    def _there(self, revision: str, merged: Sequence[Commit], lines: Lines) -> int:
        """Return how many own lines of a revision are by some commits, in renamed files too."""
        if not merged:
            return 0
        ids = {commit.id for commit in merged}
        shape = ("--name-status", "--diff-filter=R", "-M", "-z")
        moves = self._git("diff", *shape, merged[-1].id, revision).split("\0")
        renamed = dict(zip(moves[1::3], moves[2::3], strict=False))
        form = ("--porcelain", "-w", revision, "--")
        there = 0
        for path in sorted({path for commit in merged for path, _ in _of(commit, lines)}):
            by, here = "", lines[_name(path)]
            for line in self._git("blame", *form, renamed.get(path, path)).split("\n"):
                by = begun[1] if (begun := _BLAMED.match(line)) else by
                there += line.startswith("\t") and by in ids and line.strip() in here
        return there

    def _merged(self, label: _Outcome, shipped: Shipped) -> Iterator[Label]:
        for number, address in shipped.pulls.items():
            words = rf"^Merge pull request #{number} |\(#{number}\)$"
            form = ("-1", "--format=%H %ct", "-E", f"--grep={words}", "HEAD")
            if entry := self._git("log", *form).split():
                at = datetime.fromtimestamp(int(entry[1]), UTC)
                yield label("pull-request", True, f"{address} merged by {entry[0][:8]}", at)


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _name(path: str) -> str:
    """Return a file's name, whichever system its path is of."""
    return PurePosixPath(path.replace("\\", "/")).name


def _wrote(lines: set[str], added: set[str]) -> bool:
    """Return whether who wrote ``lines`` of a file wrote what a commit adds to it."""
    same = len(lines & added)
    return same >= max(1, min(_FEWEST, len(lines))) and same >= _ITS_OWN * len(added)


def _by_name(lines: Lines) -> Lines:
    found: Lines = defaultdict(set)
    for path, some in lines.items():
        found[_name(path)] |= some
    return found


def _of(commit: Commit, lines: Lines) -> Iterator[tuple[str, list[str]]]:
    """Yield the files of a commit with the added lines that are among ``lines`` by file name."""
    for path, added in commit.added.items():
        if found := [line for line in _distinctive(added) if line in lines[_name(path)]]:
            yield path, found


def own_lines(session: Session) -> Lines:
    """Return the lines that a session's edits leave in files, as far as they tell whose they are.

    What one edit adds and a later one takes away is not among them, nor what an edit only moves.
    """
    lines: Lines = defaultdict(set)
    for call in calls_of(session):
        for edit in edits_of_call(call):
            sides = {
                mark: set(
                    _distinctive(
                        line[1:] for line in edit.patch.split("\n") if line.startswith(mark)
                    )
                )
                for mark in "+-"
            }
            lines[edit.path] -= sides["-"]
            lines[edit.path] |= sides["+"] - sides["-"]
    return {path: found for path, found in lines.items() if found}
