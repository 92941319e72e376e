"""The ``tools`` of a line: what the session's agent could call, as JSON schemas.

A transcript names the tools but seldom describes them. Those of the usual agents are in a table
below; of others the calls in the session tell which arguments there are, of which type, and
which are always given.

Each schema has the same three keys, and ``properties`` is the one place where lines differ. A
loader makes that a free-form column when it sees two tools with different properties, and a fixed
record, into which no other file fits, when it does not. So a line in which all tools take the
same arguments gets one more tool that its agent has as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from debrief.training.formats import function_name, whole_text
from debrief.training.model import Schema, ToolFunction, ToolParameters, ToolSchema

Arguments = Mapping[str, object]

_UNDESCRIBED = "A tool of this session, its arguments as they were used."


class _Known(Struct, frozen=True):
    """A tool whose arguments are known: ``path*`` is required, ``:`` names a type other than
    string, ``[]`` an array of it."""

    description: str
    arguments: str = ""


class _DeclaredFunction(Struct, frozen=True):
    name: str
    description: str = ""
    parameters: ToolParameters = ToolParameters()


class _Declared(Struct, frozen=True):
    function: _DeclaredFunction


_DECLARED = msgspec.json.Decoder(list[_Declared])

_CLAUDE_CODE: dict[str, _Known] = {
    "Bash": _Known(
        "Run a shell command.",
        "command* description timeout:number run_in_background:boolean",
    ),
    "Read": _Known("Read a file.", "file_path* offset:number limit:number pages"),
    "Edit": _Known(
        "Replace a text in a file.", "file_path* old_string* new_string* replace_all:boolean"
    ),
    "MultiEdit": _Known("Make several replacements in a file.", "file_path* edits*:object[]"),
    "Write": _Known("Write a file.", "file_path* content*"),
    "NotebookEdit": _Known(
        "Edit a cell of a notebook.",
        "notebook_path* new_source* cell_id cell_number:number cell_type edit_mode",
    ),
    "Glob": _Known("Find files by a pattern.", "pattern* path"),
    "Grep": _Known(
        "Search the contents of files.",
        "pattern* path glob output_mode -A:number -B:number -C:number context:number "
        "-n:boolean -i:boolean type head_limit:number offset:number multiline:boolean",
    ),
    "LS": _Known("List a folder.", "path* ignore:string[]"),
    "Task": _Known(
        "Hand work to a subagent.",
        "description* prompt* subagent_type model run_in_background:boolean name team_name",
    ),
    "Agent": _Known(
        "Hand work to a subagent.",
        "description* prompt* subagent_type model run_in_background:boolean name isolation",
    ),
    "TodoWrite": _Known("Write the list of things to do.", "todos*:object[]"),
    "TaskCreate": _Known("Add a task to the list.", "subject* description activeForm"),
    "TaskUpdate": _Known("Change a task of the list.", "taskId* status subject owner"),
    "TaskGet": _Known("Look at a task of the list.", "taskId*"),
    "TaskList": _Known("Look at the list of tasks."),
    "TaskOutput": _Known(
        "Read what a background task printed.", "task_id* block:boolean timeout:number"
    ),
    "TaskStop": _Known("Stop a background task.", "task_id*"),
    "BashOutput": _Known("Read what a background command printed.", "bash_id* filter"),
    "KillShell": _Known("Stop a background command.", "shell_id*"),
    "KillBash": _Known("Stop a background command.", "shell_id*"),
    "WebFetch": _Known("Fetch a page and ask about it.", "url* prompt*"),
    "WebSearch": _Known(
        "Search the web.", "query* allowed_domains:string[] blocked_domains:string[]"
    ),
    "Skill": _Known("Use a skill.", "skill* args"),
    "AskUserQuestion": _Known("Ask the person.", "questions*:object[]"),
    "EnterPlanMode": _Known("Start to plan."),
    "ExitPlanMode": _Known("Show the plan to the person.", "plan"),
}
_DROID: dict[str, _Known] = {
    "Execute": _Known("Run a shell command.", "command* timeout:number riskLevel"),
    "Read": _Known("Read a file.", "file_path* offset:number limit:number"),
    "LS": _Known("List a folder.", "directory_path ignorePatterns:string[]"),
    "Create": _Known("Create a file.", "file_path* content*"),
    "Edit": _Known("Replace a text in a file.", "file_path* old_str* new_str*"),
    "ApplyPatch": _Known("Apply a patch.", "input*"),
    "Glob": _Known("Find files by patterns.", "patterns*:string[] folder"),
    "Grep": _Known("Search the contents of files.", "pattern* path output_mode"),
    "TodoWrite": _Known("Write the list of things to do.", "todos*"),
    "WebSearch": _Known("Search the web.", "query*"),
    "FetchUrl": _Known("Fetch a page.", "url*"),
}
_CODEX: dict[str, _Known] = {
    "shell": _Known("Run a command.", "command*:string[] workdir timeout_ms:number"),
    "exec_command": _Known("Run a shell command.", "cmd* workdir yield_time_ms:number"),
    "apply_patch": _Known("Apply a patch.", "input*"),
    "update_plan": _Known("Write the plan.", "plan*:object[] explanation"),
}
_RECORDER: dict[str, _Known] = {
    "repo.readFile": _Known("Read a file of the repository.", "path*"),
    "apply_patch": _Known("Create, change or delete files.", "ops*:object[]"),
    "run_cmd": _Known("Run a command.", "cmd* args:string[] cwd"),
}
_OF_ANY_AGENT: dict[str, _Known] = {
    "ask_user": _Known("Ask the person.", "question*"),
    "report_to_user": _Known("Tell the person something.", "message*"),
}
_TABLES: dict[str, dict[str, _Known]] = {
    "claude-code": _CLAUDE_CODE,
    "droid": _DROID,
    "codex": _CODEX,
    "recorder": _RECORDER,
}


def tool_schemas(agent: str, calls: Iterable[tuple[str, Arguments]]) -> tuple[ToolSchema, ...]:
    """Return the schemas of the tools that a session called, by name.

    Args:
        agent: the session's ``tool``, such as ``claude-code``.
        calls: each call's tool, as the transcript names it, and its arguments.
    """
    known = _TABLES.get(agent, {})
    described = {function_name(name): entry for name, entry in known.items()}
    seen: dict[str, list[Arguments]] = {}
    for name, arguments in calls:
        seen.setdefault(function_name(name), []).append(arguments)
    tools = {name: _schema(name, described.get(name), calls) for name, calls in seen.items()}
    for name, entry in [*described.items(), *_OF_ANY_AGENT.items()]:
        if _all_alike(tools.values()):
            tools.setdefault(name, _schema(name, entry, []))
    return tuple(tools[name] for name in sorted(tools))


def declared_schemas(
    declared: str, calls: Iterable[tuple[str, Arguments]]
) -> tuple[ToolSchema, ...]:
    """Return the schemas that a transcript itself declares, by name; empty when they will not do.

    They do when they describe every call, and when a loader can read their types.

    Args:
        declared: JSON text of a list, as in OpenAI's ``tools``.
        calls: each call's tool, as the transcript names it, and its arguments.
    """
    try:
        found = _DECLARED.decode(declared)
    except msgspec.DecodeError:
        return ()
    tools = {
        name: ToolSchema(
            function=ToolFunction(
                name=name,
                description=tool.function.description or _UNDESCRIBED,
                parameters=ToolParameters(
                    properties=dict(tool.function.parameters.properties),
                    required=tuple(tool.function.parameters.required),
                ),
            )
        )
        for tool in found
        for name in (function_name(tool.function.name),)
    }
    for name, arguments in calls:
        tool = tools.get(function_name(name))
        if tool is None or set(arguments) - tool.function.parameters.properties.keys():
            return ()
    if len(tools) < len(found) or _all_alike(tools.values()):
        return ()
    return tuple(tools[name] for name in sorted(tools))


def _all_alike(tools: Iterable[ToolSchema]) -> bool:
    """Tell whether a loader could take ``properties`` for a fixed record, or has no required
    argument to read that list's type off."""
    parameters = [tool.function.parameters for tool in tools]
    shapes = {frozenset(item.properties) for item in parameters}
    return len(shapes) < 2 or not any(item.required for item in parameters)


