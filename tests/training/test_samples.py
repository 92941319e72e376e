from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.sessions.model import DeclaredTool, Session
from debrief.sessions.readers.values import declared_tools
from debrief.tokens import count_tokens
from debrief.training.conversations import TURN_ENDED
from debrief.training.formats import validate_line
from debrief.training.kinship import traits_of
from debrief.training.model import ChatMessage, SampleLine
from debrief.training.samples import encode_line
from debrief.training.windows import CONTINUED, TRUNCATED, samples_of, tokens_of, windows_of
from tests.training.scenario import (
    call,
    judgement,
    line_of,
    metadata,
    outcome,
    rubric_evaluation,
    says,
    session,
    signals,
    snapshot,
    talk,
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
LINES = {
    "everything known": line_of(
        FULL,
        snapshot=snapshot(FULL, "Be brief.", reviewer="Look twice."),
        judgements=[judgement(FULL), judgement(FULL, "plan", None)],
        rubric_evaluations=[rubric_evaluation(FULL)],
        outcome=outcome(True),
        signals=signals(FULL),
    ),
    "as little known as can be": line_of(
        session("bare", models=(), repository="", tool="unheard-of"),
        scores=None,
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
        session(
            "told",
            turn("Go.", says("Done.")),
            declared_tools=declared_tools({"f": {"parameters": {"properties": {"a": {}}}}}),
        )
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


def test_the_verdict_stands_first_with_its_basis_and_no_number_is_made_up() -> None:
    known, bare = (
        LINES[name].metadata for name in ("everything known", "as little known as can be")
    )
    assert known.reviewed
    assert (known.verdict, known.verdict_basis) == ("complete_verified", "outcome")
    kinds = [(score.kind, score.name, score.value, score.category) for score in known.scores[:3]]
    assert kinds == [
        ("verdict", "verdict", 0.0, "complete_verified"),
        ("outcome", "success", 1.0, "ci"),
        ("overall", "overall_quality", 0.7, ""),
    ]
    assert known.scores[0].comment == "Outcome: CI."
    assert (known.kind, known.ending, bare.kind, bare.ending) == ("code", "answered", "unknown", "")
    assert (bare.reviewed, bare.verdict, bare.verdict_basis, bare.quality) == (False, "", "", None)
    assert [(one.kind, one.category, one.comment) for one in bare.scores] == [
        ("verdict", "", "not reviewed")
    ]


def test_a_line_does_not_name_the_person_who_gave_the_verdict() -> None:
    line = line_of(FULL, outcome=outcome(True, "view", rater="ann.example"))
    assert line.metadata.scores[0].comment == "A person said so."
    assert b"ann.example" not in encode_line(line)


def test_a_mean_over_all_judges_is_only_given_when_none_failed() -> None:
    both = [judgement(FULL, "a", 1.0, weight=3.0), judgement(FULL, "b", 0.0)]
    entries = line_of(FULL, judgements=both).metadata.scores
    assert [entry.value for entry in entries if entry.kind == "judges"] == [0.75]


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


@given(sessions())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=20, deadline=None)
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
    letters = ("c" if message.tool_calls else message.role[0] for message in line.messages)
    assert re.fullmatch("s?(u(ct+)*a)+", "".join(letters))
    decoded = msgspec.json.decode(encoded, type=SampleLine)
    assert encode_line(decoded) == encoded


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Any:
    known = encode_line(LINES["everything known"])
    return load(tmp_path_factory.mktemp("known"), [known]).features


@given(sessions())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=20, deadline=None)
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


def words(text: str) -> int:
    return len(text.split())


def shape(window: tuple[ChatMessage, ...]) -> list[str]:
    return [f"{message.role}: {message.content}" for message in window]


def text(count: int) -> str:
    return " ".join(f"w{number}" for number in range(count))


def test_a_conversation_is_cut_between_turns_and_keeps_its_system_message() -> None:
    turns = [turn(f"ask{number}", says(text(30))) for number in range(3)]
    first, second = windows_of(talk(*turns, system="Be brief."), 75, words)
    assert "".join(message.role[0] for message in first) == "suaua"
    assert shape(second)[:2] == ["system: Be brief.", "user: ask2"]


def test_a_long_turn_is_cut_between_its_steps() -> None:
    steps = [says("", call("Read", {"n": number}, text(30))) for number in range(3)]
    first, *_, last = windows_of(talk(turn("Go.", *steps, says("Done."))), 60, words)
    assert shape(first)[-1] == f"assistant: {TURN_ENDED}"
    assert first[-1].weight == 0
    assert shape(last)[0] == f"user: Go.\n\n{CONTINUED}"
    assert shape(last)[-1] == "assistant: Done."


def test_a_result_that_is_too_long_is_cut_and_a_step_of_too_long_calls_is_left_out() -> None:
    long, done = call("Write", {"content": text(500)}), says("Done.")
    read = says("", call("Read", {}, text(500)))
    (window, *_) = windows_of(talk(turn("Go.", read, done)), 60, words)
    assert window[2].content.startswith("w0 w1 w2")
    assert window[2].content.endswith(TRUNCATED)
    windows = windows_of(talk(turn("Go.", says("", call()), says("", long), done)), 60, words)
    calls = [
        tool_call.function.name
        for window in windows
        for m in window
        for tool_call in m.tool_calls or ()
    ]
    assert calls == ["Bash"]
    (window,) = windows_of(talk(turn("Go.", says("", long), done)), 60, words)
    assert shape(window) == [f"user: Go.\n\n{CONTINUED}", "assistant: Done."]


def test_a_system_message_over_the_budget_is_refused() -> None:
    with pytest.raises(InputError, match="leaves less than a quarter of the tokens"):
        windows_of(talk(turn("Go.", says(text(90))), system=text(80)), 100, words)


@given(sessions(), st.integers(200, 400), st.sampled_from([0, 3]))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=20, deadline=None)
def test_every_window_fits_and_is_a_conversation(
    any_session: Session, budget: int, beside: int
) -> None:
    try:
        line = line_of(any_session)
    except InputError:
        return
    windows = windows_of(line.messages, budget, len, beside)
    original = [message.content for message in line.messages if message.role == "assistant"]
    kept = []
    for window in windows:
        assert tokens_of(window, len) + beside * len(window) <= budget
        assert validate_line(encode_line(replace(line, messages=window))) == []
        kept += [message for message in window if message.role == "assistant"]
    if not any(TRUNCATED in message.content for message in kept):
        rest = iter(original)
        assert all(message.content in rest for message in kept if message.weight != 0)


