"""Plan compliance, measured: does what was changed and checked meet what was asked for?"""

from __future__ import annotations

from debrief.offline.activity import Activity
from debrief.offline.commands import arguments, shell_command
from debrief.offline.dimensions import (
    Setting,
    weigh_completion,
    weigh_last_checks,
)
from debrief.offline.model import Signals
from debrief.offline.request_features import RequestFeatures, stems_of
from debrief.offline.weighing import Weighing, cited, counted, some, turns_of

_CALLS_READ = 4_000
_ITEM_COVERED = 0.5
_NAMED = 3


def weigh_compliance(request: RequestFeatures, activity: Activity, signals: Signals) -> Weighing:
    """Weigh how far the work covers the plan: named files, names, list items, words, and the
    kinds of work that it asks for; what the user had to correct; how checks stood at the end."""
    if not signals.messages:
        return weigh_completion(signals, Setting(asked_for_change=request.change))
    weighing = Weighing(0.2)
    traces = _Traces(activity, signals)
    _weigh_files(weighing, request, traces)
    _weigh_names(weighing, request, traces)
    _weigh_items(weighing, request, traces)
    _weigh_words(weighing, request, traces)
    _weigh_kinds(weighing, request, signals, traces)
    _weigh_scope(weighing, request, traces)
    weigh_last_checks(weighing, signals)
    if signals.corrections:
        share = min(1.0, 2 * len(signals.corrections) / max(signals.turns, 1))
        weight = -(0.5 + 0.9 * share) * some(len(signals.corrections), 0.7)
        weighing.add(weight, cited("correction{s} by the user", signals.corrections))
    if signals.ended_interrupted:
        weighing.add(-0.9, "the last turn was interrupted")
    elif not signals.ended_answered:
        weighing.add(-0.6, "the last turn has no closing answer")
    return weighing


class _Traces:
    """What the work left behind, in the plan's own coin."""

    def __init__(self, activity: Activity, signals: Signals) -> None:
        self.changed = list(dict.fromkeys(edit.path for edit in signals.edits))
        self.created = {edit.path for edit in signals.edits if edit.created}
        written: list[str] = []
        touched: list[str] = []
        for _, _, call in activity.calls:
            if call.status != "ok":
                continue
            if call.path and call.patch:
                written += [line[1:] for line in call.patch.split("\n") if line[:1] in "+-"]
            else:
                command = shell_command(call)
                if command is not None:
                    touched.append(command[:_CALLS_READ])
                else:
                    values = arguments(call).values()
                    touched += [v[:_CALLS_READ] for v in values if isinstance(v, str)]
        said = [message.text for message in activity.messages if message.text]
        self.written = "\n".join(written)
        self.touched = "\n".join(touched)
        self.said = "\n".join(said)
        self.stems = stems_of("\n".join([*self.changed, self.written, self.touched, self.said]))
        self.hard_stems = stems_of("\n".join([*self.changed, self.written, self.touched]))


def _weigh_files(weighing: Weighing, request: RequestFeatures, traces: _Traces) -> None:
    if not request.files:
        return
    changed = [name for name in request.files if _among(name, traces.changed)]
    seen = [
        name
        for name in request.files
        if name not in changed and (name in traces.touched or name in request.attached)
    ]
    share = (len(changed) + 0.4 * len(seen)) / len(request.files)
    if not request.change:
        share = (len(changed) + len(seen)) / len(request.files)
    said = f"{len(changed)} of {counted(len(request.files), 'file{s}')} named in the plan changed"
    if seen:
        said += f", {len(seen)} looked at"
    missing = [name for name in request.files if name not in changed and name not in seen]
    if missing and share < 1:
        said += f" (not touched: {', '.join(missing[:_NAMED])})"
    weighing.add(2.0 * (share - 0.4) * some(len(request.files), 1), said)


