"""Claude Code's tools: what a call is asked with, and what comes back."""

from __future__ import annotations

from typing import Any

from tools.samples.events import Call
from tools.samples.story import encode
from tools.samples.tree import hunks_of

Record = dict[str, Any]

_NAMES = {
    "read": "Read",
    "grep": "Grep",
    "shell": "Bash",
    "edit": "Edit",
    "write": "Write",
    "todo": "TodoWrite",
    "ask": "AskUserQuestion",
    "task": "Task",
}
_REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it "
    "was a file edit, the new_string was NOT written to the file). "
)
_STOP = "STOP what you are doing and wait for the user to tell you how to proceed."
_SAID = "To tell you how to proceed, the user said:\n"
_TODOS_SET = (
    "Todos have been modified successfully. Ensure that you continue to use the todo list to "
    "track your progress. Please proceed with the current tasks if applicable"
)
_SHORT_FILE = 2_000


def tool_name(call: Call) -> str:
    """Return the tool's name."""
    return _NAMES[call.kind]


def call_input(call: Call, cwd: str) -> Record:
    """Return the arguments of a call."""
    path = f"{cwd}/{call.path}"
    match call.kind:
        case "read":
            whole = call.first_line == 1 and call.output.count("\n") + 1 == call.total_lines
            window = {"offset": call.first_line, "limit": call.output.count("\n") + 1}
            return {"file_path": path} if whole or not call.output else {"file_path": path} | window
        case "grep":
            where = {"path": path} if call.path else {}
            return {"pattern": call.pattern, **where, "output_mode": "content", "-n": True}
        case "shell":
            return {"command": call.command, "description": _described(call.command)}
        case "edit":
            return {
                "file_path": path,
                "old_string": call.old,
                "new_string": call.new,
                "replace_all": False,
            }
        case "write":
            return {"file_path": path, "content": call.after}
        case "todo":
            return {"todos": _todos(call)}
        case "ask":
            return {"questions": _questions(call)}
        case "task":
            return {
                "description": call.description,
                "prompt": call.prompt,
                "subagent_type": call.agent,
            }


def call_result(call: Call, cwd: str, agent: str) -> tuple[Any, Any, bool]:
    """Return what the model is told, the ``toolUseResult`` beside it, and whether it failed."""
    if call.outcome == "interrupted" or (call.outcome == "rejected" and not call.reason):
        return _REFUSED + _STOP, "User rejected tool use", True
    if call.outcome == "rejected":
        told = _REFUSED + _SAID + call.reason
        return told, f"Error: {told}", True
    if call.outcome == "failed":
        if call.kind == "shell":
            told = f"Exit code {call.exit_code or 1}\n{call.output}".rstrip()
            return told, f"Error: {told}", True
        return f"<tool_use_error>{call.reason}</tool_use_error>", f"Error: {call.reason}", True
    told, detail = _went_well(call, f"{cwd}/{call.path}", agent)
    return told, detail, False


def _went_well(call: Call, path: str, agent: str) -> tuple[Any, Any]:
    match call.kind:
        case "read":
            return _read(call, path)
        case "grep":
            hits = call.output or "No matches found"
            count = call.output.count("\n") + 1 if call.output else 0
            detail = {"mode": "content", "numFiles": 0, "filenames": [], "content": call.output}
            return hits, {**detail, "numLines": count}
        case "shell":
            output = {"stdout": call.output, "stderr": "", "interrupted": False, "isImage": False}
            return call.output or "(Bash completed with no output)", output
        case "edit" | "write":
            return _changed(call, path)
        case "todo":
            return _TODOS_SET, {"oldTodos": [], "newTodos": _todos(call)}
        case "ask":
            answers = {call.question: call.answer}
            told = f'User has answered your questions: "{call.question}"="{call.answer}". '
            told += "You can now continue with the user's answers in mind."
            return told, {"questions": _questions(call), "answers": answers}
        case "task":
            return _reported(call, agent)


def _read(call: Call, path: str) -> tuple[Any, Any]:
    lines = call.output.split("\n")
    told = "\n".join(f"{number:6d}→{line}" for number, line in enumerate(lines, call.first_line))
    file = {
        "filePath": path,
        "content": call.output,
        "numLines": len(lines),
        "startLine": call.first_line,
        "totalLines": call.total_lines,
    }
    return told, {"type": "text", "file": file}


def _changed(call: Call, path: str) -> tuple[Any, Any]:
    before = call.before
    patch = [
        {
            "oldStart": hunk.old_start,
            "oldLines": hunk.old_lines,
            "newStart": hunk.new_start,
            "newLines": hunk.new_lines,
            "lines": list(hunk.lines),
        }
        for hunk in (hunks_of(before, call.after) if before is not None else [])
    ]
    original = before if before is not None and len(before) <= _SHORT_FILE else None
    if call.kind == "write":
        kind, verb = ("update", "updated") if before is not None else ("create", "created")
        told = (
            f"The file {path} has been {verb} successfully."
            if before is not None
            else f"File created successfully at: {path}"
        )
        detail: Record = {"type": kind, "filePath": path, "content": call.after}
        return told, {**detail, "structuredPatch": patch, "originalFile": original}
    detail = {
        "filePath": path,
        "oldString": call.old,
        "newString": call.new,
        "originalFile": original,
        "structuredPatch": patch,
        "userModified": False,
        "replaceAll": False,
    }
    return f"The file {path} has been updated successfully.", detail


def _reported(call: Call, agent: str) -> tuple[Any, Any]:
    report = {"type": "text", "text": call.output}
    spent = 9_000 + sum(len(encode(event_text)) for event_text in _texts(call)) // 3
    uses = sum(len(getattr(event, "calls", ())) for event in call.events)
    began = call.events[0].at if call.events else call.at
    took = round((call.at - began).total_seconds() * 1000)
    tail = (
        f"agentId: {agent} (for resuming to continue this agent's work if needed)\n"
        f"<usage>total_tokens: {spent}\ntool_uses: {uses}\nduration_ms: {took}</usage>"
    )
    detail = {
        "status": "completed",
        "prompt": call.prompt,
        "agentId": agent,
        "content": [report],
        "totalDurationMs": took,
        "totalTokens": spent,
        "totalToolUseCount": uses,
    }
    return [report, {"type": "text", "text": tail}], detail


def _texts(call: Call) -> list[str]:
    found = [call.prompt, call.output]
    for event in call.events:
        found += [inner.output for inner in getattr(event, "calls", ())]
    return found


def _todos(call: Call) -> list[Record]:
    return [
        {"content": todo.text, "status": todo.status, "activeForm": todo.text}
        for todo in call.todos
    ]


def _questions(call: Call) -> list[Record]:
    options = [{"label": label, "description": text} for label, text in call.options]
    return [
        {
            "question": call.question,
            "header": call.header,
            "options": options,
            "multiSelect": False,
        }
    ]


def _described(command: str) -> str:
    """Return the few words that the model puts beside a command."""
    word = command.split()[0]
    known = {
        "pytest": "Run the tests",
        "npx": "Run the front end's tools",
        "npm": "Run a package script",
        "git": "Look at the repository",
        "ruff": "Lint the code",
        "mypy": "Check types",
        "ls": "List files",
        "cat": "Show a file",
        "python": "Run Python",
        "make": "Run a make target",
        "curl": "Call the service",
    }
    return known.get(word, f"Run {word}")
