"""What a session changed: the one answer for signals, judges, scores and training.

Four things are read, call by call: the edits of tools, the files that commands write, move and
remove, commands that change files which they do not name, and what git printed of commits. What
was thrown away again, or made and removed again, is no change at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename

from msgspec import Struct

from debrief.sessions.model import Evidence, Session, ToolCall
from debrief.sessions.readers.patches import FileEdit, edits_of_call
from debrief.signals.effects import FILE, Effect, effects_of
from debrief.signals.excerpts import label, quote_line
from debrief.signals.schema import Change
from debrief.signals.shell import (
    Command,
    pattern,
    place_below,
    placed_commands,
)
from debrief.signals.workplace import Workplace, folder_of_call

_COMMIT = re.compile(
    r"^\[(?!.*\]:)[^\]\n]*?\b(?P<id>[0-9a-f]{7,40})\] (?P<words>.*)"
    r"(?P<more>(?:\n (?!.*\|).*)*)",
    re.MULTILINE,
)
"""What git prints of a commit: branch and id, its message, and what changed in lines below."""
_PUSHED = re.compile(
    r"^ *[ +*]? *(?:[0-9a-f]{7,40}\.{2,3}[0-9a-f]{7,40}|\[new (?:branch|tag)\]|\[deleted\]) .*",
    re.MULTILINE,
)
_NOTHING = re.compile(r"\bnothing (?:added )?to commit\b|\bno changes added to commit\b")
_COUNTED = re.compile(r"(\d+) files? changed")
_MADE = re.compile(r"^ (create|delete) mode \d+ (.+)$", re.MULTILINE)
_RENAMED = re.compile(r"^ rename (.+) \(\d+%\)$", re.MULTILINE)
_INNER = re.compile(r"\{(.*?) => (.*?)\}")
_PATCHED = re.compile(r"^patching file '?([^'\n]+?)'?$", re.MULTILINE)
_GONE = re.compile(r"^rm '(.+)'$", re.MULTILINE)
_STATUS = re.compile(
    r"^(?:[ MADRCU?]{2} (?P<short>\S.*)|\t(?:modified|deleted|new file|renamed): +(?P<long>.+))$",
    re.MULTILINE,
)
"""Files that ``git status`` names as not committed."""
_UNTRACKED = re.compile(r"^Untracked files:\n(?:  \(.*\n)*((?:\t.+\n?)+)", re.MULTILINE)
_UNCHANGED = re.compile(r"\b(?:left unchanged|already formatted|unchanged\))")
_REFORMATTED = re.compile(r"\breformatted\b|^fixed\b|\(\d+ fixed", re.IGNORECASE | re.MULTILINE)
_COMMITS = frozenset(["commit", "cherry-pick", "revert", "am"])
_SAYS = frozenset(["echo", "printf", "man", "which", "type", "command", "alias", "grep", "rg"])
"""Programs that speak of others, and do not run them."""


class CommitMade(Struct, frozen=True):
    """A commit, or a push, as git printed it."""

    evidence: Evidence
    counted: int | None
    """Files that git counted in it."""
    is_push: bool = False


class ChangeLog:
    """Follows what calls change, in the order of the session."""

    def __init__(self, session: Session) -> None:
        self.work = Workplace(session)
        self.edits: list[Evidence] = []
        """Files that were changed, one for each time."""
        self.deleted: list[Evidence] = []
        self.commands: list[Evidence] = []
        """Commands that changed files which they do not name."""
        self.named: list[str] = []
        """Files that git alone named, in commits."""
        self.commits: list[CommitMade] = []
        self.foreign: list[Evidence] = []
        """Files that were not committed when the session began to edit, and are thrown away."""
        self.own: set[str] = set()
        """Files that the session made."""
        self._files: dict[str, bool] = {}
        """Changed files, and whether each is there."""
        self._origins: dict[str, str] = {}
        """The first names of files that were moved."""
        self._gone: set[str] = set()
        """Files that the session removed by name."""
        self._known: set[str] = set()
        """Files that were read: those were there before."""
        self._open: set[str] = set()
        """Those of them with changes that are not committed."""
        self._committed: set[str] = set()
        self._stashed: list[dict[str, bool]] = []
        self._dirty: set[str] = set()
        """Files that git named as not committed before the session changed anything."""
        self._has_begun = False
        self._shell = ""

    def take(self, turn: int, call: ToolCall, *, failed: bool, is_main: bool = True) -> bool:
        """Note what a call changed; return whether it may have changed anything.

        Args:
            turn: that it belongs to.
            call: that ran.
            failed: it reported an error.
            is_main: it is no subagent's, so that its shell keeps its folder for the next call.
        """
        if call.status == "unanswered":
            return False
        if call.action == "read":
            self._known.update(map(self.work.shorten, call.paths))
        if call.action == "edit" or call.path is not None:
            return not failed and self._edit(turn, call)
        if not call.command:
            return False
        folder = folder_of_call(call) or (self._shell if is_main and call.name == "Bash" else "")
        placed = list(placed_commands(call.command, folder))
        if not self._has_begun:
            self._see_status(call, placed)
        if is_main and call.name == "Bash":
            self._keep_folder(call, placed)
        effects = list(effects_of(call.command, folder, failed=failed))
        for effect in effects:
            self._apply(turn, call, effect)
        self._has_begun |= bool(effects)
        self._git(turn, call, placed, failed)
        return bool(effects)

    def _keep_folder(self, call: ToolCall, placed: Sequence[tuple[Command, str]]) -> None:
        """Follow the folder that a shell keeps from one call to the next."""
        went = [folder for (words, _), folder in placed if words[:1] == ("cd",)]
        if "Shell cwd was reset" in (call.result or ""):
            self._shell = ""
        elif went and "(cd" not in call.command and call.status == "ok":
            self._shell = went[-1]

    @property
    def change(self) -> Change:
        """What is changed in the end."""
        counts = [commit.counted for commit in self.commits if commit.counted is not None]
        return Change(
            files=tuple(path for path, is_there in self._files.items() if is_there),
            deleted=tuple(path for path, is_there in self._files.items() if not is_there),
            commands=tuple(dict.fromkeys(place.quote for place in self.commands)),
            commits=tuple(commit.evidence for commit in self.commits),
            counted=sum(counts) if counts else None,
        )

    def keeps(self, path: str) -> bool:
        """Return whether a file that was edited is changed in the end."""
        return self.work.shorten(path) in self._files

    def _edit(self, turn: int, call: ToolCall) -> bool:
        edits = edits_of_call(call)
        named = [call.path] if call.path else list(call.paths)
        for edit in edits or [FileEdit(path) for path in named]:
            if "+0,0 @@" in edit.patch and "\n+" not in edit.patch:
                self._delete(turn, call, edit.path)
            else:
                self._write(turn, call, edit.path, created=edit.patch.startswith("@@ -0,0"))
        return True

    def _write(self, turn: int, call: ToolCall, path: str, created: bool = False) -> None:
        if not self.work.holds(path):
            return
        name = self.work.shorten(path)
        self._has_begun = True
        self.edits.append(Evidence(turn, call.id, path))
        if created and name not in self._files and name not in self._known:
            self.own.add(name)
        self._files[name] = True
        self._open.add(name)

    def _delete(self, turn: int, call: ToolCall, path: str) -> None:
        if not self.work.holds(path):
            return
        name = self.work.shorten(path)
        if name in self._dirty and name not in self.own:
            self.foreign.append(Evidence(turn, call.id, path))
        self._files.pop(name, None)
        self._gone.add(name)
        if name in self.own:
            self.own.discard(name)
        else:
            self.deleted.append(Evidence(turn, call.id, path))
            origin = self._origins.pop(name, name)
            self._files[origin] = False
            self._open.add(origin)

    def _apply(self, turn: int, call: ToolCall, effect: Effect) -> None:
        path = effect.path
        if effect.kind in ("write", "create"):
            self._write(turn, call, path, created=effect.kind == "create")
        elif effect.kind == "delete":
            self._delete(turn, call, path)
        elif effect.kind == "move":
            former = self.work.shorten(effect.source)
            was_own = former in self.own
            if self.work.holds(path):
                origin = self._origins.pop(former, former)
                self._origins[self.work.shorten(path)] = origin
                self._files.pop(former, None)
                self._write(turn, call, path, created=was_own)
            elif self.work.holds(effect.source) and not was_own:
                self._delete(turn, call, effect.source)
        elif effect.kind == "restore":
            self._restore(turn, call, path)
        elif effect.kind == "stash":
            self._stashed.append(
                {name: self._files[name] for name in sorted(self._open - self.own)}
            )
            self._drop(self._open - self.own)
        elif effect.kind == "unstash" and self._stashed:
            back = self._stashed.pop()
            self._files |= back
            self._open |= set(back)
        elif effect.kind == "command" and not _did_nothing(call.result or ""):
            gone = _GONE.findall(call.result or "") if path.startswith("git rm ") else []
            for name in gone:
                self._delete(turn, call, name)
            for patched in _PATCHED.findall(call.result or ""):
                self._write(turn, call, place_below(effect.folder, patched))
            is_untracked = path.startswith("rm ") and _shows_no_loss(call, effect.folder)
            if not (gone or is_untracked) and self.work.holds(f"{effect.folder or '.'}/"):
                self.commands.append(Evidence(turn, call.id, path))

    def _restore(self, turn: int, call: ToolCall, path: str) -> None:
        """Note that changes which nobody committed were thrown away, of a file or of all."""
        name = self.work.shorten(path)
        is_all = not FILE.search(path)
        below = "" if name == "." else f"{name.rstrip('/')}/"

        def is_meant(one: str) -> bool:
            if is_all:
                return one.startswith(below)
            return one == name or (one.startswith("/") and one.endswith(f"/{path}"))

        lost = sorted(filter(is_meant, self._dirty))
        self.foreign += (Evidence(turn, call.id, dirty) for dirty in lost)
        self._dirty.difference_update(lost)
        self._drop(filter(is_meant, self._open - self.own - self._origins.keys()))

    def _drop(self, names: Iterable[str]) -> None:
        for name in list(names):
            self._open.discard(name)
            if name in self._committed:
                self._files[name] = True
            else:
                self._files.pop(name, None)

    def _see_status(self, call: ToolCall, placed: Sequence[tuple[Command, str]]) -> None:
        """Remember what git names as not committed."""
        folder = next((at for (words, _), at in placed if words[:2] == ("git", "status")), None)
        if folder is None or call.result is None:
            return
        names = [found["short"] or found["long"] for found in _STATUS.finditer(_printed(call))]
        for found in _UNTRACKED.finditer(_printed(call)):
            names += (line.strip() for line in found[1].splitlines())
        for name in names:
            last = name.rpartition(" -> ")[2].strip('"')
            self._dirty.add(self.work.shorten(place_below(folder, last)))

    def _git(
        self, turn: int, call: ToolCall, placed: Sequence[tuple[Command, str]], failed: bool
    ) -> None:
        """Note commits and pushes that git confirms, with the files that it names."""
        runs = [(words, at) for words, at in _of_git_alone(placed) if words[1:]]
        commits = [
            (words, at) for words, at in runs if words[1] in _COMMITS and "--dry-run" not in words
        ]
        pushes = [words for words, _ in runs if words[1] == "push" and "--dry-run" not in words]
        folder = (commits or [((), placed[-1][1] if placed else "")])[-1][1]
        if not (commits or pushes) or not self.work.holds(f"{folder or '.'}/"):
            return
        result = _printed(call)
        printed = list(_COMMIT.finditer(result)) if commits else []
        for found in printed:
            counted = _COUNTED.search(found["more"])
            count = int(counted[1]) if counted else None
            if any("--amend" in words for words, _ in commits):
                count = count if self.commits or self._open else None
                self.commits = self.commits[:-1]
            quote = quote_line(f"{found[0].partition(chr(10))[0]} {_count_line(found['more'])}")
            self.commits.append(CommitMade(Evidence(turn, call.id, quote), count))
            self._name_files(turn, call, folder, found["more"], count)
        pushed = _PUSHED.search(result) if pushes else None
        if pushed:
            quote = quote_line(pushed[0])
            self.commits.append(CommitMade(Evidence(turn, call.id, quote), None, is_push=True))
        refused = failed or pattern("outcomes", "failed").search(result) or _NOTHING.search(result)
        is_quiet = commits and not printed and not refused and call.status == "ok"
        if is_quiet:  # git printed little, or another program printed in its place
            counted = _COUNTED.search(result)
            quote = quote_line(_count_line(result)) or label(call)
            count = int(counted[1]) if counted else None
            self.commits.append(CommitMade(Evidence(turn, call.id, quote), count))
        if printed or is_quiet:
            self._committed |= {name for name in self._open if self._files.get(name)}
            self._open.clear()

    def _name_files(
        self, turn: int, call: ToolCall, folder: str, text: str, count: int | None
    ) -> None:
        """Note the files of a commit that git names, or that were added by name: all of them."""
        known = {*self._files, *self._origins.values(), *self._gone}
        for kind, path in _MADE.findall(text):
            path = place_below(folder, path.strip('"'))
            name = self.work.shorten(path)
            is_older = any(f"{name}/".startswith(f"{one}/") for one in self._dirty)
            if self.work.holds(path) and name not in known and not is_older:
                self._files[name] = kind == "create"
                self.named.append(path)
        for line in _RENAMED.findall(text):
            old, new = _former_and_new(line)
            if new and self.work.shorten(place_below(folder, new)) not in self._files:
                self._apply(
                    turn, call, Effect("move", place_below(folder, new), place_below(folder, old))
                )
        added = list(_added_by_name(call.command, folder_of_call(call)))
        if count is not None and len(added) == count and all(map(FILE.search, added)):
            for path in added:
                if self.work.shorten(path) not in self._files:
                    self._files[self.work.shorten(path)] = True
                    self.named.append(path)


def _of_git_alone(
    placed: Sequence[tuple[Command, str]],
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the commands of git with their folders, those behind another program's name, too."""
    for (words, _), folder in placed:
        if words[:1] == ("git",):
            yield words, folder
        elif words[1:2] == ("git",) and words[2:3] and words[0] not in _SAYS:
            yield words[1:], folder


