"""Rebuild a session's change: the base commit's files, the session's edits applied, the result.

The base is seen to fit: what the session read of the files that it changed, and what it replaced
in them, must be there. A base that was only inferred and does not fit is none.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.execution.bases import WAIT, WORK, BaseCommit, inferred_bases, log_of, named_bases
from debrief.execution.file_events import (
    FileEvent,
    Moved,
    Removed,
    Saw,
    Shaken,
    Touched,
    file_events,
)
from debrief.execution.model import NoOutcome, NotExecuted, RebuiltTree
from debrief.execution.replaying import Replay, replay
from debrief.git import Scratch, scratch_into
from debrief.git.scratch import EXECUTABLE, PLAIN, SUBMODULE, Entry, lfs_digest
from debrief.outcomes.history import Commit, History
from debrief.sessions.model import Session

_LARGEST = 4_000_000
"""Bytes of a file that a session edits."""
_SECOND = timedelta(seconds=1)
_OWN_FOLDER, _DEEP = 3, 3
_NOT_OF_THE_TREE = re.compile(r"(?:^|/)(?:\.git|\.?worktrees)/")
_CHANGED = re.compile(r":\d+ (\d+) [0-9a-f]+ ([0-9a-f]+) [A-Z]\d*\t(.*)")


class _NoTreeError(Exception):
    def __init__(self, reason: NoOutcome, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(reason)


def rebuild(session: Session, clone: Path, store: Path) -> RebuiltTree | NotExecuted:
    """Make a session's change again.

    Args:
        session: whole, redacted or not.
        clone: of its repository; a bare one too. Nothing in it changes, and nothing of it runs.
        store: an object store of ours, which holds what is made; ``trees.lay_out`` reads it. It
            may serve any number of sessions and clones.

    Returns:
        The trees, or why there are none.
    """
    try:
        with scratch_into(clone.resolve(), store.resolve()) as scratch:
            scratch.take_names()
            return _Rebuilding(session, scratch, clone).run()
    except _NoTreeError as why:
        return NotExecuted(session_id=session.id, reason=why.reason, detail=why.detail)
    except InputError as error:
        return NotExecuted(session_id=session.id, reason="not_rebuilt", detail=error.reason)


class _Made(NamedTuple):
    """What a commit made of a file."""

    entry: Entry
    """Mode 0 and an id of zeros where it took the file away."""
    commit: str
    at: datetime


class _Ending(Struct):
    """What is known of how files ended, by path."""

    blobs: dict[str, dict[str, _Made]]
    """By blob, the last commit of the session's time that made it of the file."""
    own: dict[str, _Made]
    """Of the last commit that holds the session's work."""

    def commit_of(self, path: str, entry: Entry | None, since: datetime | None) -> str:
        """Return the commit that shows that a file ended as an entry; empty for none.

        One from before the file became unknown shows nothing.
        """
        made = self.blobs.get(path, {}).get(entry.id if entry else "")
        return made.commit if made and (since is None or made.at + _SECOND > since) else ""


