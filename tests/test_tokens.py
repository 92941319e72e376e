"""Token counts: exact, offline, and bounded for texts that break tokenisers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.tokens import _encoder, _vocabulary_folder, count_tokens
from tests.waiting import is_done_within


def plain_count(text: str) -> int:
    encoder: tiktoken.Encoding = _encoder()
    return len(encoder.encode_ordinary(text))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello world", 2), ("\n", 1), ("def f(x):\n    return x\n", 8)],
)
def test_small_texts_have_the_counts_of_the_published_vocabulary(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@settings(deadline=None)
@given(st.text(max_size=400))
def test_a_count_is_the_tokenisers_own(text: str) -> None:
    assert count_tokens(text) == plain_count(text)


@settings(max_examples=15, deadline=None)
@given(
    st.text(
        alphabet=st.sampled_from(list("aZ9 .\n\r\t'/[{-_é中😀\u00a0")), min_size=300, max_size=400
    ),
    st.integers(min_value=230, max_value=350),
)
def test_counting_in_blocks_gives_the_count_of_the_whole(text: str, times: int) -> None:
    long = f"{text} word\nend " * times
    assert count_tokens(long) == plain_count(long)


def test_names_of_special_tokens_are_plain_text() -> None:
    assert count_tokens("<|endoftext|>") > 1
    assert count_tokens("<|endofprompt|> and so on") == plain_count("<|endofprompt|> and so on")


def test_a_lone_surrogate_is_counted_and_not_fatal() -> None:
    assert count_tokens("a\ud800b") == plain_count("a\ufffdb")


@pytest.mark.parametrize("unit", ["a", " ", "\t", "\n", "=", "/", "😀", "中", "a\u0301", "0", "Aa"])
def test_a_long_run_of_one_thing_is_counted_in_bounded_time(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    count = count_tokens(text)
    assert is_done_within(2, lambda: count_tokens(text))
    reference = plain_count(unit * 60_000) * len(text) / (60_000 * len(unit))
    assert count == pytest.approx(reference, rel=0.02)


def test_the_vocabulary_is_found_without_a_network_or_litellm() -> None:
    code = (
        "import sys, socket, os\n"
        "def refuse(*_a, **_k): raise OSError('no network')\n"
        "socket.socket.connect = refuse\n"
        "from debrief.tokens import count_tokens\n"
        "assert 'tiktoken' not in sys.modules\n"
        "print(count_tokens('hello world'), 'litellm' in sys.modules,"
        " os.environ.get('TIKTOKEN_CACHE_DIR'))\n"
    )
    unset = ("TIKTOKEN_CACHE_DIR", "CUSTOM_TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
    environ = {key: value for key, value in os.environ.items() if key not in unset}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=True
    )
    assert done.stdout.split() == ["2", "False", "None"]


def test_a_folder_with_another_vocabulary_is_passed_over_and_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790"
    wrong.write_bytes(b"something else")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert _vocabulary_folder() != tmp_path
    assert wrong.read_bytes() == b"something else"


def test_without_any_vocabulary_the_error_says_what_to_do(tmp_path: Path) -> None:
    code = "from debrief.tokens import _vocabulary_folder\n_vocabulary_folder()"
    environ = {
        "TIKTOKEN_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "recorder")]
        ),
    }
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        env=environ,
        check=False,
    )
    assert "ConfigurationError" in done.stderr
    assert "set TIKTOKEN_CACHE_DIR" in done.stderr