def _added_by_name(command: str, folder: str) -> Iterator[str]:
    for (words, _), at in placed_commands(command, folder):
        if words[:2] == ("git", "add"):
            yield from (place_below(at, word) for word in words[2:] if not word.startswith("-"))


def _former_and_new(line: str) -> tuple[str, str]:
    """Return both paths of git's ``rename src/{a => b}/c.py`` or ``rename a => b``."""
    if inner := _INNER.search(line):
        sides = (line[: inner.start()] + inner[n] + line[inner.end() :] for n in (1, 2))
        old, new = (side.replace("//", "/") for side in sides)
        return old, new
    old, _, new = line.partition(" => ")
    return old, new


def _printed(call: ToolCall) -> str:
    """Return what a call printed; of a result in JSON, with its line breaks."""
    text = call.printed
    return text.replace("\\n", "\n") if '"output":"' in text else text


def _count_line(text: str) -> str:
    return next((line.strip() for line in text.split("\n") if _COUNTED.search(line)), "")


def _shows_no_loss(call: ToolCall, path: str) -> bool:
    """Return whether git, asked in the same call, names nothing below a path that was removed."""
    return "git status" in call.command and basename(path.rstrip("/")) not in (call.result or "")


def _did_nothing(result: str) -> bool:
    return bool(_UNCHANGED.search(result)) and not _REFORMATTED.search(result)
