from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from debrief.judging.model import Judge
from debrief.snapshots.fingerprint import (
    compute_eval_fingerprint,
    compute_prompt_fingerprint,
    framed,
    prompt_digest,
)
from debrief.snapshots.model import PromptSnapshot

AWKWARD = st.text(alphabet=st.sampled_from("0123456789:\n ab€ä"), max_size=6)


def judge(name: str = "reuse", weight: float = 0.4, model: str = "m", body: str = "b") -> Judge:
    return Judge(name=name, weight=weight, model=model, body=body)


def test_the_prompt_fingerprint_is_the_one_written_out_by_hand() -> None:
    stream = b"9:prompt-v1" + b"4:main" + b"6:Do it." + b"8:reviewer" + "7:Prüfe!".encode()
    assert (
        compute_prompt_fingerprint(PromptSnapshot(main="Do it.", subagents={"reviewer": "Prüfe!"}))
        == (hashlib.sha256(stream).hexdigest()[:8])
    )


def test_the_eval_fingerprint_is_the_one_written_out_by_hand() -> None:
    stream = b"7:eval-v110:code-reuse3:0.44:grok5:Reuse15:plan-compliance3:0.64:grok4:Plan"
    judges = [
        judge("plan-compliance", 0.6, "grok", "Plan"),
        judge("code-reuse", 0.4, "grok", "Reuse"),
    ]
    assert compute_eval_fingerprint(judges) == hashlib.sha256(stream).hexdigest()[:8]


def test_a_length_counts_bytes_and_not_characters() -> None:
    assert framed(["€"]) == b"3:\xe2\x82\xac"


def test_the_order_of_subagents_and_of_judges_is_of_no_matter() -> None:
    one = PromptSnapshot(main="m", subagents={"a": "1", "b": "2"})
    other = PromptSnapshot(main="m", subagents={"b": "2", "a": "1"})
    assert compute_prompt_fingerprint(one) == compute_prompt_fingerprint(other)
    judges = [judge("a"), judge("b")]
    assert compute_eval_fingerprint(judges) == compute_eval_fingerprint(judges[::-1])


def test_a_weight_written_as_a_whole_number_is_the_same_weight() -> None:
    assert compute_eval_fingerprint([judge(weight=1)]) == compute_eval_fingerprint(
        [judge(weight=1.0)]
    )


def test_another_model_is_another_eval_fingerprint() -> None:
    assert compute_eval_fingerprint([judge(model="a")]) != compute_eval_fingerprint(
        [judge(model="b")]
    )


@given(st.lists(AWKWARD, max_size=5), st.lists(AWKWARD, max_size=5))
def test_no_two_different_sequences_give_one_byte_stream(one: list[str], other: list[str]) -> None:
    assert (framed(one) == framed(other)) == (one == other)


SNAPSHOTS = st.builds(
    PromptSnapshot, main=AWKWARD, subagents=st.dictionaries(AWKWARD, AWKWARD, max_size=3)
)


@given(SNAPSHOTS, SNAPSHOTS)
def test_no_two_different_snapshots_share_a_digest(
    one: PromptSnapshot, other: PromptSnapshot
) -> None:
    assert (prompt_digest(one) == prompt_digest(other)) == (one == other)