class _Rebuilding:
    def __init__(self, session: Session, scratch: Scratch, clone: Path) -> None:
        self._session, self._scratch, self._clone = session, scratch, clone
        self._events = list(file_events(session))
        self._commits: list[Commit] = []

    def run(self) -> RebuiltTree:
        if not any(map(_changes, self._events)):
            raise _NoTreeError("nothing_changed")
        history = History(self._scratch, self._clone, datetime.now(UTC))
        self._commits = history.commits_of(self._session)
        base, replayed = self._fitting()
        return self._made(base, replayed)

    # The base

    def _fitting(self) -> tuple[BaseCommit, Replay]:
        """Return the base that fits best, and the events applied to it."""
        gone, found = "", list[tuple[BaseCommit, Replay]]()
        for named in named_bases(self._session):
            if commit := self._commit(named.commit):
                found.append(self._try(BaseCommit(commit, named.source)))
                if named.source == "recorded" or not found[-1][1].misfits:
                    return found[-1]
            else:
                gone = gone or named.commit
                if named.source == "recorded":
                    raise self._is_gone(gone)
        first = self._commits[0].id if self._commits else ""
        for inferred in inferred_bases(self._session, self._scratch, self._names(), first):
            found.append(self._try(inferred))
            if not found[-1][1].misfits:
                break
        fitting = [each for each in found if each[1].fits()]
        if fitting:
            return min(fitting, key=lambda each: len(each[1].misfits))
        if found and found[0][0].source != "inferred":
            return found[0]
        if gone:
            raise self._is_gone(gone)
        if not found:
            raise self._is_gone("") if self._is_shallow() else _NoTreeError("no_base")
        replayed = found[0][1]
        misfit = next(path for path in replayed.misfits if path in replayed.changed)
        raise _NoTreeError("not_rebuilt", misfit)

    def _try(self, base: BaseCommit) -> tuple[BaseCommit, Replay]:
        entries = self._entries(base.commit)
        events = self._local(entries)
        if not any(map(_changes, events)):
            raise _NoTreeError("nothing_changed")
        texts = self._texts(entries, {path for event in events for path in _paths(event)})
        return base, replay(events, texts.get)

    def _commit(self, revision: str) -> str:
        try:
            arguments = (
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                f"{revision}^{{commit}}",
            )
            return self._scratch.git(*arguments).decode().strip()
        except InputError:
            return ""

    def _is_gone(self, commit: str) -> _NoTreeError:
        return _NoTreeError("shallow_clone" if self._is_shallow() else "base_gone", commit)

    def _is_shallow(self) -> bool:
        return (self._scratch.repository.common_dir / "shallow").exists()

    def _entries(self, tree: str) -> dict[str, Entry]:
        listed = self._scratch.entries(tree)
        return {path.decode("utf-8", "surrogateescape"): entry for path, entry in listed.items()}

    def _texts(self, entries: Mapping[str, Entry], paths: set[str]) -> dict[str, str]:
        files = {path: entries[path] for path in paths if path in entries}
        readable = {
            path: entry.id for path, entry in files.items() if entry.mode in (PLAIN, EXECUTABLE)
        }
        blobs = self._scratch.read_blobs(readable.values(), _LARGEST) if readable else {}
        texts = {}
        for path, id_ in readable.items():
            if (blob := blobs[id_]) is not None:
                with suppress(UnicodeDecodeError):
                    texts[path] = blob.decode()
        return texts

    # Paths

    def _names(self) -> list[str]:
        """Return the files of the events below the top, as the newest tree knows it."""
        head = self._commit("HEAD") or next((commit.id for commit in reversed(self._commits)), "")
        events = self._local(self._entries(head) if head else {})
        return sorted({path for event in events for path in _paths(event)})

    def _local(self, entries: Mapping[str, Entry]) -> list[FileEvent]:
        """Return the events of files below the repository's top, with paths below it."""
        top = _top(self._events, entries, self._session.cwd)

        def inside(path: str) -> str:
            local = path[len(top) :].lstrip("/") if path.startswith(top) else ""
            is_other = path.startswith("~") or _NOT_OF_THE_TREE.search(f"{local}/")
            return "" if is_other or local.startswith("../") else local

        found = list[FileEvent]()
        for event in self._events:
            if isinstance(event, Shaken):
                found.append(event)
                continue
            local = inside(event.path)
            if isinstance(event, Moved):
                to = inside(event.to)
                if local and to:
                    found.append(replace(event, path=local, to=to))
                elif local or to:
                    found.append(
                        Removed(local, sure=False, at=event.at)
                        if local
                        else Touched(to, at=event.at)
                    )
            elif local:
                found.append(replace(event, path=local))
        names = {*entries, *(path for event in found for path in _paths(event))}
        return [each for event in found for each in _of_each_file(event, names)]

    # The trees

    def _made(self, base: BaseCommit, replayed: Replay) -> RebuiltTree:
        entries = self._entries(base.commit)
        ending = self._ending(replayed.changed)
        began = self._stored({path: replayed.began[path] for path in replayed.changed}, entries)
        ended = self._stored({path: replayed.files[path] for path in replayed.changed}, entries)
        for path in replayed.changed.intersection(entries):
            if replayed.began[path] is not None:
                continue
            began[path] = entries[path]
            if path in replayed.unknown:
                ended[path] = entries[path]
        for path, since in replayed.unknown.items():
            if path in ending.own and path not in replayed.misfits:
                made = ending.own[path]
                if since is None or made.at + _SECOND > since:
                    ended[path] = None if made.entry.mode == "0" else made.entry
        files = [
            path
            for path in sorted(replayed.changed)
            if began[path] != ended[path]
            or (path in replayed.unknown and (path in entries or path in ending.own))
        ]
        self._check(entries, files)
        base_tree = self._tree(base.commit, {path: began[path] for path in files}, entries)
        final_tree = self._tree(base.commit, {path: ended[path] for path in files}, entries)
        if base_tree == final_tree and not replayed.unknown.keys() & files:
            raise _NoTreeError("nothing_changed")
        commits = {
            path: ending.commit_of(path, ended[path], replayed.unknown.get(path)) for path in files
        }
        is_recorded = bool(self._session.recorded and self._session.recorded.verified)
        known = {
            path
            for path in files
            if commits[path]
            or path in replayed.seen
            or (is_recorded and path not in replayed.unknown)
        }
        differing = [
            path
            for path in files
            if path not in known and (path in replayed.unknown or path in ending.own)
        ]
        landed = self._commits[-1].id if self._commits else ""
        seen = [commit for commit in commits.values() if commit]
        landed = landed or next(iter(seen), "")
        seen_in = next(iter(seen), "read" if known & replayed.seen else "")
        return RebuiltTree(
            session_id=self._session.id,
            clone=str(self._clone),
            base=base.commit,
            base_source=base.source,
            base_tree=base_tree,
            final_tree=final_tree,
            files=tuple(files),
            exact=known.issuperset(files),
            seen_in="record" if is_recorded else landed if landed in seen else seen_in,
            differing=tuple(differing),
            landed=landed,
        )

    def _check(self, entries: Mapping[str, Entry], paths: Sequence[str]) -> None:
        modules = [path for path, entry in entries.items() if entry.mode == SUBMODULE]
        for path in paths:
            if any(f"{path}/".startswith(f"{module}/") for module in modules):
                raise _NoTreeError("submodules", path)
        files = {path: entries[path].id for path in paths if path in entries}
        blobs = self._scratch.read_blobs(files.values(), _LARGEST) if files else {}
        for path, id_ in sorted(files.items()):
            if lfs_digest(blobs[id_] or b""):
                raise _NoTreeError("lfs_pointers", path)

    def _stored(
        self, texts: Mapping[str, str | None], entries: Mapping[str, Entry]
    ) -> dict[str, Entry | None]:
        known = {path: text for path, text in texts.items() if text is not None}
        ids = self._scratch.write_blobs(list(known.values())) if known else []
        modes = (entries[path].mode if path in entries else PLAIN for path in known)
        found: dict[str, Entry | None] = dict.fromkeys(texts)
        return found | dict(zip(known, map(Entry, modes, ids), strict=True))

    def _tree(
        self, base: str, changes: Mapping[str, Entry | None], entries: Mapping[str, Entry]
    ) -> str:
        new = {os.fsencode(p): e for p, e in changes.items() if e != entries.get(p)}
        return self._scratch.tree_with(base, new)

    def _ending(self, paths: set[str]) -> _Ending:
        session = self._session
        window = (
            f"--since={int(session.started.timestamp())}",
            f"--until={int((session.ended + WAIT).timestamp())}",
        )
        found = _Ending({}, {})
        files = sorted(paths)
        for path, made in self._log((*window, *WORK), files):
            found.blobs.setdefault(path, {}).setdefault(_shown(made.entry), made)
        own = [commit.id for commit in self._commits]
        for path, made in self._log(("--no-walk=unsorted", *own), files) if own else ():
            found.own[path] = made
            found.blobs.setdefault(path, {})[_shown(made.entry)] = made
        return found

    def _log(self, which: Sequence[str], files: Sequence[str]) -> Iterator[tuple[str, _Made]]:
        shape = ("--raw", "--no-abbrev", "--no-renames", "--no-merges", "--format=%x01%H %ct")
        shown = log_of(self._scratch, (*shape, *which), files)
        for part in shown.split("\x01")[1:]:
            head, _, rest = part.partition("\n")
            commit, at = head.split(" ")
            moment = datetime.fromtimestamp(int(at), UTC)
            for line in rest.split("\n"):
                if each := _CHANGED.match(line):
                    entry = Entry(each[1].lstrip("0") or "0", each[2])
                    yield each[3], _Made(entry, commit, moment)


