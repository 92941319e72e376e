"""The three tools of a record, as a model is told of them. They never change."""

from __future__ import annotations

from debrief.recorder.contracts import APPLY_PATCH, READ_FILE, RUN_COMMAND, ToolDefinition

_PATH = {"type": "string", "description": "Path of the file, relative to the repository's root."}
_MODE = {
    "type": "string",
    "enum": ["100644", "100755", "120000"],
    "description": "Git mode, where it matters: executable 100755, symbolic link 120000.",
}


def _tool(
    name: str, description: str, properties: dict[str, object], required: list[str]
) -> ToolDefinition:
    parameters = _closed(properties, required)
    return ToolDefinition(
        function={"name": name, "description": description, "parameters": parameters}
    )


def _closed(properties: dict[str, object], required: list[str]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _operation(kind: str, **more: object) -> dict[str, object]:
    properties = {"type": {"type": "string", "enum": [kind]}, "path": _PATH, **more}
    return _closed(properties, [name for name in properties if name != "mode"])


TOOLS: tuple[ToolDefinition, ...] = (
    _tool(READ_FILE, "Read the whole text of a file.", {"path": _PATH}, ["path"]),
    _tool(
        APPLY_PATCH,
        "Create, update and delete files, all at once.",
        {
            "ops": {
                "type": "array",
                "items": {
                    "anyOf": [
                        _operation(
                            "create_file",
                            diff={"type": "string", "description": "The file's whole text."},
                            mode=_MODE,
                        ),
                        _operation(
                            "update_file",
                            diff={
                                "type": "string",
                                "description": "Unified hunks, from the first @@ on.",
                            },
                            mode=_MODE,
                        ),
                        _operation("delete_file"),
                    ]
                },
            }
        },
        ["ops"],
    ),
    _tool(
        RUN_COMMAND,
        "Run a command of the package manager.",
        {
            "cmd": {"type": "string", "enum": ["pnpm"]},
            "args": {"type": "array", "items": {"type": "string"}},
            "cwd": {
                "type": "string",
                "description": "Folder to run it in, relative to the repository's root.",
            },
        },
        ["cmd", "args", "cwd"],
    ),
)
"""Definitions that stand in every record, in this order."""
