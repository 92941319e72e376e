from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.judging.model import Judge
from debrief.snapshots.fingerprint import (
    compute_eval_fingerprint,
    compute_prompt_fingerprint,
    eval_digest,
    prompt_digest,
)
from debrief.snapshots.model import PromptSnapshot

AWKWARD = st.text(alphabet=st.sampled_from("0123456789:\n ab€ä"), max_size=6)


def judge(name: str = "reuse", weight: float = 0.4, model: str = "m", body: str = "b") -> Judge:
    return Judge(name=name, weight=weight, model=model, body=body)


# Each digest is that of the bytes beside it, taken with another program than ours.
PROMPT_VECTORS = {
    "a main prompt and a subagent with an umlaut": (
        PromptSnapshot(main="Do it.", subagents={"reviewer": "Prüfe!"}),
        b"9:prompt-v14:main6:Do it.8:reviewer7:Pr\xc3\xbcfe!",
        "30d2c7511e07e5d6ceb3e0f4c3f40862c223d7595f6c18a5f34adcad8e766332",
    ),
    "no prompt at all": (
        PromptSnapshot(main=""),
        b"9:prompt-v14:main0:",
        "327ed70381085f26f4f4f0ed2fb948704c79b893a9da771e6ada9d550e549599",
    ),
    "names and texts that look like lengths": (
        PromptSnapshot(main="a:b", subagents={"a": ":\n", "1": "2"}),
        b"9:prompt-v14:main3:a:b1:11:21:a2::\n",
        "bd605f2d3063d3391c7101df22363ba4d61006d8c850732f961d31f938b88cc3",
    ),
}
EVAL_VECTORS = {
    "two judges, given in the other order": (
        [judge("plan-compliance", 0.6, "grok", "Plan"), judge("code-reuse", 0.4, "grok", "Reuse")],
        b"7:eval-v110:code-reuse3:0.44:grok5:Reuse15:plan-compliance3:0.64:grok4:Plan",
        "40129dec700f8f244c6a8518d9f2bc327018481825d11bd471b6b489443fb668",
    ),
    "a whole weight, and a body that ends its line": (
        [judge("reuse", 1, "openrouter/x-ai/grok-4.1-fast", "b\n")],
        b"7:eval-v15:reuse3:1.029:openrouter/x-ai/grok-4.1-fast2:b\n",
        "e806930b0cf6c0a193d0190a6a41353f2cbe5dcfa45acdd5ad89e4a1ece10b7d",
    ),
    "no judge": (
        [],
        b"7:eval-v1",
        "880f80f0035acbc2fcba859a8176894d56b8bbebe03c07688119e03b624c9ad6",
    ),
}


VECTORS = [
    *((prompt_digest, compute_prompt_fingerprint, *vector) for vector in PROMPT_VECTORS.values()),
    *((eval_digest, compute_eval_fingerprint, *vector) for vector in EVAL_VECTORS.values()),
]


@pytest.mark.parametrize(
    ("whole", "short", "given", "stream", "digest"), VECTORS, ids=[*PROMPT_VECTORS, *EVAL_VECTORS]
)
def test_digests_are_those_written_out_by_hand(
    whole: Any, short: Any, given: Any, stream: bytes, digest: str
) -> None:
    assert hashlib.sha256(stream).hexdigest() == digest
    assert whole(given) == digest
    assert short(given) == digest[:8]


def test_a_whole_weight_is_the_same_weight_and_another_model_other_judges() -> None:
    given = [judge(weight=1), judge(weight=1.0), judge(weight=1, model="other")]
    whole, decimal, other = (compute_eval_fingerprint([each]) for each in given)
    assert whole == decimal != other


SNAPSHOTS = st.builds(
    PromptSnapshot, main=AWKWARD, subagents=st.dictionaries(AWKWARD, AWKWARD, max_size=3)
)


JUDGES = st.lists(
    st.builds(judge, AWKWARD, st.sampled_from([0.1, 1, 2.5]), AWKWARD, AWKWARD),
    max_size=3,
    unique_by=lambda judge: judge.name,
)