def _shown(entry: Entry) -> str:
    """Return the id of an entry's blob; empty where there is none."""
    return "" if entry.mode == "0" else entry.id


def _changes(event: FileEvent) -> bool:
    return not isinstance(event, Saw | Shaken)


def _paths(event: FileEvent) -> Sequence[str]:
    if isinstance(event, Shaken):
        return ()
    return (event.path, event.to) if isinstance(event, Moved) else (event.path,)


def _of_each_file(event: FileEvent, names: set[str]) -> Iterator[FileEvent]:
    """Yield what an event does to each file, where it is one of a folder or of a pattern."""
    if not isinstance(event, Moved | Removed):
        yield event
        return
    below = f"{event.path}/"
    if isinstance(event, Removed):
        many = [name for name in names if name.startswith(below) or fnmatchcase(name, event.path)]
        yield from (replace(event, path=name) for name in sorted({*many, event.path} & names))
        return
    into = any(name.startswith(f"{event.to}/") for name in names)
    to = f"{event.to}/{event.path.rpartition('/')[2]}" if into else event.to
    many = [name for name in names if name.startswith(below)]
    for name in sorted(many):
        yield replace(event, path=name, to=f"{to}/{name.removeprefix(below)}")
    if not many:
        yield replace(event, to=to)


def _top(events: Sequence[FileEvent], entries: Mapping[str, Entry], cwd: str) -> str:
    """Return the folder that a session's paths have as the repository's top, with a slash.

    It is the one below which most of its files are files of the repository. A name without a
    folder, such as README.md, shows little; and the session's own folder needs less than others.
    """
    changed = {path for event in events if _changes(event) for path in _paths(event)}
    own = cwd.replace("\\", "/").rstrip("/")
    own = f"{own}/" if own else ""
    tops = Counter({own: _OWN_FOLDER})
    for path in {path for event in events for path in _paths(event)}:
        parts = path.split("/")
        for at in range(len(parts)):
            if "/".join(parts[at:]) in entries:
                top = "".join(f"{part}/" for part in parts[:at])
                tops[top] += (1 + (path in changed)) * min(len(parts) - at, _DEEP)
    return max(tops, key=lambda top: (tops[top], own.startswith(top), len(top)))
