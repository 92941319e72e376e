from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from debrief.errors import InputError
from debrief.sessions.model import Session
from debrief.sessions.readers.values import declared_tools
from debrief.training.formats import validate_line
from debrief.training.kinship import traits_of
from debrief.training.model import SampleLine
from debrief.training.samples import encode_line
from tests.training.scenario import (
    call,
    judgement,
    line_of,
    metadata,
    rubric_evaluation,
    says,
    scores,
    session,
    snapshot,
    turn,
)
from tests.training.strategies import sessions


def load(folder: Path, *files: Iterable[bytes]) -> Any:
    import datasets

    datasets.disable_progress_bars()
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, lines in enumerate(files):
        path = folder / f"{number}.jsonl"
        path.write_bytes(b"".join(lines))
        paths.append(str(path))
    return datasets.load_dataset(
        "json", data_files=paths, split="train", cache_dir=str(folder / "cache")
    )


FULL = session("full")
FREE = {"parameters": {"properties": {"a": {"properties": {"b": {"const": 1.5}}}}}}
LINES = {
    "everything known": line_of(
        FULL,
        snapshot=snapshot(FULL, "Be brief.", reviewer="Look twice."),
        judgements=[judgement(FULL), judgement(FULL, "plan", None)],
        rubric_evaluations=[rubric_evaluation(FULL)],
    ),
    "as little known as can be": line_of(
        session("bare", models=(), repository="", tool="unheard-of"),
        scores=scores(FULL, verdicts=(), token_efficiency=None),
    ),
    "no call": line_of(session("talk", turn("Why?", says("Because.")))),
    "one tool of an unknown agent": line_of(
        session("one", turn("Go.", says("", call("go", {})), says("Done.")), tool="unheard-of")
    ),
    "names like dates": line_of(
        session("2026-01-05", task="2026-01-05", repository="2026-01-05", branch="2026-01-05")
    ),
    "tools that its source declares": line_of(
        session(
            "told",
            turn("Go.", says("", call("f", {"a": 1}, "x")), says("Done.")),
            declared_tools=declared_tools(
                {
                    "f": {
                        "description": "2026-01-05",
                        "parameters": {
                            "properties": {
                                "a": {"type": "integer", "maximum": 2**64 - 1, "enum": [1, "x"]},
                                "b": {"items": [{"type": ["string", "null"]}, True]},
                                "c": {"anyOf": [{"default": "2026-01-05"}, {"type": "null"}]},
                            }
                        },
                    },
                    "g": {"parameters": {"properties": {"a": {"default": None}}}},
                }
            ),
        )
    ),
    "one tool that its source declares": line_of(
        session("told", turn("Go.", says("Done.")), declared_tools=declared_tools({"f": FREE}))
    ),
    "every type of argument": line_of(
        session(
            "types",
            turn(
                "Go.",
                says("", call("f", {"a": None, "b": [1, "x", None], "c": {"d": {}}, "e": 1.5})),
                says("", call("f", {"a": {"x": 1}, "b": [], "c": 3, "e": "2026-01-05"})),
                says("Done."),
            ),
        )
    ),
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_is_valid_and_decodes_to_the_sample(line: SampleLine) -> None:
    encoded = encode_line(line)
    assert validate_line(encoded) == []
    assert msgspec.json.decode(encoded, type=SampleLine) == line


def test_files_in_any_order_load_into_one_schema(tmp_path: Path) -> None:
    encoded = [encode_line(line) for line in LINES.values()]
    together = load(tmp_path / "all", encoded)
    assert list(together) == [json.loads(line) for line in encoded], "as it was written"
    for number, line in enumerate(encoded):
        assert load(tmp_path / f"alone{number}", [line]).features == together.features
    backwards = load(tmp_path / "backwards", *([line] for line in reversed(encoded)))
    assert backwards.features == together.features
    assert list(backwards) == list(together)[::-1]


def test_scores_say_their_kind_and_range() -> None:
    entries = LINES["everything known"].metadata.scores
    ranges = {(entry.kind, entry.minimum, entry.maximum) for entry in entries}
    assert ranges == {
        ("overall", 0.0, 1.0),
        ("dimension", 0.0, 1.0),
        ("efficiency", 0.0, 0.0),
        ("judge", 0.0, 1.0),
        ("rubric", 1.0, 5.0),
    }
    assert [entry.name for entry in entries if entry.kind == "judge"] == ["reuse"]


def test_a_mean_over_all_judges_is_only_given_when_none_failed() -> None:
    both = [judgement(FULL, "a", 1.0, weight=3.0), judgement(FULL, "b", 0.0)]
    entries = line_of(FULL, judgements=both).metadata.scores
    assert [entry.value for entry in entries if entry.kind == "judges"] == [0.75]


def test_the_main_prompt_leads_and_all_prompts_travel() -> None:
    line = LINES["everything known"]
    assert line.messages[0].role == "system"
    assert line.messages[0].content == "Be brief."
    assert [(prompt.name, prompt.text) for prompt in line.metadata.prompts] == [
        ("main", "Be brief."),
        ("reviewer", "Look twice."),
    ]


def test_the_digest_of_other_judges_is_not_claimed() -> None:
    row = metadata(FULL, eval_fingerprint="00000000", eval_digest="0" * 64)
    fitting = line_of(FULL, metadata=row).metadata
    other = line_of(FULL, metadata=row, eval_fingerprint="a3f8b2c1").metadata
    assert (fitting.eval_fingerprint, fitting.eval_digest) == ("00000000", "0" * 64)
    assert (other.eval_fingerprint, other.eval_digest) == ("a3f8b2c1", "")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        pytest.param(session("s", turn("Hello?")), "no answer", id="nobody answered"),
        pytest.param(session("s", turn("Hello?", says(" "))), "no answer", id="blank answer"),
        pytest.param(
            session("s", turn("", says("On it."), number=0)),
            "no answer in full to a request that is known",
            id="nobody asked",
        ),
    ],
)
def test_a_session_without_a_request_or_an_answer_is_refused(bad: Session, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        line_of(bad)


def test_a_session_without_scores_is_refused() -> None:
    with pytest.raises(InputError, match="not scored"):
        line_of(FULL, scores=scores(FULL, None))


def grammar(line: SampleLine) -> str:
    """One letter a message: system, user, calls, a tool's result, an answer without calls."""
    return "".join("c" if message.tool_calls else message.role[0] for message in line.messages)


@given(sessions())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60, deadline=None)
def test_any_session_gives_a_valid_line_or_a_reasoned_refusal(any_session: Session) -> None:
    known = traits_of(any_session)
    if not (known.answered and known.asked):
        reason = "to a request that is known" if known.answered else "no answer of the model"
        with pytest.raises(InputError, match=reason):
            line_of(any_session)
        return
    line = line_of(any_session)
    encoded = encode_line(line)
    assert validate_line(encoded) == []
    assert encoded.count(b"\n") == 1
    assert re.fullmatch("s?(u(ct+)*a)+", grammar(line))
    decoded = msgspec.json.decode(encoded, type=SampleLine)
    assert encode_line(decoded) == encoded


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Any:
    known = encode_line(LINES["everything known"])
    return load(tmp_path_factory.mktemp("known"), [known]).features


@given(sessions())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=25, deadline=None)
def test_any_session_loads_into_the_one_schema(
    tmp_path_factory: pytest.TempPathFactory, features: Any, any_session: Session
) -> None:
    try:
        line = encode_line(line_of(any_session))
    except InputError:
        return
    known = encode_line(LINES["everything known"])
    loaded = load(tmp_path_factory.mktemp("any"), [line], [known])
    assert loaded.features == features
    assert loaded[1] == json.loads(known)
