"""Code reuse, measured: is what was written new, or was it there already?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from debrief.offline.activity import Activity
from debrief.offline.commands import shell_command
from debrief.offline.edits import edits_of
from debrief.offline.file_access import is_search, read_key
from debrief.offline.model import EditHunk, Signals
from debrief.offline.weighing import Weighing, counted, exploration_before_edits, some

_BLOCK = 4
_LINE_NUMBER = re.compile(r"^(?:[^\s:]+:)?[ \t]*\d+[→\t|:-]", re.MULTILINE)
_NO_CODE = re.compile(
    r"\.(?:mdx?|rst|txt|jsonl?|ya?ml|toml|lock|csv|svg|html?|xml|snap|ini|cfg|env)$|(?:^|/)\.[\w-]+$",
    re.IGNORECASE,
)
_TEST_FILE = re.compile(r"(?:^|/)(?:tests?|spec|__tests__)/|(?:^|[/._])(?:test|spec)[_.]|_test\.")
_IMPORT = re.compile(r"^(?:import|from|use|using|package|#include|require|export \{|export \*)\b")
_DEFINES = re.compile(
    r"^[ \t]*(?:export\s+)?(?:default\s+)?"
    r"(?:public\s+|private\s+|protected\s+|static\s+|pub(?:\(\w+\))?\s+)*"
    r"(?:async\s+)?(?:def|defp|func|fn|function|class|struct|interface|enum|trait|type)\s+"
    r"(?:\([^)]*\)\s*)?([A-Za-z_]\w{3,})"
    r"|^[ \t]*(?:export\s+)?const\s+([A-Za-z_]\w{3,})\s*="
    r"\s*(?:async\s*)?(?:\([^)]*\)|\w+)\s*(?::[^=]+)?=>",
    re.MULTILINE,
)
_CALLED = re.compile(r"\b([A-Za-z_]\w{3,})\s*\(")
_ORDINARY = re.compile(
    r"(?:main|setup|teardown|init|__\w+__|test\w*|render|index|handler|props|config|options|state"
    r"|string|error|close|open|start|stop|update|create|delete|parse|value|result|default\w*)$",
    re.IGNORECASE,
)


def weigh_reuse(
    activity: Activity, signals: Signals, *, exploration_recorded: bool = True
) -> Weighing:
    """Weigh the reuse of what exists: no copies, names called rather than written anew, a look
    before writing, edits rather than new files.

    ``exploration_recorded`` is False for changes alone, which do not show who looked at what."""
    code = [edit for edit in signals.edits if not _NO_CODE.search(edit.path)]
    if not code:
        return Weighing(0.0)
    weighing = Weighing(0.3)
    written = _Written(activity)
    _weigh_copies(weighing, written)
    _weigh_names(weighing, written)
    if not exploration_recorded:
        pass
    elif signals.searched_before_first_edit:
        weight = 0.5 * some(signals.searches + signals.reads, 4)
        weighing.add(weight, exploration_before_edits(signals))
    else:
        weighing.add(-0.8, f"the first edit (turn {code[0].turn}) came before any look around")
    created = {edit.path for edit in code if edit.created and not _TEST_FILE.search(edit.path)}
    touched = {edit.path for edit in code if not _TEST_FILE.search(edit.path)}
    if touched:
        share = len(created) / len(touched)
        files = counted(len(touched), "code file{s}")
        said = f"{len(created)} of {files} new" if created else f"no new file among {files}"
        weighing.add(0.35 - 0.8 * share, said)
    if signals.lines_removed:
        share = signals.lines_removed / signals.growth
        weighing.add(0.6 * share, counted(signals.lines_removed, "line{s} taken away"))
    return weighing


class _Written:
    """The end state of what was written, and what had been read before it was."""

    def __init__(self, activity: Activity) -> None:
        self.lines: dict[str, list[tuple[int, str]]] = {}
        self.removed: Counter[str] = Counter()
        self.read: dict[str, set[str]] = {}
        self.known: dict[str, str] = {}
        self.read_blocks: dict[tuple[str, ...], str] = {}
        for turn, _, call in activity.calls:
            if call.status != "ok":
                continue
            command = shell_command(call)
            edits = edits_of(turn, call)
            for edit in edits:
                if not _NO_CODE.search(edit.path):
                    self._edit(edit)
            if edits or not call.result:
                continue
            key = read_key(call, command)
            if key is not None:
                self._read(key[0], call.result)
            elif is_search(call, command):
                self._names(call.result, "a search result")

    def _edit(self, edit: EditHunk) -> None:
        lines = self.lines.setdefault(edit.path, [])
        gone = Counter(_significant(edit.removed_lines))
        self.removed.update(gone)
        if gone:
            kept = []
            for turn, line in reversed(lines):
                if gone[line] > 0:
                    gone[line] -= 1
                else:
                    kept.append((turn, line))
            lines[:] = kept[::-1]
        lines += [(edit.turn, line) for line in _significant(edit.added_lines)]

    def _read(self, path: str, text: str) -> None:
        if path in self.lines or _NO_CODE.search(path):
            return
        plain = _LINE_NUMBER.sub("", text)
        self._names(plain, path)
        for block in _blocks(_significant(plain.split("\n"))):
            self.read_blocks.setdefault(block, path)

    def _names(self, text: str, path: str) -> None:
        for found in _DEFINES.finditer(_LINE_NUMBER.sub("", text)):
            self.known.setdefault(found[1] or found[2], path)


def _weigh_copies(weighing: Weighing, written: _Written) -> None:
    """Look for blocks that were written twice, or that stood in another file that was read."""
    seen: dict[tuple[str, ...], tuple[str, int]] = {}
    total = 0
    twice: dict[tuple[str, int], str] = {}
    copied: dict[tuple[str, int], str] = {}
    for path, lines in written.lines.items():
        total += len(lines)
        for at, block in enumerate(_blocks([line for _, line in lines])):
            earlier = seen.setdefault(block, (path, at))
            place = range(at, at + _BLOCK)
            if earlier != (path, at) and (earlier[0] != path or earlier[1] + _BLOCK <= at):
                twice.update({(path, n): f"turn {lines[at][0]}, {_tail(path)}" for n in place})
            source = written.read_blocks.get(block)
            moved = all(written.removed[line] for line in block)
            if source is not None and not moved and not _same_file(source, path):
                copied.update({(path, n): f"turn {lines[at][0]}, {_tail(source)}" for n in place})
    if not total:
        return
    for found, what in ((twice, "were written twice"), (copied, "are copies of a file read")):
        if found:
            share = len(found) / total
            weight = -(0.3 + 2.4 * min(1.0, 2.5 * share)) * some(len(found), 4)
            where = next(iter(found.values()))
            weighing.add(weight, f"{len(found)} of {total} new lines {what} ({where})")
    if not twice and not copied and total >= 3 * _BLOCK:
        weighing.add(0.4 * some(total, 60), f"none of {total} new lines is a copy")


def _weigh_names(weighing: Weighing, written: _Written) -> None:
    """Look for names that exist: written anew, or called."""
    again: list[str] = []
    calls: set[str] = set()
    own: set[str] = set()
    for path, lines in written.lines.items():
        for turn, line in lines:
            found = _DEFINES.match(line)
            name = (found[1] or found[2]) if found else None
            if name:
                own.add(name)
                source = written.known.get(name)
                elsewhere = source is not None and source != "a search result"
                if (
                    elsewhere
                    and source is not None
                    and not _same_file(source, path)
                    and not _ORDINARY.match(name)
                    and not written.removed[line]
                ):
                    again.append(f"turn {turn}: {name} stands in {_tail(source)} already")
            calls.update(_CALLED.findall(line))
    if again:
        weight = -1.1 * some(len(again), 1)
        weighing.add(weight, f"{counted(len(again), 'name{s}')} defined again ({again[0]})")
    reused = sorted((calls - own) & set(written.known))
    if reused:
        named = ", ".join(reused[:3])
        weighing.add(
            1.0 * some(len(reused), 3),
            f"calls {counted(len(reused), 'existing name{s}')} ({named})",
        )
    elif written.known and own:
        weighing.add(-0.35, "nothing that had been read is called by what was written")


def _significant(lines: Iterable[str]) -> list[str]:
    """Return lines that say something, blanks folded: no imports, brackets, short ends."""
    folded = (" ".join(line.split()) for line in lines)
    return [line for line in folded if len(line) >= 10 and not _IMPORT.match(line)]


def _blocks(lines: list[str]) -> Iterable[tuple[str, ...]]:
    for at in range(len(lines) - _BLOCK + 1):
        yield tuple(lines[at : at + _BLOCK])


def _same_file(one: str, other: str) -> bool:
    return one == other or one.endswith("/" + other) or other.endswith("/" + one)


def _tail(path: str) -> str:
    return "/".join(path.split("/")[-2:])
