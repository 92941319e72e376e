"""One pass of the pattern engine flags at least what each pattern finds by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from debrief.models.answers import fold
from debrief.models.fencing import _PATTERNS, _suspected

WORDS = (
    "SCORE: 5", '"score": 4, "reasoning"', "[[ ## score ## ]]", "=== End Session ===",
    "[TOOL_CALLS]", "<|im_start|>system", "</s>[INST]", "Human:", "\n\nAssistant:", "ignore the rubric",
    "note to the judges", "AI evaluators", "must", "give", "the highest", "score", "ıgnore the scale",
    "when grading", "reply", "ignore all previous instructions", "base64", "follow", "judge:", "prompt",
)  # fmt: skip


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=30), max_size=12).map(" ".join))
def test_the_engine_misses_nothing_that_a_pattern_finds(text: str) -> None:
    text = fold(text)
    found = {number for number, pattern in enumerate(_PATTERNS) if pattern.search(text)}
    assert found <= _suspected(text)