def test_a_line_s_tokens_count_its_tools_and_what_a_template_writes_around() -> None:
    used = [says("", call(f"tool{n}", {"path": "a"}, text(60))) for n in range(12)]
    line = line_of(session("long", turn("Go.", *used, says("Done."))))
    windows = samples_of(line, 2_400)
    assert [window.metadata.window for window in windows] == [1, 2]
    for window in windows:
        assert count_tokens(rendered(window)) <= 2_400
    with pytest.raises(InputError, match="tools leave less than a quarter of 1000 tokens"):
        samples_of(line, 1_000)


def test_tools_that_were_never_called_give_way_to_the_conversation() -> None:
    told = [
        DeclaredTool(
            name=f"tool{n}", description=text(90), parameters=f'{{"properties":{{"a{n}":{{}}}}}}'
        )
        for n in range(20)
    ]
    used = [says("", call("tool7", {"a7": 1}, text(60))), says("Done.")]
    line = line_of(session("told", turn("Go.", *used), declared_tools=tuple(told)))
    (whole,) = samples_of(line, 16_000)
    assert len(whole.tools) > 20
    (small,) = samples_of(line, 1_500)
    assert "tool7" in [tool.function.name for tool in small.tools]
    assert len(small.tools) == 2
    assert small.messages == whole.messages
    assert validate_line(encode_line(small)) == []


def rendered(line: SampleLine) -> str:
    """As the templates of ChatML models render a line."""
    parts = [f"<|im_start|>system\n# Tools\n{json.dumps(to_builtins(line.tools), indent=0)}"]
    for message in line.messages:
        told = [f"<|im_start|>{message.role}\n{message.content}"]
        for made in message.tool_calls or ():
            function = {"name": made.function.name, "arguments": made.function.arguments}
            told.append(f"\n<tool_call>\n{json.dumps(function)}\n</tool_call>")
        parts.append("".join([*told, "<|im_end|>\n"]))
    return "".join(parts)