def _schema(name: str, known: _Known | None, calls: list[Arguments]) -> ToolSchema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for word in known.arguments.split() if known else ():
        argument, _, kind = word.partition(":")
        argument_name = argument.rstrip("*")
        properties[argument_name] = _of_kind(kind or "string")
        if argument.endswith("*"):
            required.append(argument_name)
    given = {whole_text(key) for arguments in calls for key in arguments}
    for key in sorted(given - properties.keys()):
        properties[key] = _inferred([call[key] for call in calls if key in call])
    if known is None:
        required = sorted(key for key in given if all(key in call for call in calls))
    return ToolSchema(
        function=ToolFunction(
            name=name,
            description=known.description if known else _UNDESCRIBED,
            parameters=ToolParameters(properties=properties, required=tuple(required)),
        )
    )


def _of_kind(kind: str) -> Schema:
    if kind.endswith("[]"):
        return {"type": "array", "items": {"type": kind[:-2]}}
    return {"type": kind}


def _inferred(values: list[object]) -> Schema:
    """Return the schema that holds for all of ``values``; the empty one when they differ."""
    kinds = {_kind(value) for value in values if value is not None}
    if kinds == {"integer", "number"}:
        kinds = {"number"}
    if len(kinds) != 1:
        return {}
    kind = kinds.pop()
    if kind != "array":
        return {"type": kind}
    items = [item for value in values if isinstance(value, list) for item in value]
    return {"type": "array", "items": _inferred(items)}


def _kind(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
