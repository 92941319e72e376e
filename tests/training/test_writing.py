from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.sessions.model import Session
from debrief.training.model import TrainingFile
from debrief.training.selection import TrainingOptions
from debrief.training.validation import validate_line
from debrief.training.writing import SECRET_FOUND, build_training_set
from tests.training.scenario import (
    EVAL,
    FINGERPRINT,
    MONDAY,
    call,
    judgement,
    metadata,
    no_secrets,
    rubric_evaluation,
    says,
    scores,
    session,
    snapshot,
    turn,
)
from tests.training.strategies import sessions

SECRET = b"hunter2-hunter2"


def finds(data: bytes) -> Sequence[object]:
    return [SECRET] if SECRET in data else []


def build(team: Sequence[Session], **fields: Any) -> TrainingFile:
    plain: dict[str, Any] = {
        "sessions": team,
        "scores": [scores(one) for one in team],
        "judgements": [judgement(one) for one in team],
        "rubric_evaluations": [rubric_evaluation(one) for one in team],
        "snapshots": [snapshot(one) for one in team],
        "metadata": [metadata(one) for one in team],
        "find_secrets": no_secrets,
    }
    return build_training_set("checkout", FINGERPRINT, **{**plain, **fields})


def rows(made: TrainingFile) -> list[dict[str, Any]]:
    return [json.loads(line) for line in made.lines.splitlines()]


def team(count: int = 6) -> list[Session]:
    return [
        session(f"s{number}", started=MONDAY + timedelta(weeks=number % 4, minutes=number))
        for number in range(count)
    ]


def test_lines_stand_by_start_and_id() -> None:
    twins = [session("b", started=MONDAY), session("a", started=MONDAY), *team()]
    metadata_rows = [row["metadata"] for row in rows(build(twins))]
    order = [(row["started"], row["session_id"]) for row in metadata_rows]
    assert order == sorted(order)
    assert len(order) == 8


def test_the_same_input_in_any_order_gives_the_same_bytes() -> None:
    first = build(team())
    everybody = team()
    random.Random(3).shuffle(everybody)
    assert build(everybody) == first
    assert build([*everybody, everybody[0]]) == first


def test_what_is_in_and_what_is_left_out_make_up_what_was_considered() -> None:
    awkward = [session("unanswered", turn("Hello?")), session("unscored")]
    everybody = [*team(), *awkward]
    made = build(everybody, scores=[scores(one) for one in everybody[:-1]])
    assert made.considered == 8
    assert made.samples == made.train + made.eval == len(rows(made)) == 6
    assert {row.reason: row.sessions for row in made.left_out} == {
        "no answer of the model": ("unanswered",),
        "not scored": ("unscored",),
    }


@pytest.mark.parametrize(
    "place", ["prompt", "answer", "argument", "result", "tool", "system", "feedback", "branch"]
)
def test_a_secret_that_was_overlooked_costs_the_line_wherever_it_is(place: str) -> None:
    secret = SECRET.decode()
    texts = dict.fromkeys(("prompt", "answer", "argument", "result", "tool", "branch"), "plain")
    texts["branch" if place not in texts else place] = secret
    if place in ("system", "feedback"):
        texts["branch"] = "plain"
    used = call(texts["tool"], {"x": texts["argument"]}, texts["result"])
    leaky = session(
        "leaky",
        turn(texts["prompt"], says("", used), says(texts["answer"])),
        branch=texts["branch"],
    )
    everybody = [*team(2), leaky]
    made = build(
        everybody,
        find_secrets=finds,
        snapshots=[snapshot(leaky, secret if place == "system" else "Be brief.")],
        judgements=[judgement(leaky, feedback=secret if place == "feedback" else "fine")],
    )
    assert SECRET not in made.lines
    assert SECRET.decode() not in made.card
    assert made.samples == 2
    assert [(row.reason, row.sessions) for row in made.left_out] == [(SECRET_FOUND, ("leaky",))]


def test_the_gate_by_default_is_that_of_redaction() -> None:
    key = "AKIA" + "Q7ZK4MNB2XVH6TRD"
    leaky = session("leaky", turn("Why?", says(f"export AWS_ACCESS_KEY_ID={key}")))
    made = build([*team(2), leaky], find_secrets=None)
    assert key.encode() not in made.lines
    assert [(row.reason, row.sessions) for row in made.left_out] == [(SECRET_FOUND, ("leaky",))]


def test_only_the_judges_of_the_fingerprint_are_in() -> None:
    one = session()
    mixed = [judgement(one), judgement(one, "other", eval_fingerprint="00000000")]
    made = rows(build([one], judgements=mixed, eval_digest=EVAL * 8))[0]["metadata"]
    assert [entry["name"] for entry in made["scores"] if entry["kind"] == "judge"] == ["reuse"]
    assert (made["eval_fingerprint"], made["eval_digest"]) == (EVAL, EVAL * 8)


