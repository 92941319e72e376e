"""A tool's own schema in the form that every line has: three keys, and everything in its place."""

from __future__ import annotations

from collections.abc import Mapping

from debrief.sessions.model import DeclaredTool
from debrief.training.formats import function_name, label, parsed_arguments, whole_text
from debrief.training.model import Schema, ToolFunction, ToolParameters, ToolSchema

UNDESCRIBED = "A tool of this session, its arguments as they were used."

_DEFINITIONS = ("$defs", "definitions")
_MOST_INLINED, _DEEPEST = 5_000, 64
"""Values out of definitions, after which no more are written out, as they may use each other so
often that it would take forever."""


def schema_of(tool: DeclaredTool) -> ToolSchema | None:
    """Return a tool's schema as it is declared; None when its arguments are not.

    What its arguments refer to is written out where they do, as a line has no room for
    definitions beside them.
    """
    declared = parsed_arguments(tool.parameters)
    if declared is None:
        return None
    properties = declared.get("properties")
    required = declared.get("required")
    inlined = _Inlined(declared)
    schemas = {
        whole_text(name): inlined.schema(value)
        for name, value in (properties if isinstance(properties, dict) else {}).items()
    }
    names = required if isinstance(required, list) else []
    return ToolSchema(
        function=ToolFunction(
            name=function_name(tool.name),
            description=label(whole_text(tool.description)) or UNDESCRIBED,
            parameters=ToolParameters(
                properties=schemas,
                required=tuple(
                    dict.fromkeys(
                        name for name in names if isinstance(name, str) and name in schemas
                    )
                ),
            ),
        )
    )


class _Inlined:
    """Writes out what schemas refer to.

    Where that has no end, as with a definition that holds itself, the empty schema stands, which
    any value fits.
    """

    def __init__(self, declared: Mapping[str, object]) -> None:
        self._definitions = {
            f"#/{key}/{name}": schema
            for key in _DEFINITIONS
            if isinstance(found := declared.get(key), dict)
            for name, schema in found.items()
        }
        self._left = _MOST_INLINED

    def schema(self, value: object) -> Schema:
        """Return the schema of one argument; ``true``, which any value fits, as the empty one."""
        found = self._written_out(value, (), _DEEPEST)
        return found if isinstance(found, dict) else {}

    def _written_out(self, value: object, within: tuple[str, ...], depth: int) -> object:
        if within and isinstance(value, list | dict):
            self._left -= len(value)
        if isinstance(value, list):
            return [self._written_out(item, within, depth - 1) for item in value] if depth else []
        if not isinstance(value, dict):
            return value
        if not depth:
            return {}
        reference = value.get("$ref")
        beside = {
            key: self._written_out(item, within, depth - 1)
            for key, item in value.items()
            if key != "$ref" or not isinstance(item, str)
        }
        if not isinstance(reference, str) or reference in within or self._left <= 0:
            return beside
        self._left -= 1
        definition = self._definitions.get(reference)
        found = self._written_out(definition, (*within, reference), depth - 1)
        return {**found, **beside} if isinstance(found, dict) else beside
