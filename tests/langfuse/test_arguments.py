"""Arguments of calls, however they were written down."""

from __future__ import annotations

import pytest

from debrief.langfuse.chat import said_by


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"b": 1, "a": [2]}', '{"b":1,"a":[2]}'),
        ({"a": 1}, '{"a":1}'),
        ("", "{}"),
        (None, "{}"),
        ("*** Begin Patch", '{"input":"*** Begin Patch"}'),
        ('{"cut": "sho', '{"input":"{\\"cut\\": \\"sho"}'),
        ("[1, 2]", '{"input":[1,2]}'),
        ('{"a": NaN}', '{"a":null}'),
        ('{"a": "\\ud800"}', '{"a":"\ufffd"}'),
    ],
)
def test_arguments_are_an_object_whatever_came(arguments: object, told: str) -> None:
    entry = {"id": "c1", "function": {"name": "read", "arguments": arguments}}
    (said,) = said_by({"role": "assistant", "tool_calls": [entry]})
    assert said.calls[0].arguments == told
