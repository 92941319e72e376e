"""Tool calls as pages show them: a title, a diff, a list of things to do, or named arguments."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import orjson
from msgspec import Struct

from debrief.sessions.model import ToolCall
from debrief.sessions.readers.edit_arguments import NEW, OLD, WHOLE
from debrief.signals.shell import arguments

CallKind = Literal[
    "shell", "edit", "read", "search", "todo", "web", "subagent", "question", "plan", "other"
]
LineKind = Literal["added", "removed", "hunk", "same"]
_SUBJECTS = ("query", "pattern", "search_term", "url", "skill", "subject", "description", "prompt")
_TITLE = 160


class DiffLine(Struct, frozen=True, gc=False):
    """One line of an edit."""

    kind: LineKind
    text: str


class Item(Struct, frozen=True, gc=False):
    """One entry of a list of things to do."""

    state: str
    """``done``, ``doing`` or ``open``."""
    text: str


class Field(Struct, frozen=True, gc=False):
    """An argument, or what else is shown of a call, with its name."""

    name: str
    text: str


class ShownCall(Struct, frozen=True, kw_only=True):
    """What a page shows of a call, beside its result."""

    kind: CallKind
    title: str
    """On one line: the command, the file, what was searched for."""
    note: str = ""
    """What the model said that the call is for."""
    command: str = ""
    diff: tuple[DiffLine, ...] = ()
    items: tuple[Item, ...] = ()
    text: str = ""
    """Markdown: a plan, a question, the prompt of a subagent."""
    fields: tuple[Field, ...] = ()


def shown_call(call: ToolCall, cwd: str = "", *, has_agent: bool = False) -> ShownCall:
    """Return what is shown of a call.

    Args:
        call: the call.
        cwd: the session's folder, which paths are shown without.
        has_agent: a subagent's work belongs to it.
    """
    given: Mapping[str, Any] = arguments(call)
    note = _text(given, "description", "explanation", "justification")
    if call.command:
        return ShownCall(kind="shell", title=_line(call.command), note=note, command=call.command)
    path = short_path(call.path or next(iter(call.paths), ""), cwd)
    proposed = _proposed(given) if call.action == "edit" else ()
    diff = tuple(diff_lines(call.patch)) or tuple(proposed)
    if diff:
        return ShownCall(kind="edit", title=_line(path) or _line(_paths_in(diff)), diff=diff)
    if call.action == "read":
        where = [f"{name} {given[name]}" for name in ("offset", "limit") if name in given]
        return ShownCall(kind="read", title=_line(", ".join([path, *where])))
    if call.action == "search":
        title = " in ".join(filter(None, [_text(given, *_SUBJECTS), path]))
        fields = tuple(_fields(given)) if len(given) > 1 else ()
        return ShownCall(kind="search", title=_line(title), fields=fields)
    if call.action == "plan" and isinstance(given.get("plan"), str):
        plan = given["plan"]
        return ShownCall(kind="plan", title=_line(plan.strip("# ")), text=plan)
    items = tuple(_items(given)) if call.action == "plan" else ()
    if items:
        done = sum(item.state == "done" for item in items)
        title = f"{done} of {len(items)} done" if len(items) > 1 else items[0].text
        return ShownCall(kind="todo", title=_line(title), items=items)
    if has_agent or (call.action == "delegate" and isinstance(given.get("prompt"), str)):
        prompt = _text(given, "prompt", "task", "message")
        return ShownCall(kind="subagent", title=_line(note or prompt), text=prompt)
    if call.action == "ask":
        return ShownCall(kind="question", title=_line(_question(given)), text=_questions(given))
    title = _line(_text(given, *_SUBJECTS) or path)
    kind: CallKind = "web" if call.action == "web" else "other"
    fields = tuple(_fields(given)) if given else (Field("input", call.input),)
    is_said = call.input == "{}" or (len(fields) == 1 and fields[0].text == title)
    return ShownCall(kind=kind, title=title, fields=() if is_said else fields)


def short_path(path: str, cwd: str) -> str:
    """Return a path without the session's folder."""
    return path.removeprefix(f"{cwd.rstrip('/')}/") if cwd.strip("/") else path