def _weigh_names(weighing: Weighing, request: RequestFeatures, traces: _Traces) -> None:
    if not request.names:
        return
    hard = [name for name in request.names if name in traces.written or name in traces.touched]
    soft = [name for name in request.names if name not in hard and name in traces.said]
    share = (len(hard) + 0.5 * len(soft)) / len(request.names)
    missing = [name for name in request.names if name not in hard and name not in soft]
    said = f"{len(hard)} of {counted(len(request.names), 'name{s}')} of the plan found in the work"
    if missing and share < 1:
        said += f" (not {', '.join(missing[:_NAMED])})"
    weighing.add(1.7 * (share - 0.4) * some(len(request.names), 2), said)


def _weigh_items(weighing: Weighing, request: RequestFeatures, traces: _Traces) -> None:
    stems = traces.hard_stems if request.change else traces.stems
    measured = [(item, stems_of(item)) for item in request.items]
    measured = [(item, words) for item, words in measured if len(words) >= 2]
    if len(measured) < 2:
        return
    missing = [item for item, words in measured if len(words & stems) < _ITEM_COVERED * len(words)]
    share = 1 - len(missing) / len(measured)
    said = f"{len(measured) - len(missing)} of {len(measured)} listed items left a trace"
    if missing:
        said += f" (none of “{_short(missing[0])}”)"
    weighing.add(2.2 * (share - 0.5) * some(len(measured), 2), said)


def _weigh_words(weighing: Weighing, request: RequestFeatures, traces: _Traces) -> None:
    if len(request.words) < 3:
        return
    share = len(request.words & traces.stems) / len(request.words)
    alone = not (request.files or request.names or request.items)
    weight = (2.4 if alone else 1.2) * (share - 0.5) * some(len(request.words), 4)
    weighing.add(weight, f"{share:.0%} of the plan's telling words come back in the work")


def _weigh_kinds(
    weighing: Weighing, request: RequestFeatures, signals: Signals, traces: _Traces
) -> None:
    if request.change and not signals.edits:
        weighing.add(-1.5, "a change was asked for, and no editing tool changed anything")
    elif request.change:
        weighing.add(
            0.3, f"{counted(len(traces.changed), 'file{s}')} changed, as a change was asked"
        )
    if request.tests:
        tests = [run for run in signals.checks if run.kind == "test"]
        wrote = any("test" in path.lower() or "spec" in path.lower() for path in traces.changed)
        if tests or wrote:
            where = f" (turn {tests[-1].turn})" if tests else ""
            did = "run" if tests else "written"
            weighing.add(0.5, f"tests were asked for, and {did}{where}")
        elif request.change:
            weighing.add(-0.7, "tests were asked for, and none was written or run")
    if request.commit:
        if signals.commits:
            weighing.add(0.5, f"committed as asked ({turns_of(signals.commits)})")
        else:
            weighing.add(-0.5, "a commit or pull request was asked for, and none was made")
    if request.docs and request.change and signals.edits:
        wrote = any(path.lower().endswith((".md", ".mdx", ".rst")) for path in traces.changed)
        said = "documentation was asked for, and " + ("written" if wrote else "none was written")
        weighing.add(0.25 if wrote else -0.4, said)


def _weigh_scope(weighing: Weighing, request: RequestFeatures, traces: _Traces) -> None:
    """Look for new files that nothing in the plan speaks of."""
    if len(request.words) < 6 or not traces.created:
        return
    strange = [
        path
        for path in sorted(traces.created)
        if not (stems_of("/".join(path.split("/")[-2:])) & request.words)
        and not _named(path, request.files)
    ]
    if strange:
        weight = -0.7 * some(len(strange), 2)
        names = ", ".join(path.rpartition("/")[2] for path in strange[:_NAMED])
        new = counted(len(strange), "new file{s}")
        weighing.add(weight, f"{new} that the plan does not speak of ({names})")


def _among(name: str, paths: list[str]) -> bool:
    return any(path == name or path.endswith("/" + name.lstrip("./@~")) for path in paths)


def _named(path: str, names: tuple[str, ...]) -> bool:
    return any(_among(name, [path]) for name in names)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:59] + "…"