@given(SNAPSHOTS, SNAPSHOTS)
def test_no_two_different_snapshots_share_a_digest(
    one: PromptSnapshot, other: PromptSnapshot
) -> None:
    assert (prompt_digest(one) == prompt_digest(other)) == (one == other)


ELSEWHERE = """
from debrief.judging.model import Judge
from debrief.snapshots.fingerprint import compute_eval_fingerprint, compute_prompt_fingerprint
from debrief.snapshots.model import PromptSnapshot

subagents = {name: f"Be {name}." for name in {"reviewer", "tester", "auditor", "checker"}}
judges = {Judge(name=name, weight=0.5, model="m", body="b") for name in ("reuse", "plan", "style")}
print(compute_prompt_fingerprint(PromptSnapshot(main="Do it.", subagents=subagents)))
print(compute_eval_fingerprint(judges))
"""


def fingerprints_elsewhere(seed: str) -> list[str]:
    """Return both fingerprints as a process with another order of sets gives them."""
    command = [sys.executable, "-c", ELSEWHERE]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.split()


class TestComputePromptFingerprint:
    def test_compute_prompt_fingerprint_deterministic(self) -> None:
        names = ("reviewer", "tester", "auditor", "checker")
        subagents = {name: f"Be {name}." for name in names}
        here = compute_prompt_fingerprint(PromptSnapshot(main="Do it.", subagents=subagents))
        assert re.fullmatch("[0-9a-f]{8}", here)
        assert [fingerprints_elsewhere(seed)[0] for seed in ("1", "2")] == [here, here]

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(PromptSnapshot(main="Do it"), id="main prompt"),
            pytest.param(PromptSnapshot(main="Do it.", subagents={"a": ""}), id="one more"),
            pytest.param(PromptSnapshot(main="Do it.", subagents={"r": "Look"}), id="subagent"),
            pytest.param(PromptSnapshot(main="Do it.", subagents={"s": "Look."}), id="its name"),
        ],
    )
    def test_compute_prompt_fingerprint_changes_with_content(self, other: PromptSnapshot) -> None:
        given = PromptSnapshot(main="Do it.", subagents={"r": "Look."})
        assert compute_prompt_fingerprint(given) != compute_prompt_fingerprint(other)

    @given(SNAPSHOTS, st.randoms())
    def test_compute_prompt_fingerprint_subagent_order_independent(
        self, snapshot: PromptSnapshot, random: Random
    ) -> None:
        names = list(snapshot.subagents)
        random.shuffle(names)
        other = PromptSnapshot(
            main=snapshot.main, subagents={name: snapshot.subagents[name] for name in names}
        )
        assert compute_prompt_fingerprint(snapshot) == compute_prompt_fingerprint(other)


class TestComputeEvalFingerprint:
    def test_compute_eval_fingerprint_deterministic(self) -> None:
        judges = [judge(name, 0.5) for name in ("reuse", "plan", "style")]
        here = compute_eval_fingerprint(judges)
        assert re.fullmatch("[0-9a-f]{8}", here)
        assert [fingerprints_elsewhere(seed)[1] for seed in ("1", "2")] == [here, here]

    @pytest.mark.parametrize(
        "others",
        [
            pytest.param([], id="none"),
            pytest.param([judge(), judge("plan")], id="one more"),
            pytest.param([judge("plan")], id="name"),
            pytest.param([judge(weight=0.5)], id="weight"),
            pytest.param([judge(model="other")], id="model"),
            pytest.param([judge(body="c")], id="instructions"),
        ],
    )
    def test_compute_eval_fingerprint_changes_with_judges(self, others: list[Judge]) -> None:
        assert compute_eval_fingerprint([judge()]) != compute_eval_fingerprint(others)

    @given(JUDGES, st.randoms())
    def test_compute_eval_fingerprint_judge_order_independent(
        self, judges: list[Judge], random: Random
    ) -> None:
        others = [*judges]
        random.shuffle(others)
        assert compute_eval_fingerprint(judges) == compute_eval_fingerprint(others)