def diff_lines(patch: str) -> Iterator[DiffLine]:
    """Yield the lines of unified hunks, or of a patch as models write them."""
    kinds: dict[str, LineKind] = {"+": "added", "-": "removed", "@": "hunk", "*": "hunk"}
    for line in patch.split("\n") if patch else ():
        kind = kinds.get(line[:1], "same")
        yield DiffLine(kind, line if kind == "hunk" else line[1:])


def _proposed(given: Mapping[str, Any]) -> Iterator[DiffLine]:
    """Yield the lines of an edit that nothing came of, by the call's own arguments."""
    patch = _text(given, "input", "patch", "diff")
    if patch.startswith(("*** Begin Patch", "@@", "--- ")):
        yield from diff_lines(patch)
        return
    edits = given.get("edits")
    for edit in [edit for edit in edits if isinstance(edit, dict)] if edits else [given]:
        old, new = _text(edit, *OLD), _text(edit, *NEW, "new_source")
        if not old and not new:
            new = _text(edit, *WHOLE, "code")
        lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3)
        yield from diff_lines("\n".join([*lines][2:]))


def _paths_in(diff: Iterable[DiffLine]) -> str:
    files = (re.match(r"\*\*\* \w+ File: (.+)", line.text) for line in diff)
    return ", ".join(found[1] for found in files if found)


def _items(given: Mapping[str, Any]) -> Iterator[Item]:
    lists = (given.get(name) for name in ("todos", "plan", "steps", "todoList", "items"))
    listed = next((each for each in lists if each), None)
    if isinstance(listed, str):
        for line in listed.split("\n"):
            found = re.match(r"\W*(?:\d+\.\s*)?\[(\w+|x| |X)?\]\s*(.+)", line)
            yield Item(_state(found[1] or ""), found[2]) if found else Item("open", line)
    elif isinstance(listed, list):
        for each in listed:
            if isinstance(each, dict):
                text = _text(each, "content", "step", "title", "text", "description")
                yield Item(_state(str(each.get("status", ""))), text)
    elif "subject" in given or "taskId" in given:
        name = _text(given, "subject") or f"Task {given.get('taskId')}"
        yield Item(_state(_text(given, "status")), name)


def _state(status: str) -> str:
    said = status.lower()
    if said in ("completed", "done", "x"):
        return "done"
    return "doing" if said in ("in_progress", "in-progress", "doing", "active") else "open"


def _questions(given: Mapping[str, Any]) -> str:
    """Return what the person was asked, with the answers offered, as Markdown."""
    asked = given.get("questions")
    parts = []
    for each in asked if isinstance(asked, list) else [given]:
        if isinstance(each, dict):
            parts.append(_text(each, "question", "header"))
            offered = each.get("options") or each.get("choices") or []
            for one in offered if isinstance(offered, list) else []:
                words = _text(one, "label", "description") if isinstance(one, dict) else str(one)
                parts.append(f"- {words}")
    return "\n".join(parts)


def _question(given: Mapping[str, Any]) -> str:
    return _questions(given).partition("\n")[0]


def _fields(given: Mapping[str, Any]) -> Iterator[Field]:
    """Yield each argument with its value, text as it is and anything else as JSON."""
    for name, value in given.items():
        if isinstance(value, str):
            yield Field(name, value)
            continue
        try:
            yield Field(name, orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
        except orjson.JSONEncodeError:
            yield Field(name, "(nested too deeply to be shown)")


def _text(given: Mapping[str, Any], *names: str) -> str:
    """Return the first of some arguments that is a text with something in it."""
    texts = (given.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _line(text: str) -> str:
    """Return the first line of a text, as far as a title goes."""
    line = " ".join(text.strip()[: 4 * _TITLE].split("\n", 1)[0].split())
    return line if len(line) <= _TITLE else f"{line[:_TITLE]}…"
