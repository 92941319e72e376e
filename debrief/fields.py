"""Names and values that people write by hand in front matter, in the part of YAML that is plain.

Tags and aliases are refused. Nobody needs them here, and they are what makes a reader of YAML run
programs, or grow without end.
"""

from __future__ import annotations

from typing import Any, NoReturn

import yaml

from debrief.errors import flat, shown

_LONGEST, _DEEPEST = 65_536, 10


class FieldsError(ValueError):
    """A text that is no list of names and values.

    Args:
        line: where it fails, from 1.
        reason: on one line.
    """

    def __init__(self, line: int, reason: str) -> None:
        self.line, self.reason = line, reason
        super().__init__(f"line {line}: {reason}")


class Fields(dict[str, Any]):
    """Values by name, in order."""

    lines: dict[str, int]
    """The line that each name is on, from 1."""


def fields_of(text: str) -> Fields:
    """Read names and values.

    Args:
        text: YAML, as between the two lines ``---`` of front matter.

    Raises:
        FieldsError: it is something else, has over 65,536 characters or ten levels, a tag or an
            alias, or a name twice.
    """
    if len(text) > _LONGEST:
        raise FieldsError(1, f"it has over {_LONGEST:,} characters")
    try:
        loader = _PlainLoader(text)
        node = loader.get_single_node()
        values = loader.construct_document(node) if node else None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        raise FieldsError(mark.line + 1 if mark else 1, flat(problem or error)) from error
    if node is None or not isinstance(values, dict):
        raise FieldsError(1, "it holds no fields")
    fields = Fields(values)
    fields.lines = {name.value: name.start_mark.line + 1 for name, _ in node.value}
    return fields


class _PlainLoader(yaml.SafeLoader):
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            _refuse("an alias (*) is not taken", event)
        if getattr(event, "tag", None) is not None:
            _refuse("a tag (!) is not taken", event)
        self._depth += 1
        if self._depth > _DEEPEST:
            _refuse(f"it is over {_DEEPEST} levels deep", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names: set[str] = set()
        for name, _ in node.value:
            if not isinstance(name, yaml.ScalarNode):
                _refuse("a name is no text", name)
            if name.value in names:
                _refuse(f"the field {shown(name.value)} is given twice", name)
            names.add(name.value)
            name.tag = self.DEFAULT_SCALAR_TAG  # a name is its text: 1 and true are names as well
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
            str(value)
        except ValueError:
            _refuse("there is no such date, or a number too long to be shown", node)
        return value


def _refuse(problem: str, at: Any) -> NoReturn:
    raise yaml.constructor.ConstructorError(None, None, problem, at.start_mark)
