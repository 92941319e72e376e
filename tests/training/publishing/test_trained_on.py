"""What ``make test-trainers`` takes for the same as what the model said."""

from __future__ import annotations

import json
from typing import Any

from tools.trainers.checks.words import says_the_same

SENDS = {"to": "bob", "tool": "tool_call", "message": "Round 2 is merged.\n", "copies": [1, True]}
ASKED = {
    "content": "Now bob.",
    "tool_calls": [
        {"function": {"name": "TaskUpdate", "arguments": {"taskId": "4"}}},
        {"function": {"name": "SendMessage", "arguments": json.dumps(SENDS)}},
    ],
}


def _run(*calls: tuple[str, dict[str, Any]], words: str = "Now bob.") -> str:
    """Return what Qwen's template makes of an answer."""
    written = (json.dumps({"name": name, "arguments": given}) for name, given in calls)
    marked = "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in written)
    return f"{words}\n{marked}<|im_end|>\n"


def test_keys_that_stand_in_markup_too_are_found_where_they_are_meant() -> None:
    run = _run(("TaskUpdate", {"taskId": "4"}), ("SendMessage", SENDS))
    assert says_the_same([run], [ASKED])
    assert says_the_same(["<|im_end|>\n", run], [ASKED]), "marks alone are nobody's words"


def test_what_lacks_a_part_or_has_another_is_not_the_same() -> None:
    first, second = ("TaskUpdate", {"taskId": "4"}), ("SendMessage", SENDS)
    for other in (
        _run(first),
        _run(second, first),
        _run(first, ("SendMessage", {**SENDS, "to": "alice"})),
        _run(first, ("SendMessage", {**SENDS, "copies": [1, True, 2]})),
        _run(first, second, words="Now bob. And carol."),
        _run(first, second, words="Now bobby."),
    ):
        assert not says_the_same([other], [ASKED]), other
    assert not says_the_same([_run(first, second)] * 2, [ASKED])


def test_a_call_without_arguments_is_an_answer_and_no_marks() -> None:
    run = "<tool_call>\n<function=Stop>\n</function>\n</tool_call><|im_end|>\n"
    call = {"function": {"name": "Stop", "arguments": {}}}
    assert says_the_same([run], [{"content": "", "tool_calls": [call]}])
