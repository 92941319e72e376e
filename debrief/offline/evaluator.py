"""The offline evaluator: a judge and scorer without a model.

It is a baseline that model judges are measured against: deterministic, free, and built on what a
session shows (checks, errors, repeated work, reactions), never on how its code reads. Its model
name is ``offline``, so its rows and fingerprints never mix with a model's.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable

from debrief.errors import ConfigurationError
from debrief.judging.model import WORKTREE, ChangeContext, Judge, Judgement
from debrief.offline.calls import (
    Activity,
    EditHunk,
    activity_of,
    edits_of,
    first_prompt,
    is_search,
    read_key,
    tail,
)
from debrief.offline.commands import shell_command
from debrief.offline.compliance import read_request, weigh_compliance
from debrief.offline.dimensions import (
    Setting,
    Weighing,
    some,
    verdicts_of,
    weigh_completion,
    weigh_execution,
)
from debrief.offline.signals import Signals, counted, read_signals
from debrief.scoring.model import Chunk, ChunkVerdicts
from debrief.sessions.model import Session

OFFLINE = "offline"
VERSION = "ed8421e4"
"""Eight hex digits of one's own choice. Change them with whatever changes a score or its reason:
rows of another version are not comparable and are made again. Golden runs fail without it."""

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


class OfflineEvaluator:
    """Judges changes and scores chunks by signals alone; safe to share between threads."""

    model = OFFLINE
    version = VERSION

    def __init__(self) -> None:
        self._last = threading.local()

    def judge(self, judge: Judge, context: ChangeContext, session: Session) -> Judgement:
        """Judge one session.

        ``code-reuse`` and ``plan-compliance`` have measures of their own; every other judge gets
        the general one, and its feedback says so.

        Raises:
            ConfigurationError: the judge names a model; its row would pass for that model's.
        """
        if judge.model != OFFLINE:
            raise ConfigurationError(
                f"judge {judge.name}",
                f"names the model {judge.model} and would be answered offline",
                "Load the judges with the model set to offline.",
            )
        signals = self._signals(session)
        if judge.name == "code-reuse":
            weighing = weigh_reuse(
                activity_of(session), signals, exploration_recorded=session.source != WORKTREE
            )
            feedback = weighing.rationale(
                "No code was written with an editing tool, so nothing could be reused or copied: "
                "the score says nothing either way."
            )
        elif judge.name == "plan-compliance":
            request = read_request(context.plan_content)
            weighing = weigh_compliance(request, activity_of(session), signals)
            feedback = weighing.rationale("The plan names nothing that could be followed up.")
        else:
            setting, weighing = _setting(context.plan_content), Weighing()
            weighing.add_half(weigh_completion(signals, setting))
            weighing.add_half(weigh_execution(signals))
            feedback = (
                f"The offline evaluator has no measure for “{judge.name}”; this is its general "
                "one, of how the session went. "
                + weighing.rationale("Nothing in the session tells either way.")
            )
        return Judgement(score=weighing.score, feedback=feedback, cost_usd=0.0)

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkVerdicts:
        """Score one chunk by the signals of its own turns; a trace's number is its turn's."""
        numbers = {trace.number for trace in chunk.traces}
        whole = numbers >= {turn.number for turn in session.turns}
        signals = self._signals(session) if whole else read_signals(session, numbers)
        setting = _setting(first_prompt(session), last_part=chunk.index == chunk.count - 1)
        return ChunkVerdicts(
            index=chunk.index,
            tokens=chunk.tokens,
            own_tokens=chunk.own_tokens,
            verdicts=verdicts_of(signals, setting),
            cost_usd=0.0,
        )

    def _signals(self, session: Session) -> Signals:
        """Read a session's signals, or recall them when the last call was about it too."""
        if getattr(self._last, "session", None) is not session:
            self._last.signals = read_signals(session)
            self._last.session = session
        signals: Signals = self._last.signals
        return signals


def _setting(task: str, last_part: bool = True) -> Setting:
    request = read_request(task)
    return Setting(
        asked_for_change=request.change,
        asked_for_tests=request.tests,
        asked_for_docs=request.docs,
        last_part=last_part,
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
    if exploration_recorded and signals.searched_before_first_edit:
        weight = 0.5 * some(signals.searches + signals.reads, 4)
        weighing.add(weight, signals.exploration)
    elif exploration_recorded:
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
                twice.update({(path, n): f"turn {lines[at][0]}, {tail(path)}" for n in place})
            source = written.read_blocks.get(block)
            moved = all(written.removed[line] for line in block)
            if source is not None and not moved and not _same_file(source, path):
                copied.update({(path, n): f"turn {lines[at][0]}, {tail(source)}" for n in place})
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
            if found:
                name = found[1] or found[2]
                own.add(name)
                source = written.known.get(name, "")
                is_known = source not in ("", "a search result") and not _ORDINARY.match(name)
                if is_known and not _same_file(source, path) and not written.removed[line]:
                    again.append(f"turn {turn}: {name} stands in {tail(source)} already")
            calls.update(_CALLED.findall(line))
    if again:
        weight = -1.1 * some(len(again), 1)
        weighing.add(weight, f"{counted(len(again), 'name{s}')} defined again ({again[0]})")
    reused = sorted((calls - own) & set(written.known))
    if reused:
        named = ", ".join(reused[:3])
        calling = f"calls {counted(len(reused), 'existing name{s}')} ({named})"
        weighing.add(1.0 * some(len(reused), 3), calling)
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
