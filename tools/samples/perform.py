"""Performs a script on a working tree: out come the events that a tool would have seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec.structs import replace

from debrief.errors import InputError
from tools.samples import chance
from tools.samples.events import (
    ApiError,
    Call,
    CallOutcome,
    Compaction,
    Event,
    Interruption,
    Prompt,
    Queued,
    Reply,
    SlashCommand,
    Todo,
)
from tools.samples.material import fill
from tools.samples.outputs import parse_run, print_run
from tools.samples.script import TOOLS, Step
from tools.samples.tree import WorkingTree, split_change

_OUTCOMES: dict[str, CallOutcome] = {
    "": "ok",
    "fails": "failed",
    "refuse": "rejected",
    "interrupt": "interrupted",
}
_OPTIONS = re.compile(r"(pause|exit|lines|took)=(\S+)\s*")
_TODO: dict[str, Literal["pending", "in_progress", "completed"]] = {
    "[ ]": "pending",
    "[>]": "in_progress",
    "[x]": "completed",
}


class Performance:
    """One story being played; the clock and the counters run through its subagents too."""

    def __init__(self, name: str, tree: WorkingTree, root: str, start: datetime) -> None:
        self.name = name
        self.tree = tree
        self.root = root
        self.now = start
        self.calls = 0
        self.replies = 0
        self.prompts = 0

    def play(self, steps: Sequence[Step]) -> tuple[Event, ...]:
        """Play the steps in order, and return what happened."""
        events: list[Event] = []
        index = 0
        while index < len(steps):
            step = steps[index]
            if step.verb in TOOLS or step.verb in {"say", "think"}:
                index = self._reply(steps, index, events)
                continue
            events.append(self._act(step))
            index += 1
        return tuple(events)

    def _act(self, step: Step) -> Event:
        options, argument = _options(step.argument)
        body = fill(step.body)
        match step.verb:
            case "user":
                self.prompts += 1
                if self.prompts > 1:
                    pause = options.get("pause")
                    drawn = chance.number(15, 240, self.name, "pause", self.prompts)
                    self._wait(float(pause) * 60 if pause else drawn)
                return Prompt(text=body, at=self.now)
            case "queue":
                self._wait(4)
                return Queued(text=body, at=self.now)
            case "slash":
                self._wait(30)
                return SlashCommand(command=argument, output=body, at=self.now)
            case "compact":
                self._wait(45)
                trigger: Literal["auto", "manual"] = "manual" if argument == "manual" else "auto"
                return Compaction(summary=body, trigger=trigger, at=self.now)
            case "apierror":
                self._wait(6)
                return ApiError(status=int(argument), at=self.now)
            case "interrupt":
                self._wait(5)
                return Interruption(during_call=False, at=self.now)
            case _:
                raise InputError(f"{self.name}:{step.line}", f"unknown verb {step.verb!r}")

    def _reply(self, steps: Sequence[Step], index: int, events: list[Event]) -> int:
        """Gather one message of the model, its words first; return where the next step is."""
        words = {"think": "", "say": ""}
        while index < len(steps) and steps[index].verb in words and not words[steps[index].verb]:
            words[steps[index].verb] = fill(steps[index].body)
            index += 1
            if steps[index - 1].verb == "say":
                break
        self.replies += 1
        number = self.replies
        length = len(words["think"]) + len(words["say"])
        at = self._wait(2.5 + length / 220 + 4 * chance.fraction(self.name, "reply", number))
        calls: list[Call] = []
        first = True
        while index < len(steps) and steps[index].verb in TOOLS and (first or steps[index].joined):
            call, index = self._call(steps, index)
            calls.append(call)
            first = False
        after = steps[index].verb if index < len(steps) else "user"
        events.append(
            Reply(
                number=number,
                thinking=words["think"],
                text=words["say"],
                calls=tuple(calls),
                at=at,
                ends_turn=not calls and after not in TOOLS | {"say", "think", "interrupt"},
            )
        )
        if calls and calls[-1].outcome == "interrupted":
            events.append(Interruption(during_call=True, at=self._wait(0.1)))
        return index

    def _call(self, steps: Sequence[Step], index: int) -> tuple[Call, int]:
        step = steps[index]
        self.calls += 1
        number = self.calls
        options, argument = _options(step.argument)
        inner: Sequence[Step] = ()
        report = ""
        if step.verb == "task":
            end = next((i for i in range(index + 1, len(steps)) if steps[i].verb == "report"), None)
            if end is None:
                raise InputError(f"{self.name}:{step.line}", "a task has no report")
            inner, report, index = steps[index + 1 : end], fill(steps[end].body), end
        blank = Call(
            number=number,
            kind="shell",
            outcome=_OUTCOMES[step.outcome],
            at=self.now,
            reason=fill(step.reason),
        )
        call = self._made(blank, step, argument, options)
        if step.verb == "task":
            call = replace(call, events=self.play(inner), output=report)
        spent = {"shell": 4.0, "task": 2.0, "ask": 35.0}.get(call.kind, 0.2)
        took = spent * (0.4 + chance.fraction(self.name, "call", number))
        took += float(options.get("took", 0))
        if call.outcome in {"rejected", "interrupted"}:
            took += chance.number(6, 50, self.name, "refused", number)
        return replace(call, at=self._wait(took)), index + 1

    def _made(self, blank: Call, step: Step, argument: str, options: dict[str, str]) -> Call:
        """Return the call of a step, having done to the tree what the call does."""
        body = fill(step.body)
        happens = blank.outcome == "ok"
        match step.verb:
            case "read":
                text = self.tree.read(argument) if blank.outcome != "failed" else ""
                lines = text.split("\n")
                first, last = map(int, options.get("lines", f"1-{len(lines)}").split("-"))
                shown = "\n".join(lines[first - 1 : last])
                return replace(
                    blank,
                    kind="read",
                    path=argument,
                    output=shown,
                    first_line=first,
                    total_lines=len(lines),
                )
            case "grep":
                pattern, _, under = argument.partition(" :: ")
                hits = self.tree.search(pattern, under)
                output = "\n".join(f"{path}:{line}:{text}" for path, line, text in hits)
                return replace(blank, kind="grep", pattern=pattern, path=under, output=output)
            case "run":
                code = int(options.get("exit", 0))
                return replace(
                    blank, command=argument, output=body, exit_code=code, outcome=_ran(blank, code)
                )
            case "tests":
                run = parse_run(body)
                seconds = float(options.get("took", 0)) or 0.3 + len(body) / 400
                output = print_run(argument, run, self.root, seconds)
                code = run.exit_code
                return replace(
                    blank,
                    command=argument,
                    output=output,
                    exit_code=code,
                    outcome=_ran(blank, code),
                )
            case "edit":
                old, new = split_change(body)
                call = replace(blank, kind="edit", path=argument, old=old, new=new)
                if not happens:
                    return call
                before, after = self.tree.replace(argument, old, new)
                return replace(call, before=before, after=after)
            case "write":
                before_write = self.tree.files.get(argument)
                text = body + "\n"
                if happens:
                    self.tree.files[argument] = text
                return replace(blank, kind="write", path=argument, before=before_write, after=text)
            case "todo":
                todos = tuple(Todo(line[4:], _TODO[line[:3]]) for line in body.split("\n"))
                return replace(blank, kind="todo", todos=todos)
            case "ask":
                return _question(blank, argument, body)
            case _:
                agent, _, description = argument.partition(" :: ")
                return replace(
                    blank, kind="task", agent=agent, description=description, prompt=body
                )

    def _wait(self, seconds: float) -> datetime:
        self.now += timedelta(milliseconds=round(seconds * 1000))
        return self.now


def _ran(blank: Call, code: int) -> CallOutcome:
    return "failed" if code and blank.outcome == "ok" else blank.outcome


def _question(blank: Call, header: str, body: str) -> Call:
    question, *rest = body.split("\n")
    options = []
    answer = ""
    for line in rest:
        if line.startswith("* "):
            answer = line[2:]
        else:
            label, _, description = line.removeprefix("- ").partition(": ")
            options.append((label, description))
    return replace(
        blank,
        kind="ask",
        header=header,
        question=question,
        options=tuple(options),
        answer=answer,
    )


def _options(argument: str) -> tuple[dict[str, str], str]:
    """Split leading ``name=value`` words off an argument."""
    options: dict[str, str] = {}
    while found := _OPTIONS.match(argument):
        options[found[1]] = found[2]
        argument = argument[found.end() :]
    return options, argument
