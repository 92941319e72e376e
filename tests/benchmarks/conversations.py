"""How fast conversations are made of requests that repeat them.

Run as ``python -m tests.benchmarks.conversations``. Every request of a long session holds all
that was said before, so what has to be read grows with the square of its length. Prints how much
longer making the session takes than decoding the same inputs does, both measured in turns.
"""

from __future__ import annotations

import time

import orjson

from debrief.langfuse.conversion import session_of
from tests.langfuse.dropin import READ, TEST, DropIn, call, calls, says, tool, user
from tests.langfuse.server import LangfuseServer

TURNS, STEPS = 40, 10


def main() -> None:
    """Print the figures."""
    with LangfuseServer() as server:
        agent = DropIn(server, tools=[READ, TEST])
        new = [user("Begin.")]
        for turn in range(TURNS):
            for step in range(STEPS):
                identity = f"c{turn}-{step}"
                made = call(identity, "read_file", path=f"{turn}/{step}.py", note="n" * 100)
                agent.asks(*new, answers=calls(made, text="Looking."))
                new = [tool(identity, "line of code\n" * 100)]
            agent.asks(*new, answers=says("Done."))
            new = [user(f"Go on with {turn}.")]
        rows = server.observations
    inputs = [row["input"] for row in rows]
    decoding, making = [], []
    for _ in range(3):
        began = time.perf_counter()
        for text in inputs:
            orjson.loads(text)
        decoding.append(time.perf_counter() - began)
        began = time.perf_counter()
        session = session_of("s1", rows)
        making.append(time.perf_counter() - began)
    told = sum(len(message.calls) for turn in session.turns for message in turn.messages)
    size = sum(map(len, inputs)) / 1e6
    print(f"{len(rows)} requests, {size:.0f} MB, {len(session.turns)} turns, {told} calls")
    print(f"decoded {min(decoding):.2f} s, made {min(making):.2f} s")
    print(f"ratio {min(making) / min(decoding):.1f}")


if __name__ == "__main__":
    main()
