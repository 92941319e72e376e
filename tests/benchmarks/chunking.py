"""How fast sessions are cut: run as ``python -m tests.benchmarks.chunking``.

Prints chunking and counting against the tokeniser's own ``encode`` on the same text, side by side
in one run, the time of sessions of growing length, and the peak of memory.
"""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Sequence

from debrief.scoring.chunking import TARGET, chunk_by_tokens
from debrief.scoring.model import Observation, Trace
from debrief.tokens import _encoder, count_tokens

CODE = (
    "def return self.value if not None import session = {'id': 12} async await the a of to error "
    "result -> tests/test_cart.py::test_total FAILED assert 41 == 42 https://example.org /usr/bin"
)
WORDS = CODE.split()


def traces(tokens: int, seed: int = 7) -> list[Trace]:
    """Return traces of code-like text with about that many tokens."""
    source = random.Random(seed)
    made: list[Trace] = []
    held = 0
    while held < tokens:
        parts = []
        for _ in range(source.randint(1, 30)):
            size = source.choice([10, 80, 400, 1_200])
            text = " ".join(source.choices(WORDS, k=size)).replace(" def", "\ndef")
            parts.append(Observation("message", f"[ASSISTANT]\n{text}\n"))
            held += 17 * size // 10
        made.append(Trace(number=len(made) + 1, observations=tuple(parts)))
    return made


def encode_seconds(session: Sequence[Trace]) -> tuple[float, int]:
    """Return CPU seconds of ``encode`` on the session's texts, and their characters."""
    encoder = _encoder()
    texts = [part.text for trace in session for part in trace.observations]
    began = time.process_time()
    for text in texts:
        encoder.encode(text, disallowed_special=())
    return time.process_time() - began, sum(map(len, texts))


def main() -> None:
    """Print the figures."""
    count_tokens("warm up")
    for millions in (0.3, 1, 5):
        session = traces(int(millions * 1e6))
        began = time.process_time()
        chunks = chunk_by_tokens(session)
        took = time.process_time() - began
        tokens = sum(chunk.own_tokens for chunk in chunks)
        bare, size = encode_seconds(session)
        assert all(chunk.tokens <= TARGET for chunk in chunks)
        print(
            f"{tokens / 1e6:.2f} M tokens: {took:.2f} s, {len(chunks)} chunks, "
            f"{size / took / 1e6:.1f} MB/s, {bare / took:.0%} of the speed of encode"
        )
    big = Trace(number=1, observations=(Observation("result", f"{CODE}\n" * 40_000),))
    began = time.process_time()
    chunks = chunk_by_tokens([big])
    took = time.process_time() - began
    bare, _ = encode_seconds([big])
    print(f"one observation, {len(chunks)} chunks: {bare / took:.0%} of the speed of encode")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()