def test_unknown_fingerprints_are_exported_as_unknown() -> None:
    one = session()
    made = build_training_set(
        "checkout",
        "unknown-unknown",
        [one],
        [scores(one)],
        metadata=[metadata(one, prompt_fingerprint="unknown", prompt_digest="")],
        find_secrets=no_secrets,
    )
    assert rows(made)[0]["metadata"]["eval_fingerprint"] == "unknown"
    assert made.name == "checkout/unknown-unknown"


def test_the_base_commit_travels() -> None:
    one = session("s1")
    made = build([one], metadata=[metadata(one, base_commit="6eaf2c1", licence="MIT")])
    assert rows(made)[0]["metadata"]["base_commit"] == "6eaf2c1"
    assert "| shop | MIT | 1 |" in made.card
    assert "known of 1 samples" in made.card


def test_nothing_left_gives_an_empty_file_and_a_card_that_says_why() -> None:
    made = build([session("s1")], options=TrainingOptions(min_overall_quality=0.9))
    assert made.lines == b""
    assert "| overall quality below 0.9 | 1 | s1 |" in made.card


def test_the_card_tells_counts_sources_filters_judges_and_what_was_left_out() -> None:
    edit = call("Edit", {"file_path": "a.py"}, path="src/a.py", added=3, removed=1)
    made = build([*team(), session("edits", turn("Go.", says("", edit), says("Done.")))])
    card = made.card
    assert (
        f"7 samples from 7 sessions of one task, one prompt fingerprint (`{FINGERPRINT[:8]}`)"
        in card
    )
    assert f"{made.train} train, {made.eval} eval; 0 sessions were left out" in card
    assert "| claude-code | claude-code | opus | shop | 7 |" in card
    assert "| minimum overall quality | 0 |" in card
    assert "| reuse | offline | 1 | 7 | 0.80 |" in card
    assert "task_completion 0.3" in card
    assert "Agreement with people: no human labels yet." in card
    assert "| languages, by changed lines | Python 100% |" in card
    assert f"{made.tokens:,}" in card
    assert made.tokens > 0
    assert f'data_files="{FINGERPRINT}.jsonl"' in card
    assert "Nothing was left out." in card
    assert "| lines by tokens | 7 up to 1,024 |" in card


def test_the_card_tells_how_long_lines_are_and_counts_a_split_session_once() -> None:
    long = session("long", *(turn(f"ask {n}", says(f"w{n} " * 900)) for n in range(4)))
    made = build([long, session("s1")], options=TrainingOptions(max_tokens=3_000))
    assert made.samples > 2
    assert "| reuse | offline | 1 | 2 | 0.80 |" in made.card
    assert "1 up to 1,024, " in made.card
    (longest,) = re.findall(r"tokens of the longest line \| ([\d,]+) ", made.card)
    assert 1_500 < int(longest.replace(",", "")) < 3_000


def test_a_session_that_is_named_by_a_secret_is_not_named_on_the_card() -> None:
    name = "AKIA" + "Q7ZK4MNB2XVH6TRD"
    made = build([session(name)], find_secrets=None)
    assert made.lines == b""
    assert "| the last gate still found a secret | 1 | (aws-access-key-id) |" in made.card
    assert name not in made.card


def test_the_card_s_lines_load_the_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    datasets.disable_progress_bars()
    made = build(team())
    (tmp_path / f"{FINGERPRINT}.jsonl").write_bytes(made.lines)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    names: dict[str, Any] = {}
    exec(made.card.split("```python\n")[1].split("```")[0], names)
    assert len(names["samples"]) == made.samples
    assert len(names["train"]) == made.train


def test_a_name_cannot_break_out_of_the_card() -> None:
    made = build([session(repository="a|b\n# Heading")])
    assert "a\\|b # Heading" in made.card


@given(st.lists(sessions(), max_size=4))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=40, deadline=None)
def test_any_sessions_give_valid_lines_and_no_one_is_lost(found: list[Session]) -> None:
    from msgspec.structs import replace

    everybody = [replace(one, id=f"{number}") for number, one in enumerate(found)]
    made = build(everybody)
    lines = made.lines.splitlines(keepends=True)
    assert all(line.endswith(b"\n") for line in lines)
    assert [validate_line(line) for line in lines] == [[]] * made.samples
    assert made.samples + sum(row.count for row in made.left_out) == len(everybody)
    assert not any(row.reason.startswith("gives no valid line") for row in made.left_out)
